/* SPDX-License-Identifier: Apache-2.0 */
/* The nearest lines without repetitions.
 *
 * Equal lines have equal vectors, so they are neighbours in the order of the scores, and each found
 * row is compared only with those kept before it that have its score. How many rows must be asked
 * for is not known: twice as many as wanted, and four times as many each time that is not enough.
 */
#include <string.h>

#include "base/mem.h"
#include "embla_lab.h"
#include "search/index.h"

static bool is_same_line(const embla_index *index, int64_t a, int64_t b)
{
    size_t one = 0, other = 0;
    const char *x = embla_index_line(index, a, &one, NULL);
    const char *y = embla_index_line(index, b, &other, NULL);
    return one == other && memcmp(x, y, one) == 0;
}

/* Copies the first k rows of found whose lines differ, and returns their number. */
static size_t keep_distinct(const embla_index *index, const embla_neighbour *found, size_t most,
                            size_t k, embla_neighbour *out)
{
    size_t kept = 0;
    for (size_t n = 0; n < most && kept < k && found[n].row >= 0; n++) {
        bool same = false;
        for (size_t i = kept; i-- > 0 && out[i].score == found[n].score && !same;)
            same = is_same_line(index, out[i].row, found[n].row);
        if (!same) out[kept++] = found[n];
    }
    for (size_t n = kept; n < k; n++) out[n] = (embla_neighbour){.row = -1};
    return kept;
}

/* Asks `count` queries for `most` rows each; *enough becomes the number of queries, from the first,
 * that have options->k different lines. */
static embla_status ask(const embla_index *index, const float *queries, size_t count, size_t most,
                        const embla_near_options *options, embla_neighbour *out, size_t *enough)
{
    embla_arena arena = {0};
    embla_neighbour *found = NULL;
    embla_near_options wide = *options;
    const size_t k = options->k;
    wide.k = most;
    embla_status status = embla_arena_many(&arena, count, most * sizeof *found, "lines", &found);
    if (status == EMBLA_OK) status = embla_near(index->table, queries, count, &wide, found, NULL);
    *enough = 0;
    for (size_t i = 0; status == EMBLA_OK && i < count; i++) {
        size_t kept = keep_distinct(index, found + i * most, most, k, out + i * k);
        if (kept == k && *enough == i) *enough = i + 1;
    }
    embla_arena_free(&arena);
    return status;
}

embla_status embla_index_distinct(const embla_index *index, const float *queries, size_t count,
                                  const embla_near_options *options, embla_neighbour *out)
{
    const size_t k = options->k;
    const embla_near_options alone = {.k = k, .threads = options->threads}; /* one query is quick */
    const size_t rows = (size_t)embla_table_rows(index->table);
    const size_t dim = embla_table_dim(index->table);
    size_t most = k < rows / 2 ? 2 * k : rows, enough = 0;
    EMBLA_TRY(ask(index, queries, count, most, options, out, &enough));
    for (size_t i = enough; i < count && most < rows; i++) {
        size_t kept = 0, wider = most; /* this query alone, as wide as it needs */
        while (kept < k && out[i * k + kept].row >= 0) kept++;
        for (bool full = kept == k; !full && wider < rows;) {
            size_t one = 0;
            wider = wider < rows / 4 ? 4 * wider : rows;
            EMBLA_TRY(ask(index, queries + i * dim, 1, wider, &alone, out + i * k, &one));
            full = one == 1;
        }
    }
    return EMBLA_OK;
}
