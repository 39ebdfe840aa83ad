/* SPDX-License-Identifier: Apache-2.0 */
/* What other rooms ask of a table, beyond embla.h. Only table/ knows the struct (table/table.h).
 *
 * A loop over rows asks for the source once, before it begins, and reads rows from it
 * (lookup/source.h).
 */
#ifndef EMBLA_TABLE_ACCESS_H
#define EMBLA_TABLE_ACCESS_H

#include "embla.h"
#include "lookup/source.h"

/* The rows, which are always in memory. Valid until the table is freed. */
EMBLA_PRIVATE const embla_row_source *embla_table_source(const embla_table *table);
/* EMBLA_ERR_IO if the rows are in a file that has changed. NULL is allowed. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_table_check_file(const embla_table *table);
/* Maximum number of tokens of a mapping: a token is a non-negative int32_t. */
#define EMBLA_TOKENS_MOST ((int64_t)INT32_MAX + 1)

/* The row of each token and the number of tokens, or NULL if token i is row i. count may be
 * NULL. */
EMBLA_PRIVATE const int64_t *embla_table_mapping(const embla_table *table, int64_t *count);

EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_table_check_writable(const embla_table *table);
/* embla_table_check_rows, and row numbers must ascend without repeats. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_table_check_ascending(const embla_table *table,
                                                                     const int64_t *rows,
                                                                     size_t count);

/* Drops all rows but the first `rows`, which is from 1 to the number of rows. For a table without
 * a mapping. The memory of the others is kept until the table is freed. */
EMBLA_PRIVATE void embla_table_shrink(embla_table *table, int64_t rows);
/* The table now has its rows at `data`, to which the caller has copied them with the same stride,
 * and frees the memory that it owned. The caller owns `data`, which must outlive the table. */
EMBLA_PRIVATE void embla_table_move(embla_table *table, void *data);

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

#endif
