# SPDX-License-Identifier: Apache-2.0
# How vocabularies write text, and how prompts are cut by them.
. "$SOURCE/tests/cli/generate_model.sh"
export LC_ALL=C.UTF-8

echo "-- no words: numbers"
llama numbers 9 64
try generate numbers --tokens 5
try generate numbers --tokens 5 --prompt 3,1,4
embla generate numbers --tokens 5 --prompt 3,1,4 --json --count 2 | timeless

echo "-- characters"
llama letters 6 64
vocab letters a b é '\n' '▁' ' '
try generate letters --tokens 9 --prompt 'ab é'
embla generate letters --tokens 3 --prompt 'ab é' --json | timeless
try generate letters --tokens 9 --count 2
try generate letters --prompt abc
try generate letters --prompt $'a\xff'

echo "-- the lowest token first, of the same the leftmost; words past the model's tokens are none"
llama joins 6 64
vocab joins a b c bc ab aa d
embla generate joins --prompt abc --tokens 0 --json | timeless
embla generate joins --prompt aaabcab --tokens 0 --json | timeless
try generate joins --prompt abcd

echo "-- characters of documents: BOS before them, and each on a line"
llama names 5 8 '"bos_token_id":4,"eos_token_id":4,'
vocab names a b c d '<|4|>'
try generate names --count 6 --seed 5
embla generate names --prompt ab --count 3 --json | timeless
try generate names --prompt aaaabbb
try generate names --prompt aaaabbbb

echo "-- pieces: the mark of a space, bytes, joined by the lowest token"
llama pieces 14 64 '"bos_token_id":1,"eos_token_id":[2,13],'
vocab pieces '<unk>' '<s>' '</s>' '<0x0A>' '<0xC3>' '<0xA9>' '▁t' 'he' '▁the' '▁' t h e '<x>'
embla generate pieces --prompt 'the he' --tokens 0 --json | timeless
embla generate pieces --prompt $'thé\n' --tokens 0 --json | timeless
try generate pieces --prompt 'the he' --tokens 6 --seed 3
try generate pieces --tokens 8 --seed 1
try generate pieces --prompt 'thx'

echo "-- GPT-2's letters for bytes: whole characters alone are printed"
letters=()
for b in {33..126} {161..172} {174..255}; do letters+=("$b"); done
n=256
declare -A of
for b in "${letters[@]}"; do of[$b]=$b; done
for b in {0..255}; do [[ ${of[$b]-} ]] || of[$b]=$((n++)); done
words=()
for b in {0..255}; do
    printf -v hex '%04x' "${of[$b]}"
    words+=("\\u$hex")
done
llama bytes 259 64
vocab bytes "${words[@]}" '\u0120t' '\u0120th' '<|endoftext|>'
embla generate bytes --prompt 'é the' --tokens 0 --json | timeless
try generate bytes --prompt 'é the' --tokens 0
embla generate bytes --tokens 30 --seed 1 | iconv -f utf-8 -t utf-8 | tr -d '\n' | wc -m
