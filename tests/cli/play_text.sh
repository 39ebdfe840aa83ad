# SPDX-License-Identifier: Apache-2.0
# A text is trained on first: by words or characters, with the bits of the command that is printed.
. "$SOURCE/tests/cli/module.sh"
head -n 400 "$SOURCE/demo/village.txt" >village.txt
cp "$SOURCE/demo/names.txt" .

# the same weights as the printed command
run play village.txt --steps 20 -o words.html
page words.html | grep -o '"model":.*"kind"'
page words.html | grep -o '"texts":\[{[^}]*}'
field words.html /text/village.txt | cmp - village.txt
bash -c "$(embla play village.txt --steps 20 -o other.html --json | sed 's/.*"command":"\([^"]*\)".*/\1/') -q" >/dev/null
cmp words.html other.html
field words.html /model/model.safetensors | cmp - village/model.safetensors && echo "the same weights"
field words.html /model/tokenizer.json | cmp - village/tokenizer.json

# characters, where lines are single words, and the choice of the user
embla play names.txt --steps 10 -o letters.html | tail -n 2
embla play village.txt --steps 10 --words 0 -o letters.html --force | tail -n 2
embla play names.txt --steps 10 --words 40 -o letters.html --force | tail -n 2
page letters.html | grep -o '"words":[0-9]*' | tr '\n' ' '
echo

# a name that a shell would cut
mkdir 'a folder'
cp names.txt "a folder/people's names.txt"
embla play "a folder/people's names.txt" --steps 3 -o odd.html | tail -n 2
page odd.html | grep -o '"name":[^}]*"kind"\|"path":"/text[^}]*'
# nothing stays of the training
TMPDIR=$PWD/a\ folder embla play names.txt --steps 3 -o odd.html --force -q
ls "a folder"
