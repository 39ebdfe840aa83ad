/* SPDX-License-Identifier: Apache-2.0 */
/* Files of words and vectors, what the three kinds share: word2vec's text (fastText's .vec is
 * the same), GloVe's text, which has no header line, and word2vec's binary (rules W1 to W7).
 *
 *   vec_words.c   header line, which kind a file is, the words as labels, rows to be written
 *   vec.c         the two kinds of text
 *   vec_bin.c     binary
 *
 * A word is bytes, whatever they are; it need not be UTF-8. Rows stay where they are: a
 * directory holds the words and where each row begins.
 */
#ifndef EMBLA_FORMATS_VEC_H
#define EMBLA_FORMATS_VEC_H

#include "formats/format.h"

enum { EMBLA_VEC_DIM_MOST = 65536, EMBLA_VEC_WORD_MOST = 1024 };
#define EMBLA_VEC_ROWS_MOST INT32_MAX

/* ---- reading ---- */

/* The first line: "rows dim". */
typedef struct {
    uint64_t rows, dim;
    size_t length; /* bytes of the line, its newline included */
} embla_vec_header;

/* Whether head begins with such a line; its numbers may still be too large, see
 * embla_vec_header_check. */
bool embla_vec_header_of(const uint8_t *head, size_t have, embla_vec_header *out);
/* 1 .. 2^31-1 rows of 1 .. 65,536 numbers (W1). */
EMBLA_CHECKED embla_status embla_vec_header_check(const embla_map *map,
                                                  const embla_vec_header *header);

typedef enum {
    EMBLA_VEC_NONE,
    EMBLA_VEC_TEXT,  /* header line, then decimal numbers */
    EMBLA_VEC_GLOVE, /* decimal numbers */
    EMBLA_VEC_BINARY /* header line, then bytes */
} embla_vec_kind;

/* Which of them a file of size bytes is, by its first bytes. */
embla_vec_kind embla_vec_kind_of(const uint8_t *head, size_t have, uint64_t size);

/* What stands between fields: these two bytes, and none that Unicode calls a space (W3). */
static inline bool embla_vec_separator(uint8_t c)
{
    return c == ' ' || c == '\t';
}

/* A line of text without its end: newline, carriage return, spaces and tabs. */
size_t embla_vec_trimmed(const uint8_t *line, size_t length);
/* Fields of a trimmed line. */
uint64_t embla_vec_fields(const uint8_t *line, size_t length);
/* Bytes of the word of a trimmed line: all that comes before the last dim fields and the
 * separators before those (dim is not 0). 0 where there are too few fields. */
size_t embla_vec_word_length(const uint8_t *line, size_t length, uint64_t dim);

/* The rows of a file, as they are found. Zeroed to begin with. */
typedef struct {
    embla_name *labels;
    uint64_t *offsets; /* in the file: of the line (text), of the numbers (binary) */
    size_t count, label_room, offset_room;
} embla_vec_rows;

EMBLA_CHECKED embla_status embla_vec_add(embla_directory *directory, embla_vec_rows *rows,
                                         const uint8_t *word, size_t length, uint64_t offset);
/* The entry "vectors" of all rows, their labels, and a note of words that come twice (W6). */
EMBLA_CHECKED embla_status embla_vec_finish(const embla_map *map, embla_directory *directory,
                                            const embla_vec_rows *rows, uint64_t dim);
/* The header says a number of rows that is not there: a note if lenient, else a refusal (W5). */
EMBLA_CHECKED embla_status embla_vec_too_few(const embla_map *map, embla_directory *directory,
                                             uint64_t due, uint64_t found, bool lenient);
/* Rows first .. first+count-1 are there; for make. */
EMBLA_CHECKED embla_status embla_vec_range(const embla_map *map, const embla_entry *entry,
                                           uint64_t first, uint64_t count);

/* ---- writing ---- */

/* Whether a word can be written as it is: 1 to 1024 bytes, no space, tab, carriage return,
 * newline or 0. Any other is written as "#" and its row number. */
EMBLA_PRIVATE bool embla_vec_word_ok(const char *bytes, size_t length);

/* Bytes that one row takes at most, word and newline included. */
size_t embla_vec_row_most(size_t dim);
/* One row as text or binary. Returns how many bytes were written. */
size_t embla_vec_put_text(const char *word, size_t length, const float *values, size_t dim,
                          char *out);
size_t embla_vec_put_binary(const char *word, size_t length, const float *values, size_t dim,
                            char *out);

typedef size_t embla_vec_put(const char *word, size_t length, const float *values, size_t dim,
                             char *out);

/* All rows of contents by put, after a header line if there is to be one. format is its name
 * for messages. */
EMBLA_CHECKED embla_status embla_vec_write(embla_durable *out, const embla_contents *contents,
                                           const char *format, bool header, embla_vec_put *put);

#endif
