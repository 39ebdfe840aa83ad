/* SPDX-License-Identifier: Apache-2.0 */
/* The index of a checkpoint in shards: the input is the file. An accepted index names only plain
 * files, and every tensor is found in the shard that it names. Then matching shards are generated,
 * and must be accepted. With a name in two of them, or a missing tensor, they must be refused. */
#include "base/mem.h"
#include "formats/safetensors.h"
#include "input.h"

enum { FEW = 32 };

static void check_index(const embla_shard_index *index)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    PROMISE(index->shard_count >= 1 && index->shard_count <= index->tensor_count);
    for (size_t i = 0; i < index->shard_count; i++) {
        size_t length = strlen(index->shards[i]);
        PROMISE(length >= 1 && length <= 255 && index->shards[i][0] != '.');
        PROMISE(strspn(index->shards[i], letters) == length && !strstr(index->shards[i], ".."));
        PROMISE(length < 5 || strcmp(index->shards[i] + length - 5, ".json") != 0);
        PROMISE(i == 0 || strcmp(index->shards[i - 1], index->shards[i]) < 0);
    }
    PROMISE(index->by_name.count == index->tensor_count);
    for (size_t i = 0; i < index->tensor_count; i++) {
        const embla_name *t = &index->tensors[i];
        PROMISE(t->number < index->shard_count && strlen(t->bytes) == t->length);
        PROMISE(embla_names_find(&index->by_name, t->bytes, t->length) == t);
    }
    PROMISE(index->total_size >= -2);
}

static void add(embla_shard *shard, const embla_name *tensor)
{
    embla_entry *entry = NULL;
    PROMISE(embla_directory_add(&shard->directory, tensor->bytes, tensor->length, &entry) ==
            EMBLA_OK);
    entry->element = embla_element_of(EMBLA_I8);
    entry->bytes = 1;
}

static embla_status check(const embla_shard_index *index, const embla_shard *shards, size_t notes)
{
    embla_directory d = {0};
    embla_status status = embla_safetensors_index_check(index, "input", shards, &d);
    PROMISE(status == EMBLA_OK ? d.note_count == notes : strstr(embla_error(), "(S13)") != NULL);
    embla_directory_free(&d);
    return status;
}

static void check_shards(const embla_shard_index *index)
{
    static const embla_name unknown = {"not in the index", 16, 0};
    embla_shard shards[FEW] = {{0}};
    const embla_name *last = &index->tensors[index->tensor_count - 1];
    embla_shard *own = &shards[last->number];
    embla_shard *other = &shards[(last->number + 1) % index->shard_count];
    for (size_t i = 0; i < index->tensor_count; i++)
        add(&shards[index->tensors[i].number], &index->tensors[i]);
    bool fits = index->total_size == -1 || index->total_size == (int64_t)index->tensor_count;
    PROMISE(check(index, shards, fits ? 0 : 1) == EMBLA_OK);
    if (other != own) {
        add(other, last);
        PROMISE(check(index, shards, 0) == EMBLA_ERR_FORMAT); /* in two */
        own->directory.count--;                               /* it was the last to be added */
        PROMISE(check(index, shards, 0) == EMBLA_ERR_FORMAT); /* in the wrong one */
        own->directory.count++;
        other->directory.count--;
    }
    if (!embla_names_find(&index->by_name, unknown.bytes, unknown.length)) {
        add(other, &unknown);
        fits = index->total_size == -1 || index->total_size == (int64_t)index->tensor_count + 1;
        PROMISE(check(index, shards, fits ? 1 : 2) == EMBLA_OK);
        other->directory.count--;
    }
    own->directory.count--;
    PROMISE(check(index, shards, 0) == EMBLA_ERR_FORMAT); /* in none */
    for (size_t i = 0; i < FEW; i++) embla_directory_free(&shards[i].directory);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    embla_arena arena = {0};
    embla_shard_index index = {0};
    size_t live = embla_mem_live();
    embla_status status = embla_safetensors_index(data, size, "input", &arena, &index);
    if (status == EMBLA_OK) {
        check_index(&index);
        if (index.shard_count <= FEW) check_shards(&index);
    } else {
        PROMISE(status == EMBLA_ERR_FORMAT && strncmp(embla_error(), "input: ", 7) == 0);
        PROMISE(strstr(embla_error(), "(S13)") && index.tensor_count == 0);
    }
    embla_arena_free(&arena);
    PROMISE(embla_mem_live() == live);
    return 0;
}

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most) __attribute__((weak));
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed);

/* Half of the time, inserts a piece of JSON after a bracket, comma or quotation mark. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed)
{
    static const char *const pieces[] = {"\"n\":\"m\",",
                                         "\"n\":\"m2\",",
                                         "\"o\":1,",
                                         "..",
                                         "/",
                                         ".json",
                                         "\\u002f",
                                         "\\u0000",
                                         "\\u0061",
                                         "\"metadata\":{\"total_size\":2},",
                                         "\"weight_map\":{\"a\":\"m\"},",
                                         "{",
                                         "}",
                                         "[",
                                         "]",
                                         "-1",
                                         "1.5",
                                         "null",
                                         "\"",
                                         ",",
                                         ":"};
    const char *piece = pieces[(seed >> 1) % (sizeof pieces / sizeof *pieces)];
    size_t length = strlen(piece), at = size > 0 ? (seed >> 8) % size : 0;
    while (at < size && (data[at] == '\0' || !strchr("{}[],:\"", data[at]))) at++;
    if (seed % 2 == 0 || at >= size || length > most || size > most - length)
        return LLVMFuzzerMutate(data, size, most);
    at++;
    memmove(data + at + length, data + at, size - at);
    memcpy(data + at, piece, length);
    return size + length;
}
