/* SPDX-License-Identifier: Apache-2.0 */
/* The index of a checkpoint in shards (S13): {"metadata": {"total_size": n}, "weight_map":
 * {tensor: file, ..}}. A file name inside a file is a known way to make a loader leave the folder
 * (path traversal), so only plain names are accepted. Everything else in the index is checked
 * against the shards.
 */
#include <string.h>

#include "base/checked.h"
#include "files/json.h"
#include "formats/safetensors.h"

enum {
    INDEX_MOST = 64000000, /* bytes */
    DEPTH_MOST = 4,        /* nesting; two levels are needed */
    SHARDS_MOST = 10000,
    SHARD_NAME_MOST = 255,
};

static bool ends_with(const char *text, size_t length, const char *end)
{
    size_t end_length = strlen(end);
    return length >= end_length && memcmp(text + length - end_length, end, end_length) == 0;
}

/* True for a name that is not a path: [A-Za-z0-9._-]{1,255}, no dot at the beginning, no "..". */
static bool is_plain(const char *name, size_t length)
{
    if (length < 1 || length > SHARD_NAME_MOST || name[0] == '.' || strstr(name, ".."))
        return false;
    for (size_t i = 0; i < length; i++) {
        char c = name[i];
        if (!((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
              c == '.' || c == '_' || c == '-'))
            return false;
    }
    return true;
}

/* Copies the members of weight_map: tensors[i] is the tensor's name, files[i] its file's name. */
static embla_status read_map(const embla_json_value *map, const char *name, embla_arena *arena,
                             embla_name *tensors, embla_name *files)
{
    const char *key;
    size_t key_length, length;
    const embla_json_value *value = NULL;
    for (uint32_t i = 0; embla_json_next(map, &value, &key, &key_length); i++) {
        const char *file = embla_json_string(value, &length);
        if (!file)
            return embla_fail(EMBLA_ERR_FORMAT,
                              "%.200s: the file name of tensor '%.128s' is not a string "
                              "(S13)",
                              name, key);
        if (!is_plain(file, length))
            return embla_fail(EMBLA_ERR_FORMAT,
                              "%.200s: tensor '%.100s' is in '%.128s', which is not a plain file "
                              "name (S13)",
                              name, key, file);
        if (ends_with(file, length, ".json"))
            return embla_fail(EMBLA_ERR_FORMAT,
                              "%.200s: tensor '%.100s' is in '%.128s', but an index must not name "
                              "another index (S13)",
                              name, key, file);
        tensors[i] = (embla_name){.length = (uint32_t)key_length};
        files[i] = (embla_name){.length = (uint32_t)length, .number = i};
        EMBLA_TRY(embla_arena_text(arena, key, key_length, &tensors[i].bytes));
        EMBLA_TRY(embla_arena_text(arena, file, length, &files[i].bytes));
    }
    return EMBLA_OK;
}

/* Makes the sorted list of shards, each file once, and sets the shard number of each tensor. */
static embla_status list_shards(const char *name, embla_arena *arena, const embla_name *files,
                                embla_name *tensors, embla_shard_index *index)
{
    embla_names sorted;
    EMBLA_TRY(embla_names_sort(arena, files, index->tensor_count, &sorted));
    index->shard_count = sorted.count - embla_names_repeats(&sorted);
    if (index->shard_count > SHARDS_MOST)
        return embla_fail(EMBLA_ERR_FORMAT, "%.200s: there are %zu shards; the limit is %d (S13)",
                          name, index->shard_count, SHARDS_MOST);
    EMBLA_TRY(embla_arena_many(arena, index->shard_count, sizeof *index->shards, "a list of shards",
                               &index->shards));
    uint32_t shard = 0;
    for (size_t i = 0; i < sorted.count; i++) {
        if (i > 0 && strcmp(index->shards[shard], sorted.sorted[i]->bytes) != 0) shard++;
        index->shards[shard] = sorted.sorted[i]->bytes;
        tensors[sorted.sorted[i]->number].number = shard;
    }
    return EMBLA_OK;
}

static embla_status read_root(const embla_json_value *root, const char *name, embla_arena *arena,
                              embla_shard_index *index)
{
    const embla_json_value *map = embla_json_get(root, "weight_map"),
                           *metadata = embla_json_get(root, "metadata");
    embla_name *tensors = NULL, *files = NULL;
    if (embla_json_what(map) != EMBLA_JSON_OBJECT)
        return embla_fail(EMBLA_ERR_FORMAT, "%.200s: weight_map is %s (S13)", name,
                          map ? "not an object" : "missing");
    if (metadata && embla_json_what(metadata) != EMBLA_JSON_OBJECT)
        return embla_fail(EMBLA_ERR_FORMAT, "%.200s: metadata is not an object (S13)", name);
    index->tensor_count = embla_json_count(map);
    if (index->tensor_count == 0)
        return embla_fail(EMBLA_ERR_FORMAT, "%.200s: weight_map has no tensors (S13)", name);
    EMBLA_TRY(embla_arena_many(arena, index->tensor_count, sizeof *tensors, "a list of tensors",
                               &tensors));
    EMBLA_TRY(
        embla_arena_many(arena, index->tensor_count, sizeof *files, "a list of files", &files));
    EMBLA_TRY(read_map(map, name, arena, tensors, files));
    EMBLA_TRY(list_shards(name, arena, files, tensors, index));
    index->tensors = tensors;
    const embla_json_value *total = embla_json_get(metadata, "total_size");
    if (!embla_json_integer(total, &index->total_size) || index->total_size < 0)
        index->total_size = total ? -2 : -1;
    return embla_names_sort(arena, tensors, index->tensor_count, &index->by_name);
}

embla_status embla_safetensors_index(const void *bytes, size_t count, const char *name,
                                     embla_arena *arena, embla_shard_index *out)
{
    embla_json_value *root = NULL;
    embla_shard_index index = {0};
    if (count > INDEX_MOST)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.200s: the index has %zu bytes; the limit is %d (S13)", name, count,
                          INDEX_MOST);
    EMBLA_TRY(embla_json_read(bytes, count, name, DEPTH_MOST, "S13", &root));
    embla_status status = read_root(root, name, arena, &index);
    embla_json_free(root);
    if (status == EMBLA_OK) *out = index;
    return status;
}

/* Lists the names of all tensors of all shards, with the shard as number, and sums their bytes. */
static embla_status list_names(const embla_shard *shards, size_t count, embla_arena *arena,
                               embla_name **out, size_t *names, uint64_t *bytes)
{
    size_t all = 0, used = 0;
    for (size_t i = 0; i < count; i++) all += shards[i].directory.count;
    EMBLA_TRY(embla_arena_many(arena, all, sizeof **out, "names of tensors", out));
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < shards[i].directory.count; j++) {
            const embla_entry *entry = &shards[i].directory.entries[j];
            size_t length = strlen(entry->name);
            (*out)[used++] = (embla_name){entry->name, (uint32_t)length, (uint32_t)i};
            if (!embla_add_ok(*bytes, entry->bytes, bytes)) *bytes = UINT64_MAX;
        }
    }
    *names = used;
    return EMBLA_OK;
}

static embla_status check_tensor(const embla_shard_index *index, const char *name,
                                 const embla_names *found, const embla_name *tensor)
{
    const embla_name *there = embla_names_find(found, tensor->bytes, tensor->length);
    if (!there)
        return embla_fail(
            EMBLA_ERR_FORMAT,
            "%.120s: tensor '%.100s' should be in '%.100s', but is in none of the %zu shards "
            "(S13)",
            name, tensor->bytes, index->shards[tensor->number], index->shard_count);
    if (there->number != tensor->number)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.120s: tensor '%.100s' should be in '%.100s', but is in '%.100s' (S13)",
                          name, tensor->bytes, index->shards[tensor->number],
                          index->shards[there->number]);
    return EMBLA_OK;
}

static embla_status check_all(const embla_shard_index *index, const char *name,
                              const embla_shard *shards, embla_arena *arena, embla_directory *out)
{
    embla_name *names = NULL;
    embla_names found;
    size_t count = 0;
    uint64_t bytes = 0;
    EMBLA_TRY(list_names(shards, index->shard_count, arena, &names, &count, &bytes));
    EMBLA_TRY(embla_names_sort(arena, names, count, &found));
    const embla_name *twice = embla_names_twice(&found);
    if (twice)
        return embla_fail(
            EMBLA_ERR_FORMAT, "%.120s: tensor '%.100s' is in both '%.100s' and '%.100s' (S13)",
            name, twice->bytes,
            index->shards[embla_names_find(&found, twice->bytes, twice->length)->number],
            index->shards[twice->number]);
    for (size_t i = 0; i < index->tensor_count; i++)
        EMBLA_TRY(check_tensor(index, name, &found, &index->tensors[i]));
    if (count > index->tensor_count) /* each tensor of the index exists once: the rest are extra */
        EMBLA_TRY(embla_directory_note(out, "%zu of %zu tensors are not in weight_map (S13)",
                                       count - index->tensor_count, count));
    if (index->total_size == -2)
        EMBLA_TRY(embla_directory_note(out, "total_size is not an integer (S13)"));
    if (index->total_size >= 0 && (uint64_t)index->total_size != bytes)
        EMBLA_TRY(embla_directory_note(
            out, "total_size is %" PRId64 ", but the tensors have %" PRIu64 " bytes (S13)",
            index->total_size, bytes));
    return EMBLA_OK;
}

embla_status embla_safetensors_index_check(const embla_shard_index *index, const char *name,
                                           const embla_shard *shards, embla_directory *out)
{
    embla_arena arena = {0};
    embla_status status = check_all(index, name, shards, &arena, out);
    embla_arena_free(&arena);
    return status;
}
