# SPDX-License-Identifier: Apache-2.0
# What is not understood is an error that names what was meant.
try cost
try cost --rows 5
try cost gpt3
try cost llama
try cost nothing-like-it
try cost --list gpt2
try cost gpt2 --dytpe f32
try cost gpt2 --unheard-of
try cost gpt2 -x
try cost gpt2 --dtype fp16
try cost gpt2 --dtype float
try cost --rows
try cost --rows --dim 4
try cost gpt2 --quiet=yes
try cost gpt2 --tied --untied
try cost gpt2 --layers 12 --trunk 5
try cost gpt2 --layers 12 --total 5
try cost --ngram-rows 5 gpt2
try cost -- --json
try cost gpt2 gpt2 gpt2 gpt2 gpt2 gpt2 gpt2 gpt2 gpt2 gpt2 gpt2 gpt2 gpt2 gpt2 gpt2 gpt2 gpt2
