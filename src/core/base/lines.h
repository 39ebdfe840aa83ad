/* SPDX-License-Identifier: Apache-2.0 */
/* Prefetching of cache lines, and modes of writing them.
 *
 * A gather knows its next rows; the hardware cannot predict them. While one group of rows is
 * processed, the next is prefetched, one line of each row in turn: memory delivers many short
 * streams in parallel faster than one after the other.
 */
#ifndef EMBLA_BASE_LINES_H
#define EMBLA_BASE_LINES_H

#include <stddef.h>
#include <stdint.h>

#include "base/isa.h"

#if EMBLA_X86
#include <immintrin.h>
#elif EMBLA_ARM
#include <arm_neon.h>
#endif

enum {
    EMBLA_LINE = 64,  /* bytes of a cache line */
    EMBLA_GROUP = 16, /* maximum rows in a group */
    EMBLA_GROUP_LEAST = 4,
    EMBLA_SHORT_ROW = 320,   /* maximum bytes of a row that is prefetched at once */
    EMBLA_AHEAD_BYTES = 512, /* bytes between a line that is written and one that is prefetched */
    EMBLA_SMALL_TABLE =
        256 << 10 /* bytes that stay in the L2 cache: tables up to this size need no prefetching */
};

/* How results are written. All three leave the same bytes. */
typedef enum {
    EMBLA_WRITE_PLAIN, /* they fit in a cache: plain writes */
    EMBLA_WRITE_AHEAD, /* they do not: prefetch each line before it is written */
    EMBLA_WRITE_STREAM /* they do not: bypass the caches, whole lines only */
} embla_write_mode;

/* The lines of one group of rows, in the order of prefetching. */
typedef struct {
    const char *data;
    size_t row_stride, row_bytes;
    size_t group; /* rows in a group: a power of two */
    const char *rows[EMBLA_GROUP];
    size_t count, turn; /* rows in the current group; index of the row whose line is next */
    size_t offset, end; /* offset of the next line; end of the rows */
} embla_fetch;

/* The maximum offset of a row within a cache line. A prefetch of that many bytes more gets the
 * row's last bytes, too. */
EMBLA_BODY size_t embla_fetch_offset(const char *data, size_t row_stride)
{
    uintptr_t low = (uintptr_t)data | row_stride | EMBLA_LINE;
    return EMBLA_LINE - (size_t)(low & -low);
}

/* For rows of a table. Long rows need small groups: two groups must stay in the L2 cache together
 * with the output. */
EMBLA_BODY embla_fetch embla_fetch_of(const char *data, size_t row_stride, size_t row_bytes)
{
    size_t group = row_bytes <= 4096 ? EMBLA_GROUP : row_bytes <= 8192 ? 8 : EMBLA_GROUP_LEAST;
    return (embla_fetch){
        .data = data, .row_stride = row_stride, .row_bytes = row_bytes, .group = group};
}

/* Call before row i is processed. At the start of a group, the lines of the next group are
 * prepared. rows[0 .. known-1] are valid row numbers. */
EMBLA_BODY void embla_fetch_at(embla_fetch *f, const int64_t *rows, size_t i, size_t known)
{
    size_t next = i + f->group;
    if ((i & (f->group - 1)) != 0) return;
    f->count = next >= known ? 0 : known - next < f->group ? known - next : f->group;
    for (size_t j = 0; j < f->count; j++)
        f->rows[j] = f->data + (size_t)rows[next + j] * f->row_stride;
    f->turn = f->offset = 0;
    f->end = f->count > 0 ? f->row_bytes : 0;
}

/* Prefetches one more line, if there is one. */
EMBLA_BODY void embla_fetch_line(embla_fetch *f)
{
    if (f->offset >= f->end) return;
    __builtin_prefetch(f->rows[f->turn] + f->offset);
    if (++f->turn < f->count) return;
    f->turn = 0;
    f->offset += EMBLA_LINE;
}

/* Prefetches a whole row, for rows of a few lines: taking turns is not worth its instructions. */
EMBLA_BODY void embla_fetch_row(const char *row, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += EMBLA_LINE) __builtin_prefetch(row + i);
}

/* Prefetches the line some way beyond p for writing. Never faults. */
EMBLA_BODY void embla_fetch_to_write(const char *p)
{
    p += EMBLA_AHEAD_BYTES;
#if EMBLA_X86
    __asm__ volatile("prefetchw %0" : : "m"(*p));
#else
    __builtin_prefetch(p, 1);
#endif
}

#if EMBLA_X86
/* Writes sixteen floats to out; out is aligned to a line if streaming. */
EMBLA_AVX512 static inline void embla_put_avx512(float *out, __m512 x, embla_write_mode mode)
{
    if (mode == EMBLA_WRITE_STREAM) {
        _mm512_stream_ps(out, x);
    } else {
        if (mode == EMBLA_WRITE_AHEAD) embla_fetch_to_write((const char *)out);
        _mm512_storeu_ps(out, x);
    }
}

/* The same for half a line: eight floats. */
EMBLA_AVX2 static inline void embla_put_avx2(float *out, __m256 x, embla_write_mode mode)
{
    if (mode == EMBLA_WRITE_STREAM) {
        _mm256_stream_ps(out, x);
    } else {
        if (mode == EMBLA_WRITE_AHEAD) embla_fetch_to_write((const char *)out);
        _mm256_storeu_ps(out, x);
    }
}
#endif

#if EMBLA_ARM
/* Writes half a line, with the hint that it will not be read soon. */
static inline void embla_stream_neon(void *out, uint8x16_t low, uint8x16_t high)
{
    struct half {
        char bytes[EMBLA_LINE / 2];
    };
    __asm__("stnp %q1, %q2, %0" : "=Q"(*(struct half *)out) : "w"(low), "w"(high));
}

/* Writes eight floats to out; out is aligned to half a line if streaming. */
static inline void embla_put_neon(float *out, float32x4_t low, float32x4_t high,
                                  embla_write_mode mode)
{
    if (mode == EMBLA_WRITE_STREAM) {
        embla_stream_neon(out, vreinterpretq_u8_f32(low), vreinterpretq_u8_f32(high));
    } else {
        if (mode == EMBLA_WRITE_AHEAD) embla_fetch_to_write((const char *)out);
        vst1q_f32(out, low);
        vst1q_f32(out + 4, high);
    }
}
#endif

#endif
