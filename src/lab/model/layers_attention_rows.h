/* SPDX-License-Identifier: Apache-2.0 */
/* The dot product of two rows of numbers, inlined into the loops of each instruction set. See
 * real.h.
 */
#ifndef EMBLA_MODEL_LAYERS_ATTENTION_ROWS_H
#define EMBLA_MODEL_LAYERS_ATTENTION_ROWS_H

#include "model/real.h"

#define WIDEN(x) __builtin_convertvector(*(const embla_eight_f32 *)(x), embla_vec_f64)

/* a . b in double, rounded once. Groups of 16 numbers go to 16 partial sums, which are added as a
 * tree. The remaining numbers are added in order. */
EMBLA_BODY float dot_f32(const float *a, const float *b, size_t n)
{
    embla_vec_f64 low = {0}, high = {0};
    double sums[EMBLA_SUMS];
    size_t i = 0;
    for (; i + EMBLA_VEC_f32 <= n; i += EMBLA_VEC_f32) {
        low += WIDEN(a + i) * WIDEN(b + i);
        high += WIDEN(a + i + 8) * WIDEN(b + i + 8);
    }
    *(embla_vec_f64 *)sums = low;
    *(embla_vec_f64 *)(sums + 8) = high;
    double sum = embla_add_tree(sums);
    for (; i < n; i++) sum += (double)a[i] * (double)b[i];
    return (float)sum;
}

EMBLA_BODY double dot_f64(const double *a, const double *b, size_t n)
{
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

#endif
