/* SPDX-License-Identifier: Apache-2.0 */
/* Words and vectors as text (rules W1, W3 to W7): one line for each word, "the 0.1 -0.2 ..".
 * word2vec and fastText begin with a line "rows dim"; GloVe has no such line.
 *
 * Opening scans the file once, one window at a time: it finds the beginning of each line, counts
 * its fields and copies its word. Numbers are parsed when rows are read, so a file larger than
 * memory can be opened. A field that is not a number is refused then, with its row and column. A
 * number too large for a float becomes an infinity without a message; a check of the table's values
 * (embla_health) finds it.
 */
#include <string.h>

#include "base/byte_order.h"
#include "files/cursor.h"
#include "files/decimal.h"
#include "formats/vec.h"

enum { CHUNK = 256 << 10 }; /* bytes scanned at a time; more if a line may be longer */

typedef struct {
    const uint64_t *offsets; /* of the lines */
    uint64_t end;            /* offset of the end of the last line */
} lines;

/* The state of the scan. */
typedef struct {
    const embla_map *map;
    embla_directory *out;
    embla_vec_rows rows;
    uint64_t dim;
    uint64_t wanted;  /* rows according to the header; 0 means there is no header */
    uint64_t longest; /* the most bytes of a line */
    uint64_t end;     /* offset of the end of the last line that is a row */
} scan;

static uint64_t line_most(uint64_t dim)
{
    return 1024 + 40 * dim;
}

/* ---- opening ---- */

/* Lines are counted from 1, as editors do. */
static uint64_t line_number(const scan *s)
{
    return s->rows.count + (s->wanted > 0 ? 2 : 1);
}

static embla_status too_long(const scan *s, uint64_t length)
{
    return embla_fail(EMBLA_ERR_FORMAT,
                      "%.256s: line %" PRIu64 " has at least %" PRIu64
                      " bytes; the limit is %" PRIu64 " for %" PRIu64 " numbers (W3)",
                      s->map->name, line_number(s), length, s->longest, s->dim);
}

/* Adds the row of one line. length includes the newline; offset is that of the line. */
static embla_status scan_line(scan *s, const uint8_t *line, uint64_t length, uint64_t offset)
{
    bool last = offset + length == s->map->size;
    if (length - (line[length - 1] == '\n') > s->longest) return too_long(s, length);
    size_t trimmed = embla_vec_trimmed(line, (size_t)length);
    if (trimmed == 0 && last) return EMBLA_OK;
    uint64_t most = s->wanted > 0 ? s->wanted : EMBLA_VEC_ROWS_MOST;
    if (s->rows.count == most)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.256s: line %" PRIu64 " is one more than the %" PRIu64 " rows %s",
                          s->map->name, line_number(s), most,
                          s->wanted > 0 ? "that the header counts (W5)" : "of the limit (W1)");
    size_t word = embla_vec_word_length(line, trimmed, s->dim);
    if (word == 0)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.256s: line %" PRIu64 " has %" PRIu64
                          " fields; it must have a word and %" PRIu64 " numbers (W3)",
                          s->map->name, line_number(s), embla_vec_fields(line, trimmed), s->dim);
    s->end = offset + length;
    return embla_vec_add(s->out, &s->rows, line, word, offset);
}

/* Scans all lines from the cursor to the end. */
static embla_status scan_lines(scan *s, embla_cursor *c)
{
    uint64_t chunk = s->longest + 1 > CHUNK ? s->longest + 1 : CHUNK;
    while (embla_cursor_left(c) > 0) {
        const uint8_t *bytes;
        uint64_t have, used = 0;
        EMBLA_TRY(embla_cursor_peek(c, chunk, &bytes, &have));
        while (used < have) {
            const uint8_t *newline = memchr(bytes + used, '\n', (size_t)(have - used));
            if (!newline && have < embla_cursor_left(c)) break; /* the line exceeds the window */
            uint64_t length = newline ? (uint64_t)(newline - bytes) + 1 - used : have - used;
            EMBLA_TRY(scan_line(s, bytes + used, length, c->at + used));
            used += length;
        }
        if (used == 0) return too_long(s, have);
        EMBLA_TRY(embla_cursor_skip(c, used, "lines"));
    }
    return EMBLA_OK;
}

static embla_status make(const embla_directory *directory, const embla_map *map,
                         const embla_entry *entry, uint64_t first, uint64_t count, void *out);

static embla_status scan_all(scan *s, embla_cursor *c, bool lenient)
{
    void *memory = NULL;
    EMBLA_TRY(scan_lines(s, c));
    if (s->rows.count < s->wanted)
        EMBLA_TRY(embla_vec_too_few(s->map, s->out, s->wanted, s->rows.count, lenient));
    EMBLA_TRY(embla_vec_finish(s->map, s->out, &s->rows, s->dim));
    EMBLA_TRY(embla_arena_take(&s->out->arena, sizeof(lines), "lines", &memory));
    lines *found = memory;
    *found = (lines){s->rows.offsets, s->end};
    s->out->state = found;
    s->out->make = make;
    return EMBLA_OK;
}

/* Refuses a second line that is a word and more numbers than the first has. Words may have spaces,
 * so every line after a short first one would otherwise get its first number as part of its word.
 */
static embla_status check_second(const embla_map *map, const uint8_t *line, size_t have,
                                 uint64_t dim)
{
    uint64_t count = 0;
    const uint8_t *newline = memchr(line, '\n', have);
    size_t length = embla_vec_trimmed(line, newline ? (size_t)(newline - line) : 0);
    if (!embla_vec_numbers(line, length, &count) || count <= dim) return EMBLA_OK;
    return embla_fail(EMBLA_ERR_FORMAT,
                      "%.256s: line 1 has a word and %" PRIu64 " numbers, but line 2 a word and "
                      "%" PRIu64 " numbers; each line must have as many (W3)",
                      map->name, dim, count);
}

/* Finds dim without a header: the number of fields of the first line, minus one. */
static embla_status find_dim(embla_cursor *c, uint64_t *dim)
{
    const uint8_t *line;
    uint64_t have;
    EMBLA_TRY(embla_cursor_peek(c, line_most(EMBLA_VEC_DIM_MOST) + 1, &line, &have));
    const uint8_t *newline = memchr(line, '\n', (size_t)have);
    size_t length = embla_vec_trimmed(line, newline ? (size_t)(newline - line) : (size_t)have);
    uint64_t fields = embla_vec_fields(line, length);
    if (fields < 3 || fields - 1 > EMBLA_VEC_DIM_MOST || (!newline && have < embla_cursor_left(c)))
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.256s: the first line (%zu bytes) has %" PRIu64
                          " fields; it must have a word and 2 to %d numbers (W1)",
                          c->map->name, length, fields, EMBLA_VEC_DIM_MOST);
    *dim = fields - 1;
    return newline ? check_second(c->map, newline + 1, (size_t)(line + have - newline) - 1, *dim)
                   : EMBLA_OK;
}

static embla_status read_glove(embla_map *map, const embla_open_options *options,
                               embla_directory *out)
{
    scan s = {.map = map, .out = out};
    embla_cursor c;
    (void)options; /* without a header there is nothing for lenient to ignore */
    out->format = embla_format_glove.name;
    embla_cursor_begin(&c, map, 0);
    embla_status status = find_dim(&c, &s.dim);
    s.longest = line_most(s.dim);
    if (status == EMBLA_OK) status = scan_all(&s, &c, false);
    embla_cursor_end(&c);
    return status;
}

static embla_status read_header(embla_cursor *c, scan *s)
{
    embla_vec_header header;
    const uint8_t *head;
    uint64_t have;
    EMBLA_TRY(embla_cursor_peek(c, 64, &head, &have));
    if (!embla_vec_header_of(head, (size_t)have, &header))
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.256s: the file (%" PRIu64 " bytes) does not begin with a line 'rows "
                          "dim' (W1)",
                          s->map->name, s->map->size);
    EMBLA_TRY(embla_vec_header_check(s->map, &header));
    s->wanted = header.rows;
    s->dim = header.dim;
    s->longest = line_most(header.dim);
    return embla_cursor_skip(c, header.length, "the header line");
}

static embla_status read_word2vec(embla_map *map, const embla_open_options *options,
                                  embla_directory *out)
{
    scan s = {.map = map, .out = out};
    embla_cursor c;
    out->format = embla_format_word2vec.name;
    embla_cursor_begin(&c, map, 0);
    embla_status status = read_header(&c, &s);
    if (status == EMBLA_OK) status = scan_all(&s, &c, options && options->lenient);
    embla_cursor_end(&c);
    return status;
}

/* ---- rows ---- */

static embla_status refuse_number(const embla_map *map, uint64_t row, uint64_t column,
                                  const uint8_t *from, const uint8_t *end)
{
    int length = 0;
    while (from + length < end && length < 64 && !embla_vec_separator(from[length])) length++;
    return embla_fail(EMBLA_ERR_FORMAT,
                      "%.256s: row %" PRIu64 ", column %" PRIu64 ": '%.*s' is not a number (W4)",
                      map->name, row, column, length, (const char *)from);
}

/* Parses the dim numbers of a line; from is the end of its word. */
static embla_status read_numbers(const embla_map *map, uint64_t row, const uint8_t *from,
                                 const uint8_t *end, uint64_t dim, uint8_t *out)
{
    const uint8_t *p = from;
    for (uint64_t column = 0; column < dim; column++, out += sizeof(float)) {
        float value = 0.0f;
        const uint8_t *field = p;
        while (field < end && embla_vec_separator(*field)) field++;
        const uint8_t *after = embla_decimal_read(field, end, &value);
        if (!after || field == p || (after < end && !embla_vec_separator(*after)))
            return refuse_number(map, row, column, field, end);
        embla_order_turn(&value, sizeof value, 1);
        memcpy(out, &value, sizeof value); /* out may be unaligned */
        p = after;
    }
    if (p != end)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.256s: row %" PRIu64 " has more than %" PRIu64 " numbers (W3)",
                          map->name, row, dim);
    return EMBLA_OK;
}

static embla_status make_rows(const embla_directory *directory, embla_cursor *c, uint64_t dim,
                              uint64_t first, uint64_t count, uint8_t *out)
{
    const lines *l = directory->state;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t row = first + i;
        uint64_t next = row + 1 < directory->label_count ? l->offsets[row + 1] : l->end;
        const uint8_t *line;
        EMBLA_TRY(embla_cursor_bytes(c, next - l->offsets[row], "a row", &line));
        size_t length = embla_vec_trimmed(line, (size_t)(next - l->offsets[row]));
        size_t word = directory->labels[row].length;
        if (word > length) word = length; /* only if the file has changed since it was opened */
        EMBLA_TRY(read_numbers(c->map, row, line + word, line + length, dim,
                               out + i * dim * sizeof(float)));
    }
    return EMBLA_OK;
}

static embla_status make(const embla_directory *directory, const embla_map *map,
                         const embla_entry *entry, uint64_t first, uint64_t count, void *out)
{
    const lines *l = directory->state;
    embla_cursor c;
    EMBLA_TRY(embla_vec_range(map, entry, first, count));
    if (count == 0) return EMBLA_OK;
    embla_cursor_begin(&c, map, l->offsets[first]);
    embla_status status = make_rows(directory, &c, entry->shape[1], first, count, out);
    embla_cursor_end(&c);
    return status;
}

/* ---- the two formats ---- */

static bool sniff_word2vec(const uint8_t *head, size_t have, uint64_t size)
{
    return embla_vec_kind_of(head, have, size) == EMBLA_VEC_TEXT;
}

static bool sniff_glove(const uint8_t *head, size_t have, uint64_t size)
{
    return embla_vec_kind_of(head, have, size) == EMBLA_VEC_GLOVE;
}

static embla_status write_word2vec(embla_durable *out, const embla_contents *contents)
{
    return embla_vec_write(out, contents, embla_format_word2vec.name, true, embla_vec_put_text);
}

static embla_status write_glove(embla_durable *out, const embla_contents *contents)
{
    if (contents->count == 1 && contents->parts->rank == 2 && contents->parts->shape[1] < 2)
        return embla_fail(EMBLA_ERR_SHAPE,
                          "glove needs at least 2 numbers in a row, but '%.128s' has %" PRIu64
                          "; write it as word2vec",
                          contents->parts->name, contents->parts->shape[1]);
    return embla_vec_write(out, contents, embla_format_glove.name, false, embla_vec_put_text);
}

const embla_format embla_format_word2vec = {.name = "word2vec",
                                            .extension = ".vec",
                                            .one_table = true,
                                            .no_model = true,
                                            .sniff = sniff_word2vec,
                                            .read = read_word2vec,
                                            .write = write_word2vec,
                                            .decimals = true,
                                            .labels = EMBLA_LABELS_ROWS,
                                            .only = EMBLA_F32};
const embla_format embla_format_glove = {.name = "glove",
                                         .extension = ".txt",
                                         .one_table = true,
                                         .no_model = true,
                                         .sniff = sniff_glove,
                                         .read = read_glove,
                                         .write = write_glove,
                                         .decimals = true,
                                         .labels = EMBLA_LABELS_ROWS,
                                         .only = EMBLA_F32};
