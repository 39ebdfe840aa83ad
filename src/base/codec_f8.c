/* SPDX-License-Identifier: Apache-2.0 */
/* The two 8-bit floats of the Open Compute Project's OFP8 specification, 2023.
 *
 *   e4m3fn  s eeee mmm    bias 7, no infinity, S.1111.111 is NaN, largest 448
 *   e5m2    s eeeee mm    bias 15, the upper byte of an f16
 *
 * Both decode through f16: e5m2 by a shift of 8; e4m3 by a shift of 7, which puts its
 * fields in place but 8 too low in exponent, so the result is multiplied by 256
 * (exact, subnormals included). A table of 256 floats would need a gather for each
 * group of numbers, several times slower.
 */
#include <math.h>

#include "base/dtype.h"
#include "base/half.h"

static void e4m3_decode(const void *in, size_t n, float scale, embla_store store, float *out)
{
    (void)store;
    const unsigned char *bytes = in;
    for (size_t i = 0; i < n; i++) {
        uint32_t sign = (bytes[i] & 0x80u) << 24, magnitude = bytes[i] & 0x7fu;
        float x = embla_f32_from_f16((uint16_t)(magnitude << 7)) * 256.0f;
        if (magnitude == 0x7f) x = embla_float(0x7fc00000u);
        out[i] = embla_float(sign | embla_bits(x)) * scale;
    }
}

static void e4m3_encode(const float *in, size_t n, float scale, void *out)
{
    unsigned char *bytes = out;
    for (size_t i = 0; i < n; i++) {
        uint32_t bits = embla_bits(in[i] / scale), magnitude = bits & 0x7fffffffu;
        uint32_t result = 0x7f;
        if (magnitude < 0x7f800000u) result = embla_narrow(magnitude, 3, 120, 9);
        if (result > 0x7f) result = 0x7f; /* past 464 there is nothing but NaN */
        bytes[i] = (unsigned char)((bits >> 24 & 0x80u) | result);
    }
}

static void e5m2_decode(const void *in, size_t n, float scale, embla_store store, float *out)
{
    (void)store;
    const unsigned char *bytes = in;
    for (size_t i = 0; i < n; i++) out[i] = embla_f32_from_f16((uint16_t)(bytes[i] << 8)) * scale;
}

static void e5m2_encode(const float *in, size_t n, float scale, void *out)
{
    unsigned char *bytes = out;
    for (size_t i = 0; i < n; i++) {
        uint32_t bits = embla_bits(in[i] / scale), magnitude = bits & 0x7fffffffu;
        uint32_t result = 0x7e; /* the quiet NaN */
        if (magnitude <= 0x7f800000u) result = embla_narrow(magnitude, 2, 112, 16);
        if (magnitude <= 0x7f800000u && result > 0x7c) result = 0x7c;
        bytes[i] = (unsigned char)((bits >> 24 & 0x80u) | result);
    }
}

#if EMBLA_X86

EMBLA_AVX2 static void e4m3_decode_avx2(const void *in, size_t n, float scale, embla_store store,
                                        float *out)
{
    const char *bytes = in;
    const __m256 times = _mm256_set1_ps(scale), times256 = _mm256_set1_ps(256.0f);
    const __m256 nan = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fc00000));
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m128i codes = _mm_cvtepu8_epi16(_mm_loadl_epi64((const void *)(bytes + i)));
        __m128i magnitude = _mm_and_si128(codes, _mm_set1_epi16(0x7f));
        __m256 x = _mm256_cvtph_ps(_mm_slli_epi16(magnitude, 7));
        __m128i is_nan = _mm_cmpeq_epi16(magnitude, _mm_set1_epi16(0x7f));
        x = _mm256_mul_ps(x, times256);
        x = _mm256_blendv_ps(x, nan, _mm256_castsi256_ps(_mm256_cvtepi16_epi32(is_nan)));
        __m256i sign = _mm256_slli_epi32(_mm256_cvtepu16_epi32(codes), 24);
        sign = _mm256_and_si256(sign, _mm256_set1_epi32((int)0x80000000u));
        x = _mm256_or_ps(x, _mm256_castsi256_ps(sign));
        embla_put_avx2(out + i, _mm256_mul_ps(x, times), store);
    }
    e4m3_decode(bytes + i, n - i, scale, store, out + i);
}

EMBLA_AVX512 static void e4m3_decode_avx512(const void *in, size_t n, float scale,
                                            embla_store store, float *out)
{
    const char *bytes = in;
    const __m512 times = _mm512_set1_ps(scale), times256 = _mm512_set1_ps(256.0f);
    const __m256i seven_ones = _mm256_set1_epi16(0x7f);
    const __m512 nan = _mm512_castsi512_ps(_mm512_set1_epi32(0x7fc00000));
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        __m256i codes = _mm256_cvtepu8_epi16(_mm_loadu_si128((const void *)(bytes + i)));
        __m256i magnitude = _mm256_and_si256(codes, seven_ones);
        __mmask16 is_nan = _mm256_cmpeq_epi16_mask(magnitude, seven_ones);
        __mmask16 negative = _mm256_test_epi16_mask(codes, _mm256_set1_epi16(0x80));
        __m512 x = _mm512_mul_ps(_mm512_cvtph_ps(_mm256_slli_epi16(magnitude, 7)), times256);
        x = _mm512_mask_mov_ps(x, is_nan, nan);
        x = _mm512_mask_xor_ps(x, negative, x, _mm512_set1_ps(-0.0f));
        embla_put_avx512(out + i, _mm512_mul_ps(x, times), store);
    }
    e4m3_decode(bytes + i, n - i, scale, store, out + i);
}

EMBLA_AVX2 static void e5m2_decode_avx2(const void *in, size_t n, float scale, embla_store store,
                                        float *out)
{
    const char *bytes = in;
    const __m256 times = _mm256_set1_ps(scale);
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m128i codes = _mm_cvtepu8_epi16(_mm_loadl_epi64((const void *)(bytes + i)));
        __m256 x = _mm256_cvtph_ps(_mm_slli_epi16(codes, 8));
        embla_put_avx2(out + i, _mm256_mul_ps(x, times), store);
    }
    e5m2_decode(bytes + i, n - i, scale, store, out + i);
}

EMBLA_AVX512 static void e5m2_decode_avx512(const void *in, size_t n, float scale,
                                            embla_store store, float *out)
{
    const char *bytes = in;
    const __m512 times = _mm512_set1_ps(scale);
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        __m256i codes = _mm256_cvtepu8_epi16(_mm_loadu_si128((const void *)(bytes + i)));
        __m512 x = _mm512_cvtph_ps(_mm256_slli_epi16(codes, 8));
        embla_put_avx512(out + i, _mm512_mul_ps(x, times), store);
    }
    e5m2_decode(bytes + i, n - i, scale, store, out + i);
}

const embla_codec embla_codec_f8_e4m3 = {{e4m3_decode, e4m3_decode_avx2, e4m3_decode_avx512},
                                         {e4m3_encode}};
const embla_codec embla_codec_f8_e5m2 = {{e5m2_decode, e5m2_decode_avx2, e5m2_decode_avx512},
                                         {e5m2_encode}};
#else
const embla_codec embla_codec_f8_e4m3 = {{e4m3_decode}, {e4m3_encode}};
const embla_codec embla_codec_f8_e5m2 = {{e5m2_decode}, {e5m2_encode}};
#endif
