#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's optimizers beside ours: AdamW, SGD with and without Nesterov, Adagrad.

    optim_torch.py EMBLA

The library is the one that was built with the program EMBLA. Ten steps on 50 x 33 numbers with the same gradients and changing rates, dense; and SGD and
Adagrad with sparse gradients beside steps of rows. The same weights to 1e-6. Decay is
decoupled here in every kind, in PyTorch only in AdamW: the others go without. Exits 77 where
there is no torch.
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

ROWS, DIM, STEPS = 50, 33, 10
F32 = 1
SGD, ADAGRAD, ADAMW = 0, 1, 3


class Frozen(ctypes.Structure):
    _fields_ = [("below", ctypes.c_int64), ("mask", ctypes.c_void_p), ("rows", ctypes.c_void_p),
                ("count", ctypes.c_size_t), ("reserved", ctypes.c_uint64 * 4)]


class Options(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int), ("momentum", ctypes.c_double), ("beta1", ctypes.c_double),
                ("beta2", ctypes.c_double), ("epsilon", ctypes.c_double),
                ("decay", ctypes.c_double), ("frozen", Frozen), ("nesterov", ctypes.c_bool),
                ("catch_up", ctypes.c_bool), ("threads", ctypes.c_int),
                ("reserved", ctypes.c_uint64 * 4)]


class Layout(ctypes.Structure):
    _fields_ = [("dtype", ctypes.c_int), ("rows", ctypes.c_int64), ("dim", ctypes.c_size_t),
                ("reserved", ctypes.c_uint64 * 4)]


class ViewOptions(ctypes.Structure):
    _fields_ = [("row_stride", ctypes.c_size_t), ("scale", ctypes.c_float),
                ("writable", ctypes.c_bool), ("token_rows", ctypes.c_void_p),
                ("token_count", ctypes.c_int64), ("by_row", ctypes.c_bool),
                ("reserved", ctypes.c_uint64 * 4)]


CASES = [
    ("adamw", {"kind": ADAMW, "decay": 0.1}, torch.optim.AdamW, {"weight_decay": 0.1}),
    ("adamw, other numbers", {"kind": ADAMW, "beta1": 0.8, "beta2": 0.95, "epsilon": 1e-5},
     torch.optim.AdamW, {"betas": (0.8, 0.95), "eps": 1e-5, "weight_decay": 0.0}),
    ("sgd", {"kind": SGD}, torch.optim.SGD, {}),
    ("sgd, momentum", {"kind": SGD, "momentum": 0.9}, torch.optim.SGD, {"momentum": 0.9}),
    ("sgd, nesterov", {"kind": SGD, "momentum": 0.9, "nesterov": True}, torch.optim.SGD,
     {"momentum": 0.9, "nesterov": True}),
    ("adagrad", {"kind": ADAGRAD}, torch.optim.Adagrad, {}),
]
SPARSE = ("sgd", "adagrad")  # what PyTorch takes sparse gradients for, and means the same


def pointer(array):
    return ctypes.c_void_p(array.ctypes.data)


class Ours:
    """An optimizer of a numpy array, through the C interface."""

    def __init__(self, library, weights, options):
        self.library, self.weights = library, weights
        self.table, self.optim = ctypes.c_void_p(), ctypes.c_void_p()
        view, layout = ViewOptions(writable=True), Layout(dtype=F32, rows=ROWS, dim=DIM)
        self.call("embla_table_view", ctypes.byref(layout), pointer(weights),
                  ctypes.c_size_t(weights.nbytes), ctypes.byref(view), ctypes.byref(self.table))
        self.call("embla_optim_new", self.table, ctypes.byref(Options(**options)),
                  ctypes.byref(self.optim))

    def call(self, name, *arguments):
        if getattr(self.library, name)(*arguments) != 0:
            self.library.embla_error.restype = ctypes.c_char_p
            sys.exit("%s: %s" % (name, self.library.embla_error().decode()))

    def step(self, rate, gradient, rows=None):
        if rows is None:
            self.call("embla_optim_step", self.optim, ctypes.c_double(rate), pointer(gradient))
        else:
            self.call("embla_optim_step_rows", self.optim, ctypes.c_double(rate), pointer(rows),
                      ctypes.c_size_t(len(rows)), pointer(gradient))

    def free(self):
        self.library.embla_optim_free(self.optim)
        self.library.embla_table_free(self.table)


def compare(library, name, ours_options, torch_kind, torch_options, sparse):
    random = numpy.random.default_rng(7)
    weights = random.normal(0, 0.5, (ROWS, DIM)).astype(numpy.float32)
    ours = Ours(library, weights.copy(), ours_options)
    theirs = torch.nn.Parameter(torch.from_numpy(weights.copy()))
    optimizer = torch_kind([theirs], lr=0.1, **torch_options)
    for step in range(STEPS):
        rate = 0.1 / (1 + step)
        rows = numpy.flatnonzero(random.random(ROWS) < (0.3 if sparse else 2)).astype(numpy.int64)
        gradient = random.normal(0, 10.0 ** (step % 5 - 3), (len(rows), DIM))
        gradient = gradient.astype(numpy.float32)
        for group in optimizer.param_groups:
            group["lr"] = rate
        if sparse:
            theirs.grad = torch.sparse_coo_tensor(torch.from_numpy(rows)[None],
                                                  torch.from_numpy(gradient), (ROWS, DIM))
        else:
            theirs.grad = torch.from_numpy(gradient)
        optimizer.step()
        ours.step(rate, gradient, rows if sparse else None)
        gap = numpy.abs(ours.weights - theirs.detach().numpy())
        most = (gap / numpy.maximum(1.0, numpy.abs(ours.weights))).max()
        assert most <= 1e-6, (name, sparse, step, most)
    assert numpy.abs(ours.weights - weights).max() > 1e-3
    ours.free()


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    library = ctypes.CDLL(library_of(sys.argv[1]), mode=ctypes.RTLD_GLOBAL)
    tried = 0
    for case in CASES:
        for sparse in (False, True) if case[0] in SPARSE else (False,):
            compare(library, *case, sparse)
            tried += 1
    print("torch %s: %d optimizers, %d steps each, all the same" % (torch.__version__, tried, STEPS))


if __name__ == "__main__":
    main()
