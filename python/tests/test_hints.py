# SPDX-License-Identifier: Apache-2.0
"""The first hour: messages that name what helps, reprs without addresses, completion of keys."""

import array
import ast
import inspect
import os
import pathlib
import re

import numpy as np
import pytest

import embla
import embla.rag
from embla import _hints

DEMO = os.path.join(os.path.dirname(embla.__file__), "demo")
WORDS = os.path.join(DEMO, "words.vec")


@pytest.mark.parametrize("given", [np.zeros((3, 4), np.float32), [[1.0, 2.0]],
                                   array.array("f", [1, 2]), memoryview(b"1234"),
                                   embla.Table.create(2, 2).view()], ids=lambda x: type(x).__name__)
@pytest.mark.parametrize("call", [embla.Table, embla.open, embla.Checkpoint])
def test_an_array_in_place_of_a_path_names_table_over(call, given):
    with pytest.raises(TypeError, match=r"opens a file.*Table\.over\(array\)"):
        call(given)


@pytest.mark.parametrize("given", [3, None, object(), embla.Table.create(2, 2)])
def test_what_is_no_path_is_a_type_error(given):
    with pytest.raises(TypeError, match="path must be a str or os.PathLike, not "):
        embla.open(given)


TABLE = embla.open(WORDS)
WRONG = [
    (lambda: embla.words("x", dims=3), "words() has no argument 'dims'; did you mean dim?"),
    (lambda: embla.words("x", vector_size=3), "words() has no argument 'vector_size'; did you mean dim?"),
    (lambda: embla.words("x", workers=3), "did you mean threads?"),
    (lambda: embla.words("x", negative=3), "did you mean negatives?"),
    (lambda: embla.words("x", minn=3), "did you mean min_gram?"),
    (lambda: embla.words(sentences=[]), "did you mean text?"),
    (lambda: embla.train("x", "y", lr=1), "train() has no argument 'lr'; did you mean rate?"),
    (lambda: embla.train("x", "y", n_layer=1), "did you mean layers?"),
    (lambda: embla.train("x", output_dir="y"), "did you mean out?"),
    (lambda: TABLE.near("cat", topn=3), "near() has no argument 'topn'; did you mean top?"),
    (lambda: TABLE.near("cat", metric="dot"), "did you mean measure?"),
    (lambda: TABLE.analogy(positive=["a"]), "did you mean plus?"),
    (lambda: TABLE.analogy(["a"], negative=["b"]), "did you mean minus?"),
    (lambda: TABLE.lookup([1], dtyp="f16"), "lookup() has no argument 'dtyp'; did you mean dtype?"),
    (lambda: TABLE.lookup([1], num_threads=1), "did you mean threads?"),
    (lambda: TABLE.save("x", force=True), "save() has no argument 'force'; did you mean overwrite?"),
    (lambda: embla.open(WORDS, mmap=True), "open() has no argument 'mmap'; did you mean copy?"),
    (lambda: embla.Encoder(WORDS, fitt="x"), "Encoder() has no argument 'fitt'; did you mean fit?"),
    (lambda: embla.Encoder(WORDS).encode("x", max_length=3), "did you mean max_tokens?"),
    (lambda: embla.Encoder(WORDS).encode("x", normalize_embeddings=True), "did you mean normalize?"),
    (lambda: embla.Tokenizer(os.path.join(DEMO, "names")).encode("x", add_special_tokens=True),
     "did you mean special?"),
    (lambda: embla.Model(os.path.join(DEMO, "names")).generate(max_new_tokens=3), "did you mean tokens?"),
    (lambda: embla.Store(WORDS, placement="ram"), "Store() has no argument 'placement'; did you mean place?"),
    (lambda: embla.cost(d_model=3), "cost() has no argument 'd_model'; did you mean dim?"),
    (lambda: embla.Optim(TABLE, weight_decay=1), "did you mean decay?"),
    (lambda: embla.Table.create(2, 2, zzz=1), "create() has no argument 'zzz'; it has rows, dim, dtype, scale"),
    (lambda: embla.rag.Embeddings(WORDS, max_length=3), "Embeddings() has no argument 'max_length'; did you mean max_tokens?"),
    (lambda: embla.doctor(WORDS, strikt=True), "doctor() has no argument 'strikt'; did you mean strict?"),
]


@pytest.mark.parametrize("call, message", WRONG, ids=lambda x: x if isinstance(x, str) else "")
def test_an_unknown_argument_names_the_one_that_is_meant(call, message):
    with pytest.raises(TypeError, match=re.escape(message)):
        call()


def test_foreign_names_lead_to_arguments_that_exist():
    known = set()
    for file in pathlib.Path(embla.__file__).parent.glob("*.py*"):
        for node in ast.walk(ast.parse(file.read_text()) if file.suffix in (".py", ".pyi") else ast.Module()):
            if isinstance(node, ast.arguments):
                known |= {a.arg for a in node.args + node.kwonlyargs}
    for name, meant in _hints.FOREIGN.items():
        assert set(meant) <= known, (name, set(meant) - known)


def test_signatures_are_shown_as_they_are_written():
    assert "dim: 'int' = 100" in str(inspect.signature(embla.words))
    assert "options" not in inspect.signature(embla.train).parameters
    assert list(inspect.signature(embla.Table.near).parameters)[:3] == ["self", "query", "top"]


def test_no_repr_prints_an_address(tmp_path):
    t = embla.Table.create(4, 3)
    encoder = embla.Encoder(WORDS)
    with embla.Store(os.path.join(DEMO, "village"), place="direct") as store:
        tickets = store.tickets()
        ticket = tickets.submit([0, 1])
        model = embla.Model(os.path.join(DEMO, "names"))
        things = [t, t.view(), TABLE, TABLE.words, TABLE.checkpoint, TABLE.near("cat", 2), encoder,
                  embla.Checkpoint.over(t), embla.Tokenizer(os.path.join(DEMO, "names")), model, model.table,
                  embla.Tokenizer(os.path.join(DEMO, "names")).stream(),
                  embla.Index(encoder, ["a cat"]), embla.Ngram.model("qwen3.8-flash-next"), store,
                  tickets, ticket, embla.Scatter(4, 2), embla.Optim(t), embla.doctor(WORDS),
                  model.predict("em", 2), embla.Film("film.html"), embla.Page(b"", rows=1, of=1, model=False, stored=""), TABLE.compare("cat", "dog"),
                      embla.Table.of_words(["a"], [[1.0, 2.0]]).words]
        made = {type(thing) for thing in things}
        shown = [repr(thing) for thing in things]
        assert repr(ticket) == "<embla.Ticket, under way>"
        ticket.wait()
        assert repr(ticket) == "<embla.Ticket, done>"
        assert repr(store) == "<embla.Store of 2,056 x 8 f32, direct>"
        assert repr(tickets) == f"<embla.Tickets of {store!r}>"
        del ticket, tickets, things
    assert repr(store) == "<embla.Store, closed>"
    for text in shown:
        assert " at 0x" not in text and "object" not in text, text
    classes = {c for c in vars(embla).values() if isinstance(c, type) and not issubclass(c, Exception)}
    tuples = {c for c in classes if issubclass(c, tuple)}  # their repr is the one of tuples
    assert classes - tuples <= made, classes - tuples - made


def test_keys_are_completed_in_a_notebook():
    assert "cat" in TABLE._ipython_key_completions_() and "cat" in TABLE.words._ipython_key_completions_()
    assert embla.Table.create(2, 2)._ipython_key_completions_() == []
    completer = pytest.importorskip("IPython.core.completer")
    found = completer.match_dict_keys(TABLE._ipython_key_completions_(), '"ki', " '\"")
    assert "king" in "".join(map(str, found))


def test_words_can_be_sliced(table, names):
    assert table.words[:3] == names[:3] and table.words[-2:] == names[-2:]
    assert table.words[190:400:5] == names[190:400:5]


def test_numbers_of_numpy_are_row_numbers(table):
    one = np.int64(3)
    assert one in table and np.int32(200) not in table and 1.5 not in table
    assert table.near(one, 3) == table.near(3, 3) and table.compare(one, 4) == table.compare(3, 4)


def test_messages_of_the_program_speak_of_arguments_and_not_of_options(table, tmp_path):
    (tmp_path / "exists.html").write_text("mine")
    wrong = [("m.unknown", {}, "path: the extension of .* is none of map.s formats.*or format"), ("m", {}, "path"),
             ("exists.html", {}, "overwrite=True"), ("none/m.html", {}, "folder"),
             ("m.html", {"words": ["zzz"]}, "unknown word 'zzz'"),
             ("m.html", {"size": (800, 600)}, "size needs a picture"),
             ("m.svg", {"size": (3, 4)}, "size"), ("m.html", {"layout": "umap"}, "layout"),
             ("m.html", {"color": "red"}, "color"), ("m.html", {"rows": -1}, "rows"),
             ("m.html", {"neighbours": -1}, "neighbours"), ("m.html", {"only": True}, "only"),
             ("m.html", {"layout": "arrows"}, "arrows"), ("m.html", {"format": "pdf"}, "format")]
    for name, options, message in wrong:
        with pytest.raises(embla.ArgumentError, match=message) as caught:
            table.map(tmp_path / name, **options)
        assert "--" not in str(caught.value) and "embla help" not in str(caught.value), caught.value
    assert (tmp_path / "exists.html").read_text() == "mine"
    with pytest.raises(TypeError, match="map.. has no argument 'colour'; did you mean color"):
        table.map("m.html", colour="row")


def test_a_map_has_what_was_asked_for(table, tmp_path):
    table.map(tmp_path / "m.svg", words=["w3", 5], arrows=[("w1", "w2")], title="My map",
              size=(700, 500), layout="arrows", theme="dark", only=True)
    text = (tmp_path / "m.svg").read_text()
    assert "My map" in text and "w3" in text and "w5" in text and "w9" not in text
    table.map(tmp_path / "m.svg", overwrite=True, rows=50, color="norm")
    assert (tmp_path / "m.svg").read_text() != text


def test_a_table_of_another_tensor_is_the_one_that_is_saved_and_drawn(tmp_path):
    village = os.path.join(DEMO, "village")
    c = embla.Checkpoint(village)
    name = next(x["name"] for x in c.tensors() if len(x["shape"]) == 2 and x["role"] != "tokens")
    t = c.table(name)
    t.save(tmp_path / "t.npy")
    assert np.array_equal(np.load(tmp_path / "t.npy"), t.vectors)
    t.map(tmp_path / "t.svg")
    assert f"{t.rows:,}" in (tmp_path / "t.svg").read_text()


def test_numbers_without_a_type_name_the_argument_of_python(tmp_path):
    np.save(tmp_path / "t.npy", np.zeros((3, 4), np.dtype("V2")))
    with pytest.raises(embla.UnsupportedError, match="npy_dtype='bf16'"):
        embla.open(tmp_path / "t.npy")
    t = embla.open(tmp_path / "t.npy", npy_dtype="bf16")
    assert t.dtype == "bf16"
    t.map(tmp_path / "t.html")


def test_errors_name_arguments_of_python_and_no_temporary_file(table, tmp_path):
    village = os.path.join(DEMO, "village.txt")
    for options, message in (({"min_count": -1}, "min_count is -1"), ({"max_words": -4}, "max_words is -4"),
                             ({"min_gram": 5, "max_gram": 3}, "min_gram is 5"),
                             ({"min_gram": 5, "max_gram": 30}, "max_gram is 30")):
        with pytest.raises(embla.ArgumentError, match=f"^{message}; it must be"):
            embla.words(village, **options)
    with pytest.raises(embla.ShapeError, match="^the list of sentences has 3 words"):
        embla.words([["a", "b", "c"]], min_count=7)
    with pytest.raises(embla.ShapeError, match="^the list of texts: none of its 1 lines"):
        embla.Index(embla.Encoder(WORDS), ["zzz"])
    with pytest.raises(embla.ArgumentError, match="^max_communities is 10000; the maximum is"):
        table.layout(max_communities=10000, steps=1)
    with pytest.raises(embla.ArgumentError, match="^first is 3, but .* positions"):
        table.embed([1], first=3)


@pytest.mark.parametrize("name", ["rate", "final_rate", "dropout", "clip", "decay", "validation"])
@pytest.mark.parametrize("value", [-0.5, float("nan")])
def test_a_training_does_not_ignore_a_wrong_number(name, value, tmp_path):
    with pytest.raises(embla.ArgumentError, match=f"{name} is {value}; it must be 0 or greater"):
        embla.train(os.path.join(DEMO, "names.txt"), tmp_path / "m", preset="microgpt", steps=1, **{name: value})
    with pytest.raises(embla.ArgumentError, match="warm_up is -3"):
        embla.train(os.path.join(DEMO, "names.txt"), tmp_path / "m", steps=1, warm_up=-3)
    assert not (tmp_path / "m").exists()
