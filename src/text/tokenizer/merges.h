/* SPDX-License-Identifier: Apache-2.0 */
/* The merges of BPE: a hash table from pairs of tokens to ranks. No search looks at more than
 * EMBLA_MERGE_PROBES slots: if a file's pairs collide too often, the table is built again with
 * another seed. */
#ifndef EMBLA_TOKENIZER_MERGES_H
#define EMBLA_TOKENIZER_MERGES_H

#include "base/hash.h"
#include "tokenizer/tokenizer.h"

#define EMBLA_MERGE_FREE UINT64_MAX

/* The slot that the search for a pair begins at. */
static inline size_t embla_merges_home(const embla_merges *merges, uint64_t pair)
{
    return (size_t)((embla_mix64(pair + merges->seed) >> 32) * merges->homes >> 32);
}

/* The merge of two tokens; NULL if they do not merge. */
static inline const embla_pair_merge *embla_merges_find(const embla_merges *merges, int32_t left,
                                                        int32_t right)
{
    const uint64_t pair = (uint64_t)(uint32_t)left << 32 | (uint32_t)right;
    const embla_pair_merge *slot = merges->slots + embla_merges_home(merges, pair);
    for (size_t tries = 0; tries < EMBLA_MERGE_PROBES; tries++, slot++) {
        if (slot->pair == pair) return slot;
        if (slot->pair == EMBLA_MERGE_FREE) return NULL;
    }
    return NULL;
}

#endif
