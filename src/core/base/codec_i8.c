/* SPDX-License-Identifier: Apache-2.0 */
/* Signed bytes with one scale for the whole table: number = byte * scale. */
#include <math.h>

#include "base/codec_neon.h"
#include "base/dtype.h"

static void i8_decode(const void *in, size_t n, float scale, embla_write_mode mode, float *out)
{
    (void)mode;
    const signed char *bytes = in;
    for (size_t i = 0; i < n; i++) out[i] = (float)bytes[i] * scale;
}

static void i8_encode(const float *in, size_t n, float scale, void *out)
{
    signed char *bytes = out;
    for (size_t i = 0; i < n; i++) {
        float x = nearbyintf(in[i] / scale);
        if (!(x > -128.0f)) x = x <= -128.0f ? -128.0f : 0.0f; /* a NaN becomes 0 */
        if (x > 127.0f) x = 127.0f;
        bytes[i] = (signed char)x;
    }
}

#if EMBLA_X86

EMBLA_AVX2 static void i8_decode_avx2(const void *in, size_t n, float scale, embla_write_mode mode,
                                      float *out)
{
    const char *bytes = in;
    const __m256 times = _mm256_set1_ps(scale);
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m256i wide = _mm256_cvtepi8_epi32(_mm_loadl_epi64((const void *)(bytes + i)));
        embla_put_avx2(out + i, _mm256_mul_ps(_mm256_cvtepi32_ps(wide), times), mode);
    }
    i8_decode(bytes + i, n - i, scale, mode, out + i);
}

EMBLA_AVX512 static void i8_decode_avx512(const void *in, size_t n, float scale,
                                          embla_write_mode mode, float *out)
{
    const char *bytes = in;
    const __m512 times = _mm512_set1_ps(scale);
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        __m512i wide = _mm512_cvtepi8_epi32(_mm_loadu_si128((const void *)(bytes + i)));
        embla_put_avx512(out + i, _mm512_mul_ps(_mm512_cvtepi32_ps(wide), times), mode);
    }
    i8_decode(bytes + i, n - i, scale, mode, out + i);
}

#endif

#if EMBLA_ARM

static void i8_decode_neon(const void *in, size_t n, float scale, embla_write_mode mode, float *out)
{
    const signed char *bytes = in;
    const float32x4_t times = vdupq_n_f32(scale);
    size_t i = 0;
    for (; i + 16 <= n; i += 16)
        embla_sixteen_put_times(embla_sixteen_of_bytes(vld1q_s8(bytes + i)), times, mode, out + i);
    i8_decode(bytes + i, n - i, scale, mode, out + i);
}

#endif

const embla_codec embla_codec_i8 = {
    .decode = EMBLA_ISA_TABLE(i8_decode, i8_decode_neon, i8_decode_avx2, i8_decode_avx512),
    .encode = {i8_encode}};
