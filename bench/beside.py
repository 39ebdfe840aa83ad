#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Embla beside other programs: the same jobs, in turns, with the results compared first.

    beside.py [--python PATH].. [--case REGEX] [--turns N] [--threads N] [--json] [--small]
              [--write docs/performance.md]

The peers are the Python modules that a Python has: torch, numpy, faiss, gensim, model2vec,
tokenizers, safetensors, gguf; and the program fasttext. Those that no Python has are named and left
out. Debian's modules belong to /usr/bin/python3, newer ones to a venv: give --python several times.
Without it this Python is asked, and that of EMBLA_TOKENIZERS_PYTHON if it is set. Each Python is
started once, and runs ours and its peers in the same process.

A line for each job and peer: ours, theirs, and how many times ours is faster (medians). For jobs
that `embla bench` has, the last column is our speed relative to the limit that it measures. A star
after a ratio says that other programs were busy meanwhile. --write writes the page. --small takes little tables, to try the script. Exit code 77: there is no peer.

Debian's OpenBLAS does not know newer CPUs and uses its slowest code there. Threads
of the peers' OpenMP that wait busily slow down those of BLAS. Both are set right in the environment, for both sides.
"""
import argparse
import datetime
import json
import os
import platform
import re
import shlex
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))


def cpu():
    """The model of the CPU and its feature flags."""
    model, flags = platform.processor() or "unknown CPU", ""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            for line in lines:
                name, _, value = line.partition(":")
                if name.strip() == "model name":
                    model = value.strip()
                if name.strip() == "flags":
                    flags = value
    except OSError:
        pass
    return model, flags.split()


def environment():
    settings = {"OMP_WAIT_POLICY": "passive"}
    if "avx512f" in cpu()[1]:
        settings["OPENBLAS_CORETYPE"] = "SkylakeX"
    return {**settings, **os.environ}


def thread_settings(threads):
    """For libraries whose number of threads is set only in the environment (NumPy's BLAS)."""
    return {"OMP_NUM_THREADS": str(threads), "OPENBLAS_NUM_THREADS": str(threads),
            "RAYON_NUM_THREADS": str(threads),
            "TOKENIZERS_PARALLELISM": "true" if threads > 1 else "false"}


# ---- a worker: runs in each Python ----

def work(options):
    sys.path.insert(0, HERE)
    try:
        from peers import learn, ours, rows, text
    except ImportError as error:
        print(json.dumps({"missing": sys.executable, "why": str(error)}))
        return
    run = ours.Run(options)
    run.has("numpy")
    for job in rows.JOBS + text.JOBS + learn.JOBS:
        job(run)


# ---- the parent: starts the workers and prints what they say ----

class Report:
    """All results, and the text for them."""

    def __init__(self, options):
        self.options, self.load = options, os.getloadavg()[0]
        self.version, self.peers, self.results = "", {}, []
        self.missing = {}  # why a Python has no such module

    def take(self, entry):
        if "embla" in entry:
            self.version = entry["embla"]
        elif "peer" in entry:
            self.peers.setdefault(entry["module"], []).append(entry["peer"])
        elif "missing" in entry:
            self.missing[entry["missing"]] = entry["why"]
        else:
            self.results.append(entry)
            self.print(entry)

    def tell_missing(self):
        """Names the modules that no Python has."""
        for module, why in self.missing.items():
            if module not in self.peers:
                print("%s is left out: %s" % (module, why), file=sys.stderr)

    def print(self, entry):
        ratio = entry["ours"] / entry["theirs"]
        if self.options.json:
            print(json.dumps({"bench": "beside", "case": "%s, %s" % (entry["job"], entry["by"]),
                              "threads": entry["threads"], "value": float("%.4g" % entry["ours"]),
                              "unit": entry["unit"], "limit": float("%.4g" % entry["theirs"]),
                              "limit_is": entry["by"], "ratio": float("%.3g" % ratio),
                              "others": entry["others"] and round(entry["others"], 3)}), flush=True)
            return
        if len(self.results) == 1:
            print("%-58s %-32s %15s %15s %7s  %s" % ("job", "peer", "ours", "theirs", "ratio",
                                                   "of the limit"))
        print("%-58s %-32s %15s %15s %6.2f%-1s  %s" % (
            entry["job"], entry["by"], amount(entry["ours"], entry["unit"]),
            amount(entry["theirs"], entry["unit"]), ratio, disturbed(entry), of_limit(entry)),
              flush=True)


def amount(rate, unit):
    """A rate as people read it: a time for one job, or a rate."""
    if unit != "1/s":
        return "{:,.{}f} {}".format(rate, 1 if rate < 100 else 0, unit)
    milliseconds = 1e3 / rate
    return "%.*f ms" % (0 if milliseconds >= 100 else 1 if milliseconds >= 10 else 3, milliseconds)


def of_limit(entry):
    return "%.2f of %s" % tuple(entry["limit"]) if entry["limit"] else ""


def disturbed(entry):
    """A star if other programs were busy meanwhile: who waits for its threads loses most."""
    return "*" if entry["disturbed"] else ""


def run_worker(report, python, first, folder):
    options = report.options
    command = [python, os.path.abspath(__file__), "--worker", "--embla", options.embla, "--library",
               options.library, "--case", options.case, "--turns", str(options.turns), "--threads",
               str(options.threads), "--folder", folder]
    command += ["--small"] * options.small + ["--programs"] * first
    settings = {**environment(), **thread_settings(options.threads)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=settings) as worker:
        for line in worker.stdout:
            if line.startswith("{"):  # a module may print sentences of its own
                report.take(json.loads(line))
    if worker.returncode != 0:
        sys.exit("beside.py: %s ended with %d" % (python, worker.returncode))


def standard_pythons():
    other = os.environ.get("EMBLA_TOKENIZERS_PYTHON")
    return [sys.executable] + [other] * bool(other and os.access(other, os.X_OK))


# ---- the page ----

INTRODUCTION = """\
# Performance

`bench/beside.py` writes this page; do not edit it. It runs each job with Embla and with other programs, on the same data. Both sides run in turns in the same process, and each figure is the median. The results are compared before anything is timed. A ratio above 1 means that Embla is faster.

Training of GPT-2 and of word vectors is different: there Embla is a program of its own, which runs before and after the peer, or in turns with it. Their results depend on random numbers, so less is compared: the first loss is that of an untrained model, and as many words have rows.

Absolute figures belong to one machine. The ratio of two figures that were measured together can be compared with other machines. On a busy machine it varies too: repeat a job before you rely on a small difference.

"""
REPRODUCE = """
## Measure it yourself

```sh
cmake --preset release && cmake --build --preset release -j 4
python3 -m venv build/venv
build/venv/bin/pip install torch faiss-cpu gensim model2vec tokenizers safetensors gguf
bench/beside.py --python /usr/bin/python3 --python build/venv/bin/python --write docs/performance.md
```

Modules that a Python does not have are left out, so one `--python` is enough. `--case REGEX` selects jobs, `--json` prints one object per line, `--small` tries everything in a minute. On a machine that is not idle, run it as `chrt -f 1 bench/beside.py ..`.

`embla bench all --json > new.jsonl` measures Embla alone, against the limits of the machine. `bench/compare.py old.jsonl new.jsonl` names the cases that became slower or faster by more than the noise.
"""
NOTES = """
## What is compared

- Lookup: 8,192 rows to f32. NumPy's `take` writes to the same memory each time, as we do; `torch.nn.functional.embedding` allocates its result.
- One row a call: a loop of 1,000 calls in Python; most of the time is the call itself, on both sides.
- Text: lines of 4 MB of enwiki100 with the tokenizers of EMBLA_DATA; without it these jobs are left out. Neither side makes offsets. model2vec's time includes its tokenizer, which is Hugging Face's.
- The mean of rows: tokens are ready on both sides; model2vec's tokenizer is not timed. `embla_lookup_pool` sums in double, PyTorch and model2vec in float.
- Nearest rows: exact, by dot product on rows of length 1. NumPy multiplies and uses `argpartition`. faiss is set to multiply matrices from 20 queries (`distance_compute_blas_threshold`), as its older versions do: the default of faiss 1.15 is 128,000, and 256 queries take ten times as long with it.
- Decoding uses one thread on both sides.
- Reading a file: it is in the page cache, and both sides allocate the result. Ours is a NumPy array, for which NumPy asks for huge pages.
- Optimizers of PyTorch are fused where it has such a variant for CPUs.
- GPT-2: a batch, forward, backward, gradient clipping and AdamW. PyTorch runs eagerly, with `scaled_dot_product_attention` where it has it, and autocast for bf16.
- Word vectors: one epoch of a made-up text of 2 million words, 30,000 different ones, distributed as in real text; dim 100, window 5, 5 negatives. gensim's vocabulary is counted beforehand. The time of fastText includes counting and writing, and so does ours beside it.
- Debian's OpenBLAS does not know newer CPUs, so `OPENBLAS_CORETYPE=SkylakeX` is set on a CPU with AVX-512, and `OMP_WAIT_POLICY=passive` everywhere, for both sides.
- PyTorch with a version that ends in +cu is PyPI's package: it can use a GPU, but here it runs on the CPU.
- The limit is measured by `embla bench`: for example memcpy of the same bytes, or the bare matrix products. There is no figure for a job that has no limit, or if other programs were busy.
"""


# Why a peer is faster: a job and a peer, and a sentence. The page has those of its rows below 1.
REASONS = (
    ("EmbeddingBag", "Embla adds the rows of a text in double, PyTorch in float: on one thread that takes a quarter more time. In some runs our second thread gains nothing, for a reason that is not known yet."),
    ("^one row a call.*NumPy", "nearly all of the time is Python's, on both sides: a call through ctypes with five arguments beside an index and a copy. The lookup itself is at the limit of memcpy."),
    ("^training step, gpt2/1x1024", "a quarter of our time is outside of products. With 64 positions in place of 1,024 Embla is ahead, so it is what grows with the positions: attention."),
)


def behind(report):
    """A sentence for each row of the page that is below 1."""
    lines = ""
    for result in report.results:
        name, ratio = "%s, %s" % (result["job"], result["by"]), result["ours"] / result["theirs"]
        if round(ratio, 2) >= 1:
            continue
        why = [text for pattern, text in REASONS if re.search(pattern, name)]
        if not why:
            print("beside.py: no reason is written for %s (%.2f)" % (name, ratio), file=sys.stderr)
        lines += "- %s, %.2f: %s\n" % (name, ratio, why[0] if why else "the reason is not known.")
    return "\n## Where the other is faster\n\n" + (lines or "In no row.\n")


def machine(report):
    """What the figures belong to."""
    peers = set(sum(report.peers.values(), []))
    if any(result["by"].startswith("fastText") for result in report.results):
        peers.add("fastText")
    priority = "normal"
    if os.sched_getscheduler(0) in (os.SCHED_FIFO, os.SCHED_RR):
        priority = "real-time"
    lines = ["CPU: %s, %d cores" % (cpu()[0], os.cpu_count()),
             "threads: %d; priority: %s; load average before the run: %.1f" %
             (report.options.threads, priority, report.load),
             "date: %s" % datetime.date.today().isoformat(), "Embla: %s" % report.version,
             "peers: %s" % ", ".join(sorted(peers, key=str.lower)),
             "command: `%s`" % shlex.join(["bench/beside.py"] + sys.argv[1:])]
    return "".join("- %s\n" % line for line in lines)


def page(report):
    text = INTRODUCTION + machine(report)
    text += "\n## Results\n\n| job | peer | Embla | peer | ratio | of the limit |\n"
    text += "|---|---|---:|---:|---:|---|\n"
    order = list(dict.fromkeys(result["job"] for result in report.results))
    for result in sorted(report.results, key=lambda result: order.index(result["job"])):
        text += "| %s | %s | %s | %s | %.2f%s | %s |\n" % (
            result["job"], result["by"], amount(result["ours"], result["unit"]),
            amount(result["theirs"], result["unit"]), result["ours"] / result["theirs"],
            disturbed(result).replace("*", "\\*"), of_limit(result))
    marked = sum(bool(disturbed(result)) for result in report.results)
    if marked:
        text += "\n\\* Other programs were busy meanwhile (%d of %d rows). " % (
            marked, len(report.results))
        text += "Such figures can be far off, in either direction: do not quote them.\n"
    return text + behind(report) + NOTES + REPRODUCE


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--python", action="append", metavar="PATH",
                        help="a Python whose modules are peers; may be given several times "
                             "(default: the one that runs this script, and "
                             "$EMBLA_TOKENIZERS_PYTHON)")
    parser.add_argument("--embla", default="build/release/embla", metavar="PROGRAM",
                        help="default: build/release/embla")
    parser.add_argument("--library", metavar="FILE",
                        help="libembla_lab.so (default: src/libembla_lab.so beside PROGRAM)")
    parser.add_argument("--case", default="", metavar="REGEX", help="only jobs whose names match")
    parser.add_argument("--turns", type=int, default=7, help="turns of each pair (default: 7)")
    parser.add_argument("--threads", type=int, default=os.cpu_count(),
                        help="threads of both sides (default: all)")
    parser.add_argument("--json", action="store_true", help="one JSON object per line")
    parser.add_argument("--small", action="store_true", help="little tables, to try the script")
    parser.add_argument("--write", metavar="FILE.md", help="write the page to this file")
    for name in ("--worker", "--programs"):
        parser.add_argument(name, action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.turns < 1 or options.threads < 1:
        parser.error("--turns and --threads must be at least 1")
    options.embla = os.path.abspath(options.embla)
    options.library = os.path.abspath(options.library or os.path.join(
        os.path.dirname(options.embla), "src", "libembla_lab.so"))
    for path in (options.embla, options.library):
        if not os.path.exists(path):
            parser.error("%s does not exist; build the preset release first" % path)
    return options


def main():
    options = arguments()
    if options.worker:
        work(options)
        return 0
    report = Report(options)
    with tempfile.TemporaryDirectory(prefix="embla-beside-") as folder:
        for number, python in enumerate(options.python or standard_pythons()):
            run_worker(report, python, number == 0, folder)
    report.tell_missing()
    if not report.peers:
        print("there is no peer to compare with")
        return 77
    if not report.results:
        print("beside.py: no job matches '%s', or its peers are missing" % options.case,
              file=sys.stderr)
        return 2
    if options.write:
        with open(options.write, "w", encoding="utf-8") as to:
            to.write(page(report))
    return 0


if __name__ == "__main__":
    sys.exit(main())
