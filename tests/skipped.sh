#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Prints how many tests of a ctest run were skipped, and why. ctest calls it after every run, through
# CTestCustom.cmake in the build folder.
#   usage: skipped.sh BUILD
# A test that ends with 77 gives its reason in its last line. A case of a unit test gives it in the
# line before cmocka's SKIPPED. A test that passes and leaves a part out says so in a line that names
# EMBLA_DATA or says that something "is left out". The exit code is always 0: ctest would count another as a failure.
log=$1/Testing/Temporary/LastTest.log
[ ! -e "$log.tmp" ] || log=$log.tmp # the run that ends now
[ -e "$log" ] || exit 0
# ctest -N runs no tests; the log is that of an earlier run
tr '\0' '\n' <"/proc/$PPID/cmdline" 2>/dev/null | grep -qxE -e '-N|--show-only.*|--print-labels' && exit 0
# "NUMBER:NAME" of the skipped tests. ctest writes it only if there are any, and never removes it.
list=$1/Testing/Temporary/LastTestsDisabled.log
names=$(sed 's/^[0-9]*://' "$list" 2>/dev/null | tr '\n' ' ')
rm -f "$list"
awk -v names="$names" '
BEGIN { n = split(names, word, " "); for (i = 1; i <= n; i++) was_skipped[word[i]] }
function note(what, why) {
    sub(/^skipped: */, "", why)
    sub(/: *skipped$/, "", why)
    if (why ~ /EMBLA_DATA/) why = "no EMBLA_DATA (tests/data/fetch makes that folder)"
    if (why == "") why = "no reason is given"
    if (!(why in named)) reasons[++count] = why
    named[why] = named[why] (named[why] == "" ? "" : ", ") what
    cases[why]++
}
function wrap(text,    words, n, i, line) {
    n = split(text, words, " ")
    line = "   "
    for (i = 1; i <= n; i++) {
        if (length(line) + length(words[i]) >= 80) { print line; line = "   " }
        line = line " " words[i]
    }
    print line
}
/^[0-9]+\/[0-9]+ Test: / { test = $3; last = before = ""; parts = 0; total++; inside = 0 }
/^<end of output>$/ { inside = 0 }
inside && /^\[  SKIPPED \] [a-z_0-9]+$/ {
    if (!((test, $4) in seen)) { seen[test, $4]; note(test ":" $4, before ~ /^\[ RUN/ ? "" : before); left++ }
    parts = 1
}
inside && !/^ *$/ { before = last = $0; if (/EMBLA_DATA|(is|are) left out/) want = $0 }
/^Output:$/ { getline; inside = 1; want = "" }
/^Test (Passed|Failed|Not Run|Skipped)/ {
    if (test in was_skipped) { skipped++; note(test, last) }
    else if (/Passed/ && want != "" && !parts) { left++; note(test " (a part)", want) }
}
END {
    if (!skipped && !left) { if (total) print "No test was skipped."; exit }
    printf "Skipped: %d of %d tests, and %d cases or parts of others. Why:\n", skipped, total, left
    for (i = 1; i <= count; i++) { printf "  %d: %s\n", cases[reasons[i]], reasons[i]; wrap(named[reasons[i]]) }
}' "$log"
exit 0
