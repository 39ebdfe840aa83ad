/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of vectors, column by column, in double: the inner loops of scatter_sum.c.
 */
#ifndef EMBLA_LEARN_SCATTER_LOOPS_H
#define EMBLA_LEARN_SCATTER_LOOPS_H

#include "base/kernels.h"

enum { EMBLA_SCATTER_UNIT = 64 }; /* columns whose squares are summed separately */

typedef struct {
    /* sums (+)= x[0] + x[1] + .. + x[n-1]; `first` means that sums are written, not added to */
    void (*add)(const float *const *x, size_t n, size_t columns, bool first, double *sums,
                embla_fetch *fetch);
    /* adds a finished shard, rounded to float */
    void (*fold)(const double *sums, size_t columns, bool first, double *total);
    void (*divide)(double *sums, size_t columns, double by);
    void (*scale)(double *sums, size_t columns, double by);
    /* the sum of the squares of up to EMBLA_SCATTER_UNIT numbers */
    double (*squares)(const double *x, size_t n);
    /* rounds sums to a row of the result; put_dense adds them to it */
    void (*put)(const double *sums, size_t columns, embla_write_mode mode, float *out);
    void (*put_dense)(const double *sums, size_t columns, float *out, embla_fetch *fetch);
    /* the same for a row of a single vector */
    void (*copy)(const float *x, size_t columns, embla_write_mode mode, float *out,
                 embla_fetch *fetch);
    void (*join)(const float *x, size_t columns, float *out, embla_fetch *vectors,
                 embla_fetch *dense);
} embla_scatter_loops;

extern const embla_scatter_loops *const embla_scatter_loops_of[EMBLA_ISA_COUNT];

#endif
