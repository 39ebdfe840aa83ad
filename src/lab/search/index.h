/* SPDX-License-Identifier: Apache-2.0 */
/* The struct behind embla_index. */
#ifndef EMBLA_SEARCH_INDEX_H
#define EMBLA_SEARCH_INDEX_H

#include "base/arena.h"
#include "search/corpus_lines.h"
#include "table/access.h"

struct embla_index {
    embla_arena arena;
    const embla_encoder *encoder;
    embla_lines lines;     /* the corpus */
    embla_table *table;    /* a row for each line that has a vector */
    const int64_t *begin;  /* of each row: where its line begins in the corpus, ascending */
    const int64_t *number; /* the number of its line, from 0 */
    int64_t line_count;    /* lines of the corpus */
    bool stored;
};

/* Opens the corpus of an empty index. */
EMBLA_CHECKED embla_status embla_index_begin(const embla_encoder *encoder, const char *corpus,
                                             embla_index **out);

/* distinct.c: embla_near on the table of the index, but of rows whose lines are equal only the
 * first. options->k is not 0. If there are fewer than k others, the row of the rest is -1. */
EMBLA_CHECKED embla_status embla_index_distinct(const embla_index *index, const float *queries,
                                                size_t count, const embla_near_options *options,
                                                embla_neighbour *out);

#endif
