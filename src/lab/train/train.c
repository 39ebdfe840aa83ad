/* SPDX-License-Identifier: Apache-2.0 */
/* A training run: batch, gradients, gradient norm, and the update of all weights.
 *
 * AdamW uses the arithmetic of learn/steps.c, in one loop over the block of weights, a tile at a
 * time. While a tile is in the cache, its gradients are clipped, the weights are updated, and the
 * gradients are set to 0 for the next batch. So the gradients pass through memory twice (once for
 * their norm), and one parallel loop updates all tensors. Gaps between tensors are 0 and stay 0.
 *
 * The norm is a sum over tiles of the weights, in an order that does not depend on who computes
 * them (learn/clip.h).
 *
 * The rows of an n-gram table that a batch uses have their own gradients. They are part of the
 * norm, are clipped by the same factor, and are updated by row-wise Adagrad.
 */
#include "train/train.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/finite.h"
#include "base/kernels.h"
#include "base/layout.h"
#include "base/mem.h"
#include "base/options.h"
#include "base/parallel.h"
#include "base/threads.h"
#include "corpus/corpus.h"
#include "learn/clip.h"
#include "learn/steps.h"
#include "learn/wide_sum.h"
#include "model/gpt_ngram.h"
#include "train/train_shared.h"

enum {
    SKIPPED_MOST = 100, /* steps in a row whose gradient is not finite */
    TILE = 65536,       /* numbers: 256 KiB of each of the four arrays */
    LEAF = EMBLA_SQUARES_LEAF,
    AHEAD = 768, /* numbers to prefetch; not a multiple of a page, so that the arrays use different
                    sets of the L1 cache */
    STREAMS = 8  /* reads and writes of weights, mean, squares, gradients */
};

/* ---- options ---- */

static embla_status check_share(const char *what, double value)
{
    if (!(value >= 0.0 && value < 1.0))
        return embla_fail(EMBLA_ERR_ARGUMENT, "%s is %g; it must be 0 or greater and below 1", what,
                          value);
    return EMBLA_OK;
}

static embla_status check_size(const char *what, double value)
{
    if (!(value >= 0.0) || !isfinite(value))
        return embla_fail(EMBLA_ERR_ARGUMENT, "%s is %g; it must be finite and 0 or greater", what,
                          value);
    return EMBLA_OK;
}

static embla_status check_numbers(const embla_train_options *o)
{
    double rate;
    EMBLA_TRY(embla_threads_check(o->threads));
    EMBLA_TRY(check_share("beta1", o->beta1));
    EMBLA_TRY(check_share("beta2", o->beta2));
    EMBLA_TRY(check_size("epsilon", o->epsilon));
    EMBLA_TRY(check_size("decay", o->decay));
    EMBLA_TRY(check_size("clip", o->clip));
    EMBLA_TRY(check_size("ngram_rate", o->ngram_rate));
    if (o->epsilon != 0.0 && !((float)o->epsilon > 0.0f && (float)o->epsilon <= FLT_MAX))
        return embla_fail(EMBLA_ERR_ARGUMENT, "epsilon is %g; it must fit in an f32", o->epsilon);
    if (o->compute != 0 && o->compute != EMBLA_F32 && o->compute != EMBLA_BF16)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "training computes in f32 or bf16; compute is dtype %d", (int)o->compute);
    return embla_schedule_rate(&o->schedule, 0, &rate);
}

static embla_status check(const embla_gpt *gpt, const embla_corpus *corpus,
                          const embla_train_options *o)
{
    EMBLA_TRY(check_numbers(o));
    EMBLA_TRY(embla_train_freeze_check(gpt, o));
    if (o->negatives > 0 && o->negatives >= (uint64_t)gpt->shape.vocab)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "negatives is %zu; it must be below the vocabulary's %" PRId64
                          " tokens; use fewer, or the exact loss",
                          o->negatives, gpt->shape.vocab);
    EMBLA_TRY(embla_train_engine_check(o));
    if (o->batch < 1 || o->batch > INT32_MAX)
        return embla_fail(EMBLA_ERR_ARGUMENT, "batch is %zu; it must be from 1 to %d", o->batch,
                          (int)INT32_MAX);
    if (o->length > gpt->shape.positions)
        return embla_fail(EMBLA_ERR_SHAPE, "length is %zu, but the model has %zu positions",
                          o->length, gpt->shape.positions);
    if (embla_corpus_vocab(corpus) > gpt->shape.vocab)
        return embla_fail(EMBLA_ERR_SHAPE,
                          "the corpus has %" PRId64
                          " different tokens, but the model's vocabulary is %" PRId64,
                          embla_corpus_vocab(corpus), gpt->shape.vocab);
    return EMBLA_OK;
}

static embla_train_options with_defaults(const embla_train_options *options, const embla_gpt *gpt)
{
    embla_train_options o = *options;
    if (o.length == 0) o.length = gpt->shape.positions;
    if (o.beta1 == 0.0) o.beta1 = 0.9;
    if (o.beta2 == 0.0) o.beta2 = 0.95;
    if (o.epsilon == 0.0) o.epsilon = 1e-8;
    if (o.ngram_rate == 0.0) o.ngram_rate = 0.05;
    if (o.compute == 0) o.compute = EMBLA_F32;
    o.engine = embla_train_engine_choose(gpt, &o);
    return o;
}

/* ---- create, free ---- */

/* Allocates the struct, runs, leaves, tokens and targets as one block. The next batch is prepared
 * early only if the model has n-grams. */
static embla_status new_block(embla_gpt *gpt, const embla_train_options *o, embla_train **out)
{
    embla_layout layout = {0};
    size_t buffers = embla_gpt_ngram_table(gpt) ? 2 : 1, places[4] = {0};
    size_t leaf_count = (gpt->numbers + LEAF - 1) / LEAF;
    uint64_t count = 0;
    void *memory = NULL;
    (void)embla_layout_add(&layout, 1, sizeof(embla_train));
    /* rows below a number may divide two tables */
    size_t runs = embla_layout_add(&layout, gpt->part_count + 2, sizeof(embla_train_run));
    size_t leaves = embla_layout_add(&layout, leaf_count, sizeof(double));
    if (!embla_mul_ok(o->batch, o->length, &count)) layout.too_large = true;
    for (size_t i = 0; i < 2 * buffers && !layout.too_large; i++)
        places[i] = embla_layout_add(&layout, (size_t)count, sizeof(int32_t));
    if (layout.too_large)
        return embla_fail(EMBLA_ERR_MEMORY, "%zu sequences of %zu tokens do not fit in memory",
                          o->batch, o->length);
    EMBLA_TRY(embla_mem_new(layout.bytes, "a training run", &memory));
    char *block = memory;
    embla_train *t = memory;
    t->bytes = layout.bytes;
    t->runs = (embla_train_run *)(void *)(block + runs);
    t->leaves = (double *)(void *)(block + leaves);
    t->leaf_count = leaf_count;
    for (size_t i = 0; i < buffers; i++) {
        t->tokens[i] = (int32_t *)(void *)(block + places[2 * i]);
        t->targets[i] = (int32_t *)(void *)(block + places[2 * i + 1]);
    }
    *out = t;
    return EMBLA_OK;
}

static embla_status fill(embla_train *t)
{
    embla_gpt *gpt = t->gpt;
    embla_table *table = embla_gpt_ngram_table(gpt);
    void *memory = NULL;
    size_t used;
    EMBLA_TRY(embla_train_sum(t->corpus, &t->sum));
    EMBLA_TRY(embla_corpus_batch(
        t->corpus,
        &(embla_corpus_request){.step = 0, .batch = t->options.batch, .length = t->options.length},
        t->tokens[0], t->targets[0], &used)); /* reports errors now, not at the first step */
    EMBLA_TRY(embla_gpt_reserve(gpt, t->options.batch, t->options.length));
    embla_train_divide(t);
    EMBLA_TRY(embla_mem_new(gpt->numbers * sizeof(float), "the means of gradients", &memory));
    t->mean = memory;
    EMBLA_TRY(embla_mem_new(gpt->numbers * sizeof(float), "the squares of gradients", &memory));
    t->squares = memory;
    if (!table) return EMBLA_OK;
    const embla_optim_options rows = {.kind = EMBLA_OPTIM_ADAGRAD_ROWWISE,
                                      .threads = t->options.threads};
    return embla_optim_new(table, &rows, &t->ngram);
}

embla_status embla_train_new(embla_gpt *gpt, const embla_corpus *corpus,
                             const embla_train_options *options, embla_train **out)
{
    embla_train *t;
    EMBLA_NEED(gpt);
    EMBLA_NEED(corpus);
    EMBLA_NEED(options);
    EMBLA_NEED(out);
    EMBLA_TRY(embla_options_check(options));
    EMBLA_TRY(check(gpt, corpus, options));
    const embla_train_options o = with_defaults(options, gpt);
    EMBLA_TRY(new_block(gpt, &o, &t));
    t->gpt = gpt;
    t->corpus = corpus;
    t->options = o;
    t->ahead = -1;
    embla_status status = fill(t);
    if (status != EMBLA_OK) {
        embla_train_free(t);
        return status;
    }
    *out = t;
    return EMBLA_OK;
}

void embla_train_free(embla_train *train)
{
    if (!train) return;
    size_t bytes = train->gpt->numbers * sizeof(float);
    embla_optim_free(train->ngram);
    if (train->shared) train->shared->leave(train->team);
    embla_mem_free(train->squares, bytes);
    embla_mem_free(train->mean, bytes);
    embla_mem_free(train, train->bytes);
}

void embla_train_resize(embla_train *t)
{
    t->run_count = 0;
    embla_train_divide(t);
    t->leaf_count = (t->gpt->numbers + LEAF - 1) / LEAF;
    t->clean = true;
}

int64_t embla_train_steps(const embla_train *train)
{
    return train ? train->step : 0;
}

embla_status embla_train_describe(const embla_train *train, embla_train_options *out)
{
    EMBLA_NEED(train);
    EMBLA_NEED(out);
    *out = train->options;
    return EMBLA_OK;
}

/* ---- AdamW over the block of weights ---- */

/* The parameters of one update. */
typedef struct {
    const embla_train *t;
    size_t first, end; /* of the numbers */
    double factor;     /* gradients are multiplied by this; 1 means not clipped */
    embla_step_fn *step;
    embla_rule rule;
    embla_moment moments[2]; /* without and with decay */
} update;

static embla_status update_of(const embla_train *t, double rate, update *out)
{
    const embla_train_options *o = &t->options;
    embla_optim_options adamw = {
        .kind = EMBLA_OPTIM_ADAMW, .beta1 = o->beta1, .beta2 = o->beta2, .epsilon = o->epsilon};
    int64_t number = t->updates + 1;
    *out = (update){.t = t, .factor = 1.0, .rule = embla_rule_of(&adamw)};
    embla_rule decays = out->rule;
    decays.decay = o->decay;
    out->step = embla_steps_of(EMBLA_STEP_ADAMW, embla_kernels_get()->isa).step;
    if (!embla_moment_of(&out->rule, number, rate, &out->moments[0]) ||
        !embla_moment_of(&decays, number, rate, &out->moments[1]))
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "at step %" PRId64 ", rate %g with decay %g does not fit in an f32",
                          t->step, rate, o->decay);
    return EMBLA_OK;
}

static float *floats(char *block, size_t at)
{
    return (float *)(void *)block + at;
}

/* Updates numbers from .. end-1. All of them decay, or none. */
static void move_run(const update *u, size_t from, size_t end, bool decays)
{
    const embla_train *t = u->t;
    embla_numbers x = {.w = floats(t->gpt->weights, from),
                       .a = floats(t->mean, from),
                       .b = floats(t->squares, from),
                       .g = floats(t->gpt->gradients, from),
                       .n = end - from};
    if (t->gpt->numbers - end >= AHEAD) {
        x.next_w = x.w + AHEAD;
        x.next_a = x.a + AHEAD;
        x.next_b = x.b + AHEAD;
        x.next_g = x.g + AHEAD;
    }
    u->step(&u->rule, &u->moments[decays], &x);
}

/* Updates a tile, run by run. */
static void move_tile(const update *u, size_t from, size_t end)
{
    const embla_train *t = u->t;
    float *g = floats(t->gpt->gradients, from);
    if (u->factor != 1.0) embla_kernels_get()->scale(g, (float)u->factor, end - from, g);
    for (size_t run = 0, at = from; at < end; run++) {
        size_t stop = t->runs[run].end < end ? t->runs[run].end : end;
        if (stop <= at) continue;
        if (!t->runs[run].frozen) move_run(u, at, stop, t->runs[run].decays);
        at = stop;
    }
    memset(g, 0, (end - from) * sizeof *g);
}

static embla_status move_tiles(void *job, size_t first, size_t end, size_t slot)
{
    const update *u = job;
    (void)slot;
    for (size_t i = first; i < end; i++) {
        size_t from = u->first + i * TILE;
        move_tile(u, from, u->end - from < TILE ? u->end : from + TILE);
    }
    return EMBLA_OK;
}

embla_status embla_train_move(const embla_train *t, size_t first, size_t end, double rate,
                              double factor)
{
    size_t numbers = end - first;
    update u;
    EMBLA_TRY(update_of(t, rate, &u));
    u.first = first;
    u.end = end;
    u.factor = factor;
    int threads = embla_threads_for(t->options.threads, STREAMS * numbers * sizeof(float));
    return embla_share(threads, (numbers + TILE - 1) / TILE, 1, move_tiles, &u);
}

/* ---- gradients ---- */

static embla_status ngram_gradients(const embla_train *t, embla_train_rows *out)
{
    const float *values = NULL;
    if (!t->ngram) return EMBLA_OK;
    EMBLA_TRY(embla_gpt_ngram_gradients(t->gpt, &out->rows, &values, &out->count));
    memcpy(&out->values, &values, sizeof values); /* the model's, which we may change */
    out->dim = embla_table_dim(embla_gpt_ngram_table(t->gpt));
    return EMBLA_OK;
}

/* The sum of squares of a leaf, without frozen numbers. Gaps are 0. */
static double leaf_sum(const embla_train *t, size_t leaf)
{
    size_t at = leaf * LEAF, end = t->gpt->numbers - at < LEAF ? t->gpt->numbers : at + LEAF;
    double sum = 0.0;
    for (size_t run = 0; at < end; run++) {
        size_t from = at, stop = t->runs[run].end < end ? t->runs[run].end : end;
        if (stop <= from) continue;
        /* neighbours that are not frozen are summed as one */
        while (!t->runs[run].frozen && stop < end && !t->runs[run + 1].frozen) {
            run++;
            stop = t->runs[run].end < end ? t->runs[run].end : end;
        }
        if (!t->runs[run].frozen)
            sum += embla_squares_leaf(floats(t->gpt->gradients, from), stop - from);
        at = stop;
    }
    return sum;
}

typedef struct {
    const embla_train *t;
    size_t leaf; /* the first one */
} squaring;

static embla_status sum_leaves(void *job, size_t first, size_t end, size_t slot)
{
    const squaring *s = job;
    (void)slot;
    for (size_t i = s->leaf + first; i < s->leaf + end; i++) s->t->leaves[i] = leaf_sum(s->t, i);
    return EMBLA_OK;
}

embla_status embla_train_squares(const embla_train *t, size_t from, size_t end)
{
    const squaring s = {.t = t, .leaf = from / LEAF};
    size_t last = (end + LEAF - 1) / LEAF;
    int threads = embla_threads_for(t->options.threads, (end - from) * sizeof(float));
    return embla_share(threads, last - s.leaf, 0, sum_leaves, &s);
}

void embla_train_rows_squares(const embla_train_rows *rows, embla_wide_sum *sum)
{
    for (size_t i = 0; i < rows->count; i++)
        embla_wide_add(sum, embla_squares_leaf(rows->values + i * rows->dim, rows->dim));
}

/* The norm of all gradients that are not frozen. */
static embla_status gradient_norm(const embla_train *t, const embla_train_rows *rows, double *out)
{
    embla_wide_sum grams = {0};
    EMBLA_TRY(embla_train_squares(t, 0, t->gpt->numbers));
    embla_train_rows_squares(rows, &grams);
    *out = sqrt(embla_squares_join(t->leaves, t->leaf_count) + embla_wide_round(&grams));
    return EMBLA_OK;
}

/* ---- a step ---- */

/* Gets the batch of this step. It may have been prepared by prefetch_next_batch. */
static embla_status next_batch(embla_train *t, size_t *used)
{
    const embla_train_options *o = &t->options;
    if (t->ahead == t->step) {
        t->now = !t->now;
        t->ahead = -1;
        *used = t->ahead_used;
        return EMBLA_OK;
    }
    return embla_corpus_batch(
        t->corpus, &(embla_corpus_request){.step = t->step, .batch = o->batch, .length = o->length},
        t->tokens[t->now], t->targets[t->now], used);
}

/* Prepares the next batch and prefetches its n-gram rows. Errors are reported at its step. */
static void prefetch_next_batch(embla_train *t)
{
    const embla_train_options *o = &t->options;
    int other = !t->now;
    t->ahead = -1;
    if (embla_corpus_batch(
            t->corpus,
            &(embla_corpus_request){.step = t->step + 1, .batch = o->batch, .length = o->length},
            t->tokens[other], t->targets[other], &t->ahead_used) != EMBLA_OK)
        return;
    if (embla_gpt_ngram_prefetch(t->gpt, t->tokens[other], o->batch, t->ahead_used,
                                 &(embla_gpt_options){.threads = o->threads}) == EMBLA_OK)
        t->ahead = t->step + 1;
}

embla_status embla_train_batch(embla_train *t, size_t *used, embla_gpt_options *how)
{
    const embla_train_options *o = &t->options;
    embla_corpus_kind kind = t->corpus->options.kind;
    bool by_frequency =
        kind == EMBLA_CORPUS_WORDS || kind == EMBLA_CORPUS_TOKENS || kind == EMBLA_CORPUS_TOKENIZER;
    *how = (embla_gpt_options){.compute = o->compute,
                               .threads = o->threads,
                               .seed = o->seed,
                               .step = t->step,
                               .negatives = o->negatives,
                               .no_engine = o->engine == EMBLA_TRAIN_ENGINE_NONE,
                               .proposal = by_frequency ? EMBLA_PROPOSAL_LOG_UNIFORM
                                                        : EMBLA_PROPOSAL_UNIFORM};
    if (!t->clean) embla_gpt_zero_gradients(t->gpt);
    t->clean = false;
    return next_batch(t, used);
}

/* Row-wise Adagrad follows the schedule: ngram_rate is scaled by rate / highest rate. */
embla_status embla_train_move_rows(const embla_train *t, const embla_train_rows *rows, double rate,
                                   double factor)
{
    const embla_schedule *s = &t->options.schedule;
    double highest = s->kind != EMBLA_SCHEDULE_CONSTANT && s->final > s->rate ? s->final : s->rate;
    double share = highest > 0.0 ? rate / highest : 0.0;
    if (factor != 1.0)
        embla_kernels_get()->scale(rows->values, (float)factor, rows->count * rows->dim,
                                   rows->values);
    return embla_optim_step_rows(t->ngram, t->options.ngram_rate * share, rows->rows, rows->count,
                                 rows->values);
}

double embla_train_clip(const embla_train *t, double norm)
{
    return t->options.clip > 0.0 && norm > t->options.clip ? t->options.clip / norm : 1.0;
}

/* Updates all weights, or none if the gradient norm is not finite. */
static embla_status update_weights(embla_train *t, const embla_train_rows *rows,
                                   embla_train_report *r)
{
    EMBLA_TRY(gradient_norm(t, rows, &r->norm));
    r->skipped = !isfinite(r->norm);
    if (r->skipped) return EMBLA_OK;
    double factor = embla_train_clip(t, r->norm);
    t->torn = true;
    if (t->ngram) EMBLA_TRY(embla_train_move_rows(t, rows, r->rate, factor));
    EMBLA_TRY(embla_train_move(t, 0, t->gpt->numbers, r->rate, factor));
    t->torn = false;
    if (t->ngram)
        prefetch_next_batch(t); /* last, so that the rows are still in the cache at the next step */
    t->clean = true;
    t->updates++;
    return EMBLA_OK;
}

/* A step of a training that this process makes alone. */
static embla_status make_step(embla_train *t, embla_train_report *r)
{
    embla_loss_report loss = {0};
    embla_train_rows rows = {0};
    embla_gpt_options how;
    size_t used = 0;
    EMBLA_TRY(embla_train_batch(t, &used, &how));
    EMBLA_TRY(embla_gpt_backward(t->gpt,
                                 &(embla_gpt_batch){.tokens = t->tokens[t->now],
                                                    .targets = t->targets[t->now],
                                                    .batch = t->options.batch,
                                                    .length = used},
                                 &how, &loss));
    EMBLA_TRY(ngram_gradients(t, &rows));
    r->loss = loss.loss;
    r->tokens = loss.counted;
    return update_weights(t, &rows, r);
}

embla_status embla_train_check_torn(const embla_train *t)
{
    if (!t->torn) return EMBLA_OK;
    return embla_fail(
        EMBLA_ERR_ARGUMENT,
        "a load or a step of this training run failed halfway; load a checkpoint first");
}

/* What makes a step impossible is reported before anything changes. */
static embla_status check_step(const embla_train *t, double *rate)
{
    update u;
    EMBLA_TRY(embla_train_check_torn(t));
    if (t->step >= EMBLA_TRAIN_STEPS_MOST)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "step is %" PRId64 "; at most %" PRId64 " steps are supported", t->step,
                          EMBLA_TRAIN_STEPS_MOST);
    EMBLA_TRY(embla_schedule_rate(&t->options.schedule, t->step, rate));
    return update_of(t, *rate, &u);
}

embla_status embla_train_step(embla_train *train, embla_train_report *report)
{
    EMBLA_NEED(train);
    embla_train_report r = {.step = train->step};
    EMBLA_TRY(check_step(train, &r.rate));
    EMBLA_TRY(train->shared ? train->shared->step(train, &r) : make_step(train, &r));
    train->step++;
    train->skipped = r.skipped ? train->skipped + 1 : 0;
    if (report) *report = r;
    if (train->skipped < SKIPPED_MOST) return EMBLA_OK;
    return embla_fail(EMBLA_ERR_RANGE,
                      "the gradients of the last %" PRId64
                      " steps are not finite, so nothing is learned; try a lower rate, or clipping",
                      train->skipped);
}

/* ---- whether it has diverged ---- */

static embla_status check_finite(const embla_gpt_tensor *tensor)
{
    for (int64_t row = 0; row < tensor->rows; row++)
        if (!embla_all_finite(tensor->values + (size_t)row * tensor->dim, tensor->dim))
            return embla_fail(EMBLA_ERR_RANGE,
                              "the training has diverged: row %" PRId64
                              " of '%.128s' is not finite; train again with a lower rate",
                              row, tensor->name);
    return EMBLA_OK;
}

embla_status embla_train_check(const embla_train *train)
{
    embla_gpt_tensor tensor;
    EMBLA_NEED(train);
    for (size_t n = 0; n < embla_gpt_tensor_count(train->gpt); n++) {
        EMBLA_TRY(embla_gpt_tensor_at(train->gpt, n, &tensor));
        EMBLA_TRY(check_finite(&tensor));
    }
    if (2 * train->skipped <= train->step - train->first) return EMBLA_OK;
    return embla_fail(EMBLA_ERR_RANGE,
                      "the training has diverged: the gradients of the last %" PRId64 " of %" PRId64
                      " steps are not finite, so nothing was learned in them; train again with a "
                      "lower rate",
                      train->skipped, train->step - train->first);
}
