/* SPDX-License-Identifier: Apache-2.0 */
/* Bundles of a pack: the rows of frequent n-grams, side by side, so that one read brings all rows
 * of an n-gram. Each row of a bundle follows its row number.
 *
 *   | number | row | number | row | ..     `rows_per_ngram` times
 *
 * The index is in memory: for each bundle, a 64-bit key of its row numbers. Two n-grams may have
 * the same key, so the numbers in the file decide (store/gather.c).
 */
#ifndef EMBLA_STORE_BUNDLES_H
#define EMBLA_STORE_BUNDLES_H

#include "checkpoint/pack_manifest.h"
#include "store/store.h"

struct embla_bundles {
    size_t block; /* bytes of this block */
    size_t rows_per_ngram;
    size_t count;
    size_t step; /* bytes from one row of a bundle to the next */
    embla_pack_pages pages;
    uint64_t offset; /* of the first bundle in its file */
    uint32_t source; /* index into store->sources */
    unsigned shift;
    uint32_t *starts; /* keys k with k >> shift == s are starts[s] .. starts[s + 1] - 1 */
    uint64_t *keys;   /* ascending */
};

/* Reads the index of a pack, and appends its file to the sources if it is not there. */
EMBLA_CHECKED embla_status embla_bundles_open(const embla_checkpoint *checkpoint,
                                              const embla_pack *pack, embla_store *store);
void embla_bundles_free(embla_bundles *bundles);
/* Finds the bundle of an n-gram: *at is the offset of its first row number in the file. */
bool embla_bundles_find(const embla_bundles *bundles, const int64_t *rows, uint64_t *at);

#endif
