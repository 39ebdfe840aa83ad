/* SPDX-License-Identifier: Apache-2.0 */
/* How lines of memory are asked for before they are needed, and how they are written.
 *
 * A gather knows its next rows; the hardware cannot guess them. While one group of
 * rows is worked on, the next is fetched, a line of each row in turn: memory serves
 * many short streams side by side sooner than one after the other.
 */
#ifndef EMBLA_BASE_LINES_H
#define EMBLA_BASE_LINES_H

#include <stddef.h>
#include <stdint.h>

#include "base/isa.h"

#if EMBLA_X86
#include <immintrin.h>
#endif

enum {
    EMBLA_LINE = 64,  /* bytes of a cache line */
    EMBLA_GROUP = 16, /* rows in a group, at most */
    EMBLA_GROUP_LEAST = 4,
    EMBLA_AHEAD_BYTES = 512,      /* bytes between a line being written and one asked for */
    EMBLA_SMALL_TABLE = 256 << 10 /* bytes that stay in the second-level cache: rows of a table up
                                     to this size need no fetching */
};

/* How results are written. All three leave the same bytes. */
typedef enum {
    EMBLA_WRITE_PLAIN, /* they fit in a cache: just write */
    EMBLA_WRITE_AHEAD, /* they do not: ask for each line some time before it is written */
    EMBLA_WRITE_STREAM /* they do not: write past the caches, whole lines only */
} embla_write_mode;

/* The lines of one group of rows, in the order they are asked for. */
typedef struct {
    const char *data;
    size_t row_stride, row_bytes;
    size_t group; /* rows in a group: a power of two */
    const char *rows[EMBLA_GROUP];
    size_t count, turn; /* rows lined up; whose turn it is */
    size_t offset, end; /* of the line whose turn it is; where the rows end */
} embla_fetch;

/* For rows of a table. Long rows make small groups: two of them must stay in the
 * second-level cache together with what is being written. */
EMBLA_BODY embla_fetch embla_fetch_of(const char *data, size_t row_stride, size_t row_bytes)
{
    size_t group = row_bytes <= 4096 ? EMBLA_GROUP : row_bytes <= 8192 ? 8 : EMBLA_GROUP_LEAST;
    return (embla_fetch){
        .data = data, .row_stride = row_stride, .row_bytes = row_bytes, .group = group};
}

/* Called before row i is worked on: where a group begins, the lines of the next one are
 * lined up. rows[0 .. known-1] are the row numbers that may be read. */
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

/* Asks for one line more, if there is one. */
EMBLA_BODY void embla_fetch_line(embla_fetch *f)
{
    if (f->offset >= f->end) return;
    __builtin_prefetch(f->rows[f->turn] + f->offset);
    if (++f->turn < f->count) return;
    f->turn = 0;
    f->offset += EMBLA_LINE;
}

/* Asks for the line some way past p, to write it whole. Never faults. */
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
/* Sixteen floats to a line of out, which is aligned to it when streaming. */
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

#endif
