/* SPDX-License-Identifier: Apache-2.0 */
/* Which row a token has. In most tables token i is row i. A table can also have a mapping, a list
 * with the row of each token: Model2Vec stores one where many tokens share a row.
 */
#include <string.h>

#include "base/kernels.h"
#include "base/mem.h"
#include "base/status.h"
#include "lookup/lookup.h"
#include "table/table.h"

/* ---- the mapping of a table ---- */

embla_status embla_table_add_mapping(embla_table *table, int64_t count, int64_t **rows)
{
    void *list = NULL;
    EMBLA_TRY(embla_mem_many((uint64_t)count, sizeof(int64_t), "the rows of tokens", &list));
    table->token_rows = *rows = list;
    table->token_count = count;
    return EMBLA_OK;
}

void embla_table_drop_mapping(embla_table *table)
{
    embla_mem_free((void *)(uintptr_t)table->token_rows,
                   (size_t)table->token_count * sizeof(int64_t));
    table->token_rows = NULL;
    table->token_count = 0;
}

/* The first entry that is not a row of the table; count if all are. */
static size_t find_outside(const int64_t *list, size_t count, int64_t rows)
{
    size_t i = 0;
    while (i < count && (uint64_t)list[i] < (uint64_t)rows) i++;
    return i;
}

embla_status embla_table_check_mapping(const int64_t *token_rows, int64_t count, int64_t rows)
{
    if (!token_rows && count == 0) return EMBLA_OK;
    if (!token_rows)
        return embla_fail(EMBLA_ERR_ARGUMENT, "token_count is %" PRId64 ", but token_rows is NULL",
                          count);
    if (count < 1 || count > EMBLA_TOKENS_MOST)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "token_count is %" PRId64 "; it must be between 1 and %" PRId64, count,
                          EMBLA_TOKENS_MOST);
    size_t outside = find_outside(token_rows, (size_t)count, rows);
    if (outside < (size_t)count)
        return embla_fail(EMBLA_ERR_RANGE,
                          "token_rows maps token %zu to row %" PRId64 ", but the table has %" PRId64
                          " rows",
                          outside, token_rows[outside], rows);
    return EMBLA_OK;
}

const int64_t *embla_table_mapping(const embla_table *table, int64_t *count)
{
    if (count) *count = table->token_count;
    return table->token_rows;
}

/* ---- tokens to rows ---- */

int64_t embla_table_tokens(const embla_table *table)
{
    return table ? embla_table_token_limit(table) : 0;
}

embla_status embla_table_check_rows(const embla_table *table, const int64_t *rows, size_t count)
{
    EMBLA_NEED(table);
    if (count == 0) return EMBLA_OK;
    if (!rows) return embla_fail(EMBLA_ERR_ARGUMENT, "%zu row numbers, but rows is NULL", count);
    return embla_lookup_check_rows(rows, count, table->source.rows, "row");
}

embla_status embla_table_check_ascending(const embla_table *table, const int64_t *rows,
                                         size_t count)
{
    EMBLA_TRY(embla_table_check_rows(table, rows, count));
    for (size_t i = 1; i < count; i++)
        if (rows[i] <= rows[i - 1])
            return embla_fail(EMBLA_ERR_ARGUMENT,
                              "row %" PRId64 " at index %zu follows row %" PRId64
                              "; row numbers must ascend without repeats",
                              rows[i], i, rows[i - 1]);
    return EMBLA_OK;
}

embla_status embla_table_find_rows(const embla_table *table, const int32_t *tokens, size_t count,
                                   int64_t *out)
{
    EMBLA_NEED(table);
    if (count == 0) return EMBLA_OK;
    if (!tokens) return embla_fail(EMBLA_ERR_ARGUMENT, "%zu tokens, but tokens is NULL", count);
    EMBLA_TRY(embla_lookup_check_tokens(tokens, count, embla_table_token_limit(table),
                                        table->token_rows != NULL));
    if (out && table->token_rows)
        for (size_t i = 0; i < count; i++) out[i] = table->token_rows[tokens[i]];
    else if (out)
        embla_kernels_get()->widen(tokens, count, out);
    return EMBLA_OK;
}
