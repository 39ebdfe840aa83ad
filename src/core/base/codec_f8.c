/* SPDX-License-Identifier: Apache-2.0 */
/* The two 8-bit floats of the Open Compute Project's OFP8 specification, 2023.
 *
 *   e4m3fn  s eeee mmm    bias 7, no infinity, S.1111.111 is NaN, largest 448
 *   e5m2    s eeeee mm    bias 15, the upper byte of an f16
 *
 * Both are decoded through f16. e5m2 is shifted by 8. e4m3 is shifted by 7, which leaves its
 * exponent too small by 8, so the result is multiplied by 256 (exact, also for subnormals). A table
 * of 256 floats would need a gather for each group of numbers, which is several times slower.
 *
 * Vector loops decode 32 codes at a time and multiply them by one float: 256 times the scale, times
 * the group's power of two if the row has one (row.h). Powers of two change no digits, so there is
 * only one rounding, by the scale. In rare cases this is not true: the float is infinite or
 * subnormal, the group's power is too large, or a code is NaN. Then the scalar loop decodes
 * everything again. This is detected at the end, so that the common case does not wait.
 */
#include <math.h>

#include "base/codec_neon.h"
#include "base/half.h"
#include "base/row.h"

typedef unsigned char byte;

/* ---- loops ---- */

static void e4m3_decode(const void *in, size_t n, float scale, embla_write_mode mode, float *out)
{
    const byte *codes = in;
    (void)mode;
    for (size_t i = 0; i < n; i++) out[i] = embla_f32_from_e4m3(codes[i]) * scale;
}

/* Decodes a group. If the group's scale is NaN, its codes are not used: the sign of NaN times NaN
 * would depend on the compiler. */
static void group_decode(const byte *codes, size_t n, float group, float scale, float *out)
{
    const bool lost = isnan(group);
    for (size_t i = 0; i < n; i++)
        out[i] = embla_f32_from_e4m3(lost ? 0 : codes[i]) * group * scale;
}

static void rows_decode(const embla_row_format *f, const byte *codes, const byte *scales, size_t n,
                        embla_write_mode mode, float *out)
{
    const size_t group = f->scales == EMBLA_SCALES_UE8M0_32 ? 32 : 128;
    (void)mode;
    for (size_t i = 0; i < n; i += group)
        group_decode(codes + i, n - i < group ? n - i : group, embla_f32_from_ue8m0(*scales++),
                     f->scale, out + i);
}

static void e4m3_encode(const float *in, size_t n, float scale, void *out)
{
    unsigned char *bytes = out;
    for (size_t i = 0; i < n; i++) {
        uint32_t bits = embla_bits(in[i] / scale), magnitude = bits & 0x7fffffffu;
        uint32_t result = 0x7f;
        if (magnitude < 0x7f800000u) result = embla_narrow(magnitude, 3, 120, 9);
        if (result > 0x7f) result = 0x7f; /* above 464 there is only NaN */
        bytes[i] = (unsigned char)((bits >> 24 & 0x80u) | result);
    }
}

static void e5m2_decode(const void *in, size_t n, float scale, embla_write_mode mode, float *out)
{
    (void)mode;
    const unsigned char *bytes = in;
    for (size_t i = 0; i < n; i++) out[i] = embla_f32_from_f16((uint16_t)(bytes[i] << 8)) * scale;
}

static void e5m2_encode(const float *in, size_t n, float scale, void *out)
{
    unsigned char *bytes = out;
    for (size_t i = 0; i < n; i++) {
        uint32_t bits = embla_bits(in[i] / scale), magnitude = bits & 0x7fffffffu;
        uint32_t result = 0x7e; /* quiet NaN */
        if (magnitude <= 0x7f800000u) result = embla_narrow(magnitude, 2, 112, 16);
        if (magnitude <= 0x7f800000u && result > 0x7c) result = 0x7c;
        bytes[i] = (unsigned char)((bits >> 24 & 0x80u) | result);
    }
}

#if EMBLA_X86 || EMBLA_ARM

/* Groups that can be multiplied at once: 256 times the scale times 2^(code - 127) is a normal float
 * for `count` codes from `least` on, and 448 times 2^(code - 127) is finite. */
typedef struct {
    uint32_t scale; /* the bits of it */
    unsigned least, count;
} usual;

static inline usual usual_of(float scale)
{
    usual u = {.scale = embla_bits(scale)};
    unsigned exponent = u.scale >> 23 & 255u; /* 0 means subnormal: then there are none */
    u.least = exponent < 120 ? 120 - exponent : 0;
    unsigned end = exponent > 373 - 245 ? 374 - exponent : 246;
    u.count = exponent > 0 && end > u.least ? end - u.least : 0;
    return u;
}

static inline bool usual_times(const usual *u, byte group, float *times)
{
    *times = embla_float(u->scale + ((uint32_t)(group - 119) << 23));
    return group - u->least < u->count;
}

#endif

/* decode_32 decodes 32 codes times one float. It returns true if one is NaN, which is decoded
 * wrongly. An f8 with its sign in bit 15 and the rest shifted up by 7 is an f16 that is too small
 * by a factor of 256. */
#if EMBLA_X86

EMBLA_AVX2 static inline bool decode_32_avx2(const byte *codes, float times, embla_write_mode mode,
                                             float *out)
{
    const __m256i most = _mm256_set1_epi8(0x7f), keep = _mm256_set1_epi16((short)0xbfff);
    const __m256 scale = _mm256_set1_ps(times);
    __m256i all = _mm256_and_si256(_mm256_loadu_si256((const void *)codes), most);
    for (size_t i = 0; i < 32; i += 16) {
        __m256i x = _mm256_cvtepi8_epi16(_mm_loadu_si128((const void *)(codes + i)));
        x = _mm256_and_si256(_mm256_slli_epi16(x, 7), keep);
        __m256 low = _mm256_cvtph_ps(_mm256_castsi256_si128(x));
        __m256 high = _mm256_cvtph_ps(_mm256_extracti128_si256(x, 1));
        embla_put_avx2(out + i, _mm256_mul_ps(low, scale), mode);
        embla_put_avx2(out + i + 8, _mm256_mul_ps(high, scale), mode);
    }
    return _mm256_movemask_epi8(_mm256_cmpeq_epi8(all, most)) != 0;
}

EMBLA_AVX512 static inline bool decode_32_avx512(const byte *codes, float times,
                                                 embla_write_mode mode, float *out)
{
    const __m256i most = _mm256_set1_epi8(0x7f);
    const __m512 scale = _mm512_set1_ps(times);
    __m256i all = _mm256_loadu_si256((const void *)codes);
    __m512i x = _mm512_slli_epi16(_mm512_cvtepi8_epi16(all), 7);
    x = _mm512_and_si512(x, _mm512_set1_epi16((short)0xbfff));
    __m512 low = _mm512_cvtph_ps(_mm512_castsi512_si256(x));
    __m512 high = _mm512_cvtph_ps(_mm512_extracti64x4_epi64(x, 1));
    embla_put_avx512(out, _mm512_mul_ps(low, scale), mode);
    embla_put_avx512(out + 16, _mm512_mul_ps(high, scale), mode);
    return _mm256_cmpeq_epi8_mask(_mm256_and_si256(all, most), most) != 0;
}

#endif

#if EMBLA_ARM

static inline bool decode_32_neon(const byte *codes, float times, embla_write_mode mode, float *out)
{
    const uint8x16_t most = vdupq_n_u8(0x7f);
    const float32x4_t scale = vdupq_n_f32(times);
    const uint16x8_t keep = vdupq_n_u16(0xbfff);
    uint8x16_t lost = vdupq_n_u8(0);
    for (size_t i = 0; i < 32; i += 16) {
        uint8x16_t x = vld1q_u8(codes + i);
        int8x16_t s = vreinterpretq_s8_u8(x);
        uint16x8_t low = vreinterpretq_u16_s16(vshll_n_s8(vget_low_s8(s), 7));
        uint16x8_t high = vreinterpretq_u16_s16(vshll_high_n_s8(s, 7));
        embla_sixteen halves = embla_sixteen_of_f16(vandq_u16(low, keep), vandq_u16(high, keep));
        embla_sixteen_put_times(halves, scale, mode, out + i);
        lost = vorrq_u8(lost, vceqq_u8(vandq_u8(x, most), most));
    }
    return vmaxvq_u8(lost) != 0;
}

#endif

/* The loops of a set. FENCE completes streamed writes before the scalar loop writes again. */
#define LOOPS(TARGET, FENCE, decode_32, e4m3_loop, rows_loop)                                      \
    TARGET static void e4m3_loop(const void *in, size_t n, float scale, embla_write_mode mode,     \
                                 float *out)                                                       \
    {                                                                                              \
        const byte *codes = in;                                                                    \
        const float times = 256.0f * scale;                                                        \
        bool again = !isfinite(times);                                                             \
        size_t i = 0;                                                                              \
        for (; i + 32 <= n; i += 32) again |= decode_32(codes + i, times, mode, out + i);          \
        if (again) {                                                                               \
            FENCE;                                                                                 \
            i = 0;                                                                                 \
        }                                                                                          \
        e4m3_decode(codes + i, n - i, scale, mode, out + i);                                       \
    }                                                                                              \
                                                                                                   \
    TARGET static void rows_loop(const embla_row_format *f, const byte *codes, const byte *scales, \
                                 size_t n, embla_write_mode mode, float *out)                      \
    {                                                                                              \
        const unsigned bits = f->scales == EMBLA_SCALES_UE8M0_32 ? 5 : 7;                          \
        const usual u = usual_of(f->scale);                                                        \
        bool again = false;                                                                        \
        size_t i = 0;                                                                              \
        for (; i + 32 <= n; i += 32) {                                                             \
            float times;                                                                           \
            again |= !usual_times(&u, scales[i >> bits], &times);                                  \
            again |= decode_32(codes + i, times, mode, out + i);                                   \
        }                                                                                          \
        if (again) {                                                                               \
            FENCE;                                                                                 \
            rows_decode(f, codes, scales, n, mode, out);                                           \
        } else if (i < n) {                                                                        \
            group_decode(codes + i, n - i, embla_f32_from_ue8m0(scales[i >> bits]), f->scale,      \
                         out + i);                                                                 \
        }                                                                                          \
    }

#if EMBLA_X86

LOOPS(EMBLA_AVX2, _mm_sfence(), decode_32_avx2, e4m3_decode_avx2, rows_decode_avx2)
LOOPS(EMBLA_AVX512, _mm_sfence(), decode_32_avx512, e4m3_decode_avx512, rows_decode_avx512)

EMBLA_AVX2 static void e5m2_decode_avx2(const void *in, size_t n, float scale,
                                        embla_write_mode mode, float *out)
{
    const char *bytes = in;
    const __m256 times = _mm256_set1_ps(scale);
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        __m128i codes = _mm_cvtepu8_epi16(_mm_loadl_epi64((const void *)(bytes + i)));
        __m256 x = _mm256_cvtph_ps(_mm_slli_epi16(codes, 8));
        embla_put_avx2(out + i, _mm256_mul_ps(x, times), mode);
    }
    e5m2_decode(bytes + i, n - i, scale, mode, out + i);
}

EMBLA_AVX512 static void e5m2_decode_avx512(const void *in, size_t n, float scale,
                                            embla_write_mode mode, float *out)
{
    const char *bytes = in;
    const __m512 times = _mm512_set1_ps(scale);
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        __m256i codes = _mm256_cvtepu8_epi16(_mm_loadu_si128((const void *)(bytes + i)));
        __m512 x = _mm512_cvtph_ps(_mm256_slli_epi16(codes, 8));
        embla_put_avx512(out + i, _mm512_mul_ps(x, times), mode);
    }
    e5m2_decode(bytes + i, n - i, scale, mode, out + i);
}

#endif

#if EMBLA_ARM

LOOPS(, (void)0, decode_32_neon, e4m3_decode_neon, rows_decode_neon) /* stnp keeps the order */

static void e5m2_decode_neon(const void *in, size_t n, float scale, embla_write_mode mode,
                             float *out)
{
    const byte *codes = in;
    const float32x4_t times = vdupq_n_f32(scale);
    size_t i = 0;
    for (; i + 16 <= n; i += 16)
        embla_sixteen_put_times(embla_sixteen_of_upper(vld1q_u8(codes + i)), times, mode, out + i);
    e5m2_decode(codes + i, n - i, scale, mode, out + i);
}

#endif

const embla_codec embla_codec_f8_e4m3 = {
    .decode = EMBLA_ISA_TABLE(e4m3_decode, e4m3_decode_neon, e4m3_decode_avx2, e4m3_decode_avx512),
    .encode = {e4m3_encode}};
const embla_codec embla_codec_f8_e5m2 = {
    .decode = EMBLA_ISA_TABLE(e5m2_decode, e5m2_decode_neon, e5m2_decode_avx2, e5m2_decode_avx512),
    .encode = {e5m2_encode}};
embla_scaled_fn *const embla_f8_rows[EMBLA_ISA_COUNT] =
    EMBLA_ISA_TABLE(rows_decode, rows_decode_neon, rows_decode_avx2, rows_decode_avx512);
