/* SPDX-License-Identifier: Apache-2.0 */
/* Reads GGUF by rules G1 to G11: once, front to back, with a cursor. Every count and length is
 * compared with the bytes left before it is used, so a small file cannot cost much memory or
 * time. A sparse file is small and has many bytes left: what must be read element by element has
 * a limit for the whole file. Of the keys only general.alignment is interpreted here, because the
 * tensors' offsets depend on it. The vocabulary is checked at the end (gguf_keys.c), so that users
 * of a directory need not check it again.
 */
#include "formats/gguf.h"

#include <string.h>

#include "base/checked.h"
#include "files/cursor.h"

enum { PAIR_MOST = 1024 }; /* longer text (chat templates) is not listed as metadata */

static const struct {
    const char *name;
    uint8_t bytes; /* 0 means no fixed size */
} types[EMBLA_GGUF_TYPES] = {{"u8", 1},  {"i8", 1},  {"u16", 2},  {"i16", 2},    {"u32", 4},
                             {"i32", 4}, {"f32", 4}, {"bool", 1}, {"string", 0}, {"array", 0},
                             {"u64", 8}, {"i64", 8}, {"f64", 8}};

const char *embla_gguf_type_name(uint32_t type)
{
    return type < EMBLA_GGUF_TYPES ? types[type].name : "?";
}

uint64_t embla_gguf_type_bytes(uint32_t type)
{
    return type < EMBLA_GGUF_TYPES ? types[type].bytes : 0;
}

/* The state of reading a file. */
typedef struct {
    embla_cursor c;
    const embla_map *map;
    embla_directory *directory;
    embla_gguf *gguf;
    uint64_t tensors, keys; /* their numbers, from the file's header */
    uint64_t one_by_one;    /* strings and bools in the arrays so far */
} reading;

static bool sniff(const uint8_t *head, size_t have, uint64_t size)
{
    (void)size;
    return have >= 4 && memcmp(head, "GGUF", 4) == 0;
}

/* ---- G1, G2: the first 24 bytes ---- */

static embla_status read_version(reading *r)
{
    const uint8_t *magic;
    uint32_t version;
    EMBLA_TRY(embla_cursor_bytes(&r->c, 4, "the magic number", &magic));
    if (memcmp(magic, "GGUF", 4) != 0)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.200s: the file begins with %02x %02x %02x %02x, not with 47 47 55 46 "
                          "(GGUF) (G1)",
                          r->map->name, magic[0], magic[1], magic[2], magic[3]);
    EMBLA_TRY(embla_cursor_u32(&r->c, "the version", &version));
    if (version != 0 && (version & 0xffff) == 0)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "%.200s: the file is big-endian (its version reads as 0x%08" PRIx32
                          "); only little-endian files are supported (G1)",
                          r->map->name, version);
    if (version != 2 && version != 3)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "%.200s: GGUF version %" PRIu32 " is not supported; 2 and 3 are (G1)",
                          r->map->name, version);
    r->gguf->version = version;
    return EMBLA_OK;
}

/* Checks a count of things that take at least `least` bytes each. */
static embla_status check_count(const reading *r, uint64_t count, uint64_t least, const char *what)
{
    uint64_t left = embla_cursor_left(&r->c);
    if (count > left / least)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.200s: the header counts %" PRIu64 " %s, but only %" PRIu64
                          " bytes are left for them (G2)",
                          r->map->name, count, what, left);
    if (count > EMBLA_GGUF_COUNT_MOST)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.200s: the header counts %" PRIu64 " %s; the limit is %d (G2)",
                          r->map->name, count, what, (int)EMBLA_GGUF_COUNT_MOST);
    return EMBLA_OK;
}

static embla_status read_counts(reading *r)
{
    EMBLA_TRY(embla_cursor_u64(&r->c, "the number of tensors", &r->tensors));
    EMBLA_TRY(embla_cursor_u64(&r->c, "the number of keys", &r->keys));
    EMBLA_TRY(check_count(r, r->tensors, 24, "tensors"));
    return check_count(r, r->keys, 13, "keys");
}

/* ---- G3, G4: keys and their values ---- */

/* Reads the length of a string and checks that its bytes are in the file. The cursor is then at
 * the first byte. */
static embla_status read_length(reading *r, uint64_t most, const char *what, const char *rule,
                                uint64_t *out)
{
    uint64_t length, left;
    EMBLA_TRY(embla_cursor_u64(&r->c, what, &length));
    left = embla_cursor_left(&r->c);
    if (length > left)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.200s: %s at byte %" PRIu64 " has %" PRIu64 " bytes, but only %" PRIu64
                          " are left (%s)",
                          r->map->name, what, r->c.at, length, left, rule);
    if (length > most)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.200s: %s at byte %" PRIu64 " has %" PRIu64
                          " bytes; the limit is %" PRIu64 " (%s)",
                          r->map->name, what, r->c.at, length, most, rule);
    *out = length;
    return EMBLA_OK;
}

static embla_status read_key(reading *r, embla_gguf_key *key)
{
    const uint8_t *bytes;
    uint64_t length;
    key->first = r->c.at;
    EMBLA_TRY(read_length(r, EMBLA_GGUF_KEY_MOST, "a key", "G3", &length));
    if (length == 0)
        return embla_fail(EMBLA_ERR_FORMAT, "%.200s: the key at byte %" PRIu64 " is empty (G3)",
                          r->map->name, r->c.at);
    EMBLA_TRY(embla_cursor_bytes(&r->c, length, "a key", &bytes));
    for (uint64_t i = 0; i < length; i++)
        if (bytes[i] == 0 || bytes[i] > 0x7f)
            return embla_fail(EMBLA_ERR_FORMAT,
                              "%.200s: byte %" PRIu64 " of the key at byte %" PRIu64
                              " is 0x%02x, not ASCII (G3)",
                              r->map->name, i, key->first, bytes[i]);
    return embla_arena_text(&r->directory->arena, bytes, (size_t)length, &key->key);
}

static embla_status read_type(reading *r, const embla_gguf_key *key, const char *what,
                              embla_gguf_type *out)
{
    uint32_t type;
    EMBLA_TRY(embla_cursor_u32(&r->c, what, &type));
    if (type >= EMBLA_GGUF_TYPES)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.200s: key '%.128s': %s is %" PRIu32 "; types are 0 to 12 "
                          "(G4)",
                          r->map->name, key->key, what, type);
    *out = (embla_gguf_type)type;
    return EMBLA_OK;
}

/* Skips count bools and checks that each is 0 or 1. */
static embla_status skip_bools(reading *r, const embla_gguf_key *key, uint64_t count)
{
    const uint8_t *bytes;
    uint64_t piece;
    for (; count > 0; count -= piece) {
        piece = count < 4096 ? count : 4096;
        EMBLA_TRY(embla_cursor_bytes(&r->c, piece, "a bool", &bytes));
        for (uint64_t i = 0; i < piece; i++)
            if (bytes[i] > 1)
                return embla_fail(EMBLA_ERR_FORMAT,
                                  "%.200s: key '%.128s': a bool is %u, not 0 or 1 (G4)",
                                  r->map->name, key->key, bytes[i]);
    }
    return EMBLA_OK;
}

/* Adds short text without a 0 to the metadata. */
static embla_status add_pair(reading *r, const embla_gguf_key *key, uint64_t length)
{
    const uint8_t *bytes;
    EMBLA_TRY(embla_cursor_bytes(&r->c, length, "a string", &bytes));
    if (memchr(bytes, 0, (size_t)length)) return EMBLA_OK;
    return embla_directory_pair(r->directory, key->key, strlen(key->key), (const char *)bytes,
                                (size_t)length);
}

static embla_status skip_strings(reading *r, uint64_t count)
{
    uint64_t length;
    for (uint64_t i = 0; i < count; i++) {
        EMBLA_TRY(read_length(r, EMBLA_GGUF_TEXT_MOST, "a string", "G3", &length));
        EMBLA_TRY(embla_cursor_skip(&r->c, length, "a string"));
    }
    return EMBLA_OK;
}

/* Reads the type and number of an array's elements. */
static embla_status read_array(reading *r, embla_gguf_key *key)
{
    EMBLA_TRY(read_type(r, key, "the type of its elements", &key->element));
    if (key->element == EMBLA_GGUF_ARRAY)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.200s: key '%.128s' is an array of arrays, which is not supported (G4)",
                          r->map->name, key->key);
    EMBLA_TRY(embla_cursor_u64(&r->c, "the length of an array", &key->count));
    uint64_t left = embla_cursor_left(&r->c), size = embla_gguf_type_bytes(key->element);
    if (size == 0) size = 8; /* a string has at least its length */
    if (key->count > left / size)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.200s: key '%.128s' is an array of %" PRIu64 " x %s, but only %" PRIu64
                          " bytes are left (G4)",
                          r->map->name, key->key, key->count, embla_gguf_type_name(key->element),
                          left);
    if (key->count > EMBLA_GGUF_ARRAY_MOST)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.200s: key '%.128s' is an array of %" PRIu64
                          " elements; the limit is %d (G4)",
                          r->map->name, key->key, key->count, (int)EMBLA_GGUF_ARRAY_MOST);
    if (key->element == EMBLA_GGUF_STRING || key->element == EMBLA_GGUF_BOOL)
        r->one_by_one += key->count; /* at most 2^20 keys of 2^28 elements */
    if (r->one_by_one > EMBLA_GGUF_READ_MOST)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.200s: the arrays up to key '%.128s' have %" PRIu64
                          " strings and bools together; the limit is %d (G4)",
                          r->map->name, key->key, r->one_by_one, (int)EMBLA_GGUF_READ_MOST);
    return EMBLA_OK;
}

static embla_status read_value(reading *r, embla_gguf_key *key)
{
    EMBLA_TRY(read_type(r, key, "the type of its value", &key->type));
    key->element = key->type;
    key->count = 1;
    if (key->type == EMBLA_GGUF_ARRAY) EMBLA_TRY(read_array(r, key));
    key->value = r->c.at;
    if (key->element == EMBLA_GGUF_BOOL) {
        EMBLA_TRY(skip_bools(r, key, key->count));
    } else if (key->type == EMBLA_GGUF_STRING) {
        uint64_t length;
        EMBLA_TRY(read_length(r, EMBLA_GGUF_TEXT_MOST, "a string", "G3", &length));
        if (length > PAIR_MOST)
            EMBLA_TRY(embla_cursor_skip(&r->c, length, "a string"));
        else
            EMBLA_TRY(add_pair(r, key, length));
    } else if (key->element == EMBLA_GGUF_STRING) {
        EMBLA_TRY(skip_strings(r, key->count));
    } else { /* at most 2^28 x 8 bytes */
        uint64_t bytes = key->count * embla_gguf_type_bytes(key->element);
        EMBLA_TRY(embla_cursor_skip(&r->c, bytes, "a value"));
    }
    key->end = r->c.at;
    return EMBLA_OK;
}

/* Makes an index of names and refuses duplicates, in n log n steps (C8). names is in the arena. */
static embla_status index_names(const reading *r, const embla_name *names, size_t count,
                                const char *what, const char *rule, embla_names *out)
{
    EMBLA_TRY(embla_names_sort(&r->directory->arena, names, count, out));
    const embla_name *twice = embla_names_twice(out);
    if (!twice) return EMBLA_OK;
    return embla_fail(EMBLA_ERR_FORMAT, "%.200s: %s '%.128s' occurs twice (%s)", r->map->name, what,
                      twice->bytes, rule);
}

static embla_status read_keys(reading *r)
{
    embla_gguf *gguf = r->gguf;
    void *items = NULL;
    embla_name *name = NULL;
    for (uint64_t i = 0; i < r->keys; i++) {
        EMBLA_TRY(embla_arena_grow(&r->directory->arena, sizeof *gguf->keys, gguf->count,
                                   "a list of keys", &items, &gguf->room));
        gguf->keys = items;
        EMBLA_TRY(read_key(r, &gguf->keys[gguf->count]));
        EMBLA_TRY(read_value(r, &gguf->keys[gguf->count]));
        gguf->count++;
    }
    EMBLA_TRY(
        embla_arena_many(&r->directory->arena, gguf->count, sizeof *name, "names of keys", &name));
    for (size_t i = 0; i < gguf->count; i++)
        name[i] = (embla_name){gguf->keys[i].key, (uint32_t)strlen(gguf->keys[i].key), (uint32_t)i};
    return index_names(r, name, gguf->count, "key", "G3", &gguf->index);
}

/* ---- G6: alignment ---- */

static embla_status read_alignment(reading *r)
{
    uint8_t bytes[4];
    uint32_t value;
    const embla_gguf_key *key = embla_gguf_find(r->directory, "general.alignment");
    r->gguf->alignment = EMBLA_GGUF_ALIGNMENT;
    if (!key) return EMBLA_OK;
    if (key->type != EMBLA_GGUF_U32)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.200s: general.alignment has the type %s, not u32 (G6)", r->map->name,
                          embla_gguf_type_name(key->type));
    EMBLA_TRY(embla_map_read(r->map, key->value, sizeof bytes, bytes));
    value = embla_le32(bytes);
    if (value < 8 || value > EMBLA_GGUF_ALIGNMENT_MOST || (value & (value - 1)) != 0)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.200s: general.alignment is %" PRIu32 "; it must be a power of two "
                          "from 8 to %d (G6)",
                          r->map->name, value, (int)EMBLA_GGUF_ALIGNMENT_MOST);
    r->gguf->alignment = value;
    return EMBLA_OK;
}

/* ---- G7 to G11: tensors ---- */

/* Rounds x up to a multiple of alignment. x is a tensor's bytes, below 2^63 (embla_entry_size), or
 * an offset in the file, so this cannot overflow. */
static uint64_t padded(uint64_t x, uint64_t alignment)
{
    uint64_t most = x + alignment - 1;
    return most - most % alignment;
}

static embla_status read_name(reading *r, embla_entry **out)
{
    const uint8_t *bytes;
    uint64_t length;
    EMBLA_TRY(read_length(r, EMBLA_GGUF_NAME_MOST, "a tensor's name", "G7", &length));
    if (length == 0)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.200s: the tensor's name at byte %" PRIu64 " is empty (G7)",
                          r->map->name, r->c.at);
    EMBLA_TRY(embla_cursor_bytes(&r->c, length, "a tensor's name", &bytes));
    if (memchr(bytes, 0, (size_t)length))
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.200s: the tensor's name before byte %" PRIu64
                          " contains a 0 byte (G7)",
                          r->map->name, r->c.at);
    return embla_directory_add(r->directory, (const char *)bytes, (size_t)length, out);
}

/* Reads the shape and reverses it: the file has the fastest dimension first. */
static embla_status read_shape(reading *r, embla_entry *entry)
{
    uint64_t dim, numbers = 1;
    uint32_t rank;
    EMBLA_TRY(embla_cursor_u32(&r->c, "the number of dimensions", &rank));
    if (rank < 1 || rank > EMBLA_GGUF_RANK_MOST)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.200s: tensor '%.128s' has %" PRIu32
                          " dimensions; it must have 1 to %d (G7)",
                          r->map->name, entry->name, rank, (int)EMBLA_GGUF_RANK_MOST);
    entry->rank = rank;
    for (uint32_t i = 0; i < rank; i++) {
        EMBLA_TRY(embla_cursor_u64(&r->c, "a dimension", &dim));
        if (dim > EMBLA_GGUF_DIM_MOST)
            return embla_fail(EMBLA_ERR_FORMAT,
                              "%.200s: tensor '%.128s': dimension %" PRIu32 " is %" PRIu64
                              "; the limit is %" PRIu64 " (G7)",
                              r->map->name, entry->name, i, dim, EMBLA_GGUF_DIM_MOST);
        if (!embla_mul_ok(numbers, dim, &numbers))
            return embla_fail(EMBLA_ERR_FORMAT,
                              "%.200s: tensor '%.128s' is too large: the product of its %" PRIu32
                              " dimensions exceeds 64 bits (G7)",
                              r->map->name, entry->name, rank);
        entry->shape[rank - 1 - i] = dim;
    }
    return EMBLA_OK;
}

static embla_status read_element(reading *r, embla_entry *entry)
{
    uint32_t id;
    EMBLA_TRY(embla_cursor_u32(&r->c, "a tensor's type", &id));
    entry->element = embla_element_ggml(id);
    if (!entry->element)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.200s: tensor '%.128s' has the unknown type %" PRIu32 " (G8)",
                          r->map->name, entry->name, id);
    uint64_t dim = entry->shape[entry->rank - 1];
    if (dim % entry->element->block != 0)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.200s: tensor '%.128s': rows of %" PRIu64 " numbers are not whole "
                          "blocks of %" PRIu32 " (%s) (G9)",
                          r->map->name, entry->name, dim, entry->element->block,
                          entry->element->name);
    return embla_entry_size(r->map, entry, "G9");
}

/* Reads one tensor. *sum is the offset at which it must begin, relative to the first tensor, and
 * becomes that of the next. */
static embla_status read_tensor(reading *r, uint64_t *sum)
{
    embla_entry *entry;
    EMBLA_TRY(read_name(r, &entry));
    EMBLA_TRY(read_shape(r, entry));
    EMBLA_TRY(read_element(r, entry));
    EMBLA_TRY(embla_cursor_u64(&r->c, "a tensor's offset", &entry->offset));
    if (entry->offset % r->gguf->alignment != 0)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.200s: tensor '%.128s' begins at %" PRIu64 ", which is not a multiple "
                          "of the alignment, %" PRIu32 " (G10)",
                          r->map->name, entry->name, entry->offset, r->gguf->alignment);
    if (entry->offset != *sum)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.200s: tensor '%.128s' begins at %" PRIu64
                          ", but those before it end at %" PRIu64 " (G10)",
                          r->map->name, entry->name, entry->offset, *sum);
    if (!embla_add_ok(*sum, padded(entry->bytes, r->gguf->alignment), sum))
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.200s: tensor '%.128s' of %" PRIu64 " bytes begins at %" PRIu64
                          ": its end exceeds 64 bits (G11)",
                          r->map->name, entry->name, entry->bytes, *sum);
    return EMBLA_OK;
}

/* Sets the offset of every tensor in the file. sum is their size together. */
static embla_status set_offsets(reading *r, uint64_t sum)
{
    uint64_t data = padded(r->c.at, r->gguf->alignment), end, size = r->map->size;
    if (!embla_add_ok(data, sum, &end))
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.200s: tensors of %" PRIu64 " bytes follow a header of %" PRIu64
                          ": their end exceeds 64 bits (G11)",
                          r->map->name, sum, r->c.at);
    for (size_t i = 0; i < r->directory->count; i++) {
        embla_entry *entry = &r->directory->entries[i];
        entry->offset += data; /* below end, which fits */
        if (entry->offset > size || entry->bytes > size - entry->offset)
            return embla_fail(EMBLA_ERR_FORMAT,
                              "%.200s: tensor '%.128s' has %" PRIu64 " bytes from byte %" PRIu64
                              ", but the file ends at %" PRIu64 " (G10)",
                              r->map->name, entry->name, entry->bytes, entry->offset, size);
    }
    r->gguf->data = data;
    if (size > end)
        return embla_directory_note(r->directory, "%" PRIu64 " bytes follow the last tensor",
                                    size - end);
    return EMBLA_OK;
}

static embla_status read_tensors(reading *r)
{
    embla_directory *directory = r->directory;
    uint64_t sum = 0;
    embla_name *name = NULL;
    embla_names index;
    for (uint64_t i = 0; i < r->tensors; i++) EMBLA_TRY(read_tensor(r, &sum));
    EMBLA_TRY(embla_arena_many(&directory->arena, directory->count, sizeof *name,
                               "names of tensors", &name));
    for (size_t i = 0; i < directory->count; i++) {
        const char *text = directory->entries[i].name;
        name[i] = (embla_name){text, (uint32_t)strlen(text), (uint32_t)i};
    }
    EMBLA_TRY(index_names(r, name, directory->count, "tensor", "G7", &index));
    return set_offsets(r, sum);
}

static embla_status read_all(reading *r)
{
    EMBLA_TRY(read_version(r));
    EMBLA_TRY(read_counts(r));
    EMBLA_TRY(read_keys(r));
    EMBLA_TRY(read_alignment(r));
    EMBLA_TRY(read_tensors(r));
    return embla_gguf_vocab_check(r->directory, r->map);
}

embla_status embla_gguf_read(embla_map *map, const embla_open_options *options,
                             embla_directory *out)
{
    reading r = {.map = map, .directory = out};
    (void)options; /* the option lenient allows nothing here: no error of a GGUF is harmless */
    EMBLA_TRY(embla_arena_take(&out->arena, sizeof *r.gguf, "a GGUF file", &out->state));
    r.gguf = out->state;
    out->format = embla_format_gguf.name;
    embla_cursor_begin(&r.c, map, 0);
    embla_status status = read_all(&r);
    embla_cursor_end(&r.c);
    return status;
}

static bool holds(const embla_element *element)
{
    return element->ggml >= 0;
}

/* llama.cpp finds tables, heads and positions by these names. */
static const char *tensor_name(embla_role role)
{
    switch (role) {
    case EMBLA_ROLE_TOKENS:
        return "token_embd.weight";
    case EMBLA_ROLE_POSITIONS:
        return "position_embd.weight";
    case EMBLA_ROLE_HEAD:
        return "output.weight";
    case EMBLA_ROLE_HEAD_BIAS:
        return "output.bias";
    case EMBLA_ROLE_PER_LAYER:
        return "per_layer_token_embd.weight";
    default:
        return NULL;
    }
}

/* Keys that are not text, or too long. Words are written separately, and split.* has no meaning in
 * a single file. */
static size_t unlisted_keys(const embla_directory *directory)
{
    const embla_gguf *gguf = directory->state;
    size_t keys = 0;
    for (size_t i = 0; i < gguf->count; i++)
        keys += strncmp(gguf->keys[i].key, "split.", 6) != 0 &&
                strcmp(gguf->keys[i].key, "tokenizer.ggml.tokens") != 0;
    return keys > directory->pair_count ? keys - directory->pair_count : 0;
}

const embla_format embla_format_gguf = {
    .name = "gguf",
    .extension = ".gguf",
    .sniff = sniff,
    .read = embla_gguf_read,
    .unlisted_keys = unlisted_keys,
    .write = embla_gguf_write,
    .labels = EMBLA_LABELS_LIST,
    .holds = holds,
    .type_rule = "G8",
    .tensor_name = tensor_name,
    .keeps = embla_gguf_keeps,
    .copies_keys = true,
};
