# SPDX-License-Identifier: Apache-2.0
"""Lookups: every kind of ids and of output, against NumPy's own indexing."""

import array
import gc
import os

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as hnp

import embla

DTYPES = ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"]
V = np.random.default_rng(7).standard_normal((100, 5)).astype(np.float32)
T = embla.Table.over(V)


@settings(deadline=None, max_examples=200)
@given(st.sampled_from(DTYPES), hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=6),
       st.data())
def test_lookup_equals_numpy_indexing_for_every_dtype_shape_and_stride(kind, shape, draw):
    ids = draw.draw(hnp.arrays(kind, shape, elements=st.integers(0, 99)))
    for axis in range(ids.ndim):
        step = draw.draw(st.sampled_from([1, -1, 2, -2]))
        ids = ids[(slice(None),) * axis + (slice(None, None, step),)]
    if draw.draw(st.booleans()):
        ids = ids.T
    if draw.draw(st.booleans()):
        ids.flags.writeable = False
    found = T.lookup(ids)
    assert found.shape == ids.shape + (5,)
    assert found.dtype == np.float32
    assert np.array_equal(found, V[ids])


@settings(deadline=None, max_examples=100)
@given(st.lists(st.integers(-2**70, 2**70), max_size=5))
def test_an_id_is_found_or_an_index_error(ids):
    if all(0 <= i < 100 for i in ids):
        assert np.array_equal(T.lookup(ids), V[np.array(ids, dtype=np.int64)])
    else:
        with pytest.raises(IndexError) as caught:
            T.lookup(ids)
        assert isinstance(caught.value, embla.RangeError)


@settings(deadline=None)
@given(st.recursive(st.one_of(st.none(), st.integers(), st.floats(), st.text(), st.binary()),
                    lambda x: st.lists(x, max_size=4) | st.tuples(x, x), max_leaves=12))
def test_whatever_is_looked_up_the_interpreter_lives(thing):
    for call in (T.lookup, T.embed, T.near, T.compare.__get__(T).__call__, T.__getitem__,
                 T.__contains__, T.id):
        try:
            call(thing)
        except (TypeError, ValueError, LookupError, OverflowError, NotImplementedError,
                MemoryError, BufferError):
            pass


def test_ids_may_be_any_buffer_or_a_list():
    expected = V[[3, 1]]
    for ids in ([3, 1], (3, 1), array.array("q", [3, 1]), array.array("i", [3, 1]),
                memoryview(array.array("h", [3, 1])), bytearray([3, 1]), np.array([3, 1])[::1],
                [np.int32(3), np.int64(1)]):
        assert np.array_equal(T.lookup(ids), expected)
    assert np.array_equal(T.lookup(np.int64(3)), V[3])
    assert np.array_equal(T.lookup(np.array(3)), V[3])
    assert np.array_equal(T[3], V[3])
    assert np.array_equal(T[2:9:3], V[2:9:3])
    assert T.lookup([]).shape == (0, 5)


class Producer:
    """An object with __dlpack__ alone, as a torch tensor of older versions."""

    def __init__(self, a, versioned=True):
        self.a, self.versioned = a, versioned

    def __dlpack__(self, **named):
        if named and not self.versioned:
            raise TypeError("no max_version")
        return self.a.__dlpack__()

    def __dlpack_device__(self):
        return self.a.__dlpack_device__()


@pytest.mark.parametrize("versioned", [True, False])
def test_ids_and_vectors_may_come_by_dlpack(versioned):
    ids = np.array([[3, 1], [2, 0]])
    assert np.array_equal(T.lookup(Producer(ids, versioned)), V[ids])
    assert np.array_equal(T.lookup(Producer(ids.T, versioned)), V[ids.T])
    ids, scores = T.near(Producer(V[:2].copy(), versioned), 1)
    assert ids.tolist() == [[0], [1]]
    made = embla.Table.over(Producer(V.copy(), versioned))
    gc.collect()
    assert np.array_equal(made[5], V[5])


def test_results_go_out_by_dlpack_and_as_buffers():
    view = T.view()
    assert view.shape == (100, 5) and view.dtype == "float32" and len(view) == 100
    if np.lib.NumpyVersion(np.__version__) >= "2.1.0":
        assert np.array_equal(np.from_dlpack(view), V)
    else:  # it does not know DLPack 1.0, which can say that an array is read-only
        with pytest.raises(BufferError, match="read-only"):
            np.from_dlpack(view)
    assert not np.asarray(view).flags.writeable
    assert np.shares_memory(np.asarray(view), V)
    with pytest.raises(BufferError):
        view.__dlpack__()  # before DLPack 1.0 nothing says that it is read-only
    writable = embla.Table.create(4, 3).view()
    assert np.from_dlpack(writable).shape == (4, 3)
    capsule = writable.__dlpack__()
    del capsule, writable
    gc.collect()
    assert view.tolist()[0] == V[0].tolist()


def test_a_view_outlives_its_table(path, numbers):
    t = embla.open(path)
    view = np.asarray(t.view())
    del t
    gc.collect()
    assert np.array_equal(view, numbers)


def test_out_is_used_and_returned():
    out = np.empty((2, 5), np.float32)
    assert T.lookup([3, 1], out) is out
    assert np.array_equal(out, V[[3, 1]])
    wide = np.zeros((2, 9), np.float32)
    T.lookup([3, 1], out=wide[:, 2:7])
    assert np.array_equal(wide[:, 2:7], V[[3, 1]]) and not wide[:, :2].any()
    half = np.empty((2, 5), np.float16)
    T.lookup([3, 1], out=half)
    assert np.array_equal(half, V[[3, 1]].astype(np.float16))
    one = bytearray(20)
    T.lookup(3, out=memoryview(one).cast("f"))
    assert bytes(one) == V[3].tobytes()


@pytest.mark.parametrize("out", [
    np.empty((2, 4), np.float32), np.empty((3, 5), np.float32), np.empty(10, np.float32),
    np.empty((5, 2), np.float32).T, np.empty((2, 10), np.float32)[:, ::2],
    np.empty((4, 5), np.float32)[::-2]])
def test_out_of_another_shape_is_a_shape_error(out):
    with pytest.raises(embla.ShapeError):
        T.lookup([3, 1], out=out)


def test_out_must_be_writable_floats():
    fixed = np.empty((2, 5), np.float32)
    fixed.flags.writeable = False
    with pytest.raises((ValueError, BufferError)):
        T.lookup([3, 1], out=fixed)
    with pytest.raises(TypeError):
        T.lookup([3, 1], out=np.empty((2, 5), np.int32))
    with pytest.raises(TypeError):
        T.lookup([3, 1], out=bytearray(40))
    with pytest.raises(TypeError):
        T.lookup([3, 1], out=7)


def test_a_failed_lookup_leaves_out_untouched():
    out = np.full((2, 5), 9, np.float32)
    with pytest.raises(IndexError, match="row 100 at index 1 is out of range: the table has 100"):
        T.lookup([3, 100], out=out)
    assert (out == 9).all()


@pytest.mark.parametrize("ids", ["3", 1.5, [1.5], None, {}, object(), np.array([1.0]),
                                 np.array([True]), np.array(["a"]), [[1], [2, 3]], [[1], 2],
                                 np.array([1], dtype=">i4")])
def test_ids_that_are_no_integers_are_refused(ids):
    with pytest.raises((TypeError, ValueError)):
        T.lookup(ids)


def test_wrong_calls_are_type_errors():
    for call in (lambda: T.lookup(), lambda: T.lookup(1, None, 3), lambda: T.lookup(1, nope=2),
                 lambda: T.lookup(1, ids=2), lambda: embla._embla.Table(),
                 lambda: embla.Array(), lambda: embla.Table(), lambda: embla.open(None),
                 lambda: embla.open(3)):
        with pytest.raises(TypeError):
            call()
    with pytest.raises(ValueError):
        T.lookup([1], threads=-1)
    with pytest.raises(ValueError):
        embla.Table.create(4, 2**80)
    with pytest.raises(embla.ArgumentError):
        embla.Table.create(-1, 4)
    with pytest.raises(embla.ArgumentError, match="dtype"):
        embla.Table.create(4, 4, "f33")


@pytest.mark.parametrize("dtype", embla.dtypes())
def test_every_dtype_is_written_and_read_or_refused(dtype):
    rows = np.random.default_rng(3).standard_normal((4, 256)).astype(np.float32)
    t = embla.Table.create(4, 256, dtype)
    try:
        t.write(0, rows)
    except embla.UnsupportedError:
        assert dtype in ("q3_k", "q4_k", "q5_k", "q6_k", "iq4_xs")
        return
    found = t.lookup([0, 1, 2, 3])
    assert np.corrcoef(found.ravel(), rows.ravel())[0, 1] > 0.6
    view = t.view()
    again = embla.Table.over(memoryview(view).cast("B").cast("B", (4, t.row_bytes)) if dtype not in
                             ("f32", "f64", "f16", "bf16", "i8") else np.asarray(view),
                             dtype=dtype, dim=256)
    assert np.array_equal(again.lookup([0, 1, 2, 3]), found)


def test_a_table_over_an_array_shares_its_memory():
    a = np.zeros((3, 4), np.float32)
    t = embla.Table.over(a, writable=True)
    a[1] = 7
    assert (t[1] == 7).all()
    t.write(2, [[1, 2, 3, 4]])
    assert a[2].tolist() == [1, 2, 3, 4]
    t.init(seed=3)
    assert a.any()
    strided = np.arange(24, dtype=np.float32).reshape(6, 4)[::2]
    assert np.array_equal(embla.Table.over(strided).lookup([0, 1, 2]), strided)
    with pytest.raises(BufferError):
        bytearray_table = bytearray(16)
        held = embla.Table.over(memoryview(bytearray_table).cast("f", (2, 2)))
        bytearray_table.extend(b"1")  # its memory is in use
        del held


@pytest.mark.parametrize("a", [np.zeros(4, np.float32), np.zeros((2, 2, 2), np.float32),
                               np.zeros((0, 4), np.float32), np.zeros((4, 4), np.float32).T[:, ::2],
                               np.zeros((4, 4), np.int64), np.zeros((4, 4), np.complex64),
                               np.zeros((4, 4), np.float32)[::-1], "text", None, 3])
def test_other_arrays_are_no_tables(a):
    with pytest.raises((TypeError, ValueError)):
        embla.Table.over(a)


def test_a_read_only_table_refuses_writing(path):
    with pytest.raises(embla.Error):
        embla.open(path).write(0, np.zeros((1, 12), np.float32))
    with pytest.raises(embla.Error):
        embla.open(path).init()
    with pytest.raises(embla.RangeError):
        embla.Table.create(2, 2).write(1, np.zeros((2, 2), np.float32))


@pytest.mark.parametrize("end", ["safetensors", "npy", "gguf", "vec", "txt", "vec writable"])
def test_a_table_of_a_file_is_read_only_whatever_its_format(end, table, numbers, tmp_path):
    file = tmp_path / f"t.{end.split()[0]}"
    table.save(file)
    if end.endswith("writable"):
        file.chmod(0o666)  # a file that everyone may write to is copied
    before = file.read_bytes()
    t = embla.open(file)
    view = t.view()
    assert not np.asarray(view).flags.writeable and memoryview(view).readonly
    assert not t.vectors.flags.writeable
    with pytest.raises(BufferError):
        view.__dlpack__()  # before DLPack 1.0 nothing says that it is read-only
    for change in (lambda: t.write(0, numbers[:1]), t.init, lambda: embla.Optim(t)):
        with pytest.raises(embla.ArgumentError, match="read-only"):
            change()
    assert t.sketch() > 0  # its rows cannot change
    mine = embla.open(file, copy=True)
    np.asarray(mine.view())[3] = 7
    mine.write(4, numbers[:1])
    assert (mine[3] == 7).all() and np.array_equal(mine[4], numbers[0]) and file.read_bytes() == before


def test_the_table_of_a_model_is_read_only():
    t = embla.Model(os.path.join(os.path.dirname(embla.__file__), "demo", "names")).table
    assert not np.asarray(t.view()).flags.writeable
    with pytest.raises(embla.ArgumentError, match="read-only"):
        t.write(0, t.lookup([0]))


def test_embed_adds_positions():
    positions = embla.Table.over(embla.sinusoid(16, 5 + 1)[:, :5].copy())
    found = T.embed([[1, 2], [3, 4]], positions, first=2, scale=2.0)
    p = np.asarray(positions.view())
    assert np.allclose(found, V[[[1, 2], [3, 4]]] * 2 + p[2:4], atol=1e-6)
    assert np.array_equal(T.embed([1, 2]), V[[1, 2]])
    for wrong in ([[[1]]], 3):
        with pytest.raises(embla.ShapeError):
            T.embed(wrong)
    with pytest.raises(IndexError):
        T.embed([1, 100])
    with pytest.raises(TypeError):
        T.embed([1], positions=3)
    with pytest.raises(embla.ShapeError):
        T.embed([1], embla.Table.create(4, 6))


def test_results_in_half_precision():
    assert T.lookup([1], dtype="f16").dtype == np.float16
    assert T.lookup([1], dtype="bf16").dtype == "bfloat16"
    with pytest.raises(embla.Error):
        T.lookup([1], dtype="q4_0")


def test_pool_and_sinusoid():
    assert np.allclose(embla.pool(V[:4]), V[:4].mean(0), atol=1e-6)
    assert np.allclose(embla.pool(V[:4].reshape(2, 2, 5), "sum"), V[:4].reshape(2, 2, 5).sum(1),
                       atol=1e-6)
    assert np.allclose(embla.pool(V[:4], "max"), V[:4].max(0))
    assert np.allclose(np.linalg.norm(embla.pool(V[:4], normalize=True)), 1, atol=1e-6)
    with pytest.raises(embla.ArgumentError, match="mean, sum, max, last"):
        embla.pool(V[:4], "median")
    with pytest.raises(embla.ShapeError):
        embla.pool(V[0])
    assert embla.sinusoid(2, 4)[0].tolist() == [0, 1, 0, 1]


def test_pool_of_rows():
    ids = np.array([[0, 2, 2], [1, 3, 0]])
    for kind in ("mean", "sum", "max", "last"):
        assert np.array_equal(T.pool(ids, kind), embla.pool(T.lookup(ids), kind))
        assert np.array_equal(T.pool(ids[1], kind), embla.pool(T.lookup(ids[1]), kind))
    assert np.allclose(np.linalg.norm(T.pool(ids, normalize=True), axis=1), 1, atol=1e-6)
    assert not T.pool([]).any() and T.pool([]).shape == (T.dim,)
    with pytest.raises(IndexError):
        T.pool([0, T.rows])
    with pytest.raises(embla.ShapeError, match="1 axes|0 axes|3 axes"):
        T.pool(ids[None])
    with pytest.raises(embla.ArgumentError, match="mean, sum, max, last"):
        T.pool(ids, "median")


def test_facts_of_a_table():
    assert (T.rows, T.dim, T.tokens, T.dtype, T.placement, T.row_bytes, T.scale) == \
        (100, 5, 100, "f32", "view", 20, 1.0)
    assert len(T) == 100 and T.words is None and 99 in T and 100 not in T and "a" not in T
    with pytest.raises(AttributeError):
        T.rows = 3
    assert repr(T) == "<embla.Table of 100 x 5 f32>"
