# SPDX-License-Identifier: Apache-2.0
"""Jobs on text: lines to tokens and to vectors, with real tokenizers and a real text of EMBLA_DATA."""
import ctypes
import glob
import json
import lzma
import os
import struct

import numpy

from peers.ours import agree, at, c_bool, c_int, c_ptr, c_size, normal, structure

TokenizeOptions = structure(("add_special", c_bool), ("plain", c_bool), ("offsets", c_bool),
                            ("truncate", c_bool), ("pad", c_bool), ("strict", c_bool),
                            ("threads", c_int), ("max_tokens", c_size), ("progress", c_ptr),
                            ("context", c_ptr))
EncodeOptions = structure(("dim", c_size), ("normalize", c_int), ("max_tokens", c_size),
                          ("truncate", c_bool), ("plain", c_bool), ("strict", c_bool),
                          ("threads", c_int), ("progress", c_ptr), ("context", c_ptr))

Texts = structure(("texts", c_ptr), ("lengths", c_ptr), ("count", c_size))

TOKENIZERS = (("WordPiece, BERT", "bert-base-uncased", "^wordpiece$"),
              ("byte-level BPE, GPT-2", "gpt2", "^bpe$"),
              ("byte-level BPE, Qwen 2.5", "qwen2.5", "^bpe$"),
              ("Unigram, T5", "t5-small", "^unigram$"))
DIM = 256


def unpacked(run, name):
    """The path of a tokenizer.json; None if there is no EMBLA_DATA."""
    path = os.path.join(os.environ.get("EMBLA_DATA", ""), "tokenizers", name, "tokenizer.json")
    if os.path.exists(path):
        return path
    if not os.path.exists(path + ".xz"):
        return None
    out = os.path.join(run.folder, name + ".json")
    with lzma.open(path + ".xz") as packed, open(out, "wb") as to:
        to.write(packed.read())
    return out


def lines_of(run):
    """Lines of enwiki100, without empty ones; None if there is no EMBLA_DATA."""
    packed = glob.glob(os.path.join(os.environ.get("EMBLA_DATA", ""), "enwiki100", "*.xz"))
    if not packed:
        return None
    with lzma.open(packed[0]) as file:
        text = file.read(50000 if run.small else 4000000).decode("utf-8", "ignore")
    return [line for line in text.split("\n") if line]


class Lines:
    """Lines as C has them."""

    def __init__(self, lines):
        self.bytes = [line.encode() for line in lines]
        self.all = sum(map(len, self.bytes))
        self.texts = (ctypes.c_char_p * len(lines))(*self.bytes)
        self.lengths = (c_size * len(lines))(*map(len, self.bytes))
        self.struct = Texts(texts=ctypes.addressof(self.texts),
                            lengths=ctypes.addressof(self.lengths), count=len(lines))
        self.given = ctypes.byref(self.struct)


def tokens_of(run, tokenized):
    library = run.embla.library
    library.embla_tokenized_count.restype = c_size
    library.embla_tokenized_tokens.restype = c_ptr
    count, address = library.embla_tokenized_count(tokenized), library.embla_tokenized_tokens(tokenized)
    return numpy.ctypeslib.as_array(ctypes.cast(address, ctypes.POINTER(ctypes.c_int32)), (count,))


def tokenize(run):
    """Lines to tokens, without offsets on both sides (encode_batch_fast)."""
    lines = given = None
    for what, name, limit in TOKENIZERS:
        job = "text to tokens, %s" % what
        path = run.wants(job) and unpacked(run, name)
        library = path and run.has("tokenizers")
        lines = library and (lines or lines_of(run))
        if not lines:
            continue
        given = given or Lines(lines)
        tokenizer = run.embla.made("tokenizer_open_file", path.encode())
        tokenized = run.embla.made("tokenized_new", tokenizer)
        options = ctypes.byref(TokenizeOptions(threads=run.threads))
        ours = lambda: run.embla("tokenize_batch", tokenized, given.given, options)
        peer = library.Tokenizer.from_file(path)
        peer.no_truncation(), peer.no_padding()
        theirs = lambda: peer.encode_batch_fast(lines, add_special_tokens=False)
        ours()
        same = numpy.concatenate([encoded.ids for encoded in theirs()])
        assert numpy.array_equal(tokens_of(run, tokenized), same), job
        run.measure(job, run.peer("tokenizers"), ours, theirs, limit=("text", limit),
                    work=given.all * 1e-6, unit="MB/s")
        run.embla.free("tokenized", tokenized)
        run.embla.free("tokenizer", tokenizer)


def write_model(folder, tokenizer):
    """A static model of Model2Vec with random rows."""
    with open(tokenizer, encoding="utf-8") as file:
        text = file.read()
    rows = normal(1 + max(json.loads(text)["model"]["vocab"].values()), DIM)
    header = json.dumps({"embeddings": {"dtype": "F32", "shape": rows.shape,
                                        "data_offsets": [0, rows.nbytes]}})
    header += " " * (-len(header) % 64)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "model.safetensors"), "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header.encode() + rows.tobytes())
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as file:
        json.dump({"model_type": "model2vec", "normalize": True}, file)
    with open(os.path.join(folder, "tokenizer.json"), "w", encoding="utf-8") as file:
        file.write(text)


def encode(run):
    """Lines to vectors of 256 numbers, with the tokenizer of BERT."""
    job = "text to vectors, WordPiece, BERT, dim %d" % DIM
    path = run.wants(job) and unpacked(run, "bert-base-uncased")
    model2vec = path and run.has("model2vec")
    lines = model2vec and lines_of(run)
    if not lines:
        return
    folder, given = os.path.join(run.folder, "static"), Lines(lines)
    write_model(folder, path)
    encoder = run.embla.made("encoder_open", folder.encode(), None)
    out = numpy.empty((len(lines), DIM), "f4")
    options = ctypes.byref(EncodeOptions(threads=run.threads))
    ours = lambda: run.embla("encoder_encode", encoder, given.given, options, at(out), None)
    model = model2vec.StaticModel.from_pretrained(folder)
    theirs = lambda: model.encode(lines, max_length=None, use_multiprocessing=False)
    ours()
    agree(job, out, theirs(), 1e-5)
    run.measure(job, run.peer("model2vec"), ours, theirs, limit=("text", "^vector$"),
                work=given.all * 1e-6, unit="MB/s")
    run.embla.free("encoder", encoder)


JOBS = (tokenize, encode)
