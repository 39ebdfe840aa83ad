#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""faiss beside `embla near`, on 50,000 words of GloVe.

    near_faiss.py EMBLA

256 queries, half of them rows and half of them random, by cosine (IndexFlatIP over rows of
length 1), by dot product (IndexFlatIP) and by distance (IndexFlatL2), each in one call of
many queries, and some of them once more one by one: the same ten rows, scores to 1e-5. Exits
77 where there is no faiss or no data.
"""
import os
import sys
import tempfile

os.environ.setdefault("OMP_WAIT_POLICY", "passive")
os.environ.setdefault("OPENBLAS_CORETYPE", "SkylakeX")
sys.dont_write_bytecode = True  # beside common.py

from common import answer, data, glove, must, same_list, skip

try:
    import faiss
    import numpy
except ImportError:
    skip("there is no module faiss: nothing is compared")

TOP, QUERIES = 10, 256
tried = 0


def rows_of_glove(embla, path, folder):
    """The table as an array, by way of .npy."""
    to = os.path.join(folder, "glove.npy")
    must(embla, "convert", path, to)
    return numpy.load(to)


def queries_of(table):
    random = numpy.random.default_rng(4)
    rows = table[random.choice(len(table), QUERIES // 2, replace=False)]
    return numpy.concatenate((rows, random.normal(0, 0.4, rows.shape).astype("f4")))


def by_length(vectors):
    return vectors / numpy.linalg.norm(vectors.astype("f8"), axis=1, keepdims=True)


def faiss_lists(measure, table, queries):
    if measure == "cosine":
        table, queries = by_length(table).astype("f4"), by_length(queries).astype("f4")
    index = (faiss.IndexFlatL2 if measure == "euclidean" else faiss.IndexFlatIP)(table.shape[1])
    index.add(table)
    scores, rows = index.search(queries, TOP)
    if measure == "euclidean":
        scores = numpy.sqrt(scores)
    return [list(zip(map(int, r), map(float, s))) for r, s in zip(rows, scores)]


def our_lists(embla, path, measure, queries):
    text = "".join(" ".join("%.9g" % x for x in query) + "\n" for query in queries)
    found = answer(embla, "near", path, "--vector", "-", "--measure", measure, "--top", str(TOP),
                   text=text.encode())
    assert found["measure"] == measure and found["nonfinite"] == 0
    return [[(one["row"], one["score"]) for one in query["neighbours"]]
            for query in found["queries"]]


def compare(ours, theirs, measure):
    global tried
    assert len(ours) == len(theirs)
    for number, (a, b) in enumerate(zip(ours, theirs)):
        assert same_list(a, b), (measure, number, a, b)
        tried += 1


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    embla = sys.argv[1]
    data()
    # Distances as sums of squares, not as a difference of products that loses their digits.
    faiss.cvar.distance_compute_blas_threshold = 1 << 30
    with tempfile.TemporaryDirectory() as folder:
        path = glove(folder)
        table = rows_of_glove(embla, path, folder)
        queries = queries_of(table)
        for measure in ("cosine", "dot", "euclidean"):
            theirs = faiss_lists(measure, table, queries)
            compare(our_lists(embla, path, measure, queries), theirs, measure)
            for i in range(0, QUERIES, QUERIES // 4):
                compare(our_lists(embla, path, measure, queries[i:i + 1]), theirs[i:i + 1],
                        measure)
    print("faiss %s: %d lists of %d rows, all the same" % (faiss.__version__, tried, TOP))


if __name__ == "__main__":
    main()
