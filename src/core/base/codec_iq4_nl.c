/* SPDX-License-Identifier: Apache-2.0 */
/* ggml's iq4_nl. A block of 18 bytes holds 32 numbers:
 *
 *   0..1   d, an f16
 *   2..17  q[16]; number i is the low half of q[i], number i+16 the high half
 *                                        number = d * levels[half]
 *
 * The 16 levels are closer together near zero, where most numbers of a model are. d * level has at
 * most 18 bits, so it is exact.
 *
 * Encoding, as in ggml's reference without weights: d0 is the number of largest magnitude divided
 * by levels[0]. Each number gets the level nearest to x / d0, ties to the upper level. Then d is
 * the best fit for these levels, by least squares with weights x^2. Sums are floats, in order. If
 * the largest magnitude is below 1e-15, all numbers are 0. For NaN, infinity or a d that overflows
 * f16, all numbers of the block decode to NaN, as in q8_0.
 */
#include <math.h>

#include "base/codec_neon.h"
#include "base/dtype.h"
#include "base/half.h"

enum { BLOCK = 32, BLOCK_BYTES = 18, HALF = 16, LEVELS = 16, LEVEL_OF_ZERO = 8 };

#define LEAST_MAGNITUDE 1e-15f /* ggml's */

static const signed char levels[LEVELS] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                           1,    13,   25,  38,  53,  69,  89,  113};

static void iq4_nl_decode(const void *in, size_t n, float scale, embla_write_mode mode, float *out)
{
    (void)mode;
    const unsigned char *block = in;
    (void)scale;
    for (size_t i = 0; i < n; i += BLOCK, block += BLOCK_BYTES) {
        float d = embla_f32_from_f16(embla_load_u16(block));
        for (size_t j = 0; j < HALF; j++) {
            out[i + j] = d * (float)levels[block[2 + j] & 15];
            out[i + j + HALF] = d * (float)levels[block[2 + j] >> 4];
        }
    }
}

/* The levels nearest to x[0 .. 31]: counts the pairs of neighbours whose upper level is at least as
 * near. */
static void nearest_levels(const float x[BLOCK], unsigned char level[BLOCK])
{
    int count[BLOCK] = {0};
    for (size_t k = 1; k < LEVELS; k++)
        for (size_t j = 0; j < BLOCK; j++)
            count[j] += !(x[j] - (float)levels[k - 1] < (float)levels[k] - x[j]);
    for (size_t j = 0; j < BLOCK; j++) level[j] = (unsigned char)count[j];
}

/* Computes d of a block and the level of each number. d is not finite if a number is not. */
static float fit(const float *in, unsigned char level[BLOCK])
{
    float scaled[BLOCK], largest = 0.0f, qx = 0.0f,
                         qq = 0.0f; /* largest: magnitude, with its sign */
    bool finite = true;
    for (size_t j = 0; j < BLOCK; j++) {
        finite = finite && isfinite(in[j]);
        if (fabsf(in[j]) > fabsf(largest)) largest = in[j];
        level[j] = LEVEL_OF_ZERO; /* if d is 0: with this level the result is not minus zero */
    }
    if (!finite) return INFINITY;
    if (fabsf(largest) < LEAST_MAGNITUDE) return 0.0f;
    float inverse = 1.0f / (largest / (float)levels[0]);
    for (size_t j = 0; j < BLOCK; j++) scaled[j] = inverse * in[j];
    nearest_levels(scaled, level);
    for (size_t j = 0; j < BLOCK; j++) {
        float q = (float)levels[level[j]], weight = in[j] * in[j];
        qx += weight * q * in[j];
        qq += weight * q * q;
    }
    return qx / qq;
}

static void iq4_nl_encode(const float *in, size_t n, float scale, void *out)
{
    unsigned char *block = out;
    (void)scale;
    for (size_t i = 0; i < n; i += BLOCK, block += BLOCK_BYTES) {
        unsigned char level[BLOCK];
        float d = fit(in + i, level);
        bool finite = fabsf(d) < EMBLA_F16_OVERFLOWS; /* false for a NaN */
        embla_store_u16(block, finite ? embla_f16_from_f32(d) : 0x7e00u);
        for (size_t j = 0; j < HALF; j++)
            block[2 + j] = (unsigned char)(finite ? level[j] | level[j + HALF] << 4 : 0);
    }
}

#if EMBLA_X86

EMBLA_AVX2 static void iq4_nl_decode_avx2(const void *in, size_t n, float scale,
                                          embla_write_mode mode, float *out)
{
    const char *block = in;
    const __m128i low_half = _mm_set1_epi8(15);
    const __m128i table = _mm_loadu_si128((const void *)levels);
    (void)scale;
    for (size_t i = 0; i < n; i += BLOCK, block += BLOCK_BYTES) {
        const __m256 d = _mm256_set1_ps(_cvtsh_ss(embla_load_u16(block)));
        __m128i q = _mm_loadu_si128((const void *)(block + 2));
        __m128i low = _mm_shuffle_epi8(table, _mm_and_si128(q, low_half));
        __m128i high = _mm_shuffle_epi8(table, _mm_and_si128(_mm_srli_epi16(q, 4), low_half));
        __m128i eights[4] = {low, _mm_srli_si128(low, 8), high, _mm_srli_si128(high, 8)};
        for (size_t j = 0; j < 4; j++) {
            __m256 x = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(eights[j]));
            embla_put_avx2(out + i + 8 * j, _mm256_mul_ps(d, x), mode);
        }
    }
}

/* A block can contain only 16 different numbers: all are computed, then selected. */
EMBLA_AVX512 static void iq4_nl_decode_avx512(const void *in, size_t n, float scale,
                                              embla_write_mode mode, float *out)
{
    const char *block = in;
    const __m512 table =
        _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const void *)levels)));
    (void)scale;
    for (size_t i = 0; i < n; i += BLOCK, block += BLOCK_BYTES) {
        const __m512 d = _mm512_set1_ps(_cvtsh_ss(embla_load_u16(block)));
        __m512 numbers = _mm512_mul_ps(d, table);
        /* the selection uses only four bits of each index */
        __m512i q = _mm512_cvtepu8_epi32(_mm_loadu_si128((const void *)(block + 2)));
        embla_put_avx512(out + i, _mm512_permutexvar_ps(q, numbers), mode);
        q = _mm512_srli_epi32(q, 4);
        embla_put_avx512(out + i + HALF, _mm512_permutexvar_ps(q, numbers), mode);
    }
}

#endif

#if EMBLA_ARM

static void iq4_nl_decode_neon(const void *in, size_t n, float scale, embla_write_mode mode,
                               float *out)
{
    const unsigned char *block = in;
    const uint8x16_t table = vreinterpretq_u8_s8(vld1q_s8(levels));
    (void)scale;
    for (size_t i = 0; i < n; i += BLOCK, block += BLOCK_BYTES) {
        const float32x4_t d = embla_neon_f16(block);
        const uint8x16_t q = vld1q_u8(block + 2);
        int8x16_t low = vreinterpretq_s8_u8(embla_neon_low_half(table, q));
        int8x16_t high = vreinterpretq_s8_u8(embla_neon_high_half(table, q));
        embla_sixteen_put_times(embla_sixteen_of_bytes(low), d, mode, out + i);
        embla_sixteen_put_times(embla_sixteen_of_bytes(high), d, mode, out + i + HALF);
    }
}

#endif

const embla_codec embla_codec_iq4_nl = {.decode = EMBLA_ISA_TABLE(iq4_nl_decode, iq4_nl_decode_neon,
                                                                  iq4_nl_decode_avx2,
                                                                  iq4_nl_decode_avx512),
                                        .encode = {iq4_nl_encode}};
