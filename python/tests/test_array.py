# SPDX-License-Identifier: Apache-2.0
"""Array: what results are without NumPy, and what view() gives with it."""

import pickle
import subprocess
import sys

import numpy as np
import pytest

import embla

NUMBERS = np.random.default_rng(2).standard_normal((7, 5)).astype(np.float32)
VIEW = embla.Table.over(NUMBERS).view()


def without_numpy(code, *arguments):
    """Runs code in a Python that has no NumPy; returns what it prints."""
    code = "import sys; sys.modules['numpy'] = None\nimport embla\n" + code
    done = subprocess.run([sys.executable, "-c", code, *map(str, arguments)], capture_output=True,
                          text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_without_numpy_a_vector_can_be_read_printed_and_iterated(path, numbers):
    printed = without_numpy(
        "t = embla.open(sys.argv[1])\n"
        "v = t['w3']\n"
        "print(v)\n"
        "print(list(v)); print(v[0], v[-1], v[2:4].tolist(), len(v), v.shape)\n"
        "m = t[['w3', 'w1']]\n"
        "print([list(row) for row in m]); print(m[1][2], m[1, 2], m[:, 2].tolist())\n"
        "try: v - m[0]\n"
        "except TypeError as error: print(error)\n", path)
    shown, values, parts, rows, items, hint = printed.splitlines()
    assert shown.startswith("<embla.Array of 12 float32: [") and "install numpy" in shown
    row = numbers[3].tolist()
    assert values == str(row) and rows == str(numbers[[3, 1]].tolist())
    assert parts == f"{row[0]} {row[-1]} {row[2:4]} 12 (12,)"
    assert items == f"{numbers[1, 2]} {numbers[1, 2]} {numbers[[3, 1], 2].tolist()}".replace(
        f"{numbers[1, 2]}", str(float(numbers[1, 2])))
    assert "install NumPy" in hint


KEYS = [0, -1, 6, slice(None), slice(1, 4), slice(None, None, -2), slice(5, 1), slice(9, 20),
        (2, 3), (slice(1, 3), -1), (0, slice(None, None, -1)), (slice(2), slice(1, None, 2)), (),
        np.int64(3)]


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_an_index_selects_what_numpy_selects(key):
    found, expected = VIEW[key], NUMBERS[key]
    if expected.ndim == 0:
        assert type(found) is float and found == expected
    else:
        assert found.shape == expected.shape and found.tolist() == expected.tolist()
        assert np.array_equal(np.asarray(found), expected)


def test_a_wrong_index_says_what_is_possible():
    for key, message in ((7, "index 7 is out of range: axis 0 has the size 7"),
                         (-8, "index -8"), ((0, 5), "axis 0 has the size 5"),
                         ((0, 0, 0), "has 2 axes, but there are 3 indices"), (2**80, "fit")):
        with pytest.raises(IndexError, match=message):
            VIEW[key]
    for key in ("a", 1.5, None, [0, 1], (0, "a"), ...):
        with pytest.raises(TypeError, match="integer or a slice.*numpy.asarray"):
            VIEW[key]
    with pytest.raises(TypeError):
        VIEW[0] = 1


def test_a_part_keeps_its_table_and_is_read_only():
    part = embla.Table.of_words(["a", "b"], NUMBERS[:2]).view()[1][1:3]
    assert part.tolist() == NUMBERS[1, 1:3].tolist()
    assert not np.asarray(VIEW[2]).flags.writeable
    made = embla.Table.create(2, 3)
    np.asarray(made.view()[1])[:] = 7
    assert made[1].tolist() == [7, 7, 7]


@pytest.mark.parametrize("dtype", ["f32", "f64", "f16", "bf16", "i8", "q8_0"])
def test_every_type_of_number_is_given_as_a_number(dtype):
    t = embla.Table.create(2, 32, dtype)
    t.write(0, np.tile(np.arange(32, dtype=np.float32) / 32, (2, 1)))
    view = t.view()
    if dtype in ("i8", "q8_0"):
        assert view.tolist() == np.asarray(view).tolist()
    else:
        assert view[1].tolist() == [i / 32 for i in range(32)] == list(view[1])
    assert " at 0x" not in repr(view)


def test_the_numbers_of_bf16_are_numbers_and_not_bits():
    assert embla.Table.over(NUMBERS).lookup([1], dtype="bf16").tolist()[0] == \
        pytest.approx(NUMBERS[1].tolist(), rel=0.01)


def test_a_long_array_is_shown_by_its_ends():
    shown = repr(embla.Table.create(1000, 100).view())
    assert shown == ("<embla.Array of 1000 x 100 float32: [[0, 0, .., 0, 0], [0, 0, .., 0, 0], .., "
                     "[0, 0, .., 0, 0], [0, 0, .., 0, 0]]>")
    assert repr(VIEW[0][:2]) == f"<embla.Array of 2 float32: [{NUMBERS[0, 0]:.6g}, {NUMBERS[0, 1]:.6g}]>"


def test_numpy_computes_with_a_view():
    assert np.array_equal(VIEW * NUMBERS, NUMBERS * NUMBERS)
    assert np.array_equal(NUMBERS - VIEW, NUMBERS - NUMBERS)
    with pytest.raises(TypeError):
        VIEW + 1
    with pytest.raises(TypeError, match="cannot pickle"):
        pickle.dumps(VIEW)
