# SPDX-License-Identifier: Apache-2.0
# A vocabulary of letters: the message names the first character that it does not have.
cp -r "$SOURCE/demo/names" "$SOURCE/demo/five.vec" .
try lookup names "the cat"
try lookup names Emma
try lookup names E
try lookup names 'ann!'
try lookup names 'Zoé'
try near names emma Emma --top 1 --format text
try tokens names Emma
# five words of one character are not an alphabet
try lookup five.vec cat
