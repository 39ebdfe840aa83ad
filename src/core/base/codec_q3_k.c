/* SPDX-License-Identifier: Apache-2.0 */
/* ggml's q3_K. A superblock of 110 bytes holds 256 numbers in 16 groups of 16:
 *
 *   0..31     high[32]: the third bit of eight numbers each
 *   32..95    low[64]: two bits of four numbers each
 *   96..107   scale[12]: 16 scales of six bits
 *   108..109  d, an f16
 *
 * Number e = 128 h + 32 j + l has the low bits (low[32 h + l] >> 2 j) & 3 and the third bit
 * (high[l] >> (4 h + j)) & 1:    number = (d * (scale - 32)) * (bits - 4)
 *
 * Only read: ggml's encoders search for scales by weights that a table does not have.
 */
#include "base/codec_k.h"

enum { BLOCK_BYTES = 110, LOW = 32, SCALES = 96, D = 108 };

/* The 16 scales minus 32. */
static inline void unpack_scales(const unsigned char *b, signed char *out)
{
    for (size_t k = 0; k < 16; k++) {
        int low = k < 8 ? b[k] & 15 : b[k - 8] >> 4;
        int high = b[8 + k % 4] >> (2 * (k / 4)) & 3;
        out[k] = (signed char)((low | high << 4) - 32);
    }
}

static void q3_k_decode(const void *in, size_t n, float scale, embla_write_mode mode, float *out)
{
    const unsigned char *block = in;
    (void)scale, (void)mode;
    for (size_t i = 0; i < n; i += EMBLA_SUPER, block += BLOCK_BYTES) {
        signed char scales[16];
        float d = embla_f32_from_f16(embla_load_u16(block + D));
        unpack_scales(block + SCALES, scales);
        for (size_t k = 0; k < 16; k++) {
            size_t h = k / 8, j = k / 2 % 4, first = k % 2 * 16;
            float group = d * (float)scales[k], *to = out + i + 16 * k;
            for (size_t l = first; l < first + 16; l++) {
                int low = block[LOW + 32 * h + l] >> (2 * j) & 3;
                int high = block[l] >> (4 * h + j) & 1;
                *to++ = group * (float)((low | high << 2) - 4);
            }
        }
    }
}

#if EMBLA_X86

/* The same as unpack_scales, four at a time. */
EMBLA_AVX2 static inline __m128i scales_avx2(const unsigned char *b)
{
    const uint32_t w0 = embla_k_word(b), w1 = embla_k_word(b + 4), w2 = embla_k_word(b + 8);
    const uint32_t four = 0x0f0f0f0fu, two = 0x03030303u;
    uint32_t x0 = (w0 & four) | (w2 & two) << 4;
    uint32_t x1 = (w1 & four) | (w2 >> 2 & two) << 4;
    uint32_t x2 = (w0 >> 4 & four) | (w2 >> 4 & two) << 4;
    uint32_t x3 = (w1 >> 4 & four) | (w2 >> 6 & two) << 4;
    return _mm_sub_epi8(_mm_setr_epi32((int)x0, (int)x1, (int)x2, (int)x3), _mm_set1_epi8(32));
}

/* The integers of a superblock, -4 .. 3, and the scales of its groups. */
EMBLA_AVX2 static inline void unpack_avx2(const unsigned char *block, signed char *q, float *scales)
{
    const __m256i two = _mm256_set1_epi8(3), bit = _mm256_set1_epi8(4);
    const __m256i high = embla_k_load(block);
    const float d = _cvtsh_ss(embla_load_u16(block + D));
    __m128i all = scales_avx2(block + SCALES);
    embla_k_scales_avx2(d, all, scales);
    embla_k_scales_avx2(d, _mm_srli_si128(all, 8), scales + 8);
    for (int h = 0; h < 2; h++) {
        __m256i low = embla_k_load(block + LOW + 32 * h);
        for (int j = 0; j < 4; j++) {
            /* Shift the third bit to its place; if it is 0, the number is 4 less. */
            int from = 4 * h + j;
            __m256i third =
                from < 2 ? _mm256_slli_epi16(high, 2 - from) : _mm256_srli_epi16(high, from - 2);
            __m256i x = _mm256_and_si256(_mm256_srli_epi16(low, 2 * j), two);
            x = _mm256_sub_epi8(x, _mm256_andnot_si256(third, bit));
            _mm256_storeu_si256((void *)(q + 128 * h + 32 * j), x);
        }
    }
}

EMBLA_AVX2 static void q3_k_decode_avx2(const void *in, size_t n, float scale,
                                        embla_write_mode mode, float *out)
{
    (void)scale;
    embla_k_decode_avx2(in, n, BLOCK_BYTES, unpack_avx2, mode, out);
}

EMBLA_AVX512 static void q3_k_decode_avx512(const void *in, size_t n, float scale,
                                            embla_write_mode mode, float *out)
{
    (void)scale;
    embla_k_decode_avx512(in, n, BLOCK_BYTES, unpack_avx2, mode, out);
}

#endif

const embla_codec embla_codec_q3_k = {
    .decode = EMBLA_ISA_TABLE(q3_k_decode, NULL, q3_k_decode_avx2, q3_k_decode_avx512)};
