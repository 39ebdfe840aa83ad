# SPDX-License-Identifier: Apache-2.0
# Names of options and models in other tools.
try tokenizer --vocab 8000
try tokenizer --vocab_size=8000
try tokenizer --input=text.txt
try words text.txt --vector-size 100
try words text.txt --minCount 5
try near fox.vec fox --topn 3
try train text.txt --learning-rate 1
try generate folder --max-new-tokens 5
try encode folder text --n-jobs 2
try cost --vocab-size 5
try map fox.vec --perplexity 5
try near fox.vec fox --sideways
try info gpt2
try near openai-community/gpt2 king
try encode BAAI/bge-base-en-v1.5 hello
try tokens gpt2 hello
try info gpt2.safetensors
try info ./gpt2
try info models/of/gpt2
