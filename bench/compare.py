#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares runs of `embla bench all --json`: which cases became slower or faster.

    compare.py OLD.jsonl NEW.jsonl [NEW2.jsonl ..] [--json] [--least PERCENT]

The ratio of each case to its limit is compared, because the limit was measured in the same run.
Each NEW is compared with OLD. A file may contain several runs, one after the other; then a ratio is
the median of its runs. A change counts if it exceeds three standard deviations of the noise and
--least.

The noise comes from the runs of one file, if both files have at least two runs of a case: the
larger of the spread of this case and the usual spread of all cases. Then a case falls only if every
new run is below every old one. Otherwise the noise comes from all cases together: the median
absolute deviation of their changes from the median change. One run cannot tell a slower program
from a moment in which the machine was busy; the cases that fell should be run again, and the
command for it is printed.

Exit code: 0 if nothing fell, 3 if something fell, 2 for wrong usage or a file that cannot be read.
"""
import argparse
import json
import math
import re
import statistics
import sys

DEVIATIONS = 3  # of the noise; a smaller change is not reported
TO_SIGMA = 1.4826  # a median absolute deviation as a standard deviation, if the noise is normal
FEW_CASES = 8  # with fewer, their changes say little about the noise
FEW_NOISE = 0.05  # the standard deviation that is assumed then


class Unreadable(Exception):
    """A file that is not the output of the benchmarks; the text says why."""


class Runs:
    """The ratios in a file: for each case, one for each run."""

    def __init__(self, path):
        self.path = path
        self.ratios = {}  # (bench, case, threads) -> logarithms of ratios
        self.cpu = self.version = None
        try:
            with open(path, encoding="utf-8") as lines:
                for number, line in enumerate(lines, 1):
                    if line.strip():
                        self.add("%s, line %d" % (path, number), line)
        except (OSError, UnicodeDecodeError) as error:
            raise Unreadable("%s: %s" % (path, getattr(error, "strerror", None) or error)) from None
        if not self.ratios:
            raise Unreadable("%s: no case in it; `embla bench all --json` writes such a file" % path)

    def add(self, where, line):
        try:
            entry = json.loads(line)
        except ValueError:
            raise Unreadable("%s is not JSON: '%.40s'" % (where, line.strip())) from None
        if not isinstance(entry, dict):
            raise Unreadable("%s is not a JSON object: '%.40s'" % (where, line.strip()))
        if "bench" not in entry:  # the first line of a run
            self.cpu, self.version = entry.get("cpu", self.cpu), entry.get("version", self.version)
            return
        for key, kind in (("bench", str), ("case", str), ("threads", int), ("ratio", (int, float))):
            if not isinstance(entry.get(key), kind):
                raise Unreadable("%s: '%s' is missing or has the wrong type" % (where, key))
        if not 0 < entry["ratio"] < math.inf:
            raise Unreadable("%s: the ratio is %s; it must be greater than 0" %
                             (where, entry["ratio"]))
        case = entry["bench"], entry["case"], entry["threads"]
        self.ratios.setdefault(case, []).append(math.log(entry["ratio"]))

    def count(self):
        return max(map(len, self.ratios.values()))

    def describe(self):
        known = [text for text in (self.version and "Embla " + self.version, self.cpu) if text]
        return ", ".join([self.path, counted(self.count(), "run"),
                          counted(len(self.ratios), "case")] + known)


def counted(number, noun):
    return "%d %s%s" % (number, noun, "" if number == 1 else "s")


def name(case):
    return "%s/%s on %s" % (case[0], case[1], counted(case[2], "thread"))


def percent(change):
    """A difference of logarithms as a percentage."""
    return 100 * math.expm1(change)


def noise_of_all(changes):
    """The standard deviation of one change, if each side has one run."""
    if len(changes) < FEW_CASES:
        return FEW_NOISE
    middle = statistics.median(changes)
    return TO_SIGMA * statistics.median(abs(change - middle) for change in changes)


def spread(old, new):
    """The standard deviation of one run of a case, from the runs of both sides."""
    squares = sum(statistics.variance(side) * (len(side) - 1) for side in (old, new))
    return math.sqrt(squares / (len(old) + len(new) - 2))


def apart(old, new):
    """Whether all runs of one side are above all of the other."""
    return max(old) < min(new) or max(new) < min(old)


class Comparison:
    def __init__(self, old, new, least):
        self.old, self.new = old, new
        both = [case for case in old.ratios if case in new.ratios]
        if not both:
            raise Unreadable("%s and %s have no case in common" % (old.path, new.path))
        self.only_old = [case for case in old.ratios if case not in new.ratios]
        self.only_new = [case for case in new.ratios if case not in old.ratios]
        sides = {case: (old.ratios[case], new.ratios[case]) for case in both}
        self.middles = {case: tuple(map(statistics.median, sides[case])) for case in both}
        changes = {case: new - old for case, (old, new) in self.middles.items()}
        spreads = {case: spread(*sides[case]) for case in both if min(map(len, sides[case])) > 1}
        usual = statistics.median_low(spreads.values()) if spreads else 0
        together = noise_of_all(list(changes.values()))
        self.cases = []
        for case in both:
            sigma = together
            if case in spreads:
                counts = [len(side) for side in sides[case]]
                sigma = max(spreads[case], usual) * math.sqrt(1 / counts[0] + 1 / counts[1])
            noise = max(DEVIATIONS * sigma, math.log1p(least / 100))
            verdict = "same"
            if abs(changes[case]) > noise and (case not in spreads or apart(*sides[case])):
                verdict = "fell" if changes[case] < 0 else "rose"
            self.cases.append((verdict, case, changes[case], noise))
        self.cases.sort(key=lambda one: one[2])
        self.spreads = spreads

    def of(self, verdict):
        return [one for one in self.cases if one[0] == verdict]

    def source(self):
        if len(self.spreads) == len(self.cases):
            return "the runs of each file"
        if self.spreads:
            return "the runs of each file, and all cases together for cases with one run"
        if len(self.cases) < FEW_CASES:
            return "assumed, because the files have only %s in common" % counted(len(self.cases), "case")
        return "%s together, one run in a file" % counted(len(self.cases), "case")


def print_text(comparison):
    print("old: " + comparison.old.describe())
    print("new: " + comparison.new.describe())
    if comparison.old.cpu != comparison.new.cpu:
        print("The CPUs differ: a change may be the machine's.")
    print("noise: " + comparison.source())
    listed = comparison.of("fell") + comparison.of("rose")
    if listed:
        print("%-4s %-42s %3s %7s %7s %8s %7s" % ("", "case", "T", "old", "new", "change", "noise"))
    for verdict, case, change, noise in listed:
        old, new = map(math.exp, comparison.middles[case])
        print("%-4s %-42s %3d %7.3g %7.3g %6.1f %% %5.1f %%" %
              (verdict, "%s/%s" % case[:2], case[2], old, new, percent(change),
               abs(percent(math.copysign(noise, change)))))
    for path, cases in ((comparison.old.path, comparison.only_old),
                        (comparison.new.path, comparison.only_new)):
        for case in cases:
            print("only in %s: %s" % (path, name(case)))
    print("%d fell, %d rose, %d the same within the noise" %
          tuple(len(comparison.of(verdict)) for verdict in ("fell", "rose", "same")))
    again = sorted({"%s/%s" % case[:2] for _, case, _, _ in comparison.of("fell")
                    if case not in comparison.spreads})
    if again:
        names = "|".join(re.sub(r"([+.])", r"[\1]", one) for one in again)
        print("One run is not enough to be sure. Add two more of these cases to each file, with the "
              "old and the new program:\n  embla bench all --json --case '^(%s)$' >> FILE" % names)


def as_object(comparison):
    def keys(case):
        return dict(zip(("bench", "case", "threads"), case))

    cases = []
    for verdict, case, change, noise in comparison.cases:
        old, new = map(math.exp, comparison.middles[case])
        cases.append({**keys(case), "old": round(old, 4), "new": round(new, 4),
                      "change": round(percent(change), 2),
                      "noise": round(abs(percent(math.copysign(noise, change))), 2),
                      "verdict": verdict})
    return {"old": comparison.old.path, "new": comparison.new.path,
            "noise_from": comparison.source(), "cases": cases,
            "only_old": list(map(keys, comparison.only_old)),
            "only_new": list(map(keys, comparison.only_new))}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0],
                                     epilog="The exit code is 3 if a case fell.")
    parser.add_argument("old", metavar="OLD.jsonl")
    parser.add_argument("new", metavar="NEW.jsonl", nargs="+")
    parser.add_argument("--json", action="store_true", help="print one JSON object for each NEW")
    parser.add_argument("--least", type=float, default=3, metavar="PERCENT",
                        help="smallest change to report (default: 3)")
    options = parser.parse_args()
    try:
        old = Runs(options.old)
        comparisons = [Comparison(old, Runs(path), options.least) for path in options.new]
    except Unreadable as error:
        print("compare.py: %s" % error, file=sys.stderr)
        return 2
    for number, comparison in enumerate(comparisons):
        if options.json:
            print(json.dumps(as_object(comparison)))
            continue
        if number:
            print()
        print_text(comparison)
    return 3 if any(comparison.of("fell") for comparison in comparisons) else 0


if __name__ == "__main__":
    sys.exit(main())
