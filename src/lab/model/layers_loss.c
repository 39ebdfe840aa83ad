/* SPDX-License-Identifier: Apache-2.0 */
/* The head of a model and its loss. If the engine is worth it, this is embla_head_loss over a
 * view of the table. Otherwise a linear layer computes the logits of a chunk of counted tokens, and
 * their gradients. Chunks depend only on sizes, and are processed in order. */
#include <string.h>

#include "base/elementary.h"
#include "base/layout.h"
#include "base/math.h"
#include "learn/loss.h"
#include "learn/softmax.h"
#include "model/layers.h"
#include "model/layers_product.h"

enum {
    SMALL = 1 << 20,  /* with fewer multiplications, plain loops are faster */
    LOGITS = 1 << 20, /* numbers in memory at once, at least those of one token */
    CHUNK_MOST = 64,  /* tokens */
    STACK = 8192      /* numbers that need no allocation */
};

/* ---- by embla_head_loss ---- */

static embla_status by_head(const embla_layer_way *way, const float *hidden, const int32_t *targets,
                            size_t n, size_t dim, const float *table, int64_t vocab, double weight,
                            float *dhidden, float *dtable, embla_loss_report *report)
{
    embla_table *view;
    embla_loss_options options = {
        .weight = weight, .compute = way->compute, .threads = way->threads};
    embla_loss_gradients gradients = {.hidden = dhidden, .table = dhidden ? dtable : NULL};
    const uint16_t *rounded = embla_layer_rounded(way, table);
    size_t numbers = (size_t)vocab * dim;
    if (rounded)
        EMBLA_TRY(
            embla_table_view(&(embla_table_layout){.dtype = EMBLA_BF16, .rows = vocab, .dim = dim},
                             rounded, numbers * sizeof *rounded, NULL, &view));
    else
        EMBLA_TRY(
            embla_table_view(&(embla_table_layout){.dtype = EMBLA_F32, .rows = vocab, .dim = dim},
                             table, numbers * sizeof *table, NULL, &view));
    embla_status status = embla_loss_run(&(embla_head){.table = view}, hidden, targets, n, &options,
                                         &gradients, NULL, report, NULL, way->scratch);
    embla_table_free(view);
    return status;
}

/* ---- by embla_sampled_loss ---- */

embla_status embla_layer_sampled_loss(const embla_layer_way *way, const float *hidden,
                                      const int32_t *targets, size_t n, size_t dim,
                                      const float *table, int64_t vocab, double weight,
                                      const embla_negatives *negatives, float *dhidden,
                                      float *dtable, embla_loss_report *report)
{
    embla_table *view;
    embla_layout layout = {0};
    embla_scratch_use use;
    size_t rows = embla_layout_add(&layout, n + negatives->negatives, sizeof(int64_t));
    size_t values = embla_layout_add(&layout, n + negatives->negatives, dim * sizeof(float));
    const embla_loss_options options = {
        .weight = weight, .compute = way->compute, .threads = way->threads};
    if (layout.too_large)
        return embla_fail(EMBLA_ERR_MEMORY, "%zu rows of gradients do not fit in memory", n);
    EMBLA_TRY(embla_table_view(&(embla_table_layout){.dtype = EMBLA_F32, .rows = vocab, .dim = dim},
                               table, (size_t)vocab * dim * sizeof(float), NULL, &view));
    embla_status status =
        embla_scratch_begin(way->scratch, layout.bytes, "gradients of drawn rows", &use);
    if (status != EMBLA_OK) {
        embla_table_free(view);
        return status;
    }
    embla_sampled_gradients g = {.hidden = dhidden,
                                 .rows = (int64_t *)(void *)((char *)use.memory + rows),
                                 .table = (float *)(void *)((char *)use.memory + values)};
    status =
        embla_sampled_loss(&(embla_head){.table = view},
                           &(embla_loss_batch){.hidden = hidden, .targets = targets, .count = n},
                           negatives, &options, &g, report);
    for (size_t i = 0; status == EMBLA_OK && i < g.touched; i++)
        for (size_t c = 0; c < dim; c++)
            dtable[(size_t)g.rows[i] * dim + c] += g.table[i * dim + c];
    embla_scratch_end(&use);
    embla_table_free(view);
    return status;
}

/* ---- by linear layers ---- */

typedef struct {
    const embla_layer_way *way;
    const float *hidden, *table;
    const int32_t *targets;
    size_t n, dim, vocab;
    float *dhidden, *dtable;
    size_t chunk;              /* counted tokens at a time */
    float *vectors, *logits;   /* of a chunk: its hidden vectors, gathered; its logits */
    size_t places[CHUNK_MOST]; /* indices of its tokens */
    double share;              /* weight / counted tokens */
    double loss;
    int64_t correct;
} head_call;

/* One token of a chunk: how far its target's logit is below the largest. */
typedef struct {
    double below;
    bool correct;
} token_of;

/* Replaces the logits of a chunk by exponentials relative to the largest of each token, and finds
 * that one. */
static void raise_logits(const head_call *c, float *x, size_t count, token_of *tokens)
{
    for (size_t t = 0; t < count; t++) {
        float *row = x + t * c->vocab, most = row[0];
        size_t target = (size_t)c->targets[c->places[t]], best = 0;
        for (size_t i = 1; i < c->vocab; i++)
            if (row[i] > most) most = row[i], best = i;
        tokens[t] =
            (token_of){.below = (double)most - (double)row[target], .correct = best == target};
        for (size_t i = 0; i < c->vocab; i++) row[i] -= most;
    }
    embla_softmax_exp(x, count * c->vocab, 0, x);
}

/* Adds losses. If gradients are wanted, replaces exponentials by gradients; that of the target is
 * its probability minus 1: e^-loss - 1. */
static void add_losses(head_call *c, float *x, size_t count, const token_of *tokens)
{
    for (size_t t = 0; t < count; t++) {
        float *row = x + t * c->vocab;
        double sum = embla_softmax_plain_sum(row, c->vocab),
               loss = embla_log(sum) + tokens[t].below;
        float share = (float)(c->share / sum);
        c->loss += loss;
        c->correct += tokens[t].correct;
        if (!c->dhidden) continue;
        for (size_t i = 0; i < c->vocab; i++) row[i] *= share;
        row[c->targets[c->places[t]]] = (float)(c->share * embla_expm1(-loss));
    }
}

static void softmax(head_call *c, float *logits, size_t count)
{
    token_of tokens[CHUNK_MOST];
    raise_logits(c, logits, count, tokens);
    add_losses(c, logits, count, tokens);
}

static embla_status run_chunk(head_call *c, size_t count)
{
    size_t dim = c->dim;
    for (size_t i = 0; i < count; i++)
        memcpy(c->vectors + i * dim, c->hidden + c->places[i] * dim, dim * sizeof(float));
    EMBLA_TRY(embla_linear_forward(c->way, c->vectors, count, c->dim, c->table, NULL, c->vocab,
                                   false, c->logits));
    softmax(c, c->logits, count);
    if (!c->dhidden) return EMBLA_OK;
    float *back = c->vectors + c->chunk * dim;
    EMBLA_TRY(embla_linear_backward(c->way, c->vectors, c->logits, count, c->dim, c->table,
                                    c->vocab, false, back, c->dtable, NULL));
    for (size_t i = 0; i < count; i++)
        memcpy(c->dhidden + c->places[i] * dim, back + i * dim, dim * sizeof(float));
    return EMBLA_OK;
}

static embla_status run_chunks(head_call *c)
{
    size_t count = 0;
    for (size_t t = 0; t < c->n; t++) {
        if (c->targets[t] != EMBLA_TARGET_IGNORE)
            c->places[count++] = t;
        else if (c->dhidden)
            memset(c->dhidden + t * c->dim, 0, c->dim * sizeof(float));
        if (count < c->chunk && t + 1 < c->n) continue;
        EMBLA_TRY(run_chunk(c, count));
        count = 0;
    }
    return EMBLA_OK;
}

static embla_status check_targets(const int32_t *targets, size_t n, int64_t vocab, int64_t *counted)
{
    *counted = 0;
    for (size_t i = 0; i < n; i++) {
        if (targets[i] == EMBLA_TARGET_IGNORE) continue;
        if (targets[i] < 0 || targets[i] >= vocab)
            return embla_fail(EMBLA_ERR_RANGE,
                              "target %" PRId32
                              " at index %zu is out of range; the table has %" PRId64 " rows",
                              targets[i], i, vocab);
        ++*counted;
    }
    return EMBLA_OK;
}

/* Allocates space for a chunk: vectors, their gradients, logits; on the stack if it is small
 * enough. */
static embla_status run_with_space(head_call *c)
{
    float stack[STACK];
    embla_layout layout = {0};
    embla_scratch_use use = {.memory = stack};
    size_t vectors = embla_layout_add(&layout, 2 * c->chunk * c->dim, sizeof(float));
    size_t logits = embla_layout_add(&layout, c->chunk * c->vocab, sizeof(float));
    bool large = layout.bytes > sizeof stack;
    if (layout.too_large) return embla_fail(EMBLA_ERR_MEMORY, "the logits do not fit in memory");
    if (large)
        EMBLA_TRY(
            embla_scratch_begin(c->way->scratch, layout.bytes, "the logits of a chunk", &use));
    head_call here = *c;
    here.vectors = (float *)(void *)((char *)use.memory + vectors);
    here.logits = (float *)(void *)((char *)use.memory + logits);
    embla_status status = run_chunks(&here);
    c->loss = here.loss;
    c->correct = here.correct;
    if (large) embla_scratch_end(&use);
    return status;
}

embla_status embla_layer_loss(const embla_layer_way *way, const float *hidden,
                              const int32_t *targets, size_t n, size_t dim, const float *table,
                              int64_t vocab, double weight, float *dhidden, float *dtable,
                              embla_loss_report *report)
{
    size_t rows = (size_t)vocab;
    int64_t counted;
    if (n * dim * rows > SMALL && embla_layer_has_engine(way))
        return by_head(way, hidden, targets, n, dim, table, vocab, weight, dhidden, dtable, report);
    EMBLA_TRY(check_targets(targets, n, vocab, &counted));
    head_call c = {.way = way,
                   .hidden = hidden,
                   .table = table,
                   .targets = targets,
                   .n = n,
                   .dim = dim,
                   .vocab = rows,
                   .dhidden = dhidden,
                   .dtable = dtable};
    c.chunk = LOGITS / rows < CHUNK_MOST ? LOGITS / rows : CHUNK_MOST;
    if (c.chunk > n) c.chunk = n;
    if (c.chunk == 0) c.chunk = 1;
    if (counted > 0) c.share = (weight == 0.0 ? 1.0 : weight) / (double)counted;
    EMBLA_TRY(run_with_space(&c));
    if (report)
        *report = (embla_loss_report){.loss = counted > 0 ? c.loss / (double)counted : 0.0,
                                      .counted = counted,
                                      .ignored = (int64_t)n - counted,
                                      .correct = c.correct};
    return EMBLA_OK;
}
