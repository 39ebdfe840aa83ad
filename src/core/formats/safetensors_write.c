/* SPDX-License-Identifier: Apache-2.0 */
/* The writer of safetensors (S14). Tensors are sorted by the size of their numbers, largest first,
 * then by name, so that every tensor is aligned to its numbers. The header is padded with spaces,
 * so that the data begins at a multiple of 64 bytes. What our reader would refuse is refused
 * before anything is written.
 */
#include "formats/safetensors.h"

#include <string.h>

#include "base/checked.h"
#include "base/json_text.h"
#include "base/utf8.h"
#include "files/cursor.h"

enum {
    PREFIX = EMBLA_SAFETENSORS_PREFIX,
    ALIGNMENT = 64, /* of the data's offset */
};

/* Bytes are counted if out is NULL, and written otherwise. The header is made twice, the first
 * time to find its length. */
typedef struct {
    uint8_t *out;
    uint64_t used;
} sink;

static void append(sink *s, const char *text, size_t length)
{
    if (s->out) memcpy(s->out + s->used, text, length);
    s->used += length;
}

/* As embla_json_sink has it. */
static void write_sink(void *to, const char *bytes, size_t length)
{
    append(to, bytes, length);
}

static void append_text(sink *s, const char *text)
{
    append(s, text, strlen(text));
}

/* Shapes and offsets: at most INT64_MAX, which the checks below have seen to. */
static void append_number(sink *s, uint64_t number)
{
    const embla_json_sink json = {.write = write_sink, .to = s};
    embla_json_write_whole(&json, (int64_t)number);
}

static void append_string(sink *s, const char *text)
{
    const embla_json_sink json = {.write = write_sink, .to = s};
    (void)embla_json_write_string(&json, text, strlen(text), false);
}

static void append_tensor(sink *s, const embla_part *part, uint64_t begin)
{
    append_string(s, part->name);
    append_text(s, ":{\"dtype\":\"");
    append_text(s, part->element->safetensors);
    append_text(s, "\",\"shape\":[");
    for (uint32_t i = 0; i < part->rank; i++) {
        if (i > 0) append_text(s, ",");
        append_number(s, part->shape[i]);
    }
    append_text(s, "],\"data_offsets\":[");
    append_number(s, begin);
    append_text(s, ",");
    append_number(s, begin + part->bytes);
    append_text(s, "]}");
}

/* Appends prefix, header and padding. length is that of header and padding, which the first pass
 * finds. */
static void append_header(sink *s, const embla_contents *contents, const uint32_t *order,
                          uint64_t length)
{
    uint8_t prefix[PREFIX];
    uint64_t begin = 0;
    embla_put_le64(length, prefix);
    append(s, (const char *)prefix, sizeof prefix);
    append_text(s, "{");
    if (contents->pair_count > 0) {
        append_text(s, "\"__metadata__\":{");
        for (size_t i = 0; i < contents->pair_count; i++) {
            if (i > 0) append_text(s, ",");
            append_string(s, contents->pairs[i].key);
            append_text(s, ":");
            append_string(s, contents->pairs[i].value);
        }
        append_text(s, "}");
    }
    for (size_t i = 0; i < contents->count; i++) {
        if (i > 0 || contents->pair_count > 0) append_text(s, ",");
        append_tensor(s, &contents->parts[order[i]], begin);
        begin += contents->parts[order[i]].bytes;
    }
    append_text(s, "}");
    uint64_t align = contents->align ? contents->align : ALIGNMENT;
    while (s->used % align != 0) append_text(s, " ");
}

static bool is_utf8(const char *text)
{
    return embla_utf8_valid(text, strlen(text)) == strlen(text);
}

static embla_status check_part(const embla_part *part)
{
    uint64_t count = 1, bytes = 0;
    size_t length = strlen(part->name);
    if (!part->element->safetensors)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "tensor '%.128s' has the type %s, which safetensors does not have (S7)",
                          part->name, part->element->name);
    if (length < 1 || length > EMBLA_SAFETENSORS_NAME_MOST || !is_utf8(part->name) ||
        strcmp(part->name, EMBLA_SAFETENSORS_METADATA) == 0)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "'%.128s', %zu bytes, cannot name a tensor in safetensors (S11)",
                          part->name, length);
    bool fits = part->rank <= EMBLA_TENSOR_RANK_MAX;
    for (uint32_t i = 0; fits && i < part->rank; i++)
        fits = part->shape[i] <= INT64_MAX && embla_mul_ok(count, part->shape[i], &count);
    if (!fits || !embla_element_bytes(part->element, count, &bytes) || bytes != part->bytes)
        return embla_fail(EMBLA_ERR_SHAPE,
                          "tensor '%.128s' has %" PRIu64 " bytes, which does not match the size of "
                          "its %u dimensions (S8)",
                          part->name, part->bytes, (unsigned)part->rank);
    return EMBLA_OK;
}

/* Sorts names of tensors or of pairs, and refuses duplicates. */
static embla_status sort_names(embla_arena *arena, const embla_name *names, size_t count,
                               embla_names *out)
{
    EMBLA_TRY(embla_names_sort(arena, names, count, out));
    const embla_name *twice = embla_names_twice(out);
    if (twice)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "'%.128s' occurs twice among %zu names, which safetensors does not "
                          "allow (S5)",
                          twice->bytes, count);
    return EMBLA_OK;
}

static embla_status check_parts(const embla_contents *contents, embla_arena *arena,
                                embla_names *sorted)
{
    embla_name *names = NULL;
    uint64_t bytes = 0;
    if (contents->count > EMBLA_SAFETENSORS_TENSORS_MOST)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "%zu tensors are too many for safetensors: the limit is %d (S11)",
                          contents->count, EMBLA_SAFETENSORS_TENSORS_MOST);
    EMBLA_TRY(embla_arena_many(arena, contents->count, sizeof *names, "names", &names));
    for (size_t i = 0; i < contents->count; i++) {
        const embla_part *part = &contents->parts[i];
        EMBLA_TRY(check_part(part));
        names[i] = (embla_name){part->name, (uint32_t)strlen(part->name), (uint32_t)i};
        if (!embla_add_ok(bytes, part->bytes, &bytes) ||
            bytes > (uint64_t)INT64_MAX - PREFIX - EMBLA_SAFETENSORS_HEADER_MOST)
            return embla_fail(EMBLA_ERR_UNSUPPORTED,
                              "the %zu tensors together are too large for a file (S9)",
                              contents->count);
    }
    return sort_names(arena, names, contents->count, sorted);
}

static embla_status check_pairs(const embla_contents *contents, embla_arena *arena)
{
    embla_name *keys = NULL;
    embla_names sorted;
    size_t bytes = 0;
    if (contents->pair_count > EMBLA_SAFETENSORS_METADATA_PAIRS)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "%zu pairs of metadata are too many for safetensors: the limit is %d "
                          "(S10)",
                          contents->pair_count, EMBLA_SAFETENSORS_METADATA_PAIRS);
    EMBLA_TRY(embla_arena_many(arena, contents->pair_count, sizeof *keys, "keys", &keys));
    for (size_t i = 0; i < contents->pair_count; i++) {
        const embla_pair *pair = &contents->pairs[i];
        size_t key_length = strlen(pair->key), length = strlen(pair->value);
        if (!is_utf8(pair->key) || !is_utf8(pair->value))
            return embla_fail(EMBLA_ERR_UNSUPPORTED, "metadata '%.128s' is not valid UTF-8 (S2)",
                              pair->key);
        if (key_length + length > EMBLA_SAFETENSORS_METADATA_MOST - bytes)
            return embla_fail(EMBLA_ERR_UNSUPPORTED,
                              "metadata of %zu bytes is too large for safetensors: the limit is %d "
                              "(S10)",
                              bytes + key_length + length, EMBLA_SAFETENSORS_METADATA_MOST);
        bytes += key_length + length;
        keys[i] = (embla_name){pair->key, (uint32_t)key_length, (uint32_t)i};
    }
    return sort_names(arena, keys, contents->pair_count, &sorted);
}

bool embla_safetensors_keeps(const embla_pair *pair, size_t count, size_t bytes)
{
    size_t key = strlen(pair->key), value = strlen(pair->value);
    /* Two pairs are reserved for those that embla_convert adds. */
    return count + 2 < EMBLA_SAFETENSORS_METADATA_PAIRS &&
           key + value <= EMBLA_SAFETENSORS_METADATA_MOST - 64 - bytes && is_utf8(pair->key) &&
           is_utf8(pair->value);
}

/* Sorts parts by the size of their numbers, largest first, then by name. */
static void order_parts(const embla_part *parts, const embla_names *sorted, uint32_t *order)
{
    uint32_t bits = UINT32_MAX, next;
    for (size_t used = 0; used < sorted->count; bits = next) {
        next = 0; /* the largest size below bits */
        for (size_t i = 0; i < sorted->count; i++) {
            uint32_t number = sorted->sorted[i]->number;
            uint32_t own = parts[number].element->block_bits;
            if (own == bits) order[used++] = number;
            if (own < bits && own > next) next = own;
        }
    }
}

embla_status embla_safetensors_header(const embla_contents *contents, embla_arena *arena,
                                      uint8_t **bytes, size_t *length, uint32_t **order)
{
    uint32_t *numbers = NULL;
    void *memory = NULL;
    embla_names sorted;
    sink counted = {0};
    EMBLA_TRY(check_parts(contents, arena, &sorted));
    EMBLA_TRY(check_pairs(contents, arena));
    EMBLA_TRY(embla_arena_many(arena, contents->count, sizeof *numbers, "an order", &numbers));
    order_parts(contents->parts, &sorted, numbers);
    append_header(&counted, contents, numbers, 0);
    if (counted.used - PREFIX > EMBLA_SAFETENSORS_HEADER_MOST)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "%zu tensors need a header of %" PRIu64 " bytes; the limit is %d (S14)",
                          contents->count, counted.used - PREFIX, EMBLA_SAFETENSORS_HEADER_MOST);
    EMBLA_TRY(embla_arena_take(arena, (size_t)counted.used, "a header", &memory));
    sink written = {.out = memory};
    append_header(&written, contents, numbers, counted.used - PREFIX);
    *bytes = memory;
    *length = (size_t)written.used;
    *order = numbers;
    return EMBLA_OK;
}

static embla_status write_all(embla_durable *out, const embla_contents *contents,
                              embla_arena *arena)
{
    uint8_t *header = NULL;
    size_t length = 0;
    uint32_t *order = NULL;
    EMBLA_TRY(embla_safetensors_header(contents, arena, &header, &length, &order));
    uint64_t size = length;
    for (size_t i = 0; i < contents->count; i++) size += contents->parts[i].bytes;
    EMBLA_TRY(embla_durable_reserve(out, size));
    EMBLA_TRY(embla_durable_write(out, header, length));
    for (size_t i = 0; i < contents->count; i++)
        EMBLA_TRY(embla_part_write(out, &contents->parts[order[i]]));
    return EMBLA_OK;
}

embla_status embla_safetensors_write(embla_durable *out, const embla_contents *contents)
{
    embla_arena arena = {0};
    embla_status status = write_all(out, contents, &arena);
    embla_arena_free(&arena);
    return status;
}
