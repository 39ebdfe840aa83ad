# SPDX-License-Identifier: Apache-2.0
# Names from files may hold anything; the terminal gets none of it raw.
. "$SOURCE/tests/cli/models.sh"
make_model n.safetensors 'a\u001b[31mred.weight:F32:2x2' 'wte.weight:F32:2x2'
try info n.safetensors --all
try info n.safetensors --all --json
esc=$(printf 'x\033[2Jy')
cp n.safetensors "$esc"
try info "$esc"
