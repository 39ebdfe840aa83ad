/* SPDX-License-Identifier: Apache-2.0 */
/* The one lookup: row numbers in, vectors out.
 *
 *   check    every argument, every token or row number; nothing is written before that
 *   plan     copy stored bytes, decode rows where they lie, or stage them first
 *   tiles    some row numbers at a time, shared out over threads
 *   decode   stored bytes -> floats -> (scale, add a position, sum) -> wanted dtype -> out
 *
 * embla_lookup, embla_lookup_rows, embla_embed, embla_store_lookup and embla_batch_lookup fill in
 * a call and run it. lookup_check.c has the first step, lookup_run.c the others.
 */
#ifndef EMBLA_LOOKUP_LOOKUP_H
#define EMBLA_LOOKUP_LOOKUP_H

#include "lookup/source.h"

/* Vector (t, h) of token t and head h is written to out + t * token_stride + h * head_stride. A
 * field that is 0 or NULL means its default, as in the public options. */
typedef struct {
    const embla_row_source *source;
    const int32_t *tokens; /* either tokens, or row numbers */
    const int64_t *rows;
    size_t count;              /* of them */
    const int64_t *token_rows; /* the row of each token; NULL: token i is row i */
    int64_t token_count;

    size_t heads;          /* row numbers of a token; 0: 1 */
    size_t first, columns; /* numbers first .. first+columns-1 of each row; columns 0: the rest */

    const embla_row_source *positions; /* added to each row; NULL: none. In memory. */
    const int64_t *position_rows;      /* its rows, one for each output; NULL: output i has */
    int64_t first_position;            /* position first_position + i % length */
    size_t length;

    float scale; /* multiplies the row, before a position is added; 0: 1 */
    bool sum;    /* add the rows of a token to one vector */
    bool raw;    /* copy stored bytes */
    embla_dtype out_dtype;
    size_t token_stride, head_stride;
    char *out;
    int threads;

    /* Filled in by embla_lookup_check, and the defaults above. */
    embla_row_part part; /* of every row */
    size_t token_total;  /* count / heads */
    size_t vector_bytes;
    bool copy;          /* the stored bytes are the wanted bytes */
    const char *codes;  /* of the part, in row 0; NULL: rows do not lie in memory */
    const char *scales; /* of the part, in row 0 */
    size_t stride;      /* from one row to the next */
    bool prefetch;      /* rows come from memory, not from a cache */
} embla_lookup_call;

/* Checks everything but the files of the rows, and fills in the rest of call. */
EMBLA_CHECKED embla_status embla_lookup_check(embla_lookup_call *call);
/* Makes a checked call take its rows from staging: the parts it wants of `count` rows, one after
 * the other. The call's row numbers then count from 0 in staging. */
void embla_lookup_from_staging(embla_lookup_call *call, const char *staging, size_t count);
/* Runs a call that was checked. Fails only where rows have to be read and cannot be. */
EMBLA_CHECKED embla_status embla_lookup_run(const embla_lookup_call *call);
/* Checks, runs, and asks before and after whether the files of the rows are what they were. */
EMBLA_CHECKED embla_status embla_lookup_perform(embla_lookup_call *call);

/* EMBLA_ERR_RANGE with the index, the number and the limit, unless all numbers are below limit.
 * what names them in the message: "row", "position". mapped: the limit is that of a mapping of
 * tokens, not the rows of the table. */
EMBLA_CHECKED embla_status embla_lookup_check_rows(const int64_t *rows, size_t count, int64_t limit,
                                                   const char *what);
EMBLA_CHECKED embla_status embla_lookup_check_tokens(const int32_t *tokens, size_t count,
                                                     int64_t limit, bool mapped);

#endif
