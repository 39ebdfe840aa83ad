# SPDX-License-Identifier: Apache-2.0
# Word vectors: means, weights and components, and scores on sentence pairs.
cp "$SOURCE/demo/fox.vec" fox.vec
printf '%s\n' 'The quick brown fox.' 'A lazy dog, a fox!' '' 'unheard of' 'The dog jumps over the fox' >lines.txt
try encode fox.vec 'The FOX, the dog.' --json --dim 2
try fit fox.vec lines.txt -o fox.fit --components 2
try fit fox.vec lines.txt -o fox.fit --components 2
try fit fox.vec lines.txt -o fox.fit --components 2 --force --json | sed "s/\(share\":0.[0-9]\{4\}\).*/\1/"
embla encode fox.vec 'The fox' --fit fox.fit | awk '{ for (i = 1; i <= NF; i++) printf "%.4f ", $i; print "" }'
try encode fox.vec 'The fox' --fit fox.fit --dim 2
printf 'the 90\nfox 10\n' >counts.txt
try fit fox.vec lines.txt -o counts.fit --components 0 --counts counts.txt
try encode fox.vec 'the' 'fox' 'dog' --fit counts.fit
printf '%s\t%s\t%s\n' 5 'the dog' 'a dog' 1 'a fox' 'the dog' 2 'quick fox' 'lazy dog' >pairs.tsv
try eval fox.vec pairs.tsv --sentences
try eval fox.vec pairs.tsv --sentences --fit fox.fit --json | sed 's/\(pearson":0.[0-9]\{4\}\).*/\1/'
try eval fox.vec pairs.tsv --fit fox.fit
# What is wrong is said.
try fit fox.vec
try fit fox.vec lines.txt
try fit fox.vec missing.txt -o x.fit
try fit fox.vec lines.txt -o x.fit --a nan
try fit fox.vec lines.txt -o x.fit --a 0 --counts counts.txt
try fit fox.vec lines.txt -o x.fit --lines 0
try fit fox.vec lines.txt -o missing/x.fit
echo unheard >other.txt
try fit fox.vec other.txt -o x.fit
sed 's/^fox 0/fox 1/; s/^fox -0/fox -1/' fox.vec >changed.vec
try encode changed.vec fox --fit fox.fit
try encode fox.vec fox --fit lines.txt
try eval fox.vec lines.txt --sentences
ls
