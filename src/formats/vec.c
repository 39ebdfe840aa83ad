/* SPDX-License-Identifier: Apache-2.0 */
/* Words and vectors as text (rules W1, W3 to W7): a line for each word, "the 0.1 -0.2 ..".
 * word2vec and fastText begin with a line "rows dim"; GloVe begins at once.
 *
 * Opening passes over the file once, a window at a time: it finds where lines begin, counts
 * their fields and keeps their words. Numbers are read when rows are asked for, so that a file
 * larger than memory opens. A number that cannot be read is refused there, with its row
 * and column; one that is too large for a float becomes an infinity, and there is no one to
 * tell: a look at the table's values finds it.
 */
#include <string.h>

#include "files/cursor.h"
#include "files/decimal.h"
#include "formats/vec.h"

enum { CHUNK = 256 << 10 }; /* bytes looked at at once; more where a line may be longer */

typedef struct {
    const uint64_t *offsets; /* of the lines */
    uint64_t end;            /* of the last of them */
} lines;

/* What is known while the file is passed over. */
typedef struct {
    const embla_map *map;
    embla_directory *out;
    embla_vec_rows rows;
    uint64_t dim;
    uint64_t due;     /* rows by the header; 0: there is none */
    uint64_t longest; /* bytes of a line */
    uint64_t end;     /* of the last line that is a row */
} scan;

static uint64_t line_most(uint64_t dim)
{
    return 1024 + 40 * dim;
}

/* ---- opening ---- */

/* Lines are counted from 1, as editors do. */
static uint64_t line_number(const scan *s)
{
    return s->rows.count + (s->due > 0 ? 2 : 1);
}

static embla_status too_long(const scan *s, uint64_t length)
{
    return embla_fail(EMBLA_ERR_FORMAT,
                      "%.256s: line %" PRIu64 " has %" PRIu64 " bytes or more, and %" PRIu64
                      " are the most for %" PRIu64 " numbers (W3)",
                      s->map->name, line_number(s), length, s->longest, s->dim);
}

/* One line, its newline included; offset is where it begins. */
static embla_status take_line(scan *s, const uint8_t *line, uint64_t length, uint64_t offset)
{
    bool last = offset + length == s->map->size;
    if (length - (line[length - 1] == '\n') > s->longest) return too_long(s, length);
    size_t trimmed = embla_vec_trimmed(line, (size_t)length);
    if (trimmed == 0 && last) return EMBLA_OK;
    uint64_t most = s->due > 0 ? s->due : EMBLA_VEC_ROWS_MOST;
    if (s->rows.count == most)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.256s: line %" PRIu64 " is one more than the %" PRIu64 " rows that %s",
                          s->map->name, line_number(s), most,
                          s->due > 0 ? "the header says (W5)" : "are read (W1)");
    size_t word = embla_vec_word_length(line, trimmed, s->dim);
    if (word == 0)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.256s: line %" PRIu64 " has %" PRIu64 " fields; a word and %" PRIu64
                          " numbers are due (W3)",
                          s->map->name, line_number(s), embla_vec_fields(line, trimmed), s->dim);
    s->end = offset + length;
    return embla_vec_add(s->out, &s->rows, line, word, offset);
}

/* All lines from the cursor on. */
static embla_status take_lines(scan *s, embla_cursor *c)
{
    uint64_t chunk = s->longest + 1 > CHUNK ? s->longest + 1 : CHUNK;
    while (embla_cursor_left(c) > 0) {
        const uint8_t *bytes;
        uint64_t have, used = 0;
        EMBLA_TRY(embla_cursor_peek(c, chunk, &bytes, &have));
        while (used < have) {
            const uint8_t *newline = memchr(bytes + used, '\n', (size_t)(have - used));
            if (!newline && have < embla_cursor_left(c)) break; /* goes on after the window */
            uint64_t length = newline ? (uint64_t)(newline - bytes) + 1 - used : have - used;
            EMBLA_TRY(take_line(s, bytes + used, length, c->at + used));
            used += length;
        }
        if (used == 0) return too_long(s, have);
        EMBLA_TRY(embla_cursor_skip(c, used, "lines"));
    }
    return EMBLA_OK;
}

static embla_status make(const embla_directory *directory, const embla_map *map,
                         const embla_entry *entry, uint64_t first, uint64_t count, void *out);

static embla_status take_all(scan *s, embla_cursor *c, bool lenient)
{
    void *memory = NULL;
    EMBLA_TRY(take_lines(s, c));
    if (s->rows.count < s->due)
        EMBLA_TRY(embla_vec_too_few(s->map, s->out, s->due, s->rows.count, lenient));
    EMBLA_TRY(embla_vec_finish(s->map, s->out, &s->rows, s->dim));
    EMBLA_TRY(embla_arena_take(&s->out->arena, sizeof(lines), "lines", &memory));
    lines *found = memory;
    *found = (lines){s->rows.offsets, s->end};
    s->out->state = found;
    s->out->make = make;
    return EMBLA_OK;
}

/* The numbers of a row where no header says it: the fields of the first line but one. */
static embla_status first_line(embla_cursor *c, uint64_t *dim)
{
    const uint8_t *line;
    uint64_t have;
    EMBLA_TRY(embla_cursor_peek(c, line_most(EMBLA_VEC_DIM_MOST) + 1, &line, &have));
    const uint8_t *newline = memchr(line, '\n', (size_t)have);
    size_t length = embla_vec_trimmed(line, newline ? (size_t)(newline - line) : (size_t)have);
    uint64_t fields = embla_vec_fields(line, length);
    if (fields < 3 || fields - 1 > EMBLA_VEC_DIM_MOST || (!newline && have < embla_cursor_left(c)))
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.256s: the first line, %zu bytes, has %" PRIu64
                          " fields; a word and 2 to %d numbers are due (W1)",
                          c->map->name, length, fields, EMBLA_VEC_DIM_MOST);
    *dim = fields - 1;
    return EMBLA_OK;
}

static embla_status read_glove(embla_map *map, const embla_open_options *options,
                               embla_directory *out)
{
    scan s = {.map = map, .out = out};
    embla_cursor c;
    (void)options; /* nothing is said that could be wrong */
    out->format = embla_format_glove.name;
    embla_cursor_begin(&c, map, 0);
    embla_status status = first_line(&c, &s.dim);
    s.longest = line_most(s.dim);
    if (status == EMBLA_OK) status = take_all(&s, &c, false);
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
                          "%.256s: the first of %" PRIu64 " bytes are no header line 'rows dim' "
                          "(W1)",
                          s->map->name, s->map->size);
    EMBLA_TRY(embla_vec_header_check(s->map, &header));
    s->due = header.rows;
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
    if (status == EMBLA_OK) status = take_all(&s, &c, options && options->lenient);
    embla_cursor_end(&c);
    return status;
}

/* ---- rows ---- */

static embla_status no_number(const embla_map *map, uint64_t row, uint64_t column,
                              const uint8_t *from, const uint8_t *end)
{
    int length = 0;
    while (from + length < end && length < 64 && !embla_vec_separator(from[length])) length++;
    return embla_fail(EMBLA_ERR_FORMAT,
                      "%.256s: row %" PRIu64 ", column %" PRIu64 ": '%.*s' is no number (W4)",
                      map->name, row, column, length, (const char *)from);
}

/* dim numbers of a line, from where its word ends. */
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
            return no_number(map, row, column, field, end);
        memcpy(out, &value, sizeof value); /* out may lie anywhere */
        p = after;
    }
    if (p != end)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.256s: row %" PRIu64 ": more than %" PRIu64 " numbers (W3)", map->name,
                          row, dim);
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
        if (word > length) word = length; /* the file has changed since it was opened */
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
                          "glove has 2 numbers in a row or more, and '%.128s' has %" PRIu64
                          ": a file of word2vec holds it",
                          contents->parts->name, contents->parts->shape[1]);
    return embla_vec_write(out, contents, embla_format_glove.name, false, embla_vec_put_text);
}

const embla_format embla_format_word2vec = {.name = "word2vec",
                                            .extension = ".vec",
                                            .one_table = true,
                                            .sniff = sniff_word2vec,
                                            .read = read_word2vec,
                                            .write = write_word2vec};
const embla_format embla_format_glove = {.name = "glove",
                                         .extension = ".txt",
                                         .one_table = true,
                                         .sniff = sniff_glove,
                                         .read = read_glove,
                                         .write = write_glove};
