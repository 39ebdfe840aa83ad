# SPDX-License-Identifier: Apache-2.0
# 128,000 x 4,096 is 2.10 GB in f32 and 1.05 GB in bf16, and 0.75% of 70 billion.
embla cost --rows 128000 --dim 4096
echo
embla cost --rows 128,000 --dim 4_096 --dtype bf16 --untied --total 70_000_000_000
