/* SPDX-License-Identifier: Apache-2.0 */
/* The whole decoder: its loss against the same model in plain loops in double (reference_gpt.h),
 * its gradients against central differences of that loss, one thread against several. Sizes are
 * odd and tiny; gains and biases are random, so that none hides behind a 1 or a 0.
 */
#include "check.h"

#include <math.h>
#include <stdio.h>
#include <time.h>

#include "base/mem.h"
#include "engine.h"
#include "engine/engine.h"
#include "gpt_shapes.h"
#include "model/gpt.h"
#include "reference_gpt.h"

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

/* A model with room, and with a little added to every number. */
static embla_gpt *model_of(const embla_gpt_shape *shape, size_t sequences)
{
    embla_gpt *gpt = NULL;
    uint64_t seed = 5;
    assert_ok(embla_gpt_new(shape, 3, 0.3, &gpt));
    assert_ok(embla_gpt_reserve(gpt, sequences, shape->positions));
    for (size_t n = 0; n < embla_gpt_tensor_count(gpt); n++) {
        embla_gpt_tensor t = tensor_at(gpt, n);
        for (size_t i = 0; i < count_of(&t); i++) t.values[i] += 0.25f * check_unit(&seed);
    }
    return gpt;
}

static embla_gpt_batch given(const batch *b)
{
    return (embla_gpt_batch){
        .tokens = b->tokens, .targets = b->targets, .batch = b->batch, .length = b->length};
}

static double loss_of(embla_gpt *gpt, const batch *b)
{
    embla_loss_report report;
    const embla_gpt_batch asked = given(b);
    assert_ok(embla_gpt_loss(gpt, &asked, NULL, &report));
    return report.loss;
}

static double learn(embla_gpt *gpt, const batch *b, const embla_gpt_options *options)
{
    embla_loss_report report;
    const embla_gpt_batch asked = given(b);
    assert_ok(embla_gpt_backward(gpt, &asked, options, &report));
    return report.loss;
}

static double reference_loss_of(embla_gpt *gpt, const batch *b, double *hidden)
{
    reference r = reference_new(gpt);
    const embla_gpt_batch asked = given(b);
    double loss = reference_loss(&r, &asked, hidden);
    reference_free(&r);
    return loss;
}

/* ---- loss ---- */

/* A float has 24 bits. Some hundred roundings of 6e-8 one after the other remain below 1e-5. */
static const double rounding = 1e-5;

static void the_loss_is_that_of_plain_loops(void **state)
{
    static double hidden[MOST * REFERENCE_WIDE];
    (void)state;
    for (size_t v = 0; v < COUNT_OF(variants); v++) {
        const embla_gpt_shape *shape = &variants[v].shape;
        batch b = batch_of(shape, 3, v);
        b.targets[1] = EMBLA_TARGET_IGNORE;
        embla_gpt *gpt = model_of(shape, 3);
        double loss = reference_loss_of(gpt, &b, hidden);
        assert_near(loss_of(gpt, &b), loss, rounding * (1 + loss));
        assert_near(learn(gpt, &b, NULL), loss, rounding * (1 + loss));
        for (size_t i = 0; i < b.batch * b.length * shape->dim; i++)
            assert_near(embla_gpt_hidden(gpt)[i], hidden[i], rounding * (1 + fabs(hidden[i])));
        embla_gpt_free(gpt);
    }
}

/* ---- gradients ---- */

/* Every tensor against the slopes of the reference's loss. */
static void check_slopes(const char *name, embla_gpt *gpt, const batch *b,
                         const embla_gpt_options *options)
{
    reference r = reference_new(gpt);
    const embla_gpt_batch asked = given(b);
    char full[128];
    if (gpt->shape.dropout > 0) reference_drop(&r, b->batch * b->length, options);
    embla_gpt_zero_gradients(gpt);
    double loss = learn(gpt, b, options), right = reference_loss(&r, &asked, NULL);
    assert_near(loss, right, rounding * (1 + right));
    for (size_t n = 0; n < embla_gpt_tensor_count(gpt); n++) {
        embla_gpt_tensor t = tensor_at(gpt, n);
        (void)snprintf(full, sizeof full, "%s, %s", name, t.name);
        reference_check_gradient(&r, &asked, full, r.tensors[n], t.gradient, count_of(&t),
                                 rounding);
    }
    reference_free(&r);
}

static void gradients_are_slopes_of_the_loss(void **state)
{
    (void)state;
    for (size_t v = 0; v < COUNT_OF(variants); v++) {
        batch b = batch_of(&variants[v].shape, 3, 10 + v);
        embla_gpt *gpt = model_of(&variants[v].shape, 3);
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
        embla_gpt *gpt = model_of(&shape, 2);
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

static void gradients_are_added_and_weighted(void **state)
{
    const embla_gpt_shape *shape = &variants[0].shape;
    batch b = batch_of(shape, 2, 40);
    embla_gpt *gpt = model_of(shape, 2);
    embla_gpt_options twice = {.weight = 2};
    size_t count = gpt->numbers;
    float *once = malloc(count * sizeof *once);
    const float *gradients = (const float *)(const void *)gpt->gradients;
    (void)state;
    assert_non_null(once);
    (void)learn(gpt, &b, NULL);
    memcpy(once, gradients, count * sizeof *once);
    (void)learn(gpt, &b, &twice);
    for (size_t i = 0; i < count; i++)
        assert_near(gradients[i], 3 * once[i], 1e-6 * (double)fabsf(once[i]) + 1e-7);
    embla_gpt_zero_gradients(gpt);
    for (size_t i = 0; i < count; i++) assert_true(gradients[i] == 0);
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
        batch b = batch_of(shape, 2, 50);
        embla_gpt *gpt = model_of(shape, 3);
        b.length = shape->positions - 2;
        assert_near(loss_of(gpt, &b), reference_loss_of(gpt, &b, NULL), 4 * rounding);
        b.batch = 1, b.length = 1;
        assert_near(loss_of(gpt, &b), reference_loss_of(gpt, &b, NULL), 4 * rounding);
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
    memcpy(out, gpt->gradients, gpt->numbers * sizeof(float));
    return report.loss;
}

static void threads_change_no_bit(void **state)
{
    int32_t tokens[6 * 64 + 1];
    uint64_t seed = 2;
    (void)state;
    for (size_t i = 0; i < COUNT_OF(tokens); i++)
        tokens[i] = (int32_t)check_below(&seed, i % 2 ? 301 : 5);
    for (int kind = 0; kind < 2; kind++) {
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
        assert_ok(embla_gpt_new(&shape, 1, 0, &gpt));
        assert_ok(embla_gpt_reserve(gpt, 6, 64));
        size_t bytes = gpt->numbers * sizeof(float);
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
}

static void with_nothing_counted_nothing_is_learnt(void **state)
{
    embla_gpt *gpt = model_of(&variants[0].shape, 1);
    batch b = batch_of(&variants[0].shape, 1, 1);
    const embla_gpt_batch asked = given(&b);
    embla_loss_report report;
    (void)state;
    for (size_t i = 0; i < b.length; i++) b.targets[i] = EMBLA_TARGET_IGNORE;
    assert_ok(embla_gpt_backward(gpt, &asked, NULL, &report));
    assert_true(report.loss == 0 && report.counted == 0);
    assert_int_equal(report.ignored, b.length);
    for (size_t i = 0; i < gpt->numbers; i++)
        assert_true(((float *)(void *)gpt->gradients)[i] == 0);
    embla_gpt_free(gpt);
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
        embla_gpt *gpt = model_of(&shapes[v], 2);
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
    if (!no_engine()) assert_true(failed > 0); /* loops of our own take no memory */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_loss_is_that_of_plain_loops),
        cmocka_unit_test(gradients_are_slopes_of_the_loss),
        cmocka_unit_test(gradients_with_dropout_are_slopes_too),
        cmocka_unit_test(dropout_keeps_the_mean),
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
