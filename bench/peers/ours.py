# SPDX-License-Identifier: Apache-2.0
"""What the jobs of beside.py share: Embla through ctypes, the peers that this Python has, data, and
how two functions are measured beside each other.

Everything is a NumPy array. A torch tensor that shares its memory is made where torch is a peer.
"""
import ctypes
import importlib
import json
import os
import re
import statistics
import subprocess
import sys
import time

import numpy

F32, BF16, Q8_0, Q4_0, ADAMW, DOT = 1, 4, 8, 9, 3, 1  # embla_dtype, embla_optim_kind, embla_measure

PAUSE = 0.1  # seconds; the threads of OpenBLAS in a peer wait for work by spinning, for 30 ms or so
BUSY = 0.1  # of all CPUs: a job is marked if other programs used more while it ran

c_ptr, c_size, c_int, c_bool = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_bool
c_i64, c_float, c_double = ctypes.c_int64, ctypes.c_float, ctypes.c_double


def structure(*fields):
    """A struct of the public headers: it ends with four reserved words."""
    end = [("reserved", ctypes.c_uint64 * 4)]
    return type("Structure", (ctypes.Structure,), {"_fields_": list(fields) + end})


Frozen = structure(("below", c_i64), ("mask", c_ptr), ("rows", c_ptr), ("count", c_size))
ScatterOptions = structure(("frozen", Frozen), ("shard", c_size), ("max_norm", c_float),
                           ("threads", c_int), ("by_count", c_bool))
LookupOptions = structure(("out_stride", c_size), ("threads", c_int), ("raw", c_bool),
                          ("out_dtype", c_int))
TableLayout = structure(("dtype", c_int), ("rows", c_i64), ("dim", c_size))
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
LossBatch = structure(("hidden", c_ptr), ("targets", c_ptr), ("count", c_size), ("each", c_ptr))
LossGradients = structure(("hidden", c_ptr), ("table", c_ptr), ("bias", c_ptr))
LossReport = structure(("loss", c_double), ("z_loss", c_double), ("counted", c_i64),
                       ("ignored", c_i64), ("correct", c_i64))
PoolOptions = structure(("lengths", c_ptr), ("weights", c_ptr), ("threads", c_int), ("kind", c_int),
                        ("normalize", c_bool))
NearOptions = structure(("k", c_size), ("rows", c_i64), ("exclude", c_ptr),
                        ("exclude_count", c_size), ("threads", c_int), ("measure", c_int),
                        ("sketch", c_ptr), ("progress", c_ptr), ("context", c_ptr))
AnalogyQuestion = structure(("plus", c_ptr), ("minus", c_ptr), ("plus_count", c_size),
                            ("minus_count", c_size))
AnalogyOptions = structure(("k", c_size), ("rows", c_i64), ("threads", c_int), ("keep_words", c_bool),
                           ("kind", c_int))
RowFormat = structure(("dim", c_size), ("dtype", c_int), ("scales", c_int), ("scale", c_float))
NEIGHBOUR = numpy.dtype([("row", "i8"), ("score", "f8")])  # embla_neighbour


def at(array):
    return c_ptr(array.ctypes.data)


class Library:
    """libembla_lab: functions by name. One that fails ends the script with its message."""

    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        for name in ("error", "dtype_name", "optim_name", "version", "measure_name"):
            getattr(self.library, "embla_" + name).restype = ctypes.c_char_p
        self.library.embla_scatter_count.restype = c_size
        self.library.embla_scatter_rows.restype = c_ptr
        names = [self.library.embla_dtype_name(dtype) for dtype in (F32, BF16, Q8_0, Q4_0)]
        names += [self.library.embla_optim_name(ADAMW), self.library.embla_measure_name(DOT)]
        assert names == [b"f32", b"bf16", b"q8_0", b"q4_0", b"adamw", b"dot"], names

    def __call__(self, name, *arguments):
        if getattr(self.library, "embla_" + name)(*arguments) != 0:
            sys.exit("embla_%s: %s" % (name, self.library.embla_error().decode()))

    def made(self, name, *arguments):
        handle = c_ptr()
        self(name, *arguments, ctypes.byref(handle))
        return handle

    def free(self, name, handle):
        getattr(self.library, "embla_%s_free" % name)(handle)

    def view(self, array, dtype=F32, dim=None):
        """A table whose rows are those of the array."""
        layout = TableLayout(dtype=dtype, rows=len(array), dim=dim or array.shape[1])
        return self.made("table_view", ctypes.byref(layout), at(array), c_size(array.nbytes),
                         ctypes.byref(TableOptions(writable=True)))


def clocks():
    """Seconds so far: of the clock, of all CPUs busy (also for other virtual machines), of this
    process and its children. None where the system does not tell."""
    try:
        with open("/proc/stat", encoding="ascii") as file:
            ticks = list(map(int, file.readline().split()[1:9]))
    except (OSError, ValueError):
        return None
    busy = (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")  # without idle and iowait
    return numpy.array([time.perf_counter(), busy, sum(os.times()[:4])])


def others(before, after):
    """The share of all CPUs that other programs used between two clocks(); None if unknown."""
    if before is None or after is None:
        return None
    passed, busy, own = after - before
    return min(max(0.0, busy - own) / (passed * os.cpu_count()), 1.0)


class Run:
    """One process: the options, the library, the peers, and what is printed about them."""

    def __init__(self, options):
        self.turns, self.threads, self.small = options.turns, options.threads, options.small
        self.case, self.program, self.folder = options.case, options.embla, options.folder
        self.programs = options.programs  # whether peers that are programs are run here
        self.embla = Library(options.library)
        self.modules = {}
        self.clocks = clocks()
        self.say(embla=self.embla.library.embla_version().decode())

    @staticmethod
    def say(**entry):
        print(json.dumps(entry), flush=True)

    def has(self, name, part=None):
        """The module of a peer, or a part of it; None, which is reported once, if there is none."""
        if name not in self.modules:
            try:
                self.modules[name] = importlib.import_module(name)
                self.say(peer=self.peer(name), module=name)
                if name == "torch":
                    self.modules[name].set_num_threads(self.threads)
                    self.modules[name].manual_seed(1)
                if name == "faiss":
                    self.modules[name].omp_set_num_threads(self.threads)
            except (ImportError, OSError, ValueError) as error:
                self.modules[name] = None
                self.say(missing=name, why=str(error).split("\n", maxsplit=1)[0])
        if part and self.modules[name]:
            return importlib.import_module("%s.%s" % (name, part))
        return self.modules[name]

    def peer(self, name):
        version = getattr(self.modules[name], "__version__", None)
        if not version:
            version = importlib.import_module("importlib.metadata").version(name)
        return "%s %s" % ({"numpy": "NumPy", "torch": "PyTorch"}.get(name, name), version)

    def wants(self, *jobs):
        return any(re.search(self.case, job) for job in jobs)

    def measure(self, job, peer, ours, theirs, calls=1, limit=None, work=1, unit="1/s"):
        """Times both in turns, in alternating order, after one call of each. limit: the case of
        `embla bench` that tells how far ours is from its limit. work: what a call does, in units."""
        if not self.wants(job):
            return
        times = [[], []]
        pair = [(0, ours), (1, theirs)]
        ours(), theirs()
        for turn in range(self.turns):
            for side, function in pair if turn % 2 == 0 else pair[::-1]:
                time.sleep(PAUSE)
                begin = time.perf_counter()
                for _ in range(calls):
                    function()
                times[side].append((time.perf_counter() - begin) / calls)
        our, their = map(statistics.median, times)
        self.result(job, peer, work / our, work / their, unit, limit)

    def result(self, job, peer, ours, theirs, unit, limit=None):
        """ours and theirs are rates: more is better. limit: a case of `embla bench`, or its ratio
        and what the limit is."""
        if limit and not isinstance(limit[0], float):
            limit = None if self.small else self.known(*limit)
        before, self.clocks = self.clocks, clocks()
        busy = others(before, self.clocks)
        disturbed = bool(busy and busy > BUSY)
        self.say(job=job, by=peer, threads=self.threads, ours=ours, theirs=theirs, unit=unit,
                 limit=None if disturbed else limit, others=busy, disturbed=disturbed)

    def bench(self, name, case):
        """The last line of `embla bench --json`."""
        done = subprocess.run([self.program, "bench", name, "--case", case, "--json", "--threads",
                               str(self.threads)], stdout=subprocess.PIPE, check=True)
        return json.loads(done.stdout.splitlines()[-1])

    def known(self, name, case):
        """The ratio of a case of `embla bench` to its limit. It is measured once, by the first
        Python that asks, while nothing else of ours runs. None if other programs were busy."""
        path = os.path.join(self.folder, "limits.json")
        limits, key = {}, "%s %s" % (name, case)
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                limits = json.load(file)
        if key not in limits:
            before = clocks()
            found = self.bench(name, case)
            busy = others(before, clocks())
            limits[key] = None if busy and busy > BUSY else (found["ratio"], found["limit_is"])
            with open(path, "w", encoding="utf-8") as file:
                json.dump(limits, file)
        return limits[key]


def agree(what, ours, theirs, tolerance):
    """To a share of the largest number. One in a million may differ, because Adam enlarges a
    gradient that is only rounding."""
    apart = numpy.abs(ours - theirs) > tolerance * numpy.abs(theirs).max()
    assert apart.sum() <= apart.size // 10**6, "%s: %d numbers differ" % (what, apart.sum())


def same_rows(what, rows, scores, their_rows, their_scores):
    """The same nearest rows; two whose scores are equal to rounding may change places."""
    agree(what, scores, their_scores, 1e-5)
    swapped = rows != their_rows
    gaps = numpy.abs(scores - their_scores)[swapped]
    assert swapped.sum() <= 1 + rows.size // 100 and (gaps < 1e-5).all(), "%s: other rows" % what


def tokens(kind, rows, count):
    """Token numbers: uniform, or zipf, where token k has a share of 1 / (k + 1), as in text."""
    random = numpy.random.default_rng(1)
    if kind == "uniform":
        return random.integers(0, rows, count)
    share = 1 / numpy.arange(1, rows + 1)
    return random.choice(rows, count, p=share / share.sum())


def normal(*shape):
    return numpy.random.default_rng(2).standard_normal(shape, dtype="f4")


def write_text(path, words, vocabulary):
    """A made-up text: words w0, w1, .. as frequent as in a real one, 20 on a line."""
    drawn = tokens("zipf", vocabulary, words)
    with open(path, "w", encoding="ascii") as to:
        for start in range(0, words, 20):
            to.write(" ".join("w%d" % word for word in drawn[start:start + 20]) + "\n")
    return os.path.getsize(path)
