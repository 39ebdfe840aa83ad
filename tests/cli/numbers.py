#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Gives every option of every verb that takes an integer values that no integer option can mean.

    numbers.py EMBLA FOLDER [VALUE..]

FOLDER is a copy of the demo. The options come from `embla help --json`, so a new one is tested as
soon as it exists. Each value must be refused as wrong usage (exit code 2, with a message that names
the option), or work (0). Prints one line for each that does something else.
"""
import json
import subprocess
import sys

VALUES = ["9223372036854775808", "18446744073709551616", "-1", "1e30", ""]
INTEGERS = {"N", "P", "K", "S", "SECONDS", "BYTES", "SIZE", "WxH", "MIN-MAX"}
LISTS = {"ranks", "ids", "history", "ngram-orders"}  # of integers; other lists are of words
TOKENS = {"ids", "history"}  # a token that the table does not have is a failure (1), not wrong usage

# A command of each verb that ends soon, where the example of its help does not, or needs more.
COMMANDS = {
    "bench": "bench lookup --list",
    "train": "train names.txt --preset microgpt --steps 1 -q -o OUT",
    "words": "words village.txt -o out.vec --epochs 1 --dim 4 --force -q",
    "generate": "generate names --count 1",
    "tokenizer": "tokenizer village.txt -o out.json --size 300 --force -q",
    "map": "map words.vec -o out.html --force -q",
    "pack": "pack village out.pack --force -q",
    "convert": "convert words.vec out.safetensors --force",
    "fit": "fit words.vec village.txt -o out.fit --components 2 --force -q",
    "trace": "trace village t h e -o out.npy -q",
    "demo": "demo",
    "plan": "plan --rows 1e6 --dim 8 --tokens 64",
    "new": "new -o out.npy --rows 10 --dim 8 --force",
    "search": "search words.vec village.txt cat --index out.index -q",
}
# What an option needs beside it to be looked at.
BESIDE = {
    ("trace", "hot"): "--hot-bytes 1MB", ("pack", "frequent"): "--trace t.npy --rows-per-ngram 2",
    ("pack", "rows-per-ngram"): "--trace t.npy --frequent 2",
    ("train", "negatives"): "--loss sampled", ("train", "ngram-heads"): "--ngram-rows 100",
    ("train", "ngram-orders"): "--ngram-rows 100", ("train", "ngram-dim"): "--ngram-rows 100",
    ("train", "ngram-layer"): "--ngram-rows 100", ("train", "shards"): "--shard rows",
    ("words", "buckets"): "--subwords 3-6", ("generate", "top-k"): "--temperature 1",
    ("warm", "wait"): "--shared --folder .", ("verify", "wait"): "--place shared --folder .",
}


def command(verb, option, value, number):
    words = COMMANDS.get(verb["name"], verb["example"].removeprefix("embla ")).split()
    words = [w.strip("'").replace("OUT", f"out{number}") for w in words]
    for name in ("--" + option["name"], "-k" if option["name"] == "top" else "--" + option["name"]):
        if name in words:
            at = words.index(name)
            del words[at:at + 2]
    if option["name"] == "ids":  # instead of the tokens
        words = words[:2] + (["-o", "out.npy"] if verb["name"] == "trace" else [])
    return words + BESIDE.get((verb["name"], option["name"]), "").split() + \
        ["--" + option["name"], value]


def main():
    embla, folder, values = sys.argv[1], sys.argv[2], sys.argv[3:] or VALUES
    helped = subprocess.run([embla, "help", "--json"], capture_output=True, text=True, check=True)
    wrong = tried = 0
    for verb in json.loads(helped.stdout)["verbs"]:
        for option in verb["options"]:
            if option["value"] not in INTEGERS and option["name"] not in LISTS:
                continue
            if option.get("choices"):
                continue
            for value in values:
                words = command(verb, option, value, tried)
                try:
                    done = subprocess.run([embla, *words], cwd=folder, text=True, timeout=60,
                                          stdin=subprocess.DEVNULL, capture_output=True)
                    code, said = done.returncode, done.stderr.strip().replace("\n", " | ")
                except subprocess.TimeoutExpired:
                    code, said = "none", "still running"
                tried += 1
                if code == 0 or (code == 2 and "--" + option["name"] in said):
                    continue
                if option["name"] in TOKENS and code == 1 and "out of range" in said:
                    continue
                wrong += 1
                print("embla", " ".join(w or "''" for w in words), "->", code, said[-300:])
    print("all are refused as wrong usage, or work" if tried and not wrong else f"{wrong} of {tried}")
    return wrong > 0


sys.exit(main())
