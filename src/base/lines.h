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
    EMBLA_LINE = 64,        /* bytes of a cache line */
    EMBLA_GROUP = 16,       /* rows in a group */
    EMBLA_WRITE_AHEAD = 512 /* bytes between a line being written and one asked for */
};

/* How results are written. All three leave the same bytes. */
typedef enum {
    EMBLA_STORE_PLAIN, /* they fit in a cache: just write */
    EMBLA_STORE_AHEAD, /* they do not: ask for each line some time before it is written */
    EMBLA_STORE_STREAM /* they do not: write past the caches, whole lines only */
} embla_store;

/* The lines of one group of rows, in the order they are asked for. */
typedef struct {
    const char *rows[EMBLA_GROUP];
    size_t count, turn;       /* rows; whose turn it is */
    size_t offset, row_bytes; /* of the line whose turn it is; where a row ends */
} embla_fetch;

/* Begins with the rows numbered rows[0 .. count-1], count at most EMBLA_GROUP. */
EMBLA_BODY void embla_fetch_begin(embla_fetch *f, const char *data, size_t row_stride,
                                  size_t row_bytes, const int64_t *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) f->rows[i] = data + (size_t)rows[i] * row_stride;
    f->count = count;
    f->turn = f->offset = 0;
    f->row_bytes = count > 0 ? row_bytes : 0;
}

/* Asks for one line more, if there is one. */
EMBLA_BODY void embla_fetch_line(embla_fetch *f)
{
    if (f->offset >= f->row_bytes) return;
    __builtin_prefetch(f->rows[f->turn] + f->offset);
    if (++f->turn < f->count) return;
    f->turn = 0;
    f->offset += EMBLA_LINE;
}

/* Asks for the line some way past p, to write it whole. Never faults. */
EMBLA_BODY void embla_fetch_to_write(const char *p)
{
    p += EMBLA_WRITE_AHEAD;
#if EMBLA_X86
    __asm__ volatile("prefetchw %0" : : "m"(*p));
#else
    __builtin_prefetch(p, 1);
#endif
}

#if EMBLA_X86
/* Sixteen floats to a line of out, which is aligned to it when streaming. */
EMBLA_AVX512 static inline void embla_put_avx512(float *out, __m512 x, embla_store store)
{
    if (store == EMBLA_STORE_STREAM) {
        _mm512_stream_ps(out, x);
    } else {
        if (store == EMBLA_STORE_AHEAD) embla_fetch_to_write((const char *)out);
        _mm512_storeu_ps(out, x);
    }
}

/* The same for half a line: eight floats. */
EMBLA_AVX2 static inline void embla_put_avx2(float *out, __m256 x, embla_store store)
{
    if (store == EMBLA_STORE_STREAM) {
        _mm256_stream_ps(out, x);
    } else {
        if (store == EMBLA_STORE_AHEAD) embla_fetch_to_write((const char *)out);
        _mm256_storeu_ps(out, x);
    }
}
#endif

#endif
