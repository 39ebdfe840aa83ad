# SPDX-License-Identifier: Apache-2.0
"""Every exporter of a buffer with every call that takes one.

A cell of the matrix gives the same as the same numbers in a list, or an exception: the interpreter
never ends, and no value is wrong. .ci/python asan runs the matrix with the address sanitizer.
"""

import array
import ctypes
import itertools
import mmap
import os

import numpy as np
import pytest

import embla
from embla import _embla

try:
    import torch
except ImportError:
    torch = None

REFUSED = (embla.Error, TypeError, BufferError, ValueError)
DEMO = os.path.join(os.path.dirname(embla.__file__), "demo")
AXES = 64 if np.lib.NumpyVersion(np.__version__) >= "2.0.0" else 32  # the most that NumPy allows
CODES = {"f4": "f", "f8": "d", "f2": "e", "i8": "q", "i4": "i", "i2": "h", "u1": "B"}
TYPES = {"f4": ctypes.c_float, "f8": ctypes.c_double, "i8": ctypes.c_int64, "i4": ctypes.c_int32,
         "i2": ctypes.c_int16, "u1": ctypes.c_uint8}


class ByDlpack:
    """An object that gives its numbers by DLPack alone, as a tensor does."""

    def __init__(self, a, versioned=True):
        self.a, self.versioned = a, versioned

    def __dlpack__(self, **named):
        if named and not self.versioned:
            raise TypeError("no max_version")
        try:
            return self.a.__dlpack__(**named)
        except TypeError:  # NumPy before 2.1
            return self.a.__dlpack__()

    def __dlpack_device__(self):
        return self.a.__dlpack_device__()


def kind(a):
    return a.dtype.str[1:]


def in_ctypes(a):
    made = TYPES[kind(a)]
    for size in reversed(a.shape):
        made = made * size
    made = made()
    ctypes.memmove(made, np.ascontiguousarray(a).ctypes.data, a.nbytes)
    return made


def in_mmap(a):
    memory = mmap.mmap(-1, max(1, a.nbytes))
    memory[:a.nbytes] = a.tobytes()
    return memoryview(memory)[:a.nbytes].cast(CODES[kind(a)], a.shape)


def spread(a):
    """a with gaps on every axis, in the middle of a larger array."""
    large = np.zeros([2 * n + 3 for n in a.shape], a.dtype)
    part = large[tuple(slice(1, 2 * n + 1, 2) for n in a.shape)]
    part[...] = a
    return part


def backwards(a):
    flip = (slice(None, None, -1),) * a.ndim
    return np.ascontiguousarray(a[flip])[flip]


def unaligned(a):
    memory = np.zeros(a.nbytes + 1, np.uint8)[1:]
    made = memory.view(a.dtype).reshape(a.shape) if a.size else memory[:0].view(a.dtype).reshape(a.shape)
    made[...] = a
    return made


def read_only(a):
    made = a.copy()
    made.flags.writeable = False
    return made


def axes(a, number):
    return a.reshape((1,) * (number - a.ndim) + a.shape)


def own(a):
    """An array of embla, of the same type."""
    rows = a.reshape(1, -1) if a.ndim < 2 else a.reshape(a.shape[0], -1)
    made = embla.Table.create(max(1, rows.shape[0]), max(1, rows.shape[1]), "f32")
    made.write(0, rows)
    return made.view()


# An exporter makes an object of an array, or raises if it cannot hold this one (then the cell does
# not exist). The second value is what the object holds; None means that it must be refused.
EXPORTERS = {
    "ctypes": lambda a: (in_ctypes(a), a),
    "ctypes 0-d": lambda a: (TYPES[kind(a)](int(a.flat[0])), a.flat[0].reshape(())),
    "ctypes big-endian": lambda a: ((TYPES[kind(a)].__ctype_be__ * a.size)(), None),
    "ctypes struct": lambda a: ((type("S", (ctypes.Structure,), {"_fields_": [("x", TYPES[kind(a)])]})
                                 * max(1, a.size))(), None),
    "array.array": lambda a: (array.array(CODES[kind(a)], a.ravel().tolist()), a.ravel()),
    "array.array of floats or integers": lambda a: (array.array("q" if a.dtype.kind == "f" else "d", [1]), None),
    "bytes": lambda a: (a.tobytes(), np.frombuffer(a.tobytes(), np.uint8)),
    "bytearray": lambda a: (bytearray(a.tobytes()), np.frombuffer(a.tobytes(), np.uint8)),
    "memoryview cast": lambda a: (memoryview(bytearray(a.tobytes())).cast(CODES[kind(a)], a.shape), a),
    "memoryview cast, flat": lambda a: (memoryview(bytearray(a.tobytes())).cast(CODES[kind(a)]), a.ravel()),
    "memoryview cast to char": lambda a: (memoryview(bytearray(a.tobytes())).cast("c"), None),
    "memoryview 0-d": lambda a: (memoryview(a.ravel()[:1].tobytes()).cast(CODES[kind(a)], ()), a.flat[0].reshape(())),
    "memoryview slice": lambda a: (memoryview(np.ascontiguousarray(a))[1:], a[1:]),
    "memoryview slice, backwards": lambda a: (memoryview(np.ascontiguousarray(a))[::-1], a[::-1]),
    "memoryview slice, step 2": lambda a: (memoryview(np.ascontiguousarray(a))[::2], a[::2]),
    "memoryview slice, empty": lambda a: (memoryview(np.ascontiguousarray(a))[:0], a[:0]),
    "memoryview, released": lambda a: (released(memoryview(a.tobytes())), None),
    "mmap": lambda a: (in_mmap(a), a),
    "mmap, bytes": lambda a: (in_mmap(a).obj, np.frombuffer(in_mmap(a).obj, np.uint8)),
    "numpy C": lambda a: (np.ascontiguousarray(a), a),
    "numpy F": lambda a: (np.asfortranarray(a), a),
    "numpy transposed": lambda a: (np.ascontiguousarray(a.T).T, a),
    "numpy backwards": lambda a: (backwards(a), a),
    "numpy with gaps": lambda a: (spread(a), a),
    "numpy unaligned": lambda a: (unaligned(a), a),
    "numpy read-only": lambda a: (read_only(a), a),
    "numpy byte-swapped": lambda a: (a.astype(a.dtype.newbyteorder()), None),
    "numpy empty": lambda a: (np.empty((0,) + a.shape[1:], a.dtype), np.empty((0,) + a.shape[1:], a.dtype)),
    "numpy empty rows": lambda a: (np.empty(a.shape[:-1] + (0,), a.dtype), np.empty(a.shape[:-1] + (0,), a.dtype)),
    "numpy 0-d": lambda a: (np.array(a.flat[0]), np.array(a.flat[0])),
    "numpy broadcast": lambda a: (np.broadcast_to(a.ravel()[:1].reshape((1,) * a.ndim), a.shape),
                                  np.broadcast_to(a.ravel()[:1].reshape((1,) * a.ndim), a.shape)),
    "numpy 31 axes": lambda a: (axes(a, 31), axes(a, 31)),
    "numpy 32 axes": lambda a: (axes(a, 32), axes(a, 32)),
    "numpy 33 axes": lambda a: (axes(a, 33), axes(a, 33)),
    "numpy most axes": lambda a: (axes(a, AXES), axes(a, AXES)),
    "numpy other size": lambda a: (lambda b: (b, b))(a.astype("f8" if a.dtype.kind == "f" else "u1")),
    "numpy half": lambda a: (lambda b: (b, b))(a.astype("f2" if a.dtype.kind == "f" else "i2")),
    "numpy bool": lambda a: (a.astype(bool), None),
    "numpy complex": lambda a: (a.astype(complex), None),
    "numpy record": lambda a: (a.ravel().view([("x", a.dtype)]), None),
    "numpy objects": lambda a: (a.astype(object), None),
    "numpy void": lambda a: (np.zeros(a.shape, "V4"), None),
    "DLPack": lambda a: (ByDlpack(a), a),
    "DLPack, old": lambda a: (ByDlpack(a, False), a),
    "DLPack F": lambda a: (ByDlpack(np.asfortranarray(a)), a),
    "DLPack backwards": lambda a: (ByDlpack(backwards(a)), a),
    "DLPack 0-d": lambda a: (ByDlpack(np.array(a.flat[0])), np.array(a.flat[0])),
    "DLPack empty": lambda a: (ByDlpack(a[:0]), a[:0]),
    "DLPack most axes": lambda a: (ByDlpack(axes(a, AXES)), axes(a, AXES)),
    "DLPack bool": lambda a: (ByDlpack(a.astype(bool)), None),
    "an array of embla": lambda a: (own(a), np.asarray(own(a))),
}
if torch is not None:
    EXPORTERS |= {
        "torch": lambda a: (torch.from_numpy(a.copy()), a),
        "torch transposed": lambda a: (torch.from_numpy(np.ascontiguousarray(a.T)).T, a),
        "torch with gaps": lambda a: (torch.from_numpy(spread(a)), a),
        "torch 0-d": lambda a: (torch.from_numpy(np.array(a.flat[0])), np.array(a.flat[0])),
        "torch empty": lambda a: (torch.from_numpy(a[:0].copy()), a[:0]),
        "torch other size": lambda a: (lambda b: (b, b.numpy()))(
            torch.from_numpy(a).to(torch.float64 if a.dtype.kind == "f" else torch.int32)),
        "torch bfloat16": lambda a: (lambda b: (b, b.float().numpy()))(torch.from_numpy(a).to(torch.bfloat16)),
        "torch that requires a gradient": lambda a: (torch.from_numpy(a.copy()).requires_grad_(), None),
        "torch bool": lambda a: (torch.from_numpy(a).bool(), None),
    }


def released(view):
    view.release()
    return view


def can_hold(exporter, a):
    """Whether the exporter can hold an array of this shape and type; if not, the cell is none."""
    try:
        EXPORTERS[exporter](a)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, BufferError, RuntimeError):
        return False
    return True


def that_hold(a):
    return [e for e in EXPORTERS if can_hold(e, a)]


# ---- numbers that come in ----

RNG = np.random.default_rng(11)
V = RNG.standard_normal((100, 5)).astype(np.float32)
T = embla.Table.over(V)
NGRAM = embla.Ngram.model("qwen3.8-flash-next")
HISTORY = NGRAM.info()["history"]
TOKENIZER = embla.Tokenizer(os.path.join(DEMO, "names"))
MODEL = embla.Model(os.path.join(DEMO, "names"))


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    file = tmp_path_factory.mktemp("store") / "t.npy"
    np.save(file, V)
    return embla.Store(file, "array")


@pytest.fixture(scope="module")
def encoder():
    return embla.Encoder(os.path.join(DEMO, "words.vec"))


def planned(ids):
    return embla.Scatter(100, 64).plan(ids)


def stepped(rows, gradients=None):
    table = embla.Table.create(100, 5)
    embla.Optim(table, "sgd").step(0.5, np.ones((3, 5), np.float32) if gradients is None else gradients, rows)
    return table.lookup(list(range(100)))


def summed(gradients):
    scatter = embla.Scatter(100, 64)
    scatter.plan([3, 1, 3])
    return scatter.sum(gradients)


def written(values):
    table = embla.Table.create(6, 5)
    table.write(1, values)
    return table.lookup(list(range(6)))


# name: (the array that exporters hold, the call)
IDS = {
    "lookup (T)": (np.array([3, 1, 4]), lambda x, s: T.lookup(x)),
    "lookup (B, T)": (np.array([[3, 1, 4], [5, 9, 2]]), lambda x, s: T.lookup(x)),
    "lookup (A, B, T)": (np.arange(8).reshape(2, 2, 2), lambda x, s: T.lookup(x)),
    "lookup int32": (np.array([[3, 1], [4, 9]], "i4"), lambda x, s: T.lookup(x)),
    "lookup f16": (np.array([3, 1]), lambda x, s: T.lookup(x, dtype="f16")),
    "[]": (np.array([[3, 1]]), lambda x, s: T[x]),
    "embed": (np.array([[3, 1], [4, 9]]), lambda x, s: T.embed(x, T, scale=2.0)),
    "Table.pool": (np.array([[3, 1, 4], [4, 9, 0]]), lambda x, s: T.pool(x)),
    "near exclude": (np.array([3, 1, 4]), lambda x, s: T.near(V[3], 4, exclude=x)),
    "near exclude (n, m)": (np.array([[3, 1], [4, 9]]), lambda x, s: T.near(V[3:5], 4, exclude=x)),
    "analogy": (np.array([3, 1]), lambda x, s: _embla.analogy(T, x, x, 3)),
    "odd": (np.array([3, 1, 4]), lambda x, s: _embla.odd(T, x)),
    "health unused": (np.array([3, 1, 4]), lambda x, s: [T.health(unused=x)[k] for k in ("unused", "mean_norm")]),
    "plane basis": (np.array([3, 1, 4]), lambda x, s: T.plane(x)),
    "diff other": (np.arange(99, -1, -1), lambda x, s: _embla.diff(T, T, other=x)["same"]),
    "store.lookup": (np.array([[3, 1, 4], [5, 9, 2]]), lambda x, s: s.lookup(x)),
    "tickets.submit": (np.array([[3, 1, 4], [5, 9, 2]]), lambda x, s: s.tickets().submit(x).wait()),
    "Scatter.plan": (np.array([3, 1, 3]), lambda x, s: planned(x)),
    "Optim.step rows": (np.array([1, 3, 4]), lambda x, s: stepped(x)),
    "loss targets": (np.array([1, 3, 4]), lambda x, s: embla.loss(T, V[:3], x, gradients=True)),
    "Ngram.rows": (np.array([[100, 200, 300], [4, 5, 6]]), lambda x, s: NGRAM.rows(x)),
    "Ngram.rows int32": (np.array([100, 200, 300], "i4"), lambda x, s: NGRAM.rows(x)),
    "Ngram.rows history": (np.array([5] * HISTORY), lambda x, s: NGRAM.rows([7, 8], x)),
    "Tokenizer.decode": (np.array([3, 1, 4]), lambda x, s: TOKENIZER.decode(x)),
    "Detokenizer.add": (np.array([3, 1, 4]), lambda x, s: TOKENIZER.stream().add(x)),
    "generate prompt": (np.array([3, 1, 4]), lambda x, s: MODEL._generate(x, 4, seed=1)),
    "predict prompt": (np.array([3, 1, 4]), lambda x, s: MODEL._predict(x, 4)),
    "generate ends": (np.array([3, 1, 4]), lambda x, s: MODEL._generate([1], 4, ends=x, seed=1)),
}
FLOATS = {
    "near": (V[:3], lambda x, s: T.near(x, 4)),
    "near, one": (V[3], lambda x, s: T.near(x, 4)),
    "near (A, B, dim)": (V[:4].reshape(2, 2, 5), lambda x, s: T.near(x, 4)),
    "similar_by_vector": (V[3], lambda x, s: T.similar_by_vector(x, 4)),
    "compare": (V[3], lambda x, s: T.compare(x, V[2].tolist())),
    "compare, second": (V[3], lambda x, s: T.compare(V[2].tolist(), x)),
    "write": (V[:2], lambda x, s: written(x)),
    "pool": (V[:4], lambda x, s: embla.pool(x, "sum")),
    "pool (B, T, dim)": (V[:4].reshape(2, 2, 5), lambda x, s: embla.pool(x, "max")),
    "Scatter.sum": (V[:3], lambda x, s: summed(x)),
    "Optim.step": (V[:3], lambda x, s: stepped([1, 3, 4], x)),
    "logits": (V[:3], lambda x, s: embla.logits(T, x)),
    "loss": (V[:3], lambda x, s: embla.loss(T, x, [1, 3, 4], gradients=True)),
}


def flat(result):
    """A result as a list of numbers, arrays and texts."""
    if isinstance(result, (tuple, list)):
        return list(itertools.chain.from_iterable(flat(r) for r in result))
    return [result]


def same(a, b):
    a, b = flat(a), flat(b)
    return len(a) == len(b) and all(
        np.asarray(x).shape == np.asarray(y).shape and np.array_equal(np.asarray(x), np.asarray(y))
        for x, y in zip(a, b))


def attempt(call, *arguments):
    try:
        return call(*arguments), None
    except REFUSED as error:
        return None, error


CALLS = IDS | FLOATS


@pytest.mark.parametrize("exporter,name", [(e, c) for e in EXPORTERS for c in CALLS if can_hold(e, CALLS[c][0])])
def test_a_buffer_gives_what_a_list_gives_or_is_refused(exporter, name, store):
    a, call = CALLS[name]
    thing, held = EXPORTERS[exporter](a)
    found, error = attempt(call, thing, store)
    if held is None or (name == "[]" and isinstance(thing, bytes)):  # which are a word
        assert error is not None
        return
    if name.startswith("lookup") or name in ("store.lookup", "tickets.submit"):
        if held.dtype.kind != "f" and held.ndim < AXES and held.size and held.max() < 100:
            wanted = V[held.astype(np.int64)]
            assert error is None and same(found, wanted.astype(np.float16) if "f16" in name else wanted)
            return
    if held.ndim > 8:  # a list of lists cannot be as deep
        return
    if (held.dtype.kind == "f") != (a.dtype.kind == "f"):
        assert error is not None
        return
    if held.size == 0:  # a list cannot say how many columns no rows have
        assert error is not None or all(np.isfinite(x).all() for x in flat(found) if isinstance(x, np.ndarray))
        return
    wanted, refused = attempt(call, held.tolist(), store)
    assert (error is None) == (refused is None), error or refused
    assert refused is not None or same(found, wanted)


# ---- tables of a caller's memory ----

@pytest.mark.parametrize("exporter,type", [(e, t) for t in ("f4", "f8") for e in that_hold(V[:6].astype(t))])
@pytest.mark.parametrize("writable", [False, True])
def test_a_table_over_a_buffer_has_its_rows_or_is_refused(exporter, type, writable):
    thing, held = EXPORTERS[exporter](V[:6].astype(type))
    table, error = attempt(lambda: embla.Table.over(thing, writable=writable))
    if held is None or held.ndim != 2 or held.size == 0 or held.dtype.kind != "f":
        assert table is None
        return
    plain = "ctypes", "numpy C", "memoryview cast", "memoryview slice, step 2", "mmap", "numpy unaligned"
    assert error is None or exporter not in plain, error
    if table is None:
        return
    assert np.array_equal(table.lookup(list(range(len(held)))), held.astype(np.float32))
    assert table.near(held[1].astype(np.float32), 1)[0].score == pytest.approx(1, abs=1e-6)
    if writable:
        table.write(1, [[1, 2, 3, 4, 5]])
        assert table[1].tolist() == [1, 2, 3, 4, 5]


STORED = np.asarray(memoryview(V[:6].tobytes()).cast("B", (6, 20)))


@pytest.mark.parametrize("exporter", that_hold(STORED))
def test_stored_bytes_in_a_buffer(exporter):
    thing, held = EXPORTERS[exporter](STORED)
    table, error = attempt(lambda: embla.Table.over(thing, dtype="f32", dim=5))
    if held is not None and held.ndim == 2 and held.shape[1] == 20 and held.dtype == np.uint8 and table:
        assert np.array_equal(table.lookup(list(range(len(held)))), np.ascontiguousarray(held).view(np.float32))
    if exporter in ("ctypes", "numpy C", "memoryview cast", "mmap"):
        assert table is not None, error


@pytest.mark.parametrize("array", [V.astype(">f4"), V.view("i4").astype("i8"), V.astype("f8"),
                                   np.zeros((3, 5), [("x", "f4")])])
def test_numbers_of_another_size_or_byte_order_are_no_stored_bytes(array):
    with pytest.raises((TypeError, embla.Error)):
        embla.Table.over(array, dtype="f32", dim=5)


def test_dim_must_be_that_of_the_array():
    with pytest.raises(embla.ShapeError, match="dim is 4, but the rows of the array have 5 numbers"):
        embla.Table.over(V, dim=4)
    assert embla.Table.over(V, dim=5).dim == 5


@pytest.mark.parametrize("exporter", that_hold(V[:6]))
def test_words_of_a_buffer(exporter):
    thing, held = EXPORTERS[exporter](V[:6])
    table, error = attempt(lambda: embla.Table.of_words([f"w{i}" for i in range(6)], thing))
    if held is None or held.shape != (6, 5) or held.dtype.kind != "f":
        assert table is None
    elif error is None:
        assert np.array_equal(table["w3"], held[3].astype(np.float32))


# ---- memory that results go to ----

def lookup_into(out, shape, store, encoder):
    return T.lookup(np.arange(int(np.prod(shape[:-1]))).reshape(shape[:-1]), out=out)


def store_into(out, shape, store, encoder):
    return store.lookup(np.arange(int(np.prod(shape[:-1]))).reshape(shape[:-1]), out=out)


def ticket_into(out, shape, store, encoder):
    return store.tickets().submit(np.arange(int(np.prod(shape[:-1]))).reshape(shape[:-1]), out=out).wait()


def encode_into(out, shape, store, encoder):
    texts = ["the cat", "a dog", "the king"]
    return encoder.encode(texts[:shape[0]] if len(shape) == 2 else texts[0], out=out)


def ngram_into(out, shape, store, encoder):
    tokens = 100 + np.arange(int(np.prod(shape[:-1]))).reshape(shape[:-1])
    return NGRAM.rows(tokens, out=out)


WIDE = embla.Encoder(os.path.join(DEMO, "words.vec")).dim
COLUMNS = NGRAM.info()["rows_per_token"]
OUTPUTS = {
    "lookup, one": (lookup_into, (5,), "f4"),
    "lookup (T)": (lookup_into, (3, 5), "f4"),
    "lookup (B, T)": (lookup_into, (2, 3, 5), "f4"),
    "lookup f16": (lookup_into, (3, 5), "f2"),
    "lookup 31 axes": (lookup_into, (1,) * 30 + (5,), "f4"),
    "lookup 32 axes": (lookup_into, (1,) * 31 + (5,), "f4"),
    "store.lookup, one": (store_into, (5,), "f4"),
    "store.lookup": (store_into, (3, 5), "f4"),
    "store.lookup (B, T)": (store_into, (2, 3, 5), "f4"),
    "store.lookup 32 axes": (store_into, (1,) * 31 + (5,), "f4"),
    "tickets.submit": (ticket_into, (3, 5), "f4"),
    "tickets.submit 32 axes": (ticket_into, (1,) * 31 + (5,), "f4"),
    "encode, one": (encode_into, (WIDE,), "f4"),
    "encode": (encode_into, (3, WIDE), "f4"),
    "Ngram.rows": (ngram_into, (3, COLUMNS), "i8"),
    "Ngram.rows (B, T)": (ngram_into, (2, 3, COLUMNS), "i8"),
}


@pytest.mark.parametrize("exporter,name", [(e, n) for n, (_, shape, type) in OUTPUTS.items()
                                           for e in that_hold(np.full(shape, 9, type))])
def test_out_gets_the_result_or_is_refused_and_left_alone(exporter, name, store, encoder):
    call, shape, type = OUTPUTS[name]
    before = np.full(shape, 9, type)
    thing, held = EXPORTERS[exporter](before)
    result, error = attempt(call, thing, shape, store, encoder)
    if error is not None:
        assert exporter not in ("numpy C", "ctypes", "memoryview cast", "mmap"), error
        if isinstance(thing, np.ndarray) and thing.dtype.kind in "fi":
            assert (thing.astype(float) == 9).all()
        return
    assert result is thing
    assert held is not None and held.shape == shape and held.dtype.str[1:] in ("f4", "f2", "i8")
    wanted = call(np.empty(shape, held.dtype), shape, store, encoder)
    assert np.array_equal(np.asarray(thing), wanted)
    if isinstance(thing, np.ndarray) and exporter == "numpy with gaps":
        assert np.count_nonzero(thing.base) <= np.count_nonzero(wanted)  # the gaps are untouched


# ---- shapes at the limit ----

@pytest.mark.parametrize("number", [31, 32, 33, 62, 63, 64])
def test_ids_of_many_axes(number, store):
    ids = memoryview(bytes(8)).cast("q", (1,) * number)
    for call in (T.lookup, store.lookup, lambda x: store.tickets().submit(x).wait()):
        if number < AXES:
            assert call(ids).shape == (1,) * number + (5,)
        else:
            with pytest.raises(ValueError):
                call(ids)


def test_ids_of_many_axes_by_dlpack(store):
    ids = ByDlpack(np.zeros((1,) * AXES, np.int64))
    for call in (T.lookup, store.lookup, store.tickets().submit):
        with pytest.raises(ValueError):
            call(ids)


def test_a_read_only_tensor_is_no_writable_table():
    class ReadOnly(ByDlpack):
        def __dlpack__(self, **named):
            return embla.Table.over(self.a).view().__dlpack__(max_version=(1, 0))

    with pytest.raises(BufferError, match="read-only"):
        embla.Table.over(ReadOnly(V), writable=True)
    assert np.array_equal(embla.Table.over(ReadOnly(V))[3], V[3])


def test_unsigned_ids_of_2_63_and_more_are_out_of_range():
    large = np.array([2**64 - 1], np.uint64)
    for call in (T.lookup, T.embed, T.pool, lambda x: embla.loss(T, V[:1], x),
                 lambda x: NGRAM.rows([7], np.repeat(x, HISTORY))):
        with pytest.raises((IndexError, embla.Error)):
            call(large)


def test_tokens_of_a_table_with_more_than_2_32_rows(tmp_path):
    """A token is an int32: one above is refused, and does not select another row."""
    rows = 2**32 + 32
    with open(tmp_path / "rows", "wb") as file:
        file.truncate(rows)  # zeros, which take no space
        file.seek(13)
        file.write(b"\x07")
    big = embla.Table.over(np.memmap(tmp_path / "rows", np.int8, "r", shape=(rows, 1)))
    assert big.lookup([13, 2**32 + 13]).tolist() == [[7.0], [0.0]]
    for call in (big.embed, big.pool):
        for token in (2**31, 2**32 + 13):
            with pytest.raises(IndexError, match=f"{token} at index 0 is out of range"):
                call([token])
