/* SPDX-License-Identifier: Apache-2.0 */
/* ggml's iq4_xs. A superblock of 136 bytes holds 256 numbers in 8 groups of 32:
 *
 *   0..1    d, an f16
 *   2..3    high: two bits of each group's scale
 *   4..7    low[4]: four bits of two groups' scales each
 *   8..135  code[128]: 16 bytes a group, its first 16 numbers in the lower halves
 *
 *   number = (d * (scale - 32)) * values[code]
 *
 * The sixteen values are those of iq4_nl: close together near 0, where most numbers are. Only
 * read: ggml's encoders search for scales by weights that a table does not have.
 */
#include "base/codec_k.h"
#include "base/codec_neon.h"

enum { BLOCK_BYTES = 136, LOW = 4, CODES = 8 };

static const signed char values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                       1,    13,   25,  38,  53,  69,  89,  113};

/* The scale of group b, less 32. */
static inline int scale_of(const unsigned char *block, size_t b)
{
    int low = b % 2 == 0 ? block[LOW + b / 2] & 15 : block[LOW + b / 2] >> 4;
    int high = embla_load_u16(block + 2) >> (2 * b) & 3;
    return (low | high << 4) - 32;
}

static void iq4_xs_decode(const void *in, size_t n, float scale, embla_write_mode mode, float *out)
{
    const unsigned char *block = in;
    (void)scale, (void)mode;
    for (size_t i = 0; i < n; i += EMBLA_SUPER, block += BLOCK_BYTES) {
        float d = embla_f32_from_f16(embla_load_u16(block));
        for (size_t b = 0; b < 8; b++) {
            float group = d * (float)scale_of(block, b), *to = out + i + 32 * b;
            const unsigned char *codes = block + CODES + 16 * b;
            for (size_t l = 0; l < 16; l++) {
                to[l] = group * (float)values[codes[l] & 15];
                to[l + 16] = group * (float)values[codes[l] >> 4];
            }
        }
    }
}

#if EMBLA_X86

EMBLA_AVX2 static void iq4_xs_decode_avx2(const void *in, size_t n, float scale,
                                          embla_write_mode mode, float *out)
{
    const unsigned char *block = in;
    const __m128i table = _mm_loadu_si128((const void *)values), four = _mm_set1_epi8(15);
    (void)scale;
    for (size_t i = 0; i < n; i += EMBLA_SUPER, block += BLOCK_BYTES) {
        float d = _cvtsh_ss(embla_load_u16(block));
        for (size_t b = 0; b < 8; b++) {
            signed char q[32];
            float group = d * (float)scale_of(block, b);
            __m128i codes = _mm_loadu_si128((const void *)(block + CODES + 16 * b));
            __m128i high = _mm_and_si128(_mm_srli_epi16(codes, 4), four);
            __m128i low = _mm_and_si128(codes, four);
            _mm_storeu_si128((void *)q, _mm_shuffle_epi8(table, low));
            _mm_storeu_si128((void *)(q + 16), _mm_shuffle_epi8(table, high));
            EMBLA_K_STORED(q);
            embla_k_group_avx2(q, group, mode, out + i + 32 * b);
            embla_k_group_avx2(q + 16, group, mode, out + i + 32 * b + 16);
        }
    }
}

/* A group can contain only sixteen different floats: codes select among them. The selection uses
 * only the four low bits of a lane. */
EMBLA_AVX512 static void iq4_xs_decode_avx512(const void *in, size_t n, float scale,
                                              embla_write_mode mode, float *out)
{
    const unsigned char *block = in;
    const __m512 all =
        _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const void *)values)));
    (void)scale;
    for (size_t i = 0; i < n; i += EMBLA_SUPER, block += BLOCK_BYTES) {
        float d = _cvtsh_ss(embla_load_u16(block));
        for (size_t b = 0; b < 8; b++) {
            float group = d * (float)scale_of(block, b), *to = out + i + 32 * b;
            __m512 choices = _mm512_mul_ps(_mm512_set1_ps(group), all);
            __m512i codes =
                _mm512_cvtepu8_epi32(_mm_loadu_si128((const void *)(block + CODES + 16 * b)));
            embla_put_avx512(to, _mm512_permutexvar_ps(codes, choices), mode);
            codes = _mm512_srli_epi32(codes, 4);
            embla_put_avx512(to + 16, _mm512_permutexvar_ps(codes, choices), mode);
        }
    }
}

#endif

#if EMBLA_ARM

static void iq4_xs_decode_neon(const void *in, size_t n, float scale, embla_write_mode mode,
                               float *out)
{
    const unsigned char *block = in;
    const uint8x16_t table = vreinterpretq_u8_s8(vld1q_s8(values));
    (void)scale;
    for (size_t i = 0; i < n; i += EMBLA_SUPER, block += BLOCK_BYTES) {
        const float d = vgetq_lane_f32(embla_neon_f16(block), 0);
        for (size_t b = 0; b < 8; b++) {
            const float32x4_t group = vdupq_n_f32(d * (float)scale_of(block, b));
            const uint8x16_t codes = vld1q_u8(block + CODES + 16 * b);
            int8x16_t low = vreinterpretq_s8_u8(embla_neon_low_half(table, codes));
            int8x16_t high = vreinterpretq_s8_u8(embla_neon_high_half(table, codes));
            float *to = out + i + 32 * b;
            embla_sixteen_put_times(embla_sixteen_of_bytes(low), group, mode, to);
            embla_sixteen_put_times(embla_sixteen_of_bytes(high), group, mode, to + 16);
        }
    }
}

#endif

const embla_codec embla_codec_iq4_xs = {.decode = EMBLA_ISA_TABLE(iq4_xs_decode, iq4_xs_decode_neon,
                                                                  iq4_xs_decode_avx2,
                                                                  iq4_xs_decode_avx512)};
