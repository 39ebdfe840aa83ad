/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of a table times a few vectors: one pass over the rows, as they are stored, at the speed
 * of memory. This is the head when a model writes one token after the other: nothing else that
 * it does reads so much for so little arithmetic.
 *
 * A sum has 16 lanes: number i times its partner is rounded to float and added to lane i mod 16
 * in float; lanes are added as a tree, 8 + 8, 4 + 4, 2 + 2, 1 + 1. In q8_0 the 32 products of a
 * block (byte times number) are first added in pairs, i and i + 16, and the pair is multiplied
 * by d before it goes into its lane. The same bits on every instruction set.
 */
#ifndef EMBLA_LEARN_DECODE_H
#define EMBLA_LEARN_DECODE_H

#include "table/table.h"

/* Vectors that one pass over the rows serves; more than these are several passes. */
enum { EMBLA_DECODE_VECTORS = 4 };

/* Row first + i times vector v goes to out[v * out_stride + i], for i < n, v < count; vectors
 * (count x dim) lie one after the other. Pointers need no alignment beyond a float's. */
void embla_decode_dots(const embla_table *table, int64_t first, size_t n, const float *vectors,
                       size_t count, float *out, size_t out_stride);

#endif
