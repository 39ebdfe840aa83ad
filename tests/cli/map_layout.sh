# SPDX-License-Identifier: Apache-2.0
# Layouts that keep near rows near, and communities: what is said, what a file has, and when they are made.
. "$SOURCE/tests/cli/models.sh"
# 600 rows around 6 directions: word a17 is of group a
awk 'BEGIN {
    s = 7
    for (g = 0; g < 6; g++) for (k = 0; k < 5; k++) middle[g, k] = random()
    print 600, 5
    for (i = 0; i < 600; i++) {
        g = i % 6
        printf "%s%d", substr("abcdef", g + 1, 1), i
        for (k = 0; k < 5; k++) printf " %.4f", middle[g, k] + 0.15 * random()
        print ""
    }
}
function random() { s = (s * 69069 + 12345) % 4294967296; return s / 2147483648 - 1 }' >groups.vec
run() { try "$@" | sed -E 's/[0-9.]+ (k|M)B/N kB/; s/"bytes":[0-9]+/"bytes":N/; s/"central":\[[^]]*\]/"central":[..]/g; s/\([a-f][0-9]+, [a-f][0-9]+\)/(..)/g'; }
run map groups.vec -o groups.html
run map groups.vec -o groups.svg --json
run map groups.vec -o pca.svg --layout pca
run map groups.vec -o pca.html --layout pca --color community -q
fox
run map fox.vec -o fox.svg --layout neighbours
run map fox.vec -o fox2.svg --layout near
# groups are communities, named by their own words
embla map groups.vec -o again.svg --json | grep -o '"rows":100' | wc -l
field() { sed -n "s|.*id=\"data-$2\">\([^<]*\)</script>|\1|p" "$1" | base64 -d; }
for file in groups pca; do
    grep -o 'data-layout="[a-z]*"\|data-color="[a-z]*"' $file.html
    field $file.html community | od -An -tu1 -v -w6 | sort | uniq -c | sed 's/ \+/ /g' | cut -d ' ' -f 2 # one label for each group
done
grep -o 'data-communities="[^"]*' groups.html | cut -d '"' -f 2 | tr ';' '\n' | awk '{ ok = 1; for (i = 4; i <= NF; i++) if ($i % 6 != $3 % 6) ok = 0; print NF - 2, ok }'
# a picture says what its axes are, and names communities
grep -o '>[^<]*principal[^<]*\|>[^<]*no meaning[^<]*\|>[^<]*coloured by[^<]*' groups.svg pca.svg
grep -c 'class="word halo c' groups.svg
grep -o 'class="word halo c[^<]*' pca.svg
# near rows are near: of the 10 nearest rows, most are among the 10 nearest points
field groups.html xy | od -An -tf4 -v -w8 >places
field groups.html near | od -An -tu1 -v -w5 | awk '{ print $1 + 256 * $2 }' >near
awk 'NR == FNR { x[NR - 1] = $1; y[NR - 1] = $2; n = NR; next } { near[FNR - 1] = $1 }
END {
    for (r = 0; r < n; r += 5) for (i = 0; i < 8; i++) {
        o = near[8 * r + i]; d = (x[r] - x[o]) ^ 2 + (y[r] - y[o]) ^ 2; closer = 0
        for (j = 0; j < n; j++) if (j != r && (x[r] - x[j]) ^ 2 + (y[r] - y[j]) ^ 2 < d) closer++
        kept += closer < 8; all++
    }
    print (kept / all > 0.35 ? "neighbours are kept" : "kept: " kept / all)
}' places near
for threads in 1 3; do embla map groups.vec -o t$threads.html --threads $threads -q; done
cmp t1.html t3.html && echo "the same for any number of threads"
# rows with a NaN, and --only
sed '4s/ [^ ]*/ nan/' groups.vec >nan.vec
run map nan.vec -o nan.svg
run map groups.vec -o only.svg --words a0,b1,c2 --only
