# SPDX-License-Identifier: Apache-2.0
# The demo: where it is, its five commands, a copy to work in, and what happens without its files.
export EMBLA_DEMO=$SOURCE/demo
[[ $(embla demo --folder) == "$(realpath "$SOURCE/demo")" ]] && echo "folder: found"
embla demo --json | sed 's/.*"commands":/commands: /' | tr '{' '\n' | grep -o '"command":"[^}]*",' | sed 's/,"about.*//'
embla demo </dev/null >walk || echo "walk: exit $?"
grep '^   \$ ' walk
awk 'length > 90' walk
grep -A 1 -m 1 'king - man' walk >/dev/null && grep -m 1 '^1	' walk | cut -f 2
grep -m 1 '^1	queen' walk | cut -f 2
embla demo -o copy
ls copy | tr '\n' ' '
echo
cmp copy/words.vec "$SOURCE/demo/words.vec" && echo "copied"
embla demo -o copy || echo "exit $?"
embla demo -o no/such/folder || echo "exit $?"
EMBLA_DEMO=nowhere embla demo || echo "exit $?"
embla demo words || echo "exit $?"
# the program finds the demo of the source tree without help
unset EMBLA_DEMO
[[ $(embla demo --folder) == */demo ]] && echo "found beside the program"
