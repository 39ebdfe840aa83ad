/* SPDX-License-Identifier: Apache-2.0 */
/* Row numbers and vectors have room for the n-grams of a whole batch. */
#include "cluster/team_grams.h"

#include <string.h>

#include "base/layout.h"
#include "base/mem.h"
#include "cluster/team_table.h"
#include "model/gpt_ngram.h"

struct embla_team_grams {
    embla_team_table table;
    const embla_ngram *hasher;
    size_t bytes;        /* of this block */
    size_t columns, dim; /* rows of a token, numbers of a row */
    int64_t *rows;       /* of a batch */
    float *vectors;      /* of these rows */
    int threads;
};

/* ---- new, free ---- */

static embla_status new_block(const embla_train *t, embla_team_grams **out, size_t *capacity)
{
    const embla_gpt_shape *s = &t->gpt->shape;
    size_t tokens = t->options.batch * t->options.length; /* int32_t of each are allocated */
    embla_layout layout = {0};
    uint64_t rows = 0;
    void *memory = NULL;
    (void)embla_layout_add(&layout, 1, sizeof(embla_team_grams));
    if (!embla_mul_ok(tokens, embla_gpt_ngram_columns(s), &rows)) layout.too_large = true;
    size_t numbers = embla_layout_add(&layout, (size_t)rows, sizeof(int64_t));
    size_t vectors = embla_layout_add(&layout, (size_t)rows, s->ngram.dim * sizeof(float));
    if (layout.too_large)
        return embla_fail(EMBLA_ERR_MEMORY, "the n-grams of %zu tokens do not fit in memory",
                          tokens);
    EMBLA_TRY(embla_mem_new(layout.bytes, "the n-gram rows of a batch", &memory));
    char *block = memory;
    embla_team_grams *g = memory;
    *g = (embla_team_grams){.table = {.suffix = "ngram", .what = "n-gram rows"},
                            .hasher = embla_gpt_ngram_hasher(t->gpt),
                            .bytes = layout.bytes,
                            .columns = embla_gpt_ngram_columns(s),
                            .dim = s->ngram.dim,
                            .rows = (int64_t *)(void *)(block + numbers),
                            .vectors = (float *)(void *)(block + vectors),
                            .threads = t->options.threads};
    *capacity = (size_t)rows;
    *out = g;
    return EMBLA_OK;
}

static embla_status new_table(const embla_comm *comm, const embla_train *t, size_t capacity,
                              embla_team_grams *g, embla_optim **optim)
{
    embla_table *whole = embla_gpt_ngram_table(t->gpt);
    const embla_sharded_options options = {.rows = embla_table_rows(whole),
                                           .dim = g->dim,
                                           .dtype = EMBLA_F32,
                                           .capacity = capacity,
                                           .threads = g->threads};
    const embla_optim_options rows = {.kind = EMBLA_OPTIM_ADAGRAD_ROWWISE, .threads = g->threads};
    EMBLA_TRY(embla_sharded_new(comm, &options, &g->table.sharded));
    EMBLA_TRY(embla_sharded_fill(g->table.sharded, whole));
    return embla_comm_agree(comm,
                            embla_optim_new(embla_sharded_table(g->table.sharded), &rows, optim),
                            "it has no memory for the optimizer of n-gram rows");
}

embla_status embla_team_grams_new(const embla_comm *comm, const embla_train *train,
                                  embla_team_grams **out, embla_optim **optim)
{
    embla_team_grams *g = NULL;
    size_t capacity = 0;
    embla_status status = new_block(train, &g, &capacity);
    status = embla_comm_agree(comm, status, "it has no memory for n-gram rows");
    if (status == EMBLA_OK && g) status = new_table(comm, train, capacity, g, optim);
    if (status != EMBLA_OK) {
        embla_optim_free(*optim);
        *optim = NULL;
        embla_team_grams_free(g);
        return status;
    }
    *out = g;
    return EMBLA_OK;
}

void embla_team_grams_free(embla_team_grams *g)
{
    if (!g) return;
    embla_sharded_free(g->table.sharded);
    embla_mem_free(g, g->bytes);
}

/* ---- a step ---- */

void embla_team_grams_use(embla_team_grams *g, embla_gpt *gpt)
{
    (void)g;
    embla_gpt_ngram_source(gpt, &(embla_gpt_ngram_rows){.away = true});
}

embla_status embla_team_grams_fetch(embla_team_grams *g, const int32_t *tokens, size_t batch,
                                    size_t length)
{
    const embla_ngram_options options = {.threads = g->threads};
    size_t count = batch * length * g->columns;
    embla_status status = EMBLA_OK;
    if (count > 0) status = embla_ngram_rows(g->hasher, tokens, batch, length, &options, g->rows);
    /* without rows this rank still takes part */
    embla_status got =
        embla_sharded_lookup(g->table.sharded, g->rows, status == EMBLA_OK ? count : 0, g->vectors);
    return status != EMBLA_OK ? status : got;
}

void embla_team_grams_give(const embla_team_grams *g, embla_gpt *gpt, size_t first)
{
    const embla_gpt_ngram_rows rows = {.away = true,
                                       .vectors = g->vectors + first * g->columns * g->dim};
    embla_gpt_ngram_source(gpt, &rows);
}

embla_status embla_team_grams_sum(embla_team_grams *g, const int64_t *rows, size_t count,
                                  const size_t *lengths, size_t pieces, const float *gradients,
                                  embla_train_rows *out)
{
    embla_sharded_sums got;
    EMBLA_TRY(embla_sharded_sum(
        g->table.sharded,
        &(embla_sharded_batch){
            .rows = rows, .count = count, .lengths = lengths, .micro_batches = pieces},
        gradients, &got));
    *out = (embla_train_rows){.rows = got.rows, .count = got.count, .dim = g->dim};
    memcpy(&out->values, &got.sums, sizeof got.sums); /* memory of the table, which we may change */
    return EMBLA_OK;
}

embla_status embla_team_grams_publish(embla_team_grams *g)
{
    return embla_team_table_publish(&g->table);
}

/* ---- files ---- */

bool embla_team_grams_kept(const embla_team_grams *g, const char *path)
{
    return embla_team_table_kept(&g->table, path);
}

embla_status embla_team_grams_save(embla_team_grams *g, embla_optim *optim, const char *path,
                                   int64_t step)
{
    return embla_team_table_save(&g->table, optim, path, step);
}

embla_status embla_team_grams_load(embla_team_grams *g, embla_optim *optim, const char *path,
                                   int64_t step)
{
    return embla_team_table_load(&g->table, optim, path, step);
}

embla_sharded *embla_team_grams_table(const embla_team_grams *g)
{
    return g->table.sharded;
}
