#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The words of a vocabulary file, read once more and by other means.

    vocab.py KIND FILE OUT

Reads FILE with the standard library alone and writes to OUT, for each token in ascending
order: its number (u32), the length of its word (u32), the word. test_vocab.c compares that
with what the library says. KIND is json, text, llama2c, sentencepiece or gguf.
"""
import json
import struct
import sys


def from_json(data):
    tree = json.loads(data.decode("utf-8"))
    words, added = tree, []
    if isinstance(tree, dict) and isinstance(tree.get("model"), dict):
        words, added = tree["model"]["vocab"], tree.get("added_tokens") or []
    if isinstance(words, dict):
        labels = {number: word for word, number in words.items()}
        assert len(labels) == len(words)
    else:
        labels = {i: w if isinstance(w, str) else w[0] for i, w in enumerate(words)}
    for token in added:
        assert labels.setdefault(token["id"], token["content"]) == token["content"]
    return {number: word.encode("utf-8") for number, word in labels.items()}


def from_text(data):
    lines = data.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    return dict(enumerate(lines))


def from_llama2c(data):
    labels, at = {}, 4
    while at < len(data):
        (length,) = struct.unpack_from("<i", data, at + 4)
        labels[len(labels)] = data[at + 8 : at + 8 + length]
        at += 8 + length
    assert at == len(data)
    return labels


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            return value, at


def fields(data):
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        elif key & 7 == 2:
            length, at = varint(data, at)
            value, at = data[at : at + length], at + length
        else:
            length = {1: 8, 5: 4}[key & 7]
            value, at = data[at : at + length], at + length
        yield key >> 3, value


def from_sentencepiece(data):
    pieces = [dict(fields(value))[1] for field, value in fields(data) if field == 1]
    return dict(enumerate(pieces))


def from_gguf(data):
    sizes = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 4, 6: 4, 7: 1, 10: 8, 11: 8, 12: 8}
    at = 24

    def text():
        nonlocal at
        (length,) = struct.unpack_from("<Q", data, at)
        at += 8 + length
        return data[at - length : at]

    for _ in range(struct.unpack_from("<Q", data, 16)[0]):
        key = text()
        (kind,) = struct.unpack_from("<I", data, at)
        count, at = 1, at + 4
        if kind == 9:
            kind, count = struct.unpack_from("<IQ", data, at)
            at += 12
        values = [text() for _ in range(count)] if kind == 8 else None
        if kind != 8:
            at += count * sizes[kind]
        if key == b"tokenizer.ggml.tokens":
            return dict(enumerate(values))
    return {}


def main():
    kind, source, out = sys.argv[1:]
    with open(source, "rb") as file:
        labels = globals()["from_" + kind](file.read())
    with open(out, "wb") as file:
        for number in sorted(labels):
            file.write(struct.pack("<II", number, len(labels[number])) + labels[number])


main()
