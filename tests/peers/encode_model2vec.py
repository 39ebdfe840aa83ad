# SPDX-License-Identifier: Apache-2.0
"""Compares vectors with the newest model2vec, on lines of the tokenizers' expectations and on long
texts: the fixtures of EMBLA_DATA, and models with random rows around real tokenizers.

    encode_model2vec.py EMBLA

It needs the package model2vec. If this Python has none, EMBLA_TOKENIZERS_PYTHON may name one that
has; otherwise nothing is compared.
"""
import json
import os
import shutil
import sys
import tempfile

from common import data, must, package
from tokens import text_of, unpack


def texts_of(folder):
    """Texts without line ends and other control characters: one on each line."""
    lines = text_of(os.path.join(folder, "tokenizers", "expect", "gpt2.jsonl")).rstrip("\n").split("\n")
    cases = [json.loads(line) for line in lines]
    texts = [c["text"] for c in cases if "text" in c and "hex" not in c]
    texts = [t for t in texts if t.isprintable() and len(t) < 5000]
    longs = [" ".join(texts[i:i + 40]) for i in range(0, len(texts) - 40, 40)]
    return texts + longs + ["hello " * 1000, "x" * 20000, ""]


def ours(numpy, embla, model, texts, *options):
    lines = "".join(t + "\n" for t in texts).encode("utf-8")
    with tempfile.NamedTemporaryFile(suffix=".npy") as out:
        must(embla, "encode", model, "--format", "npy", "-o", out.name, "--force", "--quiet", *options, text=lines)
        return numpy.load(out.name)


def made(numpy, folder, tokenizer, rows, dim):
    """A model with random rows around a real tokenizer."""
    from safetensors.numpy import save_file
    shutil.copy(tokenizer, os.path.join(folder, "tokenizer.json"))
    rng = numpy.random.default_rng(rows)
    save_file({"embeddings": rng.standard_normal((rows, dim), dtype=numpy.float32)},
              os.path.join(folder, "model.safetensors"))
    with open(os.path.join(folder, "config.json"), "w", encoding="ascii") as file:
        json.dump({"model_type": "model2vec", "normalize": True}, file)


def compare(numpy, model2vec, embla, folder, texts, tolerance, name):
    model = model2vec.StaticModel.from_pretrained(folder)
    worst = 0.0
    for most, options in ((512, ("--compat", "model2vec")), (None, ())):
        theirs = numpy.asarray(model.encode(texts, max_length=most, use_multiprocessing=False), dtype=numpy.float64)
        mine = ours(numpy, embla, folder, texts, *options)
        gaps = numpy.abs(theirs - mine).max(axis=1)
        worst = max(worst, float(gaps.max()))
        if worst > tolerance:
            at = int(gaps.argmax())
            sys.exit("%s, max_length %s: text %d (%r) is %g apart" % (name, most, at, texts[at][:60], gaps[at]))
    print("%s: %d texts, at most %.3g apart" % (name, len(texts), worst))


def main():
    model2vec = package("model2vec")
    import numpy
    from tokenizers import Tokenizer
    embla, folder = sys.argv[1], data()
    texts = texts_of(folder)
    print("model2vec %s" % getattr(model2vec, "__version__", "of an unknown version"))
    mini = os.path.join(folder, "model2vec-mini")
    with tempfile.TemporaryDirectory() as scratch:
        for name, tolerance in (("float32", 1e-5), ("float16", 1e-3), ("int8", 1e-3), ("vocab-quantized", 1e-5)):
            model = os.path.join(scratch, name)
            os.mkdir(model)
            for file in os.listdir(os.path.join(mini, name)):
                shutil.copy(os.path.join(mini, name, file), model)
            if not os.path.exists(os.path.join(model, "tokenizer.json")):
                shutil.copy(os.path.join(mini, "tokenizer.json"), model)
            compare(numpy, model2vec, embla, model, texts, tolerance, name)
        for name in ("bert-base-uncased", "gpt2", "t5-small", "clip"):
            tokenizer = unpack(os.path.join(folder, "tokenizers", name, "tokenizer.json"), scratch)
            rows = Tokenizer.from_file(tokenizer).get_vocab_size(with_added_tokens=True)
            model = os.path.join(scratch, name)
            os.mkdir(model)
            made(numpy, model, tokenizer, rows, 64)
            compare(numpy, model2vec, embla, model, texts, 1e-5, name)


if __name__ == "__main__":
    main()
