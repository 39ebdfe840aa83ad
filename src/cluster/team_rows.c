/* SPDX-License-Identifier: Apache-2.0 */
/* Lists have room for a whole batch in which every row is another one. */
#include "cluster/team_rows.h"

#include <string.h>

#include "base/layout.h"
#include "base/mem.h"
#include "model/gpt_ngram.h"

embla_status embla_team_rows_new(const embla_comm *comm, const embla_train *t, size_t pieces,
                                 size_t sequences, bool divided, embla_team_rows *out)
{
    const embla_gpt_shape *shape = &t->gpt->shape;
    embla_layout layout = {0};
    uint64_t share = 0, all = 0;
    size_t at[7] = {0}, row = shape->ngram.dim * sizeof(float);
    if (!embla_gpt_has_ngram(shape)) return EMBLA_OK;
    layout.too_large =
        !embla_mul_ok(sequences * t->options.length, embla_gpt_ngram_columns(shape), &share) ||
        !embla_mul_ok(share, (uint64_t)comm->size, &all);
    if (divided) all = 0;
    const uint64_t counts[7] = {share, all, pieces, (uint64_t)comm->size, share, all, all};
    for (size_t i = 0; i < 7 && !layout.too_large; i++)
        at[i] = embla_layout_add(&layout, (size_t)counts[i], i < 4 ? sizeof(int64_t) : row);
    if (layout.too_large)
        return embla_fail(EMBLA_ERR_MEMORY, "the n-gram rows of %d ranks do not fit in memory",
                          comm->size);
    *out = (embla_team_rows){.comm = comm, .dim = shape->ngram.dim, .pieces = pieces};
    EMBLA_TRY(embla_mem_new(layout.bytes, "the n-gram rows of all ranks", &out->memory));
    char *memory = out->memory;
    out->bytes = layout.bytes;
    out->own.rows = (int64_t *)(void *)(memory + at[0]);
    out->all.rows = (int64_t *)(void *)(memory + at[1]);
    out->lengths = (size_t *)(void *)(memory + at[2]);
    out->counts = (int64_t *)(void *)(memory + at[3]);
    out->own.values = (float *)(void *)(memory + at[4]);
    out->all.values = (float *)(void *)(memory + at[5]);
    out->totals = (float *)(void *)(memory + at[6]);
    if (divided) return EMBLA_OK;
    return embla_scatter_new(embla_table_rows(embla_gpt_ngram_table(t->gpt)), (size_t)all,
                             &out->scatter);
}

void embla_team_rows_free(embla_team_rows *rows)
{
    embla_scatter_free(rows->scatter);
    embla_mem_free(rows->memory, rows->bytes);
    *rows = (embla_team_rows){0};
}

void embla_team_rows_clear(embla_team_rows *rows)
{
    rows->own.count = 0;
    if (rows->lengths) memset(rows->lengths, 0, rows->pieces * sizeof *rows->lengths);
}

embla_status embla_team_rows_append(embla_team_rows *r, const embla_gpt *gpt, size_t piece)
{
    const int64_t *rows;
    const float *values;
    size_t count;
    if (!r->lengths) return EMBLA_OK;
    EMBLA_TRY(embla_gpt_ngram_gradients(gpt, &rows, &values, &count));
    memcpy(r->own.rows + r->own.count, rows, count * sizeof *rows);
    memcpy(r->own.values + r->own.count * r->dim, values, count * r->dim * sizeof *values);
    r->own.count += count;
    r->lengths[piece] = count;
    return EMBLA_OK;
}

/* Sends the rows of each rank to all. Lists are sent with the length of the longest one; then the
 * gaps are closed. */
static embla_status gather_rows(embla_team_rows *r)
{
    const embla_comm *c = r->comm;
    const int64_t mine = (int64_t)r->own.count;
    size_t most = 0, used = 0, row = r->dim * sizeof(float);
    EMBLA_TRY(c->allgather(c->owner, &mine, r->counts, sizeof mine));
    for (int k = 0; k < c->size; k++)
        if ((size_t)r->counts[k] > most) most = (size_t)r->counts[k];
    r->all.count = 0;
    if (most == 0) return EMBLA_OK;
    EMBLA_TRY(c->allgather(c->owner, r->own.rows, r->all.rows, most * sizeof(int64_t)));
    EMBLA_TRY(c->allgather(c->owner, r->own.values, r->all.values, most * row));
    for (size_t k = 0; k < (size_t)c->size; k++) {
        size_t count = (size_t)r->counts[k];
        memmove(r->all.rows + used, r->all.rows + k * most, count * sizeof(int64_t));
        memmove(r->all.values + used * r->dim, r->all.values + k * most * r->dim, count * row);
        used += count;
    }
    r->all.count = used;
    return EMBLA_OK;
}

embla_status embla_team_rows_sum(embla_team_rows *r, embla_team_grams *grams, int threads,
                                 embla_train_rows *out)
{
    const embla_scatter_options order = {.threads = threads};
    if (!r->lengths) return EMBLA_OK;
    if (grams)
        return embla_team_grams_sum(grams, r->own.rows, r->own.count, r->lengths, r->pieces,
                                    r->own.values, out);
    if (r->comm->size > 1)
        EMBLA_TRY(gather_rows(r));
    else
        r->all = r->own;
    EMBLA_TRY(embla_scatter_plan_rows(r->scatter, r->all.rows, r->all.count, &order));
    EMBLA_TRY(embla_scatter_sum(r->scatter, r->all.values, r->dim, r->totals));
    *out = (embla_train_rows){.rows = embla_scatter_rows(r->scatter),
                              .values = r->totals,
                              .count = embla_scatter_count(r->scatter),
                              .dim = r->dim};
    return EMBLA_OK;
}
