# SPDX-License-Identifier: Apache-2.0
# A vocabulary fits one host: the first line says so.
embla plan --rows 128,256 --dim 16384 --dtype bf16 --memory 64GB --tokens 4096
echo
embla plan --rows 384006168 --dim 256 --dtype f8_e4m3 --scale-bytes 8 --per-token 48 --tokens 8192 \
    --unique 0.5 --optimizer none | head -n 8
