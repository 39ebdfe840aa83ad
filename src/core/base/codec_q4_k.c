/* SPDX-License-Identifier: Apache-2.0 */
/* ggml's q4_K and q5_K. A superblock holds 256 numbers in 8 groups of 32, each group with a
 * scale and an offset of six bits:
 *
 *   q4_K, 144 bytes            q5_K, 176 bytes
 *   0..1     d, an f16         the same
 *   2..3     dmin, an f16      the same
 *   4..15    scales, offsets   the same
 *                              16..47  fifth[32]: bit g is of group g
 *   16..143  code[128]         48..175
 *
 * Groups 2 p and 2 p + 1 share 32 bytes of codes: the lower halves are of the first of them.
 *
 *   number = (d * scale) * code - (dmin * offset),  each product rounded, then the difference
 *
 * Only read: ggml's encoders search for scales by weights that a table does not have.
 */
#include "base/codec_k.h"

enum { Q4_BYTES = 144, Q5_BYTES = 176, SCALES = 4, FIFTH = 16, Q4_CODES = 16, Q5_CODES = 48 };

/* The scale and the offset of group j. */
static inline void unpack_scale(const unsigned char *b, size_t j, float *scale, float *offset)
{
    if (j < 4) {
        *scale = (float)(b[j] & 63);
        *offset = (float)(b[j + 4] & 63);
    } else {
        *scale = (float)((b[j + 4] & 15) | b[j - 4] >> 6 << 4);
        *offset = (float)(b[j + 4] >> 4 | b[j] >> 6 << 4);
    }
}

/* Both: fifth is NULL for q4_K. */
static void decode_super(const unsigned char *block, const unsigned char *fifth,
                         const unsigned char *codes, float *out)
{
    float d = embla_f32_from_f16(embla_load_u16(block));
    float dmin = embla_f32_from_f16(embla_load_u16(block + 2));
    for (size_t g = 0; g < 8; g++) {
        float scale, offset;
        unpack_scale(block + SCALES, g, &scale, &offset);
        scale *= d;
        offset *= dmin;
        for (size_t l = 0; l < 32; l++) {
            int both = codes[32 * (g / 2) + l], code = g % 2 == 0 ? both & 15 : both >> 4;
            if (fifth) code |= (fifth[l] >> g & 1) << 4;
            out[32 * g + l] = scale * (float)code - offset;
        }
    }
}

static void q4_k_decode(const void *in, size_t n, float scale, embla_write_mode mode, float *out)
{
    const unsigned char *block = in;
    (void)scale, (void)mode;
    for (size_t i = 0; i < n; i += EMBLA_SUPER, block += Q4_BYTES)
        decode_super(block, NULL, block + Q4_CODES, out + i);
}

static void q5_k_decode(const void *in, size_t n, float scale, embla_write_mode mode, float *out)
{
    const unsigned char *block = in;
    (void)scale, (void)mode;
    for (size_t i = 0; i < n; i += EMBLA_SUPER, block += Q5_BYTES)
        decode_super(block, block + FIFTH, block + Q5_CODES, out + i);
}

#if EMBLA_X86

/* d * scale of the eight groups, then dmin * offset of the eight: as unpack_scale, four bytes at
 * a time. */
EMBLA_AVX2 static inline void scales_avx2(const unsigned char *block, float *scales, float *offsets)
{
    const unsigned char *b = block + SCALES;
    const uint32_t w0 = embla_k_word(b), w1 = embla_k_word(b + 4), w2 = embla_k_word(b + 8);
    const uint32_t six = 0x3f3f3f3fu, four = 0x0f0f0f0fu, two = 0x03030303u;
    uint32_t high = (w2 & four) | (w0 >> 6 & two) << 4;
    uint32_t high_offsets = (w2 >> 4 & four) | (w1 >> 6 & two) << 4;
    uint64_t all = (w0 & six) | (uint64_t)high << 32;
    uint64_t all_offsets = (w1 & six) | (uint64_t)high_offsets << 32;
    embla_k_scales_avx2(_cvtsh_ss(embla_load_u16(block)), _mm_cvtsi64_si128((long long)all),
                        scales);
    embla_k_scales_avx2(_cvtsh_ss(embla_load_u16(block + 2)),
                        _mm_cvtsi64_si128((long long)all_offsets), offsets);
}

/* Eight codes, one in each lane. */
EMBLA_AVX2 static inline void put_eight(__m256i codes, __m256 scale, __m256 offset,
                                        embla_write_mode mode, float *out)
{
    __m256 x = _mm256_mul_ps(scale, _mm256_cvtepi32_ps(codes));
    embla_put_avx2(out, _mm256_sub_ps(x, offset), mode);
}

EMBLA_AVX2 static void q4_k_decode_avx2(const void *in, size_t n, float scale,
                                        embla_write_mode mode, float *out)
{
    const unsigned char *block = in;
    const __m256i four = _mm256_set1_epi32(15);
    (void)scale;
    for (size_t i = 0; i < n; i += EMBLA_SUPER, block += Q4_BYTES) {
        float scales[8], offsets[8];
        scales_avx2(block, scales, offsets);
        for (size_t g = 0; g < 8; g += 2) {
            const unsigned char *codes = block + Q4_CODES + 16 * g;
            const __m256 d0 = _mm256_set1_ps(scales[g]), m0 = _mm256_set1_ps(offsets[g]);
            const __m256 d1 = _mm256_set1_ps(scales[g + 1]), m1 = _mm256_set1_ps(offsets[g + 1]);
            float *to = out + i + 32 * g;
            for (size_t l = 0; l < 32; l += 8) {
                __m256i x = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)(codes + l)));
                put_eight(_mm256_and_si256(x, four), d0, m0, mode, to + l);
                put_eight(_mm256_srli_epi32(x, 4), d1, m1, mode, to + 32 + l);
            }
        }
    }
}

/* The codes of a superblock of q5_K, a byte each; the bits above the fifth are undefined. */
EMBLA_AVX2 static inline void q5_codes(const unsigned char *block, unsigned char *q)
{
    const __m256i bit = _mm256_set1_epi8(16);
    const __m256i fifth = embla_k_load(block + FIFTH);
    for (int g = 0; g < 8; g++) {
        __m256i codes = embla_k_load(block + Q5_CODES + 16 * (g & ~1));
        __m256i above = g < 4 ? _mm256_slli_epi16(fifth, 4 - g) : _mm256_srli_epi16(fifth, g - 4);
        if (g % 2 != 0) codes = _mm256_srli_epi16(codes, 4);
        codes = _mm256_or_si256(_mm256_andnot_si256(bit, codes), _mm256_and_si256(bit, above));
        _mm256_storeu_si256((void *)(q + 32 * g), codes);
    }
}

EMBLA_AVX2 static void q5_k_decode_avx2(const void *in, size_t n, float scale,
                                        embla_write_mode mode, float *out)
{
    const unsigned char *block = in;
    const __m256i five = _mm256_set1_epi32(31);
    (void)scale;
    for (size_t i = 0; i < n; i += EMBLA_SUPER, block += Q5_BYTES) {
        float scales[8], offsets[8];
        unsigned char q[EMBLA_SUPER];
        scales_avx2(block, scales, offsets);
        q5_codes(block, q);
        EMBLA_K_STORED(q);
        for (size_t g = 0; g < 8; g++) {
            const __m256 d = _mm256_set1_ps(scales[g]), m = _mm256_set1_ps(offsets[g]);
            for (size_t l = 32 * g; l < 32 * g + 32; l += 8) {
                __m256i x = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)(q + l)));
                put_eight(_mm256_and_si256(x, five), d, m, mode, out + i + l);
            }
        }
    }
}

/* A group can contain only sixteen different floats (q5_K: 32): codes select among them. The
 * selection uses only the four (five) low bits of a lane. */
EMBLA_AVX512 static inline __m512 choices_avx512(float scale, __m512 codes, float offset)
{
    return _mm512_sub_ps(_mm512_mul_ps(_mm512_set1_ps(scale), codes), _mm512_set1_ps(offset));
}

EMBLA_AVX512 static inline __m512i bytes_avx512(const unsigned char *p)
{
    return _mm512_cvtepu8_epi32(_mm_loadu_si128((const void *)p));
}

EMBLA_AVX512 static void q4_k_decode_avx512(const void *in, size_t n, float scale,
                                            embla_write_mode mode, float *out)
{
    const unsigned char *block = in;
    const __m512 all = _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    (void)scale;
    for (size_t i = 0; i < n; i += EMBLA_SUPER, block += Q4_BYTES) {
        float scales[8], offsets[8];
        scales_avx2(block, scales, offsets);
        for (size_t g = 0; g < 8; g += 2) {
            const unsigned char *codes = block + Q4_CODES + 16 * g;
            __m512 first = choices_avx512(scales[g], all, offsets[g]);
            __m512 second = choices_avx512(scales[g + 1], all, offsets[g + 1]);
            __m512i x = bytes_avx512(codes), y = bytes_avx512(codes + 16);
            float *to = out + i + 32 * g;
            embla_put_avx512(to, _mm512_permutexvar_ps(x, first), mode);
            embla_put_avx512(to + 16, _mm512_permutexvar_ps(y, first), mode);
            x = _mm512_srli_epi32(x, 4);
            y = _mm512_srli_epi32(y, 4);
            embla_put_avx512(to + 32, _mm512_permutexvar_ps(x, second), mode);
            embla_put_avx512(to + 48, _mm512_permutexvar_ps(y, second), mode);
        }
    }
}

EMBLA_AVX512 static void q5_k_decode_avx512(const void *in, size_t n, float scale,
                                            embla_write_mode mode, float *out)
{
    const unsigned char *block = in;
    const __m512 all = _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512 more = _mm512_add_ps(all, _mm512_set1_ps(16.0f));
    (void)scale;
    for (size_t i = 0; i < n; i += EMBLA_SUPER, block += Q5_BYTES) {
        float scales[8], offsets[8];
        unsigned char q[EMBLA_SUPER];
        scales_avx2(block, scales, offsets);
        q5_codes(block, q);
        EMBLA_K_STORED(q);
        for (size_t g = 0; g < 8; g++) {
            __m512 low = choices_avx512(scales[g], all, offsets[g]);
            __m512 high = choices_avx512(scales[g], more, offsets[g]);
            __m512i x = bytes_avx512(q + 32 * g), y = bytes_avx512(q + 32 * g + 16);
            float *to = out + i + 32 * g;
            embla_put_avx512(to, _mm512_permutex2var_ps(low, x, high), mode);
            embla_put_avx512(to + 16, _mm512_permutex2var_ps(low, y, high), mode);
        }
    }
}

#endif

const embla_codec embla_codec_q4_k = {
    .decode = EMBLA_ISA_TABLE(q4_k_decode, NULL, q4_k_decode_avx2, q4_k_decode_avx512)};
const embla_codec embla_codec_q5_k = {
    .decode = EMBLA_ISA_TABLE(q5_k_decode, NULL, q5_k_decode_avx2, q5_k_decode_avx512)};
