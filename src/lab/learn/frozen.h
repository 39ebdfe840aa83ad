/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that are not trained.
 *
 * A caller specifies them in three ways (embla_frozen). Here they are checked against a table and
 * converted to a form that is cheap to query. A set is an independent copy: a number and, if single
 * rows are frozen, a bit for each row. A scatter must not allocate, so it queries all rows of a
 * batch at once.
 */
#ifndef EMBLA_LEARN_FROZEN_H
#define EMBLA_LEARN_FROZEN_H

#include "base/status.h"
#include "embla_learn.h"

/* EMBLA_ERR_RANGE for a row outside 0 .. rows-1 (below may equal rows: all are frozen).
 * EMBLA_ERR_ARGUMENT for a count without rows. frozen may be NULL: none is frozen. */
EMBLA_CHECKED embla_status embla_frozen_check(const embla_frozen *frozen, int64_t rows);

/* A copy. If zeroed, no row is frozen. */
typedef struct {
    int64_t below;  /* rows below this one are frozen */
    uint64_t *bits; /* row r is bit r % 64 of word r / 64; NULL means no other rows */
    size_t bytes;
} embla_frozen_set;

/* Checks, then copies. */
EMBLA_CHECKED embla_status embla_frozen_copy(const embla_frozen *frozen, int64_t rows,
                                             embla_frozen_set *out);
void embla_frozen_free(embla_frozen_set *set);

/* True if a row, which must exist, is frozen. */
static inline bool embla_frozen_has(const embla_frozen_set *set, int64_t row)
{
    if (row < set->below) return true;
    return set->bits && (set->bits[(uint64_t)row / 64] >> ((uint64_t)row % 64) & 1u) != 0;
}

/* Needs no memory. For each of these rows (ascending, unique, inside the table) sets frozen_at[i]
 * to 1 if rows[i] is frozen, otherwise to 0. frozen must have been checked. */
void embla_frozen_mark(const embla_frozen *frozen, const int64_t *rows, size_t count,
                       uint8_t *frozen_at);

#endif
