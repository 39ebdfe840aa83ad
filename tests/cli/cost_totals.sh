# SPDX-License-Identifier: Apache-2.0
# The published totals, from the table of presets alone.
for preset in microgpt gpt2 andrea-12m andrea-120m llama-3.1-8b llama-3.1-70b llama-3.1-405b gemma-3; do
    embla cost "$preset" --json | sed -E 's/.*"model":"([^"]*)".*"total":\{"parameters":([0-9]*).*/\1 \2/'
done
embla cost microgpt --positions 8 --json | sed -E 's/.*"total":\{"parameters":([0-9]*).*/microgpt with 8 positions \1/'
