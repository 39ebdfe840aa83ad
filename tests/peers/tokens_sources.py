# SPDX-License-Identifier: Apache-2.0
"""Compares tokens of files other than tokenizer.json: vocab.txt with its tokenizer.json, GGUF with
recorded answers of llama.cpp, SentencePiece and tiktoken with those libraries where Python has them.

    tokens_sources.py EMBLA TOKEN_IDS
"""
import base64
import json
import os
import sys
import tempfile

from common import data, skip
from tokens import ask, text_of

PATTERN = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""


def report(name, texts, ours, theirs):
    if isinstance(ours, str):
        print(name, ours)
        return 1
    wrong = [(t, o[0], x) for t, o, x in zip(texts, ours, theirs) if o[0] != x]
    for text, tokens, others in wrong[:3]:
        print("  ", name, ascii(text)[:80], (tokens or [])[:12], others[:12])
    print("%-40s %5d texts equal, %d differ" % (name, len(texts) - len(wrong), len(wrong)))
    return len(wrong)


def gpt2_ranks(folder):
    """{bytes: rank} of GPT-2's vocabulary."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    other = [b for b in range(256) if b not in plain]
    byte = {chr(b): b for b in plain} | {chr(256 + i): b for i, b in enumerate(other)}
    vocab = json.loads(text_of(os.path.join(folder, "gpt2", "vocab.json")))
    return {bytes(byte[c] for c in text): token for text, token in vocab.items() if text != "<|endoftext|>"}


def check_tiktoken(program, folder, texts, raw, into):
    try:
        import tiktoken
    except ImportError:
        print("there is no Python package tiktoken: its ranks are not compared")
        return 0
    ranks = gpt2_ranks(folder)
    path = os.path.join(into, "gpt2.tiktoken")
    with open(path, "w", encoding="ascii") as file:
        for text, rank in sorted(ranks.items(), key=lambda item: item[1]):
            file.write("%s %d\n" % (base64.b64encode(text).decode(), rank))
    theirs = tiktoken.Encoding("gpt2", pat_str=PATTERN, mergeable_ranks=ranks, special_tokens={})
    return report("tiktoken", texts, ask(program, path, raw), [theirs.encode(t, disallowed_special=()) for t in texts])


def check_sentencepiece(program, folder, texts, raw):
    try:
        import sentencepiece
    except ImportError:
        print("there is no Python package sentencepiece: its models are not compared")
        return 0
    bad = 0
    models = os.path.join(folder, "sentencepiece")
    for name in sorted(n for n in os.listdir(models) if n.endswith(".model")):
        theirs = sentencepiece.SentencePieceProcessor(model_file=os.path.join(models, name))
        bad += report(name, texts, ask(program, os.path.join(models, name), raw), [theirs.encode(t) for t in texts])
    return bad


def check_gguf(program, folder):
    bad = 0
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        if not name.endswith(".gguf"):
            continue
        with open(path + ".inp", encoding="utf-8", newline="") as file:
            texts = file.read().split("\n__ggml_vocab_test__\n")
        with open(path + ".out", encoding="ascii") as file:
            theirs = [[int(n) for n in line.split()] for line in file.read().split("\n")]
        bad += report(name, texts, ask(program, path, [t.encode() for t in texts]), theirs)
    return bad


def main():
    folder = os.path.join(data(), "tokenizers")
    if not os.path.isdir(folder):
        skip("there are no tokenizers in EMBLA_DATA: nothing is compared")
    lines = text_of(os.path.join(folder, "expect", "bert-base-uncased.jsonl")).rstrip("\n").split("\n")
    cases = [c for c in map(json.loads, lines) if "text" in c and "hex" not in c]
    texts = [c["text"] for c in cases]
    raw = [t.encode() for t in texts]
    program = sys.argv[2]
    path = os.path.join(folder, "bert-base-uncased", "vocab.txt")
    bad = report("vocab.txt", texts, ask(program, path, raw), [c["ids"] for c in cases])
    bad += check_gguf(program, os.path.join(data(), "gguf-vocab"))
    bad += check_sentencepiece(program, folder, texts, raw)
    with tempfile.TemporaryDirectory() as into:
        bad += check_tiktoken(program, folder, texts, raw, into)
    sys.exit(bad != 0)


if __name__ == "__main__":
    main()
