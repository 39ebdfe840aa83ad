# SPDX-License-Identifier: Apache-2.0
"""Compares tokens with those that Hugging Face's library gave, for the tokenizers of EMBLA_DATA: hard
strings, ill-formed UTF-8, long runs, one rule at a time, and every code point in three places.

    tokens_golden.py EMBLA TOKEN_IDS [NAME ..]
"""
import json
import os
import struct
import subprocess
import sys
import tempfile

from common import OURS, data, skip
from tokens import ask, listed, text_of, unpack


def fnv(tokens):
    h = 2166136261
    for b in struct.pack("<%dI" % (len(tokens) + 1), len(tokens), *tokens):
        h = ((h ^ b) * 16777619) & 0xFFFFFFFF
    return "%08x" % h


def lines(folder, name):
    text = text_of(os.path.join(folder, "expect", name))
    return [json.loads(line) for line in text.rstrip("\n").split("\n")]


def given(case):
    if "unit" in case:
        return (case["unit"] * case["times"]).encode()
    return bytes.fromhex(case["hex"]) if "hex" in case else case["text"].encode()


def fits(case, tokens):
    if "unit" in case:
        return tokens is not None and len(tokens) == case["count"] and fnv(tokens) == case["fnv1a"]
    return tokens == case.get("ids")


def report(name, good, bad, what="texts"):
    print("%-20s %6d %s equal, %d differ" % (name, good, what, bad))
    return bad


def check_file(program, folder, name, path):
    cases = lines(folder, name + ".jsonl")
    answers = ask(program, path, [given(c) for c in cases])
    if isinstance(answers, str):
        print(name, answers)
        return 1
    wrong = [(c, a[0]) for c, a in zip(cases, answers) if not fits(c, a[0])]
    for case, tokens in wrong[:3]:
        print("  ", name, case["tag"], repr(case.get("text", case.get("unit")))[:60], (tokens or [])[:12],
              case.get("ids", [case.get("count")])[:12])
    return report(name, len(cases) - len(wrong), len(wrong))


def check_exhaustive(program, folder, name, path):
    try:
        expected = text_of(os.path.join(folder, "expect", name + ".exhaustive.txt")).split("\n")
    except FileNotFoundError:
        return 0
    done = subprocess.run([program, path, "exhaustive"], stdout=subprocess.PIPE, env=OURS)
    ours = done.stdout.decode().split("\n")
    theirs = [line.lower().split() for line in expected if line]
    ours = {line.split()[0]: line.split()[1:] for line in ours if line}
    wrong = [t[0] for t in theirs if ours.get(t[0].lstrip("0") or "0") != t[1:]]
    if wrong:
        print("  ", name, "blocks", wrong[:8])
    return report(name, len(theirs) - len(wrong), len(wrong), "blocks of code points")


def check_synthetic(program, folder, into):
    """Tiny tokenizers, each for one rule; some must be refused."""
    good = bad = 0
    for case in lines(folder, "synthetic.jsonl"):
        path = os.path.join(into, "tiny.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(case["tokenizer"], file)
        answers = ask(program, path, [c["text"].encode() for c in case.get("cases", [])], "l")
        refused = isinstance(answers, str)
        if refused or case.get("load_error"):
            equal = refused and bool(case.get("load_error"))
            if not equal:
                print("  ", case["name"], answers if refused else "is not refused")
            good, bad = good + equal, bad + (not equal)
            continue
        for c, a in zip(case["cases"], answers):
            equal = a[0] == c.get("ids")
            if not equal:
                print("  ", case["name"], repr(c["text"]), a[0], c.get("ids"))
            good, bad = good + equal, bad + (not equal)
    return report("synthetic", good, bad)


def stage_tokenizer(pieces):
    """A tokenizer that shows the result of a stage: a token for each different piece."""
    vocab = {p: i + 1 for i, p in enumerate(sorted(set(pieces)))}
    vocab["[UNK]"] = 0
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [],
            "normalizer": None, "pre_tokenizer": None, "post_processor": None, "decoder": None,
            "model": {"type": "WordLevel", "vocab": vocab, "unk_token": "[UNK]"}}


def stage_of(folder, case):
    if not case["name"].startswith("Precompiled of "):
        return case["def"]
    path = os.path.join(folder, case["name"].split()[-1], "tokenizer.json")
    normalizer = json.loads(text_of(path))["normalizer"]
    return next(n for n in normalizer.get("normalizers", [normalizer]) if n["type"] == "Precompiled")


def check_stages(program, folder, into):
    """Single normalizers and pre-tokenizers: what they make must be the words of a vocabulary."""
    good = bad = 0
    for case in lines(folder, "stages.jsonl"):
        normal = case["stage"] == "normalizer"
        results = [[c[-1]] if normal else c[1] for c in case["cases"]]
        made = stage_tokenizer([p for r in results for p in r if p])
        made["normalizer" if normal else "pre_tokenizer"] = stage_of(folder, case)
        path = os.path.join(into, "stage.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(made, file)
        answers = ask(program, path, [c[0].encode() for c in case["cases"]])
        if isinstance(answers, str):
            print("  ", case["name"], answers)
            bad += 1
            continue
        vocab = made["model"]["vocab"]
        wrong = [(c, a[0]) for c, r, a in zip(case["cases"], results, answers)
                 if a[0] != [vocab[p] for p in r if p]]
        for c, tokens in wrong[:2]:
            names = {i: p for p, i in vocab.items()}
            print("  ", case["name"], repr(c[0])[:60], repr([names[t] for t in tokens or []])[:90], repr(c[-1])[:90])
        good, bad = good + len(answers) - len(wrong), bad + len(wrong)
    return report("stages", good, bad)


def main():
    folder = os.path.join(data(), "tokenizers")
    if not os.path.isdir(folder):
        skip("there are no tokenizers in EMBLA_DATA: nothing is compared")
    program, only = sys.argv[2], sys.argv[3:]
    bad = 0
    with tempfile.TemporaryDirectory() as into:
        if not only or "synthetic" in only:
            bad += check_synthetic(program, folder, into)
        if not only or "stages" in only:
            bad += check_stages(program, folder, into)
        for name, path in listed(folder):
            if only and name not in only:
                continue
            unpacked = unpack(path, into)
            bad += check_file(program, folder, name, unpacked)
            bad += check_exhaustive(program, folder, name, unpacked)
    sys.exit(bad != 0)


if __name__ == "__main__":
    main()
