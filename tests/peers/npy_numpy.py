#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""NumPy beside our .npy: what it writes is read, what we write it reads, value by value.

    npy_numpy.py EMBLA

Arrays of every type that a table can have, rows or columns first, little- and big-endian,
in versions 1.0, 2.0 and 3.0; files that NumPy writes and Embla refuses; and files that
Embla writes, which are compared with NumPy's own byte for byte. Exits 77 where there is
no NumPy.
"""
import itertools
import os
import sys
import tempfile

sys.dont_write_bytecode = True  # beside common.py

from common import must, rows_of, run, skip

try:
    import numpy
except ImportError:
    skip("there is no module numpy: nothing is compared")

tried = 0


def write(path, array, version):
    with open(path, "wb") as file:
        numpy.lib.format.write_array(file, array, version=version)


def same_bits(ours, theirs):
    return ours.dtype == theirs.dtype and ours.shape == theirs.shape and \
        ours.tobytes() == theirs.tobytes()


def numbers(random, rows, dim):
    """Of many sizes, all of them exact in f16; the first few are what is special."""
    values = (random.integers(-1024, 1024, (rows, dim)) / 1024.0).astype("f8")
    values.flat[:3] = (0.0, -0.0, 65504.0)
    return values


def check_read(embla, path, array):
    """Rows that `embla lookup` prints are the array's, as f32."""
    global tried
    rows = numpy.atleast_2d(array)
    ids = sorted({0, 1 % len(rows), len(rows) // 2, len(rows) - 1})
    answer = rows_of(embla, path, "--ids", ",".join(map(str, ids)))
    assert answer["dim"] == rows.shape[1], (path, answer["dim"])
    for row, wanted in zip(answer["rows"], ids):
        assert row["row"] == wanted
        ours = numpy.array(row["values"], dtype="f8").astype("f4")
        assert same_bits(ours, rows[wanted].astype("f4")), (path, wanted)
        tried += 1


def check_written(embla, folder, path, array):
    """A copy that `embla convert` writes is what numpy.save writes, every byte of it."""
    global tried
    ours, theirs = os.path.join(folder, "ours.npy"), os.path.join(folder, "theirs.npy")
    must(embla, "convert", path, ours, "--force")
    plain = numpy.ascontiguousarray(numpy.atleast_2d(array) if array.ndim == 2 else array)
    plain = plain.astype(plain.dtype.newbyteorder("<"))
    back = numpy.load(ours)
    assert same_bits(back, plain), (path, back.dtype, back.shape)
    numpy.save(theirs, plain)
    assert open(ours, "rb").read() == open(theirs, "rb").read(), path
    tried += 1


def check_refused(embla, folder, array, rule, **how):
    global tried
    path = os.path.join(folder, "refused.npy")
    numpy.save(path, array, **how)
    done = run(embla, "lookup", path, "--ids", "0", "--json")
    assert done.returncode == 1 and rule in done.stderr.decode(), (rule, done.stderr)
    tried += 1


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    embla = sys.argv[1]
    random = numpy.random.default_rng(1)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "array.npy")
        for kind, order, columns_first, version in itertools.product(
                ("f2", "f4", "f8", "i1"), "<>", (False, True), ((1, 0), (2, 0), (3, 0))):
            array = numbers(random, 301, 37)
            if kind == "i1":
                array = array * 100
                array.flat[:3] = (0, -128, 127)
            array = array.astype(order + kind)
            if columns_first:
                array = numpy.asfortranarray(array)
            write(path, array, version)
            check_read(embla, path, array)
            check_written(embla, folder, path, array)
        for shape in ((1, 1), (1, 5), (5, 1), (70000, 3), (3, 70000)):
            for columns_first in (False, True):
                array = numbers(random, max(shape[0], 3), shape[1])[:shape[0]].astype("f4")
                array = numpy.asfortranarray(array) if columns_first else array
                write(path, array, (1, 0))
                check_read(embla, path, array)
                check_written(embla, folder, path, array)
        write(path, numbers(random, 1, 9)[0].astype("f4"), (1, 0))  # one row
        check_read(embla, path, numpy.load(path))
        check_refused(embla, folder, numpy.array([{}], dtype=object), "(N3)", allow_pickle=True)
        check_refused(embla, folder, numpy.array(["a", "b"]), "(N3)")
        check_refused(embla, folder, numpy.zeros((2, 2), "c8"), "(N3)")
        check_refused(embla, folder, numpy.zeros(2, "f4,i4"), "(N3)")
        check_refused(embla, folder, numpy.zeros((2, 2), "V2"), "(N3)")
        check_refused(embla, folder, numpy.zeros((2, 2), "?"), "(N3)")
        check_refused(embla, folder, numpy.zeros((1,) * 9, "f4"), "(N5)")
    print("numpy %s: %d comparisons, all the same" % (numpy.__version__, tried))


if __name__ == "__main__":
    main()
