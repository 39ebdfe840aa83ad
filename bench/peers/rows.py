# SPDX-License-Identifier: Apache-2.0
"""Jobs on rows: lookup, pooling, nearest rows, decoding, and reading a file."""
import ctypes
import importlib
import os

import numpy

from peers.ours import (DOT, NEIGHBOUR, Q4_0, Q8_0, AnalogyOptions, AnalogyQuestion,
                        LookupOptions, NearOptions, PoolOptions, RowFormat, agree, at, c_ptr, c_size,
                        normal, same_rows, tokens)

TOP = 10
FAISS_PRODUCTS = 20  # queries from which faiss multiplies matrices


def lookup(run):
    """8192 rows, as of a batch of text; the result goes to the same memory each time."""
    shapes = ((500, 32),) if run.small else ((8449, 768), (50257, 768))
    for rows, dim in shapes:
        weight, out = None, None
        for kind in ("uniform", "zipf"):
            job = "lookup of 8192 rows, %s, %dx%d" % (kind, rows, dim)
            if not run.wants(job):
                continue
            weight = normal(rows, dim) if weight is None else weight
            ids = tokens(kind, rows, 8192)
            few, out = ids.astype("i4"), numpy.empty((len(ids), dim), "f4")
            call = (run.embla.view(weight), at(few), c_size(len(few)),
                    ctypes.byref(LookupOptions(threads=run.threads)), at(out))
            ours = lambda: run.embla("lookup", *call)
            limit = "lookup", "^%dx%d/f32/%s/recycled$" % (rows, dim, kind)
            ours()
            agree(job, out, weight[ids], 0)
            theirs = numpy.empty_like(out)
            run.measure(job, run.peer("numpy"), ours,
                        lambda: numpy.take(weight, ids, axis=0, out=theirs, mode="clip"), 10, limit)
            torch = run.has("torch")
            if torch:
                table, index = torch.from_numpy(weight), torch.from_numpy(ids)
                layer = torch.nn.functional.embedding
                agree(job, out, layer(index, table).numpy(), 0)
                run.measure(job, run.peer("torch"), ours, lambda: layer(index, table), 10, limit)


def one_row(run):
    """One row a call, called from Python on both sides."""
    rows, dim = (500, 32) if run.small else (50257, 768)
    job = "one row a call, %dx%d, 1000 calls" % (rows, dim)
    if not run.wants(job):
        return
    weight, ids = normal(rows, dim), tokens("uniform", rows, 1000)
    few, out = ids.astype("i4"), numpy.empty(dim, "f4")
    function, table, to = run.embla.library.embla_lookup, run.embla.view(weight), at(out)
    places = [c_ptr(few.ctypes.data + 4 * i) for i in range(len(few))]
    one, options = c_size(1), ctypes.byref(LookupOptions(threads=1))

    def ours():
        for place in places:
            function(table, place, one, options, to)

    def theirs():
        for i in numbers:
            weight[i].copy()

    def torch_rows():
        for i in singles:
            layer(i, tensor)

    numbers = ids.tolist()
    ours()
    agree(job, out, weight[ids[-1]], 0)
    limit = "lookup", "^50257x768/f32/uniform/single$"
    run.measure(job, run.peer("numpy"), ours, theirs, 1, limit)
    torch = run.has("torch")
    if torch:
        tensor, layer = torch.from_numpy(weight), torch.nn.functional.embedding
        singles = list(torch.from_numpy(ids)[:, None])
        agree(job, out, layer(singles[-1], tensor)[0].numpy(), 0)
        run.measure(job, run.peer("torch"), ours, torch_rows, 1, limit)


def pool(run):
    """The mean of the rows of each text; texts of 32 tokens that are tokens already."""
    rows, dim, texts, length = (500, 32, 16, 8) if run.small else (50257, 768, 256, 32)
    job = "mean of the rows of %d texts, %d tokens each, %dx%d" % (texts, length, rows, dim)
    if not run.wants(job):
        return
    weight, ids = normal(rows, dim), tokens("zipf", rows, texts * length)
    few, out, table = ids.astype("i4"), numpy.empty((texts, dim), "f4"), run.embla.view(weight)
    pooled = PoolOptions(threads=run.threads)

    def ours():
        run.embla("lookup_pool", table, at(few), c_size(texts), c_size(length),
                  ctypes.byref(pooled), at(out))

    ours()
    torch, model2vec = run.has("torch"), run.has("model2vec")
    if torch:
        tensor, index = torch.from_numpy(weight), torch.from_numpy(ids).view(texts, length)
        bag = lambda: torch.nn.functional.embedding_bag(index, tensor, mode="mean")
        agree(job, out, bag().numpy(), 1e-5)
        run.measure(job, run.peer("torch") + " EmbeddingBag", ours, bag, 5)
    if model2vec:
        tokenizers = importlib.import_module("tokenizers")  # model2vec depends on it
        words = tokenizers.models.WordLevel({str(i): i for i in range(rows)}, unk_token="0")
        model = model2vec.StaticModel(weight, tokenizers.Tokenizer(words))
        ready = ids.reshape(texts, length).tolist()
        model.tokenize = lambda sentences, **_: ready  # the same tokens, ready for both
        encode = lambda: model.encode(["text"] * texts, batch_size=texts)
        agree(job, out, encode(), 1e-5)
        run.measure(job, run.peer("model2vec"), ours, encode, 5)


class Nearest:
    """Unit rows, queries, and our answers by the dot product."""

    def __init__(self, run, rows, dim, count):
        self.run, self.count = run, count
        self.rows = normal(rows, dim)
        self.rows /= numpy.linalg.norm(self.rows, axis=1, keepdims=True)
        self.queries = numpy.random.default_rng(3).standard_normal((count, dim), dtype="f4")
        self.queries /= numpy.linalg.norm(self.queries, axis=1, keepdims=True)
        self.table = run.embla.view(self.rows)
        self.out = numpy.empty((count, TOP), NEIGHBOUR)
        self.options = NearOptions(k=TOP, threads=run.threads, measure=DOT)

    def ours(self):
        self.run.embla("near", self.table, at(self.queries), c_size(self.count),
                       ctypes.byref(self.options), at(self.out), None)

    def numpy(self):
        scores = self.queries @ self.rows.T
        best = numpy.argpartition(scores, -TOP, axis=1)[:, -TOP:]
        order = numpy.argsort(-numpy.take_along_axis(scores, best, 1), axis=1)
        best = numpy.take_along_axis(best, order, 1)
        return best, numpy.take_along_axis(scores, best, 1)

    def compare(self, job, rows, scores):
        same_rows(job, self.out["row"], self.out["score"], numpy.asarray(rows), numpy.asarray(scores))


def near(run):
    rows, dim = (2000, 32) if run.small else (400000, 100)
    for count in (1, 256):
        job = "10 nearest of %dx%d, %d quer%s" % (rows, dim, count, "y" if count == 1 else "ies")
        if not run.wants(job):
            continue
        it, limit = Nearest(run, rows, dim, count), ("near", "^400000x100/f32/%d$" % count)
        calls = 5 if count == 1 else 1
        it.ours()
        it.compare(job, *it.numpy())
        run.measure(job, run.peer("numpy"), it.ours, it.numpy, calls, limit)
        faiss, gensim = run.has("faiss"), run.has("gensim", "models")
        if faiss:
            index = faiss.IndexFlatIP(dim)
            index.add(it.rows)
            # Newer versions multiply matrices only from 128,000 queries; older ones from 20, which
            # is ten times faster for 256.
            faiss.cvar.distance_compute_blas_threshold = FAISS_PRODUCTS
            it.compare(job, *index.search(it.queries, TOP)[::-1])
            run.measure(job, run.peer("faiss"), it.ours, lambda: index.search(it.queries, TOP),
                        calls, limit)
        if gensim and count == 1:
            vectors = gensim.KeyedVectors(dim, count=0)
            vectors.add_vectors(list(range(rows)), it.rows)
            ask = lambda: vectors.most_similar(positive=[it.queries[0]], topn=TOP)
            found = list(zip(*ask()))
            it.compare(job, [found[0]], [found[1]])
            run.measure(job, run.peer("gensim"), it.ours, ask, calls, limit)


def analogy(run):
    """a - b + c, 20 questions one at a time, as most_similar(positive, negative)."""
    rows, dim = (2000, 32) if run.small else (50000, 100)
    job = "20 analogies, %dx%d" % (rows, dim)
    if not run.wants(job) or not run.has("gensim", "models"):
        return
    vectors = run.has("gensim", "models").KeyedVectors(dim, count=0)
    weight = normal(rows, dim)
    vectors.add_vectors(["w%d" % i for i in range(rows)], weight)
    table, out = run.embla.view(weight), numpy.empty(TOP, NEIGHBOUR)
    questions = tokens("uniform", rows, 60).reshape(20, 3)
    options = AnalogyOptions(k=TOP, threads=run.threads)

    def ask(question):
        plus, minus = question[:2].copy(), question[2:].copy()
        asked = AnalogyQuestion(plus=at(plus), minus=at(minus), plus_count=2, minus_count=1)
        run.embla("analogy", table, ctypes.byref(asked), ctypes.byref(options), at(out), None)

    def theirs(question):
        a, b, c = ("w%d" % word for word in question)
        return vectors.most_similar(positive=[a, b], negative=[c], topn=TOP)

    for question in questions:
        ask(question)
        found = [(int(word[1:]), score) for word, score in theirs(question)]
        same_rows(job, out["row"], out["score"], *map(numpy.array, zip(*found)))
    run.measure(job, run.peer("gensim"), lambda: [ask(one) for one in questions],
                lambda: [theirs(one) for one in questions])


def decode(run):
    """Stored blocks to floats, one thread on both sides."""
    count, dim = (100, 64) if run.small else (8192, 768)
    for name, dtype in (("Q8_0", Q8_0), ("Q4_0", Q4_0)):
        job = "decode %d rows of %s, dim %d" % (count, name.lower(), dim)
        if not run.wants(job) or not run.has("gguf"):
            continue
        gguf = run.has("gguf")
        kind = getattr(gguf.GGMLQuantizationType, name)
        stored = numpy.ascontiguousarray(gguf.quants.quantize(normal(count, dim), kind))
        out, layout = numpy.empty((count, dim), "f4"), RowFormat(dim=dim, dtype=dtype)
        ours = lambda: run.embla("row_decode", ctypes.byref(layout), at(stored), c_size(count), at(out))
        theirs = lambda: gguf.quants.dequantize(stored, kind)
        ours()
        agree(job, out, theirs(), 0)
        run.measure(job, run.peer("gguf"), ours, theirs, 1, ("codec", "^%s/160$" % name.lower()))


def load(run):
    """Opens a file that is in the page cache and reads all rows to new memory."""
    rows, dim = (500, 32) if run.small else (50257, 768)
    job = "open a safetensors file, read %dx%d" % (rows, dim)
    if not run.wants(job) or not run.has("safetensors", "numpy"):
        return
    safetensors = run.has("safetensors", "numpy")
    path, weight = os.path.join(run.folder, "rows.safetensors"), normal(rows, dim)
    safetensors.save_file({"embedding.weight": weight}, path)
    numbers, options = numpy.arange(rows), LookupOptions(threads=run.threads)

    def ours():
        checkpoint = run.embla.made("checkpoint_open", path.encode(), None)
        table = run.embla.made("table_open", checkpoint, None, None)
        out = numpy.empty((rows, dim), "f4")
        run.embla("lookup_rows", table, at(numbers), c_size(rows), ctypes.byref(options), at(out))
        run.embla.free("table", table)
        run.embla.free("checkpoint", checkpoint)
        return out

    theirs = lambda: safetensors.load_file(path)["embedding.weight"]
    agree(job, ours(), theirs(), 0)
    run.measure(job, run.peer("safetensors"), ours, theirs, 1)
    os.remove(path)


JOBS = (lookup, one_row, pool, near, analogy, decode, load)
