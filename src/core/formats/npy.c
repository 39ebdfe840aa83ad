/* SPDX-License-Identifier: Apache-2.0 */
/* .npy, versions 1.0 to 3.0 (rules N1 to N5): a magic number, a Python dictionary as text, and the
 * numbers of one array.
 *
 * The parser of the dictionary accepts only what NumPy writes: strings without escapes, numbers
 * without a sign. Nothing is evaluated. Column-major arrays (fortran_order) and big-endian numbers
 * are not in the file as a table has them; their rows are transposed or byte-swapped when they are
 * read, one block at a time.
 */
#include "formats/npy.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/mem.h"
#include "files/cursor.h"
#include "formats/format.h"

enum {
    MAGIC = 6,
    HEADER_MOST = 10000, /* NumPy's own limit */
    BLOCK = 256 << 10,   /* bytes of numbers that are transposed at a time */
    WIDE = 16            /* columns of a block; for f32 a cache line of the result */
};
static const uint8_t magic[MAGIC] = {0x93, 'N', 'U', 'M', 'P', 'Y'};

typedef struct {
    const embla_map *map;
    const uint8_t *text, *p, *end; /* the dictionary, and the parser's position in it */
    unsigned major;
    bool has_descr, has_order, has_shape;
    bool fortran;
    const char *descr; /* no 0 after it */
    size_t descr_length;
    uint32_t rank;
    uint64_t shape[EMBLA_TENSOR_RANK_MAX];
} header;

/* What make needs to know about the one entry. */
typedef struct {
    bool fortran, swapped;
} layout;

/* ---- the dictionary ---- */

static embla_status expected(const header *h, const char *what)
{
    char found[16] = "the end";
    if (h->p < h->end) (void)snprintf(found, sizeof found, "byte 0x%02x", *h->p);
    return embla_fail(EMBLA_ERR_FORMAT,
                      "%.256s: header: expected %s at byte %td of %td, found %s (N2)", h->map->name,
                      what, h->p - h->text, h->end - h->text, found);
}

static bool next_is(const header *h, char c)
{
    return h->p < h->end && *h->p == (uint8_t)c;
}

static embla_status expect(header *h, char c, const char *what)
{
    if (!next_is(h, c)) return expected(h, what);
    h->p++;
    return EMBLA_OK;
}

static void skip_spaces(header *h)
{
    while (next_is(h, ' ')) h->p++;
}

/* Parses 'text' or "text": printable ASCII without a backslash. */
static embla_status parse_string(header *h, const char *what, const char **out, size_t *length)
{
    if (!next_is(h, '\'') && !next_is(h, '"')) return expected(h, what);
    uint8_t quote = *h->p++;
    const uint8_t *from = h->p;
    for (; h->p < h->end && *h->p != quote; h->p++)
        if (*h->p < 0x20 || *h->p > 0x7e || *h->p == '\\')
            return expected(h, "a printable character other than a backslash");
    *out = (const char *)from;
    *length = (size_t)(h->p - from);
    return expect(h, (char)quote, "the end of a string");
}

static bool skip_word(header *h, const char *text)
{
    size_t length = strlen(text);
    if ((size_t)(h->end - h->p) < length || memcmp(h->p, text, length) != 0) return false;
    h->p += length;
    return true;
}

/* Parses up to 19 digits, which always fit 64 bits. Python 2 writes an L after them. */
static embla_status parse_dimension(header *h, uint64_t *out)
{
    uint64_t value = 0;
    const uint8_t *from = h->p;
    for (; h->p < h->end && *h->p >= '0' && *h->p <= '9'; h->p++) {
        if (h->p - from == 19)
            return expected(h, "the end of a number (it has more than 19 digits)");
        value = 10 * value + (uint64_t)(*h->p - '0');
    }
    if (h->p == from) return expected(h, "a number");
    if (h->major < 3 && next_is(h, 'L')) h->p++;
    *out = value;
    return EMBLA_OK;
}

/* Parses (), (3,), (3, 4) or (3, 4,). */
static embla_status parse_shape(header *h)
{
    bool comma = false;
    EMBLA_TRY(expect(h, '(', "'(' of a shape"));
    while (!next_is(h, ')')) {
        if (h->rank > 0 && !comma) return expected(h, "',' or ')'");
        if (h->rank == EMBLA_TENSOR_RANK_MAX)
            return embla_fail(EMBLA_ERR_UNSUPPORTED,
                              "%.256s: the array has more than %d dimensions (N5)", h->map->name,
                              EMBLA_TENSOR_RANK_MAX);
        EMBLA_TRY(parse_dimension(h, &h->shape[h->rank++]));
        comma = next_is(h, ',');
        if (comma) h->p++;
        if (comma) skip_spaces(h);
    }
    if (h->rank == 1 && !comma) return expected(h, "the ',' of a shape of one dimension");
    return expect(h, ')', "')'");
}

static embla_status parse_value(header *h, const char *key, size_t length)
{
    bool *has = length == 5 && memcmp(key, "descr", 5) == 0             ? &h->has_descr
                : length == 13 && memcmp(key, "fortran_order", 13) == 0 ? &h->has_order
                : length == 5 && memcmp(key, "shape", 5) == 0           ? &h->has_shape
                                                                        : NULL;
    if (!has || *has)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.256s: header: key '%.*s' %s; the keys are descr, fortran_order and "
                          "shape, once each (N2)",
                          h->map->name, (int)(length < 128 ? length : 128), key,
                          has ? "occurs twice" : "is unknown");
    *has = true;
    if (has == &h->has_shape) return parse_shape(h);
    if (has == &h->has_order) {
        h->fortran = skip_word(h, "True");
        return h->fortran || skip_word(h, "False") ? EMBLA_OK : expected(h, "True or False");
    }
    if (next_is(h, '['))
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "%.256s: descr is a list, which is a type with several fields; a table "
                          "has one type (N3)",
                          h->map->name);
    return parse_string(h, "the string of descr", &h->descr, &h->descr_length);
}

static embla_status parse_dictionary(header *h)
{
    const char *key = NULL;
    size_t length = 0;
    bool comma = true;
    EMBLA_TRY(expect(h, '{', "'{'"));
    skip_spaces(h);
    while (comma && !next_is(h, '}')) {
        EMBLA_TRY(parse_string(h, "a key", &key, &length));
        skip_spaces(h);
        EMBLA_TRY(expect(h, ':', "':'"));
        skip_spaces(h);
        EMBLA_TRY(parse_value(h, key, length));
        comma = next_is(h, ',');
        if (comma) h->p++;
        skip_spaces(h);
    }
    EMBLA_TRY(expect(h, '}', "',' or '}'"));
    skip_spaces(h);
    EMBLA_TRY(expect(h, '\n', "a newline"));
    if (h->p != h->end) return expected(h, "the end of the header");
    if (h->has_descr && h->has_order && h->has_shape) return EMBLA_OK;
    return embla_fail(EMBLA_ERR_FORMAT,
                      "%.256s: header: there is no key '%s' in its %td bytes (N2)", h->map->name,
                      !h->has_descr   ? "descr"
                      : !h->has_order ? "fortran_order"
                                      : "shape",
                      h->end - h->text);
}

/* ---- the type ---- */

/* NumPy has no bf16; it writes such numbers as two bytes without a type. */
static bool is_two_bytes(const header *h)
{
    return h->descr_length == 3 &&
           (memcmp(h->descr, "<V2", 3) == 0 || memcmp(h->descr, "|V2", 3) == 0);
}

static embla_status refuse_type(const header *h, char kind)
{
    int length = (int)(h->descr_length < 32 ? h->descr_length : 32);
    if (kind == 'O')
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "%.256s: descr '%.*s' means Python objects, stored as a pickle, which "
                          "can run any program; it is never loaded (N3)",
                          h->map->name, length, h->descr);
    if (is_two_bytes(h))
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "%.256s: descr '%.3s' is 2 bytes without a type; if they are bf16, open "
                          "the file with the option as = bf16 (N3)",
                          h->map->name, h->descr);
    if (kind != 0 && strchr("VSUcMmb", kind))
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "%.256s: descr '%.*s' is not supported; supported are f2, f4, f8, and i "
                          "and u of 1, 2, 4 and 8 bytes (N3)",
                          h->map->name, length, h->descr);
    return embla_fail(EMBLA_ERR_FORMAT,
                      "%.256s: descr '%.*s' (%zu bytes) is not a type of NumPy (N3)", h->map->name,
                      length, h->descr, h->descr_length);
}

/* Finds the type that descr means. '=' means the byte order of the machine that wrote the file,
 * and '|' none; both are read as little-endian. */
static embla_status find_type(const header *h, embla_dtype as, const embla_element **element,
                              bool *swapped)
{
    const char *d = h->descr;
    bool ordered = h->descr_length > 0 && strchr("<>=|", d[0]) != NULL;
    const embla_element *found = NULL;
    if (ordered && h->descr_length == 3) {
        const char letter_and_size[3] = {d[1], d[2], 0};
        found = embla_element_npy(letter_and_size);
        if (as == EMBLA_BF16 && is_two_bytes(h)) found = embla_element_of(EMBLA_BF16);
    }
    if (!found) return refuse_type(h, h->descr_length > ordered ? d[ordered] : '\0');
    *element = found;
    *swapped = d[0] == '>' && found->block_bits > 8;
    return EMBLA_OK;
}

/* ---- rows that are transposed or byte-swapped ---- */

static void swap_bytes(uint8_t *bytes, uint64_t count, size_t size)
{
    for (uint8_t *p = bytes, *end = bytes + count * size; p < end; p += size)
        for (size_t i = 0; i < size / 2; i++) {
            uint8_t first = p[i];
            p[i] = p[size - 1 - i];
            p[size - 1 - i] = first;
        }
}

/* Transposes a block of `wide` columns with `tall` numbers each into rows of dim numbers. */
static inline __attribute__((always_inline)) void transpose_block(const uint8_t *block,
                                                                  uint64_t tall, uint64_t wide,
                                                                  uint64_t dim, size_t size,
                                                                  uint8_t *out)
{
    for (uint64_t row = 0; row < tall; row++)
        for (uint64_t column = 0; column < wide; column++)
            memcpy(out + (row * dim + column) * size, block + (column * tall + row) * size, size);
}

static void transpose(const uint8_t *block, uint64_t tall, uint64_t wide, uint64_t dim, size_t size,
                      uint8_t *out)
{
    if (size == 1) transpose_block(block, tall, wide, dim, 1, out); /* the compiler unrolls each */
    if (size == 2) transpose_block(block, tall, wide, dim, 2, out);
    if (size == 4) transpose_block(block, tall, wide, dim, 4, out);
    if (size == 8) transpose_block(block, tall, wide, dim, 8, out);
}

/* Reads rows first .. first+count-1 of a column-major array, with a block that has space for tall
 * rows of WIDE columns. */
static embla_status transpose_rows(const embla_map *map, const embla_entry *entry, uint64_t first,
                                   uint64_t count, uint64_t tall, uint8_t *block, uint8_t *out)
{
    uint64_t rows = entry->shape[0], dim = entry->shape[1];
    size_t size = entry->element->block_bits / 8;
    for (uint64_t done = 0; done < count; done += tall) {
        if (tall > count - done) tall = count - done;
        for (uint64_t column = 0; column < dim; column += WIDE) {
            uint64_t wide = dim - column < WIDE ? dim - column : WIDE;
            for (uint64_t i = 0; i < wide; i++) {
                uint64_t number = (column + i) * rows + first + done; /* index in the array */
                EMBLA_TRY(embla_map_read(map, entry->offset + number * size, (size_t)tall * size,
                                         block + i * tall * size));
            }
            transpose(block, tall, wide, dim, size, out + (done * dim + column) * size);
        }
    }
    return EMBLA_OK;
}

static embla_status make(const embla_directory *directory, const embla_map *map,
                         const embla_entry *entry, uint64_t first, uint64_t count, void *out)
{
    const layout *l = directory->state;
    size_t size = entry->element->block_bits / 8;
    uint64_t rows = entry->rank < 2 ? 1 : entry->shape[0];
    uint64_t numbers = rows > 0 ? entry->bytes / rows / size : 0; /* of a row */
    if (first > rows || count > rows - first)
        return embla_fail(EMBLA_ERR_RANGE,
                          "%.256s: rows %" PRIu64 " to %" PRIu64
                          " are out of range: the array has %" PRIu64 " rows",
                          map->name, first, first + count, rows);
    if (numbers == 0) return EMBLA_OK; /* rows without numbers */
    if (l->fortran && entry->rank > 2)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "%.256s: a column-major array (fortran_order) of %u dimensions is not "
                          "supported; one of 2 is (N5)",
                          map->name, (unsigned)entry->rank);
    if (l->fortran && entry->rank == 2) {
        size_t most = BLOCK / WIDE / size, tall = count < most ? (size_t)count : most;
        void *block = NULL;
        EMBLA_TRY(embla_mem_new(tall * WIDE * size, "columns of an array", &block));
        embla_status status = transpose_rows(map, entry, first, count, tall, block, out);
        embla_mem_free(block, tall * WIDE * size);
        EMBLA_TRY(status);
    } else {
        uint64_t row = numbers * size; /* the file is mapped, so its size is a size_t */
        EMBLA_TRY(embla_map_read(map, entry->offset + first * row, (size_t)(count * row), out));
    }
    if (l->swapped) swap_bytes(out, count * numbers, size);
    return EMBLA_OK;
}

/* ---- reading ---- */

static bool sniff(const uint8_t *head, size_t have, uint64_t size)
{
    (void)size;
    return have >= MAGIC && memcmp(head, magic, MAGIC) == 0;
}

/* Reads magic, version, length, and the text of the dictionary. */
static embla_status read_prefix(embla_cursor *c, header *h)
{
    const uint8_t *p;
    uint64_t length, left = embla_cursor_left(c), have;
    EMBLA_TRY(embla_cursor_peek(c, MAGIC + 6, &p, &have));
    unsigned major = have > MAGIC ? p[MAGIC] : 0, minor = have > MAGIC + 1 ? p[MAGIC + 1] : 0;
    unsigned bytes = major == 1 ? MAGIC + 4 : MAGIC + 6;
    if (!sniff(p, (size_t)have, left) || have < MAGIC + 4)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.256s: its %" PRIu64 " bytes do not begin as a .npy file does (N1)",
                          h->map->name, left);
    if (major < 1 || major > 3 || minor != 0)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "%.256s: .npy version %u.%u is not supported; 1.0, 2.0 and 3.0 are (N1)",
                          h->map->name, major, minor);
    if (left < bytes)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.256s: the file has %" PRIu64
                          " bytes, but the header's length ends at byte %u (N1)",
                          h->map->name, left, bytes);
    length = major == 1 ? embla_le16(p + MAGIC + 2) : embla_le32(p + MAGIC + 2);
    if (length > HEADER_MOST || length > left - bytes)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.256s: the header has %" PRIu64 " bytes, but %" PRIu64
                          " are left, and the limit is %d (N1)",
                          h->map->name, length, left - bytes, HEADER_MOST);
    EMBLA_TRY(embla_cursor_skip(c, bytes, "the magic number"));
    EMBLA_TRY(embla_cursor_bytes(c, length, "the header", &h->text));
    h->major = major;
    h->p = h->text;
    h->end = h->text + length;
    return EMBLA_OK;
}

/* Adds the one entry and checks that its numbers fill the rest of the file. */
static embla_status list_array(const header *h, uint64_t offset, const embla_open_options *options,
                               embla_directory *out)
{
    void *memory = NULL;
    embla_entry *entry = NULL;
    EMBLA_TRY(embla_arena_take(&out->arena, sizeof(layout), "an array", &memory));
    layout *l = memory;
    EMBLA_TRY(embla_directory_add(out, "array", 5, &entry));
    EMBLA_TRY(find_type(h, options ? options->as : (embla_dtype)0, &entry->element, &l->swapped));
    entry->rank = h->rank;
    memcpy(entry->shape, h->shape, sizeof entry->shape);
    EMBLA_TRY(embla_entry_size(h->map, entry, "N5"));
    uint64_t left = h->map->size - offset;
    bool tail_ok = options && options->lenient;
    if (entry->bytes > left || (entry->bytes < left && !tail_ok))
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.256s: the array needs %" PRIu64 " bytes, but %" PRIu64
                          " follow the header (N5)",
                          h->map->name, entry->bytes, left);
    if (entry->bytes < left)
        EMBLA_TRY(embla_directory_note(out, "%" PRIu64 " bytes after the array are ignored (N5)",
                                       left - entry->bytes));
    if (offset % 16 != 0)
        EMBLA_TRY(embla_directory_note(
            out, "the numbers begin at byte %" PRIu64 ", which is not a multiple of 16 (N4)",
            offset));
    l->fortran = h->fortran;
    entry->offset = offset;
    entry->made = l->swapped || (l->fortran && h->rank > 1);
    out->state = l;
    out->make = make;
    return EMBLA_OK;
}

static embla_status read_npy(embla_map *map, const embla_open_options *options,
                             embla_directory *out)
{
    header h = {.map = map};
    embla_cursor c;
    out->format = embla_format_npy.name;
    embla_cursor_begin(&c, map, 0);
    embla_status status = read_prefix(&c, &h);
    if (status == EMBLA_OK) status = parse_dictionary(&h);
    if (status == EMBLA_OK) status = list_array(&h, c.at, options, out);
    embla_cursor_end(&c);
    return status;
}

/* ---- writing ---- */

size_t embla_npy_header(const embla_element *element, uint32_t rank, const uint64_t *lengths,
                        char out[EMBLA_NPY_HEADER_MOST])
{
    enum { PREFIX = MAGIC + 4, GROWTH = 21 };
    char dims[EMBLA_TENSOR_RANK_MAX * 22 + 2] = "";
    size_t used = 0, first = 0;
    for (uint32_t i = 0; i < rank; i++) {
        int more =
            snprintf(dims + used, sizeof dims - used, "%s%" PRIu64, i > 0 ? ", " : "", lengths[i]);
        used += (size_t)more;
        if (i == 0) first = used;
    }
    int length =
        snprintf(out + PREFIX, EMBLA_NPY_HEADER_MOST - PREFIX,
                 "{'descr': '%c%s', 'fortran_order': False, 'shape': (%s%s), }",
                 element->block_bits > 8 ? '<' : '|', element->npy, dims, rank == 1 ? "," : "");
    /* NumPy leaves space for the first dimension to grow to 21 digits, then adds 1 to 64
     * skip_spaces. */
    size_t text = (size_t)length + (rank > 0 ? GROWTH - first : 0) + 1;
    size_t all = PREFIX + text + 64 - (PREFIX + text) % 64;
    memset(out + PREFIX + length, ' ', all - PREFIX - (size_t)length);
    out[all - 1] = '\n';
    memcpy(out, magic, MAGIC);
    out[MAGIC] = 1;
    out[MAGIC + 1] = 0;
    out[MAGIC + 2] = (char)((all - PREFIX) & 0xff);
    out[MAGIC + 3] = (char)((all - PREFIX) >> 8);
    return all;
}

static embla_status write_npy(embla_durable *out, const embla_contents *contents)
{
    char head[EMBLA_NPY_HEADER_MOST];
    const embla_part *part = contents->parts;
    uint64_t all;
    if (contents->count != 1)
        return embla_fail(EMBLA_ERR_SHAPE, "an npy file holds 1 tensor; %zu cannot be written",
                          contents->count);
    if (!part->element->npy)
        return embla_fail(
            EMBLA_ERR_UNSUPPORTED,
            "npy has no type for the %s of '%.128s'; write it with the option dtype = f32",
            part->element->name, part->name);
    size_t length = embla_npy_header(part->element, part->rank, part->shape, head);
    if (!embla_add_ok(length, part->bytes, &all))
        return embla_fail(EMBLA_ERR_SHAPE, "'%.128s' of %" PRIu64 " bytes is too large for a file",
                          part->name, part->bytes);
    EMBLA_TRY(embla_durable_reserve(out, all));
    EMBLA_TRY(embla_durable_write(out, head, length));
    return embla_part_write(out, part);
}

static bool holds(const embla_element *element)
{
    return element->npy != NULL;
}

const embla_format embla_format_npy = {.name = "npy",
                                       .extension = ".npy",
                                       .one_table = true,
                                       .no_model = true,
                                       .sniff = sniff,
                                       .read = read_npy,
                                       .write = write_npy,
                                       .holds = holds,
                                       .type_rule = "N3"};
