# SPDX-License-Identifier: Apache-2.0
# Colour when asked for; never where it would not be shown.
. "$SOURCE/tests/cli/models.sh"
fox
export LC_ALL=C.UTF-8
embla lookup fox.vec the fox --color always | sed 's/\x1b/ESC/g'
embla lookup fox.vec the fox --color never | grep -c $'\x1b'
embla lookup fox.vec the fox | grep -c $'\x1b'
command -v script >/dev/null || { echo "skipped: there is no script"; exit 77; }
on_terminal() { script -qec "stty cols 80; $*" /dev/null </dev/null | grep -c $'\x1b'; }
unset NO_COLOR COLUMNS
TERM=xterm on_terminal embla lookup fox.vec the fox
TERM=dumb on_terminal embla lookup fox.vec the fox
NO_COLOR=1 TERM=xterm on_terminal embla lookup fox.vec the fox
NO_COLOR=1 TERM=xterm on_terminal embla lookup fox.vec the fox --color always
