# SPDX-License-Identifier: Apache-2.0
# What cannot be opened, and wrong usage.
. "$SOURCE/tests/cli/models.sh"
try info
try info a b
try info missing.safetensors
mkdir empty
try info empty
echo 'nothing that is known' >text.bin
try info text.bin
try info /dev/null
fox
head -c 100 fox.vec >cut.vec
try info cut.vec
try info fox.vec --al
try ls fox.vec
try inspect fox.vec
