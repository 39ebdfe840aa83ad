/* SPDX-License-Identifier: Apache-2.0 */
/* Four-bit floats, e2m1: s ee m, magnitudes 0 .5 1 1.5 2 3 4 6, no infinity, no NaN.
 *
 *   mxfp4    17 bytes, 32 numbers: e, then q[16]; number i is the low half of q[i], i+16 the
 *            high half; times 2^(e - 127); e = 255 is NaN. Exact, except for overflow: 2 or more
 *            times 2^127 is infinity. (ggml reads e = 255 as 2^128.)
 *   nvfp4    36 bytes, 64 numbers: 4 scales, then q[32]; group g of 16 numbers has scale g
 *            and bytes 8g..8g+7, whose low halves are its first 8 numbers, high halves its last
 *            8. A scale is an e4m3 without sign. As in ggml, bit 7 is ignored and 0x7f is 0, not
 *            NaN; but 0xff is 480. Exact. The scale of the whole tensor is not part of the rows.
 *   f4_e2m1  a byte has two numbers, the first in its low half; times scale, one rounding.
 *
 * Code 8, minus zero, is +0 in mxfp4 and nvfp4, as in ggml's integer table, and -0 in f4_e2m1.
 *
 * Encoding:
 *   mxfp4    e puts the largest magnitude in 4..8 (above 6 becomes 6). Numbers are rounded to
 *            nearest, ties to the smaller magnitude, as in ggml's reference. A block with a NaN
 *            or an infinity gets e = 255.
 *   nvfp4    a scale is the largest magnitude / 6, rounded to nearest, ties up, at most 448. It
 *            differs from ggml in two ranges where ggml's is not the nearest: above 256 and just
 *            below 2^-6. Numbers are rounded as in mxfp4.
 *   f4_e2m1  x / scale, rounded to nearest, ties to even.
 * nvfp4 and f4_e2m1 have no NaN: as in i8, a NaN becomes 0. They clamp to +-2688 (nvfp4; an
 * infinity gives its group the scale 448) and +-6 times scale.
 */
#include <math.h>

#include "base/codec_neon.h"
#include "base/dtype.h"
#include "base/half.h"

enum {
    MX_BLOCK = 32,
    MX_BYTES = 17,
    NV_BLOCK = 64,
    NV_BYTES = 36,
    NV_GROUP = 16,
    NV_GROUPS = 4,
    MAGNITUDES = 8
};

static const float magnitudes[MAGNITUDES] = {0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f};

/* Twice the number of each code, as an integer, which has no minus zero. */
static const signed char twice[2 * MAGNITUDES] = {0, 1,  2,  3,  4,  6,  8,  12,
                                                  0, -1, -2, -3, -4, -6, -8, -12};

/* ---- scales ---- */

/* 2^(e - 127), or NaN. */
static inline float power_of(unsigned e)
{
    if (e == 0) return 0x1p-127f;
    return embla_float(e == 255 ? 0x7fc00000u : e << 23);
}

/* An e4m3 without sign, through f16: see codec_f8.c. */
static inline float scale_of(unsigned code)
{
    if (code == 0x7f) return 0.0f;
    return embla_f32_from_f16((uint16_t)((code & 0x7fu) << 7)) * 256.0f;
}

/* The nearest scale code; x is not negative. */
static unsigned scale_code(float x)
{
    if (x >= 448.0f) return 0x7e;
    if (x < 0x1p-6f) return (unsigned)(x * 512.0f + 0.5f); /* at most 8, the code of 2^-6 */
    return ((embla_bits(x) + (1u << 19)) >> 20) - (120u << 3);
}

/* ---- plain loops ---- */

static void mxfp4_decode(const void *in, size_t n, float scale, embla_write_mode mode, float *out)
{
    (void)mode;
    const unsigned char *block = in;
    (void)scale;
    for (size_t i = 0; i < n; i += MX_BLOCK, block += MX_BYTES) {
        float half = power_of(block[0]) * 0.5f; /* exact, at least 2^-128 */
        for (size_t j = 0; j < MX_BLOCK / 2; j++) {
            out[i + j] = half * (float)twice[block[1 + j] & 15];
            out[i + j + MX_BLOCK / 2] = half * (float)twice[block[1 + j] >> 4];
        }
    }
}

static void nvfp4_decode(const void *in, size_t n, float scale, embla_write_mode mode, float *out)
{
    (void)mode;
    const unsigned char *block = in;
    (void)scale;
    for (size_t i = 0; i < n; i += NV_BLOCK, block += NV_BYTES)
        for (size_t g = 0; g < NV_GROUPS; g++) {
            const unsigned char *q = block + NV_GROUPS + g * NV_GROUP / 2;
            float half = scale_of(block[g]) * 0.5f, *group = out + i + g * NV_GROUP;
            for (size_t j = 0; j < NV_GROUP / 2; j++) {
                group[j] = half * (float)twice[q[j] & 15];
                group[j + NV_GROUP / 2] = half * (float)twice[q[j] >> 4];
            }
        }
}

static inline float e2m1_of(unsigned code)
{
    return code & 8 ? -magnitudes[code & 7] : magnitudes[code & 7];
}

static void f4_e2m1_decode(const void *in, size_t n, float scale, embla_write_mode mode, float *out)
{
    (void)mode;
    const unsigned char *bytes = in;
    for (size_t i = 0; i < n; i += 2) {
        out[i] = e2m1_of(bytes[i / 2] & 15) * scale;
        out[i + 1] = e2m1_of(bytes[i / 2] >> 4) * scale;
    }
}

/* ---- encoding ---- */

/* The midpoints between magnitudes. */
static const float middles[MAGNITUDES - 1] = {0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5.0f};

/* Encodes x / d for the 2n numbers at x, ties to the smaller magnitude: number j goes to the low
 * half of q[j], number j+n to the high half. d is 0, or its products with the midpoints are exact.
 * A NaN becomes 0. */
static void put_codes(const float *x, size_t n, float d, unsigned char *q)
{
    int code[MX_BLOCK] = {0};
    for (size_t k = 0; k < MAGNITUDES - 1 && d != 0.0f; k++)
        for (size_t j = 0; j < 2 * n; j++) code[j] += fabsf(x[j]) > middles[k] * d;
    for (size_t j = 0; j < 2 * n; j++) code[j] |= code[j] != 0 && x[j] < 0.0f ? 8 : 0;
    for (size_t j = 0; j < n; j++) q[j] = (unsigned char)(code[j] | code[j + n] << 4);
}

/* The code of x, ties to even. A NaN becomes 0. */
static unsigned code_of(float x)
{
    unsigned code = 0;
    if (isnan(x)) return 0;
    for (size_t k = 0; k < MAGNITUDES - 1; k++)
        code += fabsf(x) > middles[k] || (k % 2 == 1 && fabsf(x) == middles[k]);
    return signbit(x) ? code | 8 : code;
}

static void mxfp4_encode(const float *in, size_t n, float scale, void *out)
{
    unsigned char *block = out;
    (void)scale;
    for (size_t i = 0; i < n; i += MX_BLOCK, block += MX_BYTES) {
        float largest = 0.0f;
        bool finite = true;
        for (size_t j = 0; j < MX_BLOCK; j++) {
            finite = finite && isfinite(in[i + j]);
            largest = fabsf(in[i + j]) > largest ? fabsf(in[i + j]) : largest;
        }
        unsigned exponent = embla_bits(largest) >> 23, e = exponent > 2 ? exponent - 2 : 0;
        block[0] = (unsigned char)(finite ? e : 255u);
        put_codes(in + i, MX_BLOCK / 2, finite ? power_of(e) : 0.0f, block + 1);
    }
}

static void nvfp4_encode(const float *in, size_t n, float scale, void *out)
{
    unsigned char *block = out;
    (void)scale;
    for (size_t i = 0; i < n; i += NV_BLOCK, block += NV_BYTES)
        for (size_t g = 0; g < NV_GROUPS; g++) {
            const float *group = in + i + g * NV_GROUP;
            unsigned char *q = block + NV_GROUPS + g * NV_GROUP / 2;
            float largest = 0.0f;
            for (size_t j = 0; j < NV_GROUP; j++)
                largest = fabsf(group[j]) > largest ? fabsf(group[j]) : largest;
            block[g] = (unsigned char)scale_code(largest / 6.0f);
            put_codes(group, NV_GROUP / 2, scale_of(block[g]), q);
        }
}

static void f4_e2m1_encode(const float *in, size_t n, float scale, void *out)
{
    unsigned char *bytes = out;
    for (size_t i = 0; i < n; i += 2)
        bytes[i / 2] = (unsigned char)(code_of(in[i] / scale) | code_of(in[i + 1] / scale) << 4);
}

/* ---- vector loops ---- */

#if EMBLA_X86

/* Signed bytes 0..7 times half. */
EMBLA_AVX2 static inline __m256 eight_avx2(__m128i bytes, __m256 half)
{
    return _mm256_mul_ps(half, _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes)));
}

EMBLA_AVX2 static void mxfp4_decode_avx2(const void *in, size_t n, float scale,
                                         embla_write_mode mode, float *out)
{
    const unsigned char *block = in;
    const __m128i low_half = _mm_set1_epi8(15), table = _mm_loadu_si128((const void *)twice);
    (void)scale;
    for (size_t i = 0; i < n; i += MX_BLOCK, block += MX_BYTES) {
        const __m256 half = _mm256_set1_ps(power_of(block[0]) * 0.5f);
        __m128i q = _mm_loadu_si128((const void *)(block + 1));
        __m128i low = _mm_shuffle_epi8(table, _mm_and_si128(q, low_half));
        __m128i high = _mm_shuffle_epi8(table, _mm_and_si128(_mm_srli_epi16(q, 4), low_half));
        embla_put_avx2(out + i, eight_avx2(low, half), mode);
        embla_put_avx2(out + i + 8, eight_avx2(_mm_srli_si128(low, 8), half), mode);
        embla_put_avx2(out + i + 16, eight_avx2(high, half), mode);
        embla_put_avx2(out + i + 24, eight_avx2(_mm_srli_si128(high, 8), half), mode);
    }
}

/* A block can contain only 16 different numbers: all are computed, then selected. The selection
 * uses only four bits of each index. */
EMBLA_AVX512 static void mxfp4_decode_avx512(const void *in, size_t n, float scale,
                                             embla_write_mode mode, float *out)
{
    const unsigned char *block = in;
    const __m512 table =
        _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const void *)twice)));
    (void)scale;
    for (size_t i = 0; i < n; i += MX_BLOCK, block += MX_BYTES) {
        __m512 numbers = _mm512_mul_ps(_mm512_set1_ps(power_of(block[0]) * 0.5f), table);
        __m512i q = _mm512_cvtepu8_epi32(_mm_loadu_si128((const void *)(block + 1)));
        embla_put_avx512(out + i, _mm512_permutexvar_ps(q, numbers), mode);
        q = _mm512_srli_epi32(q, 4);
        embla_put_avx512(out + i + 16, _mm512_permutexvar_ps(q, numbers), mode);
    }
}

/* Half of each of the four scales of an nvfp4 block. */
EMBLA_AVX2 static inline __m128 half_scales(const unsigned char *block)
{
    int word;
    memcpy(&word, block, sizeof word);
    __m128i codes = _mm_cvtepu8_epi16(_mm_cvtsi32_si128(word));
    __m128i is_zero = _mm_cmpeq_epi16(codes, _mm_set1_epi16(0x7f));
    __m128i f16 = _mm_slli_epi16(_mm_and_si128(codes, _mm_set1_epi16(0x7f)), 7);
    return _mm_mul_ps(_mm_cvtph_ps(_mm_andnot_si128(is_zero, f16)), _mm_set1_ps(128.0f));
}

EMBLA_AVX2 static void nvfp4_decode_avx2(const void *in, size_t n, float scale,
                                         embla_write_mode mode, float *out)
{
    const unsigned char *block = in;
    const __m128i low_half = _mm_set1_epi8(15), table = _mm_loadu_si128((const void *)twice);
    (void)scale;
    for (size_t i = 0; i < n; i += NV_BLOCK, block += NV_BYTES) {
        float half[NV_GROUPS];
        _mm_storeu_ps(half, half_scales(block));
        for (size_t g = 0; g < NV_GROUPS; g++) {
            const __m256 d = _mm256_broadcast_ss(half + g);
            __m128i q = _mm_loadl_epi64((const void *)(block + NV_GROUPS + 8 * g));
            __m128i low = _mm_shuffle_epi8(table, _mm_and_si128(q, low_half));
            __m128i high = _mm_shuffle_epi8(table, _mm_and_si128(_mm_srli_epi16(q, 4), low_half));
            embla_put_avx2(out + i + NV_GROUP * g, eight_avx2(low, d), mode);
            embla_put_avx2(out + i + NV_GROUP * g + 8, eight_avx2(high, d), mode);
        }
    }
}

EMBLA_AVX512 static void nvfp4_decode_avx512(const void *in, size_t n, float scale,
                                             embla_write_mode mode, float *out)
{
    const unsigned char *block = in;
    const __m512 table =
        _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const void *)twice)));
    const __m512i shift = _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 4, 4, 4, 4, 4, 4, 4, 4);
    (void)scale;
    for (size_t i = 0; i < n; i += NV_BLOCK, block += NV_BYTES) {
        const __m512 half = _mm512_castps128_ps512(half_scales(block));
        for (size_t g = 0; g < NV_GROUPS; g++) {
            __m512 d = _mm512_permutexvar_ps(_mm512_set1_epi32((int)g), half);
            long long eight;
            memcpy(&eight, block + NV_GROUPS + 8 * g, sizeof eight);
            __m512i q = _mm512_cvtepu8_epi32(_mm_set1_epi64x(eight));
            __m512 x = _mm512_permutexvar_ps(_mm512_srlv_epi32(q, shift), _mm512_mul_ps(d, table));
            embla_put_avx512(out + i + NV_GROUP * g, x, mode);
        }
    }
}

/* Four bytes contain eight numbers: each lane shifts them so that its own is lowest. */
EMBLA_AVX2 static void f4_e2m1_decode_avx2(const void *in, size_t n, float scale,
                                           embla_write_mode mode, float *out)
{
    const unsigned char *bytes = in;
    const __m256 table = _mm256_mul_ps(_mm256_loadu_ps(magnitudes), _mm256_set1_ps(scale));
    const __m256i shift = _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28);
    const __m256i sign = _mm256_set1_epi32((int)0x80000000u);
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        int word;
        memcpy(&word, bytes + i / 2, sizeof word);
        __m256i q = _mm256_srlv_epi32(_mm256_set1_epi32(word), shift);
        __m256i negative = _mm256_and_si256(_mm256_slli_epi32(q, 28), sign);
        __m256 x = _mm256_permutevar8x32_ps(table, q);
        embla_put_avx2(out + i, _mm256_xor_ps(x, _mm256_castsi256_ps(negative)), mode);
    }
    f4_e2m1_decode(bytes + i / 2, n - i, scale, mode, out + i);
}

EMBLA_AVX512 static void f4_e2m1_decode_avx512(const void *in, size_t n, float scale,
                                               embla_write_mode mode, float *out)
{
    const unsigned char *bytes = in;
    const __m512 table = _mm512_mul_ps(
        _mm512_setr_ps(0, 0.5f, 1, 1.5f, 2, 3, 4, 6, -0.0f, -0.5f, -1, -1.5f, -2, -3, -4, -6),
        _mm512_set1_ps(scale));
    const __m512i shift =
        _mm512_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28, 0, 4, 8, 12, 16, 20, 24, 28);
    const __m512i of_word = _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1);
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        __m128i words = _mm_loadl_epi64((const void *)(bytes + i / 2));
        __m512i q = _mm512_permutexvar_epi32(of_word, _mm512_castsi128_si512(words));
        q = _mm512_srlv_epi32(q, shift);
        embla_put_avx512(out + i, _mm512_permutexvar_ps(q, table), mode);
    }
    f4_e2m1_decode(bytes + i / 2, n - i, scale, mode, out + i);
}

#endif

#if EMBLA_ARM

/* The upper bytes of the f16 of `twice`, and of the numbers of f4_e2m1, which has -0. Their lower
 * bytes are 0. */
static const uint8_t twice_f16[16] = {0x00, 0x3c, 0x40, 0x42, 0x44, 0x46, 0x48, 0x4a,
                                      0x00, 0xbc, 0xc0, 0xc2, 0xc4, 0xc6, 0xc8, 0xca};
static const uint8_t e2m1_f16[16] = {0x00, 0x38, 0x3c, 0x3e, 0x40, 0x42, 0x44, 0x46,
                                     0x80, 0xb8, 0xbc, 0xbe, 0xc0, 0xc2, 0xc4, 0xc6};

static void mxfp4_decode_neon(const void *in, size_t n, float scale, embla_write_mode mode,
                              float *out)
{
    const unsigned char *block = in;
    const uint8x16_t table = vld1q_u8(twice_f16);
    (void)scale;
    for (size_t i = 0; i < n; i += MX_BLOCK, block += MX_BYTES) {
        const float32x4_t half = vdupq_n_f32(power_of(block[0]) * 0.5f);
        const uint8x16_t q = vld1q_u8(block + 1);
        embla_sixteen low = embla_sixteen_of_upper(embla_neon_low_half(table, q));
        embla_sixteen high = embla_sixteen_of_upper(embla_neon_high_half(table, q));
        embla_sixteen_put_times(low, half, mode, out + i);
        embla_sixteen_put_times(high, half, mode, out + i + MX_BLOCK / 2);
    }
}

/* Half of each of the four scales of an nvfp4 block. */
static inline float32x4_t half_scales_neon(const unsigned char *block)
{
    uint32_t word;
    memcpy(&word, block, sizeof word);
    uint16x4_t codes = vget_low_u16(vmovl_u8(vcreate_u8(word)));
    uint16x4_t f16 = vshl_n_u16(vand_u16(codes, vdup_n_u16(0x7f)), 7);
    f16 = vbic_u16(f16, vceq_u16(codes, vdup_n_u16(0x7f)));
    return vmulq_n_f32(vcvt_f32_f16(vreinterpret_f16_u16(f16)), 128.0f);
}

static void nvfp4_decode_neon(const void *in, size_t n, float scale, embla_write_mode mode,
                              float *out)
{
    const unsigned char *block = in;
    const uint8x16_t table = vld1q_u8(twice_f16);
    (void)scale;
    for (size_t i = 0; i < n; i += NV_BLOCK, block += NV_BYTES) {
        float half[NV_GROUPS];
        vst1q_f32(half, half_scales_neon(block));
        for (size_t g = 0; g < NV_GROUPS; g++) {
            uint8x8_t q = vld1_u8(block + NV_GROUPS + 8 * g);
            uint8x16_t codes = vcombine_u8(vand_u8(q, vdup_n_u8(15)), vshr_n_u8(q, 4));
            embla_sixteen_put_times(embla_sixteen_of_upper(vqtbl1q_u8(table, codes)),
                                    vdupq_n_f32(half[g]), mode, out + i + NV_GROUP * g);
        }
    }
}

static void f4_e2m1_decode_neon(const void *in, size_t n, float scale, embla_write_mode mode,
                                float *out)
{
    const unsigned char *bytes = in;
    const uint8x16_t table = vld1q_u8(e2m1_f16);
    const float32x4_t times = vdupq_n_f32(scale);
    size_t i = 0;
    for (; i + 32 <= n; i += 32) {
        const uint8x16_t q = vld1q_u8(bytes + i / 2);
        uint8x16_t even = embla_neon_low_half(table, q), odd = embla_neon_high_half(table, q);
        embla_sixteen first = embla_sixteen_of_upper(vzip1q_u8(even, odd));
        embla_sixteen second = embla_sixteen_of_upper(vzip2q_u8(even, odd));
        embla_sixteen_put_times(first, times, mode, out + i);
        embla_sixteen_put_times(second, times, mode, out + i + 16);
    }
    f4_e2m1_decode(bytes + i / 2, n - i, scale, mode, out + i);
}

#endif

const embla_codec embla_codec_mxfp4 = {
    .decode =
        EMBLA_ISA_TABLE(mxfp4_decode, mxfp4_decode_neon, mxfp4_decode_avx2, mxfp4_decode_avx512),
    .encode = {mxfp4_encode}};
const embla_codec embla_codec_nvfp4 = {
    .decode =
        EMBLA_ISA_TABLE(nvfp4_decode, nvfp4_decode_neon, nvfp4_decode_avx2, nvfp4_decode_avx512),
    .encode = {nvfp4_encode}};
const embla_codec embla_codec_f4_e2m1 = {
    .decode = EMBLA_ISA_TABLE(f4_e2m1_decode, f4_e2m1_decode_neon, f4_e2m1_decode_avx2,
                              f4_e2m1_decode_avx512),
    .encode = {f4_e2m1_encode}};
