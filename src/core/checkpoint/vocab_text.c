/* SPDX-License-Identifier: Apache-2.0 */
/* One word on each line: BERT's vocab.txt, and our own NAME.vocab.txt. Ours has a special first
 * line and can hold any bytes.
 *
 *   #embla-vocab 1
 *   the
 *   a\nb        escapes: \n \r \\ \xHH
 *   \-          this row has no word
 *
 * Line i, from 0 and without our first line, is token i. An empty line is an empty word. The last
 * newline may be missing. If the first line ends with CR LF, all lines do.
 */
#include <string.h>

#include "base/byte_text.h"
#include "base/utf8.h"
#include "checkpoint/vocab.h"
#include "files/cursor.h"

static const char first_line[] = "#embla-vocab 1";
enum { FIRST_LENGTH = sizeof first_line - 1, LINE_MOST = 4 * EMBLA_WORD_BYTES }; /* \xHH is 4 */

/* ---- reading ---- */

typedef struct {
    const uint8_t *bytes; /* valid until the next line */
    size_t length;        /* without its newline */
} line;

/* Reads the next line; the caller has checked that there is one. */
static embla_status next_line(embla_cursor *c, line *out)
{
    for (uint64_t wanted = 4096;; wanted *= 2) {
        const uint8_t *bytes = NULL;
        uint64_t have = 0;
        bool last = wanted >= embla_cursor_left(c); /* the peek reaches the end of the file */
        EMBLA_TRY(embla_cursor_peek(c, wanted, &bytes, &have));
        const uint8_t *newline = memchr(bytes, '\n', (size_t)have);
        if (newline || last) {
            *out = (line){bytes, newline ? (size_t)(newline - bytes) : (size_t)have};
            return embla_cursor_skip(c, out->length + (newline != NULL), "a line");
        }
        if (have > LINE_MOST)
            return embla_fail(EMBLA_ERR_FORMAT,
                              "%.256s: the line at byte %" PRIu64 " is longer than %d bytes (T1)",
                              c->map->name, c->at, LINE_MOST);
    }
}

static bool strip_cr(line *l)
{
    if (l->length == 0 || l->bytes[l->length - 1] != '\r') return false;
    l->length--;
    return true;
}

static embla_status check_text(const embla_map *map, uint64_t number, const line *l)
{
    size_t valid = embla_utf8_valid(l->bytes, l->length);
    if (valid < l->length)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.256s: line %" PRIu64 ", byte %zu of %zu: not valid UTF-8 (T1)",
                          map->name, number + 1, valid, l->length);
    if (memchr(l->bytes, 0, l->length))
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.256s: line %" PRIu64
                          " (%zu bytes) contains a 0 byte: the file is not text (T1)",
                          map->name, number + 1, l->length);
    return EMBLA_OK;
}

/* Decodes the escapes of a line to out and counts the bytes; out NULL means only count. Returns
 * false if there is an unknown escape. */
static bool unescape(const line *l, char *out, size_t *length)
{
    const uint8_t *p = l->bytes, *end = p + l->length;
    size_t count = 0;
    while (p < end) {
        int c = *p++;
        if (c == '\\') {
            int letter = p < end ? *p++ : 0;
            if (letter == 'x' && end - p >= 2 && embla_hex_digit((char)p[0]) >= 0 &&
                embla_hex_digit((char)p[1]) >= 0) {
                c = embla_hex_digit((char)p[0]) << 4 | embla_hex_digit((char)p[1]);
                p += 2;
            } else if (letter == 'n' || letter == 'r' || letter == '\\') {
                c = letter == 'n' ? '\n' : letter == 'r' ? '\r' : '\\';
            } else {
                return false;
            }
        }
        if (out) out[count] = (char)c;
        count++;
    }
    *length = count;
    return true;
}

/* Adds the word of a line of our own format. */
static embla_status add_escaped(const embla_map *map, embla_vocab *vocab, uint64_t token,
                                const line *l)
{
    size_t length = 0;
    char *room = NULL;
    if (l->length == 2 && memcmp(l->bytes, "\\-", 2) == 0) return EMBLA_OK;
    if (!unescape(l, NULL, &length))
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.256s: line %" PRIu64
                          ": invalid escape; valid are \\n, \\r, \\\\ and \\xHH (V1)",
                          map->name, token + 2);
    EMBLA_TRY(embla_vocab_room(vocab, token, length, &room));
    (void)unescape(l, room, &length);
    return EMBLA_OK;
}

static bool is_first_line(const line *l)
{
    return l->length == FIRST_LENGTH && memcmp(l->bytes, first_line, FIRST_LENGTH) == 0;
}

static embla_status read_lines(embla_cursor *c, embla_vocab *vocab)
{
    bool ours = false, crlf = false;
    uint64_t token = 0;
    for (uint64_t number = 0; embla_cursor_left(c) > 0; number++) {
        line l;
        EMBLA_TRY(next_line(c, &l));
        bool stripped = (number == 0 || crlf || ours) && strip_cr(&l);
        if (number == 0) {
            crlf = stripped;
            ours = is_first_line(&l);
            if (ours) continue;
        }
        EMBLA_TRY(check_text(c->map, number, &l));
        if (ours)
            EMBLA_TRY(add_escaped(c->map, vocab, token++, &l));
        else
            EMBLA_TRY(embla_vocab_add(vocab, token++, l.bytes, l.length));
    }
    return EMBLA_OK;
}

embla_status embla_vocab_text(embla_map *map, embla_vocab *vocab)
{
    embla_cursor cursor;
    embla_cursor_begin(&cursor, map, 0);
    embla_status status = read_lines(&cursor, vocab);
    embla_cursor_end(&cursor);
    return status;
}

bool embla_vocab_text_sniff(const uint8_t *head, size_t have)
{
    if (have < FIRST_LENGTH || memcmp(head, first_line, FIRST_LENGTH) != 0) return false;
    return have == FIRST_LENGTH || head[FIRST_LENGTH] == '\n' || head[FIRST_LENGTH] == '\r';
}

/* ---- writing ---- */

/* Returns the escape of the byte at p, or NULL if its character of *length bytes is written
 * unchanged. */
static const char *escape_of(const uint8_t *p, size_t left, char room[5], size_t *length)
{
    static const char digits[] = "0123456789abcdef";
    *length = embla_utf8_length(p, left);
    if (*p == '\n') return "\\n";
    if (*p == '\r') return "\\r";
    if (*p == '\\') return "\\\\";
    if (*length > 0 && *p >= 0x20 && *p != 0x7f) return NULL;
    memcpy(room, "\\x", 2);
    room[2] = digits[*p >> 4];
    room[3] = digits[*p & 15];
    room[4] = '\0';
    *length = 1;
    return room;
}

/* The destination of the text. */
typedef struct {
    embla_vocab_sink *write;
    void *context;
} sink;

static embla_status append(const sink *to, const void *bytes, size_t count)
{
    return count > 0 ? to->write(to->context, bytes, count) : EMBLA_OK;
}

static embla_status append_word(const sink *to, const embla_name *word)
{
    const uint8_t *bytes = (const uint8_t *)word->bytes;
    size_t begin = 0, length = 0; /* bytes from begin are written unchanged */
    char room[5];
    for (size_t at = 0; at < word->length; at += length) {
        const char *escape = escape_of(bytes + at, word->length - at, room, &length);
        if (!escape) continue;
        EMBLA_TRY(append(to, bytes + begin, at - begin));
        EMBLA_TRY(append(to, escape, strlen(escape)));
        begin = at + length;
    }
    EMBLA_TRY(append(to, bytes + begin, word->length - begin));
    return append(to, "\n", 1);
}

embla_status embla_vocab_write_to(embla_vocab_sink *write, void *context, const embla_name *labels,
                                  size_t count)
{
    const sink to = {write, context};
    EMBLA_TRY(append(&to, first_line, FIRST_LENGTH));
    EMBLA_TRY(append(&to, "\n", 1));
    for (size_t i = 0; i < count; i++) {
        if (labels[i].bytes)
            EMBLA_TRY(append_word(&to, &labels[i]));
        else
            EMBLA_TRY(append(&to, "\\-\n", 3));
    }
    return EMBLA_OK;
}

static embla_status to_durable(void *context, const void *bytes, size_t count)
{
    return embla_durable_write(context, bytes, count);
}

embla_status embla_vocab_write(embla_durable *out, const embla_name *labels, size_t count)
{
    return embla_vocab_write_to(to_durable, out, labels, count);
}
