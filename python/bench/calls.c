/* SPDX-License-Identifier: Apache-2.0 */
/* The same calls as in bench.py, from C: each function makes `rounds` calls and returns the seconds
 * of the fastest. bench.py compiles this file against libembla_lab and loads it. */
#include <stdlib.h>
#include <time.h>

#include "embla_lab.h"
#include "embla_store.h"
#include "embla_text.h"

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Runs `call` in batches and keeps the least time of one call. */
#define LEAST(rounds, batch, call)                                                                 \
    double least = 1e9;                                                                            \
    for (int round = 0; round < (rounds); round++) {                                               \
        double begin = now();                                                                      \
        for (int i = 0; i < (batch); i++)                                                          \
            if ((call) != EMBLA_OK) return -1;                                                     \
        double time = (now() - begin) / (batch);                                                   \
        if (time < least) least = time;                                                            \
    }

double time_lookup(const float *data, int64_t rows, size_t dim, const int64_t *ids, size_t count,
                   float *out, int rounds, int batch)
{
    embla_table *table = NULL;
    if (embla_table_view(&(embla_table_layout){.dtype = EMBLA_F32, .rows = rows, .dim = dim}, data,
                         (size_t)rows * dim * sizeof(float), NULL, &table) != EMBLA_OK)
        return -1;
    LEAST(rounds, batch, embla_lookup_rows(table, ids, count, NULL, out))
    embla_table_free(table);
    return least;
}

double time_near(const float *data, int64_t rows, size_t dim, const float *queries, size_t count,
                 size_t k, int rounds)
{
    embla_table *table = NULL;
    embla_neighbour *found = calloc(count * k, sizeof *found);
    if (!found ||
        embla_table_view(&(embla_table_layout){.dtype = EMBLA_F32, .rows = rows, .dim = dim}, data,
                         (size_t)rows * dim * sizeof(float), NULL, &table) != EMBLA_OK)
        return -1;
    LEAST(rounds, 1, embla_near(table, queries, count, &(embla_near_options){.k = k}, found, NULL))
    embla_table_free(table);
    free(found);
    return least;
}

double time_encode(const char *path, const char *const *texts, const size_t *lengths, size_t count,
                   float *out, int rounds)
{
    embla_encoder *encoder = NULL;
    const embla_texts all = {.texts = texts, .lengths = lengths, .count = count};
    if (embla_encoder_open(path, NULL, &encoder) != EMBLA_OK) return -1;
    LEAST(rounds, 1, embla_encoder_encode(encoder, &all, NULL, out, NULL))
    embla_encoder_free(encoder);
    return least;
}

double time_ngram(const char *model, const int32_t *tokens, size_t count, int64_t *out, int rounds)
{
    embla_ngram *ngram = NULL;
    if (embla_ngram_new_model(model, -1, NULL, &ngram) != EMBLA_OK) return -1;
    LEAST(rounds, 1, embla_ngram_rows(ngram, tokens, 1, count, NULL, out))
    embla_ngram_free(ngram);
    return least;
}
