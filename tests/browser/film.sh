# SPDX-License-Identifier: Apache-2.0
# The films that film.mjs opens; run.sh runs this in an empty folder.
cp "$here/../../demo/names.txt" "$here/../../demo/village.txt" . || exit 1
"$program" train names.txt --preset microgpt -o letters --film letters.html --quiet >/dev/null || exit 1
"$program" train names.txt --preset microgpt --steps 0 -o still --film still.html --quiet >/dev/null || exit 1
"$program" train village.txt --words 300 --preset microgpt --documents ${EMBLA_TEST_SLOW:+--steps 300} -o village \
    --watch cat,dog,king,queen,man,woman,tuesday --film-axes man:woman,man:king --film axes.html --quiet >/dev/null || exit 1
"$program" words village.txt -o words.vec --dim 16 --epochs 5 --film words.html --quiet || exit 1
# words that would be part of the page, if they could
printf '%s\n' '</script><script>window.hacked=1</script> <img/src=x/onerror=window.hacked=1> "><b>&amp; plain' >odd.txt
for _ in 1 2 3 4 5; do cat odd.txt odd.txt >more.txt; mv more.txt odd.txt; done
"$program" words odd.txt -o odd.vec --dim 4 --epochs 2 --min-count 1 --film odd.html --quiet || exit 1
