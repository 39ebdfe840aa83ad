# SPDX-License-Identifier: Apache-2.0
"""The same results as the packages that people come from, on the shared data."""

import lzma
import shutil

import numpy as np
import pytest

import embla

TEXTS = ["", "a", "The quick brown fox jumps over the lazy dog.", "Straße, naïve café; 北京 2026!",
         "unbelievable   spaces\tand\nlines", "don't e-mail me: x@y.z", "🙂 emoji, zero‍width"]


@pytest.fixture(scope="session")
def glove(data, tmp_path_factory):
    """GloVe with 50,000 words of 100 numbers."""
    file = tmp_path_factory.mktemp("glove") / "glove.txt"
    file.write_bytes(lzma.open(data / "glove-50k" / "glove.6B.100d.50k.txt.xz").read())
    return embla.open(file)


def test_gensim_finds_the_same_words(glove):
    gensim = pytest.importorskip("gensim.models")
    kv = gensim.KeyedVectors(100)
    kv.add_vectors(glove.index_to_key, glove.vectors)
    for word in ("king", "paris", "seven", "walked", "carbon"):
        ours, theirs = glove.most_similar(word), kv.most_similar(word)
        assert [w for w, _ in ours] == [w for w, _ in theirs]
        assert np.allclose([s for _, s in ours], [s for _, s in theirs], atol=1e-5)
    ours = glove.most_similar(["king", "woman"], ["man"], topn=5)
    theirs = kv.most_similar(positive=["king", "woman"], negative=["man"], topn=5)
    assert [w for w, _ in ours] == [w for w, _ in theirs]
    words = ["breakfast", "lunch", "dinner", "carbon"]
    assert glove.doesnt_match(words) == kv.doesnt_match(words) == "carbon"
    assert glove.similarity("king", "queen") == pytest.approx(float(kv.similarity("king", "queen")),
                                                              abs=1e-6)


def test_gensim_scores_pairs_alike(glove, data):
    gensim = pytest.importorskip("gensim.models")
    kv = gensim.KeyedVectors(100)
    kv.add_vectors(glove.index_to_key, glove.vectors)
    path = data / "word-eval" / "EN-WS-353-ALL.txt"
    (part,) = glove.eval(path)["parts"]
    pearson, spearman, _ = kv.evaluate_word_pairs(str(path), case_insensitive=False)
    assert part["covered"] > 300
    assert part["spearman"] == pytest.approx(float(spearman[0]), abs=0.02)
    assert part["pearson"] == pytest.approx(float(pearson[0]), abs=0.02)


@pytest.fixture(scope="session")
def keyed(glove):
    """The same words and vectors in gensim."""
    gensim = pytest.importorskip("gensim.models")
    kv = gensim.KeyedVectors(100)
    kv.add_vectors(glove.index_to_key, glove.vectors)
    return kv


def same_pairs(ours, theirs):
    assert [w for w, _ in ours] == [w for w, _ in theirs]
    assert np.allclose([s for _, s in ours], [s for _, s in theirs], atol=1e-5)


def test_gensims_similarities(glove, keyed):
    for a, b in (("king", "queen"), ("paris", "carbon"), ("seven", "seven")):
        assert glove.distance(a, b) == pytest.approx(float(keyed.distance(a, b)), abs=1e-6)
    sets = ["king", "queen", "prince"], ["paris", "london"]
    assert glove.n_similarity(*sets) == pytest.approx(float(keyed.n_similarity(*sets)), abs=1e-6)
    assert np.allclose(glove.distances("king"), keyed.distances("king"), atol=1e-6)
    assert np.allclose(glove.distances("king", ["queen", "man"]), keyed.distances("king", ["queen", "man"]),
                       atol=1e-6)
    assert np.allclose(glove.distances(glove["king"]), keyed.distances(keyed["king"]), atol=1e-6)
    for a, b in (("king", "throne"), ("king", "carbon"), ("king", "prince"), ("walked", "ran")):
        assert glove.closer_than(a, b) == keyed.closer_than(a, b)
        assert glove.rank(a, b) == keyed.rank(a, b)
    same_pairs(glove.most_similar_cosmul(["king", "woman"], ["man"]),
               keyed.most_similar_cosmul(positive=["king", "woman"], negative=["man"]))
    same_pairs(glove.most_similar_cosmul("king", topn=3, restrict_vocab=5000),
               keyed.most_similar_cosmul("king", topn=3, restrict_vocab=5000))
    same_pairs(glove.similar_by_key("king", 4), keyed.similar_by_key("king", 4))


def test_gensims_means_and_indexes(glove, keyed):
    words = ["king", "qwzxv", "queen", "paris"]
    for options in ({}, {"pre_normalize": False}, {"post_normalize": True},
                    {"weights": [2, 1, -0.5, 1]}, {"weights": [2, 1, -0.5, 1], "pre_normalize": False}):
        assert np.allclose(glove.get_mean_vector(words, **options),
                           keyed.get_mean_vector(words, **options), atol=1e-6), options
    with_vector = ["king", glove["queen"]]
    assert np.allclose(glove.get_mean_vector(with_vector), keyed.get_mean_vector(with_vector), atol=1e-6)
    for kv in (glove, keyed):
        with pytest.raises(KeyError):
            kv.get_mean_vector(words, ignore_missing=False)
        with pytest.raises(KeyError):
            kv.get_index("qwzxv")
        with pytest.raises(ValueError):
            kv.get_mean_vector(words, weights=[1])
        assert kv.get_index("king") == glove.words["king"] and kv.get_index("qwzxv", -1) == -1
        assert kv.has_index_for("king") and not kv.has_index_for("qwzxv")


def test_gensim_scores_analogies_and_pairs_alike(glove, keyed, data, tmp_path):
    path = data / "word-eval" / "EN-WS-353-ALL.txt"
    ours, theirs = glove.evaluate_word_pairs(path), keyed.evaluate_word_pairs(str(path))
    assert ours[2] == pytest.approx(theirs[2])
    for mine, other in zip(ours[:2], theirs[:2]):
        assert mine[0] == pytest.approx(float(other[0]), abs=1e-4)
        assert np.log10(mine[1]) == pytest.approx(np.log10(float(other[1])), rel=0.01)
    lines = (data / "word-eval" / "questions-words.txt").read_text().splitlines()
    few = tmp_path / "few.txt"
    few.write_text("".join(f"{x}\n" for i, x in enumerate(lines) if x.startswith(":") or i % 60 == 0))
    for options in ({"restrict_vocab": 20000}, {"restrict_vocab": 20000, "dummy4unknown": True}):
        score, parts = glove.evaluate_word_analogies(few, **options)
        theirs, sections = keyed.evaluate_word_analogies(str(few), **options)
        assert 0.3 < score == pytest.approx(theirs, abs=0.011)  # one of them may be a tie
        counts = {s["section"]: len(s["correct"]) + len(s["incorrect"]) for s in sections}
        for part in parts:
            assert part["correct"] + part["incorrect"] == counts[part["section"]]


def test_gensim_reads_what_save_word2vec_format_wrote(glove, tmp_path):
    gensim = pytest.importorskip("gensim.models")
    small = embla.Table.of_words(glove.index_to_key[:100], glove.vectors[:100])
    for binary in (False, True):
        small.save_word2vec_format(tmp_path / "kv", binary=binary, overwrite=binary)
        kv = gensim.KeyedVectors.load_word2vec_format(tmp_path / "kv", binary=binary)
        assert kv.index_to_key == small.index_to_key and np.array_equal(kv.vectors, small.vectors)
    with pytest.raises(embla.Error):
        small.save_word2vec_format(tmp_path / "kv")  # no file is replaced unless asked


def test_to_and_from_gensim(glove):
    pytest.importorskip("gensim")
    from embla.gensim import from_gensim, to_gensim

    small = embla.Table.of_words(glove.index_to_key[:100], glove.vectors[:100])
    kv = to_gensim(small)
    assert np.array_equal(kv["the"], small["the"])
    again = from_gensim(kv)
    assert again.index_to_key == small.index_to_key and again.diff(small)["changed"] == 0


@pytest.mark.parametrize("folder", ["float32", "float16", "int8", "vocab-quantized"])
def test_model2vec_encodes_alike(data, folder, tmp_path):
    model2vec = pytest.importorskip("model2vec")
    path = tmp_path / folder
    shutil.copytree(data / "model2vec-mini" / folder, path)
    if not (path / "tokenizer.json").exists():  # the shared models have one for all
        shutil.copy(data / "model2vec-mini" / "tokenizer.json", path)
    try:
        theirs = model2vec.StaticModel.from_pretrained(path)
    except Exception as error:
        pytest.skip(f"model2vec does not open {folder}: {error}")
    ours = embla.Encoder(path)
    near = 1e-3 if folder == "float16" else 1e-5  # model2vec's result is then f16, ours f32
    assert np.allclose(ours.encode(TEXTS), theirs.encode(TEXTS), atol=near)
    assert np.allclose(ours.encode(TEXTS[2]), theirs.encode(TEXTS[2]), atol=near)


def test_tokenizers_gives_the_same_ids(data):
    tokenizers = pytest.importorskip("tokenizers")
    paths = sorted((data / "tokenizers").glob("*/tokenizer.json"))
    assert paths
    for path in paths:
        theirs, ours = tokenizers.Tokenizer.from_file(str(path)), embla.Tokenizer(path)
        theirs.no_truncation()
        theirs.no_padding()
        expected = [theirs.encode(t, add_special_tokens=False).ids for t in TEXTS]
        assert [ours.encode(t) for t in TEXTS] == expected, path
        assert ours.encode(TEXTS) == expected, path
        assert [ours.decode(ids) for ids in expected] == [theirs.decode(i) for i in expected], path


def test_torch_takes_and_gives_tensors():
    torch = pytest.importorskip("torch")
    v = np.random.default_rng(1).standard_normal((50, 8)).astype(np.float32)
    t = embla.Table.over(torch.from_numpy(v))
    ids = torch.tensor([[1, 2], [3, 4]])
    assert np.array_equal(t.lookup(ids), v[ids.numpy()])
    assert torch.equal(torch.from_dlpack(t.lookup(ids)), torch.from_numpy(v)[ids])
    half = embla.Table.create(3, 4, "bf16")
    half.write(0, v[:3, :4])
    assert torch.from_dlpack(half.view()).dtype == torch.bfloat16
    assert np.array_equal(embla.Table.over(torch.from_numpy(v).bfloat16())[3],
                          torch.from_numpy(v).bfloat16()[3].float().numpy())


def test_an_embedding_of_torch_learns_alike():
    torch = pytest.importorskip("torch")
    from embla.torch import Embedding

    weight = torch.randn(20, 4, generator=torch.Generator().manual_seed(1))
    theirs = torch.nn.Embedding.from_pretrained(weight.clone(), freeze=False, sparse=True)
    ours = Embedding(20, 4, weight=weight.clone())
    ids = torch.tensor([[1, 2, 1], [5, 19, 1]])
    assert torch.equal(ours(ids), theirs(ids))
    factor = torch.arange(24.0).reshape(2, 3, 4)
    (ours(ids) * factor).sum().backward()
    (theirs(ids) * factor).sum().backward()
    assert torch.allclose(ours.weight.grad.to_dense(), theirs.weight.grad.to_dense())
    optimizer = torch.optim.SGD(ours.parameters(), lr=0.1)
    optimizer.step()
    assert torch.equal(ours(ids), ours.weight.detach()[ids])
    with pytest.raises(IndexError):
        ours(torch.tensor([20]))


@pytest.mark.parametrize("padding", [2, -1, -20])
def test_an_embedding_of_torch_counts_padding_as_torch_does(padding):
    torch = pytest.importorskip("torch")
    from embla.torch import Embedding

    theirs = torch.nn.Embedding(20, 4, padding_idx=padding, sparse=True)
    ours = Embedding(20, 4, padding, weight=theirs.weight.detach().clone())
    assert ours.padding_idx == theirs.padding_idx
    ids = torch.arange(20)
    ours(ids).sum().backward()
    theirs(ids).sum().backward()
    assert torch.equal(ours.weight.grad.to_dense(), theirs.weight.grad.to_dense())
    for wrong in (20, -21):
        with pytest.raises(embla.ArgumentError, match="padding_idx"):
            Embedding(20, 4, wrong)


def test_scikit_learn_vectorizer(data):
    pytest.importorskip("sklearn")
    import pickle

    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    from embla.sklearn import EmblaVectorizer

    v = EmblaVectorizer(str(data / "model2vec-mini" / "float32"))
    x = make_pipeline(v, StandardScaler()).fit_transform(TEXTS)
    assert x.shape[0] == len(TEXTS)
    again = pickle.loads(pickle.dumps(v))
    assert np.array_equal(again.transform(TEXTS), v.fit(TEXTS).transform(TEXTS))


def test_classes_for_retrieval(data):
    from embla.rag import Embeddings, LlamaEmbedding

    path = data / "model2vec-mini" / "float32"
    e = Embeddings(path)
    assert len(e.embed_documents(["a", "b"])) == 2
    assert e.embed_query("a") == e.embed_documents(["a"])[0]
    assert LlamaEmbedding(path).get_text_embedding("a") == e.embed_query("a")
