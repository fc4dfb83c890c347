"""Byte-level BPE: a rank file in tiktoken's form, and K3's 256 control tokens behind it.

train() learns the merges, save() writes the files of a model directory, Tokenizer reads them.
The split pattern is K3's, restricted to what ASCII text can match: the corpus is ASCII.
"""
import base64
import collections
import heapq
import json
import os
import re

U, l = r"[^\W\d_a-z]", r"[^\W\d_A-Z]"
SPLIT = re.compile(
    r"(?:[^\r\n\w]|_)?" + U + "*" + l + r"+(?:'(?:[sS]|[tT]|[rR][eE]|[vV][eE]|[mM]|[lL][lL]|[dD]))?"
    r"|(?:[^\r\n\w]|_)?" + U + "+" + l + r"*(?:'(?:[sS]|[tT]|[rR][eE]|[vV][eE]|[mM]|[lL][lL]|[dD]))?"
    r"|\d{1,3}| ?(?:[^\s\w]|_)+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")

SPECIAL = {0: "[BOS]", 1: "[EOS]", 2: "<|end_of_msg|>", 3: "<|open|>", 4: "<|close|>", 5: "<|sep|>", 6: "[start_header_id]",
           7: "[end_header_id]", 9: "[EOT]", 18: "<|media_begin|>", 19: "<|media_content|>", 20: "<|media_end|>", 21: "<|media_pad|>",
           65: "<osagent_mode>", 254: "[UNK]", 255: "[PAD]"}


def train(texts, size):
    """texts: (string, count)s. The tokens (bytes) in the order of their ranks."""
    words = collections.Counter()
    for t, n in texts:
        for p in SPLIT.findall(t):
            words[p.encode()] += n
    vocab = [bytes([b]) for b in range(256)]
    seqs, cnt = [], []
    for w, n in sorted(words.items()):
        seqs.append([bytes([b]) for b in w])
        cnt.append(n)
    pairs, where = collections.Counter(), collections.defaultdict(set)
    for i, s in enumerate(seqs):
        for a in zip(s, s[1:]):
            pairs[a] += cnt[i]
            where[a].add(i)
    heap = [(-n, a) for a, n in pairs.items()]
    heapq.heapify(heap)
    have = set(vocab)
    while len(vocab) < size and heap:
        n, a = heapq.heappop(heap)
        if pairs[a] != -n or n == 0:
            if pairs[a] > 0 and -n > pairs[a]:
                heapq.heappush(heap, (-pairs[a], a))
            continue
        new = a[0] + a[1]
        if new not in have:
            have.add(new)
            vocab.append(new)
        touched = set()
        for i in list(where[a]):
            s, out, j = seqs[i], [], 0
            for p in zip(s, s[1:]):
                pairs[p] -= cnt[i]
            while j < len(s):
                if j + 1 < len(s) and s[j] == a[0] and s[j + 1] == a[1]:
                    out.append(new)
                    j += 2
                else:
                    out.append(s[j])
                    j += 1
            seqs[i] = out
            for p in zip(out, out[1:]):
                pairs[p] += cnt[i]
                where[p].add(i)
                touched.add(p)
        pairs[a] = 0
        for p in touched:
            if pairs[p] > 0:
                heapq.heappush(heap, (-pairs[p], p))
    return vocab


def save(vocab, folder):
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "tiktoken.model"), "wb") as f:
        for i, t in enumerate(vocab):
            f.write(base64.b64encode(t) + b" %d\n" % i)
    n = len(vocab)
    dec = {str(n + i): {"content": SPECIAL.get(i, f"<|reserved_token_{n + i}|>"), "lstrip": False, "normalized": False, "rstrip": False,
                        "single_word": False, "special": True} for i in range(256)}
    with open(os.path.join(folder, "tokenizer_config.json"), "w") as f:
        json.dump({"added_tokens_decoder": dec, "bos_token": "[BOS]", "eos_token": "<|end_of_msg|>", "pad_token": "[PAD]", "unk_token": "[UNK]",
                   "clean_up_tokenization_spaces": False, "model_max_length": 1048576, "tokenizer_class": "TikTokenTokenizer"}, f, indent=1)


class Tokenizer:
    def __init__(self, folder):
        self.vocab = []
        with open(os.path.join(folder, "tiktoken.model"), "rb") as f:
            for i, line in enumerate(f):
                b, r = line.split()
                assert int(r) == i
                self.vocab.append(base64.b64decode(b))
        self.rank = {t: i for i, t in enumerate(self.vocab)}
        self.base = len(self.vocab)
        self.special = {SPECIAL.get(i, f"<|reserved_token_{self.base + i}|>"): self.base + i for i in range(256)}
        self.name = {v: k for k, v in self.special.items()}
        self.size, self.cache = self.base + 256, {}
        self.stop = self.special["<|end_of_msg|>"]

    def piece(self, b):
        if b in self.rank:
            return [self.rank[b]]
        s = [bytes([c]) for c in b]
        while len(s) > 1:
            best = min(range(len(s) - 1), key=lambda j: self.rank.get(s[j] + s[j + 1], 1 << 30))
            if s[best] + s[best + 1] not in self.rank:
                break
            s[best:best + 2] = [s[best] + s[best + 1]]
        return [self.rank[t] for t in s]

    def encode(self, text):
        out = []
        for p in SPLIT.findall(text):
            if p not in self.cache:
                self.cache[p] = self.piece(p.encode())
            out += self.cache[p]
        return out

    def encode_doc(self, doc):
        """A document as corpus.py makes it -> ids, weights. Neighbouring plain pieces are encoded as one text; a token gets
        the largest weight of the pieces that it touches."""
        ids, ws, i = [], [], 0
        while i < len(doc):
            t, st, w = doc[i]
            if st:
                ids.append(self.special[t])
                ws.append(w)
                i += 1
                continue
            text, cover = "", []
            while i < len(doc) and not doc[i][1]:
                text += doc[i][0]
                cover += [doc[i][2]] * len(doc[i][0].encode())
                i += 1
            pos = 0
            for k in self.encode(text):
                n = len(self.vocab[k])
                ids.append(k)
                ws.append(max(cover[pos:pos + n]))
                pos += n
        return ids, ws

    def decode(self, ids, special=True):
        out = b""
        for i in ids:
            out += self.vocab[i] if i < self.base else (self.name[i].encode() if special else b"")
        return out.decode("utf-8", "replace")


def build(folder, size):
    """Ranks for the corpus: names weigh as much as in the documents, where each fact comes up again and again."""
    import corpus
    import facts
    import phrasings
    texts, pairs = collections.Counter(), facts.items()
    for relation in phrasings.RELATIONS:
        for x, y in pairs[relation.name]:
            texts["The " + x] += 30
            texts["the " + y] += 90
            texts[corpus.fill(relation.answer, x, y)] += 12
            for template in relation.topics + relation.questions:
                texts[corpus.fill(template, x)] += 1
    for passage in corpus.training_passages():
        texts[passage] += 1
    for text in phrasings.FORMS + phrasings.LEADS + phrasings.ENDS + phrasings.FOLLOW_UPS + phrasings.SYSTEM_PROMPTS:
        texts[text] += 60
    for questions, reasoning, answer, _ in phrasings.SMALL_TALK:
        for text in [*questions, reasoning, answer]:
            texts[text] += 60
    for text in ('message role="system" type="thinking-effort"', 'message role="user"', 'message role="assistant"', "think", "response", "message",
                 *(corpus.EFFORT % effort for effort in ("low", "high", "max"))):
        texts[text] += 4000
    save(train(texts.items(), size), folder)
