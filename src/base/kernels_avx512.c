/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels for AVX-512: the copies by hand, the arithmetic compiled from its bodies.
 *
 * A gather is bound by memory, so what counts is how lines are asked for and written:
 *   - while row i is copied, the same place of a row some kilobytes ahead is
 *     prefetched, because the hardware cannot guess where the next row begins;
 *   - a large result is written with streaming stores, which spare the reading of
 *     lines that are about to be overwritten. memcpy does so only for single copies
 *     of many megabytes, never for a row.
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

/* Compiled once for each way of writing, and for rows in memory and in a cache. */
EMBLA_AVX512 static void copy_rows(const embla_copy_job *job)
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

EMBLA_AVX512 static void stream(void *out, const void *in, size_t bytes)
{
    embla_body_copy_row(out, in, bytes, EMBLA_STORE_STREAM, NULL, stream_line, copy_part);
}

static void fence(void)
{
    _mm_sfence();
}

const embla_kernels embla_kernels_avx512 = {
    .name = "avx512",
    .isa = EMBLA_ISA_AVX512,
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
