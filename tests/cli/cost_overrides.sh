# SPDX-License-Identifier: Apache-2.0
# Options change a preset; what they make untrue is dropped, not kept.
embla cost gpt2 --untied --dtype bf16
echo
embla --positions=0 cost gpt2 --layers 24
echo
embla cost gpt2 --dim 1024
echo
embla cost --rows 8449 --dim 768 --positions 1024 --layers 12 --untied --quiet --threads 2
