# SPDX-License-Identifier: Apache-2.0
# Row numbers of known models, for people and as JSON; a text that goes on.
try rows --list
try rows --model qwen3.8-flash-next 100 200 300 248044 400
try rows --model deepseek-v4.1-flash --layer 14 --ids 5,17 --json
try rows --model longcat-flash-lite --history 11,523 2 44
try rows --model gemma-4-e2b '#262143'
try rows --model qwen3.8-flash-next --history 100,200 300 --quiet
