#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""fastText's own program beside ours: models it trains, read by both and once more here.

    fasttext_bin.py EMBLA [FASTTEXT]

Trains tiny models (skipgram, cbow, supervised, quantized) and compares, value by value:
the rows that `embla lookup MODEL.bin WORD.. --json` prints with the input matrix as it is
read here, by the standard library alone; that matrix with `fasttext dump`; and the rows of
MODEL.vec, and of words that the text does not have, with `fasttext print-word-vectors`. Exits 77 where there is no fasttext.
"""
import json
import os
import shutil
import struct
import sys
import tempfile

sys.dont_write_bytecode = True  # beside common.py

from common import must, run, skip

MAGIC = 793712314
ARGUMENTS = ("dim ws epoch minCount neg wordNgrams loss model bucket minn maxn "
             "lrUpdateRate").split()


def read_model(path):
    """Arguments, words, labels and the two dense matrices as raw bytes, row by row."""
    data = open(path, "rb").read()
    magic, version = struct.unpack_from("<ii", data, 0)
    assert magic == MAGIC and version in (11, 12)
    arguments = dict(zip(ARGUMENTS, struct.unpack_from("<12i", data, 8)))
    size, words, labels, _, pruned = struct.unpack_from("<3i2q", data, 64)
    assert size == words + labels and pruned == -1
    at, names = 92, []
    for number in range(size):
        end = data.index(b"\0", at)
        _, kind = struct.unpack_from("<qb", data, end + 1)
        assert kind == (0 if number < words else 1)
        names.append(data[at:end].decode("utf-8"))
        at = end + 10
    matrices = []
    for _ in range(2):
        assert data[at] == 0
        rows, dim = struct.unpack_from("<qq", data, at + 1)
        assert dim == arguments["dim"]
        at += 17
        matrices.append([data[at + 4 * dim * i:at + 4 * dim * (i + 1)] for i in range(rows)])
        at += 4 * dim * rows
    assert at == len(data)
    return arguments, names[:words], names[words:], matrices


def numbers(row):
    return struct.unpack("<%df" % (len(row) // 4), row)


def bits(values):
    return struct.pack("<%df" % len(values), *values)


def text_of_corpus():
    """Lines of made-up words, some of them not ASCII, from a fixed sequence of numbers."""
    parts = ["ka", "lo", "mi", "né", "su", "ta", "vø", "re", "жи", "pa"]
    state, lines = 1, []
    for line in range(900):
        words = []
        for _ in range(8):
            state = (state * 1103515245 + 12345) % (1 << 31)
            number = (state >> 8 & 0x7ff) * (state >> 20) * 500 >> 22  # low ones oftener
            words.append(parts[number % 10] + parts[number // 10 % 10] + parts[number // 100])
        lines.append("__label__%s %s" % (parts[line % 10], " ".join(words)))
    return "\n".join(lines) + "\n"


def looked_up(embla, path, words):
    """The rows of words as ours prints them: {word: (row number, values)}."""
    answers = [json.loads(must(embla, "lookup", path, *words[:20], "--json")),
               json.loads(must(embla, "lookup", path, "-", "--json",
                               text="\n".join(words[20:]).encode() + b"\n"))]
    found = {}
    for answer in answers:
        for row in answer["rows"]:
            assert len(row["values"]) == answer["dim"]
            found[row["token"]] = (row["row"], row["values"])
    return found


def check_model(embla, fasttext, path):
    arguments, words, labels, (inputs, outputs) = read_model(path)
    assert len(inputs) == len(words) + arguments["bucket"]
    found = looked_up(embla, path, words)
    assert len(found) == len(words)
    for number, word in enumerate(words):
        row, values = found[word]
        assert row == number, (word, row, number)
        assert bits(values) == inputs[number], (word, values, numbers(inputs[number]))
    for matrix, name in ((inputs, "input"), (outputs, "output")):
        lines = must(fasttext, "dump", path, name).splitlines()
        assert lines[0] == "%d %d" % (len(matrix), arguments["dim"])
        for row, line in zip(matrix, lines[1:]):
            assert " ".join("%g" % value for value in numbers(row)) == line, (name, line)
    vectors = os.path.splitext(path)[0] + ".vec"
    found = looked_up(embla, vectors, words)
    asked = must(fasttext, "print-word-vectors", path, text="\n".join(words).encode() + b"\n")
    for word, line in zip(words, asked.splitlines()):
        printed = line[len(word):].split()
        assert line.startswith(word + " ")
        assert bits(found[word][1]) == bits([float(value) for value in printed]), word
        if arguments["maxn"] == 0:  # a word is its own row, and nothing else
            own = ["%.5g" % value for value in numbers(inputs[words.index(word)])]
            assert printed == own, (word, printed, own)
    if arguments["maxn"] > 0:  # words that the text does not have: the mean of their n-grams
        unseen = ["kalokalo", "q", "жижижи", "né-né", "x" * 200]
        unseen += ["kalo%d" % i for i in range(20)]
        asked = must(fasttext, "print-word-vectors", path, text="\n".join(unseen).encode() + b"\n")
        found = looked_up(embla, path, unseen)
        for word, line in zip(unseen, asked.splitlines()):
            assert found[word][0] is None, word
            for ours, theirs in zip(found[word][1], line[len(word):].split()):
                assert abs(ours - float(theirs)) <= 6e-5 * max(1, abs(ours)), (word, ours, theirs)
    for label in labels if arguments["maxn"] == 0 else []:  # else a word like any other
        assert run(embla, "lookup", path, label, "--json").returncode != 0, label
    return "%d words, %d labels, %d x %d and %d x %d" % (
        len(words), len(labels), len(inputs), arguments["dim"], len(outputs), arguments["dim"])


def check_quantized(embla, path):
    information = must(embla, "info", path)
    assert "product-quantized" in information, information
    refused = run(embla, "lookup", path, "kaloka", "--json")
    assert refused.returncode != 0 and refused.stderr
    data = open(path, "rb").read()
    short = path + ".short.ftz"
    open(short, "wb").write(data[:-1])
    assert run(embla, "info", short).returncode != 0


def train(fasttext, folder, name, kind, *options):
    output = os.path.join(folder, name)
    must(fasttext, kind, "-input", os.path.join(folder, "text"), "-output", output, "-epoch", "2",
         "-minCount", "1", "-thread", "1", "-verbose", "0", *options)
    return output + ".bin"


def main():
    if len(sys.argv) < 2:
        sys.exit("usage: fasttext_bin.py EMBLA [FASTTEXT]")
    embla = sys.argv[1]
    fasttext = shutil.which(sys.argv[2] if len(sys.argv) > 2 else "fasttext")
    if not fasttext:
        skip("fasttext is not installed: nothing to compare with")
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "text"), "w", encoding="utf-8") as file:
            file.write(text_of_corpus())
        models = {
            "skipgram": train(fasttext, folder, "sg", "skipgram", "-dim", "12", "-bucket", "60"),
            "cbow": train(fasttext, folder, "cbow", "cbow", "-dim", "7", "-minn", "0", "-maxn",
                          "0", "-loss", "hs"),
            "supervised": train(fasttext, folder, "sup", "supervised", "-dim", "6", "-bucket",
                                "50", "-wordNgrams", "2"),
        }
        for name, path in models.items():
            print("%s: %s" % (name, check_model(embla, fasttext, path)))
        for options in (["-qnorm"], ["-dsub", "4"], ["-dsub", "20"], ["-cutoff", "300"]):
            must(fasttext, "quantize", "-input", os.path.join(folder, "text"), "-output",
                 os.path.join(folder, "sup"), "-verbose", "0", *options)
            check_quantized(embla, os.path.join(folder, "sup.ftz"))
            print("quantized %s: checked" % " ".join(options))


main()
