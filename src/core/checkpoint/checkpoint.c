/* SPDX-License-Identifier: Apache-2.0 */
/* Queries of an opened checkpoint. checkpoint_open.c opens it; checkpoint_roles.c has the queries
 * about roles.
 *
 * All of them use lists that were checked when the checkpoint was opened. Bytes are read with
 * pread, so no query can raise a signal.
 */
#include "checkpoint/checkpoint.h"

#include <stdio.h>
#include <string.h>

#include "base/byte_order.h"
#include "base/checked.h"
#include "base/dtype.h"
#include "files/cursor.h"
#include "files/io.h"
#include "formats/gguf.h"

void embla_checkpoint_free(embla_checkpoint *cp)
{
    if (!cp) return;
    for (size_t i = 0; i < cp->shard_count; i++) {
        embla_directory_free(&cp->shards[i].directory);
        embla_map_free(cp->shards[i].map);
    }
    embla_json_free(cp->config);
    if (cp->folder >= 0) embla_io_drop(cp->folder);
    embla_arena arena = cp->arena; /* a copy: the arena holds the handle */
    embla_arena_free(&arena);
}

const char *embla_checkpoint_format(const embla_checkpoint *cp)
{
    return cp ? cp->format->name : NULL;
}

const embla_file *embla_checkpoint_files(const embla_checkpoint *cp, size_t *count)
{
    *count = cp ? cp->shard_count : 0;
    return cp ? cp->files : NULL;
}

const char *const *embla_checkpoint_notes(const embla_checkpoint *cp, size_t *count)
{
    *count = cp ? cp->note_count : 0;
    return cp ? cp->notes : NULL;
}

/* Finds a key of config.json; dots separate nested objects, as in "text_config.vocab_size". */
static const embla_json_value *config_at(const embla_checkpoint *cp, const char *key)
{
    const embla_json_value *value = cp->config;
    char part[128];
    while (value) {
        size_t length = strcspn(key, ".");
        if (length >= sizeof part) return NULL;
        memcpy(part, key, length);
        part[length] = '\0';
        value = embla_json_get(value, part);
        if (key[length] == '\0') break;
        key += length + 1;
    }
    return value;
}

const char *embla_checkpoint_text(const embla_checkpoint *cp, const char *key)
{
    bool gguf = cp && cp->format == &embla_format_gguf; /* its own keys come before config.json */
    if (!cp || !key) return NULL;
    const char *text = gguf ? NULL : embla_json_string(config_at(cp, key), NULL);
    for (size_t i = 0; !text && i < cp->shard_count; i++) {
        const embla_directory *directory = &cp->shards[i].directory;
        for (size_t p = 0; !text && p < directory->pair_count; p++)
            if (strcmp(directory->pairs[p].key, key) == 0) text = directory->pairs[p].value;
    }
    if (!text && gguf) text = embla_json_string(config_at(cp, key), NULL);
    return text;
}

embla_json_kind embla_checkpoint_kind(const embla_checkpoint *cp, const char *key)
{
    return embla_json_what(config_at(cp, key));
}

embla_status embla_checkpoint_integer(const embla_checkpoint *cp, const char *key, int64_t *out)
{
    if (!cp || !key || !out)
        return embla_fail(EMBLA_ERR_ARGUMENT, "embla_checkpoint_integer: an argument is NULL");
    const embla_shard *first = &cp->shards[0];
    if (cp->format == &embla_format_gguf && embla_gguf_has(&first->directory, key))
        return embla_gguf_number(&first->directory, first->map, key, out);
    if (embla_json_integer(config_at(cp, key), out)) return EMBLA_OK;
    return embla_fail(EMBLA_ERR_NOT_FOUND, "%.200s has no numeric value for '%.128s'", cp->shown,
                      key);
}

/* Reads the first `capacity` elements of an array of integers. If out is NULL they are only
 * checked. */
static embla_status read_integers(const embla_shard *shard, const embla_gguf_key *key,
                                  size_t capacity, int64_t *out)
{
    uint64_t size = embla_gguf_type_bytes(key->element);
    uint64_t top = size > 0 ? UINT64_C(1) << (8 * size - 1) : 0;
    bool is_signed = key->element == EMBLA_GGUF_I8 || key->element == EMBLA_GGUF_I16 ||
                     key->element == EMBLA_GGUF_I32 || key->element == EMBLA_GGUF_I64;
    embla_cursor c;
    embla_status status = EMBLA_OK;
    embla_cursor_begin(&c, shard->map, key->value);
    for (size_t i = 0; i < capacity && i < key->count && status == EMBLA_OK; i++) {
        const uint8_t *bytes;
        uint8_t wide[8] = {0};
        status = embla_cursor_bytes(&c, size, "an element", &bytes);
        if (status != EMBLA_OK) break;
        memcpy(wide, bytes, (size_t)size);
        uint64_t raw = embla_le64(wide);
        if (is_signed) raw = (raw ^ top) - top; /* sign extension */
        if (!is_signed && raw > (uint64_t)INT64_MAX)
            status = embla_fail(EMBLA_ERR_FORMAT,
                                "%.200s: element %zu of '%.128s' is %" PRIu64
                                "; the limit is %" PRId64 " (G5)",
                                shard->map->name, i, key->key, raw, INT64_MAX);
        else if (out)
            memcpy(&out[i], &raw, sizeof raw);
    }
    embla_cursor_end(&c);
    return status;
}

static bool is_integer_array(const embla_gguf_key *key)
{
    bool other = key->element == EMBLA_GGUF_F32 || key->element == EMBLA_GGUF_F64 ||
                 key->element == EMBLA_GGUF_STRING || key->element == EMBLA_GGUF_ARRAY ||
                 key->element == EMBLA_GGUF_BOOL;
    return key->type == EMBLA_GGUF_ARRAY && !other;
}

embla_status embla_checkpoint_integers(const embla_checkpoint *cp, const char *key, size_t capacity,
                                       int64_t *out, size_t *count)
{
    if (!cp || !key || !count || (capacity > 0 && !out))
        return embla_fail(EMBLA_ERR_ARGUMENT, "embla_checkpoint_integers: an argument is NULL");
    const embla_shard *first = &cp->shards[0];
    const embla_gguf_key *found =
        cp->format == &embla_format_gguf ? embla_gguf_find(&first->directory, key) : NULL;
    const embla_json_value *list = found ? NULL : config_at(cp, key);
    bool good = found ? is_integer_array(found) : embla_json_what(list) == EMBLA_JSON_ARRAY;
    const embla_json_value *item = embla_json_item(list, 0);
    int64_t number;
    for (const embla_json_value *v = item; v && good; v = embla_json_after(v))
        good = embla_json_integer(v, &number);
    if (!good)
        return embla_fail(EMBLA_ERR_NOT_FOUND, "%.200s has no list of integers for '%.128s'",
                          cp->shown, key);
    if (found) EMBLA_TRY(read_integers(first, found, capacity, NULL));
    if (found) EMBLA_TRY(read_integers(first, found, capacity, out));
    for (size_t i = 0; item && i < capacity; i++, item = embla_json_after(item))
        (void)embla_json_integer(item, &out[i]);
    *count = found ? (size_t)found->count : embla_json_count(list);
    return EMBLA_OK;
}

embla_status embla_checkpoint_real(const embla_checkpoint *cp, const char *key, double *out)
{
    int64_t whole;
    if (!cp || !key || !out)
        return embla_fail(EMBLA_ERR_ARGUMENT, "embla_checkpoint_real: an argument is NULL");
    const embla_shard *first = &cp->shards[0];
    const embla_gguf_key *found =
        cp->format == &embla_format_gguf ? embla_gguf_find(&first->directory, key) : NULL;
    if (found && (found->type == EMBLA_GGUF_F32 || found->type == EMBLA_GGUF_F64))
        return embla_gguf_real(&first->directory, first->map, key, out);
    if (found) {
        EMBLA_TRY(embla_gguf_number(&first->directory, first->map, key, &whole));
        *out = (double)whole;
        return EMBLA_OK;
    }
    if (embla_json_double(config_at(cp, key), out)) return EMBLA_OK;
    return embla_fail(EMBLA_ERR_NOT_FOUND, "%.200s has no numeric value for '%.128s'", cp->shown,
                      key);
}

/* ---- tensors ---- */

static embla_tensor describe(const embla_checkpoint *cp, size_t n)
{
    const embla_entry *entry = &cp->entries[n];
    embla_tensor tensor = {.name = entry->name,
                           .type = entry->element->name,
                           .dtype = entry->element->dtype,
                           .role = cp->roles[n],
                           .rank = entry->rank,
                           .bytes = (int64_t)entry->bytes,
                           .offset = entry->made ? -1 : (int64_t)entry->offset,
                           .file = cp->shards[entry->file].map->name};
    for (size_t i = 0; i < entry->rank; i++) tensor.shape[i] = (int64_t)entry->shape[i];
    return tensor;
}

/* The notes of all files after those of the folder. */
static embla_status list_notes(embla_checkpoint *cp)
{
    const char **notes = NULL;
    size_t count = cp->note_count;
    for (size_t i = 0; i < cp->shard_count; i++) count += cp->shards[i].directory.note_count;
    EMBLA_TRY(embla_arena_many(&cp->arena, count, sizeof *notes, "notes", &notes));
    count = 0;
    for (size_t k = 0; k < cp->note_count; k++) notes[count++] = cp->notes[k];
    for (size_t i = 0; i < cp->shard_count; i++) {
        const embla_directory *directory = &cp->shards[i].directory;
        for (size_t k = 0; k < directory->note_count; k++) notes[count++] = directory->notes[k];
    }
    cp->notes = notes;
    cp->note_count = cp->note_room = count;
    return EMBLA_OK;
}

embla_status embla_checkpoint_list(embla_checkpoint *cp)
{
    embla_arena *arena = &cp->arena;
    EMBLA_TRY(
        embla_arena_many(arena, cp->shard_count, sizeof *cp->files, "a list of files", &cp->files));
    EMBLA_TRY(
        embla_arena_many(arena, cp->count, sizeof *cp->tensors, "a list of tensors", &cp->tensors));
    for (size_t i = 0; i < cp->shard_count; i++)
        cp->files[i] = (embla_file){.name = cp->shards[i].map->name,
                                    .bytes = (int64_t)cp->shards[i].map->size};
    for (size_t n = 0; n < cp->count; n++) cp->tensors[n] = describe(cp, n);
    return list_notes(cp);
}

const embla_tensor *embla_checkpoint_tensors(const embla_checkpoint *cp, size_t *count)
{
    *count = cp ? cp->count : 0;
    return cp ? cp->tensors : NULL;
}

/* A name that holds what was asked for, or that it holds; NULL if none does. */
static const char *find_similar(const embla_checkpoint *cp, const char *name)
{
    for (size_t i = 0; *name && i < cp->count; i++)
        if (strstr(cp->entries[i].name, name) || strstr(name, cp->entries[i].name))
            return cp->entries[i].name;
    return NULL;
}

enum { LISTED = 256 };

/* The names of the first tensors, as many as fit, then "..". */
static void list_tensors(const embla_checkpoint *cp, char list[LISTED])
{
    size_t used = 0;
    for (size_t i = 0; i < cp->count; i++) {
        const char *name = cp->entries[i].name;
        bool fits = used + strlen(name) + sizeof ", .." <= LISTED;
        used += (size_t)snprintf(list + used, LISTED - used, "%s%s", i > 0 ? ", " : "",
                                 fits ? name : "..");
        if (!fits) return;
    }
}

embla_status embla_checkpoint_named(const embla_checkpoint *cp, const char *name,
                                    const embla_entry **out)
{
    const embla_name *found = embla_names_find(&cp->index, name, strlen(name));
    const char *similar = found ? NULL : find_similar(cp, name);
    if (found) {
        *out = &cp->entries[found->number];
        return EMBLA_OK;
    }
    if (similar)
        return embla_fail(EMBLA_ERR_NOT_FOUND,
                          "%.200s has no tensor '%.128s'; did you mean '%.128s'?", cp->shown, name,
                          similar);
    char list[LISTED] = "";
    list_tensors(cp, list);
    return embla_fail(EMBLA_ERR_NOT_FOUND, "%.200s has no tensor '%.128s'; it has %zu: %s",
                      cp->shown, name, cp->count, list);
}

embla_status embla_checkpoint_find(const embla_checkpoint *cp, const char *name, embla_tensor *out)
{
    const embla_entry *entry = NULL;
    if (!cp || !name || !out)
        return embla_fail(EMBLA_ERR_ARGUMENT, "embla_checkpoint_find: an argument is NULL");
    EMBLA_TRY(embla_checkpoint_named(cp, name, &entry));
    *out = cp->tensors[(size_t)(entry - cp->entries)];
    return EMBLA_OK;
}

/* ---- numbers ---- */

embla_status embla_entry_shape(const embla_entry *entry, int64_t *rows, size_t *dim)
{
    uint64_t r = entry->rank == 2 ? entry->shape[0] : 1;
    uint64_t d = entry->rank == 2 ? entry->shape[1] : entry->rank == 1 ? entry->shape[0] : 0;
    if (entry->rank < 1 || entry->rank > 2)
        return embla_fail(EMBLA_ERR_SHAPE,
                          "tensor '%.128s' has %u dimensions; a table has 2 (rows x dim)",
                          entry->name, (unsigned)entry->rank);
    if (r < 1 || r > (uint64_t)EMBLA_ROWS_MOST || d < 1 || d > EMBLA_DIM_MOST)
        return embla_fail(EMBLA_ERR_SHAPE,
                          "tensor '%.128s' is %" PRIu64 " x %" PRIu64
                          "; a table has 1 to 2^40 rows of 1 to 2^20 numbers (C10)",
                          entry->name, r, d);
    *rows = (int64_t)r;
    *dim = (size_t)d;
    return EMBLA_OK;
}

/* Reads rows of a made entry. */
static embla_status read_made(const embla_shard *shard, const embla_entry *entry, uint64_t offset,
                              size_t bytes, void *out)
{
    uint64_t rows = entry->rank > 1 ? entry->shape[0] : 1;
    uint64_t row_bytes = rows > 0 ? entry->bytes / rows : 0;
    if (row_bytes == 0 || offset % row_bytes != 0 || bytes % row_bytes != 0)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "tensor '%.128s': %zu bytes from byte %" PRIu64
                          " are not whole rows; a row has %" PRIu64 " bytes",
                          entry->name, bytes, offset, row_bytes);
    return shard->directory.make(&shard->directory, shard->map, entry, offset / row_bytes,
                                 bytes / row_bytes, out);
}

embla_status embla_entry_read(const embla_checkpoint *cp, const embla_entry *entry, uint64_t offset,
                              size_t bytes, void *out)
{
    const embla_shard *shard = &cp->shards[entry->file];
    if (offset > entry->bytes || bytes > entry->bytes - offset)
        return embla_fail(EMBLA_ERR_RANGE,
                          "tensor '%.128s': cannot read %zu bytes from byte %" PRIu64
                          ": it has %" PRIu64 " bytes",
                          entry->name, bytes, offset, entry->bytes);
    if (bytes == 0) return EMBLA_OK;
    if (entry->made) return read_made(shard, entry, offset, bytes, out);
    return embla_map_read(shard->map, entry->offset + offset, bytes, out);
}

embla_status embla_entry_numbers(const embla_checkpoint *cp, const embla_entry *entry, size_t size,
                                 size_t count, void *out)
{
    EMBLA_TRY(embla_entry_read(cp, entry, 0, size * count, out));
    embla_order_turn(out, size, count);
    return EMBLA_OK;
}

embla_status embla_checkpoint_read(const embla_checkpoint *cp, const char *name, int64_t offset,
                                   size_t bytes, void *out)
{
    const embla_entry *entry = NULL;
    if (!cp || !name || (bytes > 0 && !out))
        return embla_fail(EMBLA_ERR_ARGUMENT, "embla_checkpoint_read: an argument is NULL");
    EMBLA_TRY(embla_checkpoint_named(cp, name, &entry));
    if (offset < 0)
        return embla_fail(EMBLA_ERR_RANGE, "tensor '%.128s': offset %" PRId64 " is negative", name,
                          offset);
    return embla_entry_read(cp, entry, (uint64_t)offset, bytes, out);
}
