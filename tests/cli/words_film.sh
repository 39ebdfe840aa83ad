# SPDX-License-Identifier: Apache-2.0
# words --film: the watched words, or the most frequent ones.
cp "$SOURCE/demo/village.txt" .
json() { sed -n 's|.*id="data-film">\(.*\)</script>|\1|p' "$1" | base64 -d; }
embla words village.txt -o w.vec --dim 8 --epochs 3 --watch cat,dog,king --film w.html | grep ^film |
    sed 's/[0-9.]* [kM]*B/.. kB/'
json w.html | grep -o '"words":\["cat","dog","king"\]'
json w.html | grep -o '"guess":[0-9.]*'
json w.html | grep -o '"texts":\[\]'
embla words village.txt -o v.vec --dim 8 --epochs 1 --film v.html --film-axes man:woman,king:queen --quiet
json v.html | grep -o '"axes":\[[0-9,]*\]' | tr -cd '[],' && echo
json v.html | grep -o '"rows":[0-9]*' | awk -F: '{ print ($2 > 50 && $2 <= 304) ? "rows" : $2 }'
try words village.txt -o x.vec --film w.html
try words village.txt -o x.vec --film x.txt
try words village.txt -o x.vec --film x.html --film-axes man:woman
try words village.txt -o x.vec --film x.html --film-axes man:woman,king:dragon
try words village.txt -o x.vec --film-axes man:woman,king:queen
ls
embla words village.txt -o v.vec --dim 8 --epochs 1 --film v.html --force --json | grep -o '"film":.*'
