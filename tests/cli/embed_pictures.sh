# SPDX-License-Identifier: Apache-2.0
# What + where as a picture in a file; positions alone as cells, waves and dials; rotary angles.
. "$SOURCE/tests/cli/models.sh"
. "$SOURCE/tests/cli/pictures.sh"
cp -r "$SOURCE/demo/names" "$SOURCE/demo/words.vec" .
embla embed names e --first-position 2 -o e.svg && texts e.svg
embla embed names e m m a -o emma.svg && texts emma.svg | sed -n 1,3p
embla embed names e m --positions none -o none.svg && texts none.svg | tail -n 1
embla embed words.vec king queen --positions sinusoidal -o king.svg && texts king.svg | tail -n 1
# rotary positions add nothing; their angles are position x theta^(-2i/dim)
try embed names e m m a --positions rotary
embla embed names e m --positions rotary --dim 2 --plain
try embed names e m --positions rotary --first-position 3 --dim 1 --json
embla embed names e m --positions rotary -o rotary.svg && texts rotary.svg
folder llama '{"model_type":"llama","rope_theta":500000.0,"num_attention_heads":2,"rope_scaling":{"factor":8.0}}'
make_model llama/model.safetensors model.embed_tokens.weight:F32:9x16
try embed llama '#1' '#2'
try embed llama '#1' --positions none -q
try embed llama '#1' --positions learned
folder odd '{"model_type":"llama","rope_theta":10000.0,"head_dim":3}'
make_model odd/model.safetensors model.embed_tokens.weight:F32:9x6
try embed odd '#1'
# without a FILE: formulas
try embed --positions rotary --length 3
try embed --positions rotary --length 2 --dim 4 --json
try embed --positions rotary --length 2 --dim 4 --format tsv
try embed --positions sinusoidal --length 3 --dim 4
try embed --positions sinusoidal --length 2 --dim 4 --first-position 1 --plain
try embed --positions sinusoidal --length 2 --dim 4 --json
try embed --positions sinusoidal --length 1 --dim 4 --format jsonl
embla embed --positions sinusoidal --length 2 --dim 4 --format raw | od -A n -t f4
embla embed --positions sinusoidal --length 2 --dim 4 -o s.npy && embla info s.npy | sed -n 1,2p
embla embed --positions sinusoidal -o waves.svg && texts waves.svg
embla embed --positions sinusoidal --length 8 --dim 4 -o small.svg && texts small.svg
embla embed --positions sinusoidal --length 256 --dim 256 -o large.svg && texts large.svg | sed -n 1p
[[ $(wc -c <large.svg) -lt 500000 ]] && echo "less than 500 kB"
embla embed --positions rotary -o dials.svg && texts dials.svg
# of a model: its position table
embla embed names --positions learned -o p.svg && texts p.svg | sed -n 1,3p
embla embed names --part positions --length 2 --dim 3 --plain
embla embed llama --part positions --length 2 -q
try embed names --positions learned --length 17
try embed names --positions learned --first-position 14 --length 3
embla embed names --positions learned --first-position 14 --dim 2
# refused
try embed --positions learned
try embed --positions none
try embed --positions sinusoidal --dim 3
try embed --positions sinusoidal --dim 0
try embed --positions sinusoidal --length 0
try embed --positions sinusoidal --length 257 -o many.svg
try embed --positions rotary --format npy
try embed names e --length 2
try embed names --part rows
try embed names e --part positions --positions rotary --plain
try embed words.vec --part positions
ls ./*.svg ./*.npy
