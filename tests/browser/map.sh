# SPDX-License-Identifier: Apache-2.0
# The maps that map.mjs opens; run.sh runs this in an empty folder.
# words that would be part of the page, end it, or turn it around, if they could
printf '%s\n' '9 3' '</script><script>window.hacked=1</script> 1 2 3' '<img/src=x/onerror=window.hacked=1> 2 1 0' \
    '"><b>&amp; 3 0 1' $'\xff\xfe 0 3 2' $'\xe2\x80\xaelive 1 1 1' '\n 2 2 1' '--><!-- 5 1 1' \
    'none nan 1 1' 'plain 1 0 0' >odd.vec
"$program" map odd.vec -o odd.html --title '</title><script>window.hacked=1</script>' --quiet || exit 1
"$program" map odd.vec -o none.html --neighbours 0 --theme dark --color none --quiet || exit 1
printf '1 2\nalone 1 2\n' >one.vec
"$program" map one.vec -o one.html --quiet || exit 1
printf '3 1\na 1\nb 1\nc 1\n' >same.vec
"$program" map same.vec -o same.html --quiet || exit 1

# 200 rows: pictures and a page whose labels are held against each other
awk 'BEGIN {
    print 200, 3
    for (i = 0; i < 200; i++) {
        for (k = 0; k < 3; k++) { s = (s * 69069 + 12345) % 4294967296; v[k] = s / 4294967296 - 0.5 }
        print "word" i, v[0], v[1], v[2] / 9
    }
}' >rows.vec
"$program" map rows.vec -o rows.html --quiet || exit 1
"$program" map rows.vec -o rows.svg --quiet || exit 1
"$program" map rows.vec -o words.svg --quiet --words word3,word7,word100 || exit 1
"$program" map rows.vec -o words.html --quiet --words word3,word7,word100 || exit 1
"$program" map rows.vec -o arrows.html --quiet --arrows word3:word7,word100:word7 || exit 1
"$program" map rows.vec -o only.html --quiet --words word3,word7,word100 --only || exit 1

glove=${EMBLA_DATA-}/glove-50k/glove.6B.100d.50k.txt.xz
if [[ -e $glove ]] && command -v xz >/dev/null; then
    xz -dc "$glove" >glove.txt
    "$program" map glove.txt -o glove.html --title "GloVe 6B, 50,000 words" \
        ${EMBLA_TEST_SLOW:+--rows 4000} || exit 1
else
    echo "glove-50k is not here: its part is left out"
fi
