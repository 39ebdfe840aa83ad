/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a GGUF file. Promises:
 *   - nothing leaks, whatever is refused;
 *   - every tensor of an accepted file lies inside it, each after the previous one;
 *   - getters return a value or an error, for every key;
 *   - an accepted file can be written again, and reads back as the same tensors and keys: once as
 *     a copy of a GGUF, once as the tensors, texts and words of any other file.
 *
 * Random bytes are refused early, at a length or a count. So the mutator below knows the fields of
 * the file. It changes one of them to an interesting value, copies or drops a key, changes a length
 * together with its data, and then repairs the offsets of the tensors.
 */
#include "base/mem.h"
#include "files/cursor.h"
#include "formats/gguf.h"
#include "input.h"

enum { MOST_WRITTEN = 1 << 20 }; /* bytes of a file written again */

/* ---- promises ---- */

static void check_places(const embla_map *map, const embla_directory *directory)
{
    const embla_gguf *gguf = embla_gguf_of(directory);
    uint64_t at = gguf->data;
    PROMISE(at % gguf->alignment == 0);
    for (size_t i = 0; i < directory->count; i++) {
        const embla_entry *entry = &directory->entries[i];
        uint64_t numbers = 1, bytes = 0;
        PROMISE(entry->offset == at && entry->offset <= map->size);
        PROMISE(entry->bytes <= map->size - entry->offset);
        PROMISE(entry->rank >= 1 && entry->rank <= 4 && !entry->made);
        for (uint32_t d = 0; d < entry->rank; d++) numbers *= entry->shape[d];
        PROMISE(embla_element_bytes(entry->element, numbers, &bytes) && bytes == entry->bytes);
        at += (entry->bytes + gguf->alignment - 1) / gguf->alignment * gguf->alignment;
    }
}

/* Queries a key in every way: at most one returns a value. */
static void check_key(const embla_map *map, const embla_directory *directory,
                      const embla_gguf_key *key)
{
    embla_arena arena = {0};
    embla_name *names = NULL;
    size_t count = 0;
    int64_t integer;
    double real;
    bool array = key->type == EMBLA_GGUF_ARRAY;
    bool whole = embla_gguf_number(directory, map, key->key, &integer) == EMBLA_OK;
    bool floating = embla_gguf_real(directory, map, key->key, &real) == EMBLA_OK;
    bool words = embla_gguf_strings(directory, map, key->key, &arena, &names, &count) == EMBLA_OK;
    PROMISE(whole + floating + words <= 1 && !(array && (whole || floating)));
    PROMISE(words == (array && key->element == EMBLA_GGUF_STRING));
    PROMISE(!words || count == key->count);
    embla_arena_free(&arena);
}

/* Uses a key as the name of the first file of a split model, and computes a sibling's name. */
static void check_sibling(const char *name)
{
    char second[256] = "", back[256] = "";
    size_t length = strlen(name);
    unsigned count = (unsigned)(length % 7), number = count / 2;
    if (embla_gguf_split_name(name, number, count, second) != EMBLA_OK) return;
    PROMISE(strlen(second) == length && memcmp(second, name, length - 20) == 0);
    PROMISE(embla_gguf_split_name(second, number, count, back) == EMBLA_OK);
    PROMISE(strcmp(second, back) == 0 && !strchr(second, '/'));
}

static void check_keys(const embla_map *map, const embla_directory *directory)
{
    const embla_gguf *gguf = embla_gguf_of(directory);
    unsigned number = 0, count = 1;
    uint64_t tensors = 0, at = 24;
    for (size_t i = 0; i < gguf->count; i++) {
        const embla_gguf_key *key = &gguf->keys[i];
        PROMISE(key->first == at && key->value <= key->end && key->end <= map->size);
        PROMISE(embla_gguf_find(directory, key->key) == key);
        PROMISE(key->element != EMBLA_GGUF_ARRAY && embla_gguf_type_name(key->type)[0] != '?');
        if (i < 2 || (i + map->size) % 4 == 0) check_key(map, directory, key);
        check_sibling(key->key);
        at = key->end;
    }
    PROMISE(embla_gguf_vocab_check(directory, map) == EMBLA_OK);
    if (embla_gguf_split(directory, map, &number, &count, &tensors) == EMBLA_OK)
        PROMISE(number < count && count <= 1000 && tensors >= directory->count);
}

/* ---- writing it again ---- */

/* The file of this header, with the tensors of map; NULL if it is too long. */
static uint8_t *put_together(const embla_contents *contents, const embla_map *map,
                             const embla_directory *directory, embla_arena *arena, uint64_t *size,
                             embla_status *status)
{
    uint8_t *header = NULL;
    size_t length = 0;
    *status = embla_gguf_header(contents, arena, &header, &length, size);
    if (*status != EMBLA_OK || *size > MOST_WRITTEN) return NULL;
    uint32_t alignment = embla_gguf_alignment(contents);
    PROMISE(length <= *size && length % alignment == 0);
    uint8_t *file = (uint8_t *)block((size_t)*size);
    memset(file, 0, (size_t)*size);
    memcpy(file, header, length);
    uint64_t at = length;
    for (size_t i = 0; i < directory->count; i++) {
        const embla_entry *entry = &directory->entries[i];
        if (entry->bytes > 0) memcpy(file + at, map->bytes + entry->offset, (size_t)entry->bytes);
        at += (entry->bytes + alignment - 1) / alignment * alignment;
    }
    PROMISE(at == *size);
    return file;
}

static void same_tensors(const embla_map *map_a, const embla_directory *a, const embla_map *map_b,
                         const embla_directory *b)
{
    PROMISE(a->count == b->count);
    for (size_t i = 0; i < a->count; i++) {
        const embla_entry *x = &a->entries[i], *y = &b->entries[i];
        PROMISE(strcmp(x->name, y->name) == 0 && x->element == y->element && x->rank == y->rank);
        PROMISE(memcmp(x->shape, y->shape, sizeof x->shape) == 0 && x->bytes == y->bytes);
        PROMISE(x->bytes == 0 ||
                memcmp(map_a->bytes + x->offset, map_b->bytes + y->offset, (size_t)x->bytes) == 0);
    }
}

/* Checks that the keys of b are those of a, byte for byte, without split.*. */
static void same_keys(const embla_map *map_a, const embla_gguf *a, const embla_map *map_b,
                      const embla_gguf *b)
{
    size_t next = 0;
    PROMISE(a->alignment == b->alignment && b->version == 3);
    for (size_t i = 0; i < a->count; i++) {
        const embla_gguf_key *x = &a->keys[i];
        if (strncmp(x->key, "split.", 6) == 0) continue;
        PROMISE(next < b->count);
        const embla_gguf_key *y = &b->keys[next];
        PROMISE(x->end - x->first == y->end - y->first);
        PROMISE(memcmp(map_a->bytes + x->first, map_b->bytes + y->first,
                       (size_t)(x->end - x->first)) == 0);
        next++;
    }
    PROMISE(next == b->count);
}

static void write_again(const embla_map *map, const embla_directory *directory,
                        const embla_contents *contents, embla_arena *arena)
{
    uint64_t size = 0;
    embla_status status;
    embla_directory again = {0};
    embla_map *other = NULL;
    uint8_t *file = put_together(contents, map, directory, arena, &size, &status);
    /* Text under keys that mean something else, and an architecture that is no key. */
    PROMISE(status == EMBLA_OK ||
            (status == EMBLA_ERR_UNSUPPORTED && !contents->source && contents->pair_count > 0));
    if (!file) return;
    PROMISE(embla_map_bytes(file, (size_t)size, "again", &other) == EMBLA_OK);
    PROMISE(embla_format_gguf.read(other, NULL, &again) == EMBLA_OK);
    same_tensors(map, directory, other, &again);
    if (contents->source)
        same_keys(map, embla_gguf_of(directory), other, embla_gguf_of(&again));
    else
        PROMISE(embla_gguf_tokens(&again) == contents->label_count);
    embla_directory_free(&again);
    embla_map_free(other);
    free(file);
}

static void check_writing(const embla_map *map, const embla_directory *directory)
{
    embla_arena arena = {0};
    void *memory = NULL;
    embla_name *labels = NULL;
    size_t count = 0;
    PROMISE(embla_arena_take(&arena, directory->count * sizeof(embla_part), "parts", &memory) ==
            EMBLA_OK);
    embla_part *parts = memory;
    for (size_t i = 0; i < directory->count; i++) {
        const embla_entry *entry = &directory->entries[i];
        parts[i] = (embla_part){.name = entry->name,
                                .element = entry->element,
                                .rank = entry->rank,
                                .bytes = entry->bytes};
        memcpy(parts[i].shape, entry->shape, sizeof entry->shape);
    }
    embla_contents contents = {.parts = parts,
                               .count = directory->count,
                               .pairs = directory->pairs,
                               .pair_count = directory->pair_count,
                               .source = directory,
                               .source_map = map};
    write_again(map, directory, &contents, &arena);
    contents.source = NULL;
    if (directory->count > 0 &&
        embla_gguf_strings(directory, map, "tokenizer.ggml.tokens", &arena, &labels, &count) ==
            EMBLA_OK &&
        count == directory->entries[0].shape[0]) {
        contents.labels = labels;
        contents.label_count = count;
        if (count > 2) labels[1].bytes = NULL; /* a row without a word */
    }
    write_again(map, directory, &contents, &arena);
    embla_arena_free(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    embla_directory directory = {0};
    embla_map *map = NULL;
    size_t live = embla_mem_live();
    PROMISE(embla_map_bytes(data, size, "a file", &map) == EMBLA_OK);
    bool ours = embla_format_gguf.sniff(data, size, size);
    embla_status status = embla_format_gguf.read(map, NULL, &directory);
    if (status == EMBLA_OK) {
        PROMISE(ours);
        check_places(map, &directory);
        check_keys(map, &directory);
        check_writing(map, &directory);
    } else {
        PROMISE(status == EMBLA_ERR_FORMAT || status == EMBLA_ERR_UNSUPPORTED);
        PROMISE(memcmp(embla_error(), "a file: ", 8) == 0); /* the message names the file */
    }
    embla_directory_free(&directory);
    embla_map_free(map);
    PROMISE(embla_mem_live() == live);
    return 0;
}

/* ---- the mutator ---- */

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most) __attribute__((weak));
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed);

/* Not instrumented: the fuzzer should learn from the reader, not from the mutator. */
#if defined(__clang__)
#define UNSEEN __attribute__((no_sanitize("coverage")))
#else
#define UNSEEN
#endif

enum { FIELDS = 256, RECORDS = 64 };

/* The fields of a file, which need not be valid. */
typedef struct {
    struct {
        size_t at, bytes;
        size_t speaks_of; /* bytes after it whose number it gives; 0 means none */
    } fields[FIELDS];
    size_t field_count;
    struct {
        size_t begin, end;
    } keys[RECORDS];
    size_t key_count;
    struct {
        size_t rank, dims, type, offset; /* offsets of these fields */
    } tensors[RECORDS];
    size_t tensor_count;
    size_t at;          /* current offset */
    uint32_t alignment; /* according to the file */
} layout;

UNSEEN static uint64_t number_at(const uint8_t *data, size_t at, size_t bytes)
{
    uint64_t value = 0;
    for (size_t i = 0; i < bytes; i++) value |= (uint64_t)data[at + i] << (8 * i);
    return value;
}

UNSEEN static void set_number(uint8_t *data, size_t at, size_t bytes, uint64_t value)
{
    for (size_t i = 0; i < bytes; i++) data[at + i] = (uint8_t)(value >> (8 * i));
}

/* Records the field at the current offset and skips it. False if the file ends. */
UNSEEN static bool pass_field(layout *l, const uint8_t *data, size_t size, size_t bytes,
                              uint64_t *value)
{
    if (size - l->at < bytes) return false;
    *value = number_at(data, l->at, bytes);
    if (l->field_count < FIELDS) {
        l->fields[l->field_count].at = l->at;
        l->fields[l->field_count].bytes = bytes;
        l->fields[l->field_count++].speaks_of = 0;
    }
    l->at += bytes;
    return true;
}

UNSEEN static bool pass_string(layout *l, const uint8_t *data, size_t size)
{
    uint64_t length;
    if (!pass_field(l, data, size, 8, &length) || length > size - l->at) return false;
    if (l->field_count > 0) l->fields[l->field_count - 1].speaks_of = (size_t)length;
    l->at += (size_t)length;
    return true;
}

UNSEEN static bool pass_value(layout *l, const uint8_t *data, size_t size, uint64_t type)
{
    uint64_t element, count, value;
    size_t bytes = (size_t)embla_gguf_type_bytes((uint32_t)type);
    if (type == EMBLA_GGUF_STRING) return pass_string(l, data, size);
    if (type != EMBLA_GGUF_ARRAY) return bytes > 0 && pass_field(l, data, size, bytes, &value);
    if (!pass_field(l, data, size, 4, &element) || !pass_field(l, data, size, 8, &count))
        return false;
    bytes = (size_t)embla_gguf_type_bytes((uint32_t)element);
    for (uint64_t i = 0; i < count && i < size; i++) {
        bool there = element == EMBLA_GGUF_STRING
                         ? pass_string(l, data, size)
                         : bytes > 0 && pass_field(l, data, size, bytes, &value);
        if (!there) return false;
    }
    return true;
}

UNSEEN static bool walk_keys(layout *l, const uint8_t *data, size_t size, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        size_t begin = l->at;
        uint64_t type;
        if (!pass_string(l, data, size) || !pass_field(l, data, size, 4, &type)) return false;
        if (l->at - begin == 8 + 17 + 4 && type == EMBLA_GGUF_U32 && size - l->at >= 4 &&
            memcmp(data + begin + 8, "general.alignment", 17) == 0)
            l->alignment = (uint32_t)number_at(data, l->at, 4);
        if (!pass_value(l, data, size, type)) return false;
        if (l->key_count == RECORDS) continue;
        l->keys[l->key_count].begin = begin;
        l->keys[l->key_count++].end = l->at;
    }
    return true;
}

UNSEEN static void walk_tensors(layout *l, const uint8_t *data, size_t size, uint64_t count)
{
    for (uint64_t i = 0; i < count && l->tensor_count < RECORDS; i++) {
        uint64_t rank, value;
        if (!pass_string(l, data, size) || !pass_field(l, data, size, 4, &rank)) return;
        l->tensors[l->tensor_count].rank = l->at - 4;
        l->tensors[l->tensor_count].dims = l->at;
        for (uint64_t d = 0; d < rank; d++)
            if (!pass_field(l, data, size, 8, &value)) return;
        l->tensors[l->tensor_count].type = l->at;
        if (!pass_field(l, data, size, 4, &value)) return;
        l->tensors[l->tensor_count].offset = l->at;
        if (!pass_field(l, data, size, 8, &value)) return;
        l->tensor_count++;
    }
}

UNSEEN static void walk(layout *l, const uint8_t *data, size_t size)
{
    uint64_t version, tensors, keys;
    memset(l, 0, sizeof *l);
    l->at = 4;
    l->alignment = 32;
    if (size < 24 || !pass_field(l, data, size, 4, &version) ||
        !pass_field(l, data, size, 8, &tensors) || !pass_field(l, data, size, 8, &keys))
        return;
    if (walk_keys(l, data, size, keys)) walk_tensors(l, data, size, tensors);
}

/* An interesting value: limits of rules and types, neighbours, powers of two. */
UNSEEN static uint64_t telling(uint64_t *random, uint64_t old, size_t left)
{
    static const uint64_t values[] = {
        0,       1,        2,          3,         4,          5,         6,       7,
        8,       9,        12,         13,        32,         63,        64,      255,
        256,     1000,     1001,       65535,     65536,      131072,    1000000, 1000001,
        1 << 28, 64 << 20, 0x7fffffff, INT64_MAX, UINT64_MAX, UINT32_MAX};
    switch (next_random(random) % 6) {
    case 0:
        return old + 1;
    case 1:
        return old - 1;
    case 2:
        return UINT64_C(1) << next_random(random) % 64;
    case 3:
        return left + next_random(random) % 3 - 1;
    case 4:
        return next_random(random) % 44; /* types of tensors, small counts */
    default:
        return values[next_random(random) % (sizeof values / sizeof values[0])];
    }
}

UNSEEN static void change_field(uint8_t *data, size_t size, const layout *l, uint64_t *random)
{
    if (l->field_count == 0) return;
    size_t n = next_random(random) % l->field_count;
    size_t at = l->fields[n].at, bytes = l->fields[n].bytes;
    set_number(data, at, bytes, telling(random, number_at(data, at, bytes), size - at - bytes));
}

/* Duplicates a key, with another last letter half of the time. */
UNSEEN static size_t copy_key(uint8_t *data, size_t size, size_t most, const layout *l,
                              uint64_t *random)
{
    if (l->key_count == 0) return size;
    size_t n = next_random(random) % l->key_count;
    size_t begin = l->keys[n].begin, end = l->keys[n].end, bytes = end - begin;
    size_t name = (size_t)number_at(data, begin, 8);
    if (bytes > most - size) return size;
    memmove(data + end + bytes, data + end, size - end);
    memcpy(data + end, data + begin, bytes);
    if (name > 0 && next_random(random) % 2)
        data[end + 8 + name - 1] = (uint8_t)('a' + next_random(random) % 26);
    set_number(data, 16, 8, number_at(data, 16, 8) + 1);
    return size + bytes;
}

UNSEEN static size_t drop_key(uint8_t *data, size_t size, const layout *l, uint64_t *random)
{
    if (l->key_count == 0) return size;
    size_t n = next_random(random) % l->key_count;
    size_t begin = l->keys[n].begin, end = l->keys[n].end;
    memmove(data + begin, data + end, size - end);
    set_number(data, 16, 8, number_at(data, 16, 8) - 1);
    return size - (end - begin);
}

/* Replaces a text, and updates its length. */
UNSEEN static size_t change_text(uint8_t *data, size_t size, size_t most, const layout *l,
                                 uint64_t *random)
{
    uint8_t text[256];
    if (l->field_count == 0) return size;
    size_t n = next_random(random) % l->field_count;
    size_t old = l->fields[n].speaks_of, begin = l->fields[n].at + 8;
    if (old == 0 || old > sizeof text) return size;
    memcpy(text, data + begin, old);
    size_t now = LLVMFuzzerMutate(text, old, sizeof text);
    if (now > old && now - old > most - size) return size;
    memmove(data + begin + now, data + begin + old, size - begin - old);
    memcpy(data + begin, text, now);
    set_number(data, begin - 8, 8, now);
    return size + now - old;
}

/* Makes the tensors consecutive, and adds bytes for them. */
UNSEEN static size_t put_right(uint8_t *data, size_t size, size_t most)
{
    static layout l;
    uint64_t sum = 0;
    walk(&l, data, size);
    if (l.alignment < 8 || (l.alignment & (l.alignment - 1)) != 0) return size;
    for (size_t i = 0; i < l.tensor_count; i++) {
        uint64_t numbers = 1, bytes = 0;
        const embla_element *element =
            embla_element_ggml((uint32_t)number_at(data, l.tensors[i].type, 4));
        for (size_t at = l.tensors[i].dims; at < l.tensors[i].type; at += 8)
            numbers *= number_at(data, at, 8);
        set_number(data, l.tensors[i].offset, 8, sum);
        if (element && embla_element_bytes(element, numbers, &bytes))
            sum += (bytes + l.alignment - 1) / l.alignment * l.alignment;
    }
    uint64_t end = ((uint64_t)l.at + l.alignment - 1) / l.alignment * l.alignment + sum;
    if (end <= size || end > most) return size;
    memset(data + size, (int)(end & 0xff), (size_t)end - size);
    return (size_t)end;
}

UNSEEN size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed)
{
    static layout l;
    uint64_t random = seed;
    uint64_t choice = next_random(&random) % 10;
    walk(&l, data, size);
    if (choice < 2 || l.field_count == 0)
        size = LLVMFuzzerMutate(data, size, most);
    else if (choice < 6)
        change_field(data, size, &l, &random);
    else if (choice == 6)
        size = copy_key(data, size, most, &l, &random);
    else if (choice == 7)
        size = drop_key(data, size, &l, &random);
    else
        size = change_text(data, size, most, &l, &random);
    return next_random(&random) % 2 ? put_right(data, size, most) : size;
}
