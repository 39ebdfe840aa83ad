# SPDX-License-Identifier: Apache-2.0
# Models of words: which words get rows, what the other verbs show, and how texts are written.
cat >fox.txt <<'END'
The quick brown fox jumps over the lazy dog. The dog doesn't jump, the fox does!
The lazy dog sleeps; the quick fox (a brown one) runs over the hill.
END
for i in 1 2 3 4 5 6 7 8; do cat fox.txt; done >text.txt
shape=(--preset gpt2-mini --layers 1 --heads 2 --dim 16 --length 16 --batch 4 --threads 1)
facts() { grep -E '^(text|unknown|model|format|vocabulary|frozen|[ ]+[a-z])' | sed "s|$PWD/||"; }
embla train text.txt --words 12 -o words "${shape[@]}" --steps 60 -q | facts
embla train text.txt --words 12 -o facts "${shape[@]}" --steps 0 | facts
embla train text.txt --words 12 -o json "${shape[@]}" --steps 0 --json | grep -o '"unknown":[0-9]*'
# the most frequent first, of equals in the order of bytes; the unknown last
embla info words | grep vocabulary
sed -n '/"vocab"/,/}/p' words/tokenizer.json | tr -d ' \n'
echo
grep -E 'bos|eos' words/config.json
# the rule that cuts words is written as a regular expression
embla train text.txt --words 1000 -o all "${shape[@]}" --steps 0 -q >/dev/null
python3 - <<'END'
import json, re
t = json.load(open("all/tokenizer.json"))
p = t["pre_tokenizer"]
assert (p["type"], p["behavior"], p["invert"]) == ("Split", "Removed", True)
text = open("text.txt").read()
found = re.findall(p["pattern"]["Regex"], text)
counts = {w: found.count(w) for w in found}
order = sorted(counts, key=lambda w: (-counts[w], w.encode()))
assert list(t["model"]["vocab"]) == order + ["<unk>"], "other words"
cases = "a\u00a0b \u00d7 na\u00efve l\u2019\u00e9t\u00e9 \u4e2d\u6587\u3002 \U0001f600! a\x7fb 'tis o'er''"
print(re.findall(p["pattern"]["Regex"], cases) ==
      ["a", "b", "\u00d7", "na\u00efve", "l\u2019\u00e9t\u00e9", "\u4e2d\u6587", "\u3002",
       "\U0001f600", "!", "a", "b", "'", "tis", "o'er", "'", "'"])
END
# the other verbs
embla near words dog --top 2 --format text | wc -l
embla lookup words fox 'the' --format json | grep -c fox
embla map words -o words.svg >/dev/null && grep -c '>dog<' words.svg
embla generate words --prompt 'The zebra, the  fox' --tokens 0
embla generate words --prompt $'The dog.\nThe fox' --tokens 0
embla generate words --tokens 12 --temperature 0 --prompt 'The lazy' | head -n 1 | cut -d' ' -f1-3
embla generate all --prompt "(a brown one) doesn't" --tokens 0
# a text for each document
embla train text.txt --words 12 --documents -o lines "${shape[@]}" --steps 2 --sample-every 2 -q |
    grep -c 'sample after step 2'
grep -E 'bos|eos' lines/config.json
# rows of words while they learn
embla train text.txt --words 12 -o watch "${shape[@]}" --steps 2 --watch 'fox,<unk>' --every 2 |
    grep -cE '^(fox|<unk>) '
try train text.txt --words 12 -o no "${shape[@]}" --watch zebra
# resumed, the same; another number of words, and another text, are another training
embla train text.txt --words 12 -o half "${shape[@]}" --steps 60 --save-every 30 -q >/dev/null
rm half/checkpoints/step-0000000060.safetensors
embla train --resume half --threads 2 -q >/dev/null
cmp words/model.safetensors half/model.safetensors && echo "the same"
try train --resume half --words 13
sed -i 's/fox/cat/' text.txt
try train --resume half --steps 70 | sed "s|$PWD/||"
# a word that has no row: the model reads the unknown token, and says so
embla predict words "the zebra (a zebra)" --top 1 2>&1 >/dev/null
embla predict words "the zebra" --top 1 -q 2>&1 >/dev/null
embla predict words "the <unk>" --top 1 2>&1 >/dev/null
embla generate words --prompt "the zebra" --tokens 1 2>&1 >/dev/null
