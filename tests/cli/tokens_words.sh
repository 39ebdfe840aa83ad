# SPDX-License-Identifier: Apache-2.0
# A file of word vectors has no tokenizer: its words cut a text at white space.
printf '6 1\nthe 0\ncat 1\nsat 2\n"x" 3\n\xff 4\ncat 5\n' >words.vec
try tokens words.vec 'the cat  sat'
try tokens words.vec 'the "x"' --format pieces -q
try tokens words.vec 'cat sat' --format text --quiet
try tokens words.vec --decode 0 2 -q
try tokens words.vec 'the dog sat'
printf 'cat\nthe cat\n' | embla tokens words.vec --count -q
cp -r "$SOURCE/demo/names" .
try tokens words.vec 'cat' --compare names -q
# neither words nor a tokenizer
embla new -o rows.npy --rows 3 --dim 2 >log
try tokens rows.npy 'the cat'
