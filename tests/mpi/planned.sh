#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# embla plan --measure beside what is measured: a lookup, and a step of lookup, sum and optimizer, on
# 1, 2 and 4 ranks of this host. The median of five runs is within 25 %. A number of ranks above that
# of cores is left out, because the plan has a core for each rank. For a machine without other work.
#   usage: planned.sh openmpi|mpich EMBLA
set -euo pipefail
. "$(dirname "$0")/common.sh"
embla=$2
status=0
for n in 1 2 4; do
    [ "$n" -le "$(nproc)" ] || { echo "$n ranks: left out on $(nproc) cores" && continue; }
    for ((run = 0; run < 5; run++)); do
        ranks "$n" "$embla" bench cluster --case planned --json
    done >"$folder/runs"
    python3 - "$folder/runs" "$n" <<'EOF' || status=1
import collections, json, statistics, sys
ratios = collections.defaultdict(list)
for line in open(sys.argv[1]):
    case = json.loads(line)
    if "planned" in case.get("case", ""):
        ratios[case["case"]].append(case["value"] / case["limit"])
far = not ratios
for name, all in sorted(ratios.items()):
    median = statistics.median(all)
    far = far or not 0.75 <= median <= 1.25
    print(f"{sys.argv[2]} ranks, {name}: {median:.2f} of the plan's speed ({min(all):.2f} to {max(all):.2f})")
sys.exit(far)
EOF
done
exit "$status"
