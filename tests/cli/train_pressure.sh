# SPDX-License-Identifier: Apache-2.0
# A training that does not fit in memory is refused before it starts; one whose output is closed
# saves first; --plot and --watch hold for --resume too.
seq 300 >numbers.txt
small=(--preset microgpt --threads 1)
embla train numbers.txt -o x --batch 1000000000 2>&1 | sed -E 's/only .* is available \(.*\)/only N is available/'
[[ -e x ]] && echo "x exists"
if (ulimit -v 400000 && embla version; exit $?) >/dev/null 2>&1; then # a sanitizer needs more to begin with
    (ulimit -v 400000 && embla train numbers.txt -o x --batch 64 2>&1 | sed -E 's/.*(\(ulimit -v\)).*/\1/')
else
    echo "(ulimit -v)"
fi
try train numbers.txt -o x --plot p.png
try train numbers.txt -o x --plot missing/p.svg
embla train numbers.txt -o cut "${small[@]}" --steps 5000000 --every 10 --plot p.svg --watch 1,2 2>err | head -n 8 >/dev/null
sed -E 's/step [0-9,]+ of/step N of/' err
ls cut/checkpoints | wc -l
rm p.svg
steps=$(ls cut/checkpoints | sed -nE 's/.*-0*([1-9][0-9]*).safetensors/\1/p' | tail -n 1)
embla train --resume cut --steps $((steps + 20)) | grep -E '^(1|2) ' >/dev/null && echo "watched"
head -c 4 p.svg
echo
embla lookup cut '<bos>' --format tsv | cut -f 1,2
