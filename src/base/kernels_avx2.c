/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels for AVX2: as kernels_avx512.c, with lines copied in two halves and the ends of a row
 * by memcpy.
 */
#include "base/kernels_body.h"

#if EMBLA_X86
#include <immintrin.h>

EMBLA_PLAIN_KERNELS(EMBLA_AVX2)

EMBLA_AVX2 static inline void copy_part(char *out, const char *in, size_t bytes)
{
    memcpy(out, in, bytes);
}

EMBLA_AVX2 static inline void copy_line(char *out, const char *in)
{
    __m256i low = _mm256_loadu_si256((const void *)in);
    __m256i high = _mm256_loadu_si256((const void *)(in + 32));
    _mm256_storeu_si256((void *)out, low);
    _mm256_storeu_si256((void *)(out + 32), high);
}

EMBLA_AVX2 static inline void stream_line(char *out, const char *in)
{
    __m256i low = _mm256_loadu_si256((const void *)in);
    __m256i high = _mm256_loadu_si256((const void *)(in + 32));
    _mm256_stream_si256((void *)out, low);
    _mm256_stream_si256((void *)(out + 32), high);
}

EMBLA_COPY_KERNELS(EMBLA_AVX2)

static void fence(void)
{
    _mm_sfence();
}

EMBLA_KERNEL_SET(avx2, EMBLA_ISA_AVX2);
#endif
