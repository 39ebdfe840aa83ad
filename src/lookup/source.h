/* SPDX-License-Identifier: Apache-2.0 */
/* Where a lookup gets its rows from.
 *
 * A source is a row format, a number of rows and one of two ways to reach them: the rows lie in
 * memory (`data`), or `read` copies them there. A table is a source, and so is a store. Everything
 * above a source checks, decodes and writes rows in the same way (lookup/lookup.h).
 */
#ifndef EMBLA_LOOKUP_SOURCE_H
#define EMBLA_LOOKUP_SOURCE_H

#include "base/row.h"

/* A part of the rows rows[i], to be copied to out + i * out_stride: codes, then scales. */
typedef struct {
    const int64_t *rows; /* checked: they exist */
    size_t count;
    size_t known; /* entries of rows that may be read, count or more: to prefetch later rows */
    const embla_row_part *part;
    char *out;
    size_t out_stride;
    embla_write_mode mode; /* STREAM: the parts, out and out_stride are whole lines. Rows that come
                              from a file are written plainly, whatever the mode is. */
} embla_read_job;

enum { EMBLA_PLANES = 2 }; /* the codes of a row, and its scales */

typedef struct embla_row_source embla_row_source;

/* What a kind of source can do. Each function may be NULL. */
typedef struct {
    /* Copies parts of rows to memory. NULL: the rows lie in memory already. */
    embla_status (*read)(const void *owner, const embla_read_job *job);
    /* EMBLA_ERR_IO if the files of the rows have changed. A lookup asks before it starts and after
     * it has finished. NULL: the rows do not come from a file. */
    embla_status (*check)(const void *owner);
    /* Copies part of one row from its file once more, to verify it. NULL: there is no file. */
    embla_status (*reread)(const void *owner, int64_t row, const embla_row_part *part, void *out);
    /* The file offsets of a row's codes and scales. Returns true if the two lie in different
     * files, or the scales before the codes. Needed only where rows do not lie in memory. */
    bool (*locate)(const void *owner, int64_t row, uint64_t at[EMBLA_PLANES]);
    size_t unit;    /* bytes that are touched at once: a cache line, or a page; a power of two */
    size_t at_once; /* rows that one read is best given; few where they are copied from memory */
    bool distinct;  /* reading a row twice is dear: find duplicates first */
} embla_source_kind;

struct embla_row_source {
    const embla_row *row; /* the format */
    int64_t rows;
    const char *data; /* row r is at data + r * stride; NULL: `read` copies rows to memory */
    size_t stride;
    const embla_source_kind *kind;
    const void *owner; /* what the functions of kind are given */
};

/* Whether the files of the rows are still what they were. */
static inline embla_status embla_source_check(const embla_row_source *source)
{
    return source && source->kind->check ? source->kind->check(source->owner) : EMBLA_OK;
}

/* Copies parts of rows, from memory or by the kind's own read. */
EMBLA_CHECKED embla_status embla_source_read(const embla_row_source *source,
                                             const embla_read_job *job);

#endif
