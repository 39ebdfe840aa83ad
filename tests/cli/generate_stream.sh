# SPDX-License-Identifier: Apache-2.0
# A model without an end goes on past its positions; draws are told apart by seed and text alone.
. "$SOURCE/tests/cli/generate_model.sh"
llama stream 6 8
vocab stream a b c d e f
embla generate stream --tokens 600 --temperature 2 --seed 1 | fold -w 75
echo "-- a prompt that is longer than the positions: its end counts"
embla generate stream --prompt abcdefabcdefabcdef --tokens 5 --seed 1 --json | timeless
embla generate stream --prompt cdef --tokens 5 --seed 1 --json | timeless
echo "-- greedy, and one token to choose from"
try generate stream --tokens 12 --temperature 0
try generate stream --tokens 12 --top-k 1
try generate stream --tokens 12 --top-p 0.000001
try generate stream --tokens 12 --min-p 1
echo "-- the second text is the same without a third; threads change nothing"
embla generate stream --tokens 12 --count 3 --seed 9
embla generate stream --tokens 12 --count 2 --seed 9 --threads 3
echo "-- on a terminal: the speed, on stderr"
command -v script >/dev/null || exit 0
on_terminal() { script -qec "stty cols 80; $*" /dev/null </dev/null | tr -d '\r'; }
on_terminal embla generate stream --tokens 12 | sed 's/in [0-9.]* s, [0-9,]* tok/in N s, N tok/'
on_terminal embla generate stream --tokens 12 -q
echo "-- and nothing that moves its cursor"
llama signs 4 64
vocab signs a '\u001b' '\t' '\u200b'
embla generate signs --tokens 12 | od -An -c
on_terminal embla generate signs --tokens 12 -q
