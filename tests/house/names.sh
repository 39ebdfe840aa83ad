#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Shows every name that stands for two things, and exits 1 if there is one:
#   - types of src/ and include/ that are defined twice. A type of one .c file, without the prefix
#     embla_, is that file's own and does not count
#   - files of src/, cli/ and bench/ with the same name
#   - functions and variables that cli/ shares between files and that do not begin with cli_, those
#     of bench/ that do not begin with bench_
#   - headers that include each other in a circle
# OBJECTS are object files of the program, whose paths hold cli/ or bench/; none are given in builds
# with a sanitizer, which adds names.
#   usage: names.sh PROJECT [OBJECT]...
set -euo pipefail
export LC_ALL=C
cd "$1"
shift
bad=0
say() {
    echo "$1"
    bad=1
}

# "name file" for each type that has a body: struct name {, } name;
types=$(awk '
    { sub(/\/\*.*/, "") }
    /^(typedef )?(struct|union|enum) [a-z_0-9]+ *\{/ {
        split($0, word, /[ {]+/)
        print word[1] == "typedef" ? word[3] : word[2], FILENAME
    }
    /^\} [a-z_0-9]+;/ { split($0, word, /[ ;]+/); print word[2], FILENAME }
    /^typedef .*\} [a-z_0-9]+;/ { n = split($0, word, /[ ;]+/); print word[n - 1], FILENAME }
' src/*/*/*.[ch] src/cluster/*.[ch] include/*.h | awk '$1 ~ /^embla_/ || $2 ~ /\.h$/' | sort -u)
for name in $(cut -d ' ' -f 1 <<<"$types" | uniq -d); do
    say "two types are called $name:$(awk -v n="$name" '$1 == n { printf " %s", $2 }' <<<"$types")"
done

for name in $(find src cli bench -name '*.[ch]' | sed 's|.*/||' | sort | uniq -d); do
    say "two files are called $name: $(find src cli bench -name "$name" | sort | tr '\n' ' ')"
done

if [[ $# -gt 0 ]]; then
    strangers=$(nm -A -g --defined-only "$@" | awk '
        { split($1, part, ":"); own = part[1] ~ /\/bench\// ? "^bench_" : "^cli_" }
        part[1] ~ /\/main\.c\.o$/ && $NF == "main" { next }
        $NF ~ /^\./ { next } # made by the compiler: no name in C begins with a dot
        $NF !~ own { sub(/.*\//, "", part[1]); print "  " part[1] ": " $NF }')
    [[ -z $strangers ]] || say "names without the prefix cli_ or bench_:"$'\n'"$strangers"
fi

# tsort names the members of a circle on stderr. Paths are relative to a folder of src/, cli/, include/ or the
# project, and no two files have the same name: so the name alone says which header is meant.
circles=$(awk 'match($0, /^[ \t]*#[ \t]*include[ \t]*"[^"]*"/) {
        split($0, word, "\""); from = FILENAME; to = word[2]
        sub(/.*\//, "", from); sub(/.*\//, "", to); print from, to
    }' src/*/*/*.h src/cluster/*.h cli/*/*.h bench/*.h include/*.h | tsort 2>&1 >/dev/null |
    sed -n 's/^tsort: \([a-z_0-9]*\.h\)$/\1/p') || true
[[ -z $circles ]] || say "headers include each other in a circle: $(tr '\n' ' ' <<<"$circles")"
exit $bad
