# SPDX-License-Identifier: Apache-2.0
# What cannot be answered is refused with a sentence.
try rows
try rows --model qwen3.8-flash-next
try rows --model qwen-3.8 1
try rows --model qwen3.8-flash-next 248320
try rows --model qwen3.8-flash-next -- -1
try rows --model qwen3.8-flash-next the
try rows --model qwen3.8-flash-next --history 248320 1
try rows --model deepseek-v4.1-flash --layer 2 1
try rows --model engram-demo 1
try rows --model qwen3.8-flash-next --values 4 1
try rows --model qwen3.8-flash-next --fold missing.npy 1
try rows missing.safetensors 1
cp "$SOURCE/demo/fox.vec" fox.vec
try rows fox.vec the
try rows --model deepseek-v4.1-flash --layer 99999999999 1
