# SPDX-License-Identifier: Apache-2.0
# Analogies by section, pairs by correlation, both at once, a folder of them.
. "$SOURCE/tests/cli/models.sh"
fox
cat >questions.txt <<END
: animals
fox dog red brown
quick slow lazy dog
the a fox jumps
: gram1-speed
lazy dog quick slow
Quick SLOW brown over
quick quickest slow slowest
END
cat >pairs.csv <<END
# people said
word 1,word 2,score
lazy,dog,9
quick,slow,8.5
fox,the,2
fox,wolf,8
red,brown,5
END
printf 'lazy\tdog\t9\r\nwolf\tdog\t8\r\nquick\tslow\t7\r\n' >few.tsv
try eval fox.vec questions.txt
try eval fox.vec pairs.csv few.tsv
try eval fox.vec few.tsv questions.txt pairs.csv --missing
try eval fox.vec questions.txt pairs.csv --json
try eval fox.vec questions.txt few.tsv --json --missing
try eval fox.vec questions.txt pairs.csv --exact-case --quiet
try eval fox.vec questions.txt --multiply --quiet
# of the first seven rows: . a the dog lazy quick slow
try eval fox.vec questions.txt pairs.csv --rows 7
try eval fox.vec questions.txt --rows 1,000 --quiet
for threads in 1 2 3 7; do
    embla eval fox.vec questions.txt pairs.csv --threads $threads | cksum
done
# a section without a name, and words that would move the cursor
printf 'quick slow lazy dog\n' >plain.txt
printf 'a\xc2\x9b2Jb dog 1\nlazy dog 2\nquick slow 1\n' >escapes.txt
try eval fox.vec plain.txt
try eval fox.vec escapes.txt --missing
# a folder: in order of names; what is neither is said
mkdir all
cp questions.txt pairs.csv few.tsv all
echo 'These files are questions and pairs, each with a score that people gave.' >all/README.txt
echo 'not looked at' >all/notes.md
printf '\0' >all/.hidden.txt
try eval fox.vec all
try eval fox.vec all --quiet
