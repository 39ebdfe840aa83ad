/* SPDX-License-Identifier: Apache-2.0 */
/* ggml's q4_1. A block of 20 bytes holds 32 numbers:
 *
 *   0..1   d, an f16
 *   2..3   m, an f16
 *   4..19  q[16]; number i is the low half of q[i], number i+16 the high half;
 *          each half is 0..15            number = d * half + m
 *
 * d * half has at most 15 bits, so it is exact, and the sum is rounded once. A block can contain
 * only 16 different numbers: AVX-512 computes them all, then selects.
 *
 * Encoding, as in ggml's reference: m is the smallest number, d the range divided by 15. Halves are
 * rounded half up, before d and m are rounded to f16. NaN and infinity as in q8_0; the same if d or
 * m overflows f16.
 */
#include <math.h>

#include "base/codec_neon.h"
#include "base/dtype.h"
#include "base/half.h"

enum { BLOCK = 32, BLOCK_BYTES = 20, HALF = 16 };

/* The sum of two NaNs is one or the other, depending on the CPU. So that all sets give the same
 * bits, a NaN in m is copied to d. */
static inline bool is_nan(const void *f16)
{
    return (embla_load_u16(f16) & 0x7fffu) > 0x7c00u;
}

static void q4_1_decode(const void *in, size_t n, float scale, embla_write_mode mode, float *out)
{
    (void)mode;
    const unsigned char *block = in;
    (void)scale;
    for (size_t i = 0; i < n; i += BLOCK, block += BLOCK_BYTES) {
        float m = embla_f32_from_f16(embla_load_u16(block + 2));
        float d = is_nan(block + 2) ? m : embla_f32_from_f16(embla_load_u16(block));
        for (size_t j = 0; j < HALF; j++) {
            out[i + j] = d * (float)(block[4 + j] & 15) + m;
            out[i + j + HALF] = d * (float)(block[4 + j] >> 4) + m;
        }
    }
}

/* (x - m) / d, rounded; 0..15 except for rounding errors. */
static unsigned quarter_byte(float x, float m, float inverse)
{
    float shifted = (x - m) * inverse + 0.5f;
    return shifted >= 15.0f ? 15u : (unsigned)shifted;
}

static void q4_1_encode(const float *in, size_t n, float scale, void *out)
{
    unsigned char *block = out;
    (void)scale;
    for (size_t i = 0; i < n; i += BLOCK, block += BLOCK_BYTES) {
        float least = in[i], most = in[i];
        bool finite = true;
        for (size_t j = 0; j < BLOCK; j++) {
            finite = finite && isfinite(in[i + j]);
            least = in[i + j] < least ? in[i + j] : least;
            most = in[i + j] > most ? in[i + j] : most;
        }
        float d = (most - least) / 15.0f, inverse = d > 0.0f ? 1.0f / d : 0.0f;
        if (!isfinite(inverse)) inverse = 0.0f; /* d is below 2^-128: all numbers become m */
        finite = finite && d < EMBLA_F16_OVERFLOWS && fabsf(least) < EMBLA_F16_OVERFLOWS;
        embla_store_u16(block, finite ? embla_f16_from_f32(d) : 0x7e00u);
        embla_store_u16(block + 2, finite ? embla_f16_from_f32(least) : 0u);
        for (size_t j = 0; j < HALF; j++) {
            unsigned low = finite ? quarter_byte(in[i + j], least, inverse) : 0u;
            unsigned high = finite ? quarter_byte(in[i + j + HALF], least, inverse) : 0u;
            block[4 + j] = (unsigned char)(low | high << 4);
        }
    }
}

#if EMBLA_X86

/* In the first two lanes. */
EMBLA_AVX2 static inline __m128 d_and_m(const char *block)
{
    int word;
    memcpy(&word, block, sizeof word);
    __m128 head = _mm_cvtph_ps(_mm_cvtsi32_si128(word));
    if (is_nan(block + 2)) head = _mm_movehdup_ps(head);
    return head;
}

EMBLA_AVX2 static void q4_1_decode_avx2(const void *in, size_t n, float scale,
                                        embla_write_mode mode, float *out)
{
    const char *block = in;
    const __m128i low_half = _mm_set1_epi8(15);
    (void)scale;
    for (size_t i = 0; i < n; i += BLOCK, block += BLOCK_BYTES) {
        __m128 head = d_and_m(block);
        const __m256 d = _mm256_broadcastss_ps(head);
        const __m256 m = _mm256_broadcastss_ps(_mm_movehdup_ps(head));
        __m128i q = _mm_loadu_si128((const void *)(block + 4));
        __m128i low = _mm_and_si128(q, low_half);
        __m128i high = _mm_and_si128(_mm_srli_epi16(q, 4), low_half);
        __m128i eights[4] = {low, _mm_srli_si128(low, 8), high, _mm_srli_si128(high, 8)};
        for (size_t j = 0; j < 4; j++) {
            __m256 x = _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(eights[j]));
            x = _mm256_add_ps(_mm256_mul_ps(d, x), m);
            embla_put_avx2(out + i + 8 * j, x, mode);
        }
    }
}

EMBLA_AVX512 static void q4_1_decode_avx512(const void *in, size_t n, float scale,
                                            embla_write_mode mode, float *out)
{
    const char *block = in;
    const __m512 steps = _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    (void)scale;
    for (size_t i = 0; i < n; i += BLOCK, block += BLOCK_BYTES) {
        __m128 head = d_and_m(block);
        const __m512 d = _mm512_broadcastss_ps(head);
        const __m512 m = _mm512_broadcastss_ps(_mm_movehdup_ps(head));
        __m512 numbers = _mm512_add_ps(_mm512_mul_ps(d, steps), m);
        /* the selection uses only four bits of each index */
        __m512i q = _mm512_cvtepu8_epi32(_mm_loadu_si128((const void *)(block + 4)));
        embla_put_avx512(out + i, _mm512_permutexvar_ps(q, numbers), mode);
        q = _mm512_srli_epi32(q, 4);
        embla_put_avx512(out + i + HALF, _mm512_permutexvar_ps(q, numbers), mode);
    }
}

#endif

#if EMBLA_ARM

static void q4_1_decode_neon(const void *in, size_t n, float scale, embla_write_mode mode,
                             float *out)
{
    const unsigned char *block = in;
    (void)scale;
    for (size_t i = 0; i < n; i += BLOCK, block += BLOCK_BYTES) {
        const float32x4_t m = embla_neon_f16(block + 2);
        const float32x4_t d = is_nan(block + 2) ? m : embla_neon_f16(block);
        const uint8x16_t q = vld1q_u8(block + 4);
        int8x16_t low = vreinterpretq_s8_u8(vandq_u8(q, vdupq_n_u8(15)));
        int8x16_t high = vreinterpretq_s8_u8(vshrq_n_u8(q, 4));
        embla_sixteen x = embla_sixteen_times(embla_sixteen_of_bytes(low), d);
        embla_sixteen y = embla_sixteen_times(embla_sixteen_of_bytes(high), d);
        embla_sixteen_put(embla_sixteen_plus(x, m), mode, out + i);
        embla_sixteen_put(embla_sixteen_plus(y, m), mode, out + i + HALF);
    }
}

#endif

const embla_codec embla_codec_q4_1 = {
    .decode = EMBLA_ISA_TABLE(q4_1_decode, q4_1_decode_neon, q4_1_decode_avx2, q4_1_decode_avx512),
    .encode = {q4_1_encode}};
