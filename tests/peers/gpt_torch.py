#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch beside a model of ours: loss, gradients, logits.

    gpt_torch.py EMBLA GPT_NUMBERS

Random models of small shapes (GPT-2's, Llama's, microGPT's and others): the loss and the gradients
of all tensors as PyTorch's autograd has them in double, to 1e-5 of the largest of each tensor. Then
folders, trained by `embla train` and written by embla_gpt_save: exactly
the tensors of GPT2LMHeadModel and LlamaForCausalLM, and from the folder alone PyTorch computes the
logits that we have, to 1e-4 of the largest. `embla predict` of the same folders has PyTorch's
logits to 1e-4, the same ten tokens in the same order, and the bits of each token. The models are
written out below; no other module is needed. Exits 77 where there is no torch.
"""
import json
import math
import os
import struct
import sys
import tempfile

os.environ.setdefault("OMP_WAIT_POLICY", "passive")
sys.dont_write_bytecode = True  # beside common.py

from common import answer, must, skip

try:
    import numpy
    import torch
    from torch.nn import functional
except ImportError:
    skip("there is no module torch: nothing is compared")

SHAPES = ("gpt2", "gpt2-untied", "llama", "llama2c", "microgpt", "squared")
GPT2_FOLDERS = ("gpt2", "gpt2-untied")
LLAMA_FOLDERS = ("llama", "llama2c")
DTYPES = {"F32": numpy.float32, "I32": numpy.int32}
RMS, SINUSOIDAL, ROTARY, INTERLEAVED = 1, 1, 2, 0
TOKENIZER_KEYS = {"version", "truncation", "padding", "added_tokens", "normalizer",
                  "pre_tokenizer", "post_processor", "decoder", "model"}
TEXT = "To be, or not to be, that is the question:\nWhether 'tis nobler in the mind to suffer\n"


def read_safetensors(path):
    """Tensors by name, and what the file says of itself."""
    with open(path, "rb") as file:
        data = file.read()
    length, = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    said = header.pop("__metadata__", {})
    numbers = data[8 + length:]
    return {name: torch.from_numpy(numpy.frombuffer(
        numbers[slice(*t["data_offsets"])], DTYPES[t["dtype"]]).reshape(t["shape"]).copy())
        for name, t in header.items()}, said


def gap(ours, theirs):
    """The largest difference, by the largest number."""
    most = theirs.abs().max().item()
    return (ours - theirs).abs().max().item() / most if most > 0 else ours.abs().max().item()


# ---- what models have in common ----

def attention(q, k, v):
    """Causal; (B, heads, T, size). Groups of heads share keys and values."""
    length, shared = q.shape[-2], q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(shared, 1), v.repeat_interleave(shared, 1)
    scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
    past = torch.ones(length, length, dtype=torch.bool).tril()
    return torch.softmax(scores.masked_fill(~past, float("-inf")), -1) @ v


def heads_of(x, heads):
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def joined(x):
    return x.transpose(1, 2).flatten(2)


def rms(x, epsilon):
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + epsilon)


def turned(x, theta, halves):
    """Rotary positions. Pairs are i and i + size/2 (halves), or 2i and 2i + 1."""
    length, size = x.shape[-2:]
    rates = theta ** (-torch.arange(0, size, 2, dtype=torch.float64) / size)
    angles = torch.arange(length, dtype=torch.float64)[:, None] * rates
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    a, b = (x[..., :size // 2], x[..., size // 2:]) if halves else (x[..., 0::2], x[..., 1::2])
    first, second = a * cos - b * sin, a * sin + b * cos
    if halves:
        return torch.cat((first, second), -1)
    return torch.stack((first, second), -1).flatten(-2)


def sinusoid(length, dim, dtype):
    """A table of f32, as the model has it."""
    rates = 10000.0 ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    angles = torch.arange(length, dtype=torch.float64)[:, None] * rates
    return torch.stack((angles.sin(), angles.cos()), -1).flatten(-2).float().to(dtype)


# ---- gradients: a decoder under our names, of any shape ----

class Decoder:
    def __init__(self, weights, said):
        self.w = weights
        self.of = {key: float(value) for key, value in said.items()}
        self.heads, self.kv_heads = int(self.of["heads"]), int(self.of["kv_heads"])

    def norm(self, x, name):
        gain, bias = self.w.get(name + ".gain"), self.w.get(name + ".bias")
        epsilon = self.of["epsilon"]
        if self.of["norm"] == RMS:
            y = rms(x, epsilon)
            return y if gain is None else y * gain[0]
        return functional.layer_norm(x, x.shape[-1:], None if gain is None else gain[0],
                                     None if bias is None else bias[0], epsilon)

    def linear(self, x, name):
        bias = self.w.get(name + ".bias")
        return functional.linear(x, self.w[name], None if bias is None else bias[0])

    def attend(self, x, before):
        q = heads_of(self.linear(x, before + "q"), self.heads)
        k = heads_of(self.linear(x, before + "k"), self.kv_heads)
        v = heads_of(self.linear(x, before + "v"), self.kv_heads)
        if self.of["positions"] == ROTARY:
            halves = self.of["rope_order"] != INTERLEAVED
            q, k = (turned(part, self.of["theta"], halves) for part in (q, k))
        return self.linear(joined(attention(q, k, v)), before + "o")

    def feed(self, x, before):
        up, kind = self.linear(x, before + "up"), int(self.of["activation"])
        if kind == 3:
            up = functional.silu(self.linear(x, before + "gate")) * up
        else:
            up = (lambda a: functional.gelu(a, approximate="tanh"), torch.relu,
                  lambda a: torch.relu(a).square())[kind](up)
        return self.linear(up, before + "down")

    def logits(self, tokens):
        x = self.w["wte"][tokens]
        if "wpe" in self.w:
            x = x + self.w["wpe"][:tokens.shape[1]]
        elif self.of["positions"] == SINUSOIDAL:
            x = x + sinusoid(tokens.shape[1], x.shape[-1], x.dtype)
        if self.of["first"]:
            x = self.norm(x, "norm_first")
        for n in range(int(self.of["layers"])):
            x = x + self.attend(self.norm(x, "layer%d.norm1" % n), "layer%d.attn." % n)
            x = x + self.feed(self.norm(x, "layer%d.norm2" % n), "layer%d.mlp." % n)
        if self.of["last"]:
            x = self.norm(x, "norm")
        return x @ self.w.get("lm_head", self.w["wte"]).T


def compare_gradients(numbers, folder, shape):
    """Ours are f32; PyTorch's, from the same f32 weights, are f64."""
    path = os.path.join(folder, "learn")
    must(numbers, "learn", shape, path)
    tensors, said = read_safetensors(path)
    tokens, targets = tensors.pop("tokens").long(), tensors.pop("targets").long()
    weights = {name: t.double().requires_grad_() for name, t in tensors.items()
               if name[:2] != "d."}
    model = Decoder(weights, said)
    loss = functional.cross_entropy(model.logits(tokens).flatten(0, 1), targets.flatten(),
                                    ignore_index=-100)
    loss.backward()
    most = 1e-5
    worst = abs(loss.item() - float(said["loss"])) / loss.item()
    assert worst <= most, (shape, "loss", loss.item(), said["loss"])
    for name, weight in weights.items():
        assert weight.grad.abs().max() > 0, (shape, name, "nothing is learned")
        # A key's bias moves all scores of a query alike: nothing but rounding is left.
        if not name.endswith("attn.k.bias") or said["positions"] == "2":
            far = gap(tensors["d." + name], weight.grad)
        else:
            far = (tensors["d." + name] - weight.grad).abs().max().item()
        assert far <= most, (shape, name, far)
        worst = max(worst, far)
    return worst, len(weights)


# ---- folders: the models that their names promise ----

def gpt2_list(config):
    """The tensors of GPT2LMHeadModel. Linear weights are stored input x output."""
    dim, inner = config["n_embd"], config.get("n_inner") or 4 * config["n_embd"]
    shapes = {"transformer.wte.weight": [config["vocab_size"], dim],
              "transformer.wpe.weight": [config["n_positions"], dim],
              "transformer.ln_f.weight": [dim], "transformer.ln_f.bias": [dim]}
    if not config.get("tie_word_embeddings", True):
        shapes["lm_head.weight"] = [config["vocab_size"], dim]
    layer = {"ln_1.weight": [dim], "ln_1.bias": [dim],
             "attn.c_attn.weight": [dim, 3 * dim], "attn.c_attn.bias": [3 * dim],
             "attn.c_proj.weight": [dim, dim], "attn.c_proj.bias": [dim],
             "ln_2.weight": [dim], "ln_2.bias": [dim],
             "mlp.c_fc.weight": [dim, inner], "mlp.c_fc.bias": [inner],
             "mlp.c_proj.weight": [inner, dim], "mlp.c_proj.bias": [dim]}
    for n in range(config["n_layer"]):
        shapes.update(("transformer.h.%d.%s" % (n, name), shape) for name, shape in layer.items())
    return shapes


def gpt2_logits(w, config, tokens):
    dim, epsilon = config["n_embd"], config["layer_norm_epsilon"]

    def norm(x, name):
        return functional.layer_norm(x, (dim,), w[name + ".weight"], w[name + ".bias"], epsilon)

    def conv1d(x, name):
        return x @ w[name + ".weight"] + w[name + ".bias"]

    assert config["activation_function"] == "gelu_new", config["activation_function"]
    x = w["transformer.wte.weight"][tokens] + w["transformer.wpe.weight"][:tokens.shape[1]]
    for n in range(config["n_layer"]):
        at = "transformer.h.%d." % n
        q, k, v = (heads_of(part, config["n_head"])
                   for part in conv1d(norm(x, at + "ln_1"), at + "attn.c_attn").split(dim, -1))
        x = x + conv1d(joined(attention(q, k, v)), at + "attn.c_proj")
        h = functional.gelu(conv1d(norm(x, at + "ln_2"), at + "mlp.c_fc"), approximate="tanh")
        x = x + conv1d(h, at + "mlp.c_proj")
    head = w.get("lm_head.weight", w["transformer.wte.weight"])
    return norm(x, "transformer.ln_f") @ head.T


def llama_list(config):
    """The tensors of LlamaForCausalLM: linear weights are stored output x input."""
    dim, inner = config["hidden_size"], config["intermediate_size"]
    keys = dim // config["num_attention_heads"] * config["num_key_value_heads"]
    shapes = {"model.embed_tokens.weight": [config["vocab_size"], dim],
              "model.norm.weight": [dim]}
    if not config.get("tie_word_embeddings", False):
        shapes["lm_head.weight"] = [config["vocab_size"], dim]
    linear = {"self_attn.q_proj": (dim, dim), "self_attn.k_proj": (keys, dim),
              "self_attn.v_proj": (keys, dim), "self_attn.o_proj": (dim, dim),
              "mlp.gate_proj": (inner, dim), "mlp.up_proj": (inner, dim),
              "mlp.down_proj": (dim, inner)}
    for n in range(config["num_hidden_layers"]):
        at = "model.layers.%d." % n
        shapes[at + "input_layernorm.weight"] = [dim]
        shapes[at + "post_attention_layernorm.weight"] = [dim]
        for name, (rows, columns) in linear.items():
            shapes[at + name + ".weight"] = [rows, columns]
            if config.get("mlp_bias" if name[:3] == "mlp" else "attention_bias", False):
                shapes[at + name + ".bias"] = [rows]
    return shapes


def llama_logits(w, config, tokens):
    heads, kv_heads = config["num_attention_heads"], config["num_key_value_heads"]

    def norm(x, name):
        return rms(x, config["rms_norm_eps"]) * w[name + ".weight"]

    def linear(x, name):
        return functional.linear(x, w[name + ".weight"], w.get(name + ".bias"))

    assert config["hidden_act"] == "silu", config["hidden_act"]
    x = w["model.embed_tokens.weight"][tokens]
    for n in range(config["num_hidden_layers"]):
        at = "model.layers.%d." % n
        h = norm(x, at + "input_layernorm")
        q = turned(heads_of(linear(h, at + "self_attn.q_proj"), heads), config["rope_theta"], True)
        k = turned(heads_of(linear(h, at + "self_attn.k_proj"), kv_heads), config["rope_theta"],
                   True)
        v = heads_of(linear(h, at + "self_attn.v_proj"), kv_heads)
        x = x + linear(joined(attention(q, k, v)), at + "self_attn.o_proj")
        h = norm(x, at + "post_attention_layernorm")
        h = functional.silu(linear(h, at + "mlp.gate_proj")) * linear(h, at + "mlp.up_proj")
        x = x + linear(h, at + "mlp.down_proj")
    return norm(x, "model.norm") @ w.get("lm_head.weight", w["model.embed_tokens.weight"]).T


KINDS = {"gpt2": ("GPT2LMHeadModel", gpt2_list, gpt2_logits, "n_positions"),
         "llama": ("LlamaForCausalLM", llama_list, llama_logits, "max_position_embeddings")}


def read_config(folder):
    with open(os.path.join(folder, "config.json"), encoding="utf-8") as file:
        return json.load(file)


def tokens_for(config, kind):
    count = min(config[KINDS[kind][3]], 48)
    return [(7 * i * i + 3 * i + 1) % config["vocab_size"] for i in range(count)]


def compare_predicted(embla, folder, kind):
    """`embla predict` with token numbers, because the folder has no tokenizer."""
    config, logits_of = read_config(folder), KINDS[kind][2]
    tokens = tokens_for(config, kind)
    weights, _ = read_safetensors(os.path.join(folder, "model.safetensors"))
    said = answer(embla, "predict", folder, ",".join(map(str, tokens)), "--top", "10",
                  "--temperature", "0.5", "--token", "#5")
    text, = said["texts"]
    with torch.no_grad():
        theirs = logits_of(weights, config, torch.tensor([tokens]))[0].double()
    assert said["head"] == ("separate" if "lm_head.weight" in weights else "tied"), said["head"]
    assert [t["id"] for t in text["tokens"]] == tokens, text["tokens"]
    assert [n["id"] for n in text["next"]] == theirs[-1].topk(10).indices.tolist(), text["next"]
    assert [n["rank"] for n in text["next"]] == list(range(1, 11))
    asked = text["asked"]
    assert asked["rank"] == 1 + (theirs[-1] > theirs[-1][5]).sum().item(), asked
    worst = max(abs(n["logit"] - theirs[-1][n["id"]].item()) for n in text["next"] + [asked])
    logs = torch.log_softmax(2 * theirs, -1)
    for entry in text["next"] + [asked]:
        assert abs(entry["probability"] - logs[-1][entry["id"]].exp().item()) <= 1e-4, entry
    for at, entry in enumerate(text["tokens"][1:]):
        worst = max(worst, abs(entry["logit"] - theirs[at][entry["id"]].item()))
        assert abs(entry["bits"] + logs[at][entry["id"]].item() / math.log(2)) <= 1e-3, entry
    loss = functional.nll_loss(logs[:-1], torch.tensor(tokens[1:])).item()
    assert abs(text["bits_per_token"] - loss / math.log(2)) <= 1e-4, (text["bits_per_token"], loss)
    assert abs(text["perplexity"] / math.exp(loss) - 1) <= 1e-4, (text["perplexity"], loss)
    assert worst <= 1e-4, (folder, worst)
    return worst


def compare_folder(numbers, scratch, folder, kind):
    config = read_config(folder)
    weights, said = read_safetensors(os.path.join(folder, "model.safetensors"))
    architecture, list_of, logits_of, _ = KINDS[kind]
    assert config["model_type"] == kind and config["architectures"] == [architecture], config
    assert said == {"format": "pt"}, said
    shapes = {name: list(t.shape) for name, t in weights.items()}
    assert shapes == list_of(config), sorted(set(map(str, shapes.items()))
                                             ^ set(map(str, list_of(config).items())))
    assert all(t.dtype == torch.float32 for t in weights.values())
    tokens = tokens_for(config, kind)
    path = os.path.join(scratch, "logits")
    must(numbers, "logits", folder, path, *map(str, tokens))
    ours, _ = read_safetensors(path)
    with torch.no_grad():
        theirs = logits_of(weights, config, torch.tensor([tokens]))[0]
    worst = max(gap(ours["logits"], theirs), gap(ours["decoded"], theirs))
    assert worst <= 1e-4, (folder, worst)
    return worst


def check_tokenizer(folder, text):
    """What the library `tokenizers` asks for, and that the text can be written with it."""
    config = read_config(folder)
    with open(os.path.join(folder, "tokenizer.json"), encoding="utf-8") as file:
        tokenizer = json.load(file)
    assert set(tokenizer) == TOKENIZER_KEYS, sorted(tokenizer)
    model = tokenizer["model"]
    assert model["type"] == "WordLevel" and set(model) == {"type", "vocab", "unk_token"}, model
    assert sorted(model["vocab"].values()) == list(range(config["vocab_size"]))
    assert model["vocab"] == {c: i for i, c in enumerate(sorted(set(text)))}


def compare_trained(embla, numbers, scratch, preset, kind):
    text, folder = os.path.join(scratch, "text"), os.path.join(scratch, "trained-" + preset)
    with open(text, "w", encoding="utf-8") as file:
        file.write(40 * TEXT)
    must(embla, "train", text, "--preset", preset, "-o", folder, "--layers", "2", "--dim", "64",
         "--heads", "4", "--steps", "20", "--batch", "4", "--length", "32", "--rate", "0.003",
         "--warm-up", "0", "-q")
    check_tokenizer(folder, TEXT)
    return compare_folder(numbers, scratch, folder, kind)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    embla, numbers = sys.argv[1:]
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as scratch:
        for shape in SHAPES:
            worst, count = compare_gradients(numbers, scratch, shape)
            print("%-12s loss and %2d gradients, worst %.1e" % (shape, count, worst))
        for kind, shapes in (("gpt2", GPT2_FOLDERS), ("llama", LLAMA_FOLDERS)):
            for shape in shapes:
                folder = os.path.join(scratch, "saved-" + shape)
                must(numbers, "save", shape, folder)
                worst = compare_folder(numbers, scratch, folder, kind)
                print("%-12s saved: logits, worst %.1e" % (shape, worst))
                worst = compare_predicted(embla, folder, kind)
                print("%-12s predict: logits, worst %.1e" % (shape, worst))
        for preset, kind in (("gpt2-mini", "gpt2"), ("llama-mini", "llama")):
            worst = compare_trained(embla, numbers, scratch, preset, kind)
            print("%-12s trained: logits, worst %.1e" % (preset, worst))
    print("torch %s: all the same" % torch.__version__)


if __name__ == "__main__":
    main()
