# SPDX-License-Identifier: Apache-2.0
# On a terminal of 60 columns no line is broken; at 40 lookup still draws numbers.
command -v script >/dev/null || { echo "skipped: script is not here"; exit 77; }
export EMBLA_DEMO=$SOURCE/demo
cp -r "$SOURCE"/demo/{words.vec,analogies.txt,village,village.txt,names,names.txt} .
on_terminal() { # COLUMNS COMMAND: what it prints, without colours
    script -qec "stty cols $1 rows 50; $2" /dev/null </dev/null | tr -d '\r' | sed 's/\x1b\[[0-9;?]*[A-Za-z]//g'
}
for command in "help near" "help train" "cost gpt2" "cost andrea-120m gpt2 llama-3.1-8b" "eval words.vec analogies.txt" \
    "health words.vec" "info village" "info village --all" "doctor village" "lookup words.vec king queen" \
    "near words.vec cat" "compare words.vec cat dog" "compare words.vec cat dog tuesday king" \
    "compare words.vec cat dog --with words.vec" "embed names e m m a" "embed words.vec cat dog --positions sinusoidal" \
    "new -o t.npy --rows 100 --dim 8 --force" "analogy words.vec king - man + woman" "spectrum words.vec" "rows village t h e" \
    "bench --list" "words village.txt -o z.vec --force --watch cat,dog,king,queen 2>/dev/null" "generate names --count 2" \
    "predict names emm --token a --attention" "predict names annabellaann -k 30 --attention" "demo" "demo --quiz" "help" \
    "train names.txt --preset microgpt --steps 50 --try positions=learned,none --try tied=no,yes --seeds 2 2>/dev/null" \
    "convert words.vec w.gguf --force"; do
    on_terminal 60 "embla $command" >screen
    [[ -s screen ]] || echo "nothing: $command"
    LC_ALL=C.UTF-8 awk -v c="$command" 'length > 60 { print c ": " $0 }' screen
done
for command in "cost gpt2" "cost llama-3.1-405b" "bench --list" ""; do # without a terminal: 80 columns
    embla $command 2>&1 | awk -v c="$command" 'length > 80 { print c ": " $0 }'
done
on_terminal 60 "embla cost gpt2" | sed '1,/^$/d'
# A line that is redrawn has room for ^C, ends with the time left, and ^C leaves no trace.
interrupt() { # FILE COMMAND: ^C when FILE is there
    (until [[ -e $1 ]]; do sleep 0.05; done; sleep 0.5; printf '\003'; sleep 1) |
        script -qec "stty cols 60 rows 50; $2" /dev/null | tr '\r' '\n' | sed 's/\x1b\[[0-9;?]*[A-Za-z]//g' >screen
    awk -v c="$2" 'length > 60 || (/ of .*  / && length > 59) { print c ": too long: " $0 }' screen
    grep -E '^(epoch|step) ' screen | grep -vE '(left|words/s|tokens/s)(\^C)?$'
    grep -oE '(\^C)?embla: interrupted' screen
}
interrupt w.vec.state "embla words village.txt -o w.vec --epochs 400000 --watch cat,dog,king,queen"
interrupt m/loss.csv "embla train village.txt -o m --preset microgpt --steps 400000000 --validation 0.1"
# Of many epochs a terminal shows a tenth.
on_terminal 60 "embla words village.txt -o many.vec --dim 4 --epochs 40" | grep -c words/s$
on_terminal 40 "embla lookup words.vec king" | grep -c -- ' 0.14 ..'
