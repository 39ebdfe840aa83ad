# SPDX-License-Identifier: Apache-2.0
# The quiz: printed, as JSON, and asked on a terminal; every command of an answer runs in the demo.
command -v script >/dev/null || { echo "skipped: script is not here"; exit 77; }
export EMBLA_DEMO=$SOURCE/demo
embla demo --quiz
embla demo --quiz | awk 'length > 80'
embla demo --question 4 --json
try demo --question 21
try demo --question 0
echo "-- the commands"
embla demo -o demo -q
embla demo --quiz --json | sed 's/{"number"/\n&/g' | sed -n 's/^{"number":\([0-9]*\).*"commands":\[\(.*\)\],"writes".*/\1 \2/p' |
    sed 's/^\([0-9]*\) "/\1|/; s/"$//; s/","/\n|/g' |
    while IFS='|' read -r number command; do
        [[ -n $number ]] && question=$number
        (cd demo && bash -c "$command" >/dev/null 2>&1) </dev/null
        echo "$question: exit $?: $command"
    done
echo "-- on a terminal"
mkdir tmp
export TMPDIR=$PWD/tmp
on_terminal() { # ANSWERS ARGUMENTS COLUMNS: what it prints, without what the terminal echoes
    (sleep 0.3; printf '%b' "$1"; sleep 0.3) | script -qec "stty -echo cols ${3:-80} rows 50; embla demo $2" /dev/null |
        tr -d '\r' | sed 's/\x1b\[[0-9;?]*[A-Za-z]//g'
}
on_terminal 'b?\n12x\n0\n' "--question 3" >screen
grep -E "is not|Right|No:|right" screen
grep -A 2 -F '$ embla lookup five.vec' screen | tail -n 1 | cut -c 1-40
on_terminal 'C)\n' "--question 1" | grep -E "Right|No:|right|^ *name" # not before the answer
on_terminal '\n\n128,000\n' "--question 4" | grep -E "The answer|Right|right|skipped"
on_terminal '5\n' "--question 14" | grep -E "Right|^changed|right" | cut -c 1-22
ls tmp | wc -l
on_terminal 'b\n\nc\nq\n' --quiz | grep -E "Right|No:|right" # ends early
on_terminal 'queen\nb\n' "--question 17" | grep -E "is not|Right|right" # a word with q does not end it
on_terminal 'b\n' "--question 8" 60 | grep -A 1 -F '$ embla train' # a command can be copied
on_terminal 'b\n' "--question 8" | grep -F '  ends the text' | sort -u | wc -l # both continue alike
