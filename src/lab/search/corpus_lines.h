/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of a text file, which stays mapped. A line ends with LF or CR LF; the last one need
 * not. */
#ifndef EMBLA_SEARCH_CORPUS_LINES_H
#define EMBLA_SEARCH_CORPUS_LINES_H

#include "base/checksum.h"
#include "embla_search.h"
#include "files/map.h"

typedef struct {
    embla_map *map;
    const char *bytes;
    size_t size;
} embla_lines;

/* Maps a file, which is not empty. */
EMBLA_CHECKED embla_status embla_lines_open(const char *path, embla_lines *out);
void embla_lines_free(embla_lines *lines);
/* The number of lines. */
int64_t embla_lines_count(const embla_lines *lines);
/* The line that begins at *at: its length without its end. *at moves to the next line. */
size_t embla_lines_next(const embla_lines *lines, size_t *at);
/* The checksum of all bytes. EMBLA_ERR_IO if the file has changed its size. */
EMBLA_CHECKED embla_status embla_lines_sum(const embla_lines *lines, embla_checksum *out);

/* Vectors of lines, a batch at a time. */
enum { EMBLA_LINES_BATCH = 4096, EMBLA_LINES_BYTES = 4 << 20 };

typedef struct {
    const embla_encoder *encoder;
    embla_encode_options options;
    size_t dim;
    const char *texts[EMBLA_LINES_BATCH];
    size_t lengths[EMBLA_LINES_BATCH];
    int64_t numbers[EMBLA_LINES_BATCH]; /* the caller's, for each line */
    embla_encoded details[EMBLA_LINES_BATCH];
    size_t count, bytes;
    float *vectors; /* EMBLA_LINES_BATCH x dim */
} embla_line_batch;

EMBLA_CHECKED embla_status embla_line_batch_new(const embla_encoder *encoder, int threads,
                                                embla_normalize_kind normalize,
                                                embla_line_batch **out);
void embla_line_batch_free(embla_line_batch *batch);
/* Adds a line. True if the batch is full then. */
bool embla_line_batch_add(embla_line_batch *batch, const char *text, size_t length, int64_t number);
/* Encodes the batch. Lines without a vector are dropped: what is left is `count` lines, their
 * numbers, texts, lengths, details and vectors. The caller sets count and bytes to 0 afterwards. */
EMBLA_CHECKED embla_status embla_line_batch_encode(embla_line_batch *batch);

#endif
