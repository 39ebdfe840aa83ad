/* SPDX-License-Identifier: Apache-2.0 */
/* Lookups in a table: passes the table to lookup/ as a source of rows. */
#include "lookup/lookup.h"

#include "base/options.h"
#include "table/table.h"

static embla_status check_file(const void *table)
{
    return embla_table_check_file(table);
}

embla_row_source embla_table_source(const embla_table *table)
{
    static const embla_source_kind kind = {.check = check_file, .unit = EMBLA_LINE};
    return (embla_row_source){.row = &table->row,
                              .rows = table->rows,
                              .data = table->data,
                              .stride = table->row_stride,
                              .kind = &kind,
                              .owner = table};
}

static embla_status lookup(const embla_table *table, embla_lookup_call call,
                           const embla_lookup_options *options)
{
    if (!table) return embla_fail(EMBLA_ERR_ARGUMENT, "the table is NULL");
    const embla_row_source source = embla_table_source(table);
    call.source = &source;
    call.token_rows = table->token_rows;
    call.token_count = table->token_count;
    if (options) {
        call.token_stride = options->out_stride;
        call.threads = options->threads;
        call.raw = options->raw;
        call.out_dtype = options->out_dtype;
    }
    return embla_lookup_perform(&call);
}

embla_status embla_lookup(const embla_table *table, const int32_t *tokens, size_t count,
                          const embla_lookup_options *options, void *out)
{
    EMBLA_TRY(embla_options_check(options));
    return lookup(table, (embla_lookup_call){.tokens = tokens, .count = count, .out = out},
                  options);
}

embla_status embla_lookup_rows(const embla_table *table, const int64_t *rows, size_t count,
                               const embla_lookup_options *options, void *out)
{
    EMBLA_TRY(embla_options_check(options));
    return lookup(table, (embla_lookup_call){.rows = rows, .count = count, .out = out}, options);
}
