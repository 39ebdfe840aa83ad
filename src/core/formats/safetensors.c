/* SPDX-License-Identifier: Apache-2.0 */
/* The reader of safetensors: 8 bytes with the header's length, the header as JSON, then the data
 * of all tensors. Rules S1 to S14 of docs/formats.md.
 *
 * The header is checked in three passes:
 * - its bytes (S1 to S4), after which it is known to have only two levels of nesting;
 * - its members (S5 to S8, S10, S11), with a parser that builds no tree, because a tree would
 *   take twenty times the header's memory;
 * - the tensors against each other (S9): sorted by offset, they must cover the data without gaps,
 *   overlaps or unused bytes at the end.
 */
#include "formats/safetensors.h"

#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "files/cursor.h"
#include "files/json_walk.h"

enum { PREFIX = EMBLA_SAFETENSORS_PREFIX };

/* ---- bytes of text ---- */

static bool is_space(uint8_t c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Skips the string that begins at *at, up to its closing quote. False at an escaped 0. */
static bool skip_string(const uint8_t *text, size_t count, size_t *at)
{
    for (++*at; *at < count && text[*at] != '"'; ++*at) {
        if (text[*at] != '\\') continue;
        ++*at;
        if (count - *at >= 5 && memcmp(text + *at, "u0000", 5) == 0) return false;
    }
    return true;
}

/* Checks that the header is an object of objects, whose values are scalars or arrays of scalars,
 * and that nothing follows it. The first character that is not white space is a brace. */
static embla_status check_levels(const char *name, const uint8_t *text, size_t count)
{
    size_t depth = 0, at = 0;
    for (; at < count; at++) {
        uint8_t c = text[at];
        if (c == '"' && !skip_string(text, count, &at))
            return embla_fail(EMBLA_ERR_FORMAT,
                              "%.200s: a string of the header contains \\u0000 at byte %zu (S11)",
                              name, at);
        if (c == '{' || c == '[') {
            if (c == '{' ? depth > 1 : depth != 2)
                return embla_fail(EMBLA_ERR_FORMAT,
                                  "%.200s: byte %zu of the header begins an %s at nesting level "
                                  "%zu, where none is allowed (S4)",
                                  name, at, c == '{' ? "object" : "array", depth);
            depth++;
        } else if ((c == '}' || c == ']') && --depth == 0) {
            break;
        }
    }
    for (at++; at < count; at++)
        if (!is_space(text[at]))
            return embla_fail(EMBLA_ERR_FORMAT,
                              "%.200s: byte %zu of the header, after the closing brace, is 0x%02x, "
                              "not white space (S3)",
                              name, at, text[at]);
    return EMBLA_OK;
}

/* ---- order ---- */

static bool begins_before(const embla_entry *a, const embla_entry *b)
{
    return a->offset != b->offset ? a->offset < b->offset : a->bytes < b->bytes;
}

static void swap(uint32_t *a, uint32_t *b)
{
    uint32_t old = *a;
    *a = *b;
    *b = old;
}

/* Moves order[root] down the heap until no child begins after it. */
static void sift(const embla_entry *entries, uint32_t *order, size_t root, size_t count)
{
    for (size_t child; (child = 2 * root + 1) < count; root = child) {
        if (child + 1 < count && begins_before(&entries[order[child]], &entries[order[child + 1]]))
            child++;
        if (!begins_before(&entries[order[root]], &entries[order[child]])) return;
        swap(&order[root], &order[child]);
    }
}

/* Sorts the indices of the entries by offset. A heap sort needs no memory and takes n log n steps
 * for any file (C8). */
static void sort_entries(const embla_entry *entries, size_t count, uint32_t *order)
{
    for (size_t i = 0; i < count; i++) order[i] = (uint32_t)i;
    for (size_t i = count / 2; i-- > 0;) sift(entries, order, i, count);
    for (size_t end = count; end-- > 1;) {
        swap(&order[0], &order[end]);
        sift(entries, order, 0, end);
    }
}

/* ---- reading ---- */

typedef struct {
    const embla_map *map;
    embla_directory *out;
    uint64_t data, data_bytes; /* offset and size of the data */
    embla_walk walk;           /* the parser of the header */
    embla_arena scratch;       /* for the parser: keys, decoded strings */
} reader;

static bool sniff(const uint8_t *head, size_t have, uint64_t size)
{
    (void)size; /* a truncated file is still safetensors: read_length reports it (S1) */
    return have > PREFIX && embla_le64(head) <= UINT32_MAX &&
           (head[PREFIX] == '{' || is_space(head[PREFIX]));
}

static embla_status read_length(const embla_map *map, uint64_t *length)
{
    uint8_t prefix[PREFIX];
    if (map->size < PREFIX)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.200s: the file has %" PRIu64
                          " bytes, but the header's length alone takes %d (S1)",
                          map->name, map->size, PREFIX);
    EMBLA_TRY(embla_map_read(map, 0, PREFIX, prefix));
    uint64_t n = embla_le64(prefix);
    if (n < 2 || n > EMBLA_SAFETENSORS_HEADER_MOST)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.200s: the header's length is %" PRIu64
                          " bytes; it must be 2 to %d (S1)",
                          map->name, n, EMBLA_SAFETENSORS_HEADER_MOST);
    if (n > map->size - PREFIX)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.200s: the header's length is %" PRIu64 " bytes, but only %" PRIu64
                          " are left (S1)",
                          map->name, n, map->size - PREFIX);
    *length = n;
    return EMBLA_OK;
}

/* Checks the bytes of the header before it is parsed (S2 to S4). *first is the offset of the
 * opening brace. */
static embla_status check_text(const char *name, const uint8_t *text, size_t count, bool lenient,
                               size_t *first)
{
    size_t at = 0, end = embla_utf8_valid(text, count);
    while (lenient && at < count && is_space(text[at])) at++;
    if (at == count || text[at] != '{')
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.200s: the header begins with 0x%02x, not with a brace, 0x7b (S2)",
                          name, text[at == count ? 0 : at]);
    if (end < count)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.200s: the header is not valid UTF-8: byte %zu is 0x%02x (S2)", name,
                          end, text[end]);
    *first = at;
    return check_levels(name, text, count);
}

/* Parses the number of this step, which must be a natural number (S4). */
static embla_status read_natural(reader *r, const char *tensor, uint64_t *out)
{
    const embla_walk *w = &r->walk;
    if (embla_walk_natural(w, (uint64_t)1 << 63, out)) return EMBLA_OK;
    return embla_fail(
        EMBLA_ERR_FORMAT, "%.200s: tensor '%.128s': '%.*s' is not a natural number below 2^63 (S4)",
        r->map->name, tensor, w->length < 32 ? (int)w->length : 32, (const char *)w->raw);
}

static embla_status read_metadata(reader *r)
{
    size_t bytes = 0, pairs = 0;
    embla_name key, value;
    if (r->walk.step != EMBLA_WALK_OBJECT)
        return embla_fail(EMBLA_ERR_FORMAT, "%.200s: __metadata__ is not an object (S10)",
                          r->map->name);
    for (;;) {
        EMBLA_TRY(embla_walk_next(&r->walk));
        if (r->walk.step == EMBLA_WALK_CLOSE) return EMBLA_OK;
        EMBLA_TRY(embla_walk_text(&r->walk, &key));
        EMBLA_TRY(embla_walk_next(&r->walk));
        if (r->walk.step != EMBLA_WALK_STRING)
            return embla_fail(EMBLA_ERR_FORMAT,
                              "%.200s: '%.*s' in __metadata__ is not a string (S10)", r->map->name,
                              key.length < 128 ? (int)key.length : 128, key.bytes);
        EMBLA_TRY(embla_walk_text(&r->walk, &value));
        if (++pairs > EMBLA_SAFETENSORS_METADATA_PAIRS)
            return embla_fail(EMBLA_ERR_FORMAT,
                              "%.200s: __metadata__ has at least %zu members; the limit is %d "
                              "(S10)",
                              r->map->name, pairs, EMBLA_SAFETENSORS_METADATA_PAIRS);
        bytes += (size_t)key.length + value.length;
        if (bytes > EMBLA_SAFETENSORS_METADATA_MOST)
            return embla_fail(EMBLA_ERR_FORMAT,
                              "%.200s: __metadata__ has at least %zu bytes; the limit is %d (S10)",
                              r->map->name, bytes, EMBLA_SAFETENSORS_METADATA_MOST);
        EMBLA_TRY(embla_directory_pair(r->out, key.bytes, key.length, value.bytes, value.length));
    }
}

static embla_status read_element(reader *r, embla_entry *entry)
{
    embla_name name;
    if (r->walk.step != EMBLA_WALK_STRING)
        return embla_fail(EMBLA_ERR_FORMAT, "%.200s: tensor '%.128s': dtype is not a string (S7)",
                          r->map->name, entry->name);
    EMBLA_TRY(embla_walk_text(&r->walk, &name));
    entry->element = embla_element_safetensors(name.bytes, name.length);
    if (!entry->element)
        return embla_fail(
            EMBLA_ERR_FORMAT, "%.200s: tensor '%.128s' has the unsupported dtype '%.*s' (S7)",
            r->map->name, entry->name, name.length < 32 ? (int)name.length : 32, name.bytes);
    return EMBLA_OK;
}

static embla_status read_shape(reader *r, embla_entry *entry)
{
    if (r->walk.step != EMBLA_WALK_ARRAY)
        return embla_fail(EMBLA_ERR_FORMAT, "%.200s: tensor '%.128s': shape is not an array (S8)",
                          r->map->name, entry->name);
    for (entry->rank = 0;; entry->rank++) {
        EMBLA_TRY(embla_walk_next(&r->walk));
        if (r->walk.step == EMBLA_WALK_CLOSE) return EMBLA_OK;
        if (r->walk.step != EMBLA_WALK_NUMBER)
            return embla_fail(EMBLA_ERR_FORMAT,
                              "%.200s: tensor '%.128s': dimension %u is not a number (S8)",
                              r->map->name, entry->name, (unsigned)entry->rank);
        if (entry->rank == EMBLA_TENSOR_RANK_MAX)
            return embla_fail(EMBLA_ERR_FORMAT,
                              "%.200s: tensor '%.128s' has more than %d dimensions (S8)",
                              r->map->name, entry->name, EMBLA_TENSOR_RANK_MAX);
        EMBLA_TRY(read_natural(r, entry->name, &entry->shape[entry->rank]));
    }
}

static embla_status read_offsets(reader *r, const embla_entry *entry, uint64_t offsets[2])
{
    bool good = r->walk.step == EMBLA_WALK_ARRAY;
    for (size_t i = 0; good && i < 2; i++) {
        EMBLA_TRY(embla_walk_next(&r->walk));
        if ((good = r->walk.step == EMBLA_WALK_NUMBER))
            EMBLA_TRY(read_natural(r, entry->name, &offsets[i]));
    }
    if (good) {
        EMBLA_TRY(embla_walk_next(&r->walk));
        if (r->walk.step == EMBLA_WALK_CLOSE) return EMBLA_OK;
    }
    return embla_fail(EMBLA_ERR_FORMAT,
                      "%.200s: tensor '%.128s': data_offsets are not two numbers (S9)",
                      r->map->name, entry->name);
}

/* Compares shape, dtype and offsets with each other and with the file. */
static embla_status check_tensor(const reader *r, embla_entry *entry, uint64_t begin, uint64_t end)
{
    EMBLA_TRY(embla_entry_size(r->map, entry, "S8"));
    if (end < begin)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.200s: tensor '%.128s' begins at %" PRIu64
                          " but ends before that, at %" PRIu64 " (S9)",
                          r->map->name, entry->name, begin, end);
    if (end > r->data_bytes)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.200s: tensor '%.128s' ends at %" PRIu64 ", but there are only %" PRIu64
                          " bytes of data (S9)",
                          r->map->name, entry->name, end, r->data_bytes);
    if (end - begin != entry->bytes)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.200s: tensor '%.128s' has %" PRIu64 " bytes, but its shape needs "
                          "%" PRIu64 " (S8)",
                          r->map->name, entry->name, end - begin, entry->bytes);
    entry->offset = r->data + begin; /* at most the file's size */
    return EMBLA_OK;
}

/* Reads the members of a tensor, which occur exactly once, in any order (S6). */
static embla_status read_tensor(reader *r, const embla_name *name)
{
    static const char *const members[] = {"dtype", "shape", "data_offsets"};
    embla_entry *entry = NULL;
    embla_name key;
    uint64_t offsets[2] = {0};
    unsigned seen = 0, count = 0;
    if (name->length < 1 || name->length > EMBLA_SAFETENSORS_NAME_MOST)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.200s: the tensor name '%.*s' has %" PRIu32
                          " bytes; it must have 1 to %d (S11)",
                          r->map->name, name->length < 64 ? (int)name->length : 64, name->bytes,
                          name->length, EMBLA_SAFETENSORS_NAME_MOST);
    if (r->out->count == EMBLA_SAFETENSORS_TENSORS_MOST)
        return embla_fail(EMBLA_ERR_FORMAT, "%.200s: there are more than %d tensors (S11)",
                          r->map->name, EMBLA_SAFETENSORS_TENSORS_MOST);
    if (r->walk.step != EMBLA_WALK_OBJECT)
        return embla_fail(EMBLA_ERR_FORMAT, "%.200s: '%.*s' is not an object (S4)", r->map->name,
                          name->length < 128 ? (int)name->length : 128, name->bytes);
    EMBLA_TRY(embla_directory_add(r->out, name->bytes, name->length, &entry));
    for (;; count++) {
        unsigned which = 0;
        EMBLA_TRY(embla_walk_next(&r->walk));
        if (r->walk.step == EMBLA_WALK_CLOSE) break;
        EMBLA_TRY(embla_walk_text(&r->walk, &key));
        while (which < 3 && (strlen(members[which]) != key.length ||
                             memcmp(members[which], key.bytes, key.length) != 0))
            which++;
        EMBLA_TRY(embla_walk_next(&r->walk));
        EMBLA_TRY(which == 0   ? read_element(r, entry)
                  : which == 1 ? read_shape(r, entry)
                  : which == 2 ? read_offsets(r, entry, offsets)
                               : embla_walk_skip(&r->walk));
        seen |= 1u << which;
    }
    if (seen != 7)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.200s: tensor '%.128s' must have the members dtype, shape and "
                          "data_offsets and no others; it has %u members (S6)",
                          r->map->name, entry->name, count);
    return check_tensor(r, entry, offsets[0], offsets[1]);
}

static embla_status read_members(reader *r)
{
    static const char metadata[] = EMBLA_SAFETENSORS_METADATA;
    embla_name key;
    EMBLA_TRY(embla_walk_next(&r->walk)); /* the opening brace, which check_text has found */
    for (;;) {
        EMBLA_TRY(embla_walk_next(&r->walk));
        if (r->walk.step == EMBLA_WALK_CLOSE) break;
        EMBLA_TRY(embla_walk_text(&r->walk, &key));
        EMBLA_TRY(embla_walk_next(&r->walk));
        bool pairs = key.length == sizeof metadata - 1 &&
                     memcmp(key.bytes, metadata, sizeof metadata - 1) == 0;
        EMBLA_TRY(pairs ? read_metadata(r) : read_tensor(r, &key));
    }
    return embla_walk_next(&r->walk); /* the end */
}

static embla_status read_header(reader *r, size_t count, bool lenient)
{
    void *text = NULL;
    size_t first = 0;
    EMBLA_TRY(embla_mem_new(count, "a header", &text));
    embla_status status = embla_map_read(r->map, PREFIX, count, text);
    if (status == EMBLA_OK) status = check_text(r->map->name, text, count, lenient, &first);
    if (status == EMBLA_OK)
        status = embla_walk_begin(&r->walk, (const uint8_t *)text + first, count - first,
                                  r->map->name, "S4", &r->scratch);
    r->walk.twice_rule = "S5";
    r->walk.most_text = EMBLA_SAFETENSORS_METADATA_MOST;
    if (status == EMBLA_OK) status = read_members(r);
    embla_arena_free(&r->scratch);
    embla_mem_free(text, count);
    return status;
}

/* Checks that the tensors cover the data. order: the entries sorted by offset. */
static embla_status check_order(const reader *r, const uint32_t *order)
{
    uint64_t at = 0; /* every byte of data before this one belongs to one tensor */
    for (size_t i = 0; i < r->out->count; i++) {
        const embla_entry *entry = &r->out->entries[order[i]];
        uint64_t begin = entry->offset - r->data;
        if (begin != at)
            return embla_fail(EMBLA_ERR_FORMAT,
                              "%.200s: tensor '%.128s' begins at %" PRIu64
                              ", but the one before it ends at %" PRIu64 ": %s (S9)",
                              r->map->name, entry->name, begin, at,
                              begin > at ? "a gap" : "they overlap");
        at += entry->bytes; /* at most data_bytes: its end was checked */
    }
    if (at != r->data_bytes)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.200s: the last tensor ends at %" PRIu64 ", but there are %" PRIu64
                          " bytes of data (S9)",
                          r->map->name, at, r->data_bytes);
    return EMBLA_OK;
}

static embla_status check_tiling(const reader *r)
{
    size_t bytes = r->out->count * sizeof(uint32_t);
    void *order = NULL;
    EMBLA_TRY(embla_mem_new(bytes, "the order of tensors", &order));
    sort_entries(r->out->entries, r->out->count, order);
    embla_status status = check_order(r, order);
    embla_mem_free(order, bytes);
    return status;
}

static embla_status read_file(embla_map *map, const embla_open_options *options,
                              embla_directory *out)
{
    uint64_t length = 0;
    EMBLA_TRY(read_length(map, &length));
    reader r = {
        .map = map, .out = out, .data = PREFIX + length, .data_bytes = map->size - PREFIX - length};
    EMBLA_TRY(read_header(&r, (size_t)length, options && options->lenient));
    EMBLA_TRY(check_tiling(&r));
    out->format = embla_format_safetensors.name;
    if (r.data % 4 == 0 || r.data_bytes == 0) return EMBLA_OK;
    return embla_directory_note(out,
                                "the data begins at an offset that is a multiple of %d, not of 4 "
                                "(S12)",
                                r.data % 2 == 0 ? 2 : 1);
}

static bool holds(const embla_element *element)
{
    return element->safetensors != NULL;
}

/* The transformers library refuses metadata without it. */
static const embla_pair saver = {"format", "pt"};

const embla_format embla_format_safetensors = {
    .name = "safetensors",
    .extension = ".safetensors",
    .sniff = sniff,
    .read = read_file,
    .write = embla_safetensors_write,
    .holds = holds,
    .type_rule = "S7",
    .mapping = true,
    .keeps = embla_safetensors_keeps,
    .saver = &saver,
    .config = true,
};
