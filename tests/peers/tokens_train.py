# SPDX-License-Identifier: Apache-2.0
"""Compares trained tokenizers with Hugging Face's library: vocabulary and merges of BPE, words of
WordLevel, strings of Unigram, and how both programs cut a text with the files that Embla writes.

    tokens_train.py EMBLA TOKEN_IDS [--size N] [TEXT]

It needs the package tokenizers, as tokens_live.py does. Without a TEXT it compares tinyshakespeare
with 1,000 and 32,000 tokens, and 4 MB of enwiki100 with 32,000.
"""
import json
import lzma
import os
import subprocess
import sys
import tempfile
import time

from common import data, package
from tokens import ask

SPECIAL = ["<|endoftext|>", "<pad>"]


def train(embla, text, out, *options):
    began = time.time()
    subprocess.run([embla, "tokenizer", text, "-o", out, "--force", "-q", *options], check=True)
    return time.time() - began


def model_of(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)["model"]


def reference(hf, text, kind, size, lowercase):
    """The library's tokenizer, trained on the same text."""
    if kind == "bpe":
        t = hf.Tokenizer(hf.models.BPE())
        t.pre_tokenizer = hf.pre_tokenizers.ByteLevel(add_prefix_space=False)
        trainer = hf.trainers.BpeTrainer(vocab_size=size, special_tokens=SPECIAL, show_progress=False,
                                         initial_alphabet=hf.pre_tokenizers.ByteLevel.alphabet())
    elif kind == "unigram":
        t = hf.Tokenizer(hf.models.Unigram())
        t.normalizer = hf.normalizers.Sequence([hf.normalizers.Nmt(), hf.normalizers.NFKC(),
                                                hf.normalizers.Replace(hf.Regex(" {2,}"), " ")])
        t.pre_tokenizer = hf.pre_tokenizers.Metaspace()
        trainer = hf.trainers.UnigramTrainer(vocab_size=size, special_tokens=["<unk>"] + SPECIAL,
                                             unk_token="<unk>", show_progress=False)
    else:
        t = hf.Tokenizer(hf.models.WordLevel(unk_token="[UNK]"))
        t.pre_tokenizer = hf.pre_tokenizers.Whitespace()
        trainer = hf.trainers.WordLevelTrainer(vocab_size=size, special_tokens=["[UNK]"] + SPECIAL,
                                               show_progress=False)
    if lowercase:
        t.normalizer = hf.normalizers.Lowercase()
    began = time.time()
    t.train([text], trainer)
    return t, time.time() - began


def compare_unigram(hf, path, theirs, text):
    """Strings, scores, and the number of tokens of a text. Returns what is wrong: equal strings must
    have equal scores unless the library has pruned, and there may be 1 % more tokens."""
    ours = hf.Tokenizer.from_file(path)
    with open(text, encoding="utf-8") as file:
        lines = file.read(1 << 20).split("\n")
    mine, its = (sum(len(e.ids) for e in t.encode_batch(lines)) for t in (ours, theirs))
    a, b = (dict(map(tuple, json.loads(t.to_str())["model"]["vocab"])) for t in (ours, theirs))
    far = max(abs(a[piece] - b[piece]) for piece in a.keys() & b.keys())
    print(f"  {len(a.keys() - b.keys())} of {len(a)} strings are others; scores differ by up to {far:.2g}; "
          f"{mine} tokens, the library {its} ({100 * (mine / its - 1):+.2f} %)")
    return mine > 1.01 * its or (a.keys() == b.keys() and far > 0.01)


def compare_tokens(hf, ids, path, text):
    """Both programs cut the same lines with the same file."""
    with open(text, encoding="utf-8") as file:
        lines = file.read(200000).split("\n")
    ours = ask(ids, path, [line.encode() for line in lines])
    if isinstance(ours, str):
        sys.exit(ours)
    theirs = hf.Tokenizer.from_file(path)
    return sum(list(a[0]) != theirs.encode(line).ids for a, line in zip(ours, lines))


def compare(hf, embla, ids, text, kind, size, lowercase):
    name = f"{os.path.basename(text)} {kind} {size}{' lowercase' if lowercase else ''}"
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "tokenizer.json")
        more = ["--lowercase"] if lowercase else []
        mine = train(embla, text, path, "--kind", kind, "--size", str(size), "--special", ",".join(SPECIAL), *more)
        ours = model_of(path)
        wrong = 0
        if kind == "wordpiece": # its numbers are the reference's own hash order
            print(f"{name}: {len(ours['vocab'])} tokens, {mine:.2f} s")
        else:
            library, its = reference(hf, text, kind, size, lowercase)
            theirs = json.loads(library.to_str())["model"]
            same = ours["vocab"] == theirs["vocab"] and ours.get("merges") == theirs.get("merges")
            print(f"{name}: {len(ours['vocab'])} tokens, {'the same' if same else 'OTHERS'}; "
                  f"{mine:.2f} s, the library {its:.2f} s")
            wrong = 0 if same else 1
            if kind == "unigram":
                wrong = int(compare_unigram(hf, path, library, text))
        lines = compare_tokens(hf, ids, path, text)
        if lines:
            print(f"{name}: {lines} lines are cut in another way")
        return wrong + lines


def texts_of(folder):
    shakespeare = os.path.join(data(), "tinyshakespeare", "input.txt")
    wiki = os.path.join(folder, "enwiki.txt")
    with lzma.open(os.path.join(data(), "enwiki100", "enwiki-2015-100m.txt.xz")) as file, open(wiki, "wb") as out:
        out.write(file.read(4 << 20).rsplit(b"\n", 1)[0])
    return [(shakespeare, "bpe", 1000, False), (shakespeare, "bpe", 32000, False),
            (shakespeare, "bpe", 2000, True), (shakespeare, "words", 3000, False),
            (shakespeare, "wordpiece", 2000, True), (wiki, "bpe", 32000, False),
            (wiki, "words", 20000, True), (shakespeare, "unigram", 60000, False),
            (shakespeare, "unigram", 2000, False)]


def main():
    embla, ids = sys.argv[1], sys.argv[2]
    hf = package("tokenizers")
    size = 32000
    names = []
    rest = sys.argv[3:]
    while rest:
        word = rest.pop(0)
        if word == "--size":
            size = int(rest.pop(0))
        else:
            names.append(word)
    with tempfile.TemporaryDirectory() as folder:
        cases = [(name, "bpe", size, False) for name in names] or texts_of(folder)
        wrong = sum(compare(hf, embla, ids, *case) for case in cases)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
