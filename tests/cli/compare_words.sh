# SPDX-License-Identifier: Apache-2.0
# How alike rows are: two as facts, more as a matrix, all pairs as text and JSON.
. "$SOURCE/tests/cli/models.sh"
fox
cp "$SOURCE/demo/words.vec" .
embla compare words.vec cat dog --format table
embla compare words.vec cat dog tuesday --format table
embla compare words.vec cat dog tuesday --format table --measure angle
embla compare words.vec cat dog tuesday --format table --measure dot
embla compare words.vec cat dog tuesday --format table --measure euclidean
embla compare words.vec cat dog tuesday
try compare words.vec cat dog --json
# dot(row 0, row 2) of the documents is 0.07
printf '5 4\na 0.10 -0.20 0.30 -0.40\nb 0.50 0.60 -0.70 0.80\nc -0.90 0.10 0.20 -0.30\nd 0.40 -0.50 0.60 -0.70\ne -0.10 0.80 -0.40 0.50\n' >five.vec
embla compare five.vec '#0' '#2' --format table
# the same row, opposite rows, a right angle, a row of zeros, very large and very small numbers
printf '7 2\na 3 4\nb -3 -4\nc -4 3\nzero 0 0\nhuge 3e37 4e37\ntiny 3e-30 4e-30\n\xc3\xa9t\xc3\xa9 6 8\n' >odd.vec
embla compare odd.vec a a --format table
embla compare odd.vec a b --format table
embla compare odd.vec a zero --format table
embla compare odd.vec a b c zero huge tiny --format table
LC_ALL=C.UTF-8 embla compare odd.vec a b $'\xc3\xa9t\xc3\xa9' --format table
embla compare odd.vec a zero
try compare odd.vec a zero --json
printf 'a\nb\n' | embla compare odd.vec -
# tokens that share a row
mkdir m
make_model m/model.safetensors embeddings:F32:4x3 mapping:I32:10:mod=4 weights:F32:10
words 10 >m/vocab.txt
embla compare m w1 w5 --format table
