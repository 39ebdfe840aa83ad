#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Ranks on several hosts: network namespaces of this machine, with TCP between them. The same rows as
# one process gives, also with 50 ms delay (there and back) and 1 % loss. A link that is cut ends all
# ranks within a minute, with a sentence. Skipped where namespaces are not permitted.
# Only for Open MPI: the UCX of Debian's MPICH uses shared memory between such hosts, and hangs if
# it may use TCP only.
# With EMBLA, the program, also the part of an exchange of rows that is hidden by computing meanwhile:
# at least half with 50 ms delay. For a machine without other work.
#   usage: network.sh openmpi JOB [EMBLA]
set -euo pipefail
. "$(dirname "$0")/common.sh"
job=$2
tag=em$$
unset DISPLAY

command -v ip >/dev/null || skip "ip (iproute2) is not installed"
ip netns add "$tag-x" 2>/dev/null || skip "network namespaces are not permitted"
cleanup() {
    for n in x 1 2 3 4; do
        for p in $(ip netns pids "$tag-$n" 2>/dev/null); do kill -9 "$p" 2>/dev/null || true; done
        ip netns del "$tag-$n" 2>/dev/null || true
    done
    rm -rf "$folder"
}
trap cleanup EXIT

# four hosts, 10.77.0.1 .. 10.77.0.4, on a switch
if ! ip -n "$tag-x" link add sw type bridge 2>/dev/null; then skip "the system has no bridges"; fi
ip -n "$tag-x" link set sw up
for n in 1 2 3 4; do
    ip netns add "$tag-$n"
    ip link add "$tag-a" netns "$tag-$n" type veth peer name "port$n" netns "$tag-x"
    ip -n "$tag-x" link set "port$n" master sw up
    ip -n "$tag-$n" link set "$tag-a" name eth
    ip -n "$tag-$n" address add "10.77.0.$n/24" dev eth
    ip -n "$tag-$n" link set eth up
    ip -n "$tag-$n" link set lo up
done

# what an MPI calls instead of ssh: AGENT [OPTIONS] HOST COMMAND..
cat >"$folder/agent" <<EOF
#!/bin/sh
while [ "\${1#-}" != "\$1" ]; do shift; done
host=\$1
shift
exec ip netns exec "$tag-\${host##*.}" unshare --uts sh -c "hostname host\${host##*.}; \$*"
EOF
chmod +x "$folder/agent"

hosts() { # NUMBER COMMAND..: one rank on each of so many hosts
    local number=$1 list
    shift
    list=$(seq -s, -f '10.77.0.%g' "$number")
    set -- env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "$launcher" -n "$number" -H "$list" \
        --mca plm_rsh_agent "$folder/agent" --mca pml ob1 --mca btl tcp,self --mca btl_tcp_if_include eth \
        --mca oob_tcp_if_include eth -x EMBLA_MPI_LIBRARY -x PATIENCE -x SEND "$@"
    PATIENCE=${PATIENCE:-45} SEND= ip netns exec "$tag-1" unshare --uts sh -c 'hostname host1; exec "$@"' sh "$@"
}

result() { # the loss and the rows in $folder/now
    echo "$loss $(sha256sum <"$folder/now/rows.safetensors" | cut -c1-64)"
    rm -r "$folder/now"
}

train() { # HOW NUMBER STEPS
    mkdir -p "$folder/now"
    loss=$("$1" "$2" "$job" train adamw f32 "$3" 1 "$folder/now" 2>"$folder/err") || { cat "$folder/err"; exit 1; }
    result
}

alone=$(train ranks 1 20)
short=$(train ranks 1 2)
for n in 2 4; do
    got=$(train hosts "$n" 20)
    [ "$got" = "$alone" ] || { echo "$n hosts: $got instead of $alone"; exit 1; }
done
echo "2 and 4 hosts: $alone"

# hosts 1 and 2 by a slow link instead of the switch
for n in 1 2; do
    ip -n "$tag-x" link set "port$n" nomaster
    ip netns exec "$tag-$n" ethtool -K eth tx off gso off tso off gro off >/dev/null 2>&1 || skip "ethtool is not installed"
done
slow_link() { # MILLISECONDS LOSS: one way
    ip netns exec "$tag-x" python3 "$(dirname "$0")/slow_link.py" port1 port2 "$1" "$2" 2>"$folder/link" &
    link=$!
}
slow_link 25 0.01
begun=$SECONDS
got=$(train hosts 2 2)
[ "$got" = "$short" ] || { echo "with delay and loss: $got instead of $short"; exit 1; }
echo "50 ms delay and 1 % loss: the same, after $((SECONDS - begun)) s"
kill "$link"
cat "$folder/link"
if [ $# -gt 2 ]; then
    for n in 1 2; do
        ip -n "$tag-x" link set "port$n" mtu 60000
        ip -n "$tag-$n" link set eth mtu 60000
    done
    slow_link 25 0
    hosts 2 "$3" bench cluster --case hidden --json | tee "$folder/hidden"
    kill "$link"
    python3 - "$folder/hidden" <<'EOF'
import json, sys
cases = [json.loads(line) for line in open(sys.argv[1])]
sys.exit(not cases or any(case["value"] < 0.5 for case in cases))
EOF
    for n in 1 2; do ip -n "$tag-$n" link set eth mtu 1500; done
fi
for n in 1 2; do ip -n "$tag-x" link set "port$n" master sw; done

PATIENCE=15 hosts 4 "$job" waits 100 >"$folder/log" 2>&1 &
launched=$!
for ((k = 0; k < 300; k++)); do
    grep -qs '^started' "$folder/log" && break
    sleep 0.1
done
grep -q '^started' "$folder/log" || { cat "$folder/log"; exit 1; }
ip -n "$tag-x" link set port3 down
begun=$SECONDS
while pgrep -f "^$job waits 100\$" >/dev/null && [ $((SECONDS - begun)) -lt 90 ]; do sleep 0.5; done
took=$((SECONDS - begun))
grep -E 'rank [0-9] of 4 waited 15 seconds for .*; no answer from rank [0-9, ]*' "$folder/log" || { cat "$folder/log"; exit 1; }
[ "$took" -le 60 ] || { echo "after the cut it took $took s until all ranks had ended"; exit 1; }
echo "a link that was cut ended all ranks after $took s"
kill "$launched" 2>/dev/null || true
wait "$launched" 2>/dev/null || true
