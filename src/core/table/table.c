/* SPDX-License-Identifier: Apache-2.0 */
/* Creates, views, fills and queries tables. Everything is checked when a table is created, so other
 * code can rely on it. */
#include "table/table.h"

#include <string.h>

#include "base/checked.h"
#include "base/kernels.h"
#include "base/mem.h"
#include "base/options.h"
#include "base/status.h"

static embla_status check_map(const void *table)
{
    return embla_table_check_file(table);
}

static const embla_source_kind table_rows = {.check = check_map, .unit = EMBLA_LINE};

/* Sets the format and the shape; *bytes is the size of rows x dim. */
static embla_status set_shape(embla_dtype dtype, int64_t rows, size_t dim,
                              const embla_table_options *options, embla_table *table, size_t *bytes)
{
    const embla_table_options defaults = {0};
    if (!options) options = &defaults;
    if (rows < 1 || rows > EMBLA_ROWS_MOST)
        return embla_fail(EMBLA_ERR_ARGUMENT, "rows is %" PRId64 "; it must be from 1 to %" PRId64,
                          rows, EMBLA_ROWS_MOST);
    if (dim < 1 || dim > EMBLA_DIM_MOST)
        return embla_fail(EMBLA_ERR_ARGUMENT, "dim is %zu; it must be from 1 to %zu", dim,
                          EMBLA_DIM_MOST);
    const embla_row_format format = {.dim = dim, .dtype = dtype, .scale = options->scale};
    EMBLA_TRY(embla_row_of(&format, &table->row));
    size_t stride = options->row_stride ? options->row_stride : table->row.bytes;
    if (stride < table->row.bytes)
        return embla_fail(EMBLA_ERR_SHAPE,
                          "the row stride is %zu bytes, less than a row's %zu bytes", stride,
                          table->row.bytes);
    if (!embla_span_ok((uint64_t)rows, stride, table->row.bytes, bytes))
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "%" PRId64 " rows, %zu bytes apart, do not fit in memory", rows, stride);
    table->source.rows = rows;
    table->source.stride = stride;
    return embla_table_check_mapping(options->token_rows, options->token_count, rows);
}

/* Creates the handle of a table, and copies the mapping of the options if there is one. */
static embla_status make_handle(const embla_table *filled, const embla_table_options *options,
                                embla_table **out)
{
    void *handle = NULL;
    int64_t *token_rows = NULL;
    EMBLA_TRY(embla_mem_new(sizeof *filled, "a table", &handle));
    embla_table *table = handle;
    *table = *filled;
    table->source.row = &table->row;
    table->source.kind = &table_rows;
    table->source.owner = table;
    if (options && options->token_rows) {
        embla_status status = embla_table_add_mapping(table, options->token_count, &token_rows);
        if (status != EMBLA_OK) {
            embla_mem_free(handle, sizeof *filled);
            return status;
        }
        memcpy(token_rows, options->token_rows, (size_t)options->token_count * sizeof *token_rows);
    }
    *out = table;
    return EMBLA_OK;
}

embla_status embla_table_new(embla_dtype dtype, int64_t rows, size_t dim,
                             const embla_table_options *options, embla_table **out)
{
    EMBLA_TRY(embla_options_check(options));
    embla_table made = {0};
    void *data = NULL;
    size_t bytes;
    EMBLA_NEED(out);
    EMBLA_TRY(set_shape(dtype, rows, dim, options, &made, &bytes));
    EMBLA_TRY(embla_mem_new(bytes, "the rows of a table", &data));
    made.source.data = made.writable = data;
    made.owned = bytes;
    embla_status status = make_handle(&made, options, out);
    if (status != EMBLA_OK) embla_mem_free(data, bytes);
    return status;
}

embla_status embla_table_view(const embla_table_layout *layout, const void *data, size_t data_bytes,
                              const embla_table_options *options, embla_table **out)
{
    EMBLA_TRY(embla_options_check(layout));
    EMBLA_TRY(embla_options_check(options));
    embla_table made = {0};
    size_t bytes;
    EMBLA_NEED(out);
    EMBLA_NEED(layout);
    EMBLA_NEED(data);
    EMBLA_TRY(set_shape(layout->dtype, layout->rows, layout->dim, options, &made, &bytes));
    if (bytes > data_bytes)
        return embla_fail(EMBLA_ERR_SHAPE,
                          "%" PRId64 " x %zu %s needs %zu bytes, but data_bytes is %zu",
                          layout->rows, layout->dim, made.row.info->name, bytes, data_bytes);
    made.source.data = data;
    if (options && options->writable) made.writable = (char *)(uintptr_t)data;
    return make_handle(&made, options, out);
}

void embla_table_free(embla_table *table)
{
    if (!table) return;
    if (table->owned > 0) embla_mem_free(table->writable, table->owned);
    embla_table_drop_mapping(table);
    embla_map_free(table->map);
    embla_mem_free(table, sizeof *table);
}

int64_t embla_table_rows(const embla_table *table)
{
    return table ? table->source.rows : 0;
}

size_t embla_table_dim(const embla_table *table)
{
    return table ? table->row.format.dim : 0;
}

embla_dtype embla_table_dtype(const embla_table *table)
{
    return table ? table->row.format.dtype : (embla_dtype)0;
}

float embla_table_scale(const embla_table *table)
{
    return table ? table->row.format.scale : 0.0f;
}

embla_placement embla_table_placement(const embla_table *table)
{
    if (table && table->map) return EMBLA_PLACEMENT_MAPPED;
    return !table || table->owned > 0 ? EMBLA_PLACEMENT_RAM : EMBLA_PLACEMENT_VIEW;
}

size_t embla_table_row_bytes(const embla_table *table)
{
    return table ? table->row.bytes : 0;
}

size_t embla_table_row_stride(const embla_table *table)
{
    return table ? table->source.stride : 0;
}

const void *embla_table_row(const embla_table *table, int64_t row)
{
    if (!table || (uint64_t)row >= (uint64_t)table->source.rows) return NULL;
    return embla_source_at(&table->source, row);
}

void *embla_table_data(embla_table *table)
{
    return table ? table->writable : NULL;
}

const embla_row_source *embla_table_source(const embla_table *table)
{
    return &table->source;
}

embla_status embla_table_check_file(const embla_table *table)
{
    return table && table->map ? embla_map_check(table->map) : EMBLA_OK;
}

void embla_table_shrink(embla_table *table, int64_t rows)
{
    table->source.rows = rows;
}

void embla_table_move(embla_table *table, void *data)
{
    if (table->owned > 0) embla_mem_free(table->writable, table->owned);
    table->owned = 0;
    table->source.data = table->writable = data;
}

embla_status embla_table_check_writable(const embla_table *table)
{
    if (!table) return embla_fail(EMBLA_ERR_ARGUMENT, "table is NULL");
    if (!table->writable)
        return embla_fail(EMBLA_ERR_ARGUMENT, "the table of %" PRId64 " x %zu is a read-only view",
                          table->source.rows, table->row.format.dim);
    return EMBLA_OK;
}

embla_status embla_table_write(embla_table *table, int64_t first, size_t count, const float *values)
{
    EMBLA_TRY(embla_table_check_writable(table));
    EMBLA_TRY(embla_dtype_check_writes(table->row.format.dtype));
    if (first < 0 || first > table->source.rows || count > (uint64_t)(table->source.rows - first))
        return embla_fail(EMBLA_ERR_RANGE,
                          "%zu rows from row %" PRId64
                          " on are out of range; the table has %" PRId64 " rows",
                          count, first, table->source.rows);
    if (count > 0 && !values)
        return embla_fail(EMBLA_ERR_ARGUMENT, "%zu rows to write, but values is NULL", count);
    embla_encode_fn *encode =
        embla_dtype_encoder(table->row.format.dtype, embla_kernels_get()->isa);
    for (size_t i = 0; i < count; i++)
        encode(values + i * table->row.format.dim, table->row.format.dim, table->row.format.scale,
               table->writable + ((size_t)first + i) * table->source.stride);
    return EMBLA_OK;
}
