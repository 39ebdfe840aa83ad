# SPDX-License-Identifier: Apache-2.0
# The word that does not match the others, and rows that near leaves out.
words=$SOURCE/demo/words.vec
embla doesnt-match "$words" cat dog tuesday horse --format table
embla doesnt-match "$words" king bread queen prince
embla doesnt-match "$words" king bread queen prince --top 1 --json
printf 'red\nblue\ncow\n' | embla doesnt-match "$words" - --top 1
embla doesnt-match "$words" cat dog || echo "exit $?"
embla doesnt-match "$words" || echo "exit $?"
embla doesnt-match "$words" cat dog tusday || echo "exit $?"
embla doesnt_match "$words" cat dog cow || echo "exit $?"
embla doesnt-match "$words" cat dog tuesday --rows 2 || echo "exit $?"
printf '2 2\na 1 0\nb 0 1\n' >two.vec
embla doesnt-match two.vec a a a b
embla near "$words" cat --top 3
embla near "$words" cat --top 3 --exclude wolf,goat
embla near "$words" cat dog --top 1 --exclude wolf,goat,cow,pig,bear
printf 'wolf\n' >list
embla near "$words" cat --top 1 --exclude @list
echo cat | embla near "$words" - --top 1 --exclude wolf
embla near "$words" cat --exclude wolff || echo "exit $?"
embla near "$words" cat --exclude @missing || echo "exit $?"
