# SPDX-License-Identifier: Apache-2.0
# What cannot be done is said, and why.
. "$SOURCE/tests/cli/generate_model.sh"
fox
llama m 6 8
vocab m a b c d e f
try generate
try generate nothing
try generate fox.vec
try generate m --temperature cold
try generate m --temperature -1
try generate m --temperature nan
try generate m --top-p 1.5
try generate m --min-p 0.5x
try generate m --top-k -3
try generate m --tokens 99999999999
try generate m --count 99999999999
try generate m --prompt xyz
try generate m --prompt ''
try generate m --tokens 0 --prompt abc
try generate m --count 0 --prompt abc
llama broken 6 8
rm m/vocab.json
try generate m --prompt 5,6
try generate m --prompt abc
try generate m --prompt 5,-1
llama sick 6 8 '' nan=3
try generate sick --tokens 3 --prompt 3
try generate sick --tokens 3 --prompt 3 --json | sed 's/"seconds":.*}/..}/'
echo '[' >m/vocab.json
try generate m --tokens 3
sed -i 's/"num_hidden_layers":1/"num_hidden_layers":2/' broken/config.json
try generate broken
sed -i 's/llama/mamba/' broken/config.json
try generate broken
