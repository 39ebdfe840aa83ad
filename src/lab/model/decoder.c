/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes one sequence, a few tokens at a time. Each layer keeps the keys and values of earlier
 * tokens, so that one more token costs one pass over the weights.
 *
 * Tokens are processed in blocks. Norms and products use all tokens of a block; attention processes
 * one token after the other, each with the keys and values up to its own position. The length of
 * the sequence is updated last, so a call that fails appends nothing.
 *
 * embla_decoder_new allocates one block of memory: keys (layers x most x K), values, and the
 * activations of a block of tokens. K = kv_heads x numbers in a head.
 */
#include <math.h>
#include <string.h>

#include "base/layout.h"
#include "base/mem.h"
#include "base/options.h"
#include "base/threads.h"
#include "learn/softmax.h"
#include "model/decoder.h"
#include "model/gpt_ngram.h"
#include "model/gpt_trunk.h"
#include "model/layers_product.h"

enum { BLOCK = 64 }; /* tokens that pass through the layers together */

struct embla_decoder {
    const embla_gpt *gpt;
    size_t bytes;                 /* of this block of memory */
    size_t most, taken;           /* maximum number of positions; tokens so far */
    size_t kv;                    /* K */
    float *keys, *values;         /* layers x most x K; rotated if positions are rotary */
    float *x;                     /* BLOCK x dim: the residual stream */
    float *normed;                /* BLOCK x dim */
    float *stats;                 /* BLOCK x 2: of norms; not used again */
    float *joint;                 /* BLOCK x (dim + 2K): q, k, v */
    float *attended;              /* BLOCK x dim */
    float *up, *gate;             /* BLOCK x hidden; gate is for swiglu */
    float *active;                /* BLOCK x hidden */
    int32_t *tokens;              /* all tokens so far: n-grams need the previous ones */
    embla_gpt_ngram_arrays grams; /* for BLOCK tokens */
};

typedef struct {
    float **out;
    size_t count, numbers;
} array;

/* Computes the places of all arrays behind the struct. If `memory` is given, sets their
 * addresses. */
static embla_status place_arrays(const embla_gpt *gpt, size_t most, embla_decoder *d, char *memory,
                                 size_t *bytes)
{
    const embla_gpt_shape *s = &gpt->shape;
    size_t block = most < BLOCK ? most : BLOCK, kv = gpt->size * s->kv_heads;
    size_t gate = s->activation == EMBLA_ACTIVATION_SWIGLU ? s->hidden : 0;
    uint64_t rows;
    if (!embla_mul_ok(s->layers, most, &rows) || rows > SIZE_MAX) rows = SIZE_MAX;
    const array arrays[] = {{&d->keys, (size_t)rows, kv},
                            {&d->values, (size_t)rows, kv},
                            {&d->x, block, s->dim},
                            {&d->normed, block, s->dim},
                            {&d->stats, block, 2},
                            {&d->joint, block, gpt->joint},
                            {&d->attended, block, s->dim},
                            {&d->up, block, s->hidden},
                            {&d->gate, block, gate},
                            {&d->active, block, s->hidden},
                            {&d->grams.grams, block, embla_gpt_ngram_width(s)},
                            {&d->grams.pair, block, gpt->grams ? 2 * s->dim : 0},
                            {&d->grams.stats, block, gpt->grams ? EMBLA_GATE_STATS : 0}};
    embla_layout layout = {0};
    (void)embla_layout_add(&layout, 1, sizeof *d);
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++) {
        size_t at = embla_layout_add(&layout, arrays[i].count, arrays[i].numbers * sizeof(float));
        if (memory) *arrays[i].out = (float *)(void *)(memory + at);
    }
    size_t rows_at = embla_layout_add(&layout, block, embla_gpt_ngram_columns(s) * sizeof(int64_t));
    size_t tokens_at = embla_layout_add(&layout, gpt->grams ? most : 0, sizeof(int32_t));
    if (memory) d->grams.rows = (int64_t *)(void *)(memory + rows_at);
    if (memory) d->tokens = (int32_t *)(void *)(memory + tokens_at);
    if (layout.too_large)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "keys and values of %zu positions in %zu layers do not fit in memory",
                          most, s->layers);
    *bytes = layout.bytes;
    return EMBLA_OK;
}

embla_status embla_decoder_new(const embla_gpt *gpt, size_t capacity, embla_decoder **out)
{
    embla_decoder plan = {0};
    void *memory = NULL;
    size_t bytes;
    EMBLA_NEED(gpt);
    EMBLA_NEED(out);
    EMBLA_TRY(embla_gpt_check_rows(gpt));
    if (capacity < 1 || capacity > gpt->shape.positions)
        return embla_fail(EMBLA_ERR_RANGE,
                          "capacity is %zu; it must be from 1 to the model's %zu positions",
                          capacity, gpt->shape.positions);
    EMBLA_TRY(place_arrays(gpt, capacity, &plan, NULL, &bytes));
    EMBLA_TRY(embla_mem_new(bytes, "the keys and values of a decoder", &memory));
    embla_decoder *d = memory;
    (void)!place_arrays(gpt, capacity, d, memory, &bytes);
    d->gpt = gpt;
    d->bytes = bytes;
    d->most = capacity;
    d->kv = gpt->size * gpt->shape.kv_heads;
    *out = d;
    return EMBLA_OK;
}

void embla_decoder_free(embla_decoder *d)
{
    if (d) embla_mem_free(d, d->bytes);
}

void embla_decoder_reset(embla_decoder *d)
{
    if (d) d->taken = 0;
}

/* ---- running n tokens, the first at position `first`, through the layers ---- */

static const void *weight(const embla_decoder *d, size_t layer, size_t slot)
{
    return embla_gpt_weight(d->gpt, embla_gpt_slot(layer, slot));
}

static embla_status norm(const embla_decoder *d, const embla_layer_way *way, const void *gain,
                         const void *bias, const float *x, size_t n, float *out)
{
    const embla_gpt_shape *s = &d->gpt->shape;
    return embla_norm_forward(way, s->norm, s->norm_epsilon, x, n, s->dim, gain, bias, out,
                              d->stats);
}

/* The weights with which one query (heads x size) attends to the tokens of `count` keys: for each
 * head the softmax of query . key / sqrt(size). embla_attention_one never has them all. */
static void weigh(const embla_gpt *gpt, const float *query, const float *keys, size_t count,
                  float *out)
{
    const embla_gpt_shape *s = &gpt->shape;
    const float scale = (float)(1.0 / sqrt((double)gpt->size));
    const size_t group = s->heads / s->kv_heads; /* heads that share keys */
    for (size_t kv = 0; kv < s->kv_heads; kv++) {
        const embla_plain_product scores = {.m = group,
                                            .n = count,
                                            .k = gpt->size,
                                            .a = query + kv * group * gpt->size,
                                            .b = keys + kv * gpt->size,
                                            .a_stride = gpt->size,
                                            .b_stride = gpt->size * s->kv_heads,
                                            .out = out + kv * group * count,
                                            .out_stride = count,
                                            .form = EMBLA_PRODUCT_A_BT};
        embla_product_plain(&scores);
    }
    for (size_t head = 0; head < s->heads; head++, out += count) {
        for (size_t i = 0; i < count; i++) out[i] *= scale;
        embla_softmax_exp(out, count, embla_softmax_max(out, count), out);
        const double sum = embla_softmax_plain_sum(out, count);
        for (size_t i = 0; i < count; i++) out[i] = (float)((double)out[i] / sum);
    }
}

/* Adds the attention branch of a layer to x. weights (heads x (first + n); NULL: not wanted) gets
 * those of the last token. */
static embla_status add_attention(embla_decoder *d, const embla_layer_way *way, size_t layer,
                                  size_t first, size_t n, float *weights)
{
    const embla_gpt *gpt = d->gpt;
    const embla_gpt_shape *s = &gpt->shape;
    float *keys = d->keys + layer * d->most * d->kv, *values = d->values + layer * d->most * d->kv;
    EMBLA_TRY(norm(d, way, weight(d, layer, EMBLA_GPT_NORM1_GAIN),
                   weight(d, layer, EMBLA_GPT_NORM1_BIAS), d->x, n, d->normed));
    EMBLA_TRY(embla_linear_forward(way, d->normed, n, s->dim, weight(d, layer, EMBLA_GPT_Q),
                                   weight(d, layer, EMBLA_GPT_Q_BIAS), gpt->joint, false,
                                   d->joint));
    if (s->position_kind ==
        EMBLA_POSITIONS_ROTARY) /* keys follow queries in memory, so both are rotated at once */
        EMBLA_TRY(embla_rotate_heads(way, s, gpt->size, s->heads + s->kv_heads, n, n, first,
                                     gpt->joint, false, d->joint));
    for (size_t i = 0; i < n; i++) {
        const float *joint = d->joint + i * gpt->joint;
        memcpy(keys + (first + i) * d->kv, joint + s->dim, d->kv * sizeof(float));
        memcpy(values + (first + i) * d->kv, joint + s->dim + d->kv, d->kv * sizeof(float));
        EMBLA_TRY(embla_attention_one(way, joint, keys, values, first + i + 1, s->heads,
                                      s->kv_heads, gpt->size, d->attended + i * s->dim));
    }
    if (weights) weigh(gpt, d->joint + (n - 1) * gpt->joint, keys, first + n, weights);
    return embla_linear_forward(way, d->attended, n, s->dim, weight(d, layer, EMBLA_GPT_O),
                                weight(d, layer, EMBLA_GPT_O_BIAS), s->dim, true, d->x);
}

/* Adds the feed-forward branch of a layer to x. */
static embla_status add_feed_forward(embla_decoder *d, const embla_layer_way *way, size_t layer,
                                     size_t n)
{
    const embla_gpt_shape *s = &d->gpt->shape;
    bool swiglu = s->activation == EMBLA_ACTIVATION_SWIGLU;
    EMBLA_TRY(norm(d, way, weight(d, layer, EMBLA_GPT_NORM2_GAIN),
                   weight(d, layer, EMBLA_GPT_NORM2_BIAS), d->x, n, d->normed));
    EMBLA_TRY(embla_linear_forward(way, d->normed, n, s->dim, weight(d, layer, EMBLA_GPT_UP),
                                   weight(d, layer, EMBLA_GPT_UP_BIAS), s->hidden, false, d->up));
    if (swiglu)
        EMBLA_TRY(embla_linear_forward(way, d->normed, n, s->dim, weight(d, layer, EMBLA_GPT_GATE),
                                       weight(d, layer, EMBLA_GPT_GATE_BIAS), s->hidden, false,
                                       d->gate));
    EMBLA_TRY(embla_activation_forward(way, s->activation, swiglu ? d->gate : d->up,
                                       swiglu ? d->up : NULL, n, s->hidden, d->active));
    return embla_linear_forward(way, d->active, n, s->hidden, weight(d, layer, EMBLA_GPT_DOWN),
                                weight(d, layer, EMBLA_GPT_DOWN_BIAS), s->dim, true, d->x);
}

/* attention (layers x heads x (first + n); NULL: not wanted) gets the weights of the last token. */
static embla_status run_layers(embla_decoder *d, const embla_layer_way *way, const int32_t *tokens,
                               size_t first, size_t n, float *attention)
{
    const embla_gpt *gpt = d->gpt;
    embla_embed_options embed = {.position_table = gpt->positions, .threads = way->threads};
    if (gpt->positions) embed.first_position = (int64_t)first;
    EMBLA_TRY(embla_embed(gpt->tokens, tokens, 1, n, &embed, d->x));
    if (gpt->shape.norm_first) {
        EMBLA_TRY(norm(d, way, embla_gpt_weight(gpt, EMBLA_GPT_NORM_FIRST_GAIN),
                       embla_gpt_weight(gpt, EMBLA_GPT_NORM_FIRST_BIAS), d->x, n, d->normed));
        memcpy(d->x, d->normed, n * gpt->shape.dim * sizeof(float));
    }
    if (gpt->grams) memcpy(d->tokens + first, tokens, n * sizeof *tokens);
    for (size_t layer = 0; layer < gpt->shape.layers; layer++) {
        if (gpt->grams && layer == gpt->shape.ngram.layer)
            EMBLA_TRY(embla_gpt_ngram_more(gpt, way, d->tokens + first, first, n, &d->grams, d->x));
        float *weights = attention;
        if (weights) weights += layer * gpt->shape.heads * (first + n);
        EMBLA_TRY(add_attention(d, way, layer, first, n, weights));
        EMBLA_TRY(add_feed_forward(d, way, layer, n));
    }
    return EMBLA_OK;
}

/* ---- append, head ---- */

static embla_status check_tokens(const embla_decoder *d, const int32_t *tokens, size_t count)
{
    int64_t vocab = d->gpt->shape.vocab;
    if (count > d->most - d->taken)
        return embla_fail(EMBLA_ERR_RANGE,
                          "%zu tokens after %zu do not fit: the decoder has %zu positions", count,
                          d->taken, d->most);
    for (size_t i = 0; i < count; i++)
        if (tokens[i] < 0 || tokens[i] >= vocab)
            return embla_fail(EMBLA_ERR_RANGE,
                              "token %" PRId32
                              " at index %zu is out of range; the model has tokens 0 to %" PRId64,
                              tokens[i], i, vocab - 1);
    return EMBLA_OK;
}

/* Writes what the head gets of n tokens of the block, from token `from` on. */
static embla_status finish(const embla_decoder *d, const embla_layer_way *way, size_t from,
                           size_t n, float *hidden)
{
    const embla_gpt *gpt = d->gpt;
    const float *x = d->x + from * gpt->shape.dim;
    if (!gpt->shape.no_norm_last)
        return norm(d, way, embla_gpt_weight(gpt, EMBLA_GPT_NORM_GAIN),
                    embla_gpt_weight(gpt, EMBLA_GPT_NORM_BIAS), x, n, hidden);
    memcpy(hidden, x, n * gpt->shape.dim * sizeof(float));
    return EMBLA_OK;
}

embla_status embla_decoder_run(embla_decoder *d, const int32_t *tokens, size_t count, int threads,
                               const embla_decoder_view *view)
{
    const embla_layer_way way = {.compute = EMBLA_F32, .threads = threads};
    EMBLA_TRY(embla_threads_check(threads));
    EMBLA_TRY(check_tokens(d, tokens, count));
    for (size_t done = 0, n; done < count; done += n) {
        n = count - done < BLOCK ? count - done : BLOCK;
        const bool last = done + n == count;
        EMBLA_TRY(
            run_layers(d, &way, tokens + done, d->taken + done, n, last ? view->attention : NULL));
        if (view->all) EMBLA_TRY(finish(d, &way, 0, n, view->all + done * d->gpt->shape.dim));
        if (view->last && last) EMBLA_TRY(finish(d, &way, n - 1, 1, view->last));
    }
    d->taken += count;
    return EMBLA_OK;
}

embla_status embla_decoder_append(embla_decoder *decoder, const int32_t *tokens, size_t count,
                                  const embla_decoder_options *options, float *hidden)
{
    EMBLA_NEED(decoder);
    EMBLA_NEED_MANY(tokens, count);
    EMBLA_TRY(embla_options_check(options));
    return embla_decoder_run(decoder, tokens, count, options ? options->threads : 0,
                             &(embla_decoder_view){.last = hidden});
}

embla_status embla_decoder_head(const embla_decoder *decoder, embla_head *out)
{
    EMBLA_NEED(decoder);
    EMBLA_NEED(out);
    const embla_gpt *gpt = decoder->gpt;
    *out = (embla_head){.table = gpt->head ? gpt->head : gpt->tokens};
    return EMBLA_OK;
}
