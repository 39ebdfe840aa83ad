# SPDX-License-Identifier: Apache-2.0
"""What the comparisons with other people's programs share: running ours, the data, and when
two lists of neighbours are the same.
"""
import glob
import importlib
import json
import lzma
import os
import subprocess
import sys

# Debian's OpenBLAS takes a CPU that it does not know for a Prescott, and those kernels crash in
# numpy. It reads this when numpy is imported. Our own program chooses for itself.
OURS = dict(os.environ)
if "OPENBLAS_CORETYPE" not in os.environ:
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as cpu:
        if " avx2 " in cpu.read():
            os.environ["OPENBLAS_CORETYPE"] = "Haswell"


def skip(sentence):
    """Ends the script as one that had nothing to compare."""
    print(sentence)
    sys.exit(77)


def package(name):
    """A Python package, or a skip. If this Python has none, EMBLA_TOKENIZERS_PYTHON may name one
    that has."""
    try:
        return importlib.import_module(name)
    except ImportError:
        other = os.environ.get("EMBLA_TOKENIZERS_PYTHON")
        if other and os.path.realpath(other) != os.path.realpath(sys.executable):
            os.execv(other, [other] + sys.argv)
        skip("there is no Python package %s: nothing is compared" % name)


def run(*command, text=None):
    return subprocess.run(command, input=text, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env=OURS)


def must(*command, text=None):
    done = run(*command, text=text)
    if done.returncode != 0:
        sys.exit("%s: exit %d: %s" % (" ".join(command[:4]), done.returncode,
                                      done.stderr.decode("utf-8", "replace")))
    return done.stdout.decode("utf-8")


def answer(*command, text=None):
    """The JSON that a verb prints."""
    return json.loads(must(*command, "--json", text=text))


def rows_of(embla, path, *which):
    """What `embla lookup` prints; -0 is a float in Python too."""
    return json.loads(must(embla, "lookup", path, "--json", *which), parse_int=float)


def library_of(embla):
    """libembla_lab.so, built with the program."""
    path = os.path.join(os.path.dirname(os.path.abspath(embla)), "src", "libembla_lab.so")
    if not os.path.exists(path):
        skip("there is no libembla_lab.so beside %s: nothing is compared" % embla)
    return path


def data():
    """The folder of real data."""
    folder = os.environ.get("EMBLA_DATA")
    if not folder or not os.path.isdir(folder):
        skip("EMBLA_DATA names no folder: nothing is compared")
    return folder


def glove(folder):
    """GloVe's 50,000 words, unpacked into folder."""
    packed = glob.glob(os.path.join(data(), "glove-50k", "*.xz"))
    if not packed:
        skip("there is no glove-50k in EMBLA_DATA: nothing is compared")
    path = os.path.join(folder, "glove.txt")
    with lzma.open(packed[0]) as source, open(path, "wb") as file:
        while block := source.read(1 << 20):
            file.write(block)
    return path


def near(a, b):
    """To 1e-5, of numbers above 1 relatively."""
    return abs(a - b) <= 1e-5 * max(1, abs(a), abs(b))


def same_list(ours, theirs):
    """Two lists of (row or word, score): score by score, and the same names but for ties."""
    if len(ours) != len(theirs) or not all(near(a[1], b[1]) for a, b in zip(ours, theirs)):
        return False
    scores = dict(theirs)
    last = theirs[-1][1]
    return len({name for name, _ in ours}) == len(ours) and all(near(score, scores.get(name, last)) for name, score in ours)
