# SPDX-License-Identifier: Apache-2.0
# One preset as text: the parts, their shares, and the work for one token; and the notes of others
# on figures that are quoted and wrong.
embla cost gpt2
for preset in microgpt andrea-12m andrea-120m llama-3.1-8b llama-3.1-70b llama-3.1-405b; do
    echo
    embla cost $preset | sed -n '1p; /^note/,$p'
done
