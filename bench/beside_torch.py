#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch beside Embla: the same steps of a training, in one process, in turns.

    beside_torch.py [LIBRARY] [--json] [--case REGEX] [--turns N] [--threads N] [--small]

LIBRARY is libembla_lab.so (default: build/release/src/libembla_lab.so). Before anything is timed,
both results are compared. A line for each case: milliseconds (medians), and how many times ours
is faster; --json: as `embla bench --json`. --small takes little tables, to try the script. Ends
with 77 where there is no torch.

Debian's OpenBLAS does not know newer CPUs and takes its slowest code there; and OpenMP's threads
that wait busily are in the way of BLAS's: both are set right, which needs a second start.
"""
import argparse
import ctypes
import os
import re
import statistics
import sys
import time

SETTINGS = {"OPENBLAS_CORETYPE": "SkylakeX", "OMP_WAIT_POLICY": "passive"}

if __name__ == "__main__" and any(name not in os.environ for name in SETTINGS):
    os.execve(sys.executable, [sys.executable] + sys.argv, {**SETTINGS, **os.environ})

try:
    import numpy
    import torch
except ImportError:
    print("there is no module torch: nothing is compared")
    sys.exit(77)

F32, BF16, ADAMW = 1, 4, 3  # embla_dtype, embla_optim_kind


def structure(*fields):
    return type("Structure", (ctypes.Structure,), {"_fields_": list(fields) + [("reserved", ctypes.c_uint64 * 4)]})


c_ptr, c_size, c_int, c_bool = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_bool
c_i64, c_float, c_double = ctypes.c_int64, ctypes.c_float, ctypes.c_double
Frozen = structure(("below", c_i64), ("mask", c_ptr), ("rows", c_ptr), ("count", c_size))
ScatterOptions = structure(("frozen", Frozen), ("shard", c_size), ("max_norm", c_float),
                           ("threads", c_int), ("by_count", c_bool))
LookupOptions = structure(("out_stride", c_size), ("threads", c_int), ("raw", c_bool),
                          ("out_dtype", c_int))
TableOptions = structure(("row_stride", c_size), ("scale", c_float), ("writable", c_bool),
                         ("token_rows", c_ptr), ("token_count", c_i64), ("by_row", c_bool))
OptimOptions = structure(("kind", c_int), ("momentum", c_double), ("beta1", c_double),
                         ("beta2", c_double), ("epsilon", c_double), ("decay", c_double),
                         ("frozen", Frozen), ("nesterov", c_bool), ("catch_up", c_bool),
                         ("threads", c_int))
Head = structure(("table", c_ptr), ("bias", c_ptr), ("rows", c_i64), ("scale", c_float),
                 ("soft_cap", c_float))
LossOptions = structure(("smoothing", c_double), ("z_loss", c_double), ("weight", c_double),
                        ("ignore", ctypes.c_int32), ("has_ignore", c_bool), ("sum", c_bool),
                        ("compute", c_int), ("threads", c_int))
LossGradients = structure(("hidden", c_ptr), ("table", c_ptr), ("bias", c_ptr))
LossReport = structure(("loss", c_double), ("z_loss", c_double), ("counted", c_i64),
                       ("ignored", c_i64), ("correct", c_i64))


class Embla:
    """The library: functions by name, a sentence and an end where one fails."""

    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        for name in ("error", "dtype_name", "optim_name"):
            getattr(self.library, "embla_" + name).restype = ctypes.c_char_p
        self.library.embla_scatter_count.restype = c_size
        self.library.embla_scatter_rows.restype = c_ptr
        names = [self.library.embla_dtype_name(dtype) for dtype in (F32, BF16)]
        assert names + [self.library.embla_optim_name(ADAMW)] == [b"f32", b"bf16", b"adamw"]

    def __call__(self, name, *arguments):
        if getattr(self.library, "embla_" + name)(*arguments) != 0:
            sys.exit("embla_%s: %s" % (name, self.library.embla_error().decode()))

    def made(self, name, *arguments):
        handle = c_ptr()
        self(name, *arguments, ctypes.byref(handle))
        return handle

    def view(self, tensor):
        """A table whose rows are the tensor's."""
        return self.made("table_view", F32, c_i64(tensor.shape[0]),
                         c_size(tensor.shape[1]), at(tensor),
                         c_size(4 * tensor.numel()), ctypes.byref(TableOptions(writable=True)))

    def adamw(self, table, decay):
        return self.made("optim_new", table, ctypes.byref(
            OptimOptions(kind=ADAMW, decay=decay, threads=run.threads)))


def at(tensor):
    return c_ptr(tensor.data_ptr())


def near(what, ours, theirs, tolerance):
    """To a share of the largest number; one in a million may be off, as Adam makes much of a
    gradient that is rounding alone."""
    apart = (ours - theirs).abs() > tolerance * theirs.abs().max()
    assert int(apart.sum()) <= apart.numel() // 10**6, "%s: %d differ" % (what, int(apart.sum()))


def wanted(*names):
    return any(re.search(run.case, name) for name in names)


def measure(name, ours, theirs):
    """In turns, after one of each that does not count."""
    if not wanted(name):
        return
    times = [[], []]
    ours(), theirs()
    for _ in range(run.turns):
        for side, function in enumerate((ours, theirs)):
            begin = time.perf_counter()
            function()
            times[side].append(time.perf_counter() - begin)
    our, their = (statistics.median(one) for one in times)
    if run.json:
        print('{"bench":"beside-torch","case":"%s","threads":%d,"value":%.4g,"unit":"1/s",'
              '"limit":%.4g,"limit_is":"torch %s","ratio":%.3f}' %
              (name, run.threads, 1 / our, 1 / their, torch.__version__, their / our), flush=True)
    else:
        print("%-36s %10.2f %10.2f %7.2f" % (name, 1e3 * our, 1e3 * their, their / our), flush=True)


def zipf(rows, count):
    """Tokens as they come in text: the r-th with a share of 1 / r."""
    share = 1 / numpy.arange(1, rows + 1)
    random = numpy.random.default_rng(1)
    return torch.from_numpy(random.choice(rows, count, p=share / share.sum()))


# ---- the adjoint of lookup ----

class Batch:
    """Tokens, the gradients of their vectors, and a plan."""

    def __init__(self, rows, dim, count):
        self.rows, self.dim, self.count = rows, dim, count
        self.ids = zipf(rows, count)
        self.tokens = self.ids.to(torch.int32)
        self.gradients = torch.randn(count, dim)
        self.scatter = embla.made("scatter_new", c_i64(rows), c_size(count))
        self.compact = torch.empty(count, dim)
        self.plan()

    def plan(self):
        embla("scatter_plan", self.scatter, at(self.tokens), c_size(self.count),
              ctypes.byref(ScatterOptions(threads=run.threads)))
        self.touched = embla.library.embla_scatter_count(self.scatter)

    def sum(self):
        self.plan()
        embla("scatter_sum", self.scatter, at(self.gradients), c_size(self.dim),
              at(self.compact))

    def add(self, dense):
        self.plan()
        embla("scatter_add", self.scatter, at(self.gradients), c_size(self.dim), at(dense))


def backward(batch):
    if not wanted("backward dense", "backward index_add", "backward coalesce"):
        return
    shape = (batch.rows, batch.dim)
    dense, theirs = torch.zeros(shape), torch.zeros(shape)
    torch_dense = lambda: torch.ops.aten.embedding_dense_backward(batch.gradients, batch.ids,
                                                                  batch.rows, -1, False)
    torch_sum = lambda: torch.sparse_coo_tensor(batch.ids[None], batch.gradients, shape).coalesce()
    batch.add(dense), batch.sum()
    near("dense", dense, torch_dense(), 1e-5)
    near("index_add", dense, theirs.index_add_(0, batch.ids, batch.gradients), 1e-5)
    near("coalesce", batch.compact[:batch.touched], torch_sum().values(), 1e-5)
    measure("backward dense", lambda: (dense.zero_(), batch.add(dense)), torch_dense)
    measure("backward index_add", lambda: batch.add(dense),
            lambda: theirs.index_add_(0, batch.ids, batch.gradients))
    measure("backward coalesce", batch.sum, torch_sum)


# ---- steps ----

def sparse_step(batch):
    name = "SparseAdam forward, backward, step"
    if not wanted(name):
        return
    ours, out = torch.randn(batch.rows, batch.dim), torch.empty(batch.count, batch.dim)
    layer = torch.nn.Embedding(batch.rows, batch.dim, sparse=True, _weight=ours.clone())
    adam = torch.optim.SparseAdam(layer.parameters(), lr=1e-3)
    table = embla.view(ours)
    optim, lookup = embla.adamw(table, 0), LookupOptions(threads=run.threads)

    def our_step():
        embla("lookup", table, at(batch.tokens), c_size(batch.count),
              ctypes.byref(lookup), at(out))
        batch.sum()
        rows = c_ptr(embla.library.embla_scatter_rows(batch.scatter))
        embla("optim_step_rows", optim, c_double(1e-3), rows,
              c_size(batch.touched), at(batch.compact))

    def their_step():
        adam.zero_grad()
        layer(batch.ids).backward(batch.gradients)
        adam.step()

    for _ in range(3):
        our_step(), their_step()
    near("SparseAdam", ours, layer.weight.detach(), 1e-5)
    measure(name, our_step, their_step)
    embla.library.embla_optim_free(optim)


def dense_step(rows, dim):
    for name, kind, decay in (("Adam step, dense", torch.optim.Adam, 0),
                              ("AdamW step, dense", torch.optim.AdamW, 0.01)):
        if not wanted(name):
            continue
        ours, gradient = torch.randn(rows, dim), torch.randn(rows, dim)
        theirs = torch.nn.Parameter(ours.clone())
        theirs.grad = gradient
        adam = kind([theirs], lr=1e-3, weight_decay=decay)
        optim = embla.adamw(embla.view(ours), decay)
        our_step = lambda: embla("optim_step", optim, c_double(1e-3), at(gradient))
        for _ in range(3):
            our_step(), adam.step()
        near(name, ours, theirs.detach(), 1e-5)
        measure(name, our_step, adam.step)
        embla.library.embla_optim_free(optim)


# ---- head and loss ----

def head_loss(rows, dim, count):
    weight = torch.randn(rows, dim) * dim ** -0.5
    hidden, targets = torch.randn(count, dim), zipf(rows, count)
    tokens = targets.to(torch.int32)
    head = Head(table=embla.view(weight))
    dhidden, dweight, report = torch.empty(count, dim), torch.zeros(rows, dim), LossReport()
    gradients = LossGradients(hidden=dhidden.data_ptr(), table=dweight.data_ptr())
    for name, dtype, compute, tolerance in (
            ("linear + cross-entropy, f32", torch.float32, F32, 2e-5),
            ("linear + cross-entropy, bf16", torch.bfloat16, BF16, 3e-2)):
        if not wanted(name):
            continue
        options = LossOptions(compute=compute, threads=run.threads)
        x, w = (it.clone().to(dtype).requires_grad_() for it in (hidden, weight))

        def our_loss():
            dweight.zero_()
            embla("head_loss", ctypes.byref(head), at(hidden), at(tokens), c_size(count),
                  ctypes.byref(options), ctypes.byref(gradients), None, ctypes.byref(report))

        def their_loss():
            x.grad = w.grad = None
            loss = torch.nn.functional.cross_entropy(torch.nn.functional.linear(x, w), targets)
            loss.backward()
            return loss

        _, loss = our_loss(), float(their_loss())
        assert abs(report.loss - loss) <= tolerance * loss, (name, report.loss, loss)
        near(name, dhidden, x.grad.float(), tolerance)
        near(name, dweight, w.grad.float(), tolerance)
        measure(name, our_loss, their_loss)


def main():
    torch.manual_seed(1)
    torch.set_num_threads(run.threads)
    rows, dim, count, vectors = (500, 32, 300, 64) if run.small else (50257, 768, 8192, 1024)
    if not run.json:
        print("%d rows of %d, %d tokens (loss: %d); %d threads; torch %s" %
              (rows, dim, count, vectors, run.threads, torch.__version__))
        print("%-36s %10s %10s %7s" % ("case", "ours ms", "torch ms", "ratio"))
    batch = Batch(rows, dim, count)
    backward(batch)
    sparse_step(batch)
    dense_step(rows, dim)
    head_loss(rows, dim, vectors)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("library", nargs="?", default="build/release/src/libembla_lab.so")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--case", default="", help="only cases that this expression finds")
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--small", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    run = arguments()
    embla = Embla(run.library)
    main()
