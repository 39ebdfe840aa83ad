# SPDX-License-Identifier: Apache-2.0
# The demo: where it is, its walk, a copy to work in, and what happens without its files.
export EMBLA_DEMO=$SOURCE/demo
[[ $(embla demo --folder) == "$(realpath "$SOURCE/demo")" ]] && echo "folder: found"
embla demo --json | sed 's/.*"commands":/commands: /' | tr '{' '\n' | grep -o '"command":"[^}]*",' | sed 's/,"about.*//'
embla demo </dev/null >walk || echo "walk: exit $?"
grep '^   \$ ' walk
awk 'length > 80 && !/^[0-9]+	/' walk
sed -n '/^4\./,/^5\./p' walk | grep -E '^(same|changed|   [0-9])' | sed -E 's/^( +[0-9]+ +[^ ]+).*/\1/; s/:.*//'
grep -m 1 '^1	kitten' walk | cut -f 2
grep -m 1 '^1	queen' walk | cut -f 2
grep '^the king' walk
mkdir temporary
TMPDIR=$PWD/temporary embla demo >/dev/null </dev/null
ls temporary
embla demo -o copy
ls copy | tr '\n' ' '
echo
cmp copy/words.vec "$SOURCE/demo/words.vec" && cmp copy/story/model.safetensors \
    "$SOURCE/demo/story/model.safetensors" && echo "copied"
embla lookup copy/five.vec --ids 2,3,0 --format text
embla compare copy/five.vec 0 2 --measure dot --format table
embla lookup copy/fox.vec the quick brown fox . --format text | cut -f 1,2
# a copy is used again, unless a file of it is not what it was
embla demo -o copy
embla demo -o copy --json
echo x >>copy/story/config.json
embla demo -o copy || echo "exit $?"
cp "$SOURCE/demo/story/config.json" copy/story
rm copy/names/tokenizer.json
embla demo -o copy || echo "exit $?"
embla demo -o temporary || echo "exit $?"
embla demo -o no/such/folder || echo "exit $?"
EMBLA_DEMO=nowhere embla demo || echo "exit $?"
embla demo words || echo "exit $?"
# the program finds the demo of the source tree without help
unset EMBLA_DEMO
[[ $(embla demo --folder) == */demo ]] && echo "found beside the program"
