# SPDX-License-Identifier: Apache-2.0
# Before the verb, after it, with and without =, and after -- they are words.
embla cost gpt2 --json >one
embla --json cost gpt2 >two
embla --threads 2 --json cost gpt2 >three
embla --dtype=f32 cost --json -- gpt2 >four
embla -q -- cost gpt2 >five
embla cost gpt2 >six
cmp one two && cmp one three && cmp one four && cmp five six && echo the same
