# SPDX-License-Identifier: Apache-2.0
# Rows of every placement are those of the file.
. "$SOURCE/tests/cli/models.sh"
plain() { sed -E 's/"seconds":[0-9.e+-]+/"seconds":T/; s/embla-[0-9a-f]{16}/embla-ID/'; }
make_model giant g
try verify g
try verify g --sample 100
try verify g --sample 100 --seed 7 --json | plain
try verify g --sample 1
try verify g --place ram --all
try verify g --place ram --all --json --threads 2 | plain
mkdir shm
try verify g --place shared --folder shm | plain
embla warm g --shared --folder shm --quiet >/dev/null
try verify g --place shared --folder shm --all | plain
make_model two.gguf blk.1.engram_embd.weight:Q4_K:40x256 blk.14.engram_embd.weight:Q8_0:30x256
try verify two.gguf --layer 14
