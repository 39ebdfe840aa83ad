/* SPDX-License-Identifier: Apache-2.0 */
/* The loop under a lookup over a store: row numbers in, vectors out. What is asked for is checked
 * once, apart from where rows come from, so that a batch can fetch each row once and hand them to
 * the same loop.
 */
#ifndef EMBLA_TABLE_ROWS_H
#define EMBLA_TABLE_ROWS_H

#include "store/store.h"

/* A lookup that was checked; strides and scale are not 0 any more. Vector (t, h) is at
 * out + t * token_stride + h * head_stride. */
typedef struct {
    const embla_row *row;
    embla_row_part part; /* of every row */
    size_t tokens, heads, count;
    size_t token_stride, head_stride, vector_bytes;
    float scale;
    int threads; /* as asked */
    bool sum;
    bool copy; /* stored bytes are the wanted bytes */
    embla_dtype out_dtype;
    char *out;
} embla_rows_call;

/* Where the loop takes rows from: memory, or a store that is asked for them. The codes of the
 * part begin code_at bytes into a row in memory, its scales scale_at bytes. */
typedef struct {
    const char *data; /* NULL: */
    const embla_store *store;
    size_t stride;
    size_t code_at, scale_at;
    bool fetch; /* rows come from memory, not from a cache: ask for lines ahead */
} embla_rows_source;

/* All that can be wrong but the rows' files. Nothing has been written. */
EMBLA_CHECKED embla_status embla_rows_check(const embla_store *store, const int64_t *rows,
                                            size_t count, const embla_rows_options *options,
                                            void *out, embla_rows_call *call);
/* The rows of a store itself, for such a call. */
embla_rows_source embla_rows_of(const embla_store *store, const embla_rows_call *call);
/* The parts of rows that such a call wants, count of them, one after the other in memory. Row
 * numbers then are places there. */
embla_rows_source embla_rows_parts(const embla_rows_call *call, const char *parts, size_t count);
/* Does it. Fails only where the store cannot be read. */
EMBLA_CHECKED embla_status embla_rows_run(const embla_rows_call *call,
                                          const embla_rows_source *source, const int64_t *rows);
/* Asked before rows are taken from files, and again after: a file that was cut short or changed
 * in between has been noticed then. */
EMBLA_CHECKED embla_status embla_rows_files(const embla_store *store);

#endif
