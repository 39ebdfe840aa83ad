/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of products of a table's columns: the matrix from which its singular values and main
 * directions are found, without ever holding more than dim x dim numbers.
 */
#ifndef EMBLA_SEE_GRAM_H
#define EMBLA_SEE_GRAM_H

#include "base/status.h"

typedef struct {
    size_t dim;
    int64_t rows, nonfinite; /* summed; left out, for a NaN or an infinity in them */
    double *mean;            /* dim numbers: of the rows that are summed; zeros if there are none */
    /* dim x dim, of which the triangle right of the diagonal is filled: sums over rows of
     * x[i] * x[j], x being the row times 2^-exponent, less the mean if centred. */
    double *matrix;
    int exponent;        /* 0 but for numbers whose squares would leave the range of float */
    double noise;        /* eigenvalues of matrix below this may be nothing but rounding */
    uint64_t *bad;       /* one bit for each row: it was left out */
    size_t matrix_bytes; /* of the memory behind these */
    size_t mean_bytes, bad_bytes;
} embla_gram;

/* Reads the table twice. The same bits for any number of threads. */
EMBLA_CHECKED embla_status embla_gram_of(const embla_table *table, bool centred, int threads,
                                         embla_gram *out);
void embla_gram_free(embla_gram *gram);

static inline bool embla_gram_left_out(const embla_gram *gram, int64_t row)
{
    return gram->bad[row / 64] >> (row % 64) & 1;
}

#endif
