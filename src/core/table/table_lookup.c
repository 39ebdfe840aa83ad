/* SPDX-License-Identifier: Apache-2.0 */
/* Lookups in a table: passes the table to lookup/ as a source of rows. */
#include "lookup/lookup.h"

#include <string.h>

#include "base/kernels.h"
#include "base/options.h"
#include "table/table.h"

/* ---- few rows ---- */

enum { FEW = 16 };

/* Whether a call copies a few f32 rows from memory and has nothing else to decide. The one lookup
 * would take as long to plan such a call as to copy its rows. */
static bool is_small(const embla_table *table, const void *numbers, size_t count,
                     const embla_lookup_options *options, const void *out)
{
    if (options && (options->out_stride != 0 || options->raw || options->threads < 0 ||
                    (options->out_dtype != 0 && options->out_dtype != EMBLA_F32)))
        return false;
    return table && numbers && out && count - 1 < FEW && table->row.format.dtype == EMBLA_F32 &&
           !table->map && !table->token_rows;
}

/* Copies row `row` if the call is for that one row only and the table has it. Checks and loops for
 * many rows would take longer than the copy. */
static inline bool copied_one(const embla_table *table, int64_t row, size_t count, void *out)
{
    if (count != 1 || (uint64_t)row >= (uint64_t)table->source.rows) return false;
    memcpy(out, table->source.data + (size_t)row * table->source.stride, table->row.bytes);
    return true;
}

static void copy_few(const embla_kernels *kernels, const embla_table *table, const int64_t *rows,
                     size_t count, void *out)
{
    const embla_copy_job job = {.data = table->source.data,
                                .row_stride = table->source.stride,
                                .row_bytes = table->row.bytes,
                                .rows = rows,
                                .count = count,
                                .known = count,
                                .out = out,
                                .out_stride = table->row.bytes,
                                .mode = EMBLA_WRITE_PLAIN};
    kernels->copy_rows(&job);
}

/* ---- any call ---- */

static embla_status lookup(const embla_table *table, const int32_t *tokens, const int64_t *rows,
                           size_t count, const embla_lookup_options *options, void *out)
{
    EMBLA_NEED_OF(tokens || !rows ? "embla_lookup" : "embla_lookup_rows", "table", table);
    embla_lookup_call call = {.source = &table->source,
                              .tokens = tokens,
                              .rows = rows,
                              .count = count,
                              .token_rows = table->token_rows,
                              .token_count = table->token_count,
                              .out = out};
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
    if (!is_small(table, tokens, count, options, out))
        return lookup(table, tokens, NULL, count, options, out);
    if (copied_one(table, tokens[0], count, out)) return EMBLA_OK;
    const embla_kernels *kernels = embla_kernels_get();
    int64_t rows[FEW];
    EMBLA_TRY(embla_lookup_check_tokens(tokens, count, table->source.rows, false));
    kernels->widen(tokens, count, rows);
    copy_few(kernels, table, rows, count, out);
    return EMBLA_OK;
}

embla_status embla_lookup_rows(const embla_table *table, const int64_t *rows, size_t count,
                               const embla_lookup_options *options, void *out)
{
    EMBLA_TRY(embla_options_check(options));
    if (!is_small(table, rows, count, options, out))
        return lookup(table, NULL, rows, count, options, out);
    if (copied_one(table, rows[0], count, out)) return EMBLA_OK;
    EMBLA_TRY(embla_lookup_check_rows(rows, count, table->source.rows, "row"));
    copy_few(embla_kernels_get(), table, rows, count, out);
    return EMBLA_OK;
}
