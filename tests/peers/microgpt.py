#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""microGPT in plain Python, to hold a training of ours against: one document a step, f64,
nothing but the standard library. Forward and backward are written out over lists.

    x = norm(wte[token] + wpe[position])
    for each layer:
        h = norm(x); q, k, v = Wq h, Wk h, Wv h
        x = x + Wo attention(q, k, v)       causal, softmax(q.k / sqrt(size of a head))
        h = norm(x); x = x + Wdown relu(Wup h)
    logits = lm_head x                      loss: mean of -log softmax over the positions

norm(x) = x / sqrt(mean of squares + 1e-5), no gain. Adam: 0.85, 0.99, 1e-8, the rate falls from
0.01 to 0 in a straight line. A document is BOS, its characters, BOS, shortened to the positions
there are; characters are numbered in order of code, BOS after them.

    microgpt.py --documents names.txt --weights w.txt --steps 1000   one loss a line, 17 digits
    microgpt.py --documents names.txt --check                        gradients by differences

Weights are text: "name rows dim", then rows x dim numbers, any blanks between; names are wte,
wpe, lm_head, layerN.attn.q .k .v .o, layerN.mlp.up .down, in any order. A file whose name ends
in .safetensors (f32 or f64, the same names) does too: what `embla train` saves. Without --weights
they are drawn (--seed); --save and --save-first write them as text.
"""
import argparse
import json
import math
import operator
import random
import struct
import sys

EPSILON = 1e-5
BETA1, BETA2, ADAM_EPSILON, RATE = 0.85, 0.99, 1e-8, 0.01
LAYER = ("attn.q", "attn.k", "attn.v", "attn.o", "mlp.up", "mlp.down")


# ---- vectors ----

def dot(a, b):
    return sum(map(operator.mul, a, b))


def add(a, b):
    return list(map(operator.add, a, b))


def add_scaled(a, factor, b):
    return [x + factor * y for x, y in zip(a, b)]


def times(w, x):
    """w (out x in) times x."""
    return [dot(row, x) for row in w]


def times_back(w, x, dy, dw):
    """The gradient of x; that of w is added to dw."""
    dx = [0.0] * len(x)
    for i, g in enumerate(dy):
        if g != 0.0:
            dx = add_scaled(dx, g, w[i])
            dw[i] = add_scaled(dw[i], g, x)
    return dx


def norm(x):
    scale = (dot(x, x) / len(x) + EPSILON) ** -0.5
    return [v * scale for v in x]


def norm_back(x, dy):
    scale = (dot(x, x) / len(x) + EPSILON) ** -0.5
    turn = scale ** 3 * dot(dy, x) / len(x)
    return [scale * g - turn * v for g, v in zip(dy, x)]


def softmax(scores):
    most = max(scores)
    e = [math.exp(s - most) for s in scores]
    total = sum(e)
    return [v / total for v in e]


# ---- attention of the newest position; keys and values of all up to it ----

def attend(q, keys, values, heads):
    size = len(q) // heads
    out, weights = [], []
    for h in range(heads):
        a, b = h * size, (h + 1) * size
        w = softmax([dot(q[a:b], k[a:b]) / math.sqrt(size) for k in keys])
        part = [0.0] * size
        for p, v in zip(w, values):
            part = add_scaled(part, p, v[a:b])
        out += part
        weights.append(w)
    return out, weights


def attend_back(q, keys, values, weights, dout, dkeys, dvalues):
    heads = len(weights)
    size = len(q) // heads
    dq = [0.0] * len(q)
    for h, w in enumerate(weights):
        a, b = h * size, (h + 1) * size
        g = dout[a:b]
        dw = [dot(g, v[a:b]) for v in values]
        mean = dot(w, dw)
        for j, p in enumerate(w):
            ds = p * (dw[j] - mean) / math.sqrt(size)
            dq[a:b] = add_scaled(dq[a:b], ds, keys[j][a:b])
            dkeys[j][a:b] = add_scaled(dkeys[j][a:b], ds, q[a:b])
            dvalues[j][a:b] = add_scaled(dvalues[j][a:b], p, g)
    return dq


# ---- the model: layer by layer over all positions of one document ----

def layer_forward(w, n, xs, heads):
    q, k, v, o, up, down = (w["layer%d.%s" % (n, name)] for name in LAYER)
    kept = {"x": xs, "h": [norm(x) for x in xs]}
    kept["q"], kept["k"], kept["v"] = ([times(m, h) for h in kept["h"]] for m in (q, k, v))
    kept["a"], kept["p"], kept["y"], kept["g"], kept["u"] = [], [], [], [], []
    out = []
    for t, x in enumerate(xs):
        a, p = attend(kept["q"][t], kept["k"][:t + 1], kept["v"][:t + 1], heads)
        y = add(x, times(o, a))
        g = norm(y)
        u = times(up, g)
        out.append(add(y, times(down, [max(0.0, s) for s in u])))
        for name, value in zip("apygu", (a, p, y, g, u)):
            kept[name].append(value)
    return out, kept


def layer_back(w, d, n, kept, dout):
    names = ["layer%d.%s" % (n, name) for name in LAYER]
    q, k, v, o, up, down = (w[name] for name in names)
    dq, dk, dv, do, dup, ddown = (d[name] for name in names)
    count, dim = len(dout), len(dout[0])
    dkeys, dvalues = ([[0.0] * dim for _ in range(count)] for _ in range(2))
    dxs = [None] * count
    dqs = [None] * count
    for t in reversed(range(count)):
        u = kept["u"][t]
        du = times_back(down, [max(0.0, s) for s in u], dout[t], ddown)
        du = [g if s > 0.0 else 0.0 for g, s in zip(du, u)]
        dg = times_back(up, kept["g"][t], du, dup)
        dxs[t] = add(dout[t], norm_back(kept["y"][t], dg))
        da = times_back(o, kept["a"][t], dxs[t], do)
        dqs[t] = attend_back(kept["q"][t], kept["k"][:t + 1], kept["v"][:t + 1], kept["p"][t], da,
                             dkeys, dvalues)
    for t in range(count):
        h = kept["h"][t]
        dh = times_back(q, h, dqs[t], dq)
        dh = add(dh, times_back(k, h, dkeys[t], dk))
        dh = add(dh, times_back(v, h, dvalues[t], dv))
        dxs[t] = add(dxs[t], norm_back(kept["x"][t], dh))
    return dxs


def layers_of(w):
    return sum(name.endswith(".attn.q") for name in w)


def learn(w, tokens, targets, heads, gradients=True):
    """The loss, and gradients as weights are; None where they are not asked for."""
    sums = [add(w["wte"][token], w["wpe"][t]) for t, token in enumerate(tokens)]
    xs = [norm(x) for x in sums]
    kept = []
    for n in range(layers_of(w)):
        xs, of_layer = layer_forward(w, n, xs, heads)
        kept.append(of_layer)
    chances = [softmax(times(w["lm_head"], x)) for x in xs]
    loss = sum(-math.log(p[target]) for p, target in zip(chances, targets)) / len(targets)
    if not gradients:
        return loss, None
    d = {name: [[0.0] * len(row) for row in rows] for name, rows in w.items()}
    dxs = []
    for p, target, x in zip(chances, targets, xs):
        dl = [v / len(targets) for v in p]
        dl[target] -= 1.0 / len(targets)
        dxs.append(times_back(w["lm_head"], x, dl, d["lm_head"]))
    for n in reversed(range(layers_of(w))):
        dxs = layer_back(w, d, n, kept[n], dxs)
    for t, token in enumerate(tokens):
        g = norm_back(sums[t], dxs[t])
        d["wte"][token] = add(d["wte"][token], g)
        d["wpe"][t] = add(d["wpe"][t], g)
    return loss, d


def adam(w, d, m, v, step, steps):
    rate = RATE * (1 - step / steps)
    first, second = 1 - BETA1 ** (step + 1), 1 - BETA2 ** (step + 1)
    for name, rows in w.items():
        for i, g in enumerate(d[name]):
            a = m[name][i] = [BETA1 * p + (1 - BETA1) * x for p, x in zip(m[name][i], g)]
            b = v[name][i] = [BETA2 * p + (1 - BETA2) * x * x for p, x in zip(v[name][i], g)]
            rows[i] = [p - rate * (x / first) / (math.sqrt(y / second) + ADAM_EPSILON)
                       for p, x, y in zip(rows[i], a, b)]


# ---- files ----

def read_documents(path):
    with open(path, encoding="utf-8", newline="\n") as file:
        lines = [line.rstrip("\n") for line in file]
    lines = [line[:-1] if line.endswith("\r") else line for line in lines]
    return [line for line in lines if line]


def read_safetensors(path):
    with open(path, "rb") as file:
        length, = struct.unpack("<Q", file.read(8))
        header, numbers = json.loads(file.read(length)), file.read()
    w = {}
    for name, tensor in header.items():
        if name == "__metadata__":
            continue
        rows, dim = tensor["shape"]
        letter = {"F32": "f", "F64": "d"}[tensor["dtype"]]
        data = numbers[slice(*tensor["data_offsets"])]
        flat = struct.unpack("<%d%s" % (rows * dim, letter), data)
        w[name] = [list(flat[i * dim:(i + 1) * dim]) for i in range(rows)]
    return w


def read_weights(path):
    if path.endswith(".safetensors"):
        return read_safetensors(path)
    with open(path, encoding="ascii") as file:
        words = iter(file.read().split())
    w = {}
    for name in words:
        rows, dim = int(next(words)), int(next(words))
        w[name] = [[float(next(words)) for _ in range(dim)] for _ in range(rows)]
    return w


def write_weights(path, w):
    with open(path, "w", encoding="ascii") as file:
        for name, rows in w.items():
            file.write("%s %d %d\n" % (name, len(rows), len(rows[0])))
            for row in rows:
                file.write(" ".join("%.17g" % x for x in row) + "\n")


def draw_weights(vocab, positions, dim, layers, seed):
    draw = random.Random(seed)
    shapes = {"wte": (vocab, dim), "wpe": (positions, dim), "lm_head": (vocab, dim)}
    for n in range(layers):
        for name in LAYER:
            shapes["layer%d.%s" % (n, name)] = {"mlp.up": (4 * dim, dim),
                                               "mlp.down": (dim, 4 * dim)}.get(name, (dim, dim))
    return {name: [[draw.gauss(0, 0.08) for _ in range(dim)] for _ in range(rows)]
            for name, (rows, dim) in shapes.items()}


# ---- what it is run for ----

def check(w, tokens, targets, heads, seed):
    """The largest difference between gradients and central differences, by the largest gradient
    of each tensor; 24 numbers of each, in rows that the document uses."""
    draw, worst = random.Random(seed), 0.0
    _, d = learn(w, tokens, targets, heads)
    for name, rows in w.items():
        most = max(abs(g) for row in d[name] for g in row)
        for _ in range(24):
            i, j = draw.randrange(len(rows)), draw.randrange(len(rows[0]))
            if name == "wte":
                i = draw.choice(tokens)
            if name == "wpe":
                i = draw.randrange(len(tokens))
            was, losses = rows[i][j], []
            for moved in (was + 1e-5, was - 1e-5):
                rows[i][j] = moved
                losses.append(learn(w, tokens, targets, heads, False)[0])
            rows[i][j] = was
            gap = abs((losses[0] - losses[1]) / 2e-5 - d[name][i][j]) / most
            worst = max(worst, gap)
        print("%-16s largest gradient %.3e, worst so far %.1e" % (name, most, worst))
    return worst


def main():
    p = argparse.ArgumentParser(description="microGPT in plain Python")
    p.add_argument("--documents", required=True)
    p.add_argument("--weights")
    p.add_argument("--steps", type=int, default=1000)
    p.add_argument("--of", type=int, default=0, help="steps that the rate falls over; 0: --steps")
    p.add_argument("--heads", type=int, default=4)
    p.add_argument("--layers", type=int, default=1)
    p.add_argument("--dim", type=int, default=16)
    p.add_argument("--positions", type=int, default=16)
    p.add_argument("--seed", type=int, default=42)
    p.add_argument("--shuffle", type=int, help="a seed: documents shuffled as Python does")
    p.add_argument("--save-first", metavar="FILE", help="the weights before the first step")
    p.add_argument("--save", metavar="FILE", help="the weights after the last step")
    p.add_argument("--check", action="store_true")
    o = p.parse_args()
    documents = read_documents(o.documents)
    letters = sorted(set("".join(documents)))
    number = {c: i for i, c in enumerate(letters)}
    bos = len(letters)
    if o.shuffle is not None:
        random.Random(o.shuffle).shuffle(documents)
    w = (read_weights(o.weights) if o.weights
         else draw_weights(bos + 1, o.positions, o.dim, o.layers, o.seed))
    if len(w["wte"]) != bos + 1:
        sys.exit("wte has %d rows, and there are %d characters and BOS" % (len(w["wte"]), bos))
    if o.save_first:
        write_weights(o.save_first, w)
    m, v = ({name: [[0.0] * len(row) for row in rows] for name, rows in w.items()}
            for _ in range(2))
    for step in range(o.steps):
        text = documents[step % len(documents)]
        sequence = [bos] + [number[c] for c in text] + [bos]
        n = min(len(w["wpe"]), len(sequence) - 1)
        tokens, targets = sequence[:n], sequence[1:n + 1]
        if o.check:
            worst = check(w, tokens, targets, o.heads, o.seed)
            return 0 if worst < 1e-6 else 1
        loss, d = learn(w, tokens, targets, o.heads)
        print("%.17g" % loss)
        adam(w, d, m, v, step, o.of or o.steps)
    if o.save:
        write_weights(o.save, w)
    return 0


if __name__ == "__main__":
    sys.exit(main())
