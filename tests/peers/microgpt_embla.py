#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""microGPT in plain Python (microgpt.py) beside `embla train --preset microgpt`.

    microgpt_embla.py EMBLA

The same first weights, the same names in the same order: Python computes in double, ours in f32.
Each of the losses of 1,000 steps is equal to 1e-5 relatively. Those of the last 100 steps are near
2.28. Needs names/names.txt in EMBLA_DATA; exits 77 where it is not there.
"""
import csv
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True  # beside common.py

from common import data, must, skip

STEPS = 1000


def losses_of(folder):
    with open(os.path.join(folder, "loss.csv"), encoding="ascii", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["step"]) for row in rows] == list(range(STEPS)), len(rows)
    return [float(row["loss"]) for row in rows], [float(row["rate"]) for row in rows]


def compare(theirs, ours, most):
    worst = max(abs(a - b) / b for a, b in zip(ours, theirs))
    where = max(range(STEPS), key=lambda i: abs(ours[i] - theirs[i]) / theirs[i])
    print("%d losses, worst %.1e at step %d" % (STEPS, worst, where))
    assert worst <= most, (worst, where, ours[where], theirs[where])


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    embla = sys.argv[1]
    names = os.path.join(data(), "names", "names.txt")
    if not os.path.exists(names):
        skip("there is no names/names.txt in EMBLA_DATA: nothing is compared")
    reference = os.path.join(os.path.dirname(os.path.abspath(__file__)), "microgpt.py")
    with tempfile.TemporaryDirectory() as scratch:
        first, trained = (os.path.join(scratch, name) for name in ("first", "trained"))
        train = (embla, "train", names, "--preset", "microgpt", "-q")
        must(*train, "--steps", "0", "-o", first)
        with subprocess.Popen([sys.executable, reference, "--documents", names, "--weights",
                               os.path.join(first, "model.safetensors"), "--steps", str(STEPS)],
                              stdout=subprocess.PIPE) as python:
            must(*train, "--in-order", "--from", first, "-o", trained)
            theirs = [float(line) for line in python.stdout]
        assert python.returncode == 0 and len(theirs) == STEPS, (python.returncode, len(theirs))
        ours, rates = losses_of(trained)
        for step, rate in enumerate(rates):
            assert abs(rate - 0.01 * (1 - step / STEPS)) <= 1e-12, (step, rate)
        compare(theirs, ours, 1e-5)
        last = sum(theirs[-100:]) / 100
        print("first loss %.4f, mean of the last 100 %.4f" % (theirs[0], last))
        assert theirs[0] > 3 and last < 2.45, (theirs[0], last)


if __name__ == "__main__":
    main()
