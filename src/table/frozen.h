/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that do not learn.
 *
 * A caller names them in three ways at once (embla_frozen); here they are checked against a
 * table, and turned into what can be asked cheaply. A set is a copy that needs nothing of the
 * caller's any more: a number and, where single rows are named, a bit for each row. Scatter,
 * which may not allocate, asks for the rows of a batch instead, all at once.
 */
#ifndef EMBLA_TABLE_FROZEN_H
#define EMBLA_TABLE_FROZEN_H

#include "base/status.h"

/* EMBLA_ERR_RANGE for a row outside 0 .. rows-1 (below may be rows: none learns),
 * EMBLA_ERR_ARGUMENT for a count without rows. frozen may be NULL: all learn. */
EMBLA_CHECKED embla_status embla_frozen_check(const embla_frozen *frozen, int64_t rows);

/* A copy. Zeroed: all rows learn. */
typedef struct {
    int64_t below;  /* rows below this one are frozen */
    uint64_t *bits; /* row r: bit r % 64 of word r / 64; NULL: no others are */
    size_t bytes;
} embla_frozen_set;

/* Checks, then copies. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_frozen_copy(const embla_frozen *frozen, int64_t rows,
                                                           embla_frozen_set *out);
EMBLA_PRIVATE void embla_frozen_free(embla_frozen_set *set);

/* Whether a row, which exists, is frozen. */
static inline bool embla_frozen_has(const embla_frozen_set *set, int64_t row)
{
    if (row < set->below) return true;
    return set->bits && (set->bits[(uint64_t)row / 64] >> ((uint64_t)row % 64) & 1u) != 0;
}

/* Without memory of its own: of these rows (ascending, each once, inside the table) sets
 * frozen_at[i] to 1 where rows[i] is frozen, else to 0. What is frozen has been checked. */
void embla_frozen_mark(const embla_frozen *frozen, const int64_t *rows, size_t count,
                       uint8_t *frozen_at);

#endif
