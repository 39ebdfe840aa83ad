/* SPDX-License-Identifier: Apache-2.0 */
/* A decoder in plain loops and in double, to compare the library's f32 models with.
 *
 * It is written from the definitions, one token after the other, and shares no code with
 * src/lab/model. It copies the weights of a model by the names of its tensors. Two things are the
 * library's, because only their use is compared: which numbers are dropped, and which rows the
 * n-grams of a batch have.
 *
 * There is no backward pass. Gradients are compared with central differences of reference_loss.
 */
#ifndef EMBLA_TESTS_REFERENCE_GPT_H
#define EMBLA_TESTS_REFERENCE_GPT_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "check.h"
#include "model/gpt.h"
#include "model/gpt_ngram.h"

enum {
    REFERENCE_LAYERS = 4,
    REFERENCE_TENSORS = 64,
    REFERENCE_TOKENS = 64, /* of a batch */
    REFERENCE_WIDE = 80,   /* numbers in a row: dim, hidden, and those of a token's n-grams */
    REFERENCE_GRAMS = 16   /* n-grams of a token */
};

typedef double reference_row[REFERENCE_WIDE];

/* A matrix (output x input) or a gain, and its bias. NULL: the model has none. */
typedef struct {
    double *w, *bias;
} reference_part;

typedef struct {
    reference_part norm1, q, k, v, o, norm2, up, gate, down;
} reference_layer;

typedef struct {
    const embla_gpt *gpt;
    embla_gpt_shape shape;              /* with defaults filled in */
    double *tensors[REFERENCE_TENSORS]; /* in the order of embla_gpt_tensor_at */
    double *grams;                      /* rows of the n-gram table; NULL: none */
    double *masks; /* branches x REFERENCE_TOKENS x dim: factors of dropout; NULL: none */
    reference_part wte, wpe, head, norm_first, norm, key, value;
    reference_layer layers[REFERENCE_LAYERS];
} reference;

/* ---- weights ---- */

static inline double *reference_copy(const float *values, size_t count)
{
    double *copy = malloc((count + 1) * sizeof *copy);
    assert_non_null(copy);
    for (size_t i = 0; i < count; i++) copy[i] = (double)values[i];
    return copy;
}

static inline double *reference_find(const reference *r, const char *before, const char *name,
                                     const char *after)
{
    char full[64];
    embla_gpt_tensor t;
    (void)snprintf(full, sizeof full, "%s%s%s", before, name, after);
    for (size_t n = 0; n < embla_gpt_tensor_count(r->gpt); n++) {
        assert_ok(embla_gpt_tensor_at(r->gpt, n, &t));
        if (strcmp(t.name, full) == 0) return r->tensors[n];
    }
    return NULL;
}

static inline reference_part reference_matrix(const reference *r, const char *before,
                                              const char *name)
{
    return (reference_part){reference_find(r, before, name, ""),
                            reference_find(r, before, name, ".bias")};
}

static inline reference_part reference_gain(const reference *r, const char *before,
                                            const char *name)
{
    return (reference_part){reference_find(r, before, name, ".gain"),
                            reference_find(r, before, name, ".bias")};
}

static inline reference_layer reference_layer_of(const reference *r, size_t layer)
{
    char before[32];
    (void)snprintf(before, sizeof before, "layer%zu.", layer);
    return (reference_layer){.norm1 = reference_gain(r, before, "norm1"),
                             .q = reference_matrix(r, before, "attn.q"),
                             .k = reference_matrix(r, before, "attn.k"),
                             .v = reference_matrix(r, before, "attn.v"),
                             .o = reference_matrix(r, before, "attn.o"),
                             .norm2 = reference_gain(r, before, "norm2"),
                             .up = reference_matrix(r, before, "mlp.up"),
                             .gate = reference_matrix(r, before, "mlp.gate"),
                             .down = reference_matrix(r, before, "mlp.down")};
}

/* The weights of a model as they are now. The model is only read. */
static inline reference reference_new(embla_gpt *gpt)
{
    reference r = {.gpt = gpt};
    embla_gpt_tensor t;
    const embla_table *grams = embla_gpt_ngram_table(gpt);
    assert_ok(embla_gpt_describe(gpt, &r.shape));
    assert_true(r.shape.layers <= REFERENCE_LAYERS && r.shape.dim <= REFERENCE_WIDE);
    assert_true(r.shape.hidden <= REFERENCE_WIDE);
    assert_true(embla_gpt_tensor_count(gpt) <= REFERENCE_TENSORS);
    for (size_t n = 0; n < embla_gpt_tensor_count(gpt); n++) {
        assert_ok(embla_gpt_tensor_at(gpt, n, &t));
        r.tensors[n] = reference_copy(t.values, (size_t)t.rows * t.dim);
    }
    if (grams) {
        size_t rows = (size_t)embla_table_rows(grams);
        r.grams = reference_copy(embla_table_row(grams, 0), rows * embla_table_dim(grams));
    }
    r.wte = reference_matrix(&r, "", "wte");
    r.wpe = reference_matrix(&r, "", "wpe");
    r.head = r.shape.untied ? reference_matrix(&r, "", "lm_head") : r.wte;
    r.norm_first = reference_gain(&r, "", "norm_first");
    r.norm = reference_gain(&r, "", "norm");
    r.key = reference_matrix(&r, "", "ngram.key");
    r.value = reference_matrix(&r, "", "ngram.value");
    for (size_t layer = 0; layer < r.shape.layers; layer++)
        r.layers[layer] = reference_layer_of(&r, layer);
    return r;
}

static inline void reference_free(reference *r)
{
    for (size_t n = 0; n < REFERENCE_TENSORS; n++) free(r->tensors[n]);
    free(r->grams);
    free(r->masks);
}

/* From now on the branches drop what a batch of n tokens drops with these options. Branch 2 *
 * layer is attention, the next one feed-forward. */
static inline void reference_drop(reference *r, size_t n, const embla_gpt_options *options)
{
    static float ones[REFERENCE_TOKENS * REFERENCE_WIDE], kept[REFERENCE_TOKENS * REFERENCE_WIDE];
    const embla_layer_way way = {.compute = EMBLA_F32, .threads = 1};
    const embla_dropout dropout = {.share = r->shape.dropout,
                                   .seed = options->seed ^ (uint64_t)options->step * EMBLA_GOLDEN};
    size_t each = REFERENCE_TOKENS * r->shape.dim;
    r->masks = calloc(2 * r->shape.layers * each, sizeof *r->masks);
    assert_non_null(r->masks);
    for (size_t i = 0; i < COUNT_OF(ones); i++) ones[i] = 1.0f;
    for (size_t branch = 0; branch < 2 * r->shape.layers; branch++) {
        assert_ok(embla_dropout_apply(&way, &dropout, branch, ones, n, r->shape.dim, false, kept));
        /* a number is dropped, or divided by the share of those that are kept */
        for (size_t i = 0; i < n * r->shape.dim; i++)
            if (kept[i] != 0.0f) r->masks[branch * each + i] = 1.0 / (1.0 - r->shape.dropout);
    }
}

/* ---- layers, of one token ---- */

static inline void reference_normalize(const reference *r, reference_part norm, const double *x,
                                       double *out)
{
    const embla_gpt_shape *s = &r->shape;
    double mean = 0, squares = 0;
    if (s->norm == EMBLA_NORM_LAYER)
        for (size_t i = 0; i < s->dim; i++) mean += x[i] / (double)s->dim;
    for (size_t i = 0; i < s->dim; i++) squares += (x[i] - mean) * (x[i] - mean) / (double)s->dim;
    for (size_t i = 0; i < s->dim; i++) {
        out[i] = (x[i] - mean) / sqrt(squares + s->norm_epsilon);
        if (norm.w) out[i] *= norm.w[i];
        if (norm.bias) out[i] += norm.bias[i];
    }
}

static inline void reference_multiply(reference_part part, const double *x, size_t in, size_t out,
                                      double *y)
{
    for (size_t o = 0; o < out; o++) {
        y[o] = part.bias ? part.bias[o] : 0;
        for (size_t i = 0; i < in; i++) y[o] += part.w[o * in + i] * x[i];
    }
}

/* Rotates each pair of numbers by the position times the pair's frequency. */
static inline void reference_rotate(const embla_gpt_shape *s, size_t position, size_t heads,
                                    double *x)
{
    size_t size = s->dim / s->heads;
    bool split = s->rope_order == EMBLA_ROPE_ORDER_HALF_SPLIT;
    if (s->position_kind != EMBLA_POSITIONS_ROTARY) return;
    for (size_t h = 0; h < heads; h++)
        for (size_t i = 0; i < size / 2; i++) {
            double *a = x + h * size + (split ? i : 2 * i), *b = a + (split ? size / 2 : 1);
            double angle = (double)position * pow(s->rope_theta, -2 * (double)i / (double)size);
            double was = *a;
            *a = was * cos(angle) - *b * sin(angle);
            *b = was * sin(angle) + *b * cos(angle);
        }
}

static inline double reference_activate(embla_activation kind, double up, double gate)
{
    switch (kind) {
    case EMBLA_ACTIVATION_GELU:
        return 0.5 * up * (1 + tanh(sqrt(2 / M_PI) * (up + 0.044715 * up * up * up)));
    case EMBLA_ACTIVATION_RELU:
        return up > 0 ? up : 0;
    case EMBLA_ACTIVATION_RELU_SQUARED:
        return up > 0 ? up * up : 0;
    default:
        return gate / (1 + exp(-gate)) * up;
    }
}

/* One query against the keys up to it. Heads share keys and values in groups. */
static inline void reference_attend(const embla_gpt_shape *s, const double *q,
                                    const reference_row *k, const reference_row *v, size_t last,
                                    double *out)
{
    size_t size = s->dim / s->heads, each = s->heads / s->kv_heads;
    for (size_t h = 0; h < s->heads; h++) {
        double scores[REFERENCE_TOKENS], sum = 0;
        for (size_t t = 0; t <= last; t++) {
            scores[t] = 0;
            for (size_t i = 0; i < size; i++)
                scores[t] += q[h * size + i] * k[t][h / each * size + i];
            scores[t] = exp(scores[t] / sqrt((double)size));
            sum += scores[t];
        }
        for (size_t i = 0; i < size; i++) {
            out[h * size + i] = 0;
            for (size_t t = 0; t <= last; t++)
                out[h * size + i] += scores[t] / sum * v[t][h / each * size + i];
        }
    }
}

static inline double reference_root_mean_square(const double *x, size_t dim, double epsilon)
{
    double squares = 0;
    for (size_t i = 0; i < dim; i++) squares += x[i] * x[i] / (double)dim;
    return sqrt(squares + epsilon);
}

/* Adds the value of a token's n-grams, as far as their key is like x. */
static inline void reference_enrich(const reference *r, const int64_t *rows, double *x)
{
    const embla_gpt_shape *s = &r->shape;
    size_t columns = (s->ngram.orders - 1) * s->ngram.heads, width = columns * s->ngram.dim;
    reference_row grams, key, value;
    double likeness = 0;
    assert_true(width <= REFERENCE_WIDE);
    for (size_t i = 0; i < width; i++)
        grams[i] = r->grams[(size_t)rows[i / s->ngram.dim] * s->ngram.dim + i % s->ngram.dim];
    reference_multiply(r->key, grams, width, s->dim, key);
    reference_multiply(r->value, grams, width, s->dim, value);
    double a = reference_root_mean_square(x, s->dim, s->norm_epsilon);
    double b = reference_root_mean_square(key, s->dim, s->norm_epsilon);
    for (size_t i = 0; i < s->dim; i++) likeness += x[i] / a * (key[i] / b);
    double gate = 1 / (1 + exp(-likeness / sqrt((double)s->dim)));
    for (size_t i = 0; i < s->dim; i++) x[i] += gate * value[i];
}

/* ---- the whole model ---- */

/* x += branch, of token n of the batch. */
static inline void reference_add(const reference *r, size_t branch, size_t n, const double *y,
                                 double *x)
{
    size_t dim = r->shape.dim;
    const double *mask = r->masks;
    if (mask) mask += (branch * REFERENCE_TOKENS + n) * dim;
    for (size_t i = 0; i < dim; i++) x[i] += mask ? mask[i] * y[i] : y[i];
}

/* One sequence, whose first token is token `first` of the batch. */
static inline void reference_run_layer(const reference *r, size_t layer, size_t first,
                                       size_t length, reference_row *x)
{
    const embla_gpt_shape *s = &r->shape;
    const reference_layer *l = &r->layers[layer];
    static reference_row q[REFERENCE_TOKENS], k[REFERENCE_TOKENS], v[REFERENCE_TOKENS];
    size_t kv = s->dim / s->heads * s->kv_heads;
    reference_row h, y, up, gate = {0};
    for (size_t t = 0; t < length; t++) {
        reference_normalize(r, l->norm1, x[t], h);
        reference_multiply(l->q, h, s->dim, s->dim, q[t]);
        reference_multiply(l->k, h, s->dim, kv, k[t]);
        reference_multiply(l->v, h, s->dim, kv, v[t]);
        reference_rotate(s, t, s->heads, q[t]);
        reference_rotate(s, t, s->kv_heads, k[t]);
    }
    for (size_t t = 0; t < length; t++) {
        reference_attend(s, q[t], k, v, t, h);
        reference_multiply(l->o, h, s->dim, s->dim, y);
        reference_add(r, 2 * layer, first + t, y, x[t]);
        reference_normalize(r, l->norm2, x[t], h);
        reference_multiply(l->up, h, s->dim, s->hidden, up);
        if (l->gate.w) reference_multiply(l->gate, h, s->dim, s->hidden, gate);
        for (size_t i = 0; i < s->hidden; i++)
            up[i] = reference_activate(s->activation, up[i], gate[i]);
        reference_multiply(l->down, up, s->hidden, s->dim, y);
        reference_add(r, 2 * layer + 1, first + t, y, x[t]);
    }
}

/* Sines and cosines of the position times frequencies from 1 down to about 1 / 10,000. */
static inline double reference_sinusoid(size_t position, size_t i, size_t dim)
{
    double angle = (double)position * pow(10000, -(double)(i / 2 * 2) / (double)dim);
    return i % 2 ? cos(angle) : sin(angle);
}

static inline void reference_embed(const reference *r, int32_t token, size_t position, double *x)
{
    const embla_gpt_shape *s = &r->shape;
    for (size_t i = 0; i < s->dim; i++) {
        x[i] = r->wte.w[(size_t)token * s->dim + i];
        if (r->wpe.w) x[i] += r->wpe.w[position * s->dim + i];
        if (s->position_kind == EMBLA_POSITIONS_SINUSOIDAL)
            x[i] += reference_sinusoid(position, i, s->dim);
    }
    if (s->norm_first) reference_normalize(r, r->norm_first, x, x);
}

/* -log of the target's probability. */
static inline double reference_surprise(const reference *r, const double *x, int32_t target)
{
    const embla_gpt_shape *s = &r->shape;
    double sum = 0, wanted = 0;
    for (size_t v = 0; v < (size_t)s->vocab; v++) {
        double logit = 0;
        for (size_t i = 0; i < s->dim; i++) logit += r->head.w[v * s->dim + i] * x[i];
        sum += exp(logit);
        if ((int32_t)v == target) wanted = logit;
    }
    return log(sum) - wanted;
}

/* The mean loss of a batch. hidden, if not NULL, gets the vectors before the head (n x dim). */
static inline double reference_loss(const reference *r, const embla_gpt_batch *b, double *hidden)
{
    const embla_gpt_shape *s = &r->shape;
    static reference_row x[REFERENCE_TOKENS];
    static int64_t rows[REFERENCE_TOKENS * REFERENCE_GRAMS];
    size_t columns = r->grams ? (s->ngram.orders - 1) * s->ngram.heads : 0;
    double loss = 0, counted = 0;
    assert_true(b->batch * b->length <= REFERENCE_TOKENS && columns <= REFERENCE_GRAMS);
    if (r->grams)
        assert_ok(embla_ngram_rows(embla_gpt_ngram_hasher(r->gpt), b->tokens, b->batch, b->length,
                                   NULL, rows));
    for (size_t first = 0; first < b->batch * b->length; first += b->length) {
        for (size_t t = 0; t < b->length; t++) reference_embed(r, b->tokens[first + t], t, x[t]);
        for (size_t layer = 0; layer < s->layers; layer++) {
            for (size_t t = 0; r->grams && layer == s->ngram.layer && t < b->length; t++)
                reference_enrich(r, rows + (first + t) * columns, x[t]);
            reference_run_layer(r, layer, first, b->length, x);
        }
        for (size_t t = 0; t < b->length; t++) {
            int32_t target = b->targets[first + t];
            if (!s->no_norm_last) reference_normalize(r, r->norm, x[t], x[t]);
            if (hidden) memcpy(hidden + (first + t) * s->dim, x[t], s->dim * sizeof *hidden);
            if (target == EMBLA_TARGET_IGNORE) continue;
            loss += reference_surprise(r, x[t], target);
            counted++;
        }
    }
    return loss / counted;
}

/* The derivative of the loss by one number of the reference: the error is about 1e-10. */
static inline double reference_slope(const reference *r, const embla_gpt_batch *b, double *at)
{
    const double step = 1e-5, was = *at;
    *at = was + step;
    double above = reference_loss(r, b, NULL);
    *at = was - step;
    double below = reference_loss(r, b, NULL);
    *at = was;
    return (above - below) / (2 * step);
}

/* The same along a random direction of length 1, in which `count` numbers change alike much. Every
 * number of a tensor has a part in it. *along is what `gradient` says of that direction. */
static inline double reference_slope_along(const reference *r, const embla_gpt_batch *b,
                                           double *values, const float *gradient, size_t count,
                                           uint64_t *seed, double *along)
{
    double *kept = malloc(count * sizeof *kept), *way = malloc(count * sizeof *way), loss[2];
    const double step = 1e-5;
    assert_true(kept && way);
    memcpy(kept, values, count * sizeof *kept);
    *along = 0;
    for (size_t i = 0; i < count; i++) {
        way[i] = (check_below(seed, 2) ? 1 : -1) / sqrt((double)count);
        *along += way[i] * (double)gradient[i];
    }
    for (int side = 0; side < 2; side++) {
        for (size_t i = 0; i < count; i++) values[i] = kept[i] + (side ? step : -step) * way[i];
        loss[side] = reference_loss(r, b, NULL);
    }
    memcpy(values, kept, count * sizeof *kept);
    free(way);
    free(kept);
    return (loss[1] - loss[0]) / (2 * step);
}

/* A tensor of the library against the reference: first number, last number, some between, and all
 * of them along a few directions. Numbers are within tolerance of the tensor's largest gradient;
 * 1e-6 is what rounding leaves where a gradient is 0, as that of a key's bias. */
static inline void reference_check_gradient(const reference *r, const embla_gpt_batch *b,
                                            const char *name, double *values, const float *gradient,
                                            size_t count, double tolerance)
{
    enum { SAMPLES = 14, DIRECTIONS = 4 };
    uint64_t seed = 8;
    double largest = 0, squares = 0, along;
    for (size_t i = 0; i < count; i++) {
        largest = fmax(largest, fabs((double)gradient[i]));
        squares += (double)gradient[i] * (double)gradient[i] / (double)count;
    }
    for (size_t k = 0; k < SAMPLES && k < count; k++) {
        size_t i = k == 0 ? 0 : k == 1 ? count - 1 : check_below(&seed, count);
        double found = reference_slope(r, b, &values[i]);
        if (!(fabs(found - (double)gradient[i]) <= tolerance * largest + 1e-6))
            fail_msg("%s[%zu]: %.9g, by differences %.9g (largest %.3g)", name, i,
                     (double)gradient[i], found, largest);
    }
    for (size_t k = 0; k < DIRECTIONS; k++) {
        double found = reference_slope_along(r, b, values, gradient, count, &seed, &along);
        if (!(fabs(found - along) <= tolerance * sqrt(squares) + 1e-6))
            fail_msg("%s, direction %zu: %.9g, by differences %.9g", name, k, along, found);
    }
}

#endif
