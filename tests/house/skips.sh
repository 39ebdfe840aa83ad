#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What tests/skipped.sh says about a run of ctest: skipped tests with their reasons, cases of unit
# tests, and parts of tests that passed.
#   usage: skips.sh PROJECT
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
logs=$work/Testing/Temporary
mkdir -p "$logs"
entry() { # NAME OUTPUT..: a test as ctest writes it
    printf '1/9 Testing: %s\n1/9 Test: %s\nCommand: "x"\nOutput:\n----------\n' "$1" "$1"
    shift
    printf '%s\n' "$@"
    printf '<end of output>\nTest time =   0.02 sec\n----------\nTest Passed.\n"x" end time: now\n\n'
}
{
    echo "Start testing: now"
    entry peers.one "skipped: EMBLA_DATA names no folder"
    entry peers.two "there is no torch: nothing is compared"
    entry unit "[ RUN      ] is_told" "no engine for matrix products" "[  SKIPPED ] is_told" \
        "[ RUN      ] is_silent" "[  SKIPPED ] is_silent" "[==========] 2 test(s) run." \
        "[  SKIPPED ] 2 test(s), listed below:" "[  SKIPPED ] is_told" "[  SKIPPED ] is_silent"
    entry parts "EMBLA_DATA is not set, or has no glove-50k: that is left out" "all else is right"
    entry half "pkg-config is not here: its half is left out" "all else is right"
    entry whole "all is right"
} >"$logs/LastTest.log"
printf '1:peers.one\n2:peers.two\n' >"$logs/LastTestsDisabled.log"
cat >"$work/expected" <<'END'
Skipped: 2 of 6 tests, and 4 cases or parts of others. Why:
  2: no EMBLA_DATA (tests/data/fetch makes that folder)
    peers.one, parts (a part)
  1: there is no torch: nothing is compared
    peers.two
  1: no engine for matrix products
    unit:is_told
  1: no reason is given
    unit:is_silent
  1: pkg-config is not here: its half is left out
    half (a part)
END
"$1/tests/skipped.sh" "$work" >"$work/printed"
diff -u "$work/expected" "$work/printed"
{ echo "Start testing: now"; entry peers.one "right"; } >"$logs/LastTest.log" # a later run, without skips
[ "$("$1/tests/skipped.sh" "$work")" = "No test was skipped." ]
# every case that is skipped says why
bad=$(grep -nE '(^|[^_a-z])if \(.*\) skip\(\);' "$1"/tests/*.c "$1"/tests/*/*.c "$1"/tests/*/*/*.c || true)
[ -z "$bad" ] || { echo "no reason is given: use skip_because"; echo "$bad"; exit 1; }
