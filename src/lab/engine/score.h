/* SPDX-License-Identifier: Apache-2.0 */
/* Products of stored rows with a few vectors: one pass over the rows at the speed of memory. The
 * head uses it to decode token by token, and near to search for a few queries: both read a whole
 * table for little arithmetic.
 *
 * A sum has 16 lanes. Number i of a row times its partner is rounded to float and added to lane
 * i mod 16 in float; the lanes are added as a tree, 8 + 8, 4 + 4, 2 + 2, 1 + 1. In q8_0 the 32
 * products of a block (byte times number) are first added in pairs, i and i + 16, and each pair is
 * multiplied by d before it is added to its lane. The bits are the same on every instruction set.
 *
 * Where squares are wanted too, all sums are estimates (engine/estimate.h): their bits depend on
 * the instruction set, and embla_score_error bounds how far they are from the exact sums.
 */
#ifndef EMBLA_ENGINE_SCORE_H
#define EMBLA_ENGINE_SCORE_H

#include "lookup/source.h"

/* Vectors that one pass over the rows serves; more vectors take several passes. */
enum { EMBLA_SCORE_VECTORS = 4 };

/* The product of row first + i with vector v goes to dots[v * stride + i], for i < n, v < count;
 * the product of the row with itself goes to squares[i]. */
typedef struct {
    const embla_row_source *rows; /* in memory */
    int64_t first;
    size_t n;
    const float *vectors; /* count x dim */
    size_t count;
    const int16_t *whole; /* the same numbers as integers: only with squares and q8_0 */
    float *dots;
    size_t stride;
    float *squares; /* NULL means not wanted */
} embla_score_job;

void embla_score(const embla_score_job *job);

/* An estimated product x.y is wrong by at most this times |x||y|, and a square x.x by at most this
 * times x.x, if nothing overflows and underflow loses nothing that matters beside them. A term is
 * rounded at most three times before it is added, then once in each of dim / 16 additions of its
 * lane and 4 of the tree. 1.1 is for terms of second order. */
static inline double embla_score_error(size_t dim)
{
    return 1.1 * 0x1p-24 * ((double)dim / 16.0 + 16.0);
}

#endif
