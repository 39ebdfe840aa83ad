/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by ggml's superblock formats: 256 numbers, stored as small integers with scales for groups
 * of 16 or 32.
 *
 * A vector decoder has two steps. It unpacks the integers of a superblock to a byte each (256 bytes
 * in the L1 cache), then multiplies each by its group's scale. The first step is a few instructions
 * for 32 numbers, the second is the same as for q8_0.
 */
#ifndef EMBLA_BASE_CODEC_K_H
#define EMBLA_BASE_CODEC_K_H

#include <string.h>

#include "base/dtype.h"
#include "base/half.h"

enum { EMBLA_SUPER = 256 };

static inline uint32_t embla_k_word(const unsigned char *p)
{
    uint32_t word;
    memcpy(&word, p, sizeof word);
    return word;
}

#if EMBLA_X86

/* Forces the bytes at p to be in memory. A compiler that sees both steps would move them between
 * registers instead, and all these moves need the same port. */
#define EMBLA_K_STORED(p) __asm__ volatile("" : : "r"(p) : "memory")

/* Sixteen signed bytes times d, to floats. */
EMBLA_AVX512 static inline void embla_k_group_avx512(const signed char *q, float d,
                                                     embla_write_mode mode, float *out)
{
    __m512i x = _mm512_cvtepi8_epi32(_mm_loadu_si128((const void *)q));
    embla_put_avx512(out, _mm512_mul_ps(_mm512_set1_ps(d), _mm512_cvtepi32_ps(x)), mode);
}

EMBLA_AVX2 static inline void embla_k_group_avx2(const signed char *q, float d,
                                                 embla_write_mode mode, float *out)
{
    const __m256 times = _mm256_set1_ps(d);
    __m256i x = _mm256_cvtepi8_epi32(_mm_loadl_epi64((const void *)q));
    __m256i y = _mm256_cvtepi8_epi32(_mm_loadl_epi64((const void *)(q + 8)));
    embla_put_avx2(out, _mm256_mul_ps(times, _mm256_cvtepi32_ps(x)), mode);
    embla_put_avx2(out + 8, _mm256_mul_ps(times, _mm256_cvtepi32_ps(y)), mode);
}

/* d times each of eight bytes, as floats. */
EMBLA_AVX2 static inline void embla_k_scales_avx2(float d, __m128i bytes, float *out)
{
    __m256 x = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes));
    _mm256_storeu_ps(out, _mm256_mul_ps(_mm256_set1_ps(d), x));
}

/* Unpacks a superblock: its integers to 256 signed bytes, the scales of its groups to 16 floats. */
typedef void embla_k_unpack_fn(const unsigned char *block, signed char *q, float *scales);

/* Decodes superblocks of `block_bytes` whose numbers are an integer times the scale of its group of
 * 16. unpack is a constant after inlining. */
EMBLA_AVX2 EMBLA_BODY void embla_k_decode_avx2(const unsigned char *block, size_t n,
                                               size_t block_bytes, embla_k_unpack_fn *unpack,
                                               embla_write_mode mode, float *out)
{
    for (size_t i = 0; i < n; i += EMBLA_SUPER, block += block_bytes) {
        signed char q[EMBLA_SUPER];
        float scales[16];
        unpack(block, q, scales);
        EMBLA_K_STORED(q);
        for (size_t k = 0; k < 16; k++)
            embla_k_group_avx2(q + 16 * k, scales[k], mode, out + i + 16 * k);
    }
}

EMBLA_AVX512 EMBLA_BODY void embla_k_decode_avx512(const unsigned char *block, size_t n,
                                                   size_t block_bytes, embla_k_unpack_fn *unpack,
                                                   embla_write_mode mode, float *out)
{
    for (size_t i = 0; i < n; i += EMBLA_SUPER, block += block_bytes) {
        signed char q[EMBLA_SUPER];
        float scales[16];
        unpack(block, q, scales);
        EMBLA_K_STORED(q);
        for (size_t k = 0; k < 16; k++)
            embla_k_group_avx512(q + 16 * k, scales[k], mode, out + i + 16 * k);
    }
}

EMBLA_AVX2 static inline __m256i embla_k_load(const unsigned char *p)
{
    return _mm256_loadu_si256((const void *)p);
}

#endif
#endif
