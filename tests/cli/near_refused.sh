# SPDX-License-Identifier: Apache-2.0
# What is wrong is said, with what was meant; what cannot be compared is left out and counted.
. "$SOURCE/tests/cli/models.sh"
fox
try near
try near fox.vec
try near missing.vec the
try near fox.vec teh
try near fox.vec bronw fxo
try near fox.vec Dgo
try near fox.vec jum
try near fox.vec elephant
try near fox.vec 5
try near fox.vec '#12'
try near fox.vec '#-1'
try near fox.vec dog -k 0
try near fox.vec dog -k x
try near fox.vec dog --rows 0
try near fox.vec dog --measure l2
try near fox.vec dog --measure euclid
try near fox.vec dog --format tsv
try near fox.vec dog --format text --json
try near fox.vec dog --vector 1,2
try near fox.vec --vector 1,2
try near fox.vec --vector 1,2,3,4,5,6,7,8,9
try near fox.vec --vector 1,2,3,x,5,6,7,8
try near fox.vec --vector 1,2,3,nan,5,6,7,8
try near fox.vec --vector 1,2,3,1e39,5,6,7,8
try near fox.vec --vector ''
try near fox.vec -
try near fox.vec --vector -
printf '1 2 3 4 5 6 7 8\n\n' | try near fox.vec --vector -
printf '1 2 3 4 5 6 7 8\0 9\n' | try near fox.vec --vector -
printf 'dog\nnothing\n' | try near fox.vec -
printf '6 2\na 1 0\nb nan 1\nc 0 0\nd 2 -inf\ne 1 1\nf inf 0\n' >nan.vec
try near nan.vec a
try near nan.vec a --quiet
try near nan.vec a --format table
try near nan.vec a --format table --rows 3
try near nan.vec a --json
try near nan.vec b
try near nan.vec a d
try near nan.vec f
try near nan.vec c --measure euclidean
printf '1 1\nx 3\n' >one.vec
try near one.vec x
try near one.vec x --format table
try near one.vec x --self --format table
printf '4 2\na 1e38 1e38\nb -1e38 1e38\nc 1e-40 0\nd 3e38 3e38\n' >huge.vec
try near huge.vec a
try near huge.vec a --measure dot --format table
try near huge.vec a --measure dot --json
make_model rank3.safetensors a.weight:F32:2x3x4
try near rank3.safetensors '#0'
printf '2 2\na 1 0\nb 0 0\n' >zero.vec
try near zero.vec b
try near zero.vec a b --json
try near zero.vec --vector 0,0
try near zero.vec --vector 0,0 --measure dot
try near zero.vec a --top -1
