/* SPDX-License-Identifier: Apache-2.0 */
/* Words and vectors as word2vec's binary (rules W1, W2, W5 to W7): a line "rows dim", then for each
 * row the word, a space and dim little-endian floats. word2vec.c writes a newline after the floats,
 * gensim does not; the byte after the first row shows which it is.
 *
 * Words differ in length, so rows are not evenly spaced. Opening scans the file from word to word
 * and keeps the offset of each row's floats.
 */
#include <string.h>

#include "files/cursor.h"
#include "formats/vec.h"

/* The state of the scan. */
typedef struct {
    const embla_map *map;
    embla_directory *out;
    embla_vec_rows rows;
    embla_vec_header header;
    bool newlines; /* there is one before each word except the first */
} scan;

/* ---- opening ---- */

static embla_status read_header(embla_cursor *c, scan *s, bool lenient)
{
    const uint8_t *head;
    uint64_t have;
    EMBLA_TRY(embla_cursor_peek(c, 64, &head, &have));
    if (!embla_vec_header_of(head, (size_t)have, &s->header))
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.256s: the file (%" PRIu64 " bytes) does not begin with a line 'rows "
                          "dim' (W1)",
                          s->map->name, s->map->size);
    EMBLA_TRY(embla_vec_header_check(s->map, &s->header));
    EMBLA_TRY(embla_cursor_skip(c, s->header.length, "the header line"));
    uint64_t least = 2 + 4 * s->header.dim; /* a byte of word, a space, the floats */
    if (s->header.rows > embla_cursor_left(c) / least && !lenient)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.256s: the header counts %" PRIu64 " rows, each of at least %" PRIu64
                          " bytes, but only %" PRIu64 " bytes are left (W1)",
                          s->map->name, s->header.rows, least, embla_cursor_left(c));
    return EMBLA_OK;
}

static embla_status refuse_word(const scan *s, const char *what, uint64_t at)
{
    return embla_fail(EMBLA_ERR_FORMAT,
                      "%.256s: row %zu at byte %" PRIu64 " %s; a word has 1 to %d bytes, and a "
                      "space follows it (W2)",
                      s->map->name, s->rows.count, at, what, EMBLA_VEC_WORD_MOST);
}

/* Scans one row, without the newline that may come before it. */
static embla_status scan_row(scan *s, embla_cursor *c)
{
    const uint8_t *word;
    uint64_t have, bytes = 4 * s->header.dim, at = c->at;
    EMBLA_TRY(embla_cursor_peek(c, EMBLA_VEC_WORD_MOST + 1, &word, &have));
    const uint8_t *space = memchr(word, ' ', (size_t)have);
    if (!space && have <= EMBLA_VEC_WORD_MOST)
        return refuse_word(s, "ends inside its word, with the file", at);
    if (!space) return refuse_word(s, "has a word that is too long", at);
    if (space == word) return refuse_word(s, "has an empty word", at);
    size_t length = (size_t)(space - word);
    EMBLA_TRY(embla_vec_add(s->out, &s->rows, word, length, at + length + 1));
    EMBLA_TRY(embla_cursor_skip(c, length + 1, "a word"));
    if (bytes > embla_cursor_left(c))
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.256s: row %zu needs %" PRIu64 " bytes of numbers, but only %" PRIu64
                          " are left (W2)",
                          s->map->name, s->rows.count - 1, bytes, embla_cursor_left(c));
    return embla_cursor_skip(c, bytes, "a row");
}

/* *out becomes true if the next byte is a newline that is not the word "\n". */
static embla_status find_newline(embla_cursor *c, bool *out)
{
    const uint8_t *next;
    uint64_t have;
    *out = false;
    if (embla_cursor_left(c) == 0) return EMBLA_OK;
    EMBLA_TRY(embla_cursor_peek(c, 2, &next, &have));
    *out = next[0] == '\n' && (have < 2 || next[1] != ' ');
    return EMBLA_OK;
}

/* Skips the newline before a row, or after the last row. */
static embla_status skip_newline(scan *s, embla_cursor *c)
{
    uint8_t byte;
    EMBLA_TRY(embla_cursor_u8(c, "a newline", &byte));
    if (byte == '\n') return EMBLA_OK;
    return embla_fail(EMBLA_ERR_FORMAT,
                      "%.256s: row %zu at byte %" PRIu64
                      " begins with 0x%02x; a newline is expected there, as after row 0 (W2)",
                      s->map->name, s->rows.count, c->at - 1, byte);
}

static embla_status scan_rows(scan *s, embla_cursor *c)
{
    const uint8_t *next;
    uint64_t have;
    while (s->rows.count < s->header.rows && embla_cursor_left(c) > 0) {
        if (s->newlines) EMBLA_TRY(skip_newline(s, c));
        if (s->newlines && embla_cursor_left(c) == 0) return EMBLA_OK;
        EMBLA_TRY(scan_row(s, c));
        if (s->rows.count == 1) EMBLA_TRY(find_newline(c, &s->newlines));
    }
    if (embla_cursor_left(c) == 0) return EMBLA_OK;
    EMBLA_TRY(embla_cursor_peek(c, 1, &next, &have));
    if (embla_cursor_left(c) == 1 && *next == '\n') return EMBLA_OK;
    return embla_fail(EMBLA_ERR_FORMAT,
                      "%.256s: %" PRIu64 " bytes follow the %" PRIu64
                      " rows that the header counts (W5)",
                      s->map->name, embla_cursor_left(c), s->header.rows);
}

/* ---- rows ---- */

static embla_status make_rows(const uint64_t *offsets, embla_cursor *c, uint64_t count,
                              uint64_t bytes, uint8_t *out)
{
    for (uint64_t i = 0; i < count; i++) {
        const uint8_t *numbers;
        EMBLA_TRY(embla_cursor_skip(c, offsets[i] - c->at, "a word"));
        EMBLA_TRY(embla_cursor_bytes(c, bytes, "a row", &numbers));
        memcpy(out + i * bytes, numbers, (size_t)bytes);
    }
    return EMBLA_OK;
}

static embla_status make(const embla_directory *directory, const embla_map *map,
                         const embla_entry *entry, uint64_t first, uint64_t count, void *out)
{
    const uint64_t *offsets = directory->state;
    embla_cursor c;
    EMBLA_TRY(embla_vec_range(map, entry, first, count));
    if (count == 0) return EMBLA_OK;
    embla_cursor_begin(&c, map, offsets[first]);
    embla_status status = make_rows(offsets + first, &c, count, 4 * entry->shape[1], out);
    embla_cursor_end(&c);
    return status;
}

/* ---- the format ---- */

static bool sniff(const uint8_t *head, size_t have, uint64_t size)
{
    return embla_vec_kind_of(head, have, size) == EMBLA_VEC_BINARY;
}

static embla_status scan_all(scan *s, embla_cursor *c, bool lenient)
{
    bool newline = false;
    EMBLA_TRY(read_header(c, s, lenient));
    EMBLA_TRY(find_newline(c, &newline));
    if (newline) EMBLA_TRY(embla_cursor_skip(c, 1, "a newline"));
    EMBLA_TRY(scan_rows(s, c));
    if (s->rows.count < s->header.rows)
        EMBLA_TRY(embla_vec_too_few(s->map, s->out, s->header.rows, s->rows.count, lenient));
    EMBLA_TRY(embla_vec_finish(s->map, s->out, &s->rows, s->header.dim));
    s->out->state = s->rows.offsets;
    s->out->make = make;
    return EMBLA_OK;
}

static embla_status read_bin(embla_map *map, const embla_open_options *options,
                             embla_directory *out)
{
    scan s = {.map = map, .out = out};
    embla_cursor c;
    out->format = embla_format_word2vec_bin.name;
    embla_cursor_begin(&c, map, 0);
    embla_status status = scan_all(&s, &c, options && options->lenient);
    embla_cursor_end(&c);
    return status;
}

static embla_status write_bin(embla_durable *out, const embla_contents *contents)
{
    return embla_vec_write(out, contents, embla_format_word2vec_bin.name, true,
                           embla_vec_put_binary);
}

const embla_format embla_format_word2vec_bin = {.name = "word2vec-bin",
                                                .extension = ".w2v",
                                                .one_table = true,
                                                .no_model = true,
                                                .sniff = sniff,
                                                .read = read_bin,
                                                .write = write_bin,
                                                .labels = EMBLA_LABELS_ROWS,
                                                .only = EMBLA_F32};
