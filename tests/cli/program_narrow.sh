# SPDX-License-Identifier: Apache-2.0
# On a terminal of 60 columns no line is broken; at 40 lookup still draws numbers.
command -v script >/dev/null || { echo "skipped: script is not here"; exit 77; }
cp -r "$SOURCE"/demo/{words.vec,analogies.txt,village,village.txt,names,names.txt} .
on_terminal() { # COLUMNS COMMAND: what it prints, without colours
    script -qec "stty cols $1 rows 50; $2" /dev/null </dev/null | tr -d '\r' | sed 's/\x1b\[[0-9;?]*[A-Za-z]//g'
}
for command in "help near" "help train" "cost gpt2" "cost andrea-120m gpt2 llama-3.1-8b" "eval words.vec analogies.txt" \
    "health words.vec" "info village" "info village --all" "doctor village" "lookup words.vec king queen" \
    "near words.vec cat" "compare words.vec cat dog" "compare words.vec cat dog tuesday king" \
    "compare words.vec cat dog --with words.vec" "embed names e m m a" "embed words.vec cat dog --positions sinusoidal" \
    "new -o t.npy --rows 100 --dim 8 --force" "analogy words.vec king - man + woman" "spectrum words.vec" "rows village t h e" \
    "bench --list" "words village.txt -o z.vec --force --watch cat,dog,king,queen 2>/dev/null" "generate names --count 2"; do
    on_terminal 60 "embla $command" >screen
    [[ -s screen ]] || echo "nothing: $command"
    LC_ALL=C.UTF-8 awk -v c="$command" 'length > 60 { print c ": " $0 }' screen
done
for command in "cost gpt2" "cost llama-3.1-405b" "bench --list" ""; do # without a terminal: 80 columns
    embla $command 2>&1 | awk -v c="$command" 'length > 80 { print c ": " $0 }'
done
on_terminal 60 "embla cost gpt2" | sed -n '/^token table/,/^positions/p'
on_terminal 40 "embla lookup words.vec king" | grep -c -- ' 0.14 ..'
