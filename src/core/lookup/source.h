/* SPDX-License-Identifier: Apache-2.0 */
/* The source of a lookup's rows.
 *
 * A source is a row format, a number of rows and one of two ways to access them: the rows are in
 * memory (`data`), or `read` copies them there. Tables and stores are sources. Everything above a
 * source checks, decodes and writes rows in the same way (lookup/lookup.h).
 */
#ifndef EMBLA_LOOKUP_SOURCE_H
#define EMBLA_LOOKUP_SOURCE_H

#include "base/row.h"

/* A part of the rows rows[i], to be copied to out + i * out_stride: codes, then scales. */
typedef struct {
    const int64_t *rows; /* checked: they exist */
    size_t count;
    size_t known; /* valid entries of rows, count or more: to prefetch later rows */
    const embla_row_part *part;
    char *out;
    size_t out_stride;
    embla_write_mode mode; /* STREAM: the parts, out and out_stride are whole lines. Rows that come
                              from a file are written plainly, whatever the mode is. */
} embla_read_job;

enum { EMBLA_PLANES = 2 }; /* the codes of a row, and its scales */

typedef struct embla_row_source embla_row_source;

/* The functions of a kind of source. Each may be NULL. */
typedef struct {
    /* Copies parts of rows to memory. NULL means that the rows are already in memory. */
    embla_status (*read)(const void *owner, const embla_read_job *job);
    /* EMBLA_ERR_IO if the files of the rows have changed. A lookup calls it before it starts and
     * after it has finished. NULL means that the rows do not come from a file. */
    embla_status (*check)(const void *owner);
    /* Copies part of one row from its file again, to verify it. NULL means that there is no
     * file. */
    embla_status (*reread)(const void *owner, int64_t row, const embla_row_part *part, void *out);
    /* The file offsets of a row's codes and scales. Returns true if they are in different files, or
     * the scales come first. Needed only if the rows are not in memory. */
    bool (*locate)(const void *owner, int64_t row, uint64_t at[EMBLA_PLANES]);
    size_t unit;    /* bytes accessed at once: a cache line or a page; a power of two */
    size_t at_once; /* preferred number of rows for one read */
    bool distinct;  /* reading a row twice is expensive: find duplicates first */
} embla_source_kind;

struct embla_row_source {
    const embla_row *row; /* the format */
    int64_t rows;
    const char *data; /* row r is at data + (r - first) * stride; NULL if `read` must copy rows */
    size_t stride;
    /* A source may hold only rows first .. first+held-1 of the table; held 0 means all rows. Any
     * other row is an error, or zero bytes. */
    int64_t first, held;
    bool zeros;
    const embla_source_kind *kind;
    const void *owner; /* passed to the functions of kind */
};

/* Whether the source has a row of the table. */
static inline bool embla_source_holds(const embla_row_source *source, int64_t row)
{
    return source->held == 0 || (uint64_t)(row - source->first) < (uint64_t)source->held;
}

/* Checks that the files of the rows have not changed. */
static inline embla_status embla_source_check(const embla_row_source *source)
{
    return source && source->kind->check ? source->kind->check(source->owner) : EMBLA_OK;
}

/* ---- rows in memory ---- */

/* These are for sources whose data is not NULL, of rows that the source holds. `decode` is the
 * decoder of the dtype for the kernels in use; the format has no scales of groups. */

/* The bytes of a row. */
static inline const char *embla_source_at(const embla_row_source *source, int64_t row)
{
    return source->data + (size_t)(row - source->first) * source->stride;
}

/* True if rows can be used as floats without decoding. */
static inline bool embla_source_in_place(const embla_row_source *source)
{
    return source->row->format.dtype == EMBLA_F32 &&
           ((uintptr_t)source->data | source->stride) % sizeof(float) == 0;
}

/* Decodes a row to out (dim). */
static inline void embla_source_decode(const embla_row_source *source, embla_decode_fn *decode,
                                       int64_t row, float *out)
{
    const embla_row_format *format = &source->row->format;
    decode(embla_source_at(source, row), format->dim, format->scale, EMBLA_WRITE_PLAIN, out);
}

/* Numbers first .. first+n-1 of a row as floats; first is a multiple of EMBLA_PIECE. Returns a
 * pointer into an f32 row; any other row is decoded into space (n floats). */
static inline const float *embla_source_piece(const embla_row_source *source,
                                              embla_decode_fn *decode, int64_t row, size_t first,
                                              size_t n, float *space)
{
    const embla_row *format = source->row;
    const char *bytes = embla_source_at(source, row) + embla_dtype_bytes(format->info, first);
    if (format->format.dtype == EMBLA_F32 && (uintptr_t)bytes % sizeof(float) == 0)
        return (const float *)(const void *)bytes;
    decode(bytes, n, format->format.scale, EMBLA_WRITE_PLAIN, space);
    return space;
}

/* ---- rows anywhere ---- */

/* Copies parts of rows, from memory or with the kind's read function. */
EMBLA_CHECKED embla_status embla_source_read(const embla_row_source *source,
                                             const embla_read_job *job);

#endif
