/* SPDX-License-Identifier: Apache-2.0 */
/* A table: rows x dim numbers of one dtype. */
#ifndef EMBLA_TABLE_TABLE_H
#define EMBLA_TABLE_TABLE_H

#include "embla.h"
#include "files/map.h"
#include "lookup/source.h"

/* Row r is row_bytes bytes at data + r * row_stride. The sizes have been checked: row x row_stride
 * does not overflow. */
struct embla_table {
    embla_row row; /* the format of a row; dim, dtype, info, scale and row_bytes repeat it */
    int64_t rows;
    size_t dim;
    embla_dtype dtype;
    const embla_dtype_info *info;
    float scale; /* 1 if the dtype has none */
    size_t row_bytes, row_stride;
    const char *data;
    char *writable; /* data, or NULL for a read-only view */
    size_t owned;   /* bytes to free; 0 for a view */
    embla_map *map; /* the file that the rows are in; NULL if they are in memory */
    /* The row of each token, each checked to be below `rows`. The table owns the list. NULL means
     * that token i is row i. */
    const int64_t *token_rows;
    int64_t token_count; /* entries of token_rows */
};

/* Rows in a file are valid only while the file is unchanged (C11). */
static inline embla_status embla_table_check_file(const embla_table *table)
{
    return table && table->map ? embla_map_check(table->map) : EMBLA_OK;
}

/* The bytes of a row, which must exist. */
static inline const char *embla_table_at(const embla_table *table, int64_t row)
{
    return table->data + (size_t)row * table->row_stride;
}

/* The rows of a table as an embla_stored, for code that does not know tables. */
static inline embla_stored embla_table_stored(const embla_table *table)
{
    return (embla_stored){.data = table->data,
                          .stride = table->row_stride,
                          .dim = table->dim,
                          .dtype = table->dtype,
                          .info = table->info,
                          .scale = table->scale};
}

/* True if rows can be used as floats without decoding. */
static inline bool embla_table_in_place(const embla_table *table)
{
    return table->dtype == EMBLA_F32 &&
           ((uintptr_t)table->data | table->row_stride) % sizeof(float) == 0;
}

/* Numbers first .. first+n-1 of a row as floats; first is a multiple of EMBLA_PIECE. Returns a
 * pointer into an f32 row; any other row is decoded into space (n floats). */
static inline const float *embla_table_piece(const embla_table *table, embla_decode_fn *decode,
                                             int64_t row, size_t first, size_t n, float *space)
{
    const char *bytes = embla_table_at(table, row) + embla_dtype_bytes(table->info, first);
    if (table->dtype == EMBLA_F32 && (uintptr_t)bytes % sizeof(float) == 0)
        return (const float *)(const void *)bytes;
    decode(bytes, n, table->scale, EMBLA_WRITE_PLAIN, space);
    return space;
}

/* The table as a source for a lookup (table/table_lookup.c). */
embla_row_source embla_table_source(const embla_table *table);

/* How many tokens a lookup accepts: the length of the mapping or, without one, the rows. */
static inline int64_t embla_table_token_limit(const embla_table *table)
{
    return table->token_rows ? table->token_count : table->rows;
}

/* The row of a token, which must have one. */
static inline int64_t embla_table_row_of(const embla_table *table, int32_t token)
{
    return table->token_rows ? table->token_rows[token] : token;
}

/* Maximum number of tokens of a mapping: a token is a non-negative int32_t. */
#define EMBLA_TOKENS_MOST ((int64_t)INT32_MAX + 1)

/* table/tokens.c: EMBLA_ERR_RANGE unless every entry of the list is a row of a table with `rows`
 * rows. NULL and 0 means no mapping. */
EMBLA_CHECKED embla_status embla_table_check_mapping(const int64_t *token_rows, int64_t count,
                                                     int64_t rows);
/* Allocates a mapping of count tokens, which the caller fills in with checked rows. */
EMBLA_CHECKED embla_status embla_table_add_mapping(embla_table *table, int64_t count,
                                                   int64_t **rows);
void embla_table_drop_mapping(embla_table *table);

/* A table that has some rows of a larger one: its number of rows, and which of them row `row` is
 * (-1: none). */
typedef struct {
    int64_t rows;
    int64_t (*number)(const void *owner, int64_t row);
    const void *owner;
} embla_table_part;

/* embla_table_init of a part: every row gets the numbers that it has in the larger table. part NULL
 * means that the table is the whole. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_table_init_part(embla_table *table,
                                                               const embla_init_options *options,
                                                               const embla_table_part *part);
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_table_check_writable(const embla_table *table);
/* embla_table_check_rows, and row numbers must ascend without repeats. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_table_check_ascending(const embla_table *table,
                                                                     const int64_t *rows,
                                                                     size_t count);

#endif
