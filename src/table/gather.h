/* SPDX-License-Identifier: Apache-2.0 */
/* The loop under lookup and embed: row numbers in, rows out, with whatever is to be
 * done to a row on the way (decode, scale, add a position, narrow) done while it is in
 * the first-level cache.
 */
#ifndef EMBLA_TABLE_GATHER_H
#define EMBLA_TABLE_GATHER_H

#include "table/table.h"

typedef struct {
    const embla_table *table;
    const int32_t *tokens; /* one of these two says which rows */
    const int64_t *rows;
    size_t count;

    const embla_table *positions; /* added to each row; NULL: none */
    const int64_t *position_rows; /* its rows, one for each output; NULL: */
    int64_t first_position;       /* ..output i takes first_position + i % length */
    size_t length;
    float scale; /* multiplies the row, before a position is added */

    bool raw; /* copy stored bytes */
    embla_dtype out_dtype;
    char *out;
    size_t out_stride;
    int threads;
} embla_gather_job;

/* Checks everything, fills in defaults (out_dtype, out_stride, scale of 0), then writes. */
EMBLA_CHECKED embla_status embla_gather(embla_gather_job *job);

#endif
