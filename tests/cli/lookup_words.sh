# SPDX-License-Identifier: Apache-2.0
# Words with spaces, line ends, other alphabets, bytes that are no UTF-8.
. "$SOURCE/tests/cli/models.sh"
mkdir m
make_model m/model.safetensors wte.weight:F32:8x2
printf '%s' '{" he":0,"a b":1,"\n":2,"Ġthe":3,"▁cat":4,"日本":5,"\u202eevil":6,"\\":7}' >m/vocab.json
try lookup m ' he' 'a b' $'\n' ' the' ' cat' '日本' '#6' '\\' --plain --dim 1
LC_ALL=C.UTF-8 embla lookup m --ids 0,1,2,3,4,5,6,7
embla lookup m --ids 0,1,2,3,4,5,6,7
try lookup m cat
try lookup m 日
printf '2 1\n\xff\xfe 1\nlong-long-long-long-long 2\n' >bytes.vec
try lookup bytes.vec '#0' '#1' --plain
try lookup bytes.vec '#0' --json
try lookup bytes.vec $'\xff\xfe' --plain
embla lookup bytes.vec '#0' '#1'
folder gpt2 '{"model_type":"gpt2"}'
make_model gpt2/model.safetensors wte.weight:F32:5x4 wpe.weight:F32:8x4
words 5 >gpt2/vocab.txt
try lookup gpt2 w3 --plain
try lookup gpt2::wpe.weight '#3' --plain
try lookup gpt2::wpe.weight w3
# a backslash makes a word of anything
printf '5 1\n- 0\n#5 1\n\\a 2\nthe 3\nEU 4\n' >marks.vec
try lookup marks.vec '\-' '\#5' '\\a' '\the' --plain
printf '\\-\n-\n\\#5\n\\\\a\n#3\n' | embla lookup marks.vec - --plain
try lookup marks.vec '#5'
try lookup marks.vec '#99999999999999999999'
try lookup marks.vec '#-99999999999999999999'
# what may have been meant: another case, with the space or without, one hint at most
try lookup marks.vec The
try lookup marks.vec eu
try lookup marks.vec ' the'
try lookup marks.vec ' THE'
try lookup m He
try lookup m cat he nothing
try lookup m a b c d e f g
try lookup m 'a  b' ''
