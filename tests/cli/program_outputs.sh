# SPDX-License-Identifier: Apache-2.0
# What each verb does to a file that is there already, for every file that it writes. The table has
# a line for each verb and file: the exit code, and what became of the file, without and with
# --force. The user wrote what is "mine". The program wrote what is "ours"; "shared" has the words of
# another file too. A "link" leads nowhere. What we did not write is replaced only if it is the named
# output and --force is given. A second table: no form of the name of an input may be the output.
. "$SOURCE/tests/cli/module.sh"
cp "$SOURCE"/demo/{words.vec,names.txt,analogies.txt} .
printf "cat dog 5\n" >pairs.txt
cp words.vec drawing.svg # a table whose name ends like that of a picture
head -n 300 "$SOURCE/demo/village.txt" >village.txt
cp -r "$SOURCE/demo/names" "$SOURCE/demo/village" .
embla fit words.vec village.txt -o words.fit -q
embla convert words.vec table.safetensors >/dev/null
cd ..
mv work inputs
small=(--dim 4 --epochs 1 -q)
step=(--preset microgpt --steps 1 -q)

fresh() { cd .. && rm -rf box && cp -r inputs box && cd box || exit; }
mkdir box && cd box || exit

# Prints what became of the file: its bytes are compared with the copy in ../before.
fate() { # FILE EXIT
    if [[ ! -e $1 && ! -L $1 ]]; then
        echo "$([[ $owner == ours ]] && echo removed || echo LOST), $2"
    elif [[ -L $1 || -d $1 ]] || cmp -s "$1" ../before; then
        echo "kept, $2"
    else
        echo "replaced, $2"
    fi
}

# The verb and its files, the file that exists and how it came to be, and both results.
row() { # NAME OWNER FILE COMMAND...
    local name=$1 owner=$2 file=$3 cells=() force
    shift 3
    for force in no yes; do
        if [[ $force == yes ]] && ! embla help "$1" | grep -q -- '--force'; then
            cells+=("no --force")
            continue
        fi
        fresh
        mkdir -p "$(dirname "$file")"
        case $owner in
            mine) echo mine >"$file" ;;
            link) ln -s nowhere "$file" ;;
            shared) embla convert words.vec "${file%.vocab.txt}.npy" >/dev/null ;;
            ours) make_ours "$file" ;;
        esac
        [[ -f $file ]] && cp "$file" ../before
        if [[ $force == yes ]]; then set -- "$@" --force; fi
        embla "$@" >../said 2>&1 </dev/null
        cells+=("$(fate "$file" $?)")
        cmp -s words.vec ../inputs/words.vec && cmp -s village.txt ../inputs/village.txt ||
            echo "AN INPUT HAS CHANGED"
        # no temporary file stays
        find . ../inputs -regex '.*\(\.tmp\.\|\.[a-zA-Z0-9][a-zA-Z0-9][a-zA-Z0-9][a-zA-Z0-9][a-zA-Z0-9][a-zA-Z0-9]$\).*'
    done
    printf '%-22s %-7s %-42s %-14s %s\n' "$name" "$owner" "$file" "${cells[@]}"
}

# A file of ours, by the end of its name.
make_ours() { # FILE
    case $1 in
        *.vocab.txt)
            embla convert words.vec "${1%.vocab.txt}.npy" >/dev/null
            rm "${1%.vocab.txt}.npy"
            ;;
        *.state) # an unfinished training
            embla words village.txt -o "${1%.state}" --dim 4 --epochs 100000 -q &
            while [[ ! -s $1 ]]; do sleep 0.01; done
            kill -KILL $!
            wait $! 2>/dev/null
            ;;
        *.svg) embla words village.txt -o other.vec "${small[@]}" --plot "$1" ;;
        *.embla) # of another corpus
            tail -n 100 village.txt >other.txt
            embla search words.vec other.txt cat --index "$1" -q >/dev/null
            ;;
    esac
}

printf '%-22s %-7s %-42s %-14s %s\n' verb whose 'file that exists' without 'with --force'
row convert mine o.safetensors convert words.vec o.safetensors -q
row convert mine o.vocab.txt convert words.vec o.safetensors -q
row convert ours o.vocab.txt convert village o.safetensors -q
row convert shared o.vocab.txt convert village o.safetensors -q
row new mine o.npy new -o o.npy --rows 4 --dim 4 -q
row new mine o.vocab.txt new -o o.npy --dim 4 --words names.txt -q
row new ours o.vocab.txt new -o o.npy --dim 4 --words names.txt -q
row words mine o.safetensors words village.txt -o o.safetensors "${small[@]}"
row words mine o.vocab.txt words village.txt -o o.safetensors "${small[@]}"
row words ours o.vocab.txt words village.txt -o o.safetensors "${small[@]}"
row words shared o.vocab.txt words village.txt -o o.safetensors "${small[@]}"
row words link o.vocab.txt words village.txt -o o.safetensors "${small[@]}"
row words mine o.safetensors.state words village.txt -o o.safetensors "${small[@]}"
row words ours o.safetensors.state words village.txt -o o.safetensors "${small[@]}"
row 'words (npy)' mine o.vocab.txt words village.txt -o o.npy "${small[@]}"
row 'words (npy)' ours o.vocab.txt words village.txt -o o.npy "${small[@]}"
row 'words (vec)' mine y.vec words village.txt -o y.vec "${small[@]}"
row 'words (vec)' mine y.vec.state words village.txt -o y.vec "${small[@]}"
row 'words (vec)' mine y.vec.part.safetensors words village.txt -o y.vec "${small[@]}"
row 'words (vec)' mine y.vec.part.vocab.txt words village.txt -o y.vec "${small[@]}"
row 'words --plot' mine p.svg words village.txt -o y.vec "${small[@]}" --plot p.svg
row 'words --plot' ours p.svg words names.txt -o y.vec --min-count 1 "${small[@]}" --plot p.svg
row 'words --plot' mine p.svg.part words village.txt -o y.vec "${small[@]}" --plot p.svg
row train mine m/config.json train names.txt -o m "${step[@]}"
row train mine m/tokenizer.json train names.txt -o m "${step[@]}"
row train mine m/model.safetensors train names.txt -o m "${step[@]}"
row train mine m/loss.csv train names.txt -o m "${step[@]}"
row train mine m/best/model.safetensors train names.txt -o m "${step[@]}" --validation 0.1
row train mine m/best/config.json train names.txt -o m "${step[@]}" --validation 0.1
row train mine m/checkpoints/step-0000000000.safetensors train names.txt -o m "${step[@]}" --keep 1
row train link m/config.json train names.txt -o m "${step[@]}"
row train mine m/notes.txt train names.txt -o m "${step[@]}"
row 'train --plot' mine p.svg train names.txt -o m "${step[@]}" --plot p.svg
row 'train --plot' ours p.svg train names.txt -o m "${step[@]}" --plot p.svg
row 'train --plot' mine p.svg.part train names.txt -o m "${step[@]}" --plot p.svg
row 'train --film' mine f.html train names.txt -o m "${step[@]}" --film f.html
row 'train --film' link f.html train names.txt -o m "${step[@]}" --film f.html
row 'words --film' mine f.html words village.txt -o w.vec "${small[@]}" --film f.html
row 'train --ngram-shared' mine g.npy train names.txt -o m "${step[@]}" --ngram-rows 64 --ngram-shared g.npy
row fit mine o.fit fit words.vec village.txt -o o.fit -q
row tokenizer mine o.json tokenizer village.txt -o o.json --size 300 -q
row 'tokens --compile' mine o.bin tokens names --compile o.bin
row pack mine o.safetensors pack village o.safetensors -q
row trace mine o.npy trace village -o o.npy t h e -q
row lookup mine o.npy lookup words.vec cat --format npy -o o.npy
row embed mine o.npy embed names emma --format npy -o o.npy
row encode mine o.npy encode words.vec 'a cat' --format npy -o o.npy
row map mine o.svg map words.vec -o o.svg -q
row map mine o.html map words.vec -o o.html -q
row play mine o.html play words.vec -o o.html -q
# Without Cairo and Pango a PNG picture is refused, and the file must stay in both cases.
embla map words.vec -o try.png -q 2>&1 | grep -q 'write .svg or .html' && no_png='/kept, 1  *kept, 1$/s/kept, 1$/replaced, 0/'
row map mine o.png map words.vec -o o.png -q | sed "${no_png-}"
row 'health --plot' mine o.svg health words.vec --plot o.svg -q
row 'spectrum --plot' mine o.svg spectrum words.vec --plot o.svg -q
row search mine village.txt.embla search words.vec village.txt cat -q
row search ours village.txt.embla search words.vec village.txt cat -q
row search link village.txt.embla search words.vec village.txt cat -q
row 'search --fit' ours village.txt.embla search words.vec village.txt cat --fit words.fit -q
row 'search --fit' mine village.txt.words.fit.embla search words.vec village.txt cat --fit words.fit -q
row 'search --index' mine o.idx search words.vec village.txt cat --index o.idx -q
row 'warm --shared' mine sh/x warm village --shared --folder sh --name x -q
row demo mine d demo -o d -q
row demo mine d/words.vec demo -o d -q

# ---- an input as output ----

# With --force, or without it if the verb has none: is the input still there, bit for bit? @ in the
# command is the output: the input's path, the same with ./, a symbolic link and a hard link to it.
same() { # INPUT COMMAND...
    local input=$1 cells=() form out end
    shift
    end=${input##*.}
    local force=()
    embla help "$1" | grep -q -- '--force' && force=(--force)
    for form in plain dot symbolic hard; do
        fresh
        case $form in
            plain) out=$input ;;
            dot) out=./$input ;;
            symbolic) out=link.$end && ln -s "$input" "$out" ;;
            hard) out=hard.$end && ln "$input" "$out" ;;
        esac
        embla "${@//@/$out}" "${force[@]}" >../said 2>&1 </dev/null
        code=$?
        if cmp -s "$input" "../inputs/$input"; then cells+=("kept, $code"); else cells+=("LOST, $code"); fi
    done
    printf '%-26s %-42.42s %-8s %-8s %-8s %s\n' "$input" "${*:1:6}" "${cells[@]}"
}
echo
printf '%-26s %-42.42s %-8s %-8s %-8s %s\n' input 'the output @ is the input' plain ./ symbolic hard
same table.safetensors convert table.safetensors @
same table.vocab.txt lookup table.safetensors cat -o @
same names.txt new -o @ --to npy --dim 4 --words names.txt
same village.txt words village.txt -o @ "${small[@]}"
same analogies.txt words village.txt --eval pairs.txt,analogies.txt -o @ "${small[@]}"
same drawing.svg words drawing.svg --plot @ -o o.vec --min-count 1 "${small[@]}"
same drawing.svg train drawing.svg --plot @ -o m "${step[@]}"
same words.vec fit words.vec village.txt -o @
same village.txt fit words.vec village.txt -o @
same village.txt tokenizer village.txt -o @ --size 300
same names/tokenizer.json tokens names --compile @
same village/model.safetensors pack village @
same village/config.json pack village @
same village/model.safetensors trace village -o @ t h e
same words.vec lookup words.vec cat -o @
same names/model.safetensors embed names emma -o @
same words.vec encode words.vec cat -o @
same words.fit encode words.vec cat --fit words.fit -o @
same village.txt encode words.vec -f village.txt -o @
same drawing.svg map drawing.svg -o @
same words.vec health words.vec --plot @
same words.vec spectrum words.vec --plot @
same village.txt search words.vec village.txt cat --index @
same words.vec search words.vec village.txt cat --index @
same words.fit search words.vec village.txt cat --fit words.fit --index @

# The input is standard input: a file as well.
fresh
try encode words.vec -o village.txt --force <village.txt
try words - -o village.txt --force <village.txt
cmp village.txt ../inputs/village.txt && echo "the same"

# ---- an input beside the output ----
echo
beside() { # INPUT COMMAND...
    local input=$1 code
    shift
    for force in '' --force; do
        fresh
        cp village.txt "$input"
        embla "$@" $force >../said 2>&1 </dev/null
        code=$?
        if cmp -s "$input" village.txt; then echo "kept, $code: $*" $force; else echo "LOST, $code: $*" $force; fi
        sed 's/^/    /' ../said
    done
}
beside in.vocab.txt words in.vocab.txt -o in.safetensors "${small[@]}"
beside in.vocab.txt words in.vocab.txt -o in.npy "${small[@]}"
beside in.vec.state words in.vec.state -o in.vec "${small[@]}"
beside in.vec.part.vocab.txt words in.vec.part.vocab.txt -o in.vec "${small[@]}"
beside in.vocab.txt convert words.vec in.npy -q

# ---- what the messages say ----
echo
fresh
echo mine >o.vocab.txt
try words village.txt -o o.npy "${small[@]}"
echo mine >y.vec.state
try words village.txt -o y.vec "${small[@]}" --force
echo '<svg/>' >p.svg
try train names.txt -o m "${step[@]}" --plot p.svg
mkdir -p m/best && echo mine >m/best/notes.txt
try train names.txt -o m "${step[@]}"
# A file that appears during the training stays, and so does what was learned.
late=(words village.txt -o late.safetensors --dim 4 --epochs 1000 -q)
embla "${late[@]}" 2>../said &
until [[ -s late.safetensors.state ]]; do sleep 0.01; done
echo mine >late.safetensors
wait $!
echo "exit $?"
cat ../said late.safetensors
try "${late[@]}" --resume
try "${late[@]}" --resume --force
ls late.*
mkfifo pipe.json
try tokenizer village.txt -o pipe.json --size 300 --force
embla train names.txt -o t "${step[@]}" >/dev/null
echo 'my,own,columns' >t/loss.csv
try train --resume t --steps 2 -q
cat t/loss.csv
