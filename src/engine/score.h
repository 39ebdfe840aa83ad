/* SPDX-License-Identifier: Apache-2.0 */
/* Products of stored rows with a few vectors: one pass over the rows at the speed of memory. The
 * head uses it to decode token by token, and near to search for a few queries: both read a whole
 * table for little arithmetic.
 *
 * A sum has 16 lanes. Number i of a row times its partner is rounded to float and added to lane
 * i mod 16 in float; the lanes are added as a tree, 8 + 8, 4 + 4, 2 + 2, 1 + 1. In q8_0 the 32
 * products of a block (byte times number) are first added in pairs, i and i + 16, and each pair is
 * multiplied by d before it is added to its lane. The bits are the same on every instruction set.
 */
#ifndef EMBLA_ENGINE_SCORE_H
#define EMBLA_ENGINE_SCORE_H

#include "base/dtype.h"

/* Vectors that one pass over the rows serves; more vectors take several passes. */
enum { EMBLA_SCORE_VECTORS = 4 };

/* The product of row first + i with vector v goes to out[v * out_stride + i], for i < n and
 * v < count; vectors is count x dim. Pointers to floats are aligned to a float, data need not be
 * aligned. */
void embla_score_rows(const embla_stored *rows, int64_t first, size_t n, const float *vectors,
                      size_t count, float *out, size_t out_stride);

#endif
