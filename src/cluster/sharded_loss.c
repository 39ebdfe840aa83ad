/* SPDX-License-Identifier: Apache-2.0 */
/* Cross-entropy over a head whose rows are on many ranks.
 *
 * All ranks get the hidden vectors of all tokens, and go through the shards of the batch in order.
 * For a shard, a rank computes the logits of its own rows only:
 *
 *   logits = hidden x rows, a product for each bucket
 *   the maximum of a token's logits over all ranks
 *   the sum of exponentials over all ranks, and the logit of the target
 *   logits -> gradients, in place
 *   gradient of a bucket's rows += gradients x hidden: at the owner, in the order of shards
 *   gradient of hidden = sum over all buckets of gradients x rows
 *
 * The same bits for any number of ranks: a product has the shape (shard, bucket), whoever computes
 * it. Maxima do not depend on an order. Sums over buckets do not either, because they are sums of
 * integers: a number is multiplied by a power of two that leaves room for the sum, and rounded.
 * That is more exact than a sum of floats. In fast mode a rank multiplies all its rows at once and
 * sums floats.
 */
#include <math.h>
#include <string.h>

#include "base/elementary.h"
#include "base/layout.h"
#include "base/options.h"
#include "base/parallel.h"
#include "base/threads.h"
#include "cluster/sharded.h"
#include "engine/engine.h"
#include "learn/softmax.h"

/* A call. Sizes: n tokens of the shard, d numbers of a vector; c columns: this
 * rank's rows. */
typedef struct {
    embla_sharded *s;
    bool fast;
    size_t d, c;
    double scale;       /* weight / counted targets */
    size_t rank_tokens; /* most tokens of a rank: room for each in `hidden` and `targets` */
    size_t rank_shards;
    size_t *shards;     /* for each rank: number of shards, then their lengths */
    float *hidden;      /* ranks x rank_tokens x d */
    int32_t *targets;   /* ranks x rank_tokens */
    size_t longest;     /* tokens of the longest shard of all */
    const float *rows;  /* this rank's rows as f32 */
    float *logits;      /* longest x c */
    float *highest;     /* longest */
    int64_t *sums;      /* longest: sums of exponentials; then a NaN count for each */
    double *chosen;     /* longest: logits of targets */
    int64_t *gradients; /* longest x d for each slot: gradients of hidden */
    float *parts;       /* a space of longest x d for each slot */
    int threads;
    double unit, room; /* of sums of exponentials, and of gradients: powers of two */
    float *table;      /* the gradient of this rank's rows; NULL means not wanted */
    embla_loss_report report;
    double loss;
    /* The first failure of this rank. It takes part in all sums with zeros, so that no other rank
     * waits for it, and all agree at the end. */
    embla_status failed;
} call;

/* One shard of the batch. */
typedef struct {
    const float *hidden;
    const int32_t *targets;
    size_t n;
    float *out; /* the gradient of hidden, if the shard is of this rank */
} shard;

/* ---- what all ranks must know ---- */

static embla_status check(const embla_sharded *s, const embla_sharded_loss_batch *batch,
                          const embla_sharded_loss_options *o)
{
    EMBLA_NEED_OF("embla_sharded_loss", "batch", batch);
    EMBLA_TRY(embla_options_check(batch));
    EMBLA_TRY(embla_options_check(o));
    const size_t count = batch->count;
    const int32_t *targets = batch->targets;
    if (o && !isfinite(o->weight))
        return embla_fail(EMBLA_ERR_ARGUMENT, "weight is %g; it must be finite", o->weight);
    if (count > 0 && (!batch->hidden || !targets))
        return embla_fail(EMBLA_ERR_ARGUMENT, "%zu tokens, but %s NULL", count,
                          batch->hidden ? "targets are" : "hidden is");
    EMBLA_TRY(embla_sharded_check_lengths(batch->lengths, batch->micro_batches, count, "tokens"));
    for (size_t i = 0; i < count; i++)
        if (targets[i] != EMBLA_TARGET_IGNORE && (targets[i] < 0 || targets[i] >= s->options.rows))
            return embla_fail(EMBLA_ERR_RANGE,
                              "target %zu is %d, which is out of range; the table has %" PRId64
                              " rows",
                              i, (int)targets[i], s->options.rows);
    if (!embla_engine_has_products())
        return embla_fail(EMBLA_ERR_UNSUPPORTED, "a loss needs an engine for matrix products");
    return EMBLA_OK;
}

/* The largest number of tokens and of shards of a rank, and the length of the longest shard. */
static embla_status find_sizes(call *c, const embla_sharded_loss_batch *batch)
{
    const embla_comm *comm = c->s->comm;
    const size_t count = batch->count, *lengths = batch->lengths, shards = batch->micro_batches;
    int64_t most[3] = {(int64_t)count, lengths ? (int64_t)shards : 1, lengths ? 0 : (int64_t)count};
    for (size_t i = 0; lengths && i < shards; i++)
        if ((int64_t)lengths[i] > most[2]) most[2] = (int64_t)lengths[i];
    EMBLA_TRY(comm->allreduce(comm->owner, most, 3, EMBLA_COMM_TYPE_INT64, EMBLA_COMM_OP_MAX));
    c->rank_tokens = (size_t)most[0];
    c->rank_shards = (size_t)most[1];
    c->longest = (size_t)most[2];
    return EMBLA_OK;
}

/* Bytes that a rank sends: its shards, hidden vectors and targets. */
static size_t sent_bytes(const call *c)
{
    return (c->rank_shards + 1) * sizeof(size_t) +
           c->rank_tokens * (sizeof(int32_t) + c->d * sizeof(float));
}

/* Allocates everything: one block of kept memory, and what is sent. */
static embla_status make_room(call *c)
{
    embla_layout layout = {0};
    size_t ranks = (size_t)c->s->comm->size, d = c->d, n = c->longest;
    size_t rows = (size_t)embla_table_rows(c->s->table);
    bool decodes = c->s->options.dtype != EMBLA_F32;
    size_t at_shards = embla_layout_add(&layout, ranks * (c->rank_shards + 1), sizeof(size_t));
    size_t at_targets = embla_layout_add(&layout, ranks * c->rank_tokens, sizeof(int32_t));
    size_t at_hidden = embla_layout_add(&layout, ranks * c->rank_tokens, d * sizeof(float));
    size_t at_rows = embla_layout_add(&layout, decodes ? rows : 0, d * sizeof(float));
    size_t at_logits = embla_layout_add(&layout, n, c->c * sizeof(float));
    size_t at_highest = embla_layout_add(&layout, n, sizeof(float));
    size_t at_sums = embla_layout_add(&layout, 2 * n, sizeof(int64_t));
    size_t at_chosen = embla_layout_add(&layout, n, sizeof(double));
    size_t at_gradients = embla_layout_add(&layout, n * (size_t)c->threads, d * sizeof(int64_t));
    size_t at_parts = embla_layout_add(&layout, n * (size_t)c->threads, d * sizeof(float));
    if (layout.too_large)
        return embla_fail(EMBLA_ERR_MEMORY,
                          "the logits of %zu tokens and %zu rows do not fit in memory", n, c->c);
    EMBLA_TRY(embla_sharded_room(&c->s->loss, layout.bytes, "a loss over a sharded table"));
    EMBLA_TRY(embla_sharded_room(&c->s->sent, sent_bytes(c), "tokens for other ranks"));
    char *block = c->s->loss.memory;
    c->shards = (void *)(block + at_shards);
    c->targets = (void *)(block + at_targets);
    c->hidden = (void *)(block + at_hidden);
    if (decodes) c->rows = (void *)(block + at_rows);
    c->logits = (void *)(block + at_logits);
    c->highest = (void *)(block + at_highest);
    c->sums = (void *)(block + at_sums);
    c->chosen = (void *)(block + at_chosen);
    c->gradients = (void *)(block + at_gradients);
    c->parts = (void *)(block + at_parts);
    return EMBLA_OK;
}

/* Gets the shards, targets and hidden vectors of all ranks. Each rank sends as much as the one with
 * the most tokens. */
static embla_status gather(call *c, const embla_sharded_loss_batch *batch)
{
    const embla_comm *comm = c->s->comm;
    const float *hidden = batch->hidden;
    const int32_t *targets = batch->targets;
    const size_t count = batch->count, *lengths = batch->lengths, shards = batch->micro_batches;
    size_t words = c->rank_shards + 1;
    embla_scratch *space = &c->s->sent;
    if (c->rank_tokens == 0) {
        memset(c->shards, 0, (size_t)comm->size * words * sizeof *c->shards);
        return EMBLA_OK;
    }
    size_t token_bytes = c->rank_tokens * sizeof *targets;
    size_t hidden_bytes = c->rank_tokens * c->d * sizeof *hidden;
    size_t *send_shards = space->memory;
    float *send_hidden = (float *)(void *)(send_shards + words);
    int32_t *send_targets = (int32_t *)(void *)(send_hidden + c->rank_tokens * c->d);
    memset(space->memory, 0, sent_bytes(c));
    send_shards[0] = lengths ? shards : 1;
    for (size_t i = 0; i < send_shards[0]; i++) send_shards[1 + i] = lengths ? lengths[i] : count;
    if (count > 0) {
        memcpy(send_targets, targets, count * sizeof *targets);
        memcpy(send_hidden, hidden, count * c->d * sizeof *hidden);
    }
    EMBLA_TRY(comm->allgather(comm->owner, send_shards, c->shards, words * sizeof *send_shards));
    EMBLA_TRY(comm->allgather(comm->owner, send_targets, c->targets, token_bytes));
    return comm->allgather(comm->owner, send_hidden, c->hidden, hidden_bytes);
}

/* Counts the targets of all ranks. A sum of exponentials is at most the number of rows. */
static void count_targets(call *c, double weight)
{
    const embla_comm *comm = c->s->comm;
    size_t words = c->rank_shards + 1;
    int exponent;
    for (int r = 0; r < comm->size; r++) {
        const size_t *lengths = c->shards + (size_t)r * words;
        const int32_t *targets = c->targets + (size_t)r * c->rank_tokens;
        for (size_t i = 1; i <= lengths[0]; i++)
            for (size_t k = 0; k < lengths[i]; k++)
                (*targets++ == EMBLA_TARGET_IGNORE ? c->report.ignored++ : c->report.counted++);
    }
    c->scale = c->report.counted > 0 ? weight / (double)c->report.counted : 0.0;
    (void)frexp((double)c->s->options.rows, &exponent);
    c->unit = ldexp(1.0, 61 - exponent);
}

/* A gradient of hidden is at most twice the scale times the largest number of the table. */
static embla_status find_room(call *c)
{
    const embla_comm *comm = c->s->comm;
    size_t count = (size_t)embla_table_rows(c->s->table) * c->d;
    double largest = 0.0;
    int exponent;
    for (size_t i = 0; c->rows && i < count; i++) {
        double x = fabs((double)c->rows[i]);
        if (x > largest) largest = x; /* a NaN makes a logit of every token NaN: none is summed */
    }
    EMBLA_TRY(comm->allreduce(comm->owner, &largest, 1, EMBLA_COMM_TYPE_DOUBLE, EMBLA_COMM_OP_MAX));
    (void)frexp(2.0 * fabs(c->scale) * largest, &exponent);
    c->room = isfinite(largest) ? ldexp(1.0, 61 - exponent) : NAN;
    return EMBLA_OK;
}

/* ---- products ---- */

/* A block of this rank's rows that is multiplied at once: a bucket, or all of them. */
typedef struct {
    size_t first, rows; /* among this rank's rows; rows that are used */
} block;

static block block_at(const call *c, size_t i)
{
    const embla_sharded *s = c->s;
    return (block){.first = i * s->bucket_rows,
                   .rows = (size_t)embla_sharded_used(s, embla_sharded_bucket(s, s->first + i))};
}

static embla_status multiply(const call *c, const shard *t, const block *b, float *logits)
{
    const embla_product product = {.m = t->n,
                                   .n = b->rows,
                                   .k = c->d,
                                   .a = t->hidden,
                                   .b = c->rows + b->first * c->d,
                                   .a_stride = c->d,
                                   .b_stride = c->d,
                                   .out_stride = c->c,
                                   .out = logits + b->first,
                                   .form = EMBLA_PRODUCT_A_BT};
    return embla_engine_product(&product);
}

/* The gradient of the rows of a block, added. */
static embla_status add_to_rows(const call *c, const shard *t, const block *b)
{
    const embla_product product = {.m = b->rows,
                                   .n = c->d,
                                   .k = t->n,
                                   .a = c->logits + b->first,
                                   .b = t->hidden,
                                   .a_stride = c->c,
                                   .b_stride = c->d,
                                   .out_stride = c->d,
                                   .out = c->table + b->first * c->d,
                                   .form = EMBLA_PRODUCT_AT_B,
                                   .add = true};
    return embla_engine_product(&product);
}

/* The part of the gradient of hidden that a block gives. */
static embla_status part_of_hidden(const call *c, const shard *t, const block *b, float *out)
{
    const embla_product product = {.m = t->n,
                                   .n = c->d,
                                   .k = b->rows,
                                   .a = c->logits + b->first,
                                   .b = c->rows + b->first * c->d,
                                   .a_stride = c->c,
                                   .b_stride = c->d,
                                   .out_stride = c->d,
                                   .out = out,
                                   .form = EMBLA_PRODUCT_A_B};
    return embla_engine_product(&product);
}

/* ---- a shard ---- */

/* A shard whose blocks are shared over threads. */
typedef struct {
    const call *call;
    const shard *shard;
} shard_job;

static embla_status multiply_blocks(void *job, size_t first, size_t end, size_t slot)
{
    const shard_job *j = job;
    const call *c = j->call;
    (void)slot;
    for (size_t i = first; i < end; i++) {
        const block b = block_at(c, i);
        if (b.rows > 0) EMBLA_TRY(multiply(c, j->shard, &b, c->logits));
    }
    return EMBLA_OK;
}

/* Logits of all blocks. */
static embla_status compute_logits(const call *c, const shard *t)
{
    const shard_job job = {.call = c, .shard = t};
    if (c->fast) memset(c->logits, 0, t->n * c->c * sizeof *c->logits);
    return embla_share(c->threads, c->s->buckets, 1, multiply_blocks, &job);
}

/* The largest logit of each token over all ranks; +infinity stands for a NaN. */
static embla_status find_highest(const call *c, const shard *t)
{
    const embla_comm *comm = c->s->comm;
    for (size_t k = 0; k < t->n; k++) {
        float most = -INFINITY;
        for (size_t i = 0; i < c->s->buckets; i++) {
            const block b = block_at(c, i);
            float x =
                b.rows > 0 ? embla_softmax_max(c->logits + k * c->c + b.first, b.rows) : -INFINITY;
            if (x > most) most = x;
        }
        c->highest[k] = most;
    }
    return comm->allreduce(comm->owner, c->highest, t->n, EMBLA_COMM_TYPE_FLOAT, EMBLA_COMM_OP_MAX);
}

/* Sums of exponentials and logits of targets, over all ranks. */
static embla_status sum_exponentials(const call *c, const shard *t)
{
    const embla_comm *comm = c->s->comm;
    int64_t *nans = c->sums + t->n;
    for (size_t k = 0; k < t->n; k++) {
        const float *logits = c->logits + k * c->c;
        float base = isfinite(c->highest[k]) ? c->highest[k] : 0.0f;
        c->sums[k] = nans[k] = 0;
        c->chosen[k] = 0.0;
        for (size_t i = 0; i < c->s->buckets; i++) {
            const block b = block_at(c, i);
            double sum = b.rows > 0 ? embla_softmax_sum(logits + b.first, b.rows, base) : 0.0;
            if (sum <= (double)b.rows)
                c->sums[k] += llrint(sum * c->unit);
            else
                nans[k]++; /* a NaN, or infinity */
        }
        int64_t target = t->targets[k];
        if (target != EMBLA_TARGET_IGNORE && embla_sharded_rank(c->s, target) == comm->rank)
            c->chosen[k] = (double)logits[embla_sharded_at(c->s, c->s->local_of, target)];
    }
    EMBLA_TRY(
        comm->allreduce(comm->owner, c->sums, 2 * t->n, EMBLA_COMM_TYPE_INT64, EMBLA_COMM_OP_SUM));
    return comm->allreduce(comm->owner, c->chosen, t->n, EMBLA_COMM_TYPE_DOUBLE, EMBLA_COMM_OP_SUM);
}

/* Adds the losses of a shard, and turns logits into gradients. */
static void finish_logits(call *c, const shard *t)
{
    const int64_t *nans = c->sums + t->n;
    for (size_t k = 0; k < t->n; k++) {
        float *logits = c->logits + k * c->c;
        int64_t target = t->targets[k];
        double sum = nans[k] > 0 ? NAN : (double)c->sums[k] / c->unit;
        float base = isfinite(c->highest[k]) ? c->highest[k] : 0.0f;
        if (target == EMBLA_TARGET_IGNORE) {
            memset(logits, 0, c->c * sizeof *logits);
            continue;
        }
        c->loss += embla_log(sum) + (double)c->highest[k] - c->chosen[k];
        c->report.correct += c->chosen[k] == (double)c->highest[k];
        for (size_t i = 0; i < c->s->buckets; i++) {
            const block b = block_at(c, i);
            if (b.rows > 0)
                embla_softmax_gradient(logits + b.first, b.rows, base, (float)(c->scale / sum),
                                       0.0f);
        }
        if (embla_sharded_rank(c->s, target) == c->s->comm->rank)
            logits[embla_sharded_at(c->s, c->s->local_of, target)] -= (float)c->scale;
    }
}

/* Adds a part to a slot's integers of n tokens. A token with a NaN is left out. */
static void add_part(const call *c, const float *part, size_t n, int64_t *gradients)
{
    const int64_t *nans = c->sums + n;
    for (size_t k = 0; k < n; k++)
        for (size_t i = k * c->d; nans[k] == 0 && i < (k + 1) * c->d; i++)
            gradients[i] += llrint((double)part[i] * c->room);
}

/* The integers of a slot; those of the first are the sum in the end. */
static int64_t *integers_of(const call *c, size_t slot)
{
    return c->gradients + slot * c->longest * c->d;
}

/* The products of blocks: gradients of rows, and of hidden as integers of a slot. */
static embla_status multiply_gradients(void *job, size_t first, size_t end, size_t slot)
{
    const shard_job *j = job;
    const call *c = j->call;
    const shard *t = j->shard;
    float *part = c->parts + slot * c->longest * c->d;
    for (size_t i = first; i < end; i++) {
        const block b = block_at(c, i);
        if (b.rows == 0) continue;
        if (c->table) EMBLA_TRY(add_to_rows(c, t, &b));
        if (!isfinite(c->room)) continue;
        EMBLA_TRY(part_of_hidden(c, t, &b, part));
        add_part(c, part, t->n, integers_of(c, slot));
    }
    return EMBLA_OK;
}

/* Gradients of rows, and of hidden. */
static embla_status compute_gradients(call *c, const shard *t)
{
    const shard_job job = {.call = c, .shard = t};
    size_t count = t->n * c->d, slots = (size_t)c->threads;
    for (size_t k = 0; k < slots; k++) memset(integers_of(c, k), 0, count * sizeof *c->gradients);
    if (c->failed == EMBLA_OK)
        c->failed = embla_share(c->threads, c->s->buckets, 1, multiply_gradients, &job);
    for (size_t k = 1; k < slots; k++)
        for (size_t i = 0; i < count; i++) c->gradients[i] += integers_of(c, k)[i];
    const embla_comm *comm = c->s->comm;
    EMBLA_TRY(comm->allreduce(comm->owner, c->gradients, count, EMBLA_COMM_TYPE_INT64,
                              EMBLA_COMM_OP_SUM));
    const int64_t *nans = c->sums + t->n;
    for (size_t i = 0; t->out && i < count; i++)
        t->out[i] = nans[i / c->d] > 0 ? NAN : (float)((double)c->gradients[i] / c->room);
    return EMBLA_OK;
}

/* The same with sums of floats. */
static embla_status compute_fast(call *c, const shard *t)
{
    const embla_comm *comm = c->s->comm;
    size_t count = t->n * c->d;
    const block all = {.first = 0, .rows = c->c}; /* gradients of unused rows are 0 */
    if (c->failed == EMBLA_OK && c->table) c->failed = add_to_rows(c, t, &all);
    if (c->failed == EMBLA_OK) c->failed = part_of_hidden(c, t, &all, c->parts);
    if (c->failed != EMBLA_OK) memset(c->parts, 0, count * sizeof *c->parts);
    EMBLA_TRY(
        comm->allreduce(comm->owner, c->parts, count, EMBLA_COMM_TYPE_FLOAT, EMBLA_COMM_OP_SUM));
    if (t->out) memcpy(t->out, c->parts, count * sizeof *c->parts);
    return EMBLA_OK;
}

static embla_status run_shard(call *c, const shard *t, bool learns)
{
    if (t->n == 0) return EMBLA_OK;
    if (c->failed == EMBLA_OK) c->failed = compute_logits(c, t);
    if (c->failed != EMBLA_OK) memset(c->logits, 0, t->n * c->c * sizeof *c->logits);
    EMBLA_TRY(find_highest(c, t));
    EMBLA_TRY(sum_exponentials(c, t));
    finish_logits(c, t);
    if (!learns) return EMBLA_OK;
    return c->fast ? compute_fast(c, t) : compute_gradients(c, t);
}

/* ---- the call ---- */

static embla_status decode_rows(call *c)
{
    embla_table *table = c->s->table;
    if (c->s->options.dtype == EMBLA_F32) {
        c->rows = (const float *)embla_table_row(table, 0);
        return EMBLA_OK;
    }
    const embla_row_format format = {.dim = c->d, .dtype = c->s->options.dtype};
    return embla_row_decode(&format, embla_table_row(table, 0), (size_t)embla_table_rows(table),
                            (float *)(uintptr_t)c->rows);
}

/* All shards of all ranks, in order. */
static embla_status run(call *c, float *gradient)
{
    const embla_comm *comm = c->s->comm;
    size_t words = c->rank_shards + 1;
    bool learns = gradient || c->table;
    for (int r = 0; r < comm->size; r++) {
        const size_t *lengths = c->shards + (size_t)r * words;
        size_t at = (size_t)r * c->rank_tokens, own = 0;
        for (size_t i = 1; i <= lengths[0]; i++) {
            const shard t = {.hidden = c->hidden + at * c->d,
                             .targets = c->targets + at,
                             .n = lengths[i],
                             .out = r == comm->rank && gradient ? gradient + own * c->d : NULL};
            EMBLA_TRY(run_shard(c, &t, learns));
            at += lengths[i];
            own += lengths[i];
        }
    }
    return EMBLA_OK;
}

embla_status embla_sharded_loss(embla_sharded *sharded, const embla_sharded_loss_batch *batch,
                                const embla_sharded_loss_options *options, float *gradient,
                                float *table, embla_loss_report *report)
{
    embla_sharded *s = sharded;
    EMBLA_NEED_OF("embla_sharded_loss", "table", s);
    EMBLA_TRY(embla_sharded_idle(s));
    static const embla_sharded_loss_options defaults;
    call c = {.s = s, .d = s->options.dim, .c = s->buckets * s->bucket_rows, .table = table};
    EMBLA_TRY(embla_comm_agree(s->comm, check(s, batch, options), "its loss cannot be computed"));
    if (!options) options = &defaults;
    c.fast = options->fast;
    c.threads = embla_threads_for(s->options.threads, c.c * c.d * sizeof(float));
    if ((size_t)c.threads > s->buckets) c.threads = (int)s->buckets;
    EMBLA_TRY(find_sizes(&c, batch));
    embla_status status = make_room(&c);
    if (status == EMBLA_OK) status = decode_rows(&c);
    EMBLA_TRY(embla_comm_agree(s->comm, status, "its loss cannot be computed"));
    EMBLA_TRY(gather(&c, batch));
    count_targets(&c, options->weight == 0.0 ? 1.0 : options->weight);
    if ((gradient || table) && !c.fast) EMBLA_TRY(find_room(&c));
    EMBLA_TRY(run(&c, gradient));
    EMBLA_TRY(embla_comm_agree(s->comm, c.failed, "its products of the loss"));
    c.report.loss = c.report.counted > 0 ? c.loss / (double)c.report.counted : 0.0;
    if (report) *report = c.report;
    return EMBLA_OK;
}
