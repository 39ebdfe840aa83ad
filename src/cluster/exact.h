/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of floats that do not depend on the order in which they are added, nor on how they are
 * divided among ranks (docs/decisions/026-exact-sums.md).
 *
 * There are `count` sums. They are divided into blocks, and a block has a level: the size of its
 * largest number so far, in steps of 32 bits. At level k a number is rounded to a multiple of
 * 2^(32k - 160) and becomes two integers, the high and the low part. Integers are added without
 * error. A larger number raises the level: then the high parts become the low parts, and the old
 * low parts are dropped. That gives the integers that the higher level would have given from the
 * start, because the steps are absolute. So the sums are a function of the set of numbers.
 *
 * A number is rounded by at most 2^-32 times the largest number in its block. It is usually much
 * less: at most 2^-65 where the largest number is from 2^-33 to 1/2. A NaN or an infinity makes all
 * sums of its block NaN.
 */
#ifndef EMBLA_CLUSTER_EXACT_H
#define EMBLA_CLUSTER_EXACT_H

#include "embla_cluster.h"

enum {
    EMBLA_EXACT_BLOCK = 64,     /* sums in a block */
    EMBLA_EXACT_TILE = 4096,    /* sums in a tile; a slice has whole tiles */
    EMBLA_EXACT_MOST = 1 << 19, /* numbers in a sum, over all ranks */
};

/* A zeroed struct is empty. */
typedef struct {
    size_t count, blocks, bytes, ranks;
    size_t slice;    /* tiles of each rank, the last ones may have fewer */
    size_t round;    /* tiles that a rank gets from each rank at once */
    int64_t *levels; /* of each block, -1 while it is 0; then the number of additions */
    int64_t *parts;  /* of each block: BLOCK high parts, then BLOCK low parts; in order of rounds */
    /* if there are several ranks: */
    size_t *counts;    /* blocks to send to each rank, and to receive */
    int64_t *received; /* parts from all ranks */
} embla_exact;

/* The numbers of a slice: rank r has sums r * slice .. (r + 1) * slice - 1, as far as they exist.
 */
static inline size_t embla_exact_slice(size_t count, size_t ranks)
{
    size_t tiles = count / EMBLA_EXACT_TILE + (count % EMBLA_EXACT_TILE != 0);
    return (tiles / ranks + (tiles % ranks != 0)) * EMBLA_EXACT_TILE;
}

/* Allocates `count` sums, all 0, to be summed over so many ranks. */
EMBLA_CHECKED embla_status embla_exact_new(size_t count, size_t ranks, embla_exact *out);
void embla_exact_free(embla_exact *sums);
/* Sets all sums to 0. */
void embla_exact_clear(embla_exact *sums);
/* Adds x[0][i], x[1][i], .. x[n-1][i] to sum i, and sets them to 0. Several at once are faster than
 * one after the other. EMBLA_ERR_ARGUMENT above EMBLA_EXACT_MOST numbers. */
EMBLA_CHECKED embla_status embla_exact_take(embla_exact *sums, float *const *x, size_t n,
                                            int threads);
/* The numbers that ranks must compare before embla_exact_sum: sums->levels has so many. */
static inline size_t embla_exact_levels(const embla_exact *sums)
{
    return sums->blocks + 1;
}
/* Writes this rank's slice of the sums over all ranks, each rounded once to the nearest float;
 * other numbers of out (count) stay. levels are the maxima of sums->levels over all ranks. Call
 * embla_exact_clear before the next sums. Collective. */
EMBLA_CHECKED embla_status embla_exact_sum(embla_exact *sums, const embla_comm *comm,
                                           const int64_t *levels, int threads, float *out);

#endif
