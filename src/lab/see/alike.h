/* SPDX-License-Identifier: Apache-2.0 */
/* Finds rows with equal values and rows with nearly the same direction, without comparing all
 * pairs. Rows are added one by one, in any order and from any thread; then only rows that may be
 * alike are compared.
 *
 * A group has a first row, and every other row of the group has a cosine above `alike` with that
 * first row. Rows are processed in the order of their numbers: each joins the lowest first row with
 * the same direction, or starts a group of its own. So groups are the same on every machine, and a
 * long chain of neighbours does not become one group.
 *
 * The work is bounded: a row looks at no more than EMBLA_ALIKE_LOOKED first rows, and is compared
 * with no more than EMBLA_ALIKE_COMPARED of them, and with the few hundred rows just before it.
 * Only very many rows that nearly, but not quite, share a direction reach these limits. They are
 * counted in `uncertain`: such a row may belong to a group with an even lower first row, or to a
 * group although it starts its own.
 */
#ifndef EMBLA_SEE_ALIKE_H
#define EMBLA_SEE_ALIKE_H

#include "base/arena.h"
#include "base/checksum.h"
#include "table/access.h"

enum { EMBLA_ALIKE_PLACES = 8, EMBLA_ALIKE_LOOKED = 8192, EMBLA_ALIKE_COMPARED = 512 };

typedef struct {
    const embla_row_source *source; /* the rows of the table */
    embla_decode_fn *decode;
    double alike;         /* cosine threshold */
    size_t directions;    /* directions that rows are projected on: 8, or dim if that is less */
    float *direction;     /* directions x dim, orthonormal */
    int threads;          /* for embla_alike_find; 0 means one */
    double *norms;        /* of each row; -1 means not finite */
    double *rest;         /* the part of the norm beyond the first values */
    embla_checksum *sums; /* checksum of its values */
    float (*places)[EMBLA_ALIKE_PLACES]; /* projection of its unit vector on each direction */
    /* Results of embla_alike_find. */
    int64_t *original; /* the lowest row with equal values, or the row itself */
    int64_t *first;    /* the first row of its group, or the row itself */
    double *cosine;    /* cosine with that first row; 1 for the first row */
    int64_t uncertain; /* rows that reached a limit */
    int64_t looked;    /* how often a row looked at a first row: the work that can be quadratic */
    embla_arena arena; /* memory of all of the above */
} embla_alike;

/* A failed allocation leaves nothing behind. */
EMBLA_CHECKED embla_status embla_alike_new(const embla_table *table, double alike,
                                           embla_alike *out);
void embla_alike_free(embla_alike *alike);

/* Decodes a row to values, with -0 replaced by 0. Returns false if a value is NaN or infinite. */
bool embla_alike_read(const embla_alike *alike, int64_t row, float *values);
/* Adds a row that embla_alike_read decoded; its norm is stored in norms. */
void embla_alike_note(embla_alike *alike, int64_t row, const float *values, bool finite);
/* Call this after all rows were added. Rows of zeros and rows that are not finite are alike to
 * none. */
EMBLA_CHECKED embla_status embla_alike_find(embla_alike *alike);

#endif
