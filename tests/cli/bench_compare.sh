# SPDX-License-Identifier: Apache-2.0
# bench/compare.py: runs of the benchmarks, old and new. Made-up ratios: a fall is found, noise is
# tolerated, a missing case and a broken line are named.
command -v python3 >/dev/null || { echo "python3 is missing"; exit 77; }

run() { # VERSION RATIO..: a run with the cases c1, c2, ..
    local n=0
    echo "{\"cpu\":\"some CPU\",\"version\":\"$1\"}"
    shift
    for ratio; do
        n=$((n + 1))
        echo "{\"bench\":\"lookup\",\"case\":\"c$n\",\"threads\":1,\"value\":2,\"unit\":\"GB/s\",\"limit\":1,\"limit_is\":\"memcpy\",\"ratio\":$ratio}"
    done
}
compare() {
    echo "\$ compare.py $*"
    python3 "$SOURCE/bench/compare.py" "$@" 2>&1
    echo "exit $?"
}

run 1.0 1.00 0.90 0.80 0.70 0.60 0.50 0.40 0.30 >old
run 1.1 1.02 0.89 0.81 0.69 0.61 0.49 0.41 0.22 >new
echo "-- one run each: the noise is that of all cases, and c8 fell by more"
compare old new
echo "-- the same the other way: it rose, and nothing fell"
compare new old
echo "-- the same file twice"
compare old old

# c1 varies by 20 % from run to run, c2 by 1 %: the same fall of 8 % counts only for c2.
{ run 1.0 1.00 1.000; run 1.0 0.80 1.010; run 1.0 1.20 0.990; } >runs
{ run 1.1 0.92 0.920; run 1.1 0.75 0.925; run 1.1 1.10 0.915; } >runs2
echo "-- several runs: each case has its own noise"
compare runs runs2
compare runs runs2 --json
compare runs runs2 --least 10

# The median of c1 falls by 40 %, but one new run is as fast as an old one: two sides that overlap.
for ratio in 1.00 1.01 0.99 1.00 1.00; do run 1.0 $ratio 1 1 1; done >steady
for ratio in 0.60 0.60 0.60 0.60 1.00; do run 1.1 $ratio 1 1 1; done >once
echo "-- sides that overlap are not different"
compare steady once

echo "-- cases that only one file has, another CPU, two files against one"
run 1.0 1 1 1 >three
run 1.0 1 1 | sed 's/some CPU/another/; s/"c2"/"other"/' >two
compare three two old

echo "-- wrong files and wrong usage"
{ run 1.0 1 1; echo '{"bench":"lookup","case"'; } >broken
compare old broken
run 1.0 1 -1 >negative
compare negative old
sed 's/"ratio":1,*//; s/"unit":"GB.s",//; s/,}/}/' three | head -2 >lacking
compare lacking old
: >empty
compare old empty
compare old missing
run 1.0 1 | sed 's/c1/alone/' >alone
compare three alone
compare old 2>&1 | grep -v "^usage\|^  "
