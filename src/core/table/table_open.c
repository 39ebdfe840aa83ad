/* SPDX-License-Identifier: Apache-2.0 */
/* Opens a tensor of a checkpoint as a table.
 *
 * If the rows can be used as stored, the table is a view of the mapped file and keeps it open.
 * Text, columns-first arrays and files that everyone may write to are read into memory, in blocks,
 * so that only the table itself needs memory.
 */
#include "base/byte_order.h"
#include "base/checked.h"
#include "base/options.h"
#include "base/status.h"
#include "checkpoint/facts.h"
#include "table/table.h"

enum { BLOCK = 4 << 20 };

/* Reads all rows into a new table without gaps between rows. */
static embla_status read_rows(const embla_checkpoint *cp, const embla_entry *entry,
                              embla_table *table)
{
    size_t block = table->row.bytes < BLOCK ? BLOCK / table->row.bytes : 1;
    for (int64_t row = 0; row < table->source.rows; row += (int64_t)block) {
        uint64_t left = (uint64_t)(table->source.rows - row);
        size_t count = left < block ? (size_t)left : block;
        EMBLA_TRY(embla_entry_read(cp, entry, (uint64_t)row * table->row.bytes,
                                   count * table->row.bytes,
                                   table->writable + (size_t)row * table->row.bytes));
        embla_order_rows(table->row.format.dtype, table->writable + (size_t)row * table->row.bytes,
                         count * table->row.bytes);
    }
    return EMBLA_OK;
}

static embla_status open_copy(const embla_checkpoint *cp, const embla_entry *entry, int64_t rows,
                              size_t dim, const embla_table_options *options, embla_table **out)
{
    embla_table *table = NULL;
    EMBLA_TRY(embla_table_new(entry->element->dtype, rows, dim, options, &table));
    embla_status status = read_rows(cp, entry, table);
    if (status != EMBLA_OK) {
        embla_table_free(table);
        return status;
    }
    *out = table;
    return EMBLA_OK;
}

static embla_status open_view(const embla_checkpoint *cp, const embla_entry *entry, int64_t rows,
                              size_t dim, const embla_table_options *options, embla_table **out)
{
    embla_map *map = cp->shards[entry->file].map;
    EMBLA_TRY(embla_map_check(map));
    EMBLA_TRY(embla_table_view(
        &(embla_table_layout){.dtype = entry->element->dtype, .rows = rows, .dim = dim},
        map->bytes + entry->offset, (size_t)entry->bytes, options, out));
    (*out)->map = embla_map_hold(map);
    return EMBLA_OK;
}

/* Gives the table the checkpoint's mapping of tokens to rows, if this tensor has one. */
static embla_status read_mapping(const embla_checkpoint *cp, const embla_entry *entry,
                                 embla_table *table)
{
    const embla_entry *mapping = embla_facts_mapping(cp, entry);
    int64_t count = 0, *rows = NULL;
    if (!mapping) return EMBLA_OK;
    EMBLA_TRY(embla_facts_mapping_count(cp, mapping, &count));
    EMBLA_TRY(embla_table_add_mapping(table, count, &rows));
    return embla_facts_mapping_read(cp, mapping, table->source.rows, rows);
}

embla_status embla_table_open(const embla_checkpoint *cp, const char *name,
                              const embla_table_options *options, embla_table **out)
{
    EMBLA_TRY(embla_options_check(options));
    embla_table_options ours = {.scale = options ? options->scale : 0.0f};
    const embla_entry *entry = NULL;
    embla_table *table = NULL;
    int64_t rows;
    size_t dim;
    EMBLA_NEED_OF("embla_table_open", "checkpoint", cp);
    EMBLA_NEED(out);
    if (options && (options->row_stride != 0 || options->writable || options->token_rows))
        return embla_fail(
            EMBLA_ERR_ARGUMENT,
            "a table of a file is read-only, and its row stride and mapping are the file's");
    if (name)
        EMBLA_TRY(embla_checkpoint_named(cp, name, &entry));
    else
        EMBLA_TRY(embla_checkpoint_entry(cp, EMBLA_ROLE_TOKENS, &entry, NULL));
    EMBLA_TRY(embla_entry_shape(entry, &rows, &dim));
    if (entry->element->dtype == 0)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "%.200s: tensor '%.128s' has type %s, which cannot be a table", cp->shown,
                          entry->name, entry->element->name);
    bool copies = cp->copy || entry->made || embla_order_differs(entry->element->dtype);
    EMBLA_TRY(copies ? open_copy(cp, entry, rows, dim, &ours, &table)
                     : open_view(cp, entry, rows, dim, &ours, &table));
    embla_status status = options && options->by_row ? EMBLA_OK : read_mapping(cp, entry, table);
    if (status != EMBLA_OK) {
        embla_table_free(table);
        return status;
    }
    *out = table;
    return EMBLA_OK;
}
