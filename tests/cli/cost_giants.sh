# SPDX-License-Identifier: Apache-2.0
# N-gram tables: 202.76 GB with the scales beside the rows, 51.20 GB without.
embla cost deepseek-v4.1-flash
echo
embla cost qwen3.8-flash-next
echo
embla cost --ngram-dtype q8_0 deepseek-v4.1-flash --json
