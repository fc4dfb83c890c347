#!/usr/bin/env python3
"""Goldens of the bundled model: tests/golden/golden-demo, in the format of the other golden folders.

Developer tool (numpy only); building, testing and running the product never need it.

    tools/reference/make_demo_golden.py models/demo tests/golden/golden-demo
"""
import base64
import os
import re
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import golden_file  # noqa: E402
import ref_k3 as R  # noqa: E402

PROMPTS = ["The capital of France is", "The capital of Japan is", "The currency of Brazil is",
           "The chemical symbol of gold is", "And the LORD said unto Moses,"]
STEPS = 32


class Ranks:
    """Byte-level BPE of a rank file; the split pattern is K3's for ASCII text."""
    L, U, l = r"[^\W\d_]", r"[^\W\d_a-z]", r"[^\W\d_A-Z]"
    TAIL = r"(?:'(?:[sS]|[tT]|[rR][eE]|[vV][eE]|[mM]|[lL][lL]|[dD]))?"
    SPLIT = re.compile(
        r"(?:[^\r\n\w]|_)?" + U + "*" + l + "+" + TAIL + r"|(?:[^\r\n\w]|_)?" + U + "+" + l + "*" + TAIL +
        r"|\d{1,3}| ?(?:[^\s\w]|_)+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")

    def __init__(self, folder):
        with open(os.path.join(folder, "tiktoken.model"), "rb") as f:
            self.rank = {base64.b64decode(t): int(r) for t, r in (line.split() for line in f)}

    def encode(self, text):
        out = []
        for piece in self.SPLIT.findall(text):
            parts = [bytes([b]) for b in piece.encode()]
            while len(parts) > 1:
                ranks = [self.rank.get(a + b, 1 << 30) for a, b in zip(parts, parts[1:])]
                best = min(range(len(ranks)), key=ranks.__getitem__)
                if ranks[best] == 1 << 30:
                    break
                parts[best:best + 2] = [parts[best] + parts[best + 1]]
            out += [self.rank[p] for p in parts]
        return out


def main(model_folder, out_folder):
    model, ranks = R.Model(model_folder, np.float64), Ranks(model_folder)
    golden, meta = golden_file.GoldenFile(), []
    put = golden.put
    moe = [i for i in range(model.c.layers) if model.c.is_moe(i)]
    for n, text in enumerate(PROMPTS):
        ids, trace = ranks.encode(text), {}
        logits = model.forward(ids, trace)
        greedy, margin = model.greedy(ids, STEPS)
        last = model.forward(ids + greedy[:-1])[-1]
        put(f"p{n}.ids", ids, "i32")
        put(f"p{n}.logits", logits, "f32")
        put(f"p{n}.greedy", greedy, "i32")
        put(f"p{n}.greedy_margin", margin, "f32")
        put(f"p{n}.greedy_last_logits", last, "f32")
        routes = [trace["routes"][i] for i in moe]
        put(f"p{n}.route_ids", [[r[0] for r in layer] for layer in routes], "i32")
        put(f"p{n}.route_weights", [[r[1] for r in layer] for layer in routes], "f32")
        gap = float(min(r[2] for layer in routes for r in layer))
        meta.append({"text": text, "min_greedy_margin": float(min(margin)), "min_route_gap": gap})
        print(n, repr(text), ids, greedy, "margin", min(margin), "route gap", gap)
    golden.write(out_folder, {"source": "ref_k3.py float64", "prompts": meta})


if __name__ == "__main__":
    main(*sys.argv[1:3])
