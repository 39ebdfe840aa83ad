# SPDX-License-Identifier: Apache-2.0
"""Compares vectors of static models with wordllama's own model, which its package brings, and with
the arithmetic of sentence-transformers' StaticEmbedding: the mean of the rows of the tokens that
Hugging Face's library gives, added in order as 32-bit numbers.

    encode_static.py EMBLA

It needs the package wordllama. If this Python has none, EMBLA_TOKENIZERS_PYTHON may name one that
has; otherwise nothing is compared.
"""
import json
import os
import shutil
import sys
import tempfile

from common import data, must, package
from encode_model2vec import ours, texts_of
from tokens import unpack


def sentences(folder, count):
    with open(os.path.join(folder, "sts-benchmark", "sts-test.csv"), encoding="utf-8") as file:
        return [line.split("\t")[5].strip() for line in file][:count]


def compare(numpy, name, texts, theirs, mine):
    worst = 0.0
    for text, a, b in zip(texts, theirs, mine):
        gap = float(numpy.abs(a - b).max())
        worst = max(worst, gap)
        if not gap <= 1e-5:
            sys.exit("%s: %r is %g apart" % (name, text[:60], gap))
    print("%s: %d texts, at most %.3g apart" % (name, len(texts), worst))


def wordllama_model(numpy, wordllama, embla, texts):
    from safetensors.numpy import load_file
    from tokenizers import Tokenizer
    from wordllama.inference import WordLlamaInference
    home = os.path.dirname(wordllama.__file__)
    weights = os.path.join(home, "weights", "l2_supercat_256.safetensors")
    tokenizer = os.path.join(home, "tokenizers", "l2_supercat_tokenizer_config.json")
    model = WordLlamaInference(load_file(weights)["embedding.weight"], Tokenizer.from_file(tokenizer))
    some = [t for t in texts if t] # of a text without tokens it has NaN, Embla 0
    for norm in (False, True):
        theirs = model.embed(some, norm=norm, batch_size=1).astype(numpy.float64)
        mine = ours(numpy, embla, weights, some, "--tokenizer", tokenizer, *(("--normalize",) if norm else ()))
        compare(numpy, "wordllama, %s" % ("unit vectors" if norm else "means"), some, theirs, mine)


def fold(numpy, table, mapping, weights):
    """One row for each token, as sentence-transformers 6 makes it of Model2Vec's tensors."""
    return (table[mapping] * weights[:, None]).astype(numpy.float32)


def static_embedding(numpy, embla, folder, texts, name):
    from safetensors.numpy import save_file
    from tokenizers import Tokenizer
    with tempfile.TemporaryDirectory() as scratch:
        inner = os.path.join(scratch, "model", "0_StaticEmbedding")
        os.makedirs(inner)
        file = unpack(os.path.join(folder, "tokenizers", name, "tokenizer.json"), scratch)
        shutil.copy(file, os.path.join(inner, "tokenizer.json"))
        tokenizer = Tokenizer.from_file(file)
        tokenizer.no_padding()
        rng = numpy.random.default_rng(7)
        table = rng.standard_normal((tokenizer.get_vocab_size(with_added_tokens=True), 96), dtype=numpy.float32)
        save_file({"embedding.weight": table}, os.path.join(inner, "model.safetensors"))
        model = os.path.join(scratch, "model")
        with open(os.path.join(model, "config_sentence_transformers.json"), "w", encoding="ascii") as out:
            json.dump({"prompts": {}, "similarity_fn_name": "cosine"}, out)
        for unit in (False, True):
            modules = [{"idx": 0, "name": "0", "path": "0_StaticEmbedding",
                        "type": "sentence_transformers.models.StaticEmbedding"}]
            if unit:
                modules.append({"idx": 1, "name": "1", "path": "1_Normalize",
                                "type": "sentence_transformers.models.Normalize"})
            with open(os.path.join(model, "modules.json"), "w", encoding="ascii") as out:
                json.dump(modules, out)
            theirs = []
            for text in texts:
                ids = tokenizer.encode(text, add_special_tokens=False).ids
                mean = table[ids].sum(axis=0, dtype=numpy.float32) / numpy.float32(max(len(ids), 1))
                length = numpy.linalg.norm(mean)
                theirs.append(mean / max(length, 1e-12) if unit else mean)
            compare(numpy, "StaticEmbedding with %s, %s" % (name, "unit vectors" if unit else "means"), texts, theirs,
                    ours(numpy, embla, model, texts))
        count = len(table)
        mapping, weights = rng.integers(0, 500, count).astype(numpy.int32), rng.random(count)
        save_file({"embeddings": table[:500], "mapping": mapping, "weights": weights},
                  os.path.join(inner, "model.safetensors"))
        folded, theirs = fold(numpy, table[:500], mapping, weights), []
        for text in texts:
            ids = tokenizer.encode(text, add_special_tokens=False).ids
            mean = folded[ids].sum(axis=0, dtype=numpy.float64) / max(len(ids), 1) # Embla: weights in double
            theirs.append(mean / max(numpy.linalg.norm(mean), 1e-12))
        compare(numpy, "StaticEmbedding with %s, folded" % name, texts, theirs, ours(numpy, embla, model, texts))


def main():
    wordllama = package("wordllama")
    import numpy
    embla, folder = sys.argv[1], data()
    texts = texts_of(folder) + sentences(folder, 1000)
    wordllama_model(numpy, wordllama, embla, texts)
    for name in ("bert-base-uncased", "gpt2", "t5-small"):
        static_embedding(numpy, embla, folder, texts, name)


main()
