# SPDX-License-Identifier: Apache-2.0
"""Films: pages that show how rows move in a training."""

import base64
import json
import os
import re

import numpy as np
import pytest

import embla

DEMO = os.path.join(os.path.dirname(__file__), "../../demo")
NAMES, VILLAGE = os.path.join(DEMO, "names.txt"), os.path.join(DEMO, "village.txt")


def film_of(path):
    with open(path, encoding="utf-8") as file:
        page = file.read()
    assert not re.search(r"https?:| src=", page) and len(page) < 400_000
    found = re.search(r'id="data-film">([^<]*)</script>', page)
    assert found
    return json.loads(base64.b64decode(found[1]))


def test_a_training_has_a_film(tmp_path):
    path = tmp_path / "letters.html"
    run = embla.train(NAMES, tmp_path / "m", preset="microgpt", steps=60, film=path, progress=False)
    film = film_of(path)
    assert [moment[0] for moment in film["moments"]] == list(range(61))
    assert film["rows"] == 27 and film["words"][:2] == ["a", "b"] and film["title"] == "names.txt"
    assert [text[0] for text in film["texts"]] == list(range(0, 61, 15))
    for _, text in film["texts"]:
        assert 1 <= text.count("\n") + 1 <= 3 and re.fullmatch("[a-z\n]+", text)
    assert len({text for _, text in film["texts"]}) > 2
    assert film["guess"] == pytest.approx(3.2958, abs=1e-3)
    assert run.film is not None and repr(run.film) == f"Film({os.fspath(path)!r})"
    assert run.film._repr_html_().startswith("<iframe sandbox=") and "</script>" not in run.film._repr_html_()
    assert embla.Film(path).path == os.fspath(path)


def test_a_film_of_what_was_seen(tmp_path):
    path = tmp_path / "short.html"
    run = embla.train(NAMES, tmp_path / "m", preset="microgpt", steps=100_000, film=path,
                      progress=lambda report: report.step < 20)
    assert film_of(path)["moments"][-1][0] == run.steps == 21
    again = tmp_path / "again.html"
    embla.train(out=tmp_path / "m", resume=True, steps=30, film=again, progress=False)
    assert [film_of(again)["moments"][i][0] for i in (0, -1)] == [21, 30]


def test_texts_and_rows_have_their_words(tmp_path):
    path = tmp_path / "village.html"
    embla.train(VILLAGE, tmp_path / "m", preset="microgpt", unit="words", words=300, steps=15,
                film=path, progress=False)
    film = film_of(path)
    assert {"cat", "king"} <= set(film["words"]) and len(film["words"]) == film["rows"] == 300
    assert set(film["texts"][-1][1].split()) <= set(film["words"])


@pytest.mark.parametrize("letters", ["abcdef", "abc\n"])
def test_a_text_without_documents_has_texts(tmp_path, letters):
    source = tmp_path / "text.txt"
    source.write_text(letters * 200)
    path = tmp_path / "stream.html"
    embla.train(source, tmp_path / "m", dim=16, heads=2, layers=1, length=8, batch=2, steps=2, film=path,
                progress=False)
    texts = film_of(path)["texts"]
    assert [text[0] for text in texts] == [0, 2] and set("".join(text for _, text in texts)) <= set(letters)


def test_a_film_of_numbers_has_numbers(tmp_path):
    tokens = tmp_path / "tokens.npy"
    np.save(tokens, np.random.default_rng(1).integers(0, 30, 3000).astype(np.uint16))
    path = tmp_path / "numbers.html"
    embla.train(tokens, tmp_path / "m", preset="microgpt", unit="tokens", steps=3, film=path,
                progress=False)
    film = film_of(path)
    assert all(re.fullmatch("[0-9 ]+", text) for _, text in film["texts"]) and film["texts"]


def test_words_have_a_film(tmp_path):
    path = tmp_path / "words.html"
    embla.words(VILLAGE, dim=8, epochs=1, clean="words", film=path, progress=False)
    film = film_of(path)
    assert 50 < film["rows"] <= 300 and "cat" in film["words"]
    assert len(film["moments"]) > 1 and film["texts"] == []


def test_names_of_films_are_checked_before_the_training(tmp_path):
    there = tmp_path / "there.html"
    there.write_text("kept")
    for film, text in ((there, "already exists"), (tmp_path / "x.svg", "must end in .html"),
                       (tmp_path / "none" / "x.html", "does not exist")):
        with pytest.raises(embla.ArgumentError, match=text):
            embla.train(NAMES, tmp_path / "m", preset="microgpt", steps=1, film=film)
        with pytest.raises(embla.ArgumentError, match=text):
            embla.words(VILLAGE, film=film)
    assert there.read_text() == "kept" and not (tmp_path / "m").exists()
