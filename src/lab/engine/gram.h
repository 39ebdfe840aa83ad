/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of products of a table's columns (the Gram matrix), from which its singular values and
 * principal directions are computed. No more than dim x dim numbers are held.
 */
#ifndef EMBLA_ENGINE_GRAM_H
#define EMBLA_ENGINE_GRAM_H

#include "base/status.h"

typedef struct {
    size_t dim;
    int64_t rows,
        nonfinite; /* rows that were summed; rows left out because of a NaN or an infinity */
    double *mean;  /* dim numbers: the mean of the summed rows; zeros if there are none */
    /* dim x dim, upper triangle only: sums over rows of x[i] * x[j], where x is the row times
     * 2^-exponent, minus the mean if centred. */
    double *matrix;
    int exponent;        /* 0 unless squares of the numbers would leave the range of float */
    double noise;        /* eigenvalues of matrix below this may be rounding errors */
    uint64_t *bad;       /* one bit for each row that was left out */
    size_t matrix_bytes; /* size of the memory of these arrays */
    size_t mean_bytes, bad_bytes;
} embla_gram;

typedef struct {
    bool centred;
    bool plain; /* without an engine; so it is, too, if there is none */
    int threads;
} embla_gram_options;

/* Reads the table twice. The bits are the same for any number of threads, and without an engine on
 * every CPU. */
EMBLA_CHECKED embla_status embla_gram_of(const embla_table *table,
                                         const embla_gram_options *options, embla_gram *out);
void embla_gram_free(embla_gram *gram);

static inline bool embla_gram_left_out(const embla_gram *gram, int64_t row)
{
    return gram->bad[row / 64] >> (row % 64) & 1;
}

#endif
