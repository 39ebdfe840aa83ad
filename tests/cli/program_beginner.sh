# SPDX-License-Identifier: Apache-2.0
# What beginners type: operands in another order, names with a slip, texts without quotes, a text where
# a table is expected and the other way round. Each message says what was meant.
export EMBLA_DEMO=$SOURCE/demo
embla demo -o demo -q
cd demo || exit 1
echo "-- the file comes first"
try lookup cat words.vec
try analogy king - man + woman words.vec
try predict "the king" story
try search words.vec "a dog" village.txt
try embed the cat story::wte
try convert none words.vec # the output may be there
try words.vec near cat
echo "-- a similar name"
try near word.vec cat
try lookup stroy the cat
try info ../demo/stori
try train namse.txt --preset microgpt -o x
try lookup nothing cat
ln -s nowhere link.vec
try info link.vec
try info Words.vec
try train https://example.com/text.txt -o x
try cost gtp2
echo "-- quotes"
try generate story the king
embla predict story the king --top 1 2>&1 >/dev/null
embla predict story "the king" cat --top 1 2>&1 >/dev/null # one of them has quotes
embla predict story the king --top 1 -q 2>&1 >/dev/null
embla search words.vec village.txt a small dog 2>&1 >/dev/null | grep -v '^embla: note: village.txt'
try analogy words.vec king-man+woman
echo "-- another option"
try new r.vec 100 8
try train microgpt names.txt
try cost 8,449
try lookup five.vec 2,3,0
echo "-- a text and a table"
try lookup village.txt cat
printf 'one\ntwo\nthree\n' >three.txt
try info three.txt
try train three.txt -o x
try words three.txt -o x.vec
try train story -o x 2>&1 | sed "s|[^ ]*/demo/||"
embla words story -o x.vec 2>&1 >/dev/null
try train --resume names
try predict words.vec "the king"
echo "-- capitals"
try predict names Emma
try tokens names Emma
try near words.vec Cat
