#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""gensim beside `embla near`, `analogy` and `eval`, on 50,000 words of GloVe.

    near_gensim.py EMBLA

The ten neighbours of 200 words; analogies by sum and by product; a sixth of Google's
questions by section, among all words and among the first 10,000; every file of pairs. The
same answers, scores to 1e-5. Exits 77 where there is no gensim or no data.
"""
import glob
import logging
import os
import sys
import tempfile

os.environ.setdefault("OMP_WAIT_POLICY", "passive")
sys.dont_write_bytecode = True  # beside common.py

from common import answer, data, glove, near, same_list, skip

try:
    import numpy
    from gensim.models import KeyedVectors
except ImportError:
    skip("there is no module gensim: nothing is compared")

TOP = 10
ANALOGIES = [("king", "man", "woman"), ("paris", "france", "germany"),
             ("bigger", "big", "small"), ("walking", "walk", "swim"),
             ("brother", "sister", "daughter"), ("madrid", "spain", "italy"),
             ("euro", "europe", "japan"), ("quickly", "quick", "slow"),
             ("tokyo", "japan", "china"), ("better", "good", "bad"),
             ("einstein", "physics", "painting"), ("windows", "microsoft", "google")]
tried = 0


def count(right, *what):
    global tried
    assert right, what
    tried += 1


def listed(neighbours):
    return [(one["token"], one["score"]) for one in neighbours]


def check_near(embla, path, model):
    """Frequent words and rare ones; some of them are not ASCII or hold digits and points."""
    random = numpy.random.default_rng(3)
    numbers = sorted(set(range(20)) | set(map(int, random.choice(50000, 180, replace=False))))
    words = [model.index_to_key[number] for number in numbers]
    asked = "".join("\\%s\n" % word if word[0] in "#-\\" else word + "\n" for word in words)
    found = answer(embla, "near", path, "-", "--top", str(TOP), text=asked.encode())
    assert found["rows"] == 50000 and found["nonfinite"] == 0
    assert len(found["queries"]) == len(words)
    for word, query in zip(words, found["queries"]):
        assert query["token"] == word
        count(same_list(listed(query["neighbours"]), model.most_similar(word, topn=TOP)), word)


def check_analogies(embla, path, model):
    for first, less, more in ANALOGIES:
        question = {"positive": [first, more], "negative": [less], "topn": TOP}
        line = ("analogy", path, first, "-", less, "+", more, "--top", str(TOP))
        ours = listed(answer(embla, *line)["neighbours"])
        count(same_list(ours, model.most_similar(**question)), first, less, more, ours)
        ours = listed(answer(embla, *line, "--multiply")["neighbours"])
        count(same_list(ours, model.most_similar_cosmul(**question)), first, less, more, ours)


def check_odd(embla, path, model):
    """Which word does not match, of five random words that the command line takes as they are."""
    random = numpy.random.default_rng(4)
    plain = [word for word in model.index_to_key[:20000] if word.isascii() and word.isalpha()]
    for _ in range(40):
        words = [plain[number] for number in random.choice(len(plain), 5, replace=False)]
        count(answer(embla, "doesnt-match", path, *words)["token"] == model.doesnt_match(words), words)


def sixth(source, path):
    """Every sixth question of each section: gensim asks one at a time."""
    with open(source, encoding="utf-8") as lines, open(path, "w", encoding="utf-8") as file:
        for number, line in enumerate(lines):
            if line.startswith(":") or number % 6 == 0:
                file.write(line)


def check_questions(embla, path, model, folder):
    questions = os.path.join(folder, "questions.txt")
    sixth(os.path.join(data(), "word-eval", "questions-words.txt"), questions)
    for rows in (None, 10000):
        _, theirs = model.evaluate_word_analogies(questions, restrict_vocab=rows)
        limit = ("--rows", str(rows)) if rows else ()
        found = answer(embla, "eval", path, questions, *limit)["analogies"][0]
        ours = {one["name"]: one for one in found["sections"]}
        ours["Total accuracy"] = found
        for one in theirs:
            right, wrong = len(one["correct"]), len(one["incorrect"])
            section = ours[one["section"]]
            count(section["correct"] == right and section["covered"] == right + wrong,
                  rows, one["section"], right, wrong, section)
        assert len(theirs) == len(ours)


def check_pairs(embla, path, model):
    files = sorted(glob.glob(os.path.join(data(), "word-eval", "EN-*.txt")))
    assert len(files) == 9
    for rows in (None, 10000):
        limit = ("--rows", str(rows)) if rows else ()
        found = answer(embla, "eval", path, *files, *limit)["pairs"]
        for file, ours in zip(files, found):
            pearson, spearman, missing = model.evaluate_word_pairs(file, restrict_vocab=rows)
            covered = round(ours["asked"] * (1 - missing / 100))
            count(ours["covered"] == covered, file, ours, missing)
            count(near(ours["pearson"], pearson[0]), file, ours, pearson)
            count(near(ours["spearman"], spearman[0]), file, ours, spearman)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    logging.disable(logging.WARNING)
    embla = sys.argv[1]
    data()
    with tempfile.TemporaryDirectory() as folder:
        path = glove(folder)
        model = KeyedVectors.load_word2vec_format(path, no_header=True)
        check_near(embla, path, model)
        check_odd(embla, path, model)
        check_analogies(embla, path, model)
        check_pairs(embla, path, model)
        check_questions(embla, path, model, folder)
    print("gensim: %d comparisons, all the same" % tried)


if __name__ == "__main__":
    main()
