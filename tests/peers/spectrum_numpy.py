#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""NumPy beside our singular values and our plane.

    spectrum_numpy.py EMBLA

Tables of random numbers of many shapes, and glove-50k where EMBLA_DATA has it: singular
values against numpy.linalg.svd in double, as they are and around the mean; the figures made
of them; and, by the shared library beside EMBLA, the points of embla_plane against the same
PCA. Values above 1 % of the largest agree to 1e-5 of it, those below, whose squares are next
to rounding, to 1e-3; points to 1e-4 of the farthest. Exits 77 where there is no NumPy.
"""
import ctypes
import json
import lzma
import os
import sys
import tempfile

sys.dont_write_bytecode = True  # beside common.py

import common  # before numpy, because it chooses OpenBLAS's kernels

try:
    import numpy
except ImportError:
    print("there is no module numpy: nothing is compared")
    sys.exit(77)

tried = {"values": 0, "points": 0}


def run(*command):
    return common.run(*command)


def spectrum(embla, path, *options):
    done = run(embla, "spectrum", path, "--json", *options)
    if done.returncode != 0 and b"install" in done.stderr:
        print("no engine: %s" % done.stderr.decode().strip())
        sys.exit(77)
    if done.returncode != 0:
        sys.exit("embla spectrum: exit %d: %s" % (done.returncode, done.stderr.decode()))
    return json.loads(done.stdout.decode())


def figures(s):
    """Of singular values, largest first: what the summary says of them."""
    squares, shares = s ** 2, s[s > 0] / s.sum()
    part = numpy.cumsum(squares) / squares.sum()
    return {"effective_rank": numpy.exp(-(shares * numpy.log(shares)).sum()),
            "participation": squares.sum() ** 2 / (squares ** 2).sum(),
            "stable_rank": squares.sum() / squares[0],
            "directions_50": int((part < 0.5).sum()) + 1,
            "directions_90": int((part < 0.9).sum()) + 1}


def check_values(embla, path, array, name):
    for centred in (False, True):
        exact = array.astype("f8") - (array.astype("f8").mean(axis=0) if centred else 0)
        wanted = numpy.zeros(array.shape[1])
        found = numpy.linalg.svd(exact, compute_uv=False)
        wanted[:len(found)] = found
        ours = spectrum(embla, path, *(["--centred"] if centred else []))
        s = numpy.array(ours["singular_values"])
        assert s.shape == wanted.shape, (name, s.shape)
        tried["values"] += len(s)
        if wanted[0] == 0:  # one row, around itself
            assert not s.any(), (name, s)
            continue
        large = wanted > 0.01 * wanted[0]
        gap = numpy.abs(s - wanted) / wanted[0]
        assert gap[large].max() < 1e-5, (name, centred, gap[large].max())
        assert gap.max() < 1e-3, (name, centred, gap.max())
        for key, value in figures(s).items():
            # ours were made of more digits than are printed; a count may be at its edge
            near = 1 if key.startswith("directions") else 1e-5 * value
            assert abs(ours[key] - value) <= near, (name, key, ours[key], value)


class Layout(ctypes.Structure):
    _fields_ = [("dtype", ctypes.c_int), ("rows", ctypes.c_int64), ("dim", ctypes.c_size_t),
                ("reserved", ctypes.c_uint64 * 4)]


class Report(ctypes.Structure):
    _fields_ = [("rows", ctypes.c_int64), ("nonfinite", ctypes.c_int64),
                ("share", ctypes.c_double * 2), ("reserved", ctypes.c_uint64 * 4)]


def library(embla):
    """libembla_lab as it was built beside the program; None where it cannot be loaded."""
    path = os.path.join(os.path.dirname(os.path.abspath(embla)), "src", "libembla_lab.so")
    try:
        lab = ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
    except OSError as error:
        print("points are left out: %s" % error)
        return None
    lab.embla_error.restype = ctypes.c_char_p
    return lab


def plane(lab, array):
    """embla_plane of an array of f32."""
    array = numpy.ascontiguousarray(array, dtype="<f4")
    table, report = ctypes.c_void_p(), Report()
    xy = numpy.empty((len(array), 2), dtype="<f4")
    layout = Layout(dtype=1, rows=len(array), dim=array.shape[1])
    status = lab.embla_table_view(ctypes.byref(layout), array.ctypes.data_as(ctypes.c_void_p),
                                  ctypes.c_size_t(array.nbytes), None, ctypes.byref(table))
    assert status == 0, lab.embla_error()
    status = lab.embla_plane(table, None, xy.ctypes.data_as(ctypes.c_void_p), ctypes.byref(report))
    assert status == 0, lab.embla_error()
    lab.embla_table_free(table)
    return xy, report


def check_points(lab, array, name):
    exact = array.astype("f8") - array.astype("f8").mean(axis=0)
    _, s, axes = numpy.linalg.svd(exact, full_matrices=False)
    axes = axes[:2]
    for axis in axes:
        axis *= numpy.sign(axis[numpy.abs(axis).argmax()])
    xy, report = plane(lab, array)
    wanted = exact @ axes.T
    gap = numpy.abs(xy - wanted).max() / numpy.abs(wanted).max()
    assert gap < 1e-4, (name, gap)
    shares = s[:2] ** 2 / (s ** 2).sum()
    assert numpy.abs(numpy.array(report.share[:]) - shares).max() < 1e-5, (name, shares)
    assert report.rows == len(array) and report.nonfinite == 0
    tried["points"] += len(array)


def tables(random):
    for rows, dim in ((1, 4), (2, 2), (50, 3), (300, 100), (100, 300), (5000, 64), (900, 600)):
        falling = random.standard_normal((rows, dim)) * (0.5 + 1.0 / numpy.arange(1, dim + 1))
        yield "%d x %d" % (rows, dim), (falling + 0.1).astype("f4")
    yield "a large mean", (random.standard_normal((4000, 32)) * numpy.arange(1, 33) + 500).astype("f4")
    low = random.standard_normal((2000, 5)) @ random.standard_normal((5, 80))
    yield "rank 5", low.astype("f4")


def glove():
    path = os.path.join(os.environ.get("EMBLA_DATA", ""), "glove-50k", "glove.6B.100d.50k.txt.xz")
    if not os.path.exists(path):
        return None
    with lzma.open(path, "rt", encoding="utf-8") as file:
        return numpy.array([line.rstrip().rsplit(" ", 100)[1:] for line in file], dtype="f4")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    embla = sys.argv[1]
    random = numpy.random.default_rng(4)
    cases = list(tables(random))
    words = glove()
    if words is None:
        print("EMBLA_DATA is not set, or has no glove-50k: that is left out")
    else:
        cases.append(("glove-50k", words))
    lab = library(embla)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "table.npy")
        for name, array in cases:
            numpy.save(path, array)
            check_values(embla, path, array, name)
            # where the two directions hardly differ, or are not there, any plane would do
            if lab is not None and len(array) > 2 and array.shape[1] > 2:
                check_points(lab, array, name)
    print("numpy %s: %d singular values and %d points, all near" %
          (numpy.__version__, tried["values"], tried["points"]))


if __name__ == "__main__":
    main()
