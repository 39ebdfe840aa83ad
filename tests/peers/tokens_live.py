# SPDX-License-Identifier: Apache-2.0
"""Compares tokens, offsets and decoded text with Hugging Face's library, on random mixes of hard
strings and on a natural text, for the tokenizers of EMBLA_DATA.

    tokens_live.py EMBLA TOKEN_IDS [--texts N] [--python PYTHON] [NAME ..]

It needs the package tokenizers. If this Python has none, EMBLA_TOKENIZERS_PYTHON may name one that
has; otherwise nothing is compared.
"""
import glob
import json
import lzma
import os
import random
import sys
import tempfile

from common import data, package
from tokens import ask, listed, text_of, unpack

BLOCK = 20000  # texts that are encoded at a time


def parts(folder):
    """Strings to mix: the hard ones of the expectations, and single characters of many kinds."""
    lines = text_of(os.path.join(folder, "expect", "gpt2.jsonl")).rstrip("\n").split("\n")
    cases = [json.loads(line) for line in lines]
    texts = [c["text"] for c in cases if "text" in c and "hex" not in c]
    kinds = ["abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "0123456789", " " * 8, "\n\r\t",
             ".,;:!?'\"()[]{}<>|", "äöüßéèñçøåœ", "\u0301\u0308\u0323\u0327\u200d\ufe0f", "日本語漢字かなカナ",
             "한국어각", "русский", "ελληνικάΣς", "עברית", "العربية", "हिन्दी", "ไทย", "😀👩🏽‍🚀🇩🇪", "\u00a0\u2003\u200b\ufeff\u0085",
             "ǅǈİıſKÅ", "²³¹¼½Ⅷ①٣", "\u1100\u1161\u11a8\uac00", "▁Ġ", "ﬁ㎏Ａ"]
    return texts, kinds


def mix(rng, texts, kinds):
    out = []
    for _ in range(rng.randint(1, 8)):
        choice = rng.random()
        if choice < 0.35:
            text = rng.choice(texts)
            at = rng.randint(0, len(text))
            out.append(text[at:at + rng.randint(0, 24)])
        elif choice < 0.9:
            kind = rng.choice(kinds)
            out.append("".join(rng.choice(kind) for _ in range(rng.randint(1, 6))))
        else:
            code = rng.randint(0, 0x10FFFF)
            out.append(chr(code) if not 0xD800 <= code <= 0xDFFF else " ")
    return "".join(out)


def byte_offsets(text, spans):
    """Offsets in characters as offsets in bytes."""
    if text.isascii():
        return spans
    at = [0]
    for c in text:
        at.append(at[-1] + len(c.encode()))
    return [(at[a], at[b]) for a, b in spans]


def natural(limit):
    """Lines of the first bytes of enwiki100."""
    packed = glob.glob(os.path.join(data(), "enwiki100", "*.xz"))
    if not packed:
        return []
    with lzma.open(packed[0], "rb") as file:
        return file.read(limit).decode("utf-8", "ignore").split("\n")


def answers(program, theirs, path, texts, flags):
    """Each text, our answer and theirs; some thousands at a time, because Python's lists are large."""
    for at in range(0, len(texts), BLOCK):
        block = texts[at:at + BLOCK]
        found = ask(program, path, [t.encode() for t in block], flags)
        if isinstance(found, str):
            sys.exit("%s: %s" % (path, found))
        encode = theirs.encode_batch if "o" in flags else theirs.encode_batch_fast
        yield from zip(block, found, encode(block, add_special_tokens="s" in flags))


def compare(program, name, path, texts, flags):
    import tokenizers
    theirs = tokenizers.Tokenizer.from_file(path)
    theirs.no_truncation()
    theirs.no_padding()
    wrong = {"tokens": 0, "offsets": 0, "text": 0}
    for text, (tokens, spans, decoded), e in answers(program, theirs, path, texts, flags):
        if tokens != e.ids:
            kind, ours, other = "tokens", tokens, e.ids
        elif "o" in flags and spans != byte_offsets(text, e.offsets):
            kind, ours, other = "offsets", spans, byte_offsets(text, e.offsets)
        elif "d" in flags and decoded != theirs.decode(e.ids, skip_special_tokens=True):
            kind, ours, other = "text", decoded, theirs.decode(e.ids, skip_special_tokens=True)
        else:
            continue
        wrong[kind] += 1
        if wrong[kind] <= 2:
            print("  ", name, kind, ascii(text)[:160], "\n      ours  ", ascii(ours)[:220], "\n      theirs", ascii(other)[:220])
    print("%-20s %-4s %7d texts, %d differ in tokens, %d in offsets, %d in decoded text"
          % (name, flags, len(texts), wrong["tokens"], wrong["offsets"], wrong["text"]), flush=True)
    return sum(wrong.values())


def main():
    package("tokenizers")
    folder = os.path.join(data(), "tokenizers")
    program, args, count, bytes_of_text = sys.argv[2], sys.argv[3:], 400, 200000
    if "--texts" in args:
        at = args.index("--texts")
        count, bytes_of_text, args = int(args[at + 1]), 20000000, args[:at] + args[at + 2:]
    texts, kinds = parts(folder)
    rng = random.Random(18)
    mixes = [mix(rng, texts, kinds) for _ in range(count)]
    lines, bad = natural(bytes_of_text), 0
    with tempfile.TemporaryDirectory() as into:
        for name, path in listed(folder):
            if args and name not in args:
                continue
            unpacked = unpack(path, into)
            bad += compare(program, name, unpacked, mixes, "osd")
            bad += compare(program, name, unpacked, lines, "od")
            bad += compare(program, name, unpacked, mixes[:count // 4], "-")
    sys.exit(bad != 0)


if __name__ == "__main__":
    main()
