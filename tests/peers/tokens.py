# SPDX-License-Identifier: Apache-2.0
"""What the comparisons of tokens share: unpacking tokenizers, and asking our program for tokens."""
import json
import lzma
import os
import struct
import subprocess

from common import OURS


def text_of(path):
    """A file's text; it may be packed."""
    if os.path.exists(path):
        with open(path, "rb") as file:
            return file.read().decode("utf-8")
    with lzma.open(path + ".xz", "rb") as file:
        return file.read().decode("utf-8")


def listed(folder):
    """[(name, path of tokenizer.json)] of the data."""
    manifest = json.loads(text_of(os.path.join(folder, "expect", "manifest.json")))
    return [(e["name"], os.path.join(folder, e["file"])) for e in manifest["tokenizers"]]


def unpack(path, into):
    """The path of an unpacked file."""
    if os.path.exists(path):
        return path
    out = os.path.join(into, os.path.basename(os.path.dirname(path)) + ".json")
    with open(out, "w", encoding="utf-8", newline="") as file:
        file.write(text_of(path))
    return out


class Answers:
    def __init__(self, raw, flags):
        self.raw, self.flags, self.at = raw, flags, 0

    def numbers(self, count, form):
        size = struct.calcsize("<%d%s" % (count, form))
        self.at += size
        return list(struct.unpack("<%d%s" % (count, form), self.raw[self.at - size:self.at]))

    def __next__(self):
        """(tokens or None, offsets, decoded)"""
        count = self.numbers(1, "i")[0]
        if count < 0:
            return None, [], ""
        tokens, spans, text = self.numbers(count, "i"), [], ""
        if "o" in self.flags:
            both = self.numbers(2 * count, "I")
            spans = list(zip(both[::2], both[1::2]))
        if "d" in self.flags:
            length = self.numbers(1, "I")[0]
            self.at += length
            text = self.raw[self.at - length:self.at].decode("utf-8")
        return tokens, spans, text


def ask(program, tokenizer, texts, flags="-"):
    """[(tokens, offsets, decoded)] for texts that are bytes; a sentence if the file is refused."""
    given = b"".join(struct.pack("<I", len(t)) + t for t in texts)
    done = subprocess.run([program, tokenizer, flags], input=given, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, env=OURS)
    if done.returncode != 0:
        return done.stderr.decode("utf-8", "replace").strip()
    answers = Answers(done.stdout, flags)
    return [next(answers) for _ in texts]
