/* SPDX-License-Identifier: Apache-2.0 */
/* The mean of the rows of some tokens: gather and sum in one pass, without a (tokens x dim) array.
 */
#ifndef EMBLA_TABLE_ROW_MEAN_H
#define EMBLA_TABLE_ROW_MEAN_H

#include "table/access.h"

typedef struct {
    const embla_table *table;
    size_t dim;            /* columns of the result, from the first on; at most the table's */
    const double *weights; /* by token: what its row is multiplied by; NULL means 1 */
    embla_decode_fn *decode;
    bool in_place; /* rows are floats that need no decoding */
    bool fetch;    /* the table is larger than a cache: prefetch rows */
} embla_row_mean;

EMBLA_PRIVATE embla_row_mean embla_row_mean_of(const embla_table *table, size_t dim,
                                               const double *weights);
/* Writes the mean of the rows of `count` tokens, at least 1, to out (dim). Every token has a row.
 * Each column is summed in the order of the tokens: in float, as NumPy and PyTorch do; in double
 * if there are weights or the rows are f64. */
EMBLA_PRIVATE void embla_row_mean_write(const embla_row_mean *mean, const int32_t *tokens,
                                        size_t count, float *out);

#endif
