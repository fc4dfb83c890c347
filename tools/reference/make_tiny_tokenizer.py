#!/usr/bin/env python3
"""Trains the small byte-level BPE tokenizer of tests/golden/tiny-tokenizer.

    tools/reference/make_tiny_tokenizer.py tests/golden/tiny-tokenizer/tokenizer.json

It has the form that Qwen publishes and fits the tiny Qwen checkpoints: 384 tokens, of which 381 and 382
are those that end a text.
"""

import collections
import json
import re
import sys

TEXT = """
It is a truth that every test must be able to fail. The tokenizer takes the text apart, the engine speaks
only in tokens, and the same text has the same tokens on every machine. There is no other way to tell what
the model would have said: a wrong token is a wrong model. This is the house that the words live in, and
these are the words: the, there, their, then, that, this, those, these, and, or, not, is, was, were, with.
    for (size_t i = 0; i < tokens.size(); ++i) {
        if (tokens[i] != expected[i]) return false;
    }
The caf\u00e9 on the \u00cele de la Cit\u00e9, na\u00efve r\u00e9sum\u00e9s, \u00fcber Stra\u00dfe, se\u00f1or, \u4e2d\u56fd\u4eba\u4e2d\u56fd,
\ud55c\uad6d\uc5b4 \ud55c\uad6d, \u0928\u092e\u0938\u094d\u0924\u0947 \u0928\u092e\u0938\u094d\u0924\u0947, \u043f\u0440\u0438\u0432\u0435\u0442 \u043f\u0440\u0438\u0432\u0435\u0442, it's, we're, they'll, I'd, don't, we've, I'm.
"""

MERGE_COUNT = 118
# The spelling, and whether a reader of the text is spared it.
CONTROL_TOKENS = [
    ("<tool_call>", False),
    ("</tool_call>", False),
    ("<tool_response>", False),
    ("</tool_response>", False),
    ("<think>", False),
    ("</think>", False),
    ("<|im_start|>", True),
    ("<|endoftext|>", True),
    ("<|im_end|>", True),
    ("<|fim_pad|>", False),
]
PATTERN = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|"
    r"\s*[\r\n]+|\s+(?!\S)|\s+"
)
# Near enough to PATTERN to learn from.
LEARNING_PATTERN = r"'(?:s|t|re|ve|m|ll|d)| ?[^\W\d_]+|\d| ?[^\w\s]+\n*|\s*\n|\s+(?!\S)|\s+"


def byte_letters():
    """GPT-2's letter of each byte, those that Latin-1 shows first."""
    shown = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in shown]
    letters = {byte: chr(byte) for byte in shown}
    letters.update({byte: chr(256 + i) for i, byte in enumerate(hidden)})
    return letters


def learn(words, count):
    """The `count` most frequent merges, one after the other; of equal ones the first in the alphabet."""
    merges = []
    for _ in range(count):
        pairs = collections.Counter()
        for word, frequency in words.items():
            for pair in zip(word, word[1:]):
                pairs[pair] += frequency
        left, right = min(pairs, key=lambda pair: (-pairs[pair], pair))
        merges.append((left, right))
        merged = collections.Counter()
        for word, frequency in words.items():
            parts = []
            for part in word:
                if parts and parts[-1] == left and part == right:
                    parts[-1] = left + right
                else:
                    parts.append(part)
            merged[tuple(parts)] += frequency
        words = merged
    return merges


def flags(**more):
    return {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, **more}


def main():
    letters = byte_letters()
    words = collections.Counter(
        tuple(letters[byte] for byte in piece.encode()) for piece in re.findall(LEARNING_PATTERN, TEXT)
    )
    merges = learn(words, MERGE_COUNT)
    tokens = [*letters.values(), *(left + right for left, right in merges)]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
    split = {"type": "Split", "pattern": {"Regex": PATTERN}, "behavior": "Isolated", "invert": False}
    tokenizer = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {"id": len(tokens) + i, "content": content, **flags(special=special)}
            for i, (content, special) in enumerate(CONTROL_TOKENS)
        ],
        "normalizer": {"type": "NFC"},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, byte_level]},
        "post_processor": byte_level,
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": "",
            "end_of_word_suffix": "",
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {token: i for i, token in enumerate(tokens)},
            "merges": merges,
        },
    }
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        json.dump(tokenizer, file, indent=1)
        file.write("\n")


main()
