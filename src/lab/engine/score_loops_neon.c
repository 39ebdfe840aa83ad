/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of score_loops.c for NEON. The sixteen lanes of a sum are four vectors. Registers hold
 * the sums of four rows with one vector, or, for estimates, those of two rows with a vector and
 * with themselves; so vectors are processed one after the other.
 */
#include <string.h>

#include "engine/score_loops.h"

#if EMBLA_ARM

#include "base/codec_neon.h"

enum {
    LANES = EMBLA_SCORE_LANES,
    ROWS = EMBLA_SCORE_ROWS,
    TOGETHER = 2,     /* rows, for estimates */
    AHEAD = 1024,     /* bytes between what is multiplied and what is prefetched */
    Q8 = 2 * LANES,   /* numbers of a block of q8_0.. */
    Q8_BYTES = Q8 + 2 /* ..and its bytes */
};

typedef embla_score_sums sums;

typedef embla_sixteen floats16;

/* The sums of some rows with a vector, and with themselves. */
typedef struct {
    floats16 dots[ROWS], squares[TOGETHER];
} state;

EMBLA_BODY floats16 load(const float *x)
{
    return (floats16){{vld1q_f32(x), vld1q_f32(x + 4), vld1q_f32(x + 8), vld1q_f32(x + 12)}};
}

EMBLA_BODY void store(float *out, const floats16 *x)
{
    for (size_t j = 0; j < 4; j++) vst1q_f32(out + 4 * j, x->of[j]);
}

/* sum + x * y. Estimates are fused, as in AVX-512; other sums have the bits of every set. */
EMBLA_BODY float32x4_t add(float32x4_t sum, float32x4_t x, float32x4_t y, bool fused)
{
    return fused ? vfmaq_f32(sum, x, y) : vaddq_f32(sum, vmulq_f32(x, y));
}

EMBLA_BODY void add_all(floats16 *sum, const floats16 *x, const floats16 *y, bool fused)
{
#pragma GCC unroll 4
    for (size_t j = 0; j < 4; j++) sum->of[j] = add(sum->of[j], x->of[j], y->of[j], fused);
}

/* Where a row's lanes are in memory. */
EMBLA_BODY float *lanes_at(const sums *s, size_t v, size_t row)
{
    return s->lanes + (v * ROWS + row) * LANES;
}

EMBLA_BODY void begin(const sums *s, size_t v, size_t row, size_t side, bool squares, state *t)
{
#pragma GCC unroll 4
    for (size_t r = 0; r < side; r++) {
        t->dots[r] = s->from_zero ? (floats16){0} : load(lanes_at(s, v, row + r));
        if (squares)
            t->squares[r] = s->from_zero ? (floats16){0} : load(s->squares + (row + r) * LANES);
    }
}

EMBLA_BODY void finish(const sums *s, size_t v, size_t row, size_t side, bool squares,
                       const state *t)
{
#pragma GCC unroll 4
    for (size_t r = 0; r < side; r++) {
        store(lanes_at(s, v, row + r), &t->dots[r]);
        if (squares) store(s->squares + (row + r) * LANES, &t->squares[r]);
    }
}

/* ---- f32, bf16, f16, i8 ---- */

EMBLA_BODY size_t size_of(embla_dtype dtype)
{
    return dtype == EMBLA_F32 ? 4 : dtype == EMBLA_I8 ? 1 : 2;
}

/* Sixteen numbers of a row. */
EMBLA_BODY floats16 decode(embla_dtype dtype, const char *bytes, float scale)
{
    if (dtype == EMBLA_F32) return load((const float *)(const void *)bytes);
    if (dtype == EMBLA_I8)
        return embla_sixteen_times(embla_sixteen_of_bytes(vld1q_s8((const int8_t *)bytes)),
                                   vdupq_n_f32(scale));
    const uint16x8_t a = embla_neon_u16(bytes), b = embla_neon_u16(bytes + 16);
    return dtype == EMBLA_F16 ? embla_sixteen_of_f16(a, b) : embla_sixteen_of_bf16(a, b);
}

/* side, dtype and squares are constants where this is inlined, so that all sums are in registers.
 */
EMBLA_BODY void plain(const sums *s, size_t v, size_t row, size_t side, embla_dtype dtype,
                      bool squares)
{
    const size_t size = size_of(dtype), rest = s->n % LANES, whole = s->n - rest;
    const float *y = s->vectors + v * s->stride;
    state t;
    begin(s, v, row, side, squares, &t);
    for (size_t i = 0; i < whole; i += LANES) {
        const floats16 h = load(y + i);
#pragma GCC unroll 4
        for (size_t r = 0; r < side; r++) {
            const char *at = s->rows[row + r] + i * size;
            const floats16 x = decode(dtype, at, s->scale);
            __builtin_prefetch(at + AHEAD);
            add_all(&t.dots[r], &x, &h, squares);
            if (squares) add_all(&t.squares[r], &x, &x, true);
        }
    }
    if (rest > 0) { /* the end of each row, followed by zeros */
        float end[LANES] = {0};
        memcpy(end, y + whole, rest * sizeof end[0]);
        const floats16 h = load(end);
#pragma GCC unroll 4
        for (size_t r = 0; r < side; r++) {
            char copy[LANES * sizeof(float)] = {0};
            memcpy(copy, s->rows[row + r] + whole * size, rest * size);
            const floats16 x = decode(dtype, copy, s->scale);
            add_all(&t.dots[r], &x, &h, squares);
            if (squares) add_all(&t.squares[r], &x, &x, true);
        }
    }
    finish(s, v, row, side, squares, &t);
}

/* ---- q8_0 ---- */

EMBLA_BODY void q8_0(const sums *s, size_t v, size_t row, size_t side)
{
    const float *y = s->vectors + v * s->stride;
    state t;
    begin(s, v, row, side, false, &t);
    for (size_t i = 0; i < s->n; i += Q8) {
#pragma GCC unroll 4
        for (size_t r = 0; r < side; r++) {
            const char *block = s->rows[row + r] + i / Q8 * Q8_BYTES;
            const float32x4_t d = embla_neon_f16(block);
            const int8_t *q = (const int8_t *)block + 2;
            const floats16 low = embla_sixteen_of_bytes(vld1q_s8(q));
            const floats16 high = embla_sixteen_of_bytes(vld1q_s8(q + LANES));
            __builtin_prefetch(block + AHEAD);
#pragma GCC unroll 4
            for (size_t j = 0; j < 4; j++) {
                const float *h = y + i + 4 * j;
                float32x4_t pairs = vmulq_f32(low.of[j], vld1q_f32(h));
                pairs = vaddq_f32(pairs, vmulq_f32(high.of[j], vld1q_f32(h + LANES)));
                t.dots[r].of[j] = add(t.dots[r].of[j], pairs, d, false);
            }
        }
    }
    finish(s, v, row, side, false, &t);
}

/* The products of sixteen integers, added in fours, as floats: at most 4 * 128 * 32,767 in
 * magnitude, which is below 2^24, so exact. */
EMBLA_BODY float32x4_t fours(const int16x8_t x[2], const int16x8_t y[2])
{
    int32x4_t sum = vmull_s16(vget_low_s16(x[0]), vget_low_s16(y[0]));
    sum = vmlal_high_s16(sum, x[0], y[0]);
    sum = vmlal_s16(sum, vget_low_s16(x[1]), vget_low_s16(y[1]));
    return vcvtq_f32_s32(vmlal_high_s16(sum, x[1], y[1]));
}

/* Estimates, with integers; two vectors of each sum are enough. */
EMBLA_BODY void q8_0_whole(const sums *s, size_t v, size_t row, size_t side)
{
    const int16_t *y = s->whole + v * s->stride;
    state t;
    begin(s, v, row, side, true, &t);
    for (size_t i = 0; i < s->n; i += Q8) {
#pragma GCC unroll 2
        for (size_t r = 0; r < side; r++) {
            const char *block = s->rows[row + r] + i / Q8 * Q8_BYTES;
            const float32x4_t d = embla_neon_f16(block), dd = vmulq_f32(d, d);
            __builtin_prefetch(block + AHEAD);
#pragma GCC unroll 2
            for (size_t j = 0; j < 2; j++) {
                const int8x16_t q = vld1q_s8((const int8_t *)block + 2 + LANES * j);
                const int16x8_t x[2] = {vmovl_s8(vget_low_s8(q)), vmovl_high_s8(q)};
                const int16x8_t h[2] = {vld1q_s16(y + i + LANES * j),
                                        vld1q_s16(y + i + LANES * j + 8)};
                t.dots[r].of[j] = vfmaq_f32(t.dots[r].of[j], fours(x, h), d);
                t.squares[r].of[j] = vfmaq_f32(t.squares[r].of[j], fours(x, x), dd);
            }
        }
    }
    finish(s, v, row, side, true, &t);
}

/* ---- the loops ---- */

EMBLA_BODY void some(const sums *s, size_t v, size_t row, size_t side, embla_dtype dtype,
                     bool squares)
{
    if (dtype == EMBLA_Q8_0 && squares)
        q8_0_whole(s, v, row, side);
    else if (dtype == EMBLA_Q8_0)
        q8_0(s, v, row, side);
    else
        plain(s, v, row, side, dtype, squares);
}

EMBLA_BODY void all(const sums *s, embla_dtype dtype)
{
    for (size_t v = 0; v < s->count; v++) {
        const bool squares = s->squares && v == 0;
        if (s->side == ROWS && squares)
            for (size_t row = 0; row < ROWS; row += TOGETHER)
                some(s, v, row, TOGETHER, dtype, true);
        else if (s->side == ROWS)
            some(s, v, 0, ROWS, dtype, false);
        else if (squares)
            some(s, v, 0, 1, dtype, true);
        else
            some(s, v, 0, 1, dtype, false);
    }
}

#define LOOP(name, dtype)                                                                          \
    void embla_score_##name##_neon(const embla_score_sums *s)                                      \
    {                                                                                              \
        all(s, dtype);                                                                             \
    }
LOOP(f32, EMBLA_F32)
LOOP(bf16, EMBLA_BF16)
LOOP(f16, EMBLA_F16)
LOOP(i8, EMBLA_I8)
LOOP(q8_0, EMBLA_Q8_0)

#endif
