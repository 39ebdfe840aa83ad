# SPDX-License-Identifier: Apache-2.0
# Several presets: one line each, the options applied to all of them.
embla cost microgpt gpt2 andrea-12m andrea-120m llama-3.1-8b llama-3.1-70b llama-3.1-405b gemma-3 \
    deepseek-v4.1-flash qwen3.8-flash-next
echo
embla cost gpt2 llama-3.1-8b --dtype q8_0 --tied
echo
embla cost microgpt gpt2 --json
