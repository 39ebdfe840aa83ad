/* SPDX-License-Identifier: Apache-2.0 */
/* What the three kinds of files of words and vectors share: word2vec's text (fastText's .vec is the
 * same), GloVe's text, which has no header line, and word2vec's binary (rules W1 to W7).
 *
 *   vec_words.c   header line, detection of the kind, words as labels, writing of rows
 *   vec.c         the two kinds of text
 *   vec_bin.c     binary
 *
 * A word may be any bytes; it need not be UTF-8. Rows stay in the file: a directory has the words
 * and the offset of each row.
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
    size_t length; /* bytes of the line, including its newline */
} embla_vec_header;

/* True if head begins with such a line. Its numbers may still be too large, see
 * embla_vec_header_check. */
bool embla_vec_header_of(const uint8_t *head, size_t have, embla_vec_header *out);
/* Checks that there are 1 to 2^31-1 rows of 1 to 65,536 numbers (W1). */
EMBLA_CHECKED embla_status embla_vec_header_check(const embla_map *map,
                                                  const embla_vec_header *header);

typedef enum {
    EMBLA_VEC_NONE,
    EMBLA_VEC_TEXT,  /* header line, then decimal numbers */
    EMBLA_VEC_GLOVE, /* decimal numbers */
    EMBLA_VEC_BINARY /* header line, then bytes */
} embla_vec_kind;

/* Counts the numbers after the first field of a line. False if there are none, or if another field
 * is not a number. */
bool embla_vec_numbers(const uint8_t *line, size_t length, uint64_t *count);
/* Detects the kind of a file of size bytes from its first bytes. */
embla_vec_kind embla_vec_kind_of(const uint8_t *head, size_t have, uint64_t size);

/* Fields are separated by these two bytes, and by no other space of Unicode (W3). */
static inline bool embla_vec_separator(uint8_t c)
{
    return c == ' ' || c == '\t';
}

/* The length of a line without its newline, carriage return, spaces and tabs at the end. */
size_t embla_vec_trimmed(const uint8_t *line, size_t length);
/* The number of fields of a trimmed line. */
uint64_t embla_vec_fields(const uint8_t *line, size_t length);
/* Bytes of the word of a trimmed line: everything before the last dim fields and the separators
 * before them; dim is not 0. Returns 0 if there are too few fields. */
size_t embla_vec_word_length(const uint8_t *line, size_t length, uint64_t dim);

/* The rows of a file that have been found so far. It starts as zeros. */
typedef struct {
    embla_name *labels;
    uint64_t *offsets; /* of the line (text) or of the numbers (binary) in the file */
    size_t count, label_room, offset_room;
} embla_vec_rows;

EMBLA_CHECKED embla_status embla_vec_add(embla_directory *directory, embla_vec_rows *rows,
                                         const uint8_t *word, size_t length, uint64_t offset);
/* Adds the entry "vectors" of all rows, their labels, and a note about duplicate words (W6). */
EMBLA_CHECKED embla_status embla_vec_finish(const embla_map *map, embla_directory *directory,
                                            const embla_vec_rows *rows, uint64_t dim);
/* The header counts more rows than the file has: adds a note if lenient, otherwise fails (W5). */
EMBLA_CHECKED embla_status embla_vec_too_few(const embla_map *map, embla_directory *directory,
                                             uint64_t wanted, uint64_t found, bool lenient);
/* Checks that rows first .. first+count-1 exist; for make. */
EMBLA_CHECKED embla_status embla_vec_range(const embla_map *map, const embla_entry *entry,
                                           uint64_t first, uint64_t count);

/* ---- writing ---- */

/* True if a word can be written unchanged: 1 to 1024 bytes without a space, tab, carriage return,
 * newline or 0. Any other word is written as "#" and its row number. */
EMBLA_PRIVATE bool embla_vec_word_ok(const char *bytes, size_t length);

/* The most bytes that a row takes, including its word and newline. */
size_t embla_vec_row_most(size_t dim);
/* Write one row as text or binary to out. Return the number of bytes. */
size_t embla_vec_put_text(const char *word, size_t length, const float *values, size_t dim,
                          char *out);
size_t embla_vec_put_binary(const char *word, size_t length, const float *values, size_t dim,
                            char *out);

typedef size_t embla_vec_put(const char *word, size_t length, const float *values, size_t dim,
                             char *out);

/* Writes all rows of contents with put, after a header line if header is true. format is the name
 * of the format in messages. */
EMBLA_CHECKED embla_status embla_vec_write(embla_durable *out, const embla_contents *contents,
                                           const char *format, bool header, embla_vec_put *put);

#endif
