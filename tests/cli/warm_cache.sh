# SPDX-License-Identifier: Apache-2.0
# Rows of a giant table into the page cache, and how much of them was there.
. "$SOURCE/tests/cli/models.sh"
# times differ, what the page cache had before, and a little of what it has kept since
plain() {
    sed -E 's/in [0-9.]+ s, [0-9.]+ GB/in T s, R GB/; s/[0-9.]+% before/P% before/; s/(9[0-9]\.[0-9]|100\.0)% now/N% now/;
        s/"resident_before":[0-9]+,"resident":[0-9]+/"resident_before":B,"resident":N/; s/"(seconds|bytes_per_second)":[0-9.e+-]+/"\1":T/g'
}
make_model giant g
try warm g | plain
try warm g --threads 2 --json | plain
try warm 'g::model.ple.ple_embedding.ngram_embedding.shard_*.weight' | plain
try warm g/model.safetensors::model.ple.ple_embedding.ngram_embedding.shard_2.weight | plain
make_model two.gguf blk.1.engram_embd.weight:Q4_K:40x256 blk.14.engram_embd.weight:Q8_0:30x256
try warm two.gguf | plain
try warm two.gguf --layer 14 | plain
try warm two.gguf --layer 2
