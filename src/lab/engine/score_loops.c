/* SPDX-License-Identifier: Apache-2.0 */
/* f32, bf16, f16, i8 and q8_0 are decoded in registers. Lines are prefetched some time before they
 * are needed.
 *
 * Estimates of q8_0 rows multiply integers: bytes of a row with 16-bit numbers of a vector. That
 * takes 7 vector instructions for 32 numbers of a row (product and square); floats take 10. The
 * loops for NEON are in score_loops_neon.c.
 */
#include "engine/score_loops.h"

#include <string.h>

#include "base/half.h"

enum {
    LANES = EMBLA_SCORE_LANES,
    ROWS = EMBLA_SCORE_ROWS,
    AHEAD = 1024,     /* bytes between what is multiplied and what is prefetched */
    Q8 = 2 * LANES,   /* numbers of a block of q8_0.. */
    Q8_BYTES = Q8 + 2 /* ..and its bytes */
};

typedef embla_score_sums sums;

/* Bytes of a number; not for q8_0. */
EMBLA_BODY size_t size_of(embla_dtype dtype)
{
    return dtype == EMBLA_F32 ? 4 : dtype == EMBLA_I8 ? 1 : 2;
}

/* ---- scalar: the reference ---- */

EMBLA_BODY void scalar_lanes(float *lanes, const float *x, const float *y, size_t n)
{
    for (size_t j = 0; j < n; j++) lanes[j] += x[j] * y[j];
}

EMBLA_BODY void scalar_decode(embla_dtype dtype, const char *bytes, size_t n, float scale,
                              float x[LANES])
{
    for (size_t j = 0; j < n; j++) {
        if (dtype == EMBLA_F32) memcpy(&x[j], bytes + 4 * j, sizeof x[j]);
        if (dtype == EMBLA_BF16) x[j] = embla_f32_from_bf16(embla_load_u16(bytes + 2 * j));
        if (dtype == EMBLA_F16) x[j] = embla_f32_from_f16(embla_load_u16(bytes + 2 * j));
        if (dtype == EMBLA_I8) x[j] = (float)((const signed char *)bytes)[j] * scale;
    }
}

EMBLA_BODY void scalar_sums(const sums *s, size_t v, embla_dtype dtype, bool squares)
{
    const float *y = s->vectors + v * s->stride;
    for (size_t r = 0; r < s->side; r++)
        for (size_t i = 0; i < s->n; i += LANES) {
            float x[LANES] = {0};
            size_t n = s->n - i < LANES ? s->n - i : LANES;
            scalar_decode(dtype, s->rows[r] + i * size_of(dtype), n, s->scale, x);
            scalar_lanes(s->lanes + (v * ROWS + r) * LANES, x, y + i, n);
            if (squares) scalar_lanes(s->squares + r * LANES, x, x, n);
        }
}

EMBLA_BODY void scalar_q8_0(const sums *s, size_t v, bool squares)
{
    for (size_t r = 0; r < s->side; r++)
        for (size_t i = 0; i < s->n; i += Q8) {
            const char *block = s->rows[r] + i / Q8 * Q8_BYTES;
            const signed char *q = (const signed char *)block + 2;
            const float *y = s->vectors + v * s->stride + i;
            float d = embla_f32_from_f16(embla_load_u16(block));
            float pairs[LANES], own[LANES], ds[LANES], dds[LANES];
            for (size_t j = 0; j < LANES; j++) {
                float low = (float)q[j], high = (float)q[j + LANES];
                pairs[j] = low * y[j] + high * y[j + LANES];
                own[j] = low * low + high * high;
                ds[j] = d;
                dds[j] = d * d;
            }
            scalar_lanes(s->lanes + (v * ROWS + r) * LANES, pairs, ds, LANES);
            if (squares) scalar_lanes(s->squares + r * LANES, own, dds, LANES);
        }
}

EMBLA_BODY void scalar_all(const sums *s, embla_dtype dtype, bool squares)
{
    if (s->from_zero) memset(s->lanes, 0, s->count * ROWS * LANES * sizeof s->lanes[0]);
    if (s->from_zero && squares) memset(s->squares, 0, ROWS * LANES * sizeof s->squares[0]);
    for (size_t v = 0; v < s->count; v++) {
        if (dtype == EMBLA_Q8_0)
            scalar_q8_0(s, v, squares && v == 0);
        else
            scalar_sums(s, v, dtype, squares && v == 0);
    }
}

#if EMBLA_X86

/* ---- AVX-512: a lane of a sum is a lane of a vector ---- */

/* The sums of some rows with some vectors, and of the rows with themselves. */
typedef struct {
    __m512 dots[EMBLA_SCORE_VECTORS][ROWS], squares[ROWS];
} wide_state;

EMBLA_AVX512 EMBLA_BODY __m512 wide_start(const sums *s, const float *lanes)
{
    return s->from_zero ? _mm512_setzero_ps() : _mm512_loadu_ps(lanes);
}

EMBLA_AVX512 EMBLA_BODY void wide_load(const sums *s, size_t first, size_t side, size_t count,
                                       bool squares, wide_state *state)
{
    const float *lanes = s->lanes + first * ROWS * LANES;
#pragma GCC unroll 4
    for (size_t r = 0; r < side; r++) {
#pragma GCC unroll 4
        for (size_t v = 0; v < count; v++)
            state->dots[v][r] = wide_start(s, lanes + (v * ROWS + r) * LANES);
        if (squares) state->squares[r] = wide_start(s, s->squares + r * LANES);
    }
}

EMBLA_AVX512 EMBLA_BODY void wide_store(const sums *s, size_t first, size_t side, size_t count,
                                        bool squares, const wide_state *state)
{
    float *lanes = s->lanes + first * ROWS * LANES;
#pragma GCC unroll 4
    for (size_t r = 0; r < side; r++) {
#pragma GCC unroll 4
        for (size_t v = 0; v < count; v++)
            _mm512_storeu_ps(lanes + (v * ROWS + r) * LANES, state->dots[v][r]);
        if (squares) _mm512_storeu_ps(s->squares + r * LANES, state->squares[r]);
    }
}

/* sum + x * y. Estimates are fused, which is faster and no less exact; other sums have the bits of
 * every instruction set. */
EMBLA_AVX512 EMBLA_BODY __m512 wide_add(__m512 sum, __m512 x, __m512 y, bool fused)
{
    return fused ? _mm512_fmadd_ps(x, y, sum) : _mm512_add_ps(sum, _mm512_mul_ps(x, y));
}

/* Sixteen signed bytes as floats. */
EMBLA_AVX512 EMBLA_BODY __m512 wide_bytes(const char *bytes)
{
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const void *)bytes)));
}

/* Sixteen numbers of a row. */
EMBLA_AVX512 EMBLA_BODY __m512 wide_decode(embla_dtype dtype, const char *bytes, float scale)
{
    if (dtype == EMBLA_F32) return _mm512_loadu_ps(bytes);
    if (dtype == EMBLA_I8) return _mm512_mul_ps(wide_bytes(bytes), _mm512_set1_ps(scale));
    __m256i half = _mm256_loadu_si256((const void *)bytes);
    if (dtype == EMBLA_F16) return _mm512_cvtph_ps(half);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
}

/* The n < 16 numbers at the end of a row; the other lanes are 0. */
EMBLA_AVX512 EMBLA_BODY __m512 wide_decode_end(embla_dtype dtype, const char *bytes, size_t n,
                                               float scale)
{
    const __mmask16 first = (__mmask16)((1u << n) - 1);
    if (dtype == EMBLA_F32) return _mm512_maskz_loadu_ps(first, bytes);
    char copy[2 * LANES] = {0};
    memcpy(copy, bytes, n * size_of(dtype));
    return wide_decode(dtype, copy, scale);
}

/* Adds the numbers at the end of each row. */
EMBLA_AVX512 EMBLA_BODY void wide_end(const sums *s, size_t first, size_t side, size_t count,
                                      embla_dtype dtype, bool squares, wide_state *state)
{
    const size_t rest = s->n % LANES, at = s->n - rest;
    const __mmask16 mask = (__mmask16)((1u << rest) - 1);
#pragma GCC unroll 4
    for (size_t r = 0; r < side; r++) {
        __m512 x = wide_decode_end(dtype, s->rows[r] + at * size_of(dtype), rest, s->scale);
        if (squares) state->squares[r] = wide_add(state->squares[r], x, x, true);
#pragma GCC unroll 4
        for (size_t v = 0; v < count; v++) {
            __m512 h = _mm512_maskz_loadu_ps(mask, s->vectors + (first + v) * s->stride + at);
            state->dots[v][r] = wide_add(state->dots[v][r], x, h, squares);
        }
    }
}

/* side, count, dtype and squares are constants where this is inlined, so that all sums are in
 * registers. */
EMBLA_AVX512 EMBLA_BODY void wide_sums(const sums *s, size_t first, size_t side, size_t count,
                                       embla_dtype dtype, bool squares)
{
    const size_t size = size_of(dtype);
    const float *y = s->vectors + first * s->stride;
    const char *rows[ROWS];
    __m512 x[ROWS];
    wide_state state;
    wide_load(s, first, side, count, squares, &state);
#pragma GCC unroll 4
    for (size_t r = 0; r < side; r++) rows[r] = s->rows[r];
    for (size_t i = 0; i + LANES <= s->n; i += LANES) {
#pragma GCC unroll 4
        for (size_t r = 0; r < side; r++) {
            x[r] = wide_decode(dtype, rows[r] + i * size, s->scale);
            if (i * size % EMBLA_LINE == 0) __builtin_prefetch(rows[r] + i * size + AHEAD);
            if (squares) state.squares[r] = wide_add(state.squares[r], x[r], x[r], true);
        }
#pragma GCC unroll 4
        for (size_t v = 0; v < count; v++) {
            __m512 h = _mm512_loadu_ps(y + v * s->stride + i);
#pragma GCC unroll 4
            for (size_t r = 0; r < side; r++)
                state.dots[v][r] = wide_add(state.dots[v][r], x[r], h, squares);
        }
    }
    if (s->n % LANES > 0) wide_end(s, first, side, count, dtype, squares, &state);
    wide_store(s, first, side, count, squares, &state);
}

/* The scales of a block of each row, then their squares. They are converted together, because there
 * are too few ports for shuffles, and go through memory, from where a broadcast is free. */
EMBLA_AVX512 EMBLA_BODY void wide_scales(const char *const *rows, size_t at, size_t side,
                                         bool squares, float d[2 * ROWS])
{
    uint64_t halves = 0;
#pragma GCC unroll 4
    for (size_t r = 0; r < side; r++) halves |= (uint64_t)embla_load_u16(rows[r] + at) << 16 * r;
    __m128 scales = _mm_cvtph_ps(_mm_cvtsi64_si128((long long)halves));
    _mm_storeu_ps(d, scales);
    if (squares) _mm_storeu_ps(d + ROWS, _mm_mul_ps(scales, scales));
    __asm__("" : "+m"(*(float(*)[2 * ROWS]) d));
}

EMBLA_AVX512 EMBLA_BODY void wide_q8_0(const sums *s, size_t first, size_t side, size_t count)
{
    const float *y = s->vectors + first * s->stride;
    const char *rows[ROWS];
    __m512 low[ROWS], high[ROWS];
    wide_state state;
    wide_load(s, first, side, count, false, &state);
#pragma GCC unroll 4
    for (size_t r = 0; r < side; r++) rows[r] = s->rows[r];
    const size_t end = s->n / Q8 * Q8_BYTES;
    for (size_t at = 0; at < end; at += Q8_BYTES, y += Q8) {
        float d[2 * ROWS];
        wide_scales(rows, at, side, false, d);
#pragma GCC unroll 4
        for (size_t r = 0; r < side; r++) {
            __builtin_prefetch(rows[r] + at + AHEAD);
            low[r] = wide_bytes(rows[r] + at + 2);
            high[r] = wide_bytes(rows[r] + at + 2 + LANES);
        }
#pragma GCC unroll 4
        for (size_t v = 0; v < count; v++) {
            __m512 h = _mm512_loadu_ps(y + v * s->stride);
            __m512 g = _mm512_loadu_ps(y + v * s->stride + LANES);
#pragma GCC unroll 4
            for (size_t r = 0; r < side; r++) {
                __m512 pairs = _mm512_add_ps(_mm512_mul_ps(low[r], h), _mm512_mul_ps(high[r], g));
                state.dots[v][r] = wide_add(state.dots[v][r], pairs, _mm512_set1_ps(d[r]), false);
            }
        }
    }
    wide_store(s, first, side, count, false, &state);
}

/* Products of integers, added in pairs, as floats: below 2^24 in magnitude, so exact. */
EMBLA_AVX512 EMBLA_BODY __m512 wide_pairs(__m512i x, __m512i y)
{
    return _mm512_cvtepi32_ps(_mm512_madd_epi16(x, y));
}

EMBLA_AVX512 EMBLA_BODY void wide_q8_0_whole(const sums *s, size_t first, size_t side, size_t count)
{
    const int16_t *y = s->whole + first * s->stride;
    const char *rows[ROWS];
    __m512i x[ROWS];
    wide_state state;
    wide_load(s, first, side, count, true, &state);
#pragma GCC unroll 4
    for (size_t r = 0; r < side; r++) rows[r] = s->rows[r];
    const size_t end = s->n / Q8 * Q8_BYTES;
    for (size_t at = 0; at < end; at += Q8_BYTES, y += Q8) {
        float d[2 * ROWS];
        wide_scales(rows, at, side, true, d);
#pragma GCC unroll 4
        for (size_t r = 0; r < side; r++) {
            __builtin_prefetch(rows[r] + at + AHEAD);
            x[r] = _mm512_cvtepi8_epi16(_mm256_loadu_si256((const void *)(rows[r] + at + 2)));
            state.squares[r] = _mm512_fmadd_ps(wide_pairs(x[r], x[r]), _mm512_set1_ps(d[ROWS + r]),
                                               state.squares[r]);
        }
#pragma GCC unroll 4
        for (size_t v = 0; v < count; v++) {
            __m512i h = _mm512_loadu_si512(y + v * s->stride);
#pragma GCC unroll 4
            for (size_t r = 0; r < side; r++)
                state.dots[v][r] =
                    _mm512_fmadd_ps(wide_pairs(x[r], h), _mm512_set1_ps(d[r]), state.dots[v][r]);
        }
    }
    wide_store(s, first, side, count, true, &state);
}

EMBLA_AVX512 EMBLA_BODY void wide_some(const sums *s, size_t first, size_t side, size_t count,
                                       embla_dtype dtype, bool squares)
{
    if (dtype == EMBLA_Q8_0 && squares)
        wide_q8_0_whole(s, first, side, count);
    else if (dtype == EMBLA_Q8_0)
        wide_q8_0(s, first, side, count);
    else
        wide_sums(s, first, side, count, dtype, squares);
}

EMBLA_AVX512 EMBLA_BODY void wide_all(const sums *s, embla_dtype dtype, bool squares)
{
    if (s->side == ROWS && s->count == EMBLA_SCORE_VECTORS) {
        wide_some(s, 0, ROWS, EMBLA_SCORE_VECTORS, dtype, squares);
        return;
    }
    for (size_t v = 0; v < s->count; v++) {
        const bool own = squares && v == 0;
        if (s->side == ROWS && own)
            wide_some(s, v, ROWS, 1, dtype, true);
        else if (s->side == ROWS)
            wide_some(s, v, ROWS, 1, dtype, false);
        else if (own)
            wide_some(s, v, 1, 1, dtype, true);
        else
            wide_some(s, v, 1, 1, dtype, false);
    }
}

/* ---- AVX2: a sum needs two vectors. There are only enough registers for the sums of one vector,
 * so vectors are processed one after the other; from the second on, rows come from a cache. The two
 * halves of a square share their lanes. ---- */

enum { HALF = LANES / 2 };

typedef struct {
    __m256 low[ROWS], high[ROWS], squares[ROWS];
} narrow_state;

EMBLA_AVX2 EMBLA_BODY __m256 narrow_start(const sums *s, const float *lanes)
{
    return s->from_zero ? _mm256_setzero_ps() : _mm256_loadu_ps(lanes);
}

EMBLA_AVX2 EMBLA_BODY void narrow_load(const sums *s, size_t v, size_t side, bool squares,
                                       narrow_state *state)
{
    const float *lanes = s->lanes + v * ROWS * LANES;
#pragma GCC unroll 4
    for (size_t r = 0; r < side; r++) {
        state->low[r] = narrow_start(s, lanes + r * LANES);
        state->high[r] = narrow_start(s, lanes + r * LANES + HALF);
        if (squares) state->squares[r] = narrow_start(s, s->squares + r * LANES);
    }
}

EMBLA_AVX2 EMBLA_BODY void narrow_store(const sums *s, size_t v, size_t side, bool squares,
                                        const narrow_state *state)
{
    float *lanes = s->lanes + v * ROWS * LANES;
#pragma GCC unroll 4
    for (size_t r = 0; r < side; r++) {
        _mm256_storeu_ps(lanes + r * LANES, state->low[r]);
        _mm256_storeu_ps(lanes + r * LANES + HALF, state->high[r]);
        if (squares) {
            _mm256_storeu_ps(s->squares + r * LANES, state->squares[r]);
            if (s->from_zero) _mm256_storeu_ps(s->squares + r * LANES + HALF, _mm256_setzero_ps());
        }
    }
}

/* Eight signed bytes as floats. */
EMBLA_AVX2 EMBLA_BODY __m256 narrow_bytes(const char *bytes)
{
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const void *)bytes)));
}

/* Eight numbers of a row. */
EMBLA_AVX2 EMBLA_BODY __m256 narrow_decode(embla_dtype dtype, const char *bytes, float scale)
{
    if (dtype == EMBLA_F32) return _mm256_loadu_ps((const float *)(const void *)bytes);
    if (dtype == EMBLA_I8) return _mm256_mul_ps(narrow_bytes(bytes), _mm256_set1_ps(scale));
    __m128i half = _mm_loadu_si128((const void *)bytes);
    if (dtype == EMBLA_F16) return _mm256_cvtph_ps(half);
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16));
}

/* a * a + b * b */
EMBLA_AVX2 EMBLA_BODY __m256 narrow_squares(__m256 a, __m256 b)
{
    return _mm256_add_ps(_mm256_mul_ps(a, a), _mm256_mul_ps(b, b));
}

/* Adds the products of 16 numbers of row r with 16 of a vector. */
EMBLA_AVX2 EMBLA_BODY void narrow_add(narrow_state *state, size_t r, embla_dtype dtype,
                                      const char *at, float scale, const float *y, bool squares)
{
    __m256 low = narrow_decode(dtype, at, scale);
    __m256 high = narrow_decode(dtype, at + HALF * size_of(dtype), scale);
    state->low[r] = _mm256_add_ps(state->low[r], _mm256_mul_ps(low, _mm256_loadu_ps(y)));
    state->high[r] = _mm256_add_ps(state->high[r], _mm256_mul_ps(high, _mm256_loadu_ps(y + HALF)));
    if (squares) state->squares[r] = _mm256_add_ps(state->squares[r], narrow_squares(low, high));
}

EMBLA_AVX2 EMBLA_BODY void narrow_sums(const sums *s, size_t v, size_t side, embla_dtype dtype,
                                       bool squares)
{
    const size_t size = size_of(dtype), rest = s->n % LANES, whole = s->n - rest;
    const float *y = s->vectors + v * s->stride;
    narrow_state state;
    narrow_load(s, v, side, squares, &state);
    for (size_t i = 0; i < whole; i += LANES) {
#pragma GCC unroll 4
        for (size_t r = 0; r < side; r++) {
            const char *at = s->rows[r] + i * size;
            __builtin_prefetch(at + AHEAD);
            narrow_add(&state, r, dtype, at, s->scale, y + i, squares);
        }
    }
    if (rest > 0) { /* the end of each row, followed by zeros */
        float end[LANES] = {0};
        memcpy(end, y + whole, rest * sizeof end[0]);
#pragma GCC unroll 4
        for (size_t r = 0; r < side; r++) {
            char copy[LANES * sizeof(float)] = {0};
            memcpy(copy, s->rows[r] + whole * size, rest * size);
            narrow_add(&state, r, dtype, copy, s->scale, end, squares);
        }
    }
    narrow_store(s, v, side, squares, &state);
}

/* Numbers j to j + 7 and j + 16 to j + 23 of a block, at bytes: their products with y, which is at
 * number j, added in pairs. */
EMBLA_AVX2 EMBLA_BODY __m256 narrow_pairs(const char *bytes, const float *y)
{
    return _mm256_add_ps(_mm256_mul_ps(narrow_bytes(bytes), _mm256_loadu_ps(y)),
                         _mm256_mul_ps(narrow_bytes(bytes + LANES), _mm256_loadu_ps(y + LANES)));
}

EMBLA_AVX2 EMBLA_BODY void narrow_q8_0(const sums *s, size_t v, size_t side)
{
    const float *y = s->vectors + v * s->stride;
    narrow_state state;
    narrow_load(s, v, side, false, &state);
    for (size_t i = 0; i < s->n; i += Q8) {
#pragma GCC unroll 4
        for (size_t r = 0; r < side; r++) {
            const char *block = s->rows[r] + i / Q8 * Q8_BYTES;
            const __m256 d = _mm256_cvtph_ps(_mm_set1_epi16((short)embla_load_u16(block)));
            __m256 low = narrow_pairs(block + 2, y + i);
            __m256 high = narrow_pairs(block + 2 + HALF, y + i + HALF);
            __builtin_prefetch(block + AHEAD);
            state.low[r] = _mm256_add_ps(state.low[r], _mm256_mul_ps(low, d));
            state.high[r] = _mm256_add_ps(state.high[r], _mm256_mul_ps(high, d));
        }
    }
    narrow_store(s, v, side, false, &state);
}

/* Products of 32 integers, added in fours, as floats: at most 4 * 128 * 32,767 in magnitude, which
 * is below 2^24, so exact. */
EMBLA_AVX2 EMBLA_BODY __m256 narrow_fours(const __m256i x[2], const __m256i y[2])
{
    return _mm256_cvtepi32_ps(
        _mm256_add_epi32(_mm256_madd_epi16(x[0], y[0]), _mm256_madd_epi16(x[1], y[1])));
}

EMBLA_AVX2 EMBLA_BODY void narrow_q8_0_whole(const sums *s, size_t v, size_t side)
{
    const int16_t *y = s->whole + v * s->stride;
    narrow_state state;
    narrow_load(s, v, side, true, &state);
    for (size_t i = 0; i < s->n; i += Q8) {
        const __m256i h[2] = {_mm256_loadu_si256((const void *)(y + i)),
                              _mm256_loadu_si256((const void *)(y + i + LANES))};
#pragma GCC unroll 4
        for (size_t r = 0; r < side; r++) {
            const char *block = s->rows[r] + i / Q8 * Q8_BYTES, *q = block + 2;
            const __m256 d = _mm256_cvtph_ps(_mm_set1_epi16((short)embla_load_u16(block)));
            const __m256i x[2] = {_mm256_cvtepi8_epi16(_mm_loadu_si128((const void *)q)),
                                  _mm256_cvtepi8_epi16(_mm_loadu_si128((const void *)(q + LANES)))};
            __builtin_prefetch(block + AHEAD);
            state.low[r] = _mm256_add_ps(state.low[r], _mm256_mul_ps(narrow_fours(x, h), d));
            state.squares[r] = _mm256_add_ps(
                state.squares[r], _mm256_mul_ps(narrow_fours(x, x), _mm256_mul_ps(d, d)));
        }
    }
    narrow_store(s, v, side, true, &state);
}

EMBLA_AVX2 EMBLA_BODY void narrow_some(const sums *s, size_t v, size_t side, embla_dtype dtype,
                                       bool squares)
{
    if (dtype == EMBLA_Q8_0 && squares)
        narrow_q8_0_whole(s, v, side);
    else if (dtype == EMBLA_Q8_0)
        narrow_q8_0(s, v, side);
    else
        narrow_sums(s, v, side, dtype, squares);
}

EMBLA_AVX2 EMBLA_BODY void narrow_all(const sums *s, embla_dtype dtype, bool squares)
{
    for (size_t v = 0; v < s->count; v++) {
        const bool own = squares && v == 0;
        if (s->side == ROWS && own)
            narrow_some(s, v, ROWS, dtype, true);
        else if (s->side == ROWS)
            narrow_some(s, v, ROWS, dtype, false);
        else if (own)
            narrow_some(s, v, 1, dtype, true);
        else
            narrow_some(s, v, 1, dtype, false);
    }
}
#endif

/* ---- the loops of each dtype and instruction set ---- */

#define LOOP(name, TARGET, all, dtype)                                                             \
    TARGET static void name(const sums *s)                                                         \
    {                                                                                              \
        if (s->squares)                                                                            \
            all(s, dtype, true);                                                                   \
        else                                                                                       \
            all(s, dtype, false);                                                                  \
    }
#if EMBLA_X86
#define LOOPS(name, dtype)                                                                         \
    LOOP(name##_scalar, , scalar_all, dtype)                                                       \
    LOOP(name##_avx2, EMBLA_AVX2, narrow_all, dtype)                                               \
    LOOP(name##_avx512, EMBLA_AVX512, wide_all, dtype)
#else
#define LOOPS(name, dtype) LOOP(name##_scalar, , scalar_all, dtype)
#endif

#define SETS(name)                                                                                 \
    EMBLA_ISA_TABLE(name##_scalar, embla_score_##name##_neon, name##_avx2, name##_avx512)

LOOPS(f32, EMBLA_F32)
LOOPS(bf16, EMBLA_BF16)
LOOPS(f16, EMBLA_F16)
LOOPS(i8, EMBLA_I8)
LOOPS(q8_0, EMBLA_Q8_0)

embla_score_loop *embla_score_loop_for(embla_dtype dtype, embla_isa isa)
{
    static embla_score_loop *const loops[][EMBLA_ISA_COUNT] = {[EMBLA_F32] = SETS(f32),
                                                               [EMBLA_BF16] = SETS(bf16),
                                                               [EMBLA_F16] = SETS(f16),
                                                               [EMBLA_I8] = SETS(i8),
                                                               [EMBLA_Q8_0] = SETS(q8_0)};
    return (size_t)dtype < sizeof loops / sizeof loops[0] ? EMBLA_ISA_PICK(loops[dtype], isa)
                                                          : NULL;
}
