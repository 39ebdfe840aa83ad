/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that are the same numbers, and rows that share one direction, without comparing all
 * with all. Rows are shown to it one by one, in any order and by any threads; then it looks
 * again only at those that may be alike.
 *
 * A group has a first row, and every other row of it has a cosine above `alike` with that
 * first one. Rows are taken in the order of their numbers: each joins the lowest row that is
 * first of a group and shares its direction, or becomes a first itself. So groups are the same
 * on every machine, and a long chain of neighbours does not become one group.
 */
#ifndef EMBLA_SEE_ALIKE_H
#define EMBLA_SEE_ALIKE_H

#include "base/arena.h"
#include "base/checksum.h"
#include "table/table.h"

enum { EMBLA_ALIKE_PLACES = 8 };

typedef struct {
    const embla_table *table;
    embla_decode_fn *decode;
    double alike;                        /* cosines above this */
    size_t directions;                   /* that rows are seen from: 8, or dim if that is less */
    float *direction;                    /* directions x dim, of length 1, at right angles */
    int threads;                         /* of embla_alike_find; 0: one */
    double *norms;                       /* of each row; -1: not finite */
    double *rest;                        /* of its length: what lies beyond its first numbers */
    embla_checksum *sums;                /* of its numbers */
    float (*places)[EMBLA_ALIKE_PLACES]; /* its unit vector, seen from each direction */
    /* What embla_alike_find finds. */
    int64_t *original; /* the lowest row of the same numbers; of itself: the row */
    int64_t *first;    /* the first row of its group; of itself: the row */
    double *cosine;    /* with that first row; 1 of itself */
    embla_arena arena; /* all of the above */
} embla_alike;

/* An allocation that fails leaves nothing behind. */
EMBLA_CHECKED embla_status embla_alike_new(const embla_table *table, double alike,
                                           embla_alike *out);
void embla_alike_free(embla_alike *alike);

/* The numbers of a row, -0 as 0, to values; false: one of them is no number. */
bool embla_alike_read(const embla_alike *alike, int64_t row, float *values);
/* Notes a row that embla_alike_read gave; its norm is kept in norms. */
void embla_alike_note(embla_alike *alike, int64_t row, const float *values, bool finite);
/* After all rows have been noted. Rows of zeros, and those that are not finite, are alike to
 * none. */
EMBLA_CHECKED embla_status embla_alike_find(embla_alike *alike);

#endif
