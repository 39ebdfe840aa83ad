# SPDX-License-Identifier: Apache-2.0
# Every operand and option that names a file to read: what a compressed file and - give, beside the
# plain file. "same" means the same output and the same exit code. One line each; the temporary
# files are gone afterwards.
. "$SOURCE/tests/cli/models.sh"
export TMPDIR=$PWD/temporary
mkdir "$TMPDIR"
cp "$SOURCE"/demo/{words.vec,analogies.txt,names.txt} .
cp -r "$SOURCE/demo/names" .
head -400 "$SOURCE/demo/village.txt" >text.txt
make_model giant g
printf 'cat\ndog\n' >list.txt
printf 'the 40\ncat 3\ndog 2\n' >counts.txt
printf '3.5\tthe cat sleeps\tthe dog sleeps\n1\ta cat\tthe king sings\n4\tthe king\tthe queen\n' >pairs.tsv
printf '1 2 3 1 2 5\n' >numbers.txt
embla tokenizer text.txt -o cut.json --size 300 --special '<|endoftext|>' -q
embla fit words.vec text.txt -o words.fit -q
embla trace g 1 2 3 1 2 -o trace.npy -q
embla pack g pack.safetensors -q --json >/dev/null
embla new -o table.npy --rows 8 --dim 4 -q --json >/dev/null

# result INPUT WORD..: output, files and exit code of the command, where @ is INPUT, and % is @INPUT
# or -. Names of the input, times and sizes become the same; so do spaces and NULs.
result() {
    local name=$1 at=@
    shift
    set -- "${@//@/$name}"
    [[ $name != - ]] || at=
    rm -rf out out.*
    embla "${@//%/$at$name}" >stdout 2>stderr
    echo "exit $?" >code
    cat stdout out out.[a-z]* out/tokenizer.json code 2>/dev/null | tr '\0\n' '  ' |
        sed -E -e 's#([ "])([a-z]+/)?(standard input|in\.[a-z]+(\.gz)?|-)([ ":,;])#\1@\5#g' -e 's/[0-9.]+ ([mu]?s|k?B)\b/T/g' \
            -e 's/"(seconds|words_per_second)":[0-9.e+-]+//g' -e 's/[0-9.,]+ (steps|tokens) (and|per)/N/g' | tr -s ' '
}

# row FILE WORD..: one line of the table
row() {
    local file=$1 plain cells='' input=in.${1##*.} cell
    [[ $1 != */* ]] || input=${1%/*}/$input
    shift
    cp "$file" "$input"
    gzip -kf "$input"
    plain=$(result "$input" "$@")
    [[ $plain == *"exit 0 " ]] || { echo "$* fails with the plain file:"; cat stderr; }
    for cell in "$input.gz" -; do
        if [[ $(result "$cell" "$@" <"$input") == "$plain" ]]; then
            cells+=' | same'
        elif [[ -s stderr ]]; then
            cells+=" | $(sed 's/^embla: //' stderr)"
        else
            cells+=' | DIFFERENT'
            diff <(tr ' ' '\n' <<<"$(result "$cell" "$@" <"$input")") <(tr ' ' '\n' <<<"$plain") | head -5
        fi
    done
    rm "$input" "$input.gz"
    echo "embla $*$cells"
}

echo "command, where @ is a file | the file compressed | standard input"
row words.vec info @
row words.vec doctor @ -q
row words.vec lookup @ cat --format text
row names/model.safetensors embed @ a --format text
row words.vec near @ cat --top 2
row names/model.safetensors near @ emma --top 2
row list.txt near words.vec cat --top 2 --exclude %
row cut.json near table.npy '#1' --top 2 --tokenizer @
row words.vec analogy @ king - man + woman --top 2
row words.vec compare @ cat dog
row words.vec compare words.vec cat dog --with @
row words.vec doesnt-match @ cat dog tuesday
row words.vec eval @ analogies.txt
row analogies.txt eval words.vec @
row words.vec eval --sentences @ pairs.tsv
row pairs.tsv eval --sentences words.vec @
row words.fit eval --sentences words.vec pairs.tsv --fit @
row words.vec health @
row words.vec spectrum @ --top 2
row words.vec diff @ words.vec
row words.vec diff words.vec @
row words.vec map @ -o out.svg --title x -q
row list.txt map words.vec --words % -o out.svg -q
row pack.safetensors rows @ 1 2 --values 2
row pack.safetensors trace @ 1 2 -o out.npy -q
row trace.npy trace g --replay @
row trace.npy pack g out.safetensors --frequent 1 --trace @ -q
row pack.safetensors verify @
row numbers.txt plan --rows 8 --dim 4 --tokens 2 --per-token 1 --trace @ --ranks 2
row text.txt words @ -o out.vec --dim 8 --epochs 1 --min-count 2 -q
row analogies.txt words text.txt -o out.vec --dim 8 --epochs 1 --min-count 2 --eval @ --json
row cut.json tokens @ 'the cat sleeps'
row cut.json tokens @ --compile out
row cut.json tokens cut.json 'the cat' --compare @
row text.txt tokens cut.json -f @
row text.txt tokenizer @ -o out.json --size 300 -q
row words.vec encode @ 'the cat sleeps' --format text
row text.txt encode words.vec -f @ --format tsv
row words.fit encode words.vec 'the cat' --fit @ --format text
row text.txt fit words.vec @ -o out.fit
row counts.txt fit words.vec text.txt --counts @ -o out.fit
row words.vec search @ text.txt 'a cat sleeps' --top 2 --index out.embla
row text.txt search words.vec @ 'a cat sleeps' --top 2 --index out.embla
row list.txt search words.vec text.txt -f @ --top 2 --index out.embla
row names.txt train @ --preset microgpt -o out --steps 2 -q
row cut.json train text.txt --preset microgpt -o out --steps 2 -q --tokenizer @
row names/model.safetensors train names.txt --documents -o out --steps 2 -q --from @
row names/model.safetensors generate @ --tokens 4
row list.txt new -o out.npy --words @ --dim 4 -q
row words.vec convert @ out.npy -q
ls "$TMPDIR" | wc -l

# the other programs; a file beside its tensor; a compressed standard input
gzip -k words.vec
for program in xz zstd bzip2; do
    if command -v $program >/dev/null; then $program -c text.txt >packed; else gzip -c text.txt >packed; fi
    cmp <(embla tokens cut.json -f packed) <(embla tokens cut.json -f text.txt) && echo "$program: same"
done
try info words.vec.gz::nothing
gzip -c text.txt | try tokens cut.json -f -
gzip -c words.vec | embla near - cat --top 1
try near words.vec.gz "the cat" cat --top 1 -q
gzip words.vec -c | head -c 3000 >cut.vec.gz
try near cut.vec.gz cat 2>&1 | grep -v '^$' | sed 's/^gzip: .*/(gzip)/'
printf 'cat 1 2\ndog 1\n' | gzip >short.vec.gz
try near short.vec.gz cat
ls "$TMPDIR" | wc -l

# a training that continues decompresses its text again; a signal removes the temporary files
gzip -c names.txt >names.gz
embla train names.gz --preset microgpt -o run --steps 2 -q >/dev/null && try train --resume run --steps 4 -q | grep -o 'written .*'
mkfifo in
embla near words.vec.gz - --top 1 <in >answer &
exec 3>in
echo cat >&3
until [[ -s answer ]]; do sleep 0.1; done
ls "$TMPDIR" | wc -l
kill -TERM $!
wait $!
echo "exit $?"
exec 3>&-
ls "$TMPDIR" | wc -l

# standard input is read once, and not where a name is needed
try lookup words.vec - -
try lookup words.vec - --ids -
try encode - -f -
try search words.vec - cat
try train - -o out
