/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels for AVX-512: how a line is copied and written past the caches; all else is
 * put together from bodies. How lines are asked for, and which way of writing is taken when,
 * is in lines.h and docs/decisions/002.
 */
#include "base/kernels_body.h"

#if EMBLA_X86
#include <immintrin.h>

EMBLA_PLAIN_KERNELS(EMBLA_AVX512)

/* Up to one line; bytes past the end are not touched. */
EMBLA_AVX512 static inline void copy_part(char *out, const char *in, size_t bytes)
{
    __mmask64 mask = ((__mmask64)1 << bytes) - 1;
    _mm512_mask_storeu_epi8(out, mask, _mm512_maskz_loadu_epi8(mask, in));
}

EMBLA_AVX512 static inline void copy_line(char *out, const char *in)
{
    _mm512_storeu_si512(out, _mm512_loadu_si512(in));
}

EMBLA_AVX512 static inline void stream_line(char *out, const char *in)
{
    _mm512_stream_si512((void *)out, _mm512_loadu_si512(in));
}

EMBLA_COPY_KERNELS(EMBLA_AVX512)

static void fence(void)
{
    _mm_sfence();
}

EMBLA_KERNEL_SET(avx512, EMBLA_ISA_AVX512);
#endif
