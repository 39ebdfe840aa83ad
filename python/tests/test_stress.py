# SPDX-License-Identifier: Apache-2.0
"""Many mixed calls: no leak and no crash; 8 threads on one table.

EMBLA_CALLS is the number of calls, by default 100,000.
"""

import gc
import os
import random
import threading
import tracemalloc

import numpy as np

import embla

CALLS = int(os.environ.get("EMBLA_CALLS", "100000"))


def resident() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def actions(table, path, r):
    """Calls that succeed, calls that fail, objects that are dropped in any order."""
    kept = []
    out = np.empty((3, table.dim), np.float32)
    scatter = embla.Scatter(200, 16)

    def keep(thing):
        kept.append(thing)
        if len(kept) > 40:
            kept.pop(r.randrange(len(kept)))

    def fails(call):
        try:
            call()
        except (embla.Error, TypeError, ValueError, ZeroDivisionError):
            return
        raise AssertionError("the call should fail")

    return [
        lambda: table.lookup([1, 2, 3], out),
        lambda: keep(table.lookup(np.array([[1, 2], [3, 4]]))),
        lambda: keep(table[r.randrange(200)]),
        lambda: keep(table["w17"]),
        lambda: keep(memoryview(table.view())),
        lambda: keep(np.asarray(table.view())[3:5]),
        lambda: keep(table.near("w5", 3)),
        lambda: keep(embla.Table.over(np.zeros((4, 4), np.float32)).view()),
        lambda: keep(embla.Table.create(3, 8, "q8_0") if False else embla.Table.create(3, 8)),
        lambda: keep(scatter.plan([5, 1, 5])),
        lambda: scatter.sum(np.ones((3, 4), np.float32)) if scatter.plan([5, 1, 5]).size else None,
        lambda: keep(table.words.suggest("w1", 3)),
        lambda: "w3" in table and "none" in table,
        lambda: keep(table.view().__dlpack__(max_version=(1, 0))),
        lambda: fails(lambda: table.lookup([1, 500])),
        lambda: fails(lambda: table["none"]),
        lambda: fails(lambda: table.lookup("x")),
        lambda: fails(lambda: table.lookup([1], nope=1)),
        lambda: fails(lambda: embla.open("/nothing/here")),
        lambda: fails(lambda: table.compare("w1", [1.0])),
    ]


def slow_actions(table, path):
    """Calls of a millisecond: files, callbacks that raise."""

    def raises():
        try:
            embla.Checkpoint(path).save(str(path) + ".npy", overwrite=True, progress=lambda *a: 1 / 0)
        except ZeroDivisionError:
            pass

    return [lambda: embla.open(path)["w3"], raises, lambda: table.plane(),
            lambda: embla.Store(path, embla.Checkpoint(path).tensors()[0]["name"]).lookup([1])]


def test_mixed_calls_leak_nothing(table, path):
    r = random.Random(1)
    fast, slow = actions(table, path, r), slow_actions(table, path)

    def run(calls):
        for i in range(calls):
            (r.choice(slow) if i % 500 == 0 else r.choice(fast))()
        gc.collect()

    run(CALLS // 5)
    tracemalloc.start()
    run(CALLS // 10)
    traced, before = tracemalloc.get_traced_memory()[0], resident()
    run(CALLS // 10)
    grown = tracemalloc.get_traced_memory()[0] - traced
    tracemalloc.stop()
    assert grown < 200_000, f"{grown} bytes of Python's memory in {CALLS // 10} calls"
    run(CALLS - CALLS // 5 - 2 * (CALLS // 10))
    more = resident() - before
    assert more < 16 << 20, f"the resident set grew by {more} bytes in {CALLS} calls"


def test_eight_threads_share_one_table(table, numbers):
    wrong = []

    def work(seed):
        rng = np.random.default_rng(seed)
        try:
            for _ in range(200):
                ids = rng.integers(0, 200, 1000)
                if not np.array_equal(table.lookup(ids), numbers[ids]):
                    wrong.append(seed)
                if table.near("w7", 2)[0].id == 7 or "w5" not in table:
                    wrong.append(seed)
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not wrong


def test_ids_that_change_during_a_lookup_are_harmless(numbers):
    table = embla.Table.over(numbers)
    ids = np.zeros(200_000, np.int64)
    done = threading.Event()

    def change():
        while not done.is_set():
            ids[:] = 2**60
            ids[:] = 5

    thread = threading.Thread(target=change)
    thread.start()
    for _ in range(50):
        try:
            table.lookup(ids)
        except IndexError:
            pass
    done.set()
    thread.join()
