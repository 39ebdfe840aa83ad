/* SPDX-License-Identifier: Apache-2.0 */
#include "wordvec/grams.h"

#include <string.h>

#include "base/kernels.h"
#include "base/mem.h"

/* ---- n-grams of a vocabulary ---- */

/* Counts the n-grams of all words, and marks their buckets. */
static uint64_t mark_buckets(const embla_gram_rule *rule, const embla_name *words, size_t count,
                             int32_t *rows)
{
    int32_t found[EMBLA_GRAMS_MOST];
    uint64_t all = 0;
    for (size_t i = 0; i < count; i++) {
        size_t n = embla_grams_of(rule, words[i].bytes, words[i].length, found);
        for (size_t j = 0; j < n; j++) rows[found[j]] = 1;
        all += n;
    }
    return all;
}

static embla_status make_lists(const embla_name *words, size_t count, int32_t *rows,
                               embla_arena *arena, embla_grams *g)
{
    int32_t found[EMBLA_GRAMS_MOST];
    uint64_t all = mark_buckets(&g->rule, words, count, rows), at = 0;
    int32_t row = 0;
    for (int64_t i = 0; i < g->rule.buckets; i++) g->count += rows[i];
    EMBLA_TRY(embla_arena_many(arena, (uint64_t)g->count + 1, sizeof *g->buckets, "n-grams",
                               &g->buckets));
    EMBLA_TRY(embla_arena_many(arena, all + 1, sizeof *g->rows, "n-grams of words", &g->rows));
    EMBLA_TRY(embla_arena_many(arena, (uint64_t)count + 1, sizeof *g->first, "n-grams of words",
                               &g->first));
    for (int64_t i = 0; i < g->rule.buckets; i++) {
        if (!rows[i]) continue;
        g->buckets[row] = (int32_t)i;
        rows[i] = row++;
    }
    for (size_t i = 0; i < count; i++) {
        size_t n = embla_grams_of(&g->rule, words[i].bytes, words[i].length, found);
        g->first[i] = at;
        for (size_t j = 0; j < n; j++) g->rows[at++] = rows[found[j]];
    }
    g->first[count] = at;
    return EMBLA_OK;
}

embla_status embla_grams_make(const embla_gram_rule *rule, const embla_name *words, size_t count,
                              embla_arena *arena, embla_grams *out)
{
    void *rows = NULL;
    size_t bytes = (size_t)rule->buckets * sizeof(int32_t);
    *out = (embla_grams){.rule = *rule};
    EMBLA_TRY(
        embla_mem_many((uint64_t)rule->buckets, sizeof(int32_t), "the buckets of n-grams", &rows));
    embla_status status = make_lists(words, count, rows, arena, out);
    embla_mem_free(rows, bytes);
    return status;
}

/* ---- means ---- */

/* Sixteen floats, as in window.c; eight of them are summed at a time. */
typedef float parts __attribute__((vector_size(64), aligned(sizeof(float)), may_alias));
enum { LANES = 16, TILE = 8 };

/* n x LANES numbers of the mean; n is a constant after inlining. */
EMBLA_BODY void mean_tile(const float *values, const int32_t *rows, size_t count, size_t stride,
                          const float *own, const size_t n, float *out)
{
    parts sums[TILE];
    float share = 1.0f / (float)(int32_t)(count + 1);
    for (size_t v = 0; v < n; v++) sums[v] = *(const parts *)(own + v * LANES);
    for (size_t i = 0; i < count; i++) {
        const float *row = values + (size_t)rows[i] * stride;
        for (size_t v = 0; v < n; v++) sums[v] += *(const parts *)(row + v * LANES);
    }
    for (size_t v = 0; v < n; v++) *(parts *)(out + v * LANES) = sums[v] * share;
}

EMBLA_BODY void mean_body(const float *values, const int32_t *rows, size_t count, size_t stride,
                          const float *own, float *out)
{
    size_t k = 0;
    for (; k + TILE * LANES <= stride; k += TILE * LANES)
        mean_tile(values + k, rows, count, stride, own + k, TILE, out + k);
    for (; k + 4 * LANES <= stride; k += 4 * LANES)
        mean_tile(values + k, rows, count, stride, own + k, 4, out + k);
    for (; k < stride; k += LANES) mean_tile(values + k, rows, count, stride, own + k, 1, out + k);
}

EMBLA_ISA_FUNCTION(void, mean_rows,
                   (const float *values, const int32_t *rows, size_t count, size_t stride,
                    const float *own, float *out),
                   mean_body(values, rows, count, stride, own, out);)

void embla_grams_mean(const embla_grams *g, int32_t word, const float *own, size_t stride,
                      float *out)
{
    uint64_t first = g->first[word];
    EMBLA_PICK(mean_rows)
    (g->values, g->rows + first, (size_t)(g->first[word + 1] - first), stride, own, out);
}
