# SPDX-License-Identifier: Apache-2.0
# near FILE -: each line is answered before the next one comes.
. "$SOURCE/tests/cli/models.sh"
fox
mkfifo in out
embla near fox.vec - -k 1 <in >out &
exec 3>in 4<out
for word in fox quick '#3' '\x66ox'; do
    printf '%s\n' "$word" >&3
    while read -r line <&4 && [[ -z $line ]]; do :; done
    echo "$word: $line"
done
exec 3>&- 4<&-
wait
printf 'fox\r\nquick' | try near fox.vec - -k 1
printf 'fox\nnope\nquick\n' | try near fox.vec - -k 1
printf 'fox\n\nquick\n' | try near fox.vec - -k 1
printf '' | try near fox.vec -
printf 'fox\nquick\n' | try near fox.vec - -k 1 --json
# many lines at once are one search
for i in {1..3000}; do echo fox; done | embla near fox.vec - -k 1 | grep -c jumps
