# SPDX-License-Identifier: Apache-2.0
# What of a model goes into a page: the whole of a small one that predicts, else the rows of its table.
. "$SOURCE/tests/cli/module.sh"
. "$SOURCE/tests/cli/models.sh"
cp "$SOURCE"/demo/{words.vec,fox.vec} .

# a table is one safetensors with its words beside it
run play fox.vec -o fox.html
page fox.html | grep -o '"model":.*"letters"'
files fox.html
unpack() { # PAGE FOLDER
    mkdir -p "$2"
    for file in table.safetensors table.vocab.txt; do field "$1" "/model/$file" >"$2/$file"; done
}
unpack fox.html fox
embla diff fox.vec fox/table.safetensors && embla near fox/table.safetensors fox --top 2

# the first rows
run play fox.vec --rows 5 -o five.html --json
unpack five.html five
embla lookup five/table.safetensors '#4' && tail -n 2 five/table.vocab.txt

# words of any bytes, and rows without a word
printf '%s\n' '5 2' '</script> 1 2' 'a"b 2 1' $'\xff\xfe 0 3' $'\xe2\x80\xae 1 1' '\n 2 2' >odd.vec
embla play odd.vec -o odd.html -q
unpack odd.html odd
embla diff odd.vec odd/table.safetensors -q && field odd.html /model/table.vocab.txt | od -c | head -n 5
embla new -o plain.npy --rows 3 --dim 2 >/dev/null
run play plain.npy -o plain.html
page plain.html | grep -o '"words":{[^}]*}'
files plain.html | grep model

# a large one: 8 bits, with a scale for each row
seq -f 'word%g' 30000 >words.txt
embla new -o large.safetensors --words words.txt --dim 60 >/dev/null
run play large.safetensors -o large.html
page large.html | grep -o '"rows":.*"stored"'
field large.html /model/table.safetensors >bytes.safetensors
field large.html /model/table.vocab.txt | tail -n +2 | cmp - words.txt
# each number is off by at most 1/254 of the largest of its row
header=$(od -An -tu8 -N8 bytes.safetensors)
for row in 0 9 29999; do
    od -An -tf4 -j $((8 + header + 4 * row)) -N 4 bytes.safetensors
    for file in large bytes; do embla lookup "$file.safetensors::vectors" "#$row" --format tsv | cut -f 3-; done
done | awk 'NR % 3 == 1 { scale = $1 }
    NR % 3 == 2 { split($0, exact) }
    NR % 3 == 0 { for (i = 1; i <= NF; i++) { d = (exact[i] - scale * $i) / scale; if (d < 0) d = -d; if (d > worst) worst = d } }
    END { print (worst > 0.3 && worst < 0.5001 ? "rounded to the nearest of 255 numbers" : "off by " worst), NF }'

# still too large: the first rows that fit, and the page says so
embla new -o wide.safetensors --rows 30000 --dim 400 >/dev/null
digits() { sed -E 's/(first|most) [0-9,]+ (of|rows)/\1 N \2/; s/: [0-9.]+ MB$/: N MB/'; }
try play wide.safetensors -o wide.html | digits
[[ $(stat -c %s wide.html) -le 10000000 && $(stat -c %s wide.html) -ge 9900000 ]] && echo "nearly 10 MB"
try play wide.safetensors -o more.html --rows 29000 | digits
run play wide.safetensors -o less.html --rows 1000 --json

# models: a small one goes in whole, also by the name of its file
cp -r "$SOURCE/demo/village" village
for model in "$SOURCE/demo/names" village village/model.safetensors; do
    embla play "$model" -o model.html --force -q
    files model.html | grep '^/model' | tr '\n' ' '
    page model.html | grep -o '"model":{"path":"[^"]*"'
done
# of one that Embla does not run, the table goes in
folder other '{"model_type": "other"}'
make_model other/model.safetensors model.embed_tokens.weight:F32:6x4 model.layers.0.weight:F32:4x4
words 6 >other/vocab.txt
run play other -o other.html
page other.html | grep -o '"words":{[^}]*}'
