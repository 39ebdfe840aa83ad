# SPDX-License-Identifier: Apache-2.0
# Every verb that reads words, tokens or texts: - is standard input, one line an item, and an unknown
# word is skipped with a note and exit code 3, or refused with a sentence. One line each.
. "$SOURCE/tests/cli/models.sh"
cp "$SOURCE"/demo/words.vec .
cp -r "$SOURCE/demo/names" .
head -400 "$SOURCE/demo/village.txt" >text.txt
make_model giant g
rm -f out.*

# row LINES WORD.. -- ITEM..: with ITEMs as operands, then as lines of -
row() {
    local command=() items=() at=command word plain code
    for word; do
        if [[ $word == -- ]]; then at=items; elif [[ $at == items ]]; then items+=("$word"); else command+=("$word"); fi
    done
    plain=$(embla "${command[@]}" "${items[@]}" 2>stderr; echo "exit $?")
    if [[ $(printf '%s\n' "${items[@]}" | embla "${command[@]}" - 2>stderr; echo "exit $?") == "$plain" ]]; then
        echo "embla ${command[*]} - | same as operands"
    else
        echo "embla ${command[*]} - | $(sed 's/^embla: //' stderr)"
    fi
}
row lookup words.vec --format text -- cat dog
row lookup words.vec --format text --ids 3 -- cat '#5'
row embed names --format text -- a b
row near words.vec --top 2 --json -- cat dog
row near words.vec --top 2 -- cat dog
row analogy words.vec --top 2 -- 'king - man + woman'
row compare words.vec -- cat dog king
row doesnt-match words.vec -- cat dog tuesday
row rows g -- 1 2 3
row trace g -o out.npy --force -q -- 1 2 3
row tokens names/tokenizer.json -- emma anna
row tokens names/tokenizer.json --decode -- 1
row encode words.vec --format text -- 'the cat' 'the dog'
row search words.vec text.txt --top 1 --index out.embla -q -- 'the cat' 'the dog'
row generate names --tokens 3 -- emma
row predict names --top 2 -- emma anna

echo
# unknown: the command, its exit code, lines of stdout, message
unknown() {
    embla "$@" >stdout 2>stderr
    echo "embla $* | exit $? | $(grep -c . stdout) lines | $(sed -e 's/^embla: //' -e 's/: it is not.*/: ../' -e 's/: they are not.*/: ../' stderr | tr '\n' ' ')"
}
unknown lookup words.vec cat xyzzy dog --format text
unknown lookup words.vec xyzzy --format text
unknown lookup words.vec cat xyzzy --format npy -o out.npy --force
unknown lookup words.vec cat xyzzy --format raw -o out.raw
unknown embed names a '~' b --format text
unknown near words.vec cat xyzzy dog --top 1
unknown near words.vec xyzzy
unknown near words.vec cat --exclude dog,xyzzy --top 1
unknown near words.vec cat --exclude xyzzy --top 1
unknown analogy words.vec king - xyzzy + woman
unknown compare words.vec cat xyzzy dog
unknown compare words.vec cat xyzzy
unknown doesnt-match words.vec cat dog xyzzy tuesday
unknown doesnt-match words.vec cat dog xyzzy
unknown map words.vec --words cat,xyzzy -o out.svg -q
unknown map words.vec --words xyzzy -o out.svg --force -q
unknown map words.vec --arrows king:queen,man:xyzzy -o out.svg --force -q
unknown words text.txt -o out.vec --watch cat,xyzzy --dim 8 --epochs 1 -q
unknown rows g 1 xyzzy
unknown encode words.vec xyzzy --dim 2 --format text
unknown search words.vec text.txt 'the xyzzy' --top 1 --index out.embla -q
unknown tokens names/tokenizer.json 'em?ma'
printf 'cat\nxyzzy\ndog\n' >three
unknown near words.vec - --top 1 <three
unknown near words.vec - --top 1 --json <three
unknown lookup words.vec - --format text <three
unknown compare words.vec - --format text <three
printf 'xyzzy\n\nplugh\n' | unknown near words.vec -
printf 'cat\n\ndog\n' | unknown near words.vec - --top 1
unknown near words.vec cat --exclude @three --top 1

# lines of analogies; all words of one list on one line
printf 'king - man + woman\nking - xyzzy + woman\nman king woman\n' | try analogy words.vec - --top 1
printf 'king - man + woman\n' | try analogy words.vec - --top 1 --json
printf 'king man\n' | try analogy words.vec - --top 1
printf 'xyzzy\n' | try analogy words.vec -
try analogy words.vec - </dev/null
printf 'cat dog tuesday\n' | try doesnt-match words.vec - --top 1
printf 'cat dog tuesday\ncat dog king\n' | try doesnt-match words.vec -
printf 'cat\ndog king\n' | try compare words.vec -
printf 'cat dog\nking\n' | try compare words.vec -
# a text that is only -, a second prompt
embla tokenizer text.txt -o cut.json --size 300 -q
printf -- "-\n" | try tokens cut.json - --format pieces
printf 'a\nb\n' | try generate names - --tokens 2
try generate names - </dev/null
printf 'a\n' | try tokens names/tokenizer.json a --pair -
