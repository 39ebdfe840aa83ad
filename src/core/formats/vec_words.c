/* SPDX-License-Identifier: Apache-2.0 */
/* What text and binary files of words and vectors share: the header line, detection of the kind,
 * words as labels of rows, and writing of rows. Words are copied to the arena as bytes. Memory
 * grows with the rows that were found, never with the count in a header.
 */
#include "base/byte_order.h"
#include "formats/vec.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/mem.h"
#include "files/decimal.h"

enum { BLOCK = 256 << 10 }; /* bytes of numbers that are read for writing at a time */

/* ---- the header line ---- */

/* Parses up to `most` digits at *p; false if there are none, or more. */
static bool parse_number(const uint8_t **p, const uint8_t *end, int most, uint64_t *out)
{
    uint64_t value = 0;
    int digits = 0;
    for (; *p < end && **p >= '0' && **p <= '9'; ++*p, digits++) {
        if (digits == most) return false;
        value = 10 * value + (uint64_t)(**p - '0');
    }
    *out = value;
    return digits > 0;
}

bool embla_vec_header_of(const uint8_t *head, size_t have, embla_vec_header *out)
{
    const uint8_t *p = head, *end = head + have;
    embla_vec_header header;
    if (!parse_number(&p, end, 10, &header.rows) || p == end || *p++ != ' ') return false;
    if (!parse_number(&p, end, 6, &header.dim)) return false;
    if (p < end && *p == '\r') p++;
    if (p == end || *p++ != '\n') return false;
    header.length = (size_t)(p - head);
    *out = header;
    return true;
}

embla_status embla_vec_header_check(const embla_map *map, const embla_vec_header *header)
{
    if (header->rows < 1 || header->rows > EMBLA_VEC_ROWS_MOST || header->dim < 1 ||
        header->dim > EMBLA_VEC_DIM_MOST)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.256s: the header has %" PRIu64 " rows of %" PRIu64
                          " numbers; supported are 1 to %d rows of 1 to %d numbers (W1)",
                          map->name, header->rows, header->dim, EMBLA_VEC_ROWS_MOST,
                          EMBLA_VEC_DIM_MOST);
    return EMBLA_OK;
}

/* ---- lines of text ---- */

size_t embla_vec_trimmed(const uint8_t *line, size_t length)
{
    if (length > 0 && line[length - 1] == '\n') length--;
    if (length > 0 && line[length - 1] == '\r') length--;
    while (length > 0 && embla_vec_separator(line[length - 1])) length--;
    return length;
}

uint64_t embla_vec_fields(const uint8_t *line, size_t length)
{
    uint64_t fields = length > 0; /* the last field; every other one ends before a separator */
    for (size_t i = 1; i < length; i++)
        fields += embla_vec_separator(line[i]) > embla_vec_separator(line[i - 1]);
    return fields;
}

size_t embla_vec_word_length(const uint8_t *line, size_t length, uint64_t dim)
{
    size_t at = length;
    if (embla_vec_fields(line, length) == dim + 1 && !embla_vec_separator(line[0])) {
        for (at = 0; !embla_vec_separator(line[at]);) at++; /* the usual case: no space in a word */
        return at;
    }
    for (uint64_t i = 0; i < dim && at > 0; i++) {
        while (at > 0 && !embla_vec_separator(line[at - 1])) at--;
        while (at > 0 && embla_vec_separator(line[at - 1])) at--;
    }
    return at;
}

/* ---- detection of the kind ---- */

/* True if all fields of a trimmed line are numbers; *count is their number. */
static bool all_numbers(const uint8_t *line, size_t length, uint64_t *count)
{
    const uint8_t *p = line, *end = line + length;
    *count = 0;
    for (;;) {
        while (p < end && embla_vec_separator(*p)) p++;
        if (p == end) return true;
        const uint8_t *from = p;
        while (p < end && !embla_vec_separator(*p)) p++;
        if (!embla_decimal_is(from, (size_t)(p - from))) return false;
        ++*count;
    }
}

/* The bytes before the first newline, or all of them. *cut is true if the line continues after
 * them. */
static size_t line_length(const uint8_t *bytes, size_t have, bool more, bool *cut)
{
    const uint8_t *newline = have > 0 ? memchr(bytes, '\n', have) : NULL;
    *cut = !newline && more;
    return newline ? (size_t)(newline - bytes) : have;
}

/* The length of a line without its last field, which the end of head may have cut off. */
static size_t without_last_field(const uint8_t *line, size_t length)
{
    while (length > 0 && !embla_vec_separator(line[length - 1])) length--;
    return embla_vec_trimmed(line, length);
}

/* True for a word and dim numbers, the line after a header. Words may contain spaces, so of a line
 * that is cut it can only be checked that it ends with a number. */
static bool is_text_row(const uint8_t *line, size_t length, bool cut, uint64_t dim)
{
    uint64_t count;
    if (cut) {
        length = without_last_field(line, length);
        if (embla_vec_fields(line, length) < 2) return false;
        dim = 1;
    }
    length = embla_vec_trimmed(line, length);
    size_t word = embla_vec_word_length(line, length, dim);
    return word > 0 && all_numbers(line + word, length - word, &count);
}

/* True if any field after the first is a number: then it is text, though it may be damaged. */
static bool has_number(const uint8_t *line, size_t length)
{
    for (size_t i = 1; i < length; i++) {
        if (!embla_vec_separator(line[i - 1]) || embla_vec_separator(line[i])) continue;
        size_t end = i;
        while (end < length && !embla_vec_separator(line[end])) end++;
        if (embla_decimal_is(line + i, end - i)) return true;
    }
    return false;
}

/* Finds the numbers of a binary row after the header line: they follow its word and a space. NULL
 * if there is no word. */
static const uint8_t *find_binary(const uint8_t *row, size_t have)
{
    if (have > 1 && row[0] == '\n' && row[1] != ' ') row++, have--; /* otherwise a word "\n" */
    if (have > EMBLA_VEC_WORD_MOST + 1) have = EMBLA_VEC_WORD_MOST + 1;
    const uint8_t *space = memchr(row, ' ', have);
    return space && space > row ? space + 1 : NULL;
}

static bool all_text(const uint8_t *p, const uint8_t *end)
{
    for (; p < end; p++)
        if (*p > 0x7e || (*p < 0x20 && *p != '\t' && *p != '\r' && *p != '\n')) return false;
    return true;
}

bool embla_vec_numbers(const uint8_t *line, size_t length, uint64_t *count)
{
    size_t word = 0;
    while (word < length && !embla_vec_separator(line[word])) word++;
    return word > 0 && all_numbers(line + word, length - word, count) && *count > 0;
}

/* True if, without a header, the first line is a word without spaces and at least 2 numbers, and
 * the second a word and as many numbers, or a word without spaces and any number of them: then one
 * of the two lines is damaged, and the message names it. */
static bool is_glove(const uint8_t *head, size_t have, bool more)
{
    bool cut;
    uint64_t dim = 0, count;
    size_t all = line_length(head, have, more, &cut), length = all, word;
    length = cut ? without_last_field(head, length) : embla_vec_trimmed(head, length);
    if (!embla_vec_numbers(head, length, &dim) || dim < 2) return false;
    if (cut || all + 1 >= have) return true;
    const uint8_t *second = head + all + 1;
    have -= all + 1;
    length = line_length(second, have, more, &cut);
    if (cut) return true;
    bool last = !more && length + 1 >= have;
    length = embla_vec_trimmed(second, length);
    if (length == 0) return last;
    word = embla_vec_word_length(second, length, dim);
    return (word > 0 && all_numbers(second + word, length - word, &count)) ||
           embla_vec_numbers(second, length, &count);
}

embla_vec_kind embla_vec_kind_of(const uint8_t *head, size_t have, uint64_t size)
{
    embla_vec_header header;
    bool cut;
    if (!embla_vec_header_of(head, have, &header))
        return is_glove(head, have, size > have) ? EMBLA_VEC_GLOVE : EMBLA_VEC_NONE;
    const uint8_t *row = head + header.length;
    have -= header.length;
    size -= header.length;
    size_t length = line_length(row, have, size > have, &cut);
    /* A header with a wrong number, or with nothing after it, is left to the reader of text, which
     * reports it. */
    if (header.rows < 1 || header.dim < 1 || header.dim > EMBLA_VEC_DIM_MOST || have == 0)
        return EMBLA_VEC_TEXT;
    if (is_text_row(row, length, cut, header.dim)) return EMBLA_VEC_TEXT;
    const uint8_t *numbers = find_binary(row, have), *end = row + have;
    if (numbers && (uint64_t)(end - numbers) > 4 * header.dim) end = numbers + 4 * header.dim;
    if (numbers && !all_text(numbers, end)) return EMBLA_VEC_BINARY;
    if (has_number(row, embla_vec_trimmed(row, length))) return EMBLA_VEC_TEXT;
    /* A few floats may look like text by chance; then the size decides. */
    bool fits = header.rows <= size / (2 + 4 * header.dim);
    return numbers && fits ? EMBLA_VEC_BINARY : EMBLA_VEC_NONE;
}

/* ---- rows found by a scan ---- */

embla_status embla_vec_add(embla_directory *directory, embla_vec_rows *rows, const uint8_t *word,
                           size_t length, uint64_t offset)
{
    void *labels = rows->labels, *offsets = rows->offsets;
    const char *copy = NULL;
    EMBLA_TRY(embla_arena_grow(&directory->arena, sizeof *rows->labels, rows->count, "words",
                               &labels, &rows->label_room));
    rows->labels = labels;
    EMBLA_TRY(embla_arena_grow(&directory->arena, sizeof *rows->offsets, rows->count,
                               "offsets of rows", &offsets, &rows->offset_room));
    rows->offsets = offsets;
    EMBLA_TRY(embla_arena_text(&directory->arena, word, length, &copy));
    rows->labels[rows->count] = (embla_name){copy, (uint32_t)length, (uint32_t)rows->count};
    rows->offsets[rows->count++] = offset;
    return EMBLA_OK;
}

/* Counts words that repeat an earlier one, by sorting all of them; the index is not kept. */
static embla_status count_repeats(const embla_vec_rows *rows, size_t *out)
{
    embla_arena arena = {0};
    embla_names names = {0};
    embla_status status = embla_names_sort(&arena, rows->labels, rows->count, &names);
    *out = status == EMBLA_OK ? embla_names_repeats(&names) : 0;
    embla_arena_free(&arena);
    return status;
}

embla_status embla_vec_finish(const embla_map *map, embla_directory *directory,
                              const embla_vec_rows *rows, uint64_t dim)
{
    size_t repeats = 0;
    embla_entry *entry = NULL;
    if (rows->count == 0)
        return embla_fail(EMBLA_ERR_FORMAT, "%.256s: there are 0 rows of %" PRIu64 " numbers (W1)",
                          map->name, dim);
    EMBLA_TRY(embla_directory_add(directory, "vectors", 7, &entry));
    entry->element = embla_element_of(EMBLA_F32);
    entry->rank = 2;
    entry->shape[0] = rows->count;
    entry->shape[1] = dim;
    entry->made = true;
    EMBLA_TRY(embla_entry_size(map, entry, "W1"));
    EMBLA_TRY(count_repeats(rows, &repeats));
    if (repeats > 0)
        EMBLA_TRY(embla_directory_note(
            directory, "%zu of %zu words are duplicates; the first row is used (W6)", repeats,
            rows->count));
    directory->labels = rows->labels;
    directory->label_count = rows->count;
    return EMBLA_OK;
}

embla_status embla_vec_too_few(const embla_map *map, embla_directory *directory, uint64_t wanted,
                               uint64_t found, bool lenient)
{
    if (lenient)
        return embla_directory_note(
            directory, "the header counts %" PRIu64 " rows, but there are %" PRIu64 " (W5)", wanted,
            found);
    return embla_fail(EMBLA_ERR_FORMAT,
                      "%.256s: the header counts %" PRIu64 " rows, but there are %" PRIu64 " (W5)",
                      map->name, wanted, found);
}

embla_status embla_vec_range(const embla_map *map, const embla_entry *entry, uint64_t first,
                             uint64_t count)
{
    if (first > entry->shape[0] || count > entry->shape[0] - first)
        return embla_fail(EMBLA_ERR_RANGE,
                          "%.256s: %" PRIu64 " rows from row %" PRIu64
                          " are out of range: there are %" PRIu64 " rows",
                          map->name, count, first, entry->shape[0]);
    return EMBLA_OK;
}

/* ---- writing ---- */

bool embla_vec_word_ok(const char *bytes, size_t length)
{
    if (!bytes || length < 1 || length > EMBLA_VEC_WORD_MOST) return false;
    for (size_t i = 0; i < length; i++)
        if (bytes[i] == '\0' || bytes[i] == '\n' || bytes[i] == '\r' ||
            embla_vec_separator((uint8_t)bytes[i]))
            return false;
    return true;
}

size_t embla_vec_row_most(size_t dim)
{
    return EMBLA_VEC_WORD_MOST + dim * (1 + EMBLA_DECIMAL_MOST) + 1;
}

size_t embla_vec_put_text(const char *word, size_t length, const float *values, size_t dim,
                          char *out)
{
    size_t used = length;
    memcpy(out, word, length);
    for (size_t i = 0; i < dim; i++) {
        out[used++] = ' ';
        used += embla_decimal_write(values[i], out + used);
    }
    out[used++] = '\n';
    return used;
}

/* As word2vec.c does, writes a newline after the numbers. */
size_t embla_vec_put_binary(const char *word, size_t length, const float *values, size_t dim,
                            char *out)
{
    size_t used = length;
    memcpy(out, word, length);
    out[used++] = ' ';
    memcpy(out + used, values, dim * sizeof *values);
    embla_order_turn(out + used, sizeof *values, dim);
    used += dim * sizeof *values;
    out[used++] = '\n';
    return used;
}

/* Checks that contents are one table of f32 with a size that these files can have. */
static embla_status check(const embla_contents *contents, const char *format)
{
    const embla_part *part = contents->parts;
    if (contents->count != 1)
        return embla_fail(EMBLA_ERR_SHAPE, "a %s file holds 1 table; %zu tensors cannot be written",
                          format, contents->count);
    if (part->element->dtype != EMBLA_F32 || part->rank != 2)
        return embla_fail(EMBLA_ERR_SHAPE,
                          "a %s file holds rows of F32, but '%.128s' is %s with %u dimensions",
                          format, part->name, part->element->name, (unsigned)part->rank);
    if (part->shape[0] < 1 || part->shape[0] > EMBLA_VEC_ROWS_MOST || part->shape[1] < 1 ||
        part->shape[1] > EMBLA_VEC_DIM_MOST)
        return embla_fail(
            EMBLA_ERR_SHAPE,
            "a %s file holds 1 to %d rows of 1 to %d numbers, but '%.128s' is %" PRIu64
            " x %" PRIu64,
            format, EMBLA_VEC_ROWS_MOST, EMBLA_VEC_DIM_MOST, part->name, part->shape[0],
            part->shape[1]);
    return EMBLA_OK;
}

/* Writes one row with its word, or with "#" and its number if it has no word that can be
 * written. */
static embla_status write_row(embla_durable *out, const embla_contents *contents, uint64_t row,
                              const float *values, embla_vec_put *put, char *line)
{
    size_t dim = (size_t)contents->parts->shape[1];
    const embla_name *label = row < contents->label_count ? &contents->labels[row] : NULL;
    char number[24];
    if (label && embla_vec_word_ok(label->bytes, label->length))
        return embla_durable_write(out, line, put(label->bytes, label->length, values, dim, line));
    int length = snprintf(number, sizeof number, "#%" PRIu64, row);
    return embla_durable_write(out, line, put(number, (size_t)length, values, dim, line));
}

/* Writes all rows. values has space for `some` rows of floats, line for one written row. */
static embla_status write_rows(embla_durable *out, const embla_contents *contents,
                               embla_vec_put *put, float *values, uint64_t some, char *line)
{
    const embla_part *part = contents->parts;
    size_t dim = (size_t)part->shape[1], row_bytes = dim * sizeof *values;
    for (uint64_t row = 0; row < part->shape[0]; row += some) {
        if (some > part->shape[0] - row) some = part->shape[0] - row;
        EMBLA_TRY(part->read(part->context, row * row_bytes, (size_t)some * row_bytes, values));
        embla_order_turn(values, sizeof *values, (size_t)some * dim);
        for (uint64_t i = 0; i < some; i++)
            EMBLA_TRY(write_row(out, contents, row + i, values + i * dim, put, line));
    }
    return EMBLA_OK;
}

embla_status embla_vec_write(embla_durable *out, const embla_contents *contents, const char *format,
                             bool header, embla_vec_put *put)
{
    char first[48];
    void *memory = NULL;
    EMBLA_TRY(check(contents, format));
    uint64_t rows = contents->parts->shape[0];
    size_t dim = (size_t)contents->parts->shape[1], row_bytes = dim * sizeof(float);
    uint64_t some = row_bytes < BLOCK ? BLOCK / row_bytes : 1;
    if (some > rows) some = rows;
    size_t bytes = (size_t)some * row_bytes + embla_vec_row_most(dim);
    int length = snprintf(first, sizeof first, "%" PRIu64 " %zu\n", rows, dim);
    if (header) EMBLA_TRY(embla_durable_write(out, first, (size_t)length));
    EMBLA_TRY(embla_mem_new(bytes, "rows to be written", &memory));
    embla_status status =
        write_rows(out, contents, put, memory, some, (char *)memory + (size_t)some * row_bytes);
    embla_mem_free(memory, bytes);
    return status;
}
