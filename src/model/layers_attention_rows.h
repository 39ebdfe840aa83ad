/* SPDX-License-Identifier: Apache-2.0 */
/* What attention does to a row of scores, inlined into the loops of each instruction set: the
 * largest, exponentials, their sum; and the dot product of two rows of numbers. A row is whole
 * VECs where n must be a multiple of EMBLA_VEC_f32 (powers_f32, total_f32). See real.h.
 */
#ifndef EMBLA_MODEL_LAYERS_ATTENTION_ROWS_H
#define EMBLA_MODEL_LAYERS_ATTENTION_ROWS_H

#include <math.h>

#include "model/real.h"

/* e^(x - base), in place: the steps of embla_softmax_powers. */
EMBLA_BODY void powers_f32(float *x, size_t n, float base)
{
    const embla_vec_f32 zero = {0};
    for (size_t i = 0; i < n; i += EMBLA_VEC_f32) {
        embla_vec_f32 d = *(embla_vec_f32 *)(x + i) - base, shifted, whole, r, p;
        d = EMBLA_CHOOSE(d < -88.0f, zero - 88.0f, d);
        d = EMBLA_CHOOSE(d > 89.0f, zero + 89.0f, d);
        shifted = d * 1.44269504f + 12582912.0f;
        whole = shifted - 12582912.0f;
        r = (d - whole * 0.693359375f) + whole * 2.12194440e-4f;
        p = r * 1.9875691500e-4f + 1.3981999507e-3f;
        p = p * r + 8.3334519073e-3f;
        p = p * r + 4.1665795894e-2f;
        p = p * r + 1.6666665459e-1f;
        p = p * r + 5.0000001201e-1f;
        p = p * (r * r) + r + 1.0f;
        *(embla_vec_f32 *)(x + i) =
            p * (embla_vec_f32)(((embla_whole)shifted + (127 - 0x4b400000)) << 23);
    }
}

EMBLA_BODY void powers_f64(double *x, size_t n, double base)
{
    for (size_t i = 0; i < n; i++) x[i] = exp(x[i] - base);
}

/* The largest of n; a NaN is passed over. */
EMBLA_BODY float largest_f32(const float *x, size_t n)
{
    embla_vec_f32 most = (embla_vec_f32){0} - INFINITY;
    float lanes[EMBLA_VEC_f32], found = -INFINITY;
    size_t i = 0;
    for (; i + EMBLA_VEC_f32 <= n; i += EMBLA_VEC_f32) {
        embla_vec_f32 here = *(const embla_vec_f32 *)(x + i);
        most = EMBLA_CHOOSE(here > most, here, most);
    }
    *(embla_vec_f32 *)lanes = most;
    for (size_t j = 0; i > 0 && j < EMBLA_VEC_f32; j++) found = lanes[j] > found ? lanes[j] : found;
    for (; i < n; i++) found = x[i] > found ? x[i] : found;
    return found;
}

EMBLA_BODY double largest_f64(const double *x, size_t n)
{
    double most = -INFINITY;
    for (size_t i = 0; i < n; i++) most = x[i] > most ? x[i] : most;
    return most;
}

/* Adds 16 partial sums, the first eight of which have got the last eight: 4 + 4, 2 + 2, 1 + 1. */
EMBLA_BODY double tree(double sums[8])
{
    for (size_t half = 4; half > 0; half /= 2)
        for (size_t j = 0; j < half; j++) sums[j] += sums[j + half];
    return sums[0];
}

#define WIDEN(x) __builtin_convertvector(*(const embla_eight_f32 *)(x), embla_vec_f64)

/* The sum in double: number i goes to sum i mod 16. */
EMBLA_BODY double total_f32(const float *x, size_t n)
{
    embla_vec_f64 low = {0}, high = {0};
    double sums[8];
    for (size_t i = 0; i < n; i += EMBLA_VEC_f32) {
        low += WIDEN(x + i);
        high += WIDEN(x + i + 8);
    }
    *(embla_vec_f64 *)sums = low + high;
    return tree(sums);
}

EMBLA_BODY double total_f64(const double *x, size_t n)
{
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) sum += x[i];
    return sum;
}

/* a . b in double, rounded once; lanes as total_f32. */
EMBLA_BODY float dot_f32(const float *a, const float *b, size_t n)
{
    embla_vec_f64 low = {0}, high = {0};
    double sums[8];
    size_t i = 0;
    for (; i + EMBLA_VEC_f32 <= n; i += EMBLA_VEC_f32) {
        low += WIDEN(a + i) * WIDEN(b + i);
        high += WIDEN(a + i + 8) * WIDEN(b + i + 8);
    }
    *(embla_vec_f64 *)sums = low + high;
    double sum = tree(sums);
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
