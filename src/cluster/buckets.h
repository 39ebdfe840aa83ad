/* SPDX-License-Identifier: Apache-2.0 */
/* Which rank has which bucket of a sharded table. Tables, their files, plans and simulations use
 * the same rule.
 *
 * Buckets have an order: the place of a bucket is its number with the bits reversed. A rank owns a
 * range of places. So rows that follow each other, which are often equally frequent, are on
 * different ranks. The number of buckets is a power of two.
 */
#ifndef EMBLA_CLUSTER_BUCKETS_H
#define EMBLA_CLUSTER_BUCKETS_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum { EMBLA_BUCKETS_MOST = 65536 };

/* The default for a table of `rows` rows: 1,024, and fewer for a small one. */
static inline size_t embla_buckets_usual(int64_t rows)
{
    enum { USUAL = 1024, LEAST = 16, BUCKET_ROWS = 256 };
    size_t buckets = LEAST;
    while (buckets < USUAL && (int64_t)(2 * buckets) * BUCKET_ROWS <= rows) buckets *= 2;
    return buckets;
}

EMBLA_CHECKED static inline embla_status embla_buckets_check(size_t buckets)
{
    if (buckets <= EMBLA_BUCKETS_MOST && (buckets & (buckets - 1)) == 0) return EMBLA_OK;
    return embla_fail(EMBLA_ERR_ARGUMENT, "buckets is %zu; it must be a power of two, at most %d",
                      buckets, EMBLA_BUCKETS_MOST);
}

/* The place of a bucket, or the bucket at a place. */
static inline size_t embla_buckets_place(size_t bucket, size_t buckets)
{
    size_t place = 0;
    for (size_t bit = 1; bit < buckets; bit *= 2) place = 2 * place + ((bucket & bit) != 0);
    return place;
}

/* The first place of a rank; that of rank `ranks` is the number of buckets. */
static inline size_t embla_buckets_begin(int64_t rank, int64_t ranks, size_t buckets)
{
    return (size_t)((uint64_t)rank * buckets / (uint64_t)ranks);
}

/* The rank that owns a bucket. */
static inline int64_t embla_buckets_owner(size_t bucket, size_t buckets, int64_t ranks)
{
    uint64_t place = embla_buckets_place(bucket, buckets);
    return (int64_t)(((place + 1) * (uint64_t)ranks - 1) / buckets);
}

#endif
