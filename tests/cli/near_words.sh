# SPDX-License-Identifier: Apache-2.0
# Words of any bytes are shown escaped; files without words, Model2Vec's mapping, padding rows.
. "$SOURCE/tests/cli/models.sh"
mkdir m
make_model m/model.safetensors wte.weight:F32:9x4
printf '%s' '{" he":0,"a b":1,"\n":2,"Ġthe":3,"▁cat":4,"日本":5,"\u202eevil":6,"\\":7}' >m/vocab.json
try near m ' he' --format table
LC_ALL=C.UTF-8 try near m ' the' ' cat' --format table -k 8
try near m '日本'
try near m '\\' --json -k 3
try near m '#8' -k 1 --format table
printf '3 1\n\xff\xfe 1\nlong-long-long-long-long 2\n\x1b[31mred -1\n' >bytes.vec
try near bytes.vec '#0'
try near bytes.vec '#0' --json
try near bytes.vec '#1' --format table
# no words: tokens are numbers
make_model none.safetensors a.weight:F32:40x4
try near none.safetensors '#3' -k 2
try near none.safetensors '#3' -k 2 --format table
try near none.safetensors '#3' -k 1 --json
# GGUF, and other dtypes
make_model q.gguf text:general.architecture=llama tokens:a,b,c token_embd.weight:Q8_0:3x64
try near q.gguf a
make_model h.safetensors wte.weight:BF16:5x4
try near h.safetensors '#1' -k 2
# one row may be that of many tokens
mkdir v
make_model v/model.safetensors embeddings:F32:4x3 mapping:I32:10:mod=3 weights:F32:10
words 10 >v/vocab.txt
try near v w5 --format table
LC_ALL=C.UTF-8 embla near v w5 --format table
try near v w5
try near v w5 --json
try near v '#10'
# a row number below 0: of token 0, the first of the mapping
header=$(od -An -tu4 -N4 v/model.safetensors)
printf '\xff\xff\xff\xff' | dd of=v/model.safetensors bs=1 seek=$((8 + header + 4 * 4 * 3)) conv=notrunc status=none
try near v w0
try near v w5
make_model v/model.safetensors embeddings:F32:4x3 mapping:I64:10 weights:F32:10
try near v w5
try near v w2 --json
