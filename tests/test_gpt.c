/* SPDX-License-Identifier: Apache-2.0 */
/* The whole decoder: its loss against a model written here in plain loops, its gradients against
 * finite differences of that loss, f32 against f64, one thread against several. Sizes are odd and
 * tiny; gains and biases are random, so that none hides behind a 1 or a 0.
 */
#include "check.h"

#include <math.h>
#include <stdio.h>
#include <time.h>

#include "base/mem.h"
#include "engine/engine.h"
#include "gpt_shapes.h"
#include "model/gpt.h"

enum { MOST = 64 }; /* tokens of a batch here */

typedef struct {
    const char *name;
    embla_gpt_shape shape;
} variant;

static const variant variants[] = {
    {"gpt2",
     {.vocab = 11,
      .dim = 12,
      .layers = 2,
      .heads = 3,
      .hidden = 20,
      .positions = 7,
      .biases = true}},
    {"llama",
     {.vocab = 13,
      .dim = 24,
      .layers = 2,
      .heads = 6,
      .kv_heads = 2,
      .hidden = 18,
      .positions = 9,
      LLAMA_KIND,
      .rope_order = EMBLA_ROPE_ORDER_HALF_SPLIT,
      .norm_epsilon = 1e-6,
      .untied = true}},
    {"relu squared, sinusoidal",
     {.vocab = 9,
      .dim = 10,
      .layers = 1,
      .heads = 2,
      .positions = 8,
      .activation = EMBLA_ACTIVATION_RELU_SQUARED,
      .position_kind = EMBLA_POSITIONS_SINUSOIDAL}},
    {"microgpt",
     {.vocab = 27,
      .dim = 16,
      .layers = 1,
      .heads = 4,
      .hidden = 64,
      .positions = 16,
      MICROGPT_KIND}},
    {"rotary pairs side by side, one head of keys, biases of gates, a norm first",
     {.vocab = 8,
      .dim = 12,
      .layers = 2,
      .heads = 2,
      .kv_heads = 1,
      .hidden = 5,
      .positions = 6,
      .activation = EMBLA_ACTIVATION_SWIGLU,
      .position_kind = EMBLA_POSITIONS_ROTARY,
      .rope_theta = 100,
      .biases = true,
      .norm_first = true}},
    {"no positions, one of everything",
     {.vocab = 1,
      .dim = 1,
      .layers = 1,
      .heads = 1,
      .hidden = 1,
      .positions = 1,
      .position_kind = EMBLA_POSITIONS_NONE,
      .norm = EMBLA_NORM_RMS}},
};

typedef struct {
    size_t batch, length;
    int32_t tokens[MOST], targets[MOST];
} batch;

static batch batch_of(const embla_gpt_shape *shape, size_t sequences, uint64_t seed)
{
    batch b = {.batch = sequences, .length = shape->positions};
    assert_true(b.batch * b.length <= MOST);
    for (size_t i = 0; i < b.batch * b.length; i++) {
        b.tokens[i] = (int32_t)check_below(&seed, (uint64_t)shape->vocab);
        b.targets[i] = (int32_t)check_below(&seed, (uint64_t)shape->vocab);
    }
    return b;
}

static embla_gpt_tensor tensor_at(const embla_gpt *gpt, size_t n)
{
    embla_gpt_tensor t;
    assert_ok(embla_gpt_tensor_at(gpt, n, &t));
    return t;
}

static size_t count_of(const embla_gpt_tensor *t)
{
    return (size_t)t->rows * t->dim;
}

/* A model with room, and with a little added to every number: the same in both precisions. */
static embla_gpt *model_of(const embla_gpt_shape *shape, embla_gpt_precision precision,
                           size_t sequences)
{
    embla_gpt *gpt = NULL;
    uint64_t seed = 5;
    assert_ok(embla_gpt_new_as(shape, precision, 3, 0.3, &gpt));
    assert_ok(embla_gpt_reserve(gpt, sequences, shape->positions));
    for (size_t n = 0; n < embla_gpt_tensor_count(gpt); n++) {
        embla_gpt_tensor t = tensor_at(gpt, n);
        for (size_t i = 0; i < count_of(&t); i++) {
            float more = 0.25f * check_unit(&seed);
            if (precision == EMBLA_GPT_F64)
                ((double *)t.values)[i] = (double)((float)((double *)t.values)[i] + more);
            else
                ((float *)t.values)[i] += more;
        }
    }
    return gpt;
}

static double loss_of(embla_gpt *gpt, const batch *b)
{
    embla_loss_report report;
    assert_ok(embla_gpt_loss(
        gpt,
        &(embla_gpt_batch){
            .tokens = b->tokens, .targets = b->targets, .batch = b->batch, .length = b->length},
        NULL, &report));
    return report.loss;
}

static double learn(embla_gpt *gpt, const batch *b, const embla_gpt_options *options)
{
    embla_loss_report report;
    assert_ok(embla_gpt_backward(
        gpt,
        &(embla_gpt_batch){
            .tokens = b->tokens, .targets = b->targets, .batch = b->batch, .length = b->length},
        options, &report));
    return report.loss;
}

/* ---- the same model in plain loops ---- */

enum { WIDE = 80 }; /* numbers in a row at most */

typedef double row[WIDE];

static const double *values_of(const embla_gpt *gpt, size_t layer, const char *name)
{
    char full[64];
    (void)snprintf(full, sizeof full, layer < 99 ? "layer%zu.%s" : "%.0zu%s",
                   layer < 99 ? layer : 0, name);
    for (size_t n = 0; n < embla_gpt_tensor_count(gpt); n++) {
        embla_gpt_tensor t = tensor_at(gpt, n);
        if (strcmp(t.name, full) == 0) return (const double *)(const void *)t.values;
    }
    return NULL;
}

enum { NO_LAYER = 99 };

static void plain_norm(const embla_gpt *gpt, size_t layer, const char *name, const double *x,
                       double *out)
{
    const embla_gpt_shape *s = &gpt->shape;
    char gain_name[32], bias_name[32];
    (void)snprintf(gain_name, sizeof gain_name, "%s.gain", name);
    (void)snprintf(bias_name, sizeof bias_name, "%s.bias", name);
    const double *gain = values_of(gpt, layer, gain_name), *bias = values_of(gpt, layer, bias_name);
    double mean = 0, squares = 0;
    if (s->norm == EMBLA_NORM_LAYER)
        for (size_t i = 0; i < s->dim; i++) mean += x[i] / (double)s->dim;
    for (size_t i = 0; i < s->dim; i++) squares += (x[i] - mean) * (x[i] - mean) / (double)s->dim;
    for (size_t i = 0; i < s->dim; i++) {
        out[i] = (x[i] - mean) / sqrt(squares + s->norm_epsilon);
        if (gain) out[i] *= gain[i];
        if (bias) out[i] += bias[i];
    }
}

static void plain_linear(const embla_gpt *gpt, size_t layer, const char *name, const double *x,
                         size_t in, size_t out, double *y)
{
    char bias_name[32];
    (void)snprintf(bias_name, sizeof bias_name, "%s.bias", name);
    const double *w = values_of(gpt, layer, name), *bias = values_of(gpt, layer, bias_name);
    for (size_t o = 0; o < out; o++) {
        y[o] = bias ? bias[o] : 0;
        for (size_t i = 0; i < in; i++) y[o] += w[o * in + i] * x[i];
    }
}

static void plain_turn(const embla_gpt_shape *s, size_t position, size_t heads, double *x)
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

static double plain_activation(embla_activation kind, double up, double gate)
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

/* One query against the keys up to it. */
static void plain_attend(const embla_gpt_shape *s, const double *q, row *k, row *v, size_t last,
                         double *out)
{
    size_t size = s->dim / s->heads, each = s->heads / s->kv_heads;
    for (size_t h = 0; h < s->heads; h++) {
        double scores[MOST], sum = 0;
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

static void plain_layer(const embla_gpt *gpt, size_t layer, row *x, size_t length)
{
    const embla_gpt_shape *s = &gpt->shape;
    static row q[MOST], k[MOST], v[MOST];
    size_t kv = s->dim / s->heads * s->kv_heads;
    row h, a, up, gate = {0};
    for (size_t t = 0; t < length; t++) {
        plain_norm(gpt, layer, "norm1", x[t], h);
        plain_linear(gpt, layer, "attn.q", h, s->dim, s->dim, q[t]);
        plain_linear(gpt, layer, "attn.k", h, s->dim, kv, k[t]);
        plain_linear(gpt, layer, "attn.v", h, s->dim, kv, v[t]);
        plain_turn(s, t, s->heads, q[t]);
        plain_turn(s, t, s->kv_heads, k[t]);
    }
    for (size_t t = 0; t < length; t++) {
        plain_attend(s, q[t], k, v, t, h);
        plain_linear(gpt, layer, "attn.o", h, s->dim, s->dim, a);
        for (size_t i = 0; i < s->dim; i++) x[t][i] += a[i];
        plain_norm(gpt, layer, "norm2", x[t], h);
        plain_linear(gpt, layer, "mlp.up", h, s->dim, s->hidden, up);
        if (s->activation == EMBLA_ACTIVATION_SWIGLU)
            plain_linear(gpt, layer, "mlp.gate", h, s->dim, s->hidden, gate);
        for (size_t i = 0; i < s->hidden; i++)
            up[i] = plain_activation(s->activation, up[i], gate[i]);
        plain_linear(gpt, layer, "mlp.down", up, s->hidden, s->dim, a);
        for (size_t i = 0; i < s->dim; i++) x[t][i] += a[i];
    }
}

static double plain_surprise(const embla_gpt *gpt, const double *x, int32_t target)
{
    const embla_gpt_shape *s = &gpt->shape;
    const double *head = values_of(gpt, NO_LAYER, s->untied ? "lm_head" : "wte");
    double sum = 0, wanted = 0;
    for (size_t v = 0; v < (size_t)s->vocab; v++) {
        double logit = 0;
        for (size_t i = 0; i < s->dim; i++) logit += head[v * s->dim + i] * x[i];
        sum += exp(logit);
        if ((int32_t)v == target) wanted = logit;
    }
    return log(sum) - wanted;
}

/* The mean loss; hidden gets the vectors before the head. */
static double plain_loss(const embla_gpt *gpt, const batch *b, row *hidden)
{
    const embla_gpt_shape *s = &gpt->shape;
    const double *wte = values_of(gpt, NO_LAYER, "wte"), *wpe = values_of(gpt, NO_LAYER, "wpe");
    static row x[MOST];
    double loss = 0, counted = 0;
    for (size_t n = 0; n < b->batch; n++) {
        for (size_t t = 0; t < b->length; t++) {
            float sines[WIDE] = {0};
            if (s->position_kind == EMBLA_POSITIONS_SINUSOIDAL)
                assert_ok(embla_sinusoid((int64_t)t, 1, s->dim, 0, sines));
            for (size_t i = 0; i < s->dim; i++) {
                x[t][i] = wte[(size_t)b->tokens[n * b->length + t] * s->dim + i];
                x[t][i] += (wpe ? wpe[t * s->dim + i] : 0) + (double)sines[i];
            }
            if (s->norm_first) plain_norm(gpt, NO_LAYER, "norm_first", x[t], x[t]);
        }
        for (size_t layer = 0; layer < s->layers; layer++) plain_layer(gpt, layer, x, b->length);
        for (size_t t = 0; t < b->length; t++) {
            size_t i = n * b->length + t;
            if (!s->no_norm_last) plain_norm(gpt, NO_LAYER, "norm", x[t], x[t]);
            memcpy(hidden[i], x[t], sizeof x[t]);
            if (b->targets[i] == EMBLA_TARGET_IGNORE) continue;
            loss += plain_surprise(gpt, x[t], b->targets[i]);
            counted++;
        }
    }
    return loss / counted;
}

static void the_loss_is_that_of_plain_loops(void **state)
{
    static row hidden[MOST];
    (void)state;
    for (size_t v = 0; v < COUNT_OF(variants); v++) {
        const embla_gpt_shape *shape = &variants[v].shape;
        batch b = batch_of(shape, 3, v);
        b.targets[1] = EMBLA_TARGET_IGNORE;
        embla_gpt *wide = model_of(shape, EMBLA_GPT_F64, 3);
        embla_gpt *narrow = model_of(shape, EMBLA_GPT_F32, 3);
        double loss = plain_loss(wide, &b, hidden);
        assert_near(loss_of(wide, &b), loss, 1e-10);
        assert_near(loss_of(narrow, &b), loss, 1e-4);
        assert_near(learn(wide, &b, NULL), loss, 1e-10);
        assert_near(learn(narrow, &b, NULL), loss, 1e-4);
        for (size_t i = 0; i < b.batch * b.length * shape->dim; i++) {
            double x = hidden[i / shape->dim][i % shape->dim];
            assert_near(embla_gpt_hidden(wide)[i], x, 1e-6 * (1 + fabs(x)));
            assert_near(embla_gpt_hidden(narrow)[i], x, 1e-4 * (1 + fabs(x)));
        }
        embla_gpt_free(narrow);
        embla_gpt_free(wide);
    }
}

/* ---- gradients ---- */

/* By how much the loss changes with one number; the loss is that of learn where things are
 * dropped. */
static double slope(embla_gpt *gpt, const batch *b, const embla_gpt_options *options, double *at)
{
    const double step = 1e-5, was = *at;
    bool drops = gpt->shape.dropout > 0;
    *at = was + step;
    double above = drops ? learn(gpt, b, options) : loss_of(gpt, b);
    *at = was - step;
    double below = drops ? learn(gpt, b, options) : loss_of(gpt, b);
    *at = was;
    return (above - below) / (2 * step);
}

/* Every tensor: its first number, its last, and some between; a small one all. */
static void check_slopes(const char *name, embla_gpt *gpt, const batch *b,
                         const embla_gpt_options *options)
{
    enum { SAMPLES = 14 };
    uint64_t seed = 8;
    size_t bytes = gpt->numbers * sizeof(double);
    double *kept = malloc(bytes);
    assert_non_null(kept);
    embla_gpt_zero_gradients(gpt);
    (void)learn(gpt, b, options);
    memcpy(kept, gpt->gradients, bytes);
    for (size_t n = 0; n < embla_gpt_tensor_count(gpt); n++) {
        embla_gpt_tensor t = tensor_at(gpt, n);
        size_t count = count_of(&t);
        double *values = (double *)(void *)t.values, *gradient = kept + gpt->parts[n].at;
        for (size_t k = 0; k < SAMPLES && k < count; k++) {
            size_t i = k == 0 ? 0 : k == 1 ? count - 1 : check_below(&seed, count);
            double found = slope(gpt, b, options, &values[i]);
            if (!(fabs(found - gradient[i]) <= 1e-7 * (1 + fabs(found))))
                fail_msg("%s, %s[%zu]: %.12g, by differences %.12g", name, t.name, i, gradient[i],
                         found);
        }
    }
    free(kept);
}

static void gradients_are_slopes_of_the_loss(void **state)
{
    (void)state;
    for (size_t v = 0; v < COUNT_OF(variants); v++) {
        batch b = batch_of(&variants[v].shape, 3, 10 + v);
        embla_gpt *gpt = model_of(&variants[v].shape, EMBLA_GPT_F64, 3);
        if (variants[v].shape.vocab > 1) b.targets[2] = EMBLA_TARGET_IGNORE;
        check_slopes(variants[v].name, gpt, &b, NULL);
        embla_gpt_free(gpt);
    }
}

static void gradients_with_dropout_are_slopes_too(void **state)
{
    (void)state;
    for (size_t v = 0; v < 3; v++) {
        embla_gpt_shape shape = variants[v].shape;
        embla_gpt_options options = {.seed = 4, .step = 2};
        shape.dropout = 0.4;
        if (v == 2) shape.hidden = 3; /* less than dim */
        batch b = batch_of(&shape, 2, 20 + v);
        embla_gpt *gpt = model_of(&shape, EMBLA_GPT_F64, 2);
        check_slopes(variants[v].name, gpt, &b, &options);
        /* the same step drops the same, another one others, and the loss alone nothing */
        double first = learn(gpt, &b, &options), again = learn(gpt, &b, &options);
        options.step = 3;
        double other = learn(gpt, &b, &options);
        options = (embla_gpt_options){.seed = 5, .step = 2};
        double seed = learn(gpt, &b, &options), none = loss_of(gpt, &b);
        assert_true(first == again && first != other && first != seed && first != none);
        gpt->shape.dropout = 0;
        assert_true(learn(gpt, &b, NULL) == none);
        embla_gpt_free(gpt);
    }
}

/* Of 10,000 numbers in each of four branches as many are dropped as should be, each branch has
 * draws of its own, and what is kept is scaled up: the mean stays. */
static void dropout_keeps_the_mean(void **state)
{
    embla_gpt_shape shape = {.vocab = 3,
                             .dim = 200,
                             .layers = 2,
                             .heads = 1,
                             .hidden = 4,
                             .positions = 50,
                             .biases = true,
                             .dropout = 0.25};
    embla_gpt *gpt = NULL;
    batch b = batch_of(&shape, 1, 1);
    (void)state;
    assert_ok(embla_gpt_new(&shape, 1, 0, &gpt));
    assert_ok(embla_gpt_reserve(gpt, 1, 50));
    /* a branch that is its bias alone: 1, 2, 4, 8 */
    memset(gpt->weights, 0, gpt->numbers * sizeof(float));
    for (size_t layer = 0; layer < 2; layer++)
        for (size_t i = 0; i < 200; i++) {
            float *o = embla_gpt_weight(gpt, embla_gpt_slot(layer, EMBLA_GPT_O_BIAS));
            float *down = embla_gpt_weight(gpt, embla_gpt_slot(layer, EMBLA_GPT_DOWN_BIAS));
            o[i] = layer ? 4 : 1, down[i] = layer ? 8 : 2;
        }
    (void)learn(gpt, &b, NULL);
    const float *x = (const float *)(void *)(gpt->activations + gpt->at.layers +
                                             gpt->at.layer_bytes + gpt->at.out);
    int kept[4] = {0}, both = 0;
    for (size_t i = 0; i < 10000; i++) {
        int bits = (int)lroundf(x[i] * 0.75f);
        assert_near(x[i] * 0.75f, bits, 1e-5);
        for (int branch = 0; branch < 4; branch++) kept[branch] += bits >> branch & 1;
        both += (bits & 3) == 3;
    }
    for (int branch = 0; branch < 4; branch++) assert_in_range(kept[branch], 7300, 7700);
    assert_in_range(both, 5400, 5850); /* 0.75^2 */
    embla_gpt_free(gpt);
}

static void f32_gradients_are_near_those_of_f64(void **state)
{
    (void)state;
    for (size_t v = 0; v < COUNT_OF(variants); v++) {
        batch b = batch_of(&variants[v].shape, 3, 30 + v);
        embla_gpt *wide = model_of(&variants[v].shape, EMBLA_GPT_F64, 3);
        embla_gpt *narrow = model_of(&variants[v].shape, EMBLA_GPT_F32, 3);
        double loss = learn(wide, &b, NULL);
        assert_near(learn(narrow, &b, NULL), loss, 1e-5 * (1 + loss));
        for (size_t n = 0; n < embla_gpt_tensor_count(wide); n++) {
            embla_gpt_tensor w = tensor_at(wide, n), f = tensor_at(narrow, n);
            const double *right = (const double *)(const void *)w.gradient;
            double off = 0, all = 0;
            assert_string_equal(w.name, f.name);
            for (size_t i = 0; i < count_of(&w); i++) {
                double gap = (double)((const float *)f.gradient)[i] - right[i];
                off += gap * gap, all += right[i] * right[i];
            }
            /* gradients of key biases are 0: nothing to be relative to */
            if (!(sqrt(off) <= 1e-4 * sqrt(all) + 1e-6))
                fail_msg("%s, %s: %.3g of %.3g", variants[v].name, w.name, sqrt(off), sqrt(all));
        }
        embla_gpt_free(narrow);
        embla_gpt_free(wide);
    }
}

static void gradients_are_added_and_weighted(void **state)
{
    const embla_gpt_shape *shape = &variants[0].shape;
    batch b = batch_of(shape, 2, 40);
    embla_gpt *gpt = model_of(shape, EMBLA_GPT_F64, 2);
    embla_gpt_options twice = {.weight = 2};
    size_t count = gpt->numbers;
    double *once = malloc(count * sizeof *once);
    (void)state;
    assert_non_null(once);
    (void)learn(gpt, &b, NULL);
    memcpy(once, gpt->gradients, count * sizeof *once);
    (void)learn(gpt, &b, &twice);
    for (size_t i = 0; i < count; i++)
        assert_near(((double *)(void *)gpt->gradients)[i], 3 * once[i], 1e-14);
    embla_gpt_zero_gradients(gpt);
    for (size_t i = 0; i < count; i++) assert_true(((double *)(void *)gpt->gradients)[i] == 0);
    embla_gpt_zero_gradients(NULL);
    free(once);
    embla_gpt_free(gpt);
}

/* A shorter batch in the same room, and the order of sequences does not matter to each. */
static void a_batch_may_be_smaller_than_the_room(void **state)
{
    (void)state;
    for (size_t v = 0; v < 4; v++) {
        const embla_gpt_shape *shape = &variants[v].shape;
        size_t length = shape->positions - 2;
        static row hidden[MOST];
        batch b = batch_of(shape, 2, 50);
        embla_gpt *gpt = model_of(shape, EMBLA_GPT_F64, 3);
        b.length = length;
        assert_near(loss_of(gpt, &b), plain_loss(gpt, &b, hidden), 1e-10);
        b.batch = 1, b.length = 1;
        assert_near(loss_of(gpt, &b), plain_loss(gpt, &b, hidden), 1e-10);
        check_slopes("one token", gpt, &b, NULL);
        embla_gpt_free(gpt);
    }
}

/* ---- threads ---- */

static const embla_gpt_shape larger = {.vocab = 301,
                                       .dim = 96,
                                       .layers = 2,
                                       .heads = 4,
                                       .positions = 64,
                                       .biases = true,
                                       .dropout = 0.1};

/* Gradients and loss of one learn, with so many threads. */
static double learn_with(embla_gpt *gpt, int threads, const int32_t *tokens, void *out)
{
    embla_gpt_options options = {.threads = threads, .seed = 3};
    embla_loss_report report;
    embla_gpt_zero_gradients(gpt);
    assert_ok(embla_gpt_backward(
        gpt, &(embla_gpt_batch){.tokens = tokens, .targets = tokens + 1, .batch = 6, .length = 64},
        &options, &report));
    memcpy(out, gpt->gradients, gpt->numbers * gpt->real);
    return report.loss;
}

static void threads_change_no_bit(void **state)
{
    int32_t tokens[6 * 64 + 1];
    uint64_t seed = 2;
    (void)state;
    for (size_t i = 0; i < COUNT_OF(tokens); i++)
        tokens[i] = (int32_t)check_below(&seed, i % 2 ? 301 : 5);
    for (int kind = 0; kind < 3; kind++) {
        embla_gpt_shape shape = larger;
        embla_gpt *gpt = NULL;
        if (kind == 1) {
            shape = (embla_gpt_shape){.vocab = 301,
                                      .dim = 96,
                                      .layers = 1,
                                      .heads = 6,
                                      .kv_heads = 3,
                                      .hidden = 160,
                                      .positions = 64,
                                      LLAMA_KIND,
                                      .untied = true,
                                      .norm_first = true};
        }
        assert_ok(embla_gpt_new_as(&shape, kind == 2 ? EMBLA_GPT_F64 : EMBLA_GPT_F32, 1, 0, &gpt));
        assert_ok(embla_gpt_reserve(gpt, 6, 64));
        size_t bytes = gpt->numbers * gpt->real;
        char *one = malloc(bytes), *many = malloc(bytes);
        assert_true(one && many);
        double loss = learn_with(gpt, 1, tokens, one);
        for (int threads = 2; threads <= 4; threads++) {
            assert_true(learn_with(gpt, threads, tokens, many) == loss);
            assert_memory_equal(one, many, bytes);
        }
        free(many);
        free(one);
        embla_gpt_free(gpt);
    }
}

static void bf16_is_near_f32(void **state)
{
    const embla_gpt_options options = {.compute = EMBLA_BF16};
    embla_gpt_shape shape = larger;
    embla_gpt *gpt = NULL;
    int32_t tokens[6 * 64 + 1];
    uint64_t seed = 2;
    embla_loss_report narrow, full;
    (void)state;
    if (!embla_engine_has_products()) skip_because("no engine for matrix products");
    shape.dropout = 0;
    for (size_t i = 0; i < COUNT_OF(tokens); i++) tokens[i] = (int32_t)check_below(&seed, 301);
    assert_ok(embla_gpt_new(&shape, 1, 0, &gpt));
    assert_ok(embla_gpt_reserve(gpt, 6, 64));
    assert_ok(embla_gpt_backward(
        gpt, &(embla_gpt_batch){.tokens = tokens, .targets = tokens + 1, .batch = 6, .length = 64},
        &options, &narrow));
    assert_ok(embla_gpt_loss(
        gpt, &(embla_gpt_batch){.tokens = tokens, .targets = tokens + 1, .batch = 6, .length = 64},
        NULL, &full));
    assert_near(narrow.loss, full.loss, 0.02);
    embla_gpt_free(gpt);
}

/* ---- learning ---- */

enum { TENSORS = 16 };

static void microgpt_learns_a_batch_by_heart(void **state)
{
    embla_gpt_preset preset;
    embla_gpt *gpt = NULL;
    embla_table *tables[TENSORS];
    embla_optim *optims[TENSORS];
    /* "emma", "olivia" and "ava" between two BOS tokens */
    const int32_t tokens[8] = {26, 4, 12, 12, 0, 26, 14, 11};
    const int32_t targets[8] = {4, 12, 12, 0, 26, 14, 11, 8};
    embla_loss_report report = {.loss = 9};
    (void)state;
    assert_ok(embla_gpt_preset_find("microgpt", &preset));
    assert_ok(embla_gpt_new(&preset.shape, 1, preset.spread, &gpt));
    assert_ok(embla_gpt_reserve(gpt, 1, 8));
    size_t count = embla_gpt_tensor_count(gpt);
    assert_true(count <= TENSORS);
    embla_optim_options options = {
        .kind = EMBLA_OPTIM_ADAMW, .beta1 = preset.beta1, .beta2 = preset.beta2};
    for (size_t n = 0; n < count; n++) {
        embla_gpt_tensor t = tensor_at(gpt, n);
        embla_table_options view = {.writable = true};
        assert_ok(embla_table_view(
            &(embla_table_layout){.dtype = EMBLA_F32, .rows = t.rows, .dim = t.dim}, t.values,
            count_of(&t) * sizeof(float), &view, &tables[n]));
        assert_ok(embla_optim_new(tables[n], &options, &optims[n]));
    }
    int steps = 0;
    for (; steps < 300 && report.loss >= 0.1; steps++) {
        embla_gpt_zero_gradients(gpt);
        assert_ok(embla_gpt_backward(
            gpt, &(embla_gpt_batch){.tokens = tokens, .targets = targets, .batch = 1, .length = 8},
            NULL, &report));
        if (steps == 0) assert_near(report.loss, log(27), 0.5);
        for (size_t n = 0; n < count; n++)
            assert_ok(embla_optim_step(optims[n], preset.rate, tensor_at(gpt, n).gradient));
    }
    assert_true(report.loss < 0.1);
    assert_int_equal(report.counted, 8);
    print_message("loss %.3f after %d steps\n", report.loss, steps);
    for (size_t n = 0; n < count; n++) {
        embla_optim_free(optims[n]);
        embla_table_free(tables[n]);
    }
    embla_gpt_free(gpt);
}

static double seconds(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void the_time_of_a_microgpt_step(void **state)
{
    embla_gpt_preset preset;
    embla_gpt *gpt = NULL;
    batch b;
    double best[2] = {1, 1};
    (void)state;
    assert_ok(embla_gpt_preset_find("microgpt", &preset));
    assert_ok(embla_gpt_new(&preset.shape, 1, preset.spread, &gpt));
    assert_ok(embla_gpt_reserve(gpt, 1, 16));
    b = batch_of(&preset.shape, 1, 3);
    for (int round = 0; round < 40; round++)
        for (int kind = 0; kind < 2; kind++) {
            b.length = kind ? 16 : 8;
            double begun = seconds();
            for (int i = 0; i < 20; i++) (void)learn(gpt, &b, NULL);
            double each = (seconds() - begun) / 20;
            if (each < best[kind]) best[kind] = each;
        }
    print_message("a learn call: %.1f us for 8 tokens, %.1f us for 16\n", best[0] * 1e6,
                  best[1] * 1e6);
    embla_gpt_free(gpt);
}

/* ---- what is refused ---- */

static void what_cannot_be_is_refused(void **state)
{
    const embla_gpt_shape *shape = &variants[0].shape;
    batch b = batch_of(shape, 2, 1);
    embla_gpt *gpt = NULL;
    embla_loss_report report = {.loss = 77};
    (void)state;
    assert_ok(embla_gpt_new(shape, 1, 0, &gpt));
#define REFUSED(gpt, x, y, b, t, options, status, text)                                            \
    do {                                                                                           \
        const embla_gpt_batch asked = {.tokens = x, .targets = y, .batch = b, .length = t};        \
        assert_status(embla_gpt_backward(gpt, &asked, options, &report), status);                  \
        assert_error_has(text);                                                                    \
        assert_status(embla_gpt_loss(gpt, &asked, options, &report), status);                      \
        assert_true(report.loss == 77);                                                            \
    } while (0)
    const int32_t *x = b.tokens, *y = b.targets;
    REFUSED(NULL, x, y, 1, 1, NULL, EMBLA_ERR_ARGUMENT, "gpt is NULL");
    REFUSED(gpt, NULL, y, 1, 1, NULL, EMBLA_ERR_ARGUMENT, "tokens of the batch are NULL");
    REFUSED(gpt, x, NULL, 1, 1, NULL, EMBLA_ERR_ARGUMENT, "targets of the batch are NULL");
    REFUSED(gpt, x, y, 1, 1, NULL, EMBLA_ERR_SHAPE, "memory for only 0 tokens");
    assert_null(embla_gpt_hidden(gpt));
    assert_null(embla_gpt_hidden(NULL));
    assert_ok(embla_gpt_reserve(gpt, 1, 5));
    assert_null(embla_gpt_hidden(gpt));
    REFUSED(gpt, x, y, 0, 1, NULL, EMBLA_ERR_ARGUMENT, "batch is 0 and length is 1");
    REFUSED(gpt, x, y, 1, 0, NULL, EMBLA_ERR_ARGUMENT, "batch is 1 and length is 0");
    REFUSED(gpt, x, y, 1, 8, NULL, EMBLA_ERR_RANGE, "length is 8, but the model has 7 positions");
    REFUSED(gpt, x, y, 1, 6, NULL, EMBLA_ERR_SHAPE,
            "1 sequences of 6 tokens: the model has memory for only 5");
    REFUSED(gpt, x, y, SIZE_MAX / 2, 4, NULL, EMBLA_ERR_SHAPE, "memory for only 5");
    embla_gpt_options o = {.threads = -1};
    REFUSED(gpt, x, y, 1, 5, &o, EMBLA_ERR_ARGUMENT, "threads is -1");
    o = (embla_gpt_options){.compute = EMBLA_F16};
    REFUSED(gpt, x, y, 1, 5, &o, EMBLA_ERR_UNSUPPORTED,
            "a model computes in f32 or bf16; compute is dtype 3");
    o = (embla_gpt_options){.weight = NAN};
    REFUSED(gpt, x, y, 1, 5, &o, EMBLA_ERR_ARGUMENT, "weight is nan");
    b.tokens[3] = 11;
    REFUSED(gpt, x, y, 1, 5, NULL, EMBLA_ERR_RANGE,
            "token 3 of sequence 0 is 11, which is out of range; the model has tokens 0 to 10");
    b.tokens[3] = EMBLA_TARGET_IGNORE;
    REFUSED(gpt, x, y, 2, 2, NULL, EMBLA_ERR_RANGE, "token 1 of sequence 1 is -100");
    b.tokens[3] = 10;
    b.targets[0] = EMBLA_TARGET_IGNORE, b.targets[4] = -1;
    REFUSED(gpt, x, y, 1, 5, NULL, EMBLA_ERR_RANGE,
            "target 4 of sequence 0 is -1, which is out of range; the model has tokens 0 to 10");
#undef REFUSED
    for (size_t i = 0; i < gpt->numbers; i++)
        assert_true(((float *)(void *)gpt->gradients)[i] == 0);
    b.targets[4] = EMBLA_TARGET_IGNORE;
    assert_ok(embla_gpt_backward(
        gpt, &(embla_gpt_batch){.tokens = x, .targets = y, .batch = 1, .length = 5}, NULL, NULL));
    assert_non_null(embla_gpt_hidden(gpt));
    embla_gpt_free(gpt);
    o = (embla_gpt_options){.compute = EMBLA_BF16};
    gpt = model_of(shape, EMBLA_GPT_F64, 1);
    assert_status(
        embla_gpt_loss(gpt, &(embla_gpt_batch){.tokens = x, .targets = y, .batch = 1, .length = 5},
                       &o, NULL),
        EMBLA_ERR_UNSUPPORTED);
    assert_error_has("f64 numbers does not compute in bf16");
    embla_gpt_free(gpt);
}

static void with_nothing_counted_nothing_is_learnt(void **state)
{
    (void)state;
    for (int precision = 0; precision < 2; precision++) {
        embla_gpt *gpt = model_of(&variants[0].shape, (embla_gpt_precision)precision, 1);
        batch b = batch_of(&variants[0].shape, 1, 1);
        embla_loss_report report;
        for (size_t i = 0; i < b.length; i++) b.targets[i] = EMBLA_TARGET_IGNORE;
        assert_ok(embla_gpt_backward(
            gpt,
            &(embla_gpt_batch){
                .tokens = b.tokens, .targets = b.targets, .batch = 1, .length = b.length},
            NULL, &report));
        assert_true(report.loss == 0 && report.counted == 0);
        assert_int_equal(report.ignored, b.length);
        for (size_t i = 0; i < gpt->numbers; i++)
            assert_true(precision ? ((double *)(void *)gpt->gradients)[i] == 0
                                  : ((float *)(void *)gpt->gradients)[i] == 0);
        embla_gpt_free(gpt);
    }
}

/* Whatever fails, it is said, nothing is lost, and the next call is right. */
static void every_allocation_may_fail(void **state)
{
    /* small layers need nothing of the heap, larger ones do */
    embla_gpt_shape shapes[3] = {variants[0].shape, variants[1].shape, larger};
    size_t failed = 0;
    (void)state;
    shapes[2].positions = 32, shapes[2].vocab = 3001;
    for (size_t v = 0; v < 3; v++) {
        embla_gpt *gpt = model_of(&shapes[v], EMBLA_GPT_F32, 2);
        batch b = batch_of(&shapes[v], 2, 3);
        double loss = learn(gpt, &b, NULL);
        size_t live = embla_mem_live();
        for (size_t at = 1;; at++) {
            embla_loss_report report = {.loss = 77};
            embla_mem_fail(at, false);
            embla_status status = embla_gpt_backward(
                gpt,
                &(embla_gpt_batch){
                    .tokens = b.tokens, .targets = b.targets, .batch = b.batch, .length = b.length},
                NULL, &report);
            embla_mem_fail(0, false);
            assert_int_equal(embla_mem_live(), live);
            if (status == EMBLA_OK) break;
            failed++;
            assert_status(status, EMBLA_ERR_MEMORY);
            assert_true(report.loss == 77);
            assert_null(embla_gpt_hidden(gpt));
            assert_true(learn(gpt, &b, NULL) == loss);
        }
        embla_gpt_free(gpt);
    }
    assert_true(failed > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_loss_is_that_of_plain_loops),
        cmocka_unit_test(gradients_are_slopes_of_the_loss),
        cmocka_unit_test(gradients_with_dropout_are_slopes_too),
        cmocka_unit_test(dropout_keeps_the_mean),
        cmocka_unit_test(f32_gradients_are_near_those_of_f64),
        cmocka_unit_test(gradients_are_added_and_weighted),
        cmocka_unit_test(a_batch_may_be_smaller_than_the_room),
        cmocka_unit_test(threads_change_no_bit),
        cmocka_unit_test(bf16_is_near_f32),
        cmocka_unit_test(microgpt_learns_a_batch_by_heart),
        cmocka_unit_test(the_time_of_a_microgpt_step),
        cmocka_unit_test(what_cannot_be_is_refused),
        cmocka_unit_test(with_nothing_counted_nothing_is_learnt),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
