#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""gensim beside our files of words and vectors: each reads what the other writes.

    vec_gensim.py EMBLA

word2vec's text, GloVe's (no header) and word2vec's binary, with words that are not ASCII,
numbers of every size, and words that come with spaces from a file of our own. Compared
value by value, bit by bit. Exits 77 where there is no gensim.
"""
import logging
import os
import sys
import tempfile

sys.dont_write_bytecode = True  # beside common.py

from common import must, rows_of, skip

try:
    import numpy
    from gensim.models import KeyedVectors
except ImportError:
    skip("there is no module gensim: nothing is compared")

ROWS, DIM = 2000, 50
WORDS = ["the", "of", "na\u00efve", "\u6f22\u5b57", "\U0001f99c", "#5", "1.5", "'", "\u00a0x", "e5"]
tried = 0


def vectors(random):
    """Floats of every size, and some that are near 0 as trained ones are."""
    values = random.integers(0, 2**32, (ROWS, DIM), dtype="u4").view("f4").copy()
    values[~numpy.isfinite(values)] = 0.25
    values[ROWS // 2:] = random.normal(0, 0.1, (ROWS - ROWS // 2, DIM)).astype("f4")
    values.flat[:4] = (0.0, -0.0, 1e-45, -3.4028235e38)
    return values


def same_bits(a, b):
    return numpy.asarray(a, "f4").tobytes() == numpy.asarray(b, "f4").tobytes()


def check_read(embla, path, model):
    """Rows by number and by word, against gensim's."""
    global tried
    ids = list(range(12)) + [ROWS // 2, ROWS - 1]
    answer = rows_of(embla, path, "--ids", ",".join(map(str, ids)))
    assert answer["dim"] == DIM
    for row, number in zip(answer["rows"], ids):
        word = model.index_to_key[number]
        assert row["row"] == number and row["token"] == word, (path, row["token"], word)
        assert same_bits(numpy.array(row["values"], "f8"), model.vectors[number]), (path, word)
        tried += 1
    answer = rows_of(embla, path, "--", *WORDS[:5])
    for row, word in zip(answer["rows"], WORDS):
        assert same_bits(numpy.array(row["values"], "f8"), model[word]), (path, word)
        tried += 1


def check_written(path, model, **how):
    global tried
    back = KeyedVectors.load_word2vec_format(path, **how)
    assert list(back.index_to_key) == list(model.index_to_key), path
    assert same_bits(back.vectors, model.vectors), path
    tried += len(model.index_to_key)


def check_spaces(embla, path):
    """Words with spaces, which gensim cannot read: numbers are counted from the right."""
    global tried
    words = [". . .", "at name@domain.com", "1 2 3"]
    with open(path, "w", encoding="utf-8") as file:
        file.write("3 2\n" + "".join("%s %d -0.5\n" % (w, i) for i, w in enumerate(words)))
    for number, row in enumerate(rows_of(embla, path, "--ids", "0,1,2")["rows"]):
        assert row["token"] == words[number] and row["values"] == [number, -0.5], row
        tried += 1


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    logging.getLogger("gensim").setLevel(logging.ERROR)
    embla = sys.argv[1]
    model = KeyedVectors(DIM, count=0)
    words = WORDS + ["w%d" % i for i in range(len(WORDS), ROWS)]
    model.add_vectors(words, vectors(numpy.random.default_rng(2)))
    with tempfile.TemporaryDirectory() as folder:
        kinds = {"a.vec": {}, "a.txt": {"write_header": False}, "a.w2v": {"binary": True}}
        for name, how in kinds.items():
            path = os.path.join(folder, name)
            model.save_word2vec_format(path, **how)
            check_read(embla, path, model)
            for to in kinds:  # every kind from every kind, read by gensim
                ours = os.path.join(folder, "ours-" + to)
                must(embla, "convert", path, ours, "--force")
                check_read(embla, ours, model)
                check_written(ours, model, binary=to == "a.w2v", no_header=to == "a.txt")
        check_spaces(embla, os.path.join(folder, "spaces.vec"))
    print("gensim: %d comparisons, all the same" % tried)


if __name__ == "__main__":
    main()
