# SPDX-License-Identifier: Apache-2.0
"""Jobs of training: gradients of rows, optimizer steps, head and loss, GPT-2, word vectors."""
import ctypes
import json
import os
import shutil
import statistics
import subprocess
import time
import warnings

import numpy

from peers.ours import (ADAMW, BF16, F32, Head, LookupOptions, LossBatch, LossGradients,
                        LossOptions, LossReport, OptimOptions, ScatterOptions, agree, at, c_double,
                        c_i64, c_ptr, c_size, normal, tokens, write_text)


class Batch:
    """Tokens, the gradients of their vectors, and a plan."""

    def __init__(self, run):
        self.run = run
        self.rows, self.dim, self.count = (500, 32, 300) if run.small else (50257, 768, 8192)
        self.ids = tokens("zipf", self.rows, self.count)
        self.few = self.ids.astype("i4")
        self.gradients = normal(self.count, self.dim)
        self.compact = numpy.empty((self.count, self.dim), "f4")
        self.scatter = run.embla.made("scatter_new", c_i64(self.rows), c_size(self.count))
        self.plan()

    def plan(self):
        self.run.embla("scatter_plan", self.scatter, at(self.few), c_size(self.count),
                       ctypes.byref(ScatterOptions(threads=self.run.threads)))
        self.touched = self.run.embla.library.embla_scatter_count(self.scatter)

    def sum(self):
        self.plan()
        self.run.embla("scatter_sum", self.scatter, at(self.gradients), c_size(self.dim),
                       at(self.compact))


def backward(run):
    """The gradient of a lookup: the rows that occur, each once, with the sum of its gradients."""
    job = "gradient of the rows that occur"
    if not run.wants(job) or not run.has("torch"):
        return
    torch, batch = run.has("torch"), Batch(run)
    warnings.filterwarnings("ignore", "Sparse invariant")  # torch: they are not checked
    shape, peer = (batch.rows, batch.dim), run.peer("torch")
    ids, gradients = torch.from_numpy(batch.ids), torch.from_numpy(batch.gradients)
    torch_sum = lambda: torch.sparse_coo_tensor(ids[None], gradients, shape).coalesce()
    batch.sum()
    agree("coalesce", batch.compact[:batch.touched], torch_sum().values().numpy(), 1e-5)
    run.measure(job, peer + " coalesce", batch.sum, torch_sum, 1,
                ("scatter", "^50257x768/zipf/sum$"))


def adamw(run, table, decay):
    return run.embla.made("optim_new", table, ctypes.byref(
        OptimOptions(kind=ADAMW, decay=decay, threads=run.threads)))


def sparse_step(run):
    job = "lookup, its gradient and Adam on the rows that occur"
    if not run.wants(job) or not run.has("torch"):
        return
    torch, batch = run.has("torch"), Batch(run)
    ours, out = normal(batch.rows, batch.dim), numpy.empty((batch.count, batch.dim), "f4")
    layer = torch.nn.Embedding(batch.rows, batch.dim, sparse=True,
                               _weight=torch.from_numpy(ours.copy()))
    adam = torch.optim.SparseAdam(layer.parameters(), lr=1e-3)
    ids, gradients = torch.from_numpy(batch.ids), torch.from_numpy(batch.gradients)
    table = run.embla.view(ours)
    optim, options = adamw(run, table, 0), LookupOptions(threads=run.threads)

    def our_step():
        run.embla("lookup", table, at(batch.few), c_size(batch.count), ctypes.byref(options), at(out))
        batch.sum()
        rows = c_ptr(run.embla.library.embla_scatter_rows(batch.scatter))
        run.embla("optim_step_rows", optim, c_double(1e-3), rows, c_size(batch.touched),
                  at(batch.compact))

    def their_step():
        adam.zero_grad()
        layer(ids).backward(gradients)
        adam.step()

    for _ in range(3):
        our_step(), their_step()
    agree(job, ours, layer.weight.detach().numpy(), 1e-5)
    run.measure(job, run.peer("torch") + " SparseAdam", our_step, their_step, 1,
                ("optim", "/adamw/rows$"))
    run.embla.free("optim", optim)


def fused(torch, kind, parameters, **options):
    """torch's fused optimizer where it has one for CPUs; it is faster."""
    try:
        optimizer = kind(parameters, fused=True, **options)
        for group in parameters:
            group.grad = torch.zeros_like(group)
        optimizer.step()
    except (RuntimeError, TypeError, ValueError):
        return kind(parameters, **options), ""
    return kind(parameters, fused=True, **options), ", fused"


def dense_step(run):
    rows, dim = (500, 32) if run.small else (50257, 768)
    for name, decay in (("Adam", 0), ("AdamW", 0.01)):
        job = "%s step on all rows, %dx%d" % (name, rows, dim)
        if not run.wants(job) or not run.has("torch"):
            continue
        torch, ours, gradient = run.has("torch"), normal(rows, dim), normal(rows, dim)[::-1].copy()
        theirs = torch.nn.Parameter(torch.from_numpy(ours.copy()))
        adam, how = fused(torch, getattr(torch.optim, name), [theirs], lr=1e-3, weight_decay=decay)
        theirs.data.copy_(torch.from_numpy(ours))
        theirs.grad = torch.from_numpy(gradient)
        optim = adamw(run, run.embla.view(ours), decay)
        our_step = lambda: run.embla("optim_step", optim, c_double(1e-3), at(gradient))
        for _ in range(3):
            our_step(), adam.step()
        agree(job, ours, theirs.detach().numpy(), 1e-5)
        run.measure(job, run.peer("torch") + how, our_step, adam.step, 1, ("optim", "/adamw/dense$"))
        run.embla.free("optim", optim)


def head_loss(run):
    rows, dim, count = (500, 32, 64) if run.small else (50257, 768, 1024)
    for name, compute, tolerance in (("f32", F32, 2e-5), ("bf16", BF16, 3e-2)):
        job = "linear + cross-entropy with gradients, %dx%dx%d, %s" % (count, dim, rows, name)
        if not run.wants(job) or not run.has("torch"):
            continue
        torch = run.has("torch")
        weight, hidden = normal(rows, dim) * dim ** -0.5, normal(count, dim)[::-1].copy()
        ids = tokens("zipf", rows, count)
        few, head, report = ids.astype("i4"), Head(table=run.embla.view(weight)), LossReport()
        dhidden, dweight = numpy.empty((count, dim), "f4"), numpy.zeros((rows, dim), "f4")
        gradients = LossGradients(hidden=dhidden.ctypes.data, table=dweight.ctypes.data)
        batch = LossBatch(hidden=hidden.ctypes.data, targets=few.ctypes.data, count=count)
        options = LossOptions(compute=compute, threads=run.threads)
        dtype = torch.float32 if compute == F32 else torch.bfloat16
        x, w = (torch.from_numpy(it).clone().to(dtype).requires_grad_() for it in (hidden, weight))
        targets = torch.from_numpy(ids)

        def our_loss():
            dweight.fill(0)
            run.embla("head_loss", ctypes.byref(head), ctypes.byref(batch), ctypes.byref(options),
                      ctypes.byref(gradients), ctypes.byref(report))

        def their_loss():
            x.grad = w.grad = None
            loss = torch.nn.functional.cross_entropy(torch.nn.functional.linear(x, w), targets)
            loss.backward()
            return loss

        our_loss()
        loss = float(their_loss().detach())
        assert abs(report.loss - loss) <= tolerance * loss, (job, report.loss, loss)
        agree(job, dhidden, x.grad.float().numpy(), tolerance)
        agree(job, dweight, w.grad.float().numpy(), tolerance)
        run.measure(job, run.peer("torch"), our_loss, their_loss, 1,
                    ("head", "^loss/1024x768x50257/%s$" % name))


class TorchGPT:
    """GPT-2 in plain torch: pre-norm, GELU (tanh), learned positions, the head is the token table."""

    def __init__(self, torch, vocab, dim, layers, heads, length):
        self.torch, self.heads, self.vocab = torch, heads, vocab
        make = lambda *shape: (torch.randn(*shape) * 0.02).requires_grad_()
        ones = lambda *shape: torch.ones(*shape).requires_grad_()
        zeros = lambda *shape: torch.zeros(*shape).requires_grad_()
        self.rows, self.positions = make(vocab, dim), make(length, dim)
        self.layers = [(ones(dim), zeros(dim), make(3 * dim, dim), zeros(3 * dim), make(dim, dim),
                        zeros(dim), ones(dim), zeros(dim), make(4 * dim, dim), zeros(4 * dim),
                        make(dim, 4 * dim), zeros(dim)) for _ in range(layers)]
        self.last = ones(dim), zeros(dim)

    def parameters(self):
        return [self.rows, self.positions, *sum(self.layers, ()), *self.last]

    def attend(self, q, k, v):
        functional = self.torch.nn.functional
        if hasattr(functional, "scaled_dot_product_attention"):
            return functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        scores = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5  # torch 1 has no such function
        later = self.torch.ones(scores.shape[-2:], dtype=self.torch.bool).triu(1)
        return scores.masked_fill(later, float("-inf")).softmax(-1) @ v

    def loss(self, ids, targets):
        functional, (batch, length) = self.torch.nn.functional, ids.shape
        x = functional.embedding(ids, self.rows) + self.positions[:length]
        dim = x.shape[-1]
        for g1, b1, qkv, bqkv, o, bo, g2, b2, up, bup, down, bdown in self.layers:
            y = functional.linear(functional.layer_norm(x, (dim,), g1, b1), qkv, bqkv)
            q, k, v = (it.view(batch, length, self.heads, -1).transpose(1, 2) for it in y.split(dim, 2))
            y = self.attend(q, k, v).transpose(1, 2).reshape(batch, length, dim)
            x = x + functional.linear(y, o, bo)
            y = functional.linear(functional.layer_norm(x, (dim,), g2, b2), up, bup)
            x = x + functional.linear(functional.gelu(y, approximate="tanh"), down, bdown)
        logits = functional.linear(functional.layer_norm(x, (dim,), *self.last), self.rows)
        return functional.cross_entropy(logits.view(-1, self.vocab).float(), targets.reshape(-1))


def gpt_steps(run, torch, case, shape, bf16):
    """A function that makes one training step of torch, and returns its tokens per second."""
    batch, length, vocab, dim, layers, heads = shape
    model = TorchGPT(torch, vocab, dim, layers, heads, length)
    adam, how = fused(torch, torch.optim.AdamW, model.parameters(), lr=1e-3, betas=(0.9, 0.95))
    ids = torch.from_numpy(tokens("zipf", vocab, batch * (length + 1))).view(batch, length + 1)

    def step():
        begin = time.perf_counter()
        adam.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=bf16):
            loss = model.loss(ids[:, :-1], ids[:, 1:])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()
        return batch * length / (time.perf_counter() - begin), float(loss.detach())

    first = step()[1]
    assert abs(first - numpy.log(vocab)) < 1.5, "%s: torch begins with a loss of %g" % (case, first)
    return step, how


def gpt(run):
    """A step of training: `embla bench train` before and after torch's steps."""
    gpt2, nano = (50257, 768, 12, 12), (65, 128, 4, 4)
    shapes = (((12, 64, *nano), "nano/12x64/f32"),) if run.small else tuple(
        ((batch, length, *gpt2), "gpt2/%dx%d/%s" % (batch, length, dtype))
        for dtype in ("f32", "bf16") for batch, length in ((4, 64), (1, 1024)))
    for shape, case in shapes:
        job = "training step, " + case
        if not run.wants(job) or not run.has("torch"):
            continue
        before = run.bench("train", "^%s$" % case)
        step, how = gpt_steps(run, run.has("torch"), case, shape, case.endswith("bf16"))
        theirs = [step()[0] for _ in range(min(run.turns, 4) + 1)][1:]
        after = before if run.small else run.bench("train", "^%s$" % case)
        ours = statistics.mean((before["value"], after["value"]))
        ratio = statistics.mean((before["ratio"], after["ratio"]))
        run.result(job, run.peer("torch") + how, ours, statistics.median(theirs), "tokens/s",
                   (ratio, before["limit_is"]))


# ---- word vectors ----

WORDS = {"dim": 100, "window": 5, "negatives": 5, "rate": 0.05, "sample": 1e-3, "min-count": 5}


def our_words(run, text, kind, hogwild):
    """Words of the text per second in one epoch, the number of words with rows, and words per second
    of the whole run, with counting and writing."""
    out = os.path.join(run.folder, "ours.vec")
    options = [it for name, value in WORDS.items() for it in ("--" + name, str(value))]
    begin = time.perf_counter()
    done = subprocess.run([run.program, "words", text, "-o", out, "--kind", kind, "--epochs", "1",
                           "--threads", str(run.threads), "--json", "--force", *options] +
                          ["--hogwild"] * hogwild, stdout=subprocess.PIPE, check=True)
    seconds = time.perf_counter() - begin
    events = [json.loads(line) for line in done.stdout.splitlines()]
    speed = [event["words_per_second"] for event in events if event["event"] == "report"][-1]
    return speed, events[0]["words"], events[0]["tokens"] / seconds


def gensim_words(run, gensim, text, kind):
    """The same of gensim, for the training alone."""
    model = gensim.Word2Vec(sg=int(kind == "skipgram"), vector_size=WORDS["dim"], epochs=1,
                            window=WORDS["window"], negative=WORDS["negatives"],
                            alpha=WORDS["rate"], sample=WORDS["sample"], min_count=WORDS["min-count"],
                            workers=run.threads, seed=1)
    model.build_vocab(corpus_file=text)
    begin = time.perf_counter()
    model.train(corpus_file=text, total_examples=model.corpus_count,
                total_words=model.corpus_total_words, epochs=1)
    return model.corpus_total_words / (time.perf_counter() - begin), len(model.wv)


def fasttext_words(run, program, text, kind):
    """Words per second of the whole run, with counting and writing."""
    out = os.path.join(run.folder, "theirs")
    begin = time.perf_counter()
    subprocess.run([program, kind, "-input", text, "-output", out, "-epoch", "1", "-minn", "0",
                    "-maxn", "0", "-thread", str(run.threads), "-dim", str(WORDS["dim"]),
                    "-ws", str(WORDS["window"]), "-neg", str(WORDS["negatives"]), "-t",
                    str(WORDS["sample"]), "-minCount", str(WORDS["min-count"]), "-lr",
                    str(WORDS["rate"])], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                   check=True)
    seconds = time.perf_counter() - begin
    with open(out + ".vec", "rb") as lines:
        return seconds, int(lines.readline().split()[0])


def words(run):
    count, vocabulary = (20000, 500) if run.small else (2000000, 30000)
    kinds = [(kind, hogwild) for kind in ("skipgram", "cbow") for hogwild in (False, True)]
    job = lambda kind, hogwild: "word vectors, %s%s" % (kind, ", --hogwild" if hogwild else "")
    if not run.wants(*(job(*it) for it in kinds)):
        return
    gensim = run.has("gensim", "models")
    program = shutil.which("fasttext") if run.programs else None
    if run.programs and not program:
        run.say(missing="fastText", why="there is no program fasttext")
    text = os.path.join(run.folder, "text.txt")
    write_text(text, count, vocabulary)
    for kind, hogwild in kinds:
        if not run.wants(job(kind, hogwild)):
            continue
        turns = 1 if run.small else 3
        if gensim:
            pairs = [(our_words(run, text, kind, hogwild), gensim_words(run, gensim, text, kind))
                     for _ in range(turns)]
            assert pairs[0][0][1] == pairs[0][1][1], "other words have rows: %s" % pairs
            run.result(job(kind, hogwild), run.peer("gensim"),
                       *(statistics.median(pair[side][0] for pair in pairs) for side in (0, 1)),
                       "words/s")
        if program and not hogwild:
            pairs = [(our_words(run, text, kind, hogwild), fasttext_words(run, program, text, kind))
                     for _ in range(turns)]
            # Its words include the end of a line.
            assert pairs[0][0][1] + 1 == pairs[0][1][1], "other words have rows: %s" % pairs
            run.result(job(kind, hogwild) + ", with counting", "fastText",
                       statistics.median(pair[0][2] for pair in pairs),
                       statistics.median(count / pair[1][0] for pair in pairs), "words/s")


JOBS = (backward, sparse_step, dense_step, head_loss, gpt, words)
