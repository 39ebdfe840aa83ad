/* SPDX-License-Identifier: Apache-2.0 */
/* A table of this process as a checkpoint, so that what reads checkpoints, embla_convert above all,
 * reads it too.
 *
 * The checkpoint has one "file", the bytes of the table, with one tensor in it. Its words are
 * labels of that file. It lies in no folder, so nothing beside it is looked for.
 */
#include <string.h>

#include "base/byte_order.h"
#include "checkpoint/checkpoint.h"
#include "table/table.h"

static const char shown[] = "the table in memory";
static const char tensor[] = "vectors";

/* A format that no file has: it is neither detected nor written. */
static const embla_format in_memory = {.name = "memory", .one_table = true};

/* Only what a file can hold: rows without gaps, whose numbers need no scale, one for each token. */
static embla_status check(const embla_table *table, const embla_vocab *vocab)
{
    if (table->source.stride != table->row.bytes)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "the table has rows of %zu bytes, %zu bytes apart; a checkpoint has no "
                          "gaps between rows",
                          table->row.bytes, table->source.stride);
    if (table->row.format.scale != 1.0f)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "the table has a scale of %g, which no format stores; it must be 1",
                          (double)table->row.format.scale);
    if (table->token_rows)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "the table maps %" PRId64 " tokens to %" PRId64
                          " rows; a checkpoint of a table has no mapping",
                          table->token_count, table->source.rows);
    if (vocab && embla_vocab_end(vocab) > table->source.rows)
        return embla_fail(EMBLA_ERR_SHAPE,
                          "the vocabulary has tokens up to %" PRId64 ", but the table has %" PRId64
                          " rows",
                          embla_vocab_end(vocab) - 1, table->source.rows);
    return EMBLA_OK;
}

/* Rows in the byte order of files. */
static embla_status turn_rows(const embla_directory *directory, const embla_map *map,
                              const embla_entry *entry, uint64_t first, uint64_t count, void *out)
{
    size_t row = (size_t)(entry->bytes / entry->shape[0]), bytes = (size_t)count * row;
    (void)directory;
    EMBLA_TRY(embla_map_read(map, first * row, bytes, out));
    embla_order_rows(entry->element->dtype, out, bytes);
    return EMBLA_OK;
}

static embla_status describe(const embla_table *table, embla_directory *directory)
{
    embla_entry *entry = NULL;
    const embla_element *element = NULL;
    EMBLA_TRY(embla_element_find(table->row.format.dtype, "the table", &element));
    directory->format = in_memory.name;
    EMBLA_TRY(embla_directory_add(directory, tensor, strlen(tensor), &entry));
    entry->element = element;
    entry->rank = 2;
    entry->shape[0] = (uint64_t)table->source.rows;
    entry->shape[1] = table->row.format.dim;
    entry->bytes = (uint64_t)table->source.rows * table->row.bytes;
    entry->made = embla_order_differs(element->dtype);
    directory->make = turn_rows;
    return EMBLA_OK;
}

/* Words of rows; a row without a word has a label without bytes. */
static embla_status add_labels(const embla_vocab *vocab, embla_directory *directory)
{
    size_t count, end = vocab ? (size_t)embla_vocab_end(vocab) : 0;
    embla_name *labels = NULL;
    if (end == 0) return EMBLA_OK;
    EMBLA_TRY(embla_arena_many(&directory->arena, end, sizeof *labels, "words", &labels));
    const embla_word *words = embla_vocab_words(vocab, &count);
    for (size_t i = 0; i < end; i++) labels[i].number = (uint32_t)i;
    for (size_t i = 0; i < count; i++) {
        labels[words[i].token].bytes = words[i].bytes;
        labels[words[i].token].length = words[i].length;
    }
    directory->labels = labels;
    directory->label_count = end;
    return EMBLA_OK;
}

static embla_status fill(const embla_table *table, const embla_vocab *vocab, embla_checkpoint *cp)
{
    EMBLA_TRY(embla_arena_many(&cp->arena, 1, sizeof *cp->shards, "a list of files", &cp->shards));
    embla_shard *shard = &cp->shards[0];
    size_t bytes = (size_t)table->source.rows * table->row.bytes; /* a table fits in memory */
    EMBLA_TRY(embla_map_bytes(table->source.data, bytes, shown, &shard->map));
    cp->shard_count = 1; /* from now on it is freed with the checkpoint */
    EMBLA_TRY(describe(table, &shard->directory));
    EMBLA_TRY(add_labels(vocab, &shard->directory));
    return embla_checkpoint_finish(cp);
}

embla_status embla_checkpoint_view(const embla_table *table, const embla_vocab *vocab,
                                   embla_checkpoint **out)
{
    embla_checkpoint *cp = NULL;
    EMBLA_NEED(table);
    EMBLA_NEED(out);
    EMBLA_TRY(check(table, vocab));
    EMBLA_TRY(embla_table_check_file(table));
    EMBLA_TRY(embla_checkpoint_begin(&cp));
    cp->shown = shown;
    cp->format = &in_memory;
    embla_status status = fill(table, vocab, cp);
    if (status != EMBLA_OK) {
        embla_checkpoint_free(cp);
        return status;
    }
    *out = cp;
    return EMBLA_OK;
}
