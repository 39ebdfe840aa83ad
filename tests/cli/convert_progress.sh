# SPDX-License-Identifier: Apache-2.0
# How far it is: on a terminal, and only there; the line is wiped at the end.
. "$SOURCE/tests/cli/models.sh"
command -v script >/dev/null || { echo "skipped: there is no script"; exit 77; }
make_model big.safetensors a.weight:F32:100000x64
on_terminal() { script -qec "stty cols 80; $*" /dev/null </dev/null; }
on_terminal embla convert big.safetensors big.vec >drawn
grep -q '[0-9]%  [0-9.]* [kMG]B/s  [0-9]*:[0-9][0-9] left' drawn && echo drawn
grep -a 'written  ' drawn | tr -d '\r' | sed 's/.*\x1b\[K/wiped, then: /'
on_terminal embla convert big.safetensors big.vec --force --quiet | grep -c 'left$'
embla convert big.safetensors big.vec --force 2>&1 >/dev/null | wc -c
