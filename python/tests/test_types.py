# SPDX-License-Identifier: Apache-2.0
"""Types: mypy --strict knows what every call gives, and dicts have the keys that they promise."""

import ast
import os
import pathlib
import re
import subprocess
import sys
import types

import numpy as np
import pytest

import embla
from embla import _types
from tour import blocks

HERE = pathlib.Path(__file__).resolve().parent
TOUR = HERE.parents[1] / "docs" / "python.md"
DEMO = os.path.join(os.path.dirname(embla.__file__), "demo")


@pytest.fixture(scope="module")
def checked(tmp_path_factory):
    """A function: what mypy says about a text, line by line."""
    pytest.importorskip("mypy", reason="mypy is not installed")
    folder = tmp_path_factory.mktemp("mypy")
    package = pathlib.Path(embla.__file__).parents[1]
    found = {} if package.name == "site-packages" else {"MYPYPATH": str(package)}  # mypy finds installed ones

    def check(text):
        (folder / "code.py").write_text(text)
        done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "code.py"], capture_output=True,
                              text=True, cwd=folder, env={**os.environ, **found})
        assert done.returncode in (0, 1) and not done.stderr, done.stdout + done.stderr
        return done.stdout.splitlines()

    return check


def test_every_call_has_the_type_that_typed_py_says(checked):
    said = checked((HERE / "typed.py").read_text())
    assert said[-1].startswith("Success"), said


@pytest.mark.skipif(not TOUR.exists(), reason="the document is not here")
def test_no_value_of_the_tour_is_any(checked):
    """Every name that the tour assigns, by reveal_type, except those that NumPy makes."""
    text = blocks(TOUR)
    named = {n for line in re.findall(r"^([a-z_, ]+) = (?!np\.)", text, re.M)
             for n in re.split(r"[, ]+", line) if n}
    assert {"t", "cat", "both", "nearest", "scores", "run", "hasher"} <= named
    said = checked(text + "".join(f"reveal_type({name})\n" for name in sorted(named)))
    assert not [line for line in said if "error" in line and not line.startswith("Found")], said
    shown = [line for line in said if "Revealed type is" in line]
    assert len(shown) == len(named)
    for line in shown:
        kind = re.search(r'Revealed type is "(.*)"', line)[1].replace("tuple[Any, ...]", "shape")
        assert "Any" not in kind, line


WRONG = """import embla
t = embla.open("x")
embla.words("x", dims=3)
embla.train("x", "y", lr=3)
t.near("cat", topn=3)
t.near({})
t.lookup("cat")
t.lookup([1], dtyp="f16")
embla.Encoder("x").encode(3)
t["cat"].nothing
t.eval("x")["nothing"]
"""


def test_wrong_calls_are_errors(checked):
    said = checked(WRONG)
    numbers = {int(m[1]) for line in said if (m := re.match(r"code.py:(\d+): error", line))}
    assert numbers == set(range(3, 12)), said


def promised(name):
    return set(getattr(_types, name).__annotations__)


def test_dicts_have_the_keys_that_their_types_promise(table, tmp_path):
    encoder = embla.Encoder(os.path.join(DEMO, "words.vec"))
    village = embla.Checkpoint(os.path.join(DEMO, "village"))
    sick = embla.Table.over(np.concatenate([table.vectors, table.vectors[:2] * 1.0]))
    (tmp_path / "pairs.txt").write_text("w1 w2 3\nw3 w4 2\nw5 w6 1\n")
    evaluated = table.eval(tmp_path / "pairs.txt")
    account = table.save(tmp_path / "t.gguf")
    diff = table.diff(embla.Table.over(table.vectors + 1))
    zero = np.zeros((6, 12), np.float32)
    zero[:, 0] = 1
    groups = embla.Table.over(np.concatenate([table.vectors, zero + 1e-6 * table.vectors[:6]])).health()
    embla.train(os.path.join(DEMO, "names.txt"), tmp_path / "m", preset="microgpt", steps=1)
    trained = embla._embla.Train.newest(tmp_path / "m" / "checkpoints")
    with embla.Store(village, place="ram") as store:
        found = {"StoreInfo": store.info(), "Verification": store.verify(3)}
    found |= {
        "Facts": embla.facts(), "Tensor": village.tensors()[0], "CheckpointFacts": village.facts(),
        "Tie": village.tie(), "Line": account.lines[0], "Eval": evaluated,
        "EvalPart": evaluated["parts"][0], "Health": sick.health(), "HealthGroup": groups["groups"][0],
        "Spectrum": table.spectrum(), "Diff": diff, "Change": diff["changes"][0],
        "TokenizerInfo": embla.Tokenizer(os.path.join(DEMO, "names")).info(),
        "EncoderInfo": encoder.info(), "IndexInfo": embla.Index(encoder, ["a cat"]).info(),
        "FitReport": encoder.fit(["a cat", "a dog"], tmp_path / "f.fit").fitted,
        "ModelShape": embla.Model(os.path.join(DEMO, "names")).shape(),
        "NgramInfo": embla.Ngram.model("qwen3.8-flash-next").info(), "Cost": embla.cost("gpt2"),
        "PlayPage": embla._embla.play_page(module=b"\x1f\x8b", demo=DEMO),
        "Conversion": embla._embla.Checkpoint.over(table).convert(tmp_path / "u.npy")}
    for name, value in found.items():
        assert set(value) == promised(name), name
    found["Saved"] = embla._embla.Train.saved(trained)
    assert set(found["Saved"]) == promised("Saved")
    typed = {n for n, v in vars(_types).items() if hasattr(v, "__total__")}
    assert typed == set(found)


def arguments(function):
    """The names of a function in C, which its message for an unknown one lists; None if it has none."""
    try:
        function(qqqqqq=1)
    except TypeError as error:
        found = re.search(r"has no argument 'qqqqqq'; it has (.*)$", str(error))
        return None if found is None else found[1].split(", ")
    raise AssertionError(f"{function} took an argument that does not exist")


def test_the_stub_has_the_arguments_of_the_module(table):
    """_embla.pyi is written by hand: its names are those of the C module, in the same order."""
    names = os.path.join(DEMO, "names")
    encoder, store = embla.Encoder(os.path.join(DEMO, "words.vec")), embla.Store(os.path.join(DEMO, "village"))
    tickets = store.tickets()
    objects = [table, table.words, table.view(), embla.Checkpoint(names), embla.Tokenizer(names), encoder,
               embla.Tokenizer(names).stream(),
               embla.Index(encoder, ["a cat"]), embla.Model(names), embla.Ngram.model("qwen3.8-flash-next"),
               store, tickets, embla.Scatter(2, 2), embla.Optim(embla.Table.create(2, 2)),
               embla._embla.Train(os.path.join(DEMO, "names.txt"), "microgpt"),
               embla._embla.Wordvec(os.path.join(DEMO, "village.txt"))]
    stub = ast.parse((pathlib.Path(embla.__file__).parent / "_embla.pyi").read_text())
    compared = 0
    for node in ast.walk(stub):
        for item in getattr(node, "body", []) if isinstance(node, (ast.ClassDef, ast.Module)) else []:
            if not isinstance(item, ast.FunctionDef):
                continue
            written = [a.arg for a in item.args.posonlyargs + item.args.args + item.args.kwonlyargs]
            if isinstance(node, ast.Module):
                real = arguments(getattr(embla._embla, item.name))
            else:
                kind, written = getattr(embla._embla, node.name), written[1:]
                owner = next((o for o in objects if isinstance(o, kind)), None)
                method = getattr(kind, item.name, None)  # __buffer__ is a method from 3.12 on
                if item.name == "__new__":
                    real = arguments(kind)
                elif owner is None or method is None:
                    continue
                elif isinstance(method, types.BuiltinMethodType):
                    real = arguments(method)  # a class method
                else:
                    real = arguments(method.__get__(owner))
            if real is not None:
                assert written == real, (getattr(node, "name", ""), item.name)
                compared += 1
    assert compared > 50
