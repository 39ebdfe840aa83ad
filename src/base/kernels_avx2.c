/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels for AVX2: as kernels_avx512.c, which says why, with lines copied in two
 * halves and the ends of a row by memcpy.
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

/* Compiled once for each way of writing, and for rows in memory and in a cache. */
EMBLA_AVX2 static void copy_rows(const embla_copy_job *job)
{
    if (job->store == EMBLA_STORE_STREAM)
        embla_body_copy_rows(job, EMBLA_STORE_STREAM, true, stream_line, copy_part);
    else if (job->store == EMBLA_STORE_AHEAD && job->fetch)
        embla_body_copy_rows(job, EMBLA_STORE_AHEAD, true, copy_line, copy_part);
    else if (job->store == EMBLA_STORE_AHEAD)
        embla_body_copy_rows(job, EMBLA_STORE_AHEAD, false, copy_line, copy_part);
    else
        embla_body_copy_rows(job, EMBLA_STORE_PLAIN, true, copy_line, copy_part);
}

EMBLA_AVX2 static void stream(void *out, const void *in, size_t bytes)
{
    embla_body_copy_row(out, in, bytes, EMBLA_STORE_STREAM, NULL, stream_line, copy_part);
}

static void fence(void)
{
    _mm_sfence();
}

const embla_kernels embla_kernels_avx2 = {
    .name = "avx2",
    .isa = EMBLA_ISA_AVX2,
    .tokens_below = tokens_below,
    .rows_below = rows_below,
    .widen = widen,
    .copy_rows = copy_rows,
    .stream = stream,
    .fence = fence,
    .scale_add = scale_add,
    .scale = scale,
    .dot = dot,
    .accumulate = accumulate,
    .maximum = maximum,
    .turn = turn,
    .uniform = uniform,
    .normal = normal,
};
#endif
