#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads per token of a giant table on disk: plain, packed, with bundles, and with hot n-grams.

    bench/bundles.py EMBLA TEXT TOKENIZER FOLDER [--gib 4] [--tokens 50000]

TEXT is the enwiki text, unpacked. Its first 90 % are counted, and tokens of the last 10 % are read:
no n-gram is counted where it is measured. The table has rows of 160 bytes, physically written, and
Qwen's hasher with smaller heads. Needs NumPy, and about three times --gib of disk in FOLDER, which
is not removed: a second call uses what is there.

The hits of hot n-grams are compared with a simulator of the same policy, which is below and shares
no code with the library: a fixed set, and CLOCK for the rest.
"""
import argparse
import json
import subprocess
import sys
from pathlib import Path

import numpy

HEADS, COLUMNS, DIM, EOS, VOCAB = 8, 16, 160, 2, 151936
PAGE = 4096


def is_prime(n):
    return n > 1 and all(n % d for d in range(2, int(n ** 0.5) + 1))


def primes_from(base, count):
    found = []
    while len(found) < count:
        if is_prime(base):
            found.append(base)
        base += 1
    return found


def write_table(folder, gib):
    """A checkpoint in one file: config.json and the table."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "model.safetensors"
    if path.exists():
        return
    base = int(gib * 2 ** 30) // DIM // COLUMNS
    rows = sum(primes_from(base, COLUMNS))
    (folder / "config.json").write_text(json.dumps({
        "model_type": "qwen4_exp", "vocab_size": VOCAB, "eos_token_id": EOS, "ngram_size": 3,
        "heads_per_ngram": HEADS, "ngram_vocab_size_base": base, "ple_layer_ids": [2],
        "make_ngram_vocab_size_divisible_by": 1}))
    header = json.dumps({"model.layers.1.ngram_embedding.weight": {
        "dtype": "F8_E4M3", "shape": [rows, DIM], "data_offsets": [0, rows * DIM]}}).encode()
    header += b" " * (-len(header) % 8)
    random = numpy.random.default_rng(1)
    temporary = path.with_suffix(".part")
    with open(temporary, "wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        left = rows * DIM
        while left > 0:
            block = random.integers(0, 255, min(left, 1 << 24), numpy.uint8) & 0xBF  # no NaN
            file.write(block.tobytes())
            left -= len(block)
    temporary.rename(path)


def run(*arguments, stdin=None):
    done = subprocess.run([str(a) for a in arguments], stdin=stdin, stdout=subprocess.PIPE)
    if done.returncode != 0:
        sys.exit(f"{arguments[0]} {arguments[1]} ended with {done.returncode}")
    return done.stdout


def replay(embla, table, trace, *options):
    return json.loads(run(embla, "trace", table, "--replay", trace, "--json", *options))["stats"]


# ---- the simulator ----

def bundles_of(path):
    """The n-grams of a pack, most frequent first, read without the library."""
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))
    manifest = json.loads(header["__metadata__"]["embla.pack"])
    count, heads = manifest["bundles"], manifest["bundle_heads"]
    start = 8 + length
    order_at = start + header["pack.order"]["data_offsets"][0]
    order = numpy.memmap(path, "<u4", "r", order_at, (count,))
    begin, end = header["pack.bundles"]["data_offsets"]
    pages = numpy.memmap(path, numpy.uint8, "r", start + begin, (end - begin,))
    step = DIM + 8
    group = PAGE // (heads * step)
    for number in order:
        at = int(number) // group * PAGE + int(number) % group * heads * step
        yield tuple(int(pages[at + h * step:at + h * step + 8].view("<i8")[0])
                    for h in range(heads))


def simulate(trace, frequent, capacity):
    """The share of rows that a fixed set of 7/8 of the entries and CLOCK in the rest find."""
    fixed, clock, hand, hits, asked = set(), {}, 0, 0, 0
    for ngram in frequent:
        if len(fixed) == capacity - capacity // 8:
            break
        fixed.add(ngram)
    ring, most = [], capacity - len(fixed)
    for row in trace:
        grams = [tuple(int(x) for x in row[i:i + HEADS]) for i in range(0, len(row), HEADS)]
        missed = False
        for gram in grams:  # a ticket looks for all its n-grams, then keeps what it has read
            asked += 1
            if gram in fixed:
                hits += 1
            elif gram in clock:
                clock[gram] = True
                hits += 1
            else:
                missed = True
        for gram in grams if missed else ():
            if gram in fixed or gram in clock:
                continue
            if len(ring) < most:
                ring.append(gram)
            else:
                while clock[ring[hand]]:
                    clock[ring[hand]] = False
                    hand = (hand + 1) % most
                del clock[ring[hand]]
                ring[hand] = gram
                hand = (hand + 1) % most
            clock[gram] = False
    return hits / asked


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("embla", "text", "tokenizer", "folder"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--gib", type=float, default=4)
    parser.add_argument("--tokens", type=int, default=50000)
    parser.add_argument("--disk", type=int, default=1000000, help="bundles of each order")
    parser.add_argument("--memory", type=int, default=100000, help="hot n-grams of each order")
    o = parser.parse_args()
    source, packed = o.folder / "source", o.folder / "packed.safetensors"
    write_table(source, o.gib)
    text = o.text.read_bytes()
    cut = text.index(b"\n", len(text) * 9 // 10) + 1
    train, held = o.folder / "train.txt", o.folder / "held.txt"
    train.write_bytes(text[:cut])
    held.write_bytes(text[cut:cut + 8 * o.tokens])
    if not packed.exists():
        print(run(o.embla, "pack", source, packed, "--frequent", o.disk, "--text", train,
                  "--tokenizer", o.tokenizer).decode(), end="")
    ids = run(o.embla, "tokens", o.tokenizer, "-f", held, "--format", "ids").split()[:o.tokens]
    trace = o.folder / "held.npy"
    (o.folder / "ids").write_bytes(b"\n".join(ids) + b"\n")
    with open(o.folder / "ids", "rb") as file:
        run(o.embla, "trace", source, "--ids", "-", "-o", trace, "--force", "-q", stdin=file)
    entry = HEADS * (DIM + 8) + 1 + 16  # rows and their numbers, a flag, slots
    budget = 2 * o.memory * 8 // 7 * entry
    hot = ("--hot-bytes", budget, "--hot-rows-per-ngram", HEADS, "--hot-file", packed)
    ways = {"plain": (source,), "packed": (packed,), "packed and hot": (packed, *hot),
            "plain and hot": (source, *hot)}
    first = None
    rows = numpy.load(trace)
    print(f"{len(rows)} held-out tokens, {len(numpy.unique(rows))} of {rows.size} rows are different")
    for name, (table, *options) in ways.items():
        s = replay(o.embla, table, trace, *options)
        per = s["reads"] / s["tokens"]
        first = first or per
        print(f"{name:15} {per:6.2f} reads per token ({per / first:.3f} of plain), "
              f"{100 * s['hot'] / s['rows']:.1f} % hot ({100 * s['hot_fixed'] / s['rows']:.1f} % "
              f"from the beginning), {100 * s['bundled'] / s['rows']:.1f} % bundled, "
              f"p50 {s['p50_ns'] / 1e3:.0f} us")
        if s["hot_bytes"] > budget:
            sys.exit(f"{s['hot_bytes']} bytes of hot rows exceed the budget of {budget}")
        if name == "packed and hot":
            found = s
    capacity = found["hot_rows"] // HEADS
    share = simulate(rows, bundles_of(packed), capacity)
    print(f"hot rows        {100 * found['hot'] / found['rows']:.2f} %, the simulator "
          f"{100 * share:.2f} %, {capacity} n-grams, {found['hot_bytes']} of {budget} bytes")


main()
