/* SPDX-License-Identifier: Apache-2.0 */
/* The struct of a table: rows x dim numbers of one dtype. For table/ alone: other rooms include
 * table/access.h. */
#ifndef EMBLA_TABLE_TABLE_H
#define EMBLA_TABLE_TABLE_H

#include "files/map.h"
#include "table/access.h"

/* Row r is row.bytes bytes at source.data + r * source.stride. The sizes have been checked: row x
 * stride does not overflow. */
struct embla_table {
    embla_row_source source; /* the rows; its row is the one below, its owner is the table */
    embla_map *map;          /* the file that the rows are in; NULL if they are in memory */
    /* The row of each token, each checked to be below source.rows. The table owns the list. NULL
     * means that token i is row i. */
    const int64_t *token_rows;
    int64_t token_count; /* entries of token_rows */
    embla_row row;       /* the format of a row */
    char *writable;      /* source.data, or NULL for a read-only view */
    size_t owned;        /* bytes to free; 0 for a view */
};

/* How many tokens a lookup accepts: the length of the mapping or, without one, the rows. */
static inline int64_t embla_table_token_limit(const embla_table *table)
{
    return table->token_rows ? table->token_count : table->source.rows;
}

/* The row of a token, which must have one. */
static inline int64_t embla_table_row_of(const embla_table *table, int32_t token)
{
    return table->token_rows ? table->token_rows[token] : token;
}

/* table/tokens.c: EMBLA_ERR_RANGE unless every entry of the list is a row of a table with `rows`
 * rows. NULL and 0 means no mapping. */
EMBLA_CHECKED embla_status embla_table_check_mapping(const int64_t *token_rows, int64_t count,
                                                     int64_t rows);
/* Allocates a mapping of count tokens, which the caller fills in with checked rows. */
EMBLA_CHECKED embla_status embla_table_add_mapping(embla_table *table, int64_t count,
                                                   int64_t **rows);
void embla_table_drop_mapping(embla_table *table);

#endif
