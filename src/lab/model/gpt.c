/* SPDX-License-Identifier: Apache-2.0 */
/* Forward and backward pass of a decoder: layers, head and loss; gpt_embed.c has the embedding.
 * Each backward function follows its forward function; shapes are in model/gpt.h.
 *
 * x is the residual stream. Each layer adds two branches to it, attention and feed-forward, each of
 * a norm of x. In the backward pass dx is the gradient of the stream, in one array; each branch
 * adds its part. The forward pass keeps everything else, in places that were planned once.
 */
#include "model/gpt_ngram.h"
#include "model/gpt_pass.h"
#include "model/gpt_trunk.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/hash.h"
#include "base/kernels.h"
#include "base/options.h"
#include "base/threads.h"

typedef embla_gpt_pass pass;

static float *in_layer(const pass *p, size_t layer, size_t place)
{
    return embla_pass_array(p, p->gpt->at.layers + layer * p->gpt->at.layer_bytes + place);
}

static const float *weight(const pass *p, size_t layer, size_t slot)
{
    return embla_gpt_weight(p->gpt, embla_gpt_slot(layer, slot));
}

static float *gradient(const pass *p, size_t layer, size_t slot)
{
    return embla_pass_gradient(p, embla_gpt_slot(layer, slot));
}

/* The residual stream before layer `layer`. If layer is the number of layers: after the last
 * one. */
static float *residual_before(const pass *p, size_t layer)
{
    const embla_gpt_places *at = &p->gpt->at;
    if (layer > 0) return in_layer(p, layer - 1, at->out);
    return embla_pass_array(p, p->shape->norm_first ? at->first : at->embedded);
}

/* Whether n-grams are added to the input of this layer. */
static bool has_grams(const pass *p, size_t layer)
{
    return p->gpt->grams && layer == p->shape->ngram.layer;
}

/* The input of layer `layer`. */
static float *stream(const pass *p, size_t layer)
{
    return has_grams(p, layer) ? embla_pass_array(p, p->gpt->at.enriched)
                               : residual_before(p, layer);
}

/* ---- start and end of a branch: a norm, a linear layer ---- */

/* The slots and places of a norm. */
typedef struct {
    size_t gain, bias, out, stats;
} norm_of;

static norm_of norm1_of(const pass *p)
{
    const embla_gpt_places *at = &p->gpt->at;
    return (norm_of){EMBLA_GPT_NORM1_GAIN, EMBLA_GPT_NORM1_BIAS, at->norm1, at->stats1};
}

static norm_of norm2_of(const pass *p)
{
    const embla_gpt_places *at = &p->gpt->at;
    return (norm_of){EMBLA_GPT_NORM2_GAIN, EMBLA_GPT_NORM2_BIAS, at->norm2, at->stats2};
}

static embla_status norm_forward(const pass *p, size_t layer, norm_of norm, const float *x)
{
    return embla_norm_forward(&p->way, p->shape->norm, p->shape->norm_epsilon, x, p->n,
                              p->shape->dim, weight(p, layer, norm.gain),
                              weight(p, layer, norm.bias), in_layer(p, layer, norm.out),
                              in_layer(p, layer, norm.stats));
}

/* Adds the gradient of the norm's input to dx, given dy, the gradient of its output. */
static embla_status norm_backward(const pass *p, size_t layer, norm_of norm, const float *x)
{
    const embla_gpt_places *at = &p->gpt->at;
    return embla_norm_backward(&p->way, p->shape->norm, x, in_layer(p, layer, norm.stats), p->n,
                               p->shape->dim, weight(p, layer, norm.gain),
                               embla_pass_array(p, at->dy), embla_pass_array(p, at->dx),
                               gradient(p, layer, norm.gain), gradient(p, layer, norm.bias));
}

/* Dropout at the end of a branch: attention is branch 2 * layer, feed-forward the next one. */
static embla_status drop(const pass *p, size_t layer, size_t slot, const float *in, bool add,
                         float *out)
{
    return embla_dropout_apply(&p->way, &p->dropout, 2 * layer + (slot == EMBLA_GPT_DOWN), in, p->n,
                               p->shape->dim, add, out);
}

/* out = x + a (n x in) times the matrix of the slot; its bias is the next slot. */
static embla_status end_forward(const pass *p, size_t layer, size_t slot, const float *a, size_t in,
                                const float *x, float *out)
{
    bool drops = p->dropout.share > 0;
    float *y = drops ? embla_pass_array(p, p->gpt->at.dy) : out;
    memcpy(out, x, embla_pass_bytes(p));
    EMBLA_TRY(embla_linear_forward(&p->way, a, p->n, in, weight(p, layer, slot),
                                   weight(p, layer, slot + 1), p->shape->dim, !drops, y));
    return drops ? drop(p, layer, slot, y, true, out) : EMBLA_OK;
}

/* Computes da (n x in) from dx. space (n x C) holds dx after dropout. */
static embla_status end_backward(const pass *p, size_t layer, size_t slot, const float *a,
                                 size_t in, float *space, float *da)
{
    const float *dy = embla_pass_array(p, p->gpt->at.dx);
    if (p->dropout.share > 0) {
        EMBLA_TRY(drop(p, layer, slot, dy, false, space));
        dy = space;
    }
    return embla_linear_backward(&p->way, a, dy, p->n, in, weight(p, layer, slot), p->shape->dim,
                                 false, da, gradient(p, layer, slot), gradient(p, layer, slot + 1));
}

/* ---- attention ---- */

static embla_attention attention_of(const pass *p, size_t layer)
{
    const embla_gpt *gpt = p->gpt;
    const embla_gpt_places *at = &gpt->at;
    const float *q = in_layer(p, layer, at->joint);
    const float *k = q + p->shape->dim;
    return (embla_attention){.batch = p->batch,
                             .length = p->length,
                             .heads = p->shape->heads,
                             .kv_heads = p->shape->kv_heads,
                             .size = gpt->size,
                             .q = q,
                             .k = k,
                             .v = k + p->shape->kv_heads * gpt->size,
                             .q_stride = gpt->joint,
                             .kv_stride = gpt->joint,
                             .out = in_layer(p, layer, at->attended),
                             .stats = in_layer(p, layer, at->attended_stats)};
}

/* Rotates queries and keys together, because they are next to each other in memory. */
static embla_status rotate_heads(const pass *p, bool back, float *joint)
{
    const embla_gpt *gpt = p->gpt;
    if (p->shape->position_kind != EMBLA_POSITIONS_ROTARY) return EMBLA_OK;
    return embla_rotate_heads(&p->way, p->shape, gpt->size, p->shape->heads + p->shape->kv_heads,
                              p->n, p->length, 0, gpt->joint, back, joint);
}

static embla_status attention_forward(const pass *p, size_t layer)
{
    const embla_gpt_places *at = &p->gpt->at;
    const float *x = stream(p, layer);
    float *joint = in_layer(p, layer, at->joint);
    embla_attention attention = attention_of(p, layer);
    EMBLA_TRY(norm_forward(p, layer, norm1_of(p), x));
    EMBLA_TRY(embla_linear_forward(
        &p->way, in_layer(p, layer, at->norm1), p->n, p->shape->dim, weight(p, layer, EMBLA_GPT_Q),
        weight(p, layer, EMBLA_GPT_Q_BIAS), p->gpt->joint, false, joint));
    EMBLA_TRY(rotate_heads(p, false, joint));
    EMBLA_TRY(embla_attention_forward(&p->way, &attention));
    return end_forward(p, layer, EMBLA_GPT_O, attention.out, p->shape->dim, x,
                       in_layer(p, layer, at->middle));
}

static embla_status attention_backward(const pass *p, size_t layer)
{
    const embla_gpt *gpt = p->gpt;
    const embla_gpt_places *at = &gpt->at;
    embla_attention attention = attention_of(p, layer);
    float *dy = embla_pass_array(p, at->dy), *dq = embla_pass_array(p, at->djoint);
    float *dk = dq + p->shape->dim;
    float *dv = dk + p->shape->kv_heads * gpt->size;
    EMBLA_TRY(end_backward(p, layer, EMBLA_GPT_O, attention.out, p->shape->dim,
                           embla_pass_array(p, at->dhidden), dy));
    EMBLA_TRY(embla_attention_backward(&p->way, &attention, dy, dq, dk, dv));
    EMBLA_TRY(rotate_heads(p, true, dq));
    EMBLA_TRY(embla_linear_backward(&p->way, in_layer(p, layer, at->norm1), dq, p->n, p->shape->dim,
                                    weight(p, layer, EMBLA_GPT_Q), gpt->joint, false, dy,
                                    gradient(p, layer, EMBLA_GPT_Q),
                                    gradient(p, layer, EMBLA_GPT_Q_BIAS)));
    return norm_backward(p, layer, norm1_of(p), stream(p, layer));
}

/* ---- feed-forward ---- */

static bool has_gate(const pass *p)
{
    return p->shape->activation == EMBLA_ACTIVATION_SWIGLU;
}

/* y (n x H) = norm2 times up, or times gate. */
static embla_status widen_forward(const pass *p, size_t layer, size_t slot, size_t place)
{
    return embla_linear_forward(&p->way, in_layer(p, layer, p->gpt->at.norm2), p->n, p->shape->dim,
                                weight(p, layer, slot), weight(p, layer, slot + 1),
                                p->shape->hidden, false, in_layer(p, layer, place));
}

static embla_status widen_backward(const pass *p, size_t layer, size_t slot, size_t place, bool add)
{
    return embla_linear_backward(
        &p->way, in_layer(p, layer, p->gpt->at.norm2), embla_pass_array(p, place), p->n,
        p->shape->dim, weight(p, layer, slot), p->shape->hidden, add,
        embla_pass_array(p, p->gpt->at.dy), gradient(p, layer, slot), gradient(p, layer, slot + 1));
}

static embla_status feed_forward(const pass *p, size_t layer)
{
    const embla_gpt_places *at = &p->gpt->at;
    float *x = in_layer(p, layer, at->middle), *active = in_layer(p, layer, at->active);
    float *up = in_layer(p, layer, at->up), *gate = in_layer(p, layer, at->gate);
    EMBLA_TRY(norm_forward(p, layer, norm2_of(p), x));
    EMBLA_TRY(widen_forward(p, layer, EMBLA_GPT_UP, at->up));
    if (has_gate(p)) EMBLA_TRY(widen_forward(p, layer, EMBLA_GPT_GATE, at->gate));
    EMBLA_TRY(embla_activation_forward(&p->way, p->shape->activation, has_gate(p) ? gate : up,
                                       has_gate(p) ? up : NULL, p->n, p->shape->hidden, active));
    return end_forward(p, layer, EMBLA_GPT_DOWN, active, p->shape->hidden, x,
                       in_layer(p, layer, at->out));
}

static embla_status feed_backward(const pass *p, size_t layer)
{
    const embla_gpt_places *at = &p->gpt->at;
    float *up = in_layer(p, layer, at->up), *gate = in_layer(p, layer, at->gate);
    float *da = embla_pass_array(p, at->dhidden), *dup = embla_pass_array(p, at->dup);
    EMBLA_TRY(end_backward(p, layer, EMBLA_GPT_DOWN, in_layer(p, layer, at->active),
                           p->shape->hidden, embla_pass_array(p, at->dy), da));
    EMBLA_TRY(embla_activation_backward(&p->way, p->shape->activation, has_gate(p) ? gate : up,
                                        has_gate(p) ? up : NULL, da, p->n, p->shape->hidden, da,
                                        has_gate(p) ? dup : NULL));
    if (has_gate(p)) {
        EMBLA_TRY(widen_backward(p, layer, EMBLA_GPT_GATE, at->dhidden, false));
        EMBLA_TRY(widen_backward(p, layer, EMBLA_GPT_UP, at->dup, true));
    } else {
        EMBLA_TRY(widen_backward(p, layer, EMBLA_GPT_UP, at->dhidden, false));
    }
    return norm_backward(p, layer, norm2_of(p), in_layer(p, layer, at->middle));
}

/* ---- the last norm, head and loss ---- */

static float *hidden_of(const pass *p)
{
    if (p->shape->no_norm_last) return stream(p, p->shape->layers);
    return embla_pass_array(p, p->gpt->at.hidden);
}

static embla_status last_forward(const pass *p)
{
    const embla_gpt *gpt = p->gpt;
    if (p->shape->no_norm_last) return EMBLA_OK;
    return embla_norm_forward(
        &p->way, p->shape->norm, p->shape->norm_epsilon, stream(p, p->shape->layers), p->n,
        p->shape->dim, embla_gpt_weight(gpt, EMBLA_GPT_NORM_GAIN),
        embla_gpt_weight(gpt, EMBLA_GPT_NORM_BIAS), embla_pass_array(p, gpt->at.hidden),
        embla_pass_array(p, gpt->at.hidden_stats));
}

/* Computes dx from dy, the gradient of hidden. */
static embla_status last_backward(const pass *p)
{
    const embla_gpt *gpt = p->gpt;
    const embla_gpt_places *at = &gpt->at;
    memset(embla_pass_array(p, at->dx), 0, embla_pass_bytes(p));
    return embla_norm_backward(
        &p->way, p->shape->norm, stream(p, p->shape->layers), embla_pass_array(p, at->hidden_stats),
        p->n, p->shape->dim, embla_gpt_weight(gpt, EMBLA_GPT_NORM_GAIN),
        embla_pass_array(p, at->dy), embla_pass_array(p, at->dx),
        embla_pass_gradient(p, EMBLA_GPT_NORM_GAIN), embla_pass_gradient(p, EMBLA_GPT_NORM_BIAS));
}

static embla_status loss_of(const pass *p, bool learns, embla_loss_report *report)
{
    const embla_gpt *gpt = p->gpt;
    size_t head = embla_gpt_head_slot(gpt);
    float *dhidden = embla_pass_array(p, p->shape->no_norm_last ? gpt->at.dx : gpt->at.dy);
    if (learns && p->negatives.negatives > 0)
        return embla_layer_sampled_loss(&p->way, hidden_of(p), p->targets, p->n, p->shape->dim,
                                        embla_gpt_weight(gpt, head), p->shape->vocab, p->weight,
                                        &p->negatives, dhidden, embla_pass_gradient(p, head),
                                        report);
    return embla_layer_loss(&p->way, hidden_of(p), p->targets, p->n, p->shape->dim,
                            embla_gpt_weight(gpt, head), p->shape->vocab, p->weight,
                            learns ? dhidden : NULL, learns ? embla_pass_gradient(p, head) : NULL,
                            report);
}

/* ---- the whole pass ---- */

static embla_status forward(const pass *p, bool learns)
{
    EMBLA_TRY(embla_gpt_embed_forward(p));
    for (size_t layer = 0; layer < p->shape->layers; layer++) {
        if (has_grams(p, layer))
            EMBLA_TRY(embla_gpt_ngram_forward(p->gpt, &p->way, p->tokens, p->batch, p->length,
                                              learns, residual_before(p, layer), stream(p, layer)));
        EMBLA_TRY(attention_forward(p, layer));
        EMBLA_TRY(feed_forward(p, layer));
    }
    return last_forward(p);
}

static embla_status backward(const pass *p)
{
    if (!p->shape->no_norm_last) EMBLA_TRY(last_backward(p));
    for (size_t layer = p->shape->layers; layer-- > 0;) {
        EMBLA_TRY(feed_backward(p, layer));
        EMBLA_TRY(attention_backward(p, layer));
        if (has_grams(p, layer))
            EMBLA_TRY(embla_gpt_ngram_backward(
                p->gpt, &p->way, p->n, residual_before(p, layer),
                embla_pass_array(p, p->gpt->at.dx),
                embla_pass_gradient(p, embla_gpt_ngram_slot(p->shape, EMBLA_GPT_NGRAM_KEY))));
    }
    return embla_gpt_embed_backward(p);
}

static embla_status check_options(const embla_gpt_options *o)
{
    EMBLA_TRY(embla_options_check(o));
    EMBLA_TRY(embla_threads_check(o->threads));
    if (o->compute != 0 && o->compute != EMBLA_F32 && o->compute != EMBLA_BF16)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "a model computes in f32 or bf16; compute is dtype %d", (int)o->compute);
    if (!isfinite(o->weight))
        return embla_fail(EMBLA_ERR_ARGUMENT, "weight is %g; it must be finite", o->weight);
    return EMBLA_OK;
}

static embla_status check_sizes(const embla_gpt *gpt, size_t batch, size_t length)
{
    uint64_t n;
    if (batch < 1 || length < 1)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "batch is %zu and length is %zu; both must be at least 1", batch, length);
    if (length > gpt->shape.positions)
        return embla_fail(EMBLA_ERR_RANGE, "length is %zu, but the model has %zu positions", length,
                          gpt->shape.positions);
    if (!gpt->activations || !embla_mul_ok(batch, length, &n) || n > gpt->at.tokens)
        return embla_fail(EMBLA_ERR_SHAPE,
                          "%zu sequences of %zu tokens: the model has memory for only %zu tokens; "
                          "call embla_gpt_reserve",
                          batch, length, gpt->activations ? gpt->at.tokens : 0);
    return EMBLA_OK;
}

/* Checks tokens, or targets, which may be EMBLA_TARGET_IGNORE. The bad token is searched for only
 * if the kernel finds one. */
static embla_status check_tokens(const pass *p, const int32_t *tokens, bool may_ignore)
{
    int64_t vocab = p->shape->vocab;
    if (embla_kernels_get()->tokens_below(tokens, p->n, (uint32_t)vocab)) return EMBLA_OK;
    for (size_t i = 0; i < p->n; i++) {
        bool in = tokens[i] >= 0 && tokens[i] < vocab;
        if (in || (may_ignore && tokens[i] == EMBLA_TARGET_IGNORE)) continue;
        return embla_fail(EMBLA_ERR_RANGE,
                          "%s %zu of sequence %zu is %d, which is out of range; the model has "
                          "tokens 0 to %" PRId64,
                          may_ignore ? "target" : "token", i % p->length, i / p->length,
                          (int)tokens[i], vocab - 1);
    }
    return EMBLA_OK;
}

/* the dropout mask changes with every step */
static uint64_t seed_of(const embla_gpt_options *o)
{
    return o->seed ^ (uint64_t)o->step * EMBLA_GOLDEN;
}

/* Checks the arguments of a pass and fills in the rest of it. */
static embla_status begin(embla_gpt *gpt, pass *p, const embla_gpt_options *options, bool learns)
{
    const embla_gpt_options defaults = {0};
    if (!p->tokens || !p->targets)
        return embla_fail(EMBLA_ERR_ARGUMENT, "%s of the batch are NULL",
                          p->tokens ? "targets" : "tokens");
    if (!options) options = &defaults;
    if (!p->rows) EMBLA_TRY(embla_gpt_check_rows(gpt));
    EMBLA_TRY(check_sizes(gpt, p->batch, p->length));
    EMBLA_TRY(check_options(options));
    p->gpt = gpt;
    p->shape = &gpt->shape;
    if (!p->gradients) p->gradients = (float *)(void *)gpt->gradients;
    p->n = p->batch * p->length;
    p->way = (embla_layer_way){.compute = options->compute ? options->compute : EMBLA_F32,
                               .threads = options->threads,
                               .no_engine = options->no_engine,
                               .scratch = &gpt->scratch};
    p->weight = options->weight == 0 ? 1 : options->weight;
    p->dropout = (embla_dropout){learns ? gpt->shape.dropout : 0, seed_of(options)};
    p->negatives = (embla_negatives){.negatives = options->negatives,
                                     .seed = options->seed,
                                     .step = options->step,
                                     .proposal = options->proposal};
    EMBLA_TRY(check_tokens(p, p->tokens, false));
    EMBLA_TRY(check_tokens(p, p->targets, true));
    gpt->ran = false;
    if (p->way.compute == EMBLA_BF16)
        EMBLA_TRY(embla_gpt_bf16_round(gpt, p->way.threads, &p->way.bf16));
    return EMBLA_OK;
}

static pass pass_of(const embla_gpt_given *given)
{
    return (pass){.tokens = given->batch.tokens,
                  .targets = given->batch.targets,
                  .batch = given->batch.batch,
                  .length = given->batch.length,
                  .gradients = given->gradients,
                  .rows = given->rows};
}

static embla_status run(embla_gpt *gpt, pass *p, const embla_gpt_options *options, bool learns,
                        embla_loss_report *report)
{
    embla_loss_report found = {0};
    EMBLA_TRY(begin(gpt, p, options, learns));
    EMBLA_TRY(forward(p, learns));
    EMBLA_TRY(loss_of(p, learns, &found));
    if (learns) EMBLA_TRY(backward(p));
    gpt->ran = true;
    if (report) *report = found;
    return EMBLA_OK;
}

embla_status embla_gpt_loss(embla_gpt *gpt, const embla_gpt_batch *batch,
                            const embla_gpt_options *options, embla_loss_report *report)
{
    EMBLA_NEED(gpt);
    EMBLA_NEED(batch);
    EMBLA_TRY(embla_options_check(batch));
    pass p = pass_of(&(embla_gpt_given){.batch = *batch});
    return run(gpt, &p, options, false, report);
}

embla_status embla_gpt_backward(embla_gpt *gpt, const embla_gpt_batch *batch,
                                const embla_gpt_options *options, embla_loss_report *report)
{
    EMBLA_NEED(gpt);
    EMBLA_NEED(batch);
    EMBLA_TRY(embla_options_check(batch));
    return embla_gpt_pass_learn(gpt, &(embla_gpt_given){.batch = *batch}, options, report);
}

/* ---- passes with what is given ---- */

embla_status embla_gpt_pass_learn(embla_gpt *gpt, const embla_gpt_given *given,
                                  const embla_gpt_options *options, embla_loss_report *report)
{
    pass p = pass_of(given);
    return run(gpt, &p, options, true, report);
}

embla_status embla_gpt_pass_forward(embla_gpt *gpt, const embla_gpt_given *given,
                                    const embla_gpt_options *options, bool learns, float *hidden)
{
    pass p = pass_of(given);
    EMBLA_TRY(begin(gpt, &p, options, learns));
    EMBLA_TRY(forward(&p, learns));
    memcpy(hidden, hidden_of(&p), embla_pass_bytes(&p));
    gpt->ran = true;
    return EMBLA_OK;
}

embla_status embla_gpt_pass_backward(embla_gpt *gpt, const embla_gpt_given *given,
                                     const embla_gpt_options *options, bool again,
                                     const float *dhidden, float *drows)
{
    pass p = pass_of(given);
    p.drows = drows;
    EMBLA_TRY(begin(gpt, &p, options, true));
    if (again) EMBLA_TRY(forward(&p, true));
    memcpy(embla_pass_array(&p, p.shape->no_norm_last ? gpt->at.dx : gpt->at.dy), dhidden,
           embla_pass_bytes(&p));
    EMBLA_TRY(backward(&p));
    gpt->ran = true;
    return EMBLA_OK;
}

const float *embla_gpt_hidden(const embla_gpt *gpt)
{
    if (!gpt || !gpt->ran) return NULL;
    const pass p = {.gpt = gpt, .shape = &gpt->shape};
    return hidden_of(&p);
}
