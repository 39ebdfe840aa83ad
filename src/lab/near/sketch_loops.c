/* SPDX-License-Identifier: Apache-2.0 */
/* Bounds of a block of rows. Levels and numbers of the query are multiplied as bytes: a pair of
 * products is at most 2 x 15 x 127 = 3,810 in magnitude, so sums of eight pairs fit in 16 bits. A
 * step adds two pairs for each row; after FLUSH steps the sums are added to sums of 32 bits. NEON
 * does not add the two products of a pair until then.
 */
#include <string.h>

#include "near/sketch.h"

#if EMBLA_X86
#include <immintrin.h>
#elif EMBLA_ARM
#include <arm_neon.h>
#endif

enum { ROWS = EMBLA_SKETCH_ROWS, STEP = EMBLA_SKETCH_STEP, QUERY = 8, FLUSH = 4 };

/* Bounds from the sums of a block; returns the highest. */
EMBLA_BODY int16_t bound_body(const embla_sketch_terms *t, const int32_t sums[ROWS],
                              const float *restrict factors, const float *restrict errors,
                              int16_t *restrict bounds)
{
    const float centre = t->centre, unit = t->unit, add = t->add, times = t->times;
    int16_t most[ROWS];
    for (size_t i = 0; i < ROWS; i++) {
        float bound = ((float)sums[i] - centre) * unit * factors[i] + (add + times * errors[i]);
        bound *= EMBLA_SKETCH_UNITS;
        bounds[i] = (int16_t)((int32_t)(bound < 32000.0f ? bound : 32000.0f) + 1);
    }
    memcpy(most, bounds, sizeof most);
    for (size_t half = ROWS / 2; half > 0; half /= 2)
        for (size_t j = 0; j < half; j++)
            most[j] = most[half + j] > most[j] ? most[half + j] : most[j];
    return most[0];
}

static int16_t scalar_bound(const embla_sketch_terms *t, const uint8_t *block, const float *factors,
                            const float *errors, int16_t *bounds)
{
    int32_t sums[ROWS] = {0};
    for (size_t s = 0; s < t->steps; s++) {
        const int8_t *low = t->query + s * QUERY, *high = low + QUERY / 2;
        for (size_t i = 0; i < STEP; i++)
            sums[i / 2] +=
                (block[s * STEP + i] & 15) * low[i % 2] + (block[s * STEP + i] >> 4) * high[i % 2];
    }
    return bound_body(t, sums, factors, errors, bounds);
}

#if EMBLA_X86

/* Four bytes of the query, for every row. */
EMBLA_BODY int32_t load_four(const int8_t *query)
{
    int32_t four;
    memcpy(&four, query, sizeof four);
    return four;
}

EMBLA_AVX512 EMBLA_BODY __m512i wide_step(__m512i sums, const uint8_t *bytes, const int8_t *query)
{
    const __m512i mask = _mm512_set1_epi8(15), x = _mm512_loadu_si512(bytes);
    __m512i low = _mm512_set1_epi32(load_four(query));
    __m512i high = _mm512_set1_epi32(load_four(query + QUERY / 2));
    __m512i a = _mm512_maddubs_epi16(_mm512_and_si512(x, mask), low);
    __m512i b = _mm512_maddubs_epi16(_mm512_and_si512(_mm512_srli_epi16(x, 4), mask), high);
    return _mm512_add_epi16(sums, _mm512_add_epi16(a, b));
}

EMBLA_AVX512 static int16_t wide_bound(const embla_sketch_terms *t, const uint8_t *block,
                                       const float *factors, const float *errors, int16_t *bounds)
{
    __m512i first = _mm512_setzero_si512(), second = first; /* rows 0 to 15, rows 16 to 31 */
    int32_t sums[ROWS];
    for (size_t s = 0; s < t->steps; s += FLUSH) {
        size_t end = t->steps - s < FLUSH ? t->steps : s + FLUSH;
        __m512i pairs = _mm512_setzero_si512();
        for (size_t i = s; i < end; i++)
            pairs = wide_step(pairs, block + i * STEP, t->query + i * QUERY);
        __m256i low = _mm512_castsi512_si256(pairs), high = _mm512_extracti64x4_epi64(pairs, 1);
        first = _mm512_add_epi32(first, _mm512_cvtepi16_epi32(low));
        second = _mm512_add_epi32(second, _mm512_cvtepi16_epi32(high));
    }
    _mm512_storeu_si512(sums, first);
    _mm512_storeu_si512(sums + ROWS / 2, second);
    return bound_body(t, sums, factors, errors, bounds);
}

EMBLA_AVX2 EMBLA_BODY __m256i narrow_step(__m256i sums, const uint8_t *bytes, const int8_t *query)
{
    const __m256i mask = _mm256_set1_epi8(15), x = _mm256_loadu_si256((const void *)bytes);
    __m256i low = _mm256_set1_epi32(load_four(query));
    __m256i high = _mm256_set1_epi32(load_four(query + QUERY / 2));
    __m256i a = _mm256_maddubs_epi16(_mm256_and_si256(x, mask), low);
    __m256i b = _mm256_maddubs_epi16(_mm256_and_si256(_mm256_srli_epi16(x, 4), mask), high);
    return _mm256_add_epi16(sums, _mm256_add_epi16(a, b));
}

/* The sums of half a block. */
EMBLA_AVX2 EMBLA_BODY void narrow_sums(const embla_sketch_terms *t, const uint8_t *block,
                                       int32_t sums[ROWS / 2])
{
    __m256i first = _mm256_setzero_si256(), second = first;
    for (size_t s = 0; s < t->steps; s += FLUSH) {
        size_t end = t->steps - s < FLUSH ? t->steps : s + FLUSH;
        __m256i pairs = _mm256_setzero_si256();
        for (size_t i = s; i < end; i++)
            pairs = narrow_step(pairs, block + i * STEP, t->query + i * QUERY);
        __m128i low = _mm256_castsi256_si128(pairs), high = _mm256_extracti128_si256(pairs, 1);
        first = _mm256_add_epi32(first, _mm256_cvtepi16_epi32(low));
        second = _mm256_add_epi32(second, _mm256_cvtepi16_epi32(high));
    }
    _mm256_storeu_si256((void *)sums, first);
    _mm256_storeu_si256((void *)(sums + ROWS / 4), second);
}

EMBLA_AVX2 static int16_t narrow_bound(const embla_sketch_terms *t, const uint8_t *block,
                                       const float *factors, const float *errors, int16_t *bounds)
{
    int32_t sums[ROWS];
    narrow_sums(t, block, sums);
    narrow_sums(t, block + STEP / 2, sums + ROWS / 2);
    return bound_body(t, sums, factors, errors, bounds);
}

#endif

#if EMBLA_ARM

enum { QUARTERS = STEP / 16 };

/* The same two bytes of the query for every row. */
EMBLA_BODY int8x16_t pair_of(const int8_t *query)
{
    int16_t two;
    memcpy(&two, query, sizeof two);
    return vreinterpretq_s8_s16(vdupq_n_s16(two));
}

/* Adds the products of a step: sums 2 k and 2 k + 1 are of bytes 16 k to 16 k + 15. */
EMBLA_BODY void neon_step(int16x8_t sums[2 * QUARTERS], const uint8_t *bytes, const int8_t *query)
{
    const int8x16_t low = pair_of(query), high = pair_of(query + QUERY / 2);
#pragma GCC unroll 4
    for (size_t k = 0; k < QUARTERS; k++) {
        const uint8x16_t x = vld1q_u8(bytes + 16 * k);
        const int8x16_t a = vreinterpretq_s8_u8(vandq_u8(x, vdupq_n_u8(15)));
        const int8x16_t b = vreinterpretq_s8_u8(vshrq_n_u8(x, 4));
        sums[2 * k] = vmlal_s8(sums[2 * k], vget_low_s8(a), vget_low_s8(low));
        sums[2 * k + 1] = vmlal_high_s8(sums[2 * k + 1], a, low);
        sums[2 * k] = vmlal_s8(sums[2 * k], vget_low_s8(b), vget_low_s8(high));
        sums[2 * k + 1] = vmlal_high_s8(sums[2 * k + 1], b, high);
    }
}

static int16_t neon_bound(const embla_sketch_terms *t, const uint8_t *block, const float *factors,
                          const float *errors, int16_t *bounds)
{
    int32x4_t all[2 * QUARTERS] = {0}; /* four rows each */
    int32_t sums[ROWS];
    for (size_t s = 0; s < t->steps; s += FLUSH) {
        size_t end = t->steps - s < FLUSH ? t->steps : s + FLUSH;
        int16x8_t some[2 * QUARTERS] = {0};
        for (size_t i = s; i < end; i++) neon_step(some, block + i * STEP, t->query + i * QUERY);
#pragma GCC unroll 8
        for (size_t k = 0; k < 2 * QUARTERS; k++) all[k] = vpadalq_s16(all[k], some[k]);
    }
#pragma GCC unroll 8
    for (size_t k = 0; k < 2 * QUARTERS; k++) vst1q_s32(sums + 4 * k, all[k]);
    return bound_body(t, sums, factors, errors, bounds);
}

#endif

embla_sketch_bound *const embla_sketch_bounds[EMBLA_ISA_COUNT] =
    EMBLA_ISA_TABLE(scalar_bound, neon_bound, narrow_bound, wide_bound);
