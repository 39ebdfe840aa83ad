#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every struct of include/ ends with uint64_t reserved[4], so that all can grow alike (decision 020).
# Elements of arrays have none, and never change: they are listed here.
#   usage: reserved.sh PROJECT
set -eu
command -v python3 >/dev/null || { echo "skipped: python3 is not here"; exit 77; }
LC_ALL=C.UTF-8 exec python3 - "$1" <<'END'
import glob
import re
import sys

ELEMENTS = """embla_word embla_file embla_chunk embla_text_span embla_encoded embla_neighbour embla_span
    embla_choice embla_prediction embla_diff_row embla_health_duplicate embla_eval_missing embla_cost_part
    embla_plan_part embla_finding""".split()

bad, seen = [], set()
for path in sorted(glob.glob(sys.argv[1] + "/include/*.h")):
    text = re.sub(r"/\*.*?\*/", " ", open(path, encoding="utf-8").read(), flags=re.S)
    for body, name in re.findall(r"typedef struct(?: \w+)? \{(.*?)\n\} (\w+);", text, flags=re.S):
        seen.add(name)
        words = re.search(r"reserved\[(\d+)\];\s*$", body)
        four = bool(re.search(r"uint64_t reserved\[4\];\s*$", body))
        where = "%s in %s" % (name, path.split("/")[-1])
        if name in ELEMENTS:
            if "reserved" in body:
                bad.append(where + " is listed as an element of an array, but has reserved words")
        elif not four:
            bad.append("%s ends with %s reserved words; give it uint64_t reserved[4]"
                       % (where, words.group(1) if words else "no"))
for name in sorted(set(ELEMENTS) - seen):
    bad.append(name + " is listed in reserved.sh, but no header has it")
if len(seen) < 60:
    bad.append("only %d structs were found" % len(seen))
if bad:
    sys.exit("\n".join(bad))
END
