/* SPDX-License-Identifier: Apache-2.0 */
/* ggml's q8_0. A block of 34 bytes holds 32 numbers:
 *
 *   0..1   d, an f16
 *   2..33  q[32], signed bytes       number i = d * q[i]
 *
 * Encoding, as in ggml's reference: d is the largest magnitude divided by 127, q is rounded half
 * away from zero. If a block has a NaN or an infinity, or its d overflows f16, d becomes NaN, so
 * that all its numbers decode to NaN: the loss is not silent.
 */
#include <math.h>

#include "base/codec_neon.h"
#include "base/dtype.h"
#include "base/half.h"

enum { BLOCK = 32, BLOCK_BYTES = 34 };

static void q8_0_decode(const void *in, size_t n, float scale, embla_write_mode mode, float *out)
{
    (void)mode;
    const unsigned char *block = in;
    (void)scale;
    for (size_t i = 0; i < n; i += BLOCK, block += BLOCK_BYTES) {
        const signed char *q = (const signed char *)block + 2;
        float d = embla_f32_from_f16(embla_load_u16(block));
        for (size_t j = 0; j < BLOCK; j++) out[i + j] = d * (float)q[j];
    }
}

/* roundf (half away from zero) for numbers up to 127. Adding 1/2 itself would round the float just
 * below 1/2 up. */
static inline signed char rounded(float x)
{
    return (signed char)(int)(x + copysignf(0x1.fffffep-2f, x));
}

static void q8_0_encode(const float *in, size_t n, float scale, void *out)
{
    unsigned char *block = out;
    (void)scale;
    for (size_t i = 0; i < n; i += BLOCK, block += BLOCK_BYTES) {
        signed char *q = (signed char *)block + 2;
        float largest = 0.0f;
        bool finite = true;
        for (size_t j = 0; j < BLOCK; j++) {
            finite = finite && isfinite(in[i + j]);
            largest = fabsf(in[i + j]) > largest ? fabsf(in[i + j]) : largest;
        }
        float d = largest / 127.0f, inverse = d > 0.0f ? 1.0f / d : 0.0f;
        if (!isfinite(inverse)) inverse = 0.0f; /* d is below 2^-128: all numbers round to zero */
        finite = finite && d < EMBLA_F16_OVERFLOWS;
        embla_store_u16(block, finite ? embla_f16_from_f32(d) : 0x7e00u);
        for (size_t j = 0; j < BLOCK; j++) q[j] = finite ? rounded(in[i + j] * inverse) : 0;
    }
}

#if EMBLA_X86

EMBLA_AVX2 static void q8_0_decode_avx2(const void *in, size_t n, float scale,
                                        embla_write_mode mode, float *out)
{
    const char *block = in;
    (void)scale;
    for (size_t i = 0; i < n; i += BLOCK, block += BLOCK_BYTES) {
        const __m256 d = _mm256_set1_ps(_cvtsh_ss(embla_load_u16(block)));
        for (size_t j = 0; j < BLOCK; j += 8) {
            __m128i q = _mm_loadl_epi64((const void *)(block + 2 + j));
            __m256 x = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(q));
            embla_put_avx2(out + i + j, _mm256_mul_ps(d, x), mode);
        }
    }
}

EMBLA_AVX512 static void q8_0_decode_avx512(const void *in, size_t n, float scale,
                                            embla_write_mode mode, float *out)
{
    const char *block = in;
    (void)scale;
    for (size_t i = 0; i < n; i += BLOCK, block += BLOCK_BYTES) {
        const __m512 d = _mm512_set1_ps(_cvtsh_ss(embla_load_u16(block)));
        __m128i low = _mm_loadu_si128((const void *)(block + 2));
        __m128i high = _mm_loadu_si128((const void *)(block + 18));
        __m512 x = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(low));
        __m512 y = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(high));
        embla_put_avx512(out + i, _mm512_mul_ps(d, x), mode);
        embla_put_avx512(out + i + 16, _mm512_mul_ps(d, y), mode);
    }
}

#endif

#if EMBLA_ARM

static void q8_0_decode_neon(const void *in, size_t n, float scale, embla_write_mode mode,
                             float *out)
{
    const signed char *block = in;
    (void)scale;
    for (size_t i = 0; i < n; i += BLOCK, block += BLOCK_BYTES) {
        const float32x4_t d = embla_neon_f16(block);
        embla_sixteen low = embla_sixteen_of_bytes(vld1q_s8(block + 2));
        embla_sixteen high = embla_sixteen_of_bytes(vld1q_s8(block + 18));
        embla_sixteen_put_times(low, d, mode, out + i);
        embla_sixteen_put_times(high, d, mode, out + i + 16);
    }
}

#endif

const embla_codec embla_codec_q8_0 = {
    .decode = EMBLA_ISA_TABLE(q8_0_decode, q8_0_decode_neon, q8_0_decode_avx2, q8_0_decode_avx512),
    .encode = {q8_0_encode}};
