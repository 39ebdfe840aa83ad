/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of gradients over all ranks, each row's at its owner.
 *
 *   this rank's micro-batches -> a sum for each of their rows, in double, rounded to float
 * (sum_pieces) (row, sum) to the owners, in the order of micro-batches (send) owner: the sums of a
 * row over all micro-batches, in order, in double, rounded             (finish)
 *
 * Ranks take micro-batches in order, and an exchange delivers in the order of ranks. So an owner
 * gets the sums of a row in the order of micro-batches, whatever the number of ranks. Both sums are
 * embla_scatter.
 */
#include <string.h>

#include "base/options.h"
#include "cluster/sharded.h"

/* What the micro-batches of this rank give: rows and their sums, micro-batch by micro-batch. */
typedef struct {
    int64_t *rows;
    float *sums;
    size_t count;
} parts;

static embla_status check(const embla_sharded *s, const embla_sharded_batch *batch,
                          const float *gradients)
{
    if (batch->count > s->options.capacity)
        return embla_fail(EMBLA_ERR_ARGUMENT, "count is %zu; the capacity is %zu row numbers",
                          batch->count, s->options.capacity);
    if (batch->count > 0 && (!batch->rows || !gradients))
        return embla_fail(EMBLA_ERR_ARGUMENT, "%zu gradients, but %s is NULL", batch->count,
                          batch->rows ? "gradients" : "the list of rows");
    return embla_sharded_check_lengths(batch->lengths, batch->micro_batches, batch->count, "rows");
}

/* Sums within each micro-batch. */
static embla_status sum_pieces(embla_sharded *s, const embla_sharded_batch *batch,
                               const float *gradients, parts *out)
{
    size_t dim = s->options.dim, at = 0;
    const embla_scatter_options options = {.threads = s->options.threads};
    if (!s->mine) EMBLA_TRY(embla_scatter_new(s->options.rows, s->options.capacity, &s->mine));
    EMBLA_TRY(
        embla_sharded_room(&s->keys, (batch->count + 1) * sizeof(int64_t), "rows with gradients"));
    EMBLA_TRY(embla_sharded_room(&s->parts, (batch->count + 1) * dim * sizeof(float), "gradients"));
    *out = (parts){.rows = s->keys.memory, .sums = s->parts.memory};
    for (size_t i = 0; i < (batch->lengths ? batch->micro_batches : 1); i++) {
        size_t length = batch->lengths ? batch->lengths[i] : batch->count;
        EMBLA_TRY(embla_scatter_plan_rows(s->mine, batch->rows + at, length, &options));
        size_t found = embla_scatter_count(s->mine);
        if (found > 0) {
            memcpy(out->rows + out->count, embla_scatter_rows(s->mine), found * sizeof(int64_t));
            EMBLA_TRY(embla_scatter_sum(s->mine, gradients + at * dim, dim,
                                        out->sums + out->count * dim));
        }
        out->count += found;
        at += length;
    }
    return EMBLA_OK;
}

/* Orders the sums by owner, keeping the order of micro-batches: row numbers at the owners, then
 * sums, in `sent`. Returns the number for each rank in counts. */
static embla_status order_by_owner(embla_sharded *s, const parts *from, size_t *counts,
                                   parts *ordered)
{
    size_t ranks = (size_t)s->comm->size, *at = counts + ranks, dim = s->options.dim;
    size_t row_bytes = dim * sizeof(float);
    EMBLA_TRY(embla_sharded_room(&s->sent, (from->count + 1) * (sizeof(int64_t) + row_bytes),
                                 "gradients for other ranks"));
    ordered->count = from->count;
    ordered->rows = s->sent.memory;
    ordered->sums = (float *)(void *)(ordered->rows + from->count);
    memset(counts, 0, ranks * sizeof *counts);
    for (size_t i = 0; i < from->count; i++) counts[embla_sharded_rank(s, from->rows[i])]++;
    at[0] = 0;
    for (size_t r = 1; r < ranks; r++) at[r] = at[r - 1] + counts[r - 1];
    for (size_t i = 0; i < from->count; i++) {
        size_t place = at[embla_sharded_rank(s, from->rows[i])]++;
        ordered->rows[place] = embla_sharded_at(s, s->local_of, from->rows[i]);
        memcpy(ordered->sums + place * dim, from->sums + i * dim, row_bytes);
    }
    return EMBLA_OK;
}

/* Memory for what this rank receives and owns, so that nothing can fail between two exchanges. */
static embla_status make_room(embla_sharded *s, const size_t *from, parts *got)
{
    size_t row_bytes = s->options.dim * sizeof(float);
    for (int r = 0; r < s->comm->size; r++) got->count += from[r];
    EMBLA_TRY(embla_sharded_room(&s->received, (got->count + 1) * (sizeof(int64_t) + row_bytes),
                                 "gradients from other ranks"));
    EMBLA_TRY(embla_sharded_room(&s->sums, (got->count + 1) * row_bytes, "sums of gradients"));
    got->rows = s->received.memory;
    got->sums = (float *)(void *)(got->rows + got->count);
    if (s->owned && got->count <= s->owned_capacity) return EMBLA_OK;
    embla_scatter_free(s->owned);
    s->owned = NULL;
    s->owned_capacity = got->count + got->count / 4 + 1;
    return embla_scatter_new(embla_table_rows(s->table), s->owned_capacity, &s->owned);
}

/* Sends row numbers and sums to their owners. */
static embla_status send(const embla_comm *c, size_t dim, const parts *ordered,
                         const size_t *counts, const parts *got, const size_t *from)
{
    embla_exchange exchange = {.send = ordered->rows,
                               .send_counts = counts,
                               .receive = got->rows,
                               .receive_counts = from,
                               .unit = sizeof(int64_t)};
    EMBLA_TRY(c->alltoallv(c->owner, &exchange));
    exchange.send = ordered->sums;
    exchange.receive = got->sums;
    exchange.unit = dim * sizeof(float);
    return c->alltoallv(c->owner, &exchange);
}

static embla_status finish(embla_sharded *s, const parts *got, embla_sharded_sums *out)
{
    const embla_scatter_options options = {.threads = s->options.threads};
    EMBLA_TRY(embla_scatter_plan_rows(s->owned, got->rows, got->count, &options));
    *out = (embla_sharded_sums){.rows = embla_scatter_rows(s->owned),
                                .sums = s->sums.memory,
                                .count = embla_scatter_count(s->owned)};
    if (out->count == 0) return EMBLA_OK;
    return embla_scatter_sum(s->owned, got->sums, s->options.dim, s->sums.memory);
}

embla_status embla_sharded_sum(embla_sharded *sharded, const embla_sharded_batch *batch,
                               const float *gradients, embla_sharded_sums *out)
{
    embla_sharded *s = sharded;
    parts mine = {0}, ordered = {0}, got = {0};
    EMBLA_NEED(sharded);
    EMBLA_NEED(batch);
    EMBLA_NEED(out);
    EMBLA_TRY(embla_sharded_idle(s));
    size_t *counts = s->counts, *from = counts + 2 * (size_t)s->comm->size;
    embla_status status = embla_options_check(batch);
    if (status == EMBLA_OK) status = check(s, batch, gradients);
    if (status == EMBLA_OK) status = sum_pieces(s, batch, gradients, &mine);
    if (status == EMBLA_OK) status = order_by_owner(s, &mine, counts, &ordered);
    if (status != EMBLA_OK) memset(counts, 0, (size_t)s->comm->size * sizeof *counts);
    /* a rank that failed sends counts, too, so that all agree once, when all memory is there */
    EMBLA_TRY(s->comm->alltoall(s->comm->owner, counts, from, sizeof *counts));
    if (status == EMBLA_OK) status = make_room(s, from, &got);
    EMBLA_TRY(embla_comm_agree(s->comm, status, "its gradients are not summed"));
    EMBLA_TRY(send(s->comm, s->options.dim, &ordered, counts, &got, from));
    return finish(s, &got, out);
}
