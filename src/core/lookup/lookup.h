/* SPDX-License-Identifier: Apache-2.0 */
/* The lookup that all public lookups use: row numbers in, vectors out.
 *
 *   check    every argument, every token or row number; nothing is written before that
 *   plan     copy stored bytes, decode rows in place, or stage them first
 *   tiles    some row numbers at a time, divided among threads
 *   decode   stored bytes -> floats -> (scale, add a position, sum) -> wanted dtype -> out
 *
 * embla_lookup, embla_lookup_rows, embla_embed, embla_store_lookup and embla_batch_lookup fill in a
 * call and run it. lookup_check.c has the first step, lookup_run.c the others.
 */
#ifndef EMBLA_LOOKUP_LOOKUP_H
#define EMBLA_LOOKUP_LOOKUP_H

#include "lookup/source.h"

/* Vector h of token t is written to out + t * token_stride + h * row_stride. A
 * field that is 0 or NULL means its default, as in the public options. */
typedef struct {
    const embla_row_source *source;
    const int32_t *tokens; /* either tokens, or row numbers */
    const int64_t *rows;
    size_t count;              /* of them */
    const int64_t *token_rows; /* the row of each token; NULL means that token i is row i */
    int64_t token_count;

    size_t rows_per_token; /* row numbers of a token; 0 means 1 */
    size_t first, columns; /* numbers first .. first+columns-1 of each row; 0 means the rest */

    const embla_row_source *positions; /* added to each row; must be in memory; NULL means none */
    const int64_t *position_rows; /* its rows, one for each output; NULL means that output i has */
    int64_t first_position;       /* position first_position + i % length */
    size_t length;

    float scale; /* multiplies the row, before a position is added; 0 means 1 */
    bool sum;    /* add the rows of a token to one vector */
    bool raw;    /* copy stored bytes */
    embla_dtype out_dtype;
    size_t token_stride, row_stride;
    char *out;
    int threads;

    /* Set by embla_lookup_check, together with the defaults above. */
    embla_row_part part; /* of every row */
    size_t token_total;  /* count / rows_per_token */
    size_t vector_bytes;
    bool copy;          /* the stored bytes are the wanted bytes */
    const char *codes;  /* of the part, in row 0; NULL if the rows are not in memory */
    const char *scales; /* of the part, in row 0 */
    size_t stride;      /* from one row to the next */
    bool prefetch;      /* rows come from memory, not from a cache */
} embla_lookup_call;

/* Checks everything except the files of the rows, and sets the remaining fields. */
EMBLA_CHECKED embla_status embla_lookup_check(embla_lookup_call *call);
/* Makes a checked call read its rows from staging: the wanted parts of `count` rows, one after the
 * other. The call's row numbers are then indices into staging. */
void embla_lookup_from_staging(embla_lookup_call *call, const char *staging, size_t count);
/* Runs a checked call. Fails only if rows cannot be read. */
EMBLA_CHECKED embla_status embla_lookup_run(const embla_lookup_call *call);
/* Checks and runs a call. Before and after, it checks that the files of the rows have not
 * changed. */
EMBLA_CHECKED embla_status embla_lookup_perform(embla_lookup_call *call);

/* EMBLA_ERR_RANGE with the index, the number and the limit, unless all numbers are below limit.
 * `what` names them in the message: "row", "position". If mapped, the limit is the length of a
 * token mapping, not the number of rows. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_lookup_check_rows(const int64_t *rows, size_t count,
                                                                 int64_t limit, const char *what);
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_lookup_check_tokens(const int32_t *tokens,
                                                                   size_t count, int64_t limit,
                                                                   bool mapped);

#endif
