/* SPDX-License-Identifier: Apache-2.0 */
/* ggml's q6_K. A superblock of 210 bytes holds 256 numbers in 16 groups of 16:
 *
 *   0..127    low[128]: four bits of two numbers each
 *   128..191  high[64]: two bits of four numbers each
 *   192..207  scale[16], signed bytes
 *   208..209  d, an f16
 *
 * Each half of 128 has 64 bytes of low and 32 of high. Number 32 j + l of a half has the low bits
 * of low[32 (j % 2) + l], lower half for j < 2, and (high[l] >> 2 j) & 3 above them:
 *
 *   number = (d * scale) * (bits - 32)
 *
 * Only read: ggml's encoders search for scales by weights that a table does not have.
 */
#include "base/codec_k.h"

enum { BLOCK_BYTES = 210, HIGH = 128, SCALES = 192, D = 208 };

static void q6_k_decode(const void *in, size_t n, float scale, embla_write_mode mode, float *out)
{
    const unsigned char *block = in;
    (void)scale, (void)mode;
    for (size_t i = 0; i < n; i += EMBLA_SUPER, block += BLOCK_BYTES) {
        const signed char *scales = (const signed char *)block + SCALES;
        float d = embla_f32_from_f16(embla_load_u16(block + D));
        for (size_t k = 0; k < 16; k++) {
            size_t h = k / 8, j = k / 2 % 4, first = k % 2 * 16;
            float group = d * (float)scales[k], *to = out + i + 16 * k;
            for (size_t l = first; l < first + 16; l++) {
                int both = block[64 * h + 32 * (j % 2) + l];
                int low = j < 2 ? both & 15 : both >> 4;
                int high = block[HIGH + 32 * h + l] >> (2 * j) & 3;
                *to++ = group * (float)((low | high << 4) - 32);
            }
        }
    }
}

#if EMBLA_X86

/* low | two bits of high, shifted to bits 4 and 5, minus 32. */
EMBLA_AVX2 static inline void join_avx2(__m256i low, __m256i high, signed char *q)
{
    const __m256i four = _mm256_set1_epi8(15), two = _mm256_set1_epi8(0x30);
    __m256i x = _mm256_or_si256(_mm256_and_si256(low, four), _mm256_and_si256(high, two));
    _mm256_storeu_si256((void *)q, _mm256_sub_epi8(x, _mm256_set1_epi8(32)));
}

/* The integers of a superblock, -32 .. 31, and the scales of its groups. */
EMBLA_AVX2 static inline void unpack_avx2(const unsigned char *block, signed char *q, float *scales)
{
    const float d = _cvtsh_ss(embla_load_u16(block + D));
    __m128i all = _mm_loadu_si128((const void *)(block + SCALES));
    embla_k_scales_avx2(d, all, scales);
    embla_k_scales_avx2(d, _mm_srli_si128(all, 8), scales + 8);
    for (size_t h = 0; h < 2; h++, q += 128) {
        __m256i a = embla_k_load(block + 64 * h), b = embla_k_load(block + 64 * h + 32);
        __m256i high = embla_k_load(block + HIGH + 32 * h);
        join_avx2(a, _mm256_slli_epi16(high, 4), q);
        join_avx2(b, _mm256_slli_epi16(high, 2), q + 32);
        join_avx2(_mm256_srli_epi16(a, 4), high, q + 64);
        join_avx2(_mm256_srli_epi16(b, 4), _mm256_srli_epi16(high, 2), q + 96);
    }
}

EMBLA_AVX2 static void q6_k_decode_avx2(const void *in, size_t n, float scale,
                                        embla_write_mode mode, float *out)
{
    (void)scale;
    embla_k_decode_avx2(in, n, BLOCK_BYTES, unpack_avx2, mode, out);
}

EMBLA_AVX512 static void q6_k_decode_avx512(const void *in, size_t n, float scale,
                                            embla_write_mode mode, float *out)
{
    (void)scale;
    embla_k_decode_avx512(in, n, BLOCK_BYTES, unpack_avx2, mode, out);
}

#endif

const embla_codec embla_codec_q6_k = {
    .decode = EMBLA_ISA_TABLE(q6_k_decode, NULL, q6_k_decode_avx2, q6_k_decode_avx512)};
