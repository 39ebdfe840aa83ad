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

/* ---- small products ---- */

enum { EMBLA_VEC_ROWS = 4 }; /* rows of a result that are held in registers */

/* Sums of rows of b: row r of the result, vecs vectors wide, is the sum over t < count of factor
 * (r, t) times row t. If `add`, it is added to out. rows (1 or EMBLA_VEC_ROWS) and vecs (1 or 2)
 * are constants after inlining. */
typedef struct {
    const float *a; /* factor (r, t) is a[r * a_row + t * a_deep] */
    size_t a_row, a_deep;
    const float *b;
    size_t b_stride, count;
} embla_row_sums;

#if EMBLA_ARM

/* Compilers keep vectors of 64 bytes in memory. A vector of the result is a pass of its own: its
 * sums are in 16 registers. */
EMBLA_BODY void embla_sum_rows(const size_t rows, const size_t vecs, const embla_row_sums *s,
                               bool add, float *out, size_t out_stride)
{
    for (size_t c = 0; c < vecs * EMBLA_VEC; c += EMBLA_VEC) {
        float32x4_t sum[EMBLA_VEC_ROWS][4] = {{{0}}};
        for (size_t t = 0; t < s->count; t++) {
            const float *line = s->b + t * s->b_stride + c;
            const float32x4_t x[4] = {vld1q_f32(line), vld1q_f32(line + 4), vld1q_f32(line + 8),
                                      vld1q_f32(line + 12)};
#pragma GCC unroll 4
            for (size_t r = 0; r < rows; r++) {
                const float factor = s->a[r * s->a_row + t * s->a_deep];
#pragma GCC unroll 4
                for (size_t q = 0; q < 4; q++)
                    sum[r][q] = vaddq_f32(sum[r][q], vmulq_n_f32(x[q], factor));
            }
        }
#pragma GCC unroll 4
        for (size_t r = 0; r < rows; r++)
#pragma GCC unroll 4
            for (size_t q = 0; q < 4; q++) {
                float *to = out + r * out_stride + c + 4 * q;
                vst1q_f32(to, add ? vaddq_f32(sum[r][q], vld1q_f32(to)) : sum[r][q]);
            }
    }
}

#else

EMBLA_BODY void embla_sum_rows(const size_t rows, const size_t vecs, const embla_row_sums *s,
                               bool add, float *out, size_t out_stride)
{
    embla_vec_f32 sum[EMBLA_VEC_ROWS][2] = {0};
    for (size_t t = 0; t < s->count; t++) {
        const float *line = s->b + t * s->b_stride;
        for (size_t r = 0; r < rows; r++) {
            float factor = s->a[r * s->a_row + t * s->a_deep];
            for (size_t v = 0; v < vecs; v++)
                sum[r][v] += *(const embla_vec_f32 *)(line + v * EMBLA_VEC) * factor;
        }
    }
    for (size_t r = 0; r < rows; r++)
        for (size_t v = 0; v < vecs; v++) {
            embla_vec_f32 *to = (embla_vec_f32 *)(out + r * out_stride + v * EMBLA_VEC);
            if (add) sum[r][v] += *to;
            *to = sum[r][v];
        }
}

#endif

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
