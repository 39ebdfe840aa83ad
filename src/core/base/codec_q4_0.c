/* SPDX-License-Identifier: Apache-2.0 */
/* ggml's q4_0. A block of 18 bytes holds 32 numbers:
 *
 *   0..1   d, an f16
 *   2..17  q[16]; number i is the low half of q[i], number i+16 the high half;
 *          each half is 0..15            number = d * (half - 8)
 *
 * Encoding, as in ggml's reference: d is the number of largest magnitude divided by -8, so that it
 * uses the longer end of the range. NaN and infinity as in q8_0.
 */
#include <math.h>

#include "base/codec_neon.h"
#include "base/dtype.h"
#include "base/half.h"

enum { BLOCK = 32, BLOCK_BYTES = 18, HALF = 16 };

static void q4_0_decode(const void *in, size_t n, float scale, embla_write_mode mode, float *out)
{
    (void)mode;
    const unsigned char *block = in;
    (void)scale;
    for (size_t i = 0; i < n; i += BLOCK, block += BLOCK_BYTES) {
        float d = embla_f32_from_f16(embla_load_u16(block));
        for (size_t j = 0; j < HALF; j++) {
            out[i + j] = d * (float)((block[2 + j] & 15) - 8);
            out[i + j + HALF] = d * (float)((block[2 + j] >> 4) - 8);
        }
    }
}

/* x / d + 8, rounded; x is finite and not larger than 8 d. */
static unsigned quarter_byte(float x, float inverse)
{
    float shifted = x * inverse + 8.5f;
    return shifted >= 15.0f ? 15u : (unsigned)shifted;
}

static void q4_0_encode(const float *in, size_t n, float scale, void *out)
{
    unsigned char *block = out;
    (void)scale;
    for (size_t i = 0; i < n; i += BLOCK, block += BLOCK_BYTES) {
        float largest = 0.0f; /* with its sign */
        bool finite = true;
        for (size_t j = 0; j < BLOCK; j++) {
            finite = finite && isfinite(in[i + j]);
            if (fabsf(in[i + j]) > fabsf(largest)) largest = in[i + j];
        }
        float d = largest / -8.0f, inverse = d != 0.0f ? 1.0f / d : 0.0f;
        if (!isfinite(inverse)) inverse = 0.0f;
        finite = finite && fabsf(d) < EMBLA_F16_OVERFLOWS;
        embla_store_u16(block, finite ? embla_f16_from_f32(d) : 0x7e00u);
        for (size_t j = 0; j < HALF; j++) {
            unsigned low = finite ? quarter_byte(in[i + j], inverse) : 8u;
            unsigned high = finite ? quarter_byte(in[i + j + HALF], inverse) : 8u;
            block[2 + j] = (unsigned char)(low | high << 4);
        }
    }
}

#if EMBLA_X86

EMBLA_AVX2 static void q4_0_decode_avx2(const void *in, size_t n, float scale,
                                        embla_write_mode mode, float *out)
{
    const char *block = in;
    const __m128i low_half = _mm_set1_epi8(15), eight = _mm_set1_epi8(8);
    (void)scale;
    for (size_t i = 0; i < n; i += BLOCK, block += BLOCK_BYTES) {
        const __m256 d = _mm256_set1_ps(_cvtsh_ss(embla_load_u16(block)));
        __m128i q = _mm_loadu_si128((const void *)(block + 2));
        __m128i low = _mm_sub_epi8(_mm_and_si128(q, low_half), eight);
        __m128i high = _mm_sub_epi8(_mm_and_si128(_mm_srli_epi16(q, 4), low_half), eight);
        __m128i eights[4] = {low, _mm_srli_si128(low, 8), high, _mm_srli_si128(high, 8)};
        for (size_t j = 0; j < 4; j++) {
            __m256 x = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(eights[j]));
            embla_put_avx2(out + i + 8 * j, _mm256_mul_ps(d, x), mode);
        }
    }
}

/* A block can contain only 16 different numbers: all are computed, then selected. */
EMBLA_AVX512 static void q4_0_decode_avx512(const void *in, size_t n, float scale,
                                            embla_write_mode mode, float *out)
{
    const char *block = in;
    const __m512 steps = _mm512_setr_ps(-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7);
    (void)scale;
    for (size_t i = 0; i < n; i += BLOCK, block += BLOCK_BYTES) {
        const __m512 d = _mm512_set1_ps(_cvtsh_ss(embla_load_u16(block)));
        __m512 numbers = _mm512_mul_ps(d, steps);
        /* the selection uses only four bits of each index */
        __m512i q = _mm512_cvtepu8_epi32(_mm_loadu_si128((const void *)(block + 2)));
        embla_put_avx512(out + i, _mm512_permutexvar_ps(q, numbers), mode);
        q = _mm512_srli_epi32(q, 4);
        embla_put_avx512(out + i + HALF, _mm512_permutexvar_ps(q, numbers), mode);
    }
}

#endif

#if EMBLA_ARM

/* The upper bytes of the f16 from -8 to 7; their lower bytes are 0. */
static const uint8_t steps_f16[16] = {0xc8, 0xc7, 0xc6, 0xc5, 0xc4, 0xc2, 0xc0, 0xbc,
                                      0x00, 0x3c, 0x40, 0x42, 0x44, 0x45, 0x46, 0x47};

static void q4_0_decode_neon(const void *in, size_t n, float scale, embla_write_mode mode,
                             float *out)
{
    const unsigned char *block = in;
    const uint8x16_t steps = vld1q_u8(steps_f16);
    (void)scale;
    for (size_t i = 0; i < n; i += BLOCK, block += BLOCK_BYTES) {
        const float32x4_t d = embla_neon_f16(block);
        const uint8x16_t q = vld1q_u8(block + 2);
        embla_sixteen low = embla_sixteen_of_upper(embla_neon_low_half(steps, q));
        embla_sixteen high = embla_sixteen_of_upper(embla_neon_high_half(steps, q));
        embla_sixteen_put_times(low, d, mode, out + i);
        embla_sixteen_put_times(high, d, mode, out + i + HALF);
    }
}

#endif

const embla_codec embla_codec_q4_0 = {
    .decode = EMBLA_ISA_TABLE(q4_0_decode, q4_0_decode_neon, q4_0_decode_avx2, q4_0_decode_avx512),
    .encode = {q4_0_encode}};
