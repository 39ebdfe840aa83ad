/* SPDX-License-Identifier: Apache-2.0 */
/* How probable tokens are: the next ones, and those of a text.
 *
 * A decoder computes the vectors of all tokens in one pass. Their logits are computed a block of
 * places at a time, so memory is a few MiB beside them for any length of text. The logits of the
 * last place alone are those that sampling has: the head's way for one vector. Results are first
 * made in memory of the call, because a logit that is not finite may come late.
 */
#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "base/best.h"
#include "base/elementary.h"
#include "base/finite.h"
#include "base/options.h"
#include "base/parallel.h"
#include "base/threads.h"
#include "learn/softmax.h"
#include "model/decoder.h"
#include "model/gpt_trunk.h"

enum { LOGITS = 4 << 20, PLACES = 64 }; /* maximum of a block: numbers, and places */

typedef struct {
    const embla_gpt *gpt;
    const int32_t *tokens;
    size_t count;
    embla_predict_options options;
    double inverse; /* 1 / temperature */
    embla_head head;
    float *hidden; /* the vectors of all tokens, or only of the last */
    float *logits; /* block x vocab */
    size_t first, block;
    embla_predict_results made;
} job;

/* The logits of one place, and what makes probabilities of them. */
typedef struct {
    const float *logits;
    int64_t vocab;
    double most, log_mass, inverse;
} place;

/* ---- one place ---- */

/* The place after token `index` of the text. */
static embla_status weigh_place(const job *j, size_t index, const float *logits, place *out)
{
    const int64_t vocab = j->gpt->shape.vocab;
    if (!embla_all_finite(logits, (size_t)vocab))
        return embla_fail(EMBLA_ERR_RANGE,
                          "after token %" PRId32
                          " at index %zu a logit is NaN or infinite, so nothing is probable: the "
                          "model has weights that are not finite, or too large",
                          j->tokens[index], index);
    *out = (place){.logits = logits, .vocab = vocab, .inverse = j->inverse};
    out->most = (double)embla_softmax_max(logits, (size_t)vocab);
    out->log_mass = embla_log(embla_softmax_mass(logits, (size_t)vocab, out->most, j->inverse));
    return EMBLA_OK;
}

static embla_prediction prediction_of(const place *p, int32_t token, int64_t rank)
{
    const float logit = p->logits[token];
    return (embla_prediction){.token = token,
                              .logit = logit,
                              .log_probability =
                                  ((double)logit - p->most) * p->inverse - p->log_mass,
                              .rank = rank};
}

static int64_t rank_of(const place *p, int32_t token)
{
    const float logit = p->logits[token];
    int64_t rank = 1;
    for (int32_t i = 0; i < token; i++) rank += p->logits[i] >= logit;
    for (int64_t i = token; i < p->vocab; i++) rank += p->logits[i] > logit;
    return rank;
}

/* ---- the tokens of the text ---- */

static embla_status predict_places(void *context, size_t first, size_t end, size_t slot)
{
    const job *j = context;
    (void)slot;
    for (size_t i = first; i < end; i++) {
        const size_t index = j->first + i; /* the token before the place */
        const int32_t token = j->tokens[index + 1];
        place p;
        EMBLA_TRY(weigh_place(j, index, j->logits + i * (size_t)j->gpt->shape.vocab, &p));
        j->made.each[index + 1] = prediction_of(&p, token, rank_of(&p, token));
    }
    return EMBLA_OK;
}

static embla_status predict_each(job *j)
{
    const embla_head_options options = {.threads = j->options.threads};
    const size_t places = j->count - 1, dim = j->gpt->shape.dim;
    j->made.each[0] = (embla_prediction){.token = j->tokens[0]};
    for (size_t n; j->first < places; j->first += n) {
        n = places - j->first < j->block ? places - j->first : j->block;
        EMBLA_TRY(embla_head_logits(&j->head, j->hidden + j->first * dim, n, &options, j->logits));
        const size_t bytes = n * (size_t)j->gpt->shape.vocab * sizeof *j->logits;
        EMBLA_TRY(
            embla_share(embla_threads_for(j->options.threads, bytes), n, 1, predict_places, j));
    }
    for (size_t i = 1; i < j->count; i++)
        j->made.loss -= j->made.each[i].log_probability / (double)places;
    return EMBLA_OK;
}

/* ---- the next token ---- */

static embla_status predict_next(job *j, embla_arena *arena)
{
    const embla_predict_options *o = &j->options;
    const float *last = j->hidden;
    embla_best best = {.room = o->top};
    place p;
    if (j->made.each) last += (j->count - 1) * j->gpt->shape.dim;
    EMBLA_TRY(embla_head_logits(&j->head, last, 1, &(embla_head_options){.threads = o->threads},
                                j->logits));
    EMBLA_TRY(weigh_place(j, j->count - 1, j->logits, &p));
    for (size_t i = 0; j->made.asked && i < o->asked_count; i++)
        j->made.asked[i] = prediction_of(&p, o->asked[i], rank_of(&p, o->asked[i]));
    if (!j->made.next) return EMBLA_OK;
    EMBLA_TRY(embla_arena_many(arena, o->top, sizeof *best.items, "the best tokens", &best.items));
    for (int64_t i = 0; i < p.vocab; i++)
        embla_best_add(&best, (embla_scored){.row = i, .score = (double)p.logits[i]});
    embla_best_sort(&best);
    for (size_t i = 0; i < best.count; i++)
        j->made.next[i] = prediction_of(&p, (int32_t)best.items[i].row, (int64_t)i + 1);
    return EMBLA_OK;
}

/* ---- a call ---- */

static embla_status check(const job *j)
{
    const embla_gpt_shape *s = &j->gpt->shape;
    const embla_predict_options *o = &j->options;
    EMBLA_TRY(embla_threads_check(o->threads));
    if (j->count < 1)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "a prediction needs at least 1 token, such as the one that begins texts");
    if (j->count > s->positions)
        return embla_fail(EMBLA_ERR_RANGE,
                          "the text has %zu tokens, but the model has %zu positions; shorten the "
                          "text",
                          j->count, s->positions);
    if (o->top > (uint64_t)s->vocab)
        return embla_fail(EMBLA_ERR_RANGE, "top is %zu, but the model has %" PRId64 " tokens",
                          o->top, s->vocab);
    if (!(o->temperature >= 0.0) || isinf(o->temperature))
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "temperature is %g; it must be finite and above 0 (0 means 1)",
                          o->temperature);
    if (o->asked_count > 0 && !o->asked)
        return embla_fail(EMBLA_ERR_ARGUMENT, "asked is NULL, but its count is %zu",
                          o->asked_count);
    for (size_t i = 0; i < o->asked_count; i++)
        if ((uint64_t)o->asked[i] >= (uint64_t)s->vocab)
            return embla_fail(EMBLA_ERR_RANGE,
                              "asked token %" PRId32
                              " at index %zu is out of range; the model has tokens 0 to %" PRId64,
                              o->asked[i], i, s->vocab - 1);
    return EMBLA_OK;
}

/* Allocates what is wanted, and what its computation needs. */
static embla_status reserve(job *j, const embla_predict_results *wanted, embla_arena *arena)
{
    const embla_gpt_shape *s = &j->gpt->shape;
    embla_predict_results *made = &j->made;
    const size_t vectors = wanted->each ? j->count : 1, each = sizeof(embla_prediction);
    j->block = LOGITS / (size_t)s->vocab;
    if (j->block < 1 || !wanted->each) j->block = 1;
    if (j->block > PLACES) j->block = PLACES;
    EMBLA_TRY(embla_arena_many(arena, vectors, s->dim * sizeof(float), "vectors", &j->hidden));
    EMBLA_TRY(
        embla_arena_many(arena, j->block, (size_t)s->vocab * sizeof(float), "logits", &j->logits));
    if (wanted->next)
        EMBLA_TRY(embla_arena_many(arena, j->options.top, each, "predictions", &made->next));
    if (wanted->asked)
        EMBLA_TRY(
            embla_arena_many(arena, j->options.asked_count, each, "predictions", &made->asked));
    if (wanted->each)
        EMBLA_TRY(embla_arena_many(arena, j->count, each, "predictions", &made->each));
    if (wanted->attention)
        EMBLA_TRY(embla_arena_many(arena, j->count, s->layers * s->heads * sizeof(float),
                                   "weights of attention", &made->attention));
    return EMBLA_OK;
}

static embla_status compute(job *j, embla_decoder *decoder, embla_arena *arena)
{
    embla_decoder_view view = {.attention = j->made.attention};
    *(j->made.each ? &view.all : &view.last) = j->hidden;
    EMBLA_TRY(embla_decoder_head(decoder, &j->head));
    EMBLA_TRY(embla_decoder_run(decoder, j->tokens, j->count, j->options.threads, &view));
    EMBLA_TRY(predict_next(j, arena));
    return j->made.each ? predict_each(j) : EMBLA_OK;
}

static void copy(void *to, const void *from, size_t bytes)
{
    if (to && bytes > 0) memcpy(to, from, bytes);
}

static void copy_results(const job *j, embla_predict_results *out)
{
    const embla_gpt_shape *s = &j->gpt->shape;
    const embla_predict_results *made = &j->made;
    copy(out->next, made->next, j->options.top * sizeof *made->next);
    copy(out->asked, made->asked, j->options.asked_count * sizeof *made->asked);
    copy(out->each, made->each, j->count * sizeof *made->each);
    copy(out->attention, made->attention,
         s->layers * s->heads * j->count * sizeof *made->attention);
    out->loss = made->loss;
}

embla_status embla_gpt_predict(const embla_gpt *gpt, const int32_t *tokens, size_t count,
                               const embla_predict_options *options, embla_predict_results *results)
{
    embla_arena arena = {0};
    embla_decoder *decoder = NULL;
    EMBLA_NEED(gpt);
    EMBLA_NEED_MANY(tokens, count);
    EMBLA_NEED(results);
    EMBLA_TRY(embla_options_check(options));
    EMBLA_TRY(embla_options_check(results));
    job j = {.gpt = gpt, .tokens = tokens, .count = count};
    if (options) j.options = *options;
    EMBLA_TRY(check(&j));
    j.inverse = 1.0;
    if (j.options.temperature > 0.0) j.inverse = 1.0 / fmax(j.options.temperature, EMBLA_COLDEST);
    EMBLA_TRY(embla_decoder_new(gpt, count, &decoder));
    embla_status status = reserve(&j, results, &arena);
    if (status == EMBLA_OK) status = compute(&j, decoder, &arena);
    if (status == EMBLA_OK) copy_results(&j, results);
    embla_decoder_free(decoder);
    embla_arena_free(&arena);
    return status;
}
