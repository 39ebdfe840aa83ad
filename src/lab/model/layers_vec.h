/* SPDX-License-Identifier: Apache-2.0 */
/* Vectors as the compilers know them (vector extensions), for loops that EMBLA_ISA_FUNCTION
 * (base/isa.h) compiles for each instruction set. 64 bytes are one register of AVX-512, two of
 * AVX2, four of SSE. + - * / of them are those of their numbers, so that each set gives the same
 * bits. They are never passed to a function or returned.
 */
#ifndef EMBLA_MODEL_LAYERS_VEC_H
#define EMBLA_MODEL_LAYERS_VEC_H

#include <stddef.h>
#include <stdint.h>

#include "base/isa.h"
#include "base/kernels.h"
#include "base/math.h"

enum { EMBLA_VEC = 16 }; /* floats in an embla_vec_f32 */

/* Read and written where they lie, on any boundary. */
typedef float embla_vec_f32 __attribute__((vector_size(64), aligned(sizeof(float)), may_alias));
typedef double embla_vec_f64 __attribute__((vector_size(64), aligned(sizeof(double)), may_alias));
/* As many floats as an embla_vec_f64 has doubles, and these floats as doubles. */
typedef float embla_eight_f32 __attribute__((vector_size(32), aligned(sizeof(float)), may_alias));
#define EMBLA_WIDEN(x) __builtin_convertvector(*(const embla_eight_f32 *)(x), embla_vec_f64)

/* ---- transposing ---- */

/* Eight numbers of a and b, chosen by their index in both. */
#ifdef __clang__
#define EMBLA_SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define EMBLA_SHUFFLE(a, b, ...)                                                                   \
    __builtin_shuffle(a, b, (int32_t __attribute__((vector_size(32)))){__VA_ARGS__})
#endif

/* Transposes 8 x 8 numbers: swaps blocks of 4, then of 2, then of 1. */
EMBLA_BODY void embla_transpose_8x8(const float *x, size_t stride, float *out, size_t out_stride)
{
    embla_eight_f32 a[8], b[8];
    for (size_t i = 0; i < 8; i++) a[i] = *(const embla_eight_f32 *)(x + i * stride);
    for (size_t i = 0; i < 4; i++) {
        b[i] = EMBLA_SHUFFLE(a[i], a[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
        b[i + 4] = EMBLA_SHUFFLE(a[i], a[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
    }
    for (size_t j = 0; j < 4; j++) {
        size_t i = j / 2 * 4 + j % 2;
        a[i] = EMBLA_SHUFFLE(b[i], b[i + 2], 0, 1, 8, 9, 4, 5, 12, 13);
        a[i + 2] = EMBLA_SHUFFLE(b[i], b[i + 2], 2, 3, 10, 11, 6, 7, 14, 15);
    }
    for (size_t i = 0; i < 8; i += 2) {
        *(embla_eight_f32 *)(out + i * out_stride) =
            EMBLA_SHUFFLE(a[i], a[i + 1], 0, 8, 2, 10, 4, 12, 6, 14);
        *(embla_eight_f32 *)(out + (i + 1) * out_stride) =
            EMBLA_SHUFFLE(a[i], a[i + 1], 1, 9, 3, 11, 5, 13, 7, 15);
    }
}

/* out (n x m) = x (m x n) transposed. */
EMBLA_BODY void embla_transpose(const float *x, size_t stride, size_t m, size_t n, float *out,
                                size_t out_stride)
{
    size_t i = 0;
    for (; i + 8 <= m; i += 8) {
        size_t j = 0;
        for (; j + 8 <= n; j += 8)
            embla_transpose_8x8(x + i * stride + j, stride, out + j * out_stride + i, out_stride);
        for (; j < n; j++)
            for (size_t r = i; r < i + 8; r++) out[j * out_stride + r] = x[r * stride + j];
    }
    for (; i < m; i++)
        for (size_t j = 0; j < n; j++) out[j * out_stride + i] = x[i * stride + j];
}

#endif
