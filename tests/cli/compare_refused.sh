# SPDX-License-Identifier: Apache-2.0
# What is wrong is said, with what was meant.
. "$SOURCE/tests/cli/models.sh"
fox
try compare
try compare fox.vec
try compare fox.vec dog
try compare missing.vec the dog
try compare fox.vec dgo fox
try compare fox.vec elephant fox
try compare fox.vec '#12' fox
try compare fox.vec '#-1' fox
try compare fox.vec the quick brown fox '#0' '#1' '#2' '#3' '#4' '#5' '#6' --format table
try compare fox.vec dog fox --format tsv
try compare fox.vec dog fox --format text --json
try compare fox.vec dog fox --measure sine
try compare fox.vec -
printf 'dog\nnothing\n' | try compare fox.vec -
printf '4 2\na 1 0\nb nan 1\nc 2 -inf\nd inf 0\n' >nan.vec
try compare nan.vec a b
try compare nan.vec a c
try compare nan.vec d a
make_model rank3.safetensors a.weight:F32:2x3x4
try compare rank3.safetensors '#0' '#1'
try similarity fox.vec dog fox
try distance fox.vec dog fox
