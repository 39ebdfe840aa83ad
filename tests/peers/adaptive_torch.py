#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's AdaptiveLogSoftmaxWithLoss beside embla_adaptive_.., with the same weights.

    adaptive_torch.py EMBLA

The library is the one that was built with the program EMBLA. Losses of all targets,
their mean, the gradients of hidden vectors and of every table, and log-probabilities of all
tokens, to 1e-5, for five shapes. Exits 77 where there is no torch.
"""
import ctypes
import os
import sys

os.environ.setdefault("OMP_WAIT_POLICY", "passive")
sys.dont_write_bytecode = True  # beside common.py

from common import library_of, skip

try:
    import numpy
    import torch
except ImportError:
    skip("there is no module torch: nothing is compared")

SHAPES = [  # tokens, numbers in a vector, cutoffs, divided by, vectors
    (10, 4, [3], 2.0, 7),
    (100, 16, [10, 50], 4.0, 40),
    (1000, 33, [100, 300, 999], 2.0, 200),
    (5000, 64, [500], 1.0, 700),
    (20000, 128, [2000, 8000], 4.0, 1100),
]
tried = 0


class Options(ctypes.Structure):
    _fields_ = [("cutoffs", ctypes.POINTER(ctypes.c_int64)), ("cutoff_count", ctypes.c_size_t),
                ("divide", ctypes.c_double), ("seed", ctypes.c_uint64),
                ("reserved", ctypes.c_uint64 * 4)]


class Report(ctypes.Structure):
    _fields_ = [("loss", ctypes.c_double), ("z_loss", ctypes.c_double),
                ("counted", ctypes.c_int64), ("ignored", ctypes.c_int64),
                ("correct", ctypes.c_int64), ("reserved", ctypes.c_uint64 * 4)]


def library_at(path):
    embla = ctypes.CDLL(library_of(path))
    embla.embla_error.restype = ctypes.c_char_p
    embla.embla_adaptive_table.restype = ctypes.c_void_p
    embla.embla_adaptive_table.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    embla.embla_table_data.restype = ctypes.c_void_p
    embla.embla_table_data.argtypes = [ctypes.c_void_p]
    embla.embla_adaptive_free.argtypes = [ctypes.c_void_p]
    return embla


def must(embla, status):
    if status != 0:
        sys.exit("embla: %s" % embla.embla_error().decode())


def at(array):
    return array.ctypes.data_as(ctypes.c_void_p)


def same(what, ours, theirs):
    """To 1e-5 of the largest number, which is what sums of floats leave."""
    global tried
    theirs = theirs.detach().numpy()
    most = max(1e-5, float(numpy.abs(theirs).max()))
    gap = float(numpy.abs(ours - theirs).max())
    assert ours.shape == theirs.shape and gap <= 1e-5 * max(most, 1e-2), (what, gap, most)
    tried += 1


def weights_of(model):
    tables = [model.head.weight]
    for project, rows in model.tail:
        tables += [project.weight, rows.weight]
    return tables


def ours_with(embla, weights, rows, dim, cutoffs, divide):
    """An adaptive softmax with these weights; the shapes of its tables must be the same."""
    handle = ctypes.c_void_p()
    options = Options((ctypes.c_int64 * len(cutoffs))(*cutoffs), len(cutoffs), divide, 1)
    must(embla, embla.embla_adaptive_new(ctypes.c_int64(rows), ctypes.c_size_t(dim),
                                         ctypes.byref(options), ctypes.byref(handle)))
    for n, weight in enumerate(weights):
        table = embla.embla_adaptive_table(handle, n)
        data = weight.detach().numpy()
        ctypes.memmove(embla.embla_table_data(table), at(data), data.nbytes)
    assert embla.embla_adaptive_table(handle, len(weights)) is None
    return handle


def compare(embla, rows, dim, cutoffs, divide, count):
    torch.manual_seed(rows)
    model = torch.nn.AdaptiveLogSoftmaxWithLoss(dim, rows, cutoffs, div_value=divide)
    weights = weights_of(model)
    hidden = torch.randn(count, dim, requires_grad=True)
    targets = torch.randint(0, rows, (count,))
    targets[::2] = torch.randint(0, cutoffs[0], (len(targets[::2]),))
    theirs = model(hidden, targets)
    theirs.loss.backward()

    handle = ours_with(embla, weights, rows, dim, cutoffs, divide)
    x = hidden.detach().numpy()
    tokens = targets.numpy().astype(numpy.int32)
    gradient, each = numpy.empty_like(x), numpy.empty(count, numpy.float32)
    tables = [numpy.zeros(tuple(weight.shape), numpy.float32) for weight in weights]
    pointers = (ctypes.c_void_p * len(tables))(*[at(table) for table in tables])
    report = Report()
    must(embla, embla.embla_adaptive_loss(handle, at(x), at(tokens), ctypes.c_size_t(count), None,
                                          at(gradient), pointers, at(each), ctypes.byref(report)))
    logs = numpy.empty((count, rows), numpy.float32)
    must(embla, embla.embla_adaptive_log_probabilities(handle, at(x), ctypes.c_size_t(count), None,
                                                       at(logs)))
    assert report.counted == count and report.ignored == 0
    same("loss", numpy.float32(report.loss), theirs.loss)
    same("each", -each, theirs.output)
    same("hidden", gradient, hidden.grad)
    same("log-probabilities", logs, model.log_prob(hidden))
    for n, weight in enumerate(weights):  # a cluster without a target has no gradient there
        wanted = torch.zeros_like(weight) if weight.grad is None else weight.grad
        same("table %d" % n, tables[n], wanted)
    embla.embla_adaptive_free(handle)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    embla = library_at(sys.argv[1])
    for shape in SHAPES:
        compare(embla, *shape)
    print("torch %s: %d comparisons, all the same" % (torch.__version__, tried))


if __name__ == "__main__":
    main()
