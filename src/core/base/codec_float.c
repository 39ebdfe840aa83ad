/* SPDX-License-Identifier: Apache-2.0 */
/* f32, f64, f16 and bf16. f16 and bf16 are little-endian, as in every file format. f32 and f64 are
 * in the order of the machine: base/byte_order.h. */
#include <float.h>
#include <string.h>

#include "base/codec_neon.h"
#include "base/dtype.h"
#include "base/half.h"

_Static_assert(FLT_EVAL_METHOD == 0, "floats are rounded to float at every step");

/* ---- f32 ---- */

static void f32_decode(const void *in, size_t n, float scale, embla_write_mode mode, float *out)
{
    (void)mode;
    (void)scale;
    memcpy(out, in, n * sizeof *out);
}

static void f32_encode(const float *in, size_t n, float scale, void *out)
{
    (void)scale;
    memcpy(out, in, n * sizeof *in);
}

const embla_codec embla_codec_f32 = {.decode = {f32_decode}, .encode = {f32_encode}};

/* ---- f64 ---- */

EMBLA_BODY void f64_decode_body(const void *in, size_t n, float *out)
{
    const char *bytes = in;
    for (size_t i = 0; i < n; i++) {
        double x;
        memcpy(&x, bytes + 8 * i, sizeof x);
        out[i] = (float)x;
    }
}

static void f64_decode(const void *in, size_t n, float scale, embla_write_mode mode, float *out)
{
    (void)mode;
    (void)scale;
    f64_decode_body(in, n, out);
}

static void f64_encode(const float *in, size_t n, float scale, void *out)
{
    char *bytes = out;
    (void)scale;
    for (size_t i = 0; i < n; i++) {
        double x = (double)in[i];
        memcpy(bytes + 8 * i, &x, sizeof x);
    }
}

/* ---- f16 ---- */

static void f16_decode(const void *in, size_t n, float scale, embla_write_mode mode, float *out)
{
    (void)mode;
    const char *bytes = in;
    (void)scale;
    for (size_t i = 0; i < n; i++) out[i] = embla_f32_from_f16(embla_load_u16(bytes + 2 * i));
}

static void f16_encode(const float *in, size_t n, float scale, void *out)
{
    char *bytes = out;
    (void)scale;
    for (size_t i = 0; i < n; i++) embla_store_u16(bytes + 2 * i, embla_f16_from_f32(in[i]));
}

/* ---- bf16 ---- */

static void bf16_decode(const void *in, size_t n, float scale, embla_write_mode mode, float *out)
{
    (void)mode;
    const char *bytes = in;
    (void)scale;
    for (size_t i = 0; i < n; i++) out[i] = embla_f32_from_bf16(embla_load_u16(bytes + 2 * i));
}

static void bf16_encode(const float *in, size_t n, float scale, void *out)
{
    char *bytes = out;
    (void)scale;
    for (size_t i = 0; i < n; i++) embla_store_u16(bytes + 2 * i, embla_bf16_from_f32(in[i]));
}

#if EMBLA_X86

EMBLA_AVX2 static void f64_decode_avx2(const void *in, size_t n, float scale, embla_write_mode mode,
                                       float *out)
{
    (void)mode;
    (void)scale;
    f64_decode_body(in, n, out);
}

EMBLA_AVX2 static void f16_decode_avx2(const void *in, size_t n, float scale, embla_write_mode mode,
                                       float *out)
{
    const char *bytes = in;
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m128i half = _mm_loadu_si128((const void *)(bytes + 2 * i));
        embla_put_avx2(out + i, _mm256_cvtph_ps(half), mode);
    }
    f16_decode(bytes + 2 * i, n - i, scale, mode, out + i);
}

EMBLA_AVX512 static void f16_decode_avx512(const void *in, size_t n, float scale,
                                           embla_write_mode mode, float *out)
{
    const char *bytes = in;
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        __m256i half = _mm256_loadu_si256((const void *)(bytes + 2 * i));
        embla_put_avx512(out + i, _mm512_cvtph_ps(half), mode);
    }
    f16_decode(bytes + 2 * i, n - i, scale, mode, out + i);
}

EMBLA_AVX2 static void f16_encode_avx2(const float *in, size_t n, float scale, void *out)
{
    char *bytes = out;
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m128i half = _mm256_cvtps_ph(_mm256_loadu_ps(in + i), _MM_FROUND_TO_NEAREST_INT);
        _mm_storeu_si128((void *)(bytes + 2 * i), half);
    }
    f16_encode(in + i, n - i, scale, bytes + 2 * i);
}

EMBLA_AVX512 static void f16_encode_avx512(const float *in, size_t n, float scale, void *out)
{
    char *bytes = out;
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        /* masked with all ones: gcc's unmasked form is a macro that warns in unoptimised builds */
        __m256i half =
            _mm512_maskz_cvtps_ph(0xffff, _mm512_loadu_ps(in + i), _MM_FROUND_TO_NEAREST_INT);
        _mm256_storeu_si256((void *)(bytes + 2 * i), half);
    }
    f16_encode(in + i, n - i, scale, bytes + 2 * i);
}

EMBLA_AVX2 static void bf16_decode_avx2(const void *in, size_t n, float scale,
                                        embla_write_mode mode, float *out)
{
    const char *bytes = in;
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m128i half = _mm_loadu_si128((const void *)(bytes + 2 * i));
        __m256i wide = _mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16);
        embla_put_avx2(out + i, _mm256_castsi256_ps(wide), mode);
    }
    bf16_decode(bytes + 2 * i, n - i, scale, mode, out + i);
}

EMBLA_AVX512 static void bf16_decode_avx512(const void *in, size_t n, float scale,
                                            embla_write_mode mode, float *out)
{
    const char *bytes = in;
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        __m256i half = _mm256_loadu_si256((const void *)(bytes + 2 * i));
        __m512i wide = _mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16);
        embla_put_avx512(out + i, _mm512_castsi512_ps(wide), mode);
    }
    bf16_decode(bytes + 2 * i, n - i, scale, mode, out + i);
}

/* Eight floats to eight bf16, each in the low half of its lane. */
EMBLA_AVX2 static inline __m256i bf16_round_avx2(__m256i bits)
{
    __m256i lsb = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    __m256i up = _mm256_add_epi32(bits, _mm256_add_epi32(lsb, _mm256_set1_epi32(0x7fff)));
    __m256i magnitude = _mm256_and_si256(bits, _mm256_set1_epi32(0x7fffffff));
    __m256i nan = _mm256_cmpgt_epi32(magnitude, _mm256_set1_epi32(0x7f800000));
    __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
    return _mm256_srli_epi32(_mm256_blendv_epi8(up, quiet, nan), 16);
}

EMBLA_AVX2 static void bf16_encode_avx2(const float *in, size_t n, float scale, void *out)
{
    char *bytes = out;
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        __m256i low = bf16_round_avx2(_mm256_loadu_si256((const void *)(in + i)));
        __m256i high = bf16_round_avx2(_mm256_loadu_si256((const void *)(in + i + 8)));
        __m256i packed = _mm256_packus_epi32(low, high); /* within 128-bit lanes */
        packed = _mm256_permute4x64_epi64(packed, 0xd8);
        _mm256_storeu_si256((void *)(bytes + 2 * i), packed);
    }
    bf16_encode(in + i, n - i, scale, bytes + 2 * i);
}

EMBLA_AVX512 static void bf16_encode_avx512(const float *in, size_t n, float scale, void *out)
{
    char *bytes = out;
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        __m512i bits = _mm512_loadu_si512(in + i);
        __m512i lsb = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
        __m512i up = _mm512_add_epi32(bits, _mm512_add_epi32(lsb, _mm512_set1_epi32(0x7fff)));
        __m512i magnitude = _mm512_and_si512(bits, _mm512_set1_epi32(0x7fffffff));
        __mmask16 nan = _mm512_cmpgt_epi32_mask(magnitude, _mm512_set1_epi32(0x7f800000));
        __m512i quiet = _mm512_or_si512(bits, _mm512_set1_epi32(0x400000));
        __m512i result = _mm512_srli_epi32(_mm512_mask_mov_epi32(up, nan, quiet), 16);
        _mm256_storeu_si256((void *)(bytes + 2 * i), _mm512_cvtepi32_epi16(result));
    }
    bf16_encode(in + i, n - i, scale, bytes + 2 * i);
}

#endif

#if EMBLA_ARM

static void f16_decode_neon(const void *in, size_t n, float scale, embla_write_mode mode,
                            float *out)
{
    const char *bytes = in;
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        const char *at = bytes + 2 * i;
        embla_sixteen_put(embla_sixteen_of_f16(embla_neon_u16(at), embla_neon_u16(at + 16)), mode,
                          out + i);
    }
    f16_decode(bytes + 2 * i, n - i, scale, mode, out + i);
}

static void f16_encode_neon(const float *in, size_t n, float scale, void *out)
{
    char *bytes = out;
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        float16x4_t low = vcvt_f16_f32(vld1q_f32(in + i));
        float16x8_t x = vcvt_high_f16_f32(low, vld1q_f32(in + i + 4));
        vst1q_u8((uint8_t *)bytes + 2 * i, vreinterpretq_u8_f16(x));
    }
    f16_encode(in + i, n - i, scale, bytes + 2 * i);
}

static void bf16_decode_neon(const void *in, size_t n, float scale, embla_write_mode mode,
                             float *out)
{
    const char *bytes = in;
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        const char *at = bytes + 2 * i;
        embla_sixteen_put(embla_sixteen_of_bf16(embla_neon_u16(at), embla_neon_u16(at + 16)), mode,
                          out + i);
    }
    bf16_decode(bytes + 2 * i, n - i, scale, mode, out + i);
}

/* Four floats to four bf16, each in the high half of its lane. */
static inline uint32x4_t bf16_round_neon(float32x4_t x)
{
    uint32x4_t bits = vreinterpretq_u32_f32(x);
    uint32x4_t lsb = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
    uint32x4_t up = vaddq_u32(bits, vaddq_u32(lsb, vdupq_n_u32(0x7fff)));
    uint32x4_t quiet = vorrq_u32(bits, vdupq_n_u32(0x400000));
    return vbslq_u32(vceqq_f32(x, x), up, quiet); /* a NaN is not equal to itself */
}

static void bf16_encode_neon(const float *in, size_t n, float scale, void *out)
{
    char *bytes = out;
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        uint16x4_t low = vshrn_n_u32(bf16_round_neon(vld1q_f32(in + i)), 16);
        uint16x8_t x = vshrn_high_n_u32(low, bf16_round_neon(vld1q_f32(in + i + 4)), 16);
        vst1q_u8((uint8_t *)bytes + 2 * i, vreinterpretq_u8_u16(x));
    }
    bf16_encode(in + i, n - i, scale, bytes + 2 * i);
}

#endif

const embla_codec embla_codec_f64 = {
    .decode = EMBLA_ISA_TABLE(f64_decode, NULL, f64_decode_avx2, NULL), .encode = {f64_encode}};
const embla_codec embla_codec_f16 = {
    .decode = EMBLA_ISA_TABLE(f16_decode, f16_decode_neon, f16_decode_avx2, f16_decode_avx512),
    .encode = EMBLA_ISA_TABLE(f16_encode, f16_encode_neon, f16_encode_avx2, f16_encode_avx512)};
const embla_codec embla_codec_bf16 = {
    .decode = EMBLA_ISA_TABLE(bf16_decode, bf16_decode_neon, bf16_decode_avx2, bf16_decode_avx512),
    .encode = EMBLA_ISA_TABLE(bf16_encode, bf16_encode_neon, bf16_encode_avx2, bf16_encode_avx512)};
