#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Row numbers of n-grams, worked out once more and compared with `embla rows`.

Written from the published rules, with Python's own integers and without a line of the library:
primes by division, remainders by %, the generator of numpy from its definition (numpy itself is
asked too, where there is one).

    ngram_oracle.py EMBLA [--tokens N] [--seed S]

runs EMBLA rows --model NAME [--layer N] --json --ids - for each known model on N random tokens
(a few hundred; some are EOS) and prints a line for each. Exit 1 on the first difference.
"""
import argparse
import json
import random
import subprocess
import sys


# ---- numbers ----

def primes_from(base, count):
    """The first count primes that are base or more, by division."""
    found, n = [], max(base, 2)
    while len(found) < count:
        d = 2
        while d * d <= n and n % d:
            d += 1 if d == 2 else 2
        if d * d > n:
            found.append(n)
        n += 1
    return found


def words(value, bits, mask):
    return [value >> shift & mask for shift in range(0, max(value.bit_length(), 1), bits)]


def numpy_below(seed, limit, count):
    """default_rng(seed).integers(0, limit, count): SeedSequence, PCG64, Lemire's rejection."""
    low, high = (1 << 32) - 1, (1 << 64) - 1

    def hasher(constant, factor):
        def step(value):
            nonlocal constant
            value ^= constant
            constant = constant * factor & low
            value = value * constant & low
            return value ^ value >> 16
        return step

    entropy = words(seed, 32, low)
    assert len(entropy) <= 4
    stir = hasher(0x43B0D7E5, 0x931E8875)
    pool = [stir(word) for word in entropy + [0] * (4 - len(entropy))]
    for a in range(4):
        for b in range(4):
            if a != b:
                v = (0xCA01F9DD * pool[b] - 0x4973F715 * stir(pool[a])) & low
                pool[b] = v ^ v >> 16
    draw = hasher(0x8B51F9DD, 0x58F38DED)
    state = [draw(pool[i % 4]) for i in range(8)]
    state = [state[2 * i] + (state[2 * i + 1] << 32) for i in range(4)]

    factor = 2549297995355413924 * 2**64 + 4865540595714422341
    step = (2 * (state[2] * 2**64 + state[3]) + 1) % 2**128
    at = (step + state[0] * 2**64 + state[1]) % 2**128
    at = (at * factor + step) % 2**128
    out = []
    while len(out) < count:
        at = (at * factor + step) % 2**128
        folded, turn = (at >> 64 ^ at) & high, at >> 122
        number = (folded >> turn | folded << (64 - turn) % 64) & high
        if number * limit & high >= 2**64 % limit:
            out.append(number * limit >> 64)
    return out


def splitmix(value):
    value = (value + 0x9E3779B97F4A7C15) % 2**64
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        value = (value ^ value >> shift) * factor % 2**64
    return value ^ value >> 31


def half(vocab):
    return max(1, (2**63 - 1) // vocab // 2)


# ---- models: vocabulary, EOS, and the rows of a window (newest token first; None: nothing) ----

def spread(sizes, values):
    """Values of each column, moved to where its rows begin."""
    begin, out = 0, []
    for size, value in zip(sizes, values):
        out.append(begin + value % size)
        begin += size
    return out


def products(sizes, factors, heads, filler):
    def rows(window):
        mixes, mix = [], 0
        for order, (token, factor) in enumerate(zip(window, factors)):
            mix ^= (filler if token is None else token) * factor
            mixes += [mix] * (heads if order else 0)
        return spread(sizes, mixes)
    return rows, sum(sizes)


def deepseek(layer):
    sizes = primes_from(16000000, 48)
    sizes = sizes[:24] if layer == 1 else sizes[24:]
    factors = [2 * r + 1 for r in numpy_below(10007 * layer, half(99092), 4)]
    rows, total = products(sizes, factors, 8, 2)
    return 99092, None, 4, rows, total


def qwen():
    sizes = primes_from(20000000, 16)
    gamma = 0x9E3779B97F4A7C15
    factors = [2 * (splitmix((1234 + gamma * i) % 2**64) % half(248320)) + 1 for i in (1, 2, 3)]
    rows, total = products(sizes, factors, 8, 248044)
    return 248320, 248044, 3, rows, (total + 127) // 128 * 128


def longcat():
    vocab = 131072
    sizes = [78 * vocab + 2 * i + 1 for i in range(12)]

    def rows(window):
        values = []
        for i in range(12):
            known = [t for t in window[:i // 4 + 2] if t is not None]
            values.append(sum(token * vocab**s for s, token in enumerate(known)))
        return spread(sizes, values)
    return vocab, 2, 4, rows, sum(sizes)


def gemma():
    return 262144, None, 1, lambda window: [window[0]], 262144


MODELS = [("deepseek-v4.1-flash", 1, deepseek(1)), ("deepseek-v4.1-flash", 14, deepseek(14)),
          ("qwen3.8-flash-next", None, qwen()), ("longcat-flash-lite", None, longcat()),
          ("gemma-4-e2b", None, gemma()), ("gemma-4-e4b", None, gemma()),
          ("gemma-3n", None, gemma())]


def windows(tokens, eos, orders):
    """For each token, it and those before it; an EOS before it, and all older, are nothing."""
    for t, token in enumerate(tokens):
        window = [token]
        for s in range(1, orders):
            gone = t < s or window[-1] is None or tokens[t - s] == eos
            window.append(None if gone else tokens[t - s])
        yield window


# ---- the comparison ----

def ask(program, name, layer, tokens):
    command = [program, "rows", "--model", name, "--json", "--ids", "-"]
    command += ["--layer", str(layer)] if layer is not None else []
    done = subprocess.run(command, input=",".join(map(str, tokens)), capture_output=True, text=True)
    if done.returncode:
        sys.exit("%s: exit %d: %s" % (name, done.returncode, done.stderr.strip()))
    return json.loads(done.stdout)


def compare(program, name, layer, model, count, rng):
    vocab, eos, orders, rows, total = model
    tokens = [eos if eos is not None and rng.random() < 0.1 else rng.randrange(vocab)
              for _ in range(count)]
    tokens[:3] = [0, vocab - 1, vocab - 1 if eos is None else eos]
    answer = ask(program, name, layer, tokens)
    want = [rows(window) for window in windows(tokens, eos, orders)]
    if answer["rows_in_table"] != total:
        sys.exit("%s: %d rows, not %d" % (name, answer["rows_in_table"], total))
    if answer["rows_per_token"] != len(want[0]) or len(answer["tokens"]) != count:
        sys.exit("%s: %d columns of %d tokens" % (name, answer["rows_per_token"], len(answer["tokens"])))
    for t, (got, due) in enumerate(zip(answer["tokens"], want)):
        if got["token"] != tokens[t] or got["rows"] != due:
            sys.exit("%s: token %d at %d: %s, not %s" % (name, tokens[t], t, got["rows"], due))
    print("%s%s: %d tokens, %d row numbers, equal" %
          (name, "" if layer is None else " layer %d" % layer, count, count * len(want[0])))


def check_numpy():
    try:
        import numpy
    except ImportError:
        print("numpy is not there: its generator is taken from its definition")
        return
    for seed in (0, 1, 42, 10007, 140098, 2**40 + 7):
        mine = numpy_below(seed, half(99092), 5)
        if mine != numpy.random.default_rng(seed).integers(0, half(99092), 5).tolist():
            sys.exit("numpy %s draws other numbers from seed %d" % (numpy.__version__, seed))
    print("numpy %s draws the same numbers" % numpy.__version__)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program")
    parser.add_argument("--tokens", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    check_numpy()
    rng = random.Random(args.seed)
    for name, layer, model in MODELS:
        compare(args.program, name, layer, model, max(args.tokens, 3), rng)


if __name__ == "__main__":
    main()
