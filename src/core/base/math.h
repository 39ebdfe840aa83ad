/* SPDX-License-Identifier: Apache-2.0 */
/* Exponentials, hyperbolic tangents, maxima and sums of rows of numbers.
 *
 * These are bodies (isa.h), compiled into the loops of each instruction set. They use only
 * operations that IEEE 754 rounds exactly (+ - * /) and operations on bits: every set gives the
 * same bits.
 *
 * Compilers turn a condition beside a polynomial into a branch and then make no vectors. So
 * conditions are masks (embla_select), and a row is clamped in a loop of its own.
 */
#ifndef EMBLA_BASE_MATH_H
#define EMBLA_BASE_MATH_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/half.h"
#include "base/isa.h"

/* a if the condition is true, otherwise b, without a branch. */
EMBLA_BODY float embla_select(bool condition, float a, float b)
{
    uint32_t mask = 0u - (uint32_t)condition;
    return embla_float((embla_bits(a) & mask) | (embla_bits(b) & ~mask));
}

/* ---- exponentials in float ---- */

/* e^x for x in -88 .. 89 (or NaN), relative error below 1.2e-7: 2^n times a polynomial of the
 * rest r in -ln(2)/2 .. ln(2)/2 (Cephes' expf). Adding 1.5 * 2^23 leaves n in the last bits; ln(2)
 * is subtracted in two parts. 2^-127 comes out as 0, 2^128 as infinity. */
EMBLA_BODY float embla_exp_near(float x)
{
    const float magic = 12582912.0f;
    float shifted = x * 1.44269504f + magic, n = shifted - magic;
    float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * (r * r) + r + 1.0f;
    return p * embla_float((embla_bits(shifted) - embla_bits(magic) + 127u) << 23);
}

/* x limited to the range of embla_exp_near; a NaN stays. */
EMBLA_BODY float embla_exp_clamp(float x)
{
    x = embla_select(x < -88.0f, -88.0f, x);
    return embla_select(x > 89.0f, 89.0f, x);
}

/* out = e^(x - base) for n numbers; out may be x. Exactly 1 at 0. Subnormal results are less
 * exact; from -87.69 down and at -infinity the result is 0, from 88.38 up it is infinity. */
EMBLA_BODY void embla_exp_row_f32(const float *x, size_t n, float base, float *out)
{
    for (size_t i = 0; i < n; i++) out[i] = embla_exp_clamp(x[i] - base);
    for (size_t i = 0; i < n; i++) out[i] = embla_exp_near(out[i]);
}

/* ---- hyperbolic tangents ---- */

/* tanh with a relative error below 2e-7. Below 0.625 an odd polynomial (Cephes' tanhf), above
 * it 1 - 2 / (e^2x + 1); from 9.1 on it is 1. */
EMBLA_BODY float embla_tanh(float x)
{
    float size = embla_float(embla_bits(x) & 0x7fffffffu);
    float a = embla_select(size < 10.0f, size, 10.0f); /* a NaN is replaced by 10 until the end */
    float z = a * a;
    float p = -5.70498872745e-3f;
    p = p * z + 2.06390887954e-2f;
    p = p * z - 5.37397155531e-2f;
    p = p * z + 1.33314422036e-1f;
    p = p * z - 3.33332819422e-1f;
    p = p * z * a + a;
    float q = 1.0f - 2.0f / (embla_exp_near(a + a) + 1.0f);
    float t = embla_select(a < 0.625f, p, q);
    t = embla_float(embla_bits(t) | (embla_bits(x) & 0x80000000u));
    return embla_select(x != x, x, t);
}

/* x = tanh(x) for n numbers, in place. */
EMBLA_BODY void embla_tanh_row_f32(float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) x[i] = embla_tanh(x[i]);
}

/* ---- exponentials in double, for sums of probabilities ---- */

/* e^x for x <= 0, relative error below 1e-14; 0 from -708 down and for NaN. 2^n times the
 * exponential series of the rest; n as in embla_exp_near. */
EMBLA_BODY double embla_exp_below(double x)
{
    double c = x > -708.0 ? x : -708.0;
    double shifted = c * 1.4426950408889634 + 0x1.8p52, n = shifted - 0x1.8p52;
    double r = c - n * 0x1.62e42fefap-1 - n * 0x1.cf79abc9e3b3ap-40;
    double p = 1.0 / 39916800.0;
    p = p * r + 1.0 / 3628800.0;
    p = p * r + 1.0 / 362880.0;
    p = p * r + 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    p = p * r + 1.0;
    p = p * r + 1.0;
    uint64_t bits;
    double scale;
    memcpy(&bits, &shifted, sizeof bits);
    bits = (bits + 1023u) << 52;
    memcpy(&scale, &bits, sizeof scale);
    return x > -708.0 ? p * scale : 0.0;
}

/* ---- sums and maxima ---- */

/* A row is summed in 16 partial sums in double. Number i goes to sum i mod 16, and the sums are
 * added as a tree: 8 + 8, 4 + 4, 2 + 2, 1 + 1. */
enum { EMBLA_SUMS = 16 };

EMBLA_BODY double embla_add_tree(double sums[EMBLA_SUMS])
{
    for (size_t half = EMBLA_SUMS / 2; half > 0; half /= 2)
        for (size_t j = 0; j < half; j++) sums[j] += sums[j + half];
    return sums[0];
}

/* Adds n numbers to the sums, the first of them to sum 0. */
EMBLA_BODY void embla_add_row(const float *x, size_t n, double sums[EMBLA_SUMS])
{
    size_t i = 0;
    for (; i + EMBLA_SUMS <= n; i += EMBLA_SUMS)
        for (size_t j = 0; j < EMBLA_SUMS; j++) sums[j] += (double)x[i + j];
    for (size_t j = 0; i + j < n; j++) sums[j] += (double)x[i + j];
}

EMBLA_BODY double embla_sum_row_f32(const float *x, size_t n)
{
    double sums[EMBLA_SUMS] = {0};
    embla_add_row(x, n, sums);
    return embla_add_tree(sums);
}

/* The largest of n numbers; NaN is ignored. -infinity if there is none. */
EMBLA_BODY float embla_max_row_f32(const float *x, size_t n)
{
    enum { SIDE = 64 }; /* independent maxima, so that comparisons do not wait for each other */
    float best[SIDE];
    size_t i = 0;
    for (size_t j = 0; j < SIDE; j++) best[j] = -INFINITY;
    for (; i + SIDE <= n; i += SIDE)
        for (size_t j = 0; j < SIDE; j++) best[j] = x[i + j] > best[j] ? x[i + j] : best[j];
    for (size_t j = 0; i + j < n; j++) best[j] = x[i + j] > best[j] ? x[i + j] : best[j];
    for (size_t half = SIDE / 2; half > 0; half /= 2)
        for (size_t j = 0; j < half; j++)
            best[j] = best[j + half] > best[j] ? best[j + half] : best[j];
    return best[0];
}

#endif
