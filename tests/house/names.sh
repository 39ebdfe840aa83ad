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
types() {
    local file
    for file in src/*/*.[ch] include/*.h; do
        awk -v file="$file" '
            { sub(/\/\*.*/, "") }
            match($0, /^(typedef )?(struct|union|enum) [a-z_0-9]+ *\{/) {
                split($0, word, /[ {]+/); name = word[1] == "typedef" ? word[3] : word[2]
                print name, file
            }
            match($0, /^\} [a-z_0-9]+;/) { print substr($0, 3, RLENGTH - 3), file }
            match($0, /^typedef .*\} [a-z_0-9]+;/) { n = split($0, word, /[ ;]+/); print word[n - 1], file }
        ' "$file"
    done | awk '$1 ~ /^embla_/ || $2 ~ /\.h$/' | sort -u
}
while read -r name; do
    say "two types are called $name: $(types | awk -v n="$name" '$1 == n { printf " %s", $2 }')"
done < <(types | awk '{ print $1 }' | uniq -d)

files() { find src cli bench -name '*.[ch]' | sed 's|.*/||' | sort; }
while read -r name; do
    say "two files are called $name: $(find src cli bench -name "$name" | sort | tr '\n' ' ')"
done < <(files | uniq -d)

for object in "$@"; do
    case "$object" in
    */main.c.o) own='^(cli_|main$)' ;;
    */bench/*) own='^bench_' ;;
    *) own='^cli_' ;;
    esac
    while read -r name; do
        say "${object##*/} defines $name, which does not begin as its neighbours do"
    done < <(nm -g --defined-only "$object" | awk -v own="$own" 'NF == 3 && $3 !~ own { print $3 }')
done

# tsort names the members of a circle on stderr.
edges() {
    local file target
    for file in src/*/*.h cli/*/*.h bench/*.h include/*.h; do
        while read -r target; do
            for place in "src/$target" "cli/$target" "$target" "include/$target" "bench/$target"; do
                [[ -e $place ]] || continue
                echo "$file $place"
                break
            done
        done < <(sed -n 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*"\([^"]*\)".*/\1/p' "$file")
    done
}
circles=$(edges | tsort 2>&1 >/dev/null | sed -n 's/^tsort: \([a-z].*\.h\)$/\1/p') || true
[[ -z $circles ]] || say "headers include each other in a circle: $(tr '\n' ' ' <<<"$circles")"
exit $bad
