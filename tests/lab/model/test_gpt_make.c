/* SPDX-License-Identifier: Apache-2.0 */
/* What a decoder is made of: counts of parameters that others have published, the list of
 * tensors, first weights, the plan of memory, and every shape that is refused.
 */
#include "check.h"

#include <math.h>
#include <stdio.h>

#include "base/mem.h"
#include "model/gpt.h"

static embla_gpt_shape tiny(void)
{
    return (embla_gpt_shape){
        .vocab = 7, .dim = 12, .layers = 2, .heads = 6, .hidden = 10, .positions = 5};
}

static embla_gpt *made(embla_gpt_shape shape)
{
    embla_gpt *gpt = NULL;
    assert_ok(embla_gpt_new(&shape, 9, 0, &gpt));
    return gpt;
}

static embla_gpt_tensor tensor_at(const embla_gpt *gpt, size_t n)
{
    embla_gpt_tensor t;
    assert_ok(embla_gpt_tensor_at(gpt, n, &t));
    return t;
}

static embla_gpt_tensor tensor_of(const embla_gpt *gpt, const char *name)
{
    for (size_t n = 0; n < embla_gpt_tensor_count(gpt); n++)
        if (strcmp(tensor_at(gpt, n).name, name) == 0) return tensor_at(gpt, n);
    fail_msg("there is no tensor called %s", name);
    return (embla_gpt_tensor){0};
}

/* ---- presets ---- */

static int64_t parameters_of(const char *name, int64_t vocab)
{
    embla_gpt_preset preset;
    embla_gpt_memory plan;
    embla_gpt *gpt = NULL;
    assert_ok(embla_gpt_preset_find(name, &preset));
    if (preset.shape.vocab == 0) preset.shape.vocab = vocab;
    /* nothing is filled: not a page of it is touched */
    assert_ok(embla_gpt_blank(&preset.shape, &gpt));
    int64_t parameters = embla_gpt_parameters(gpt), sum = 0;
    for (size_t n = 0; n < embla_gpt_tensor_count(gpt); n++)
        sum += tensor_at(gpt, n).rows * (int64_t)tensor_at(gpt, n).dim;
    assert_int_equal(sum, parameters);
    assert_ok(embla_gpt_plan_memory(&preset.shape, preset.batch, preset.length, &plan));
    assert_in_range(plan.weights, 4 * parameters,
                    4 * parameters + 64 * (int64_t)embla_gpt_tensor_count(gpt));
    assert_int_equal(plan.gradients, plan.weights);
    assert_int_equal(plan.optimizer, 2 * plan.weights);
    assert_int_equal(plan.total, 4 * plan.weights + plan.activations);
    embla_gpt_free(gpt);
    return parameters;
}

static void a_preset_has_options_for_any_steps_rate_and_kind(void **state)
{
    embla_gpt_preset p;
    embla_train_options o;
    const embla_schedule *s = &o.schedule;
    (void)state;
    assert_ok(embla_gpt_preset_find("gpt2-mini", &p));
    assert_true(p.warm_up > 0 && p.final_rate > 0 && p.final_rate < p.rate);
    assert_ok(embla_gpt_preset_options(&p, 0, -1, p.schedule, &o));
    assert_true(o.batch == p.batch && o.length == p.length && o.clip == p.clip);
    assert_true(o.beta1 == p.beta1 && o.beta2 == p.beta2 && o.epsilon == p.epsilon);
    assert_true(o.decay == p.decay && o.seed == 0 && o.engine == EMBLA_TRAIN_ENGINE_AUTO);
    assert_int_equal(s->steps, p.steps);
    assert_int_equal(s->kind, p.schedule);
    assert_true(s->rate == p.rate && s->final == p.final_rate && s->decay == 0);
    assert_true(s->warm_up == (p.warm_up < p.steps / 10 ? p.warm_up : p.steps / 10));
    assert_ok(embla_gpt_preset_options(&p, 50, p.rate / 4, EMBLA_SCHEDULE_WSD, &o));
    assert_int_equal(s->steps, 50);
    assert_int_equal(s->warm_up, 5);
    assert_int_equal(s->decay, 10);
    assert_true(s->rate == p.rate / 4);
    assert_true(fabs(s->final / p.final_rate - 0.25) < 1e-15);
    assert_ok(embla_gpt_preset_options(&p, 50, 0.5, EMBLA_SCHEDULE_CONSTANT, &o));
    assert_true(s->rate == 0.5 && s->final == 0.5);
    assert_ok(embla_gpt_preset_options(&p, 50, 0, EMBLA_SCHEDULE_COSINE, &o));
    assert_true(s->rate == 0 && s->final == 0);
    assert_int_equal(embla_gpt_preset_options(NULL, 1, 1, p.schedule, &o), EMBLA_ERR_ARGUMENT);
    assert_int_equal(embla_gpt_preset_options(&p, 1, 1, p.schedule, NULL), EMBLA_ERR_ARGUMENT);
}

static void parameters_are_as_many_as_published(void **state)
{
    (void)state;
    assert_int_equal(parameters_of("gpt2", 0), 124439808);
    assert_int_equal(parameters_of("andrea-120m", 0), 98698752);
    assert_int_equal(parameters_of("andrea-12m", 0), 12780288);
    assert_int_equal(parameters_of("microgpt", 0), 4192);
    /* vocabularies of the corpus: V + T rows and a layer's 12 C^2 + 13 C; or by hand */
    assert_int_equal(parameters_of("gpt2-mini", 65),
                     (65 + 128) * 192 + 4 * (12 * 192 * 192 + 13 * 192) + 2 * 192);
    assert_int_equal(parameters_of("llama-mini", 65),
                     2 * 65 * 192 + 4 * (2 * 192 * 192 + 2 * 64 * 192 + 3 * 512 * 192 + 2 * 192) +
                         192);
}

static void presets_are_found_by_name(void **state)
{
    const char *const names[] = {"microgpt",   "gpt2",        "gpt2-mini",
                                 "andrea-12m", "andrea-120m", "llama-mini"};
    embla_gpt_preset preset = {.batch = 77};
    (void)state;
    for (size_t n = 0; n < COUNT_OF(names); n++) {
        embla_schedule schedule;
        double rate;
        assert_string_equal(embla_gpt_preset_name(n), names[n]);
        assert_ok(embla_gpt_preset_find(names[n], &preset));
        assert_true(preset.batch >= 1 && preset.length <= preset.shape.positions);
        schedule = (embla_schedule){.rate = preset.rate,
                                    .final = preset.final_rate,
                                    .steps = preset.steps,
                                    .warm_up = preset.warm_up,
                                    .kind = preset.schedule};
        assert_ok(embla_schedule_rate(&schedule, preset.steps / 2, &rate));
        assert_true(rate > preset.final_rate && rate < preset.rate);
    }
    assert_null(embla_gpt_preset_name(COUNT_OF(names)));
    assert_null(embla_gpt_preset_name(SIZE_MAX));
    preset.batch = 77;
    assert_status(embla_gpt_preset_find("gpt3", &preset), EMBLA_ERR_NOT_FOUND);
    assert_error_has("'gpt3'");
    for (size_t n = 0; n < COUNT_OF(names); n++) assert_error_has(names[n]);
    assert_status(embla_gpt_preset_find(NULL, &preset), EMBLA_ERR_ARGUMENT);
    assert_error_has("name is NULL");
    assert_int_equal(preset.batch, 77);
    assert_status(embla_gpt_preset_find("gpt2", NULL), EMBLA_ERR_ARGUMENT);
    assert_error_has("out is NULL");
}

/* The rate that microGPT has at every step: 0.01 times 1 - step / 1000. */
static void microgpt_is_trained_as_its_program_does(void **state)
{
    embla_gpt_preset p;
    (void)state;
    assert_ok(embla_gpt_preset_find("microgpt", &p));
    embla_schedule schedule = {
        .rate = p.rate, .final = p.final_rate, .steps = p.steps, .kind = p.schedule};
    for (int64_t step = 0; step < 1000; step++) {
        double rate;
        assert_ok(embla_schedule_rate(&schedule, step, &rate));
        assert_near(rate, 0.01 * (1 - (double)step / 1000), 1e-15);
    }
    assert_true(p.beta1 == 0.85 && p.beta2 == 0.99 && p.epsilon == 1e-8 && p.decay == 0 &&
                p.clip == 0 && p.spread == 0.08 && p.batch == 1 && p.warm_up == 0);
    assert_true(p.shape.norm == EMBLA_NORM_RMS && p.shape.norm_epsilon == 1e-5 &&
                p.shape.activation == EMBLA_ACTIVATION_RELU && p.shape.heads == 4 &&
                p.shape.hidden == 64);
}

/* GPT-2 with one sequence of 1,024 tokens: far below 8 GiB. */
static void gpt2_fits_in_a_small_machine(void **state)
{
    embla_gpt_preset preset;
    embla_gpt_memory plan;
    (void)state;
    assert_ok(embla_gpt_preset_find("gpt2", &preset));
    assert_ok(embla_gpt_plan_memory(&preset.shape, 1, 1024, &plan));
    assert_in_range(plan.activations, INT64_C(500) << 20, INT64_C(700) << 20);
    assert_true(plan.total < INT64_C(3) << 30);
    print_message("weights %.0f, activations %.0f, all %.0f MiB\n", (double)plan.weights / 0x1p20,
                  (double)plan.activations / 0x1p20, (double)plan.total / 0x1p20);
}

/* ---- tensors ---- */

typedef struct {
    const char *name;
    int64_t rows;
    size_t dim;
} expected;

static void check_list(const embla_gpt *gpt, const expected *list, size_t count)
{
    const char *end = NULL;
    assert_int_equal(embla_gpt_tensor_count(gpt), count);
    for (size_t n = 0; n < count; n++) {
        embla_gpt_tensor t = tensor_at(gpt, n);
        assert_string_equal(t.name, list[n].name);
        assert_int_equal(t.rows, list[n].rows);
        assert_int_equal(t.dim, list[n].dim);
        assert_null(t.gradient);
        assert_int_equal(t.decays, !strstr(t.name, "gain") && !strstr(t.name, "bias"));
        /* one behind the other; k and v behind q without a gap */
        const char *values = (const char *)t.values;
        bool follows = strstr(t.name, "attn.k") || strstr(t.name, "attn.v");
        assert_true(!end || (follows ? values == end : values >= end && values < end + 128));
        assert_true(follows || (uintptr_t)values % 64 == 0);
        end = values + (size_t)t.rows * t.dim * sizeof(float);
    }
    assert_true(end <= gpt->weights + gpt->numbers * sizeof(float));
}

static void tensors_come_in_the_order_of_microgpt(void **state)
{
    const expected list[] = {
        {"wte", 27, 16},           {"wpe", 16, 16},           {"lm_head", 27, 16},
        {"layer0.attn.q", 16, 16}, {"layer0.attn.k", 16, 16}, {"layer0.attn.v", 16, 16},
        {"layer0.attn.o", 16, 16}, {"layer0.mlp.up", 64, 16}, {"layer0.mlp.down", 16, 64}};
    embla_gpt_preset preset;
    (void)state;
    assert_ok(embla_gpt_preset_find("microgpt", &preset));
    embla_gpt *gpt = made(preset.shape);
    check_list(gpt, list, COUNT_OF(list));
    embla_gpt_free(gpt);
}

static void a_model_has_the_tensors_it_asks_for(void **state)
{
    const expected all[] = {
        {"wte", 7, 12},
        {"lm_head", 7, 12},
        {"norm_first.gain", 1, 12},
        {"norm_first.bias", 1, 12},
        {"layer0.norm1.gain", 1, 12},
        {"layer0.norm1.bias", 1, 12},
        {"layer0.attn.q", 12, 12},
        {"layer0.attn.k", 4, 12},
        {"layer0.attn.v", 4, 12},
        {"layer0.attn.q.bias", 1, 12},
        {"layer0.attn.k.bias", 1, 4},
        {"layer0.attn.v.bias", 1, 4},
        {"layer0.attn.o", 12, 12},
        {"layer0.attn.o.bias", 1, 12},
        {"layer0.norm2.gain", 1, 12},
        {"layer0.norm2.bias", 1, 12},
        {"layer0.mlp.up", 10, 12},
        {"layer0.mlp.up.bias", 1, 10},
        {"layer0.mlp.gate", 10, 12},
        {"layer0.mlp.gate.bias", 1, 10},
        {"layer0.mlp.down", 12, 10},
        {"layer0.mlp.down.bias", 1, 12},
        {"norm.gain", 1, 12},
        {"norm.bias", 1, 12},
    };
    const expected few[] = {
        {"wte", 7, 12},
        {"layer0.norm1.gain", 1, 12},
        {"layer0.attn.q", 12, 12},
        {"layer0.attn.k", 12, 12},
        {"layer0.attn.v", 12, 12},
        {"layer0.attn.o", 12, 12},
        {"layer0.norm2.gain", 1, 12},
        {"layer0.mlp.up", 48, 12},
        {"layer0.mlp.down", 12, 48},
    };
    embla_gpt_shape shape = tiny();
    (void)state;
    shape.layers = 1, shape.kv_heads = 2, shape.biases = shape.untied = shape.norm_first = true;
    shape.activation = EMBLA_ACTIVATION_SWIGLU, shape.position_kind = EMBLA_POSITIONS_ROTARY;
    embla_gpt *gpt = made(shape);
    check_list(gpt, all, COUNT_OF(all));
    embla_gpt_free(gpt);
    shape = tiny();
    shape.layers = 1, shape.hidden = 0, shape.no_norm_last = true;
    shape.position_kind = EMBLA_POSITIONS_SINUSOIDAL;
    gpt = made(shape);
    check_list(gpt, few, COUNT_OF(few));
    embla_gpt_free(gpt);
    /* a norm of squares has no bias, though linear layers have */
    shape.norm = EMBLA_NORM_RMS, shape.biases = true;
    gpt = made(shape);
    assert_int_equal(embla_gpt_tensor_count(gpt), COUNT_OF(few) + 6);
    embla_gpt_free(gpt);
}

static void a_tensor_past_the_last_is_refused(void **state)
{
    embla_gpt *gpt = made(tiny());
    embla_gpt_tensor t = {.rows = 77};
    (void)state;
    assert_status(embla_gpt_tensor_at(gpt, embla_gpt_tensor_count(gpt), &t), EMBLA_ERR_RANGE);
    assert_error_has("the model has 19");
    assert_status(embla_gpt_tensor_at(NULL, 0, &t), EMBLA_ERR_ARGUMENT);
    assert_error_has("gpt is NULL");
    assert_int_equal(t.rows, 77);
    assert_status(embla_gpt_tensor_at(gpt, 0, NULL), EMBLA_ERR_ARGUMENT);
    assert_error_has("out is NULL");
    embla_gpt_free(gpt);
    embla_gpt_free(NULL);
    assert_int_equal(embla_gpt_tensor_count(NULL), 0);
    assert_int_equal(embla_gpt_parameters(NULL), 0);
    assert_status(embla_gpt_describe(NULL, &(embla_gpt_shape){0}), EMBLA_ERR_ARGUMENT);
}

/* ---- the first weights ---- */

static double spread_of(const embla_gpt_tensor *t)
{
    double sum = 0;
    size_t count = (size_t)t->rows * t->dim;
    for (size_t i = 0; i < count; i++) {
        double x = (double)((const float *)t->values)[i];
        sum += x * x;
    }
    return sqrt(sum / (double)count);
}

static void first_weights_have_the_spread_that_was_asked_for(void **state)
{
    embla_gpt_shape shape = {.vocab = 200,
                             .dim = 64,
                             .layers = 8,
                             .heads = 2,
                             .positions = 100,
                             .biases = true,
                             .untied = true,
                             .activation = EMBLA_ACTIVATION_SWIGLU};
    (void)state;
    for (int asked = 0; asked < 2; asked++) {
        double spread = asked ? 0.5 : 0, table = asked ? 0.5 : 0.125, linear = asked ? 0.5 : 0.02;
        embla_gpt *gpt = NULL;
        assert_ok(embla_gpt_new(&shape, 4, spread, &gpt));
        for (size_t n = 0; n < embla_gpt_tensor_count(gpt); n++) {
            embla_gpt_tensor t = tensor_at(gpt, n);
            bool ends = strstr(t.name, "attn.o") || strstr(t.name, "mlp.down");
            double wanted = n < 3 ? table : ends ? linear / 4 : linear;
            if (strstr(t.name, "gain")) wanted = 1;
            if (strstr(t.name, "bias")) wanted = 0;
            assert_near(spread_of(&t), wanted, t.decays ? 0.04 * wanted : 0);
        }
        embla_gpt_free(gpt);
    }
}

/* A tensor's numbers depend on the seed and on what it is for, not on the other tensors; no two
 * tensors have the same. */
static void first_weights_depend_on_seed_and_place_alone(void **state)
{
    embla_gpt_shape other = tiny();
    embla_gpt *one = made(tiny()), *more, *seed;
    (void)state;
    other.layers = 3, other.biases = other.untied = other.norm_first = true;
    other.activation = EMBLA_ACTIVATION_SWIGLU;
    more = made(other);
    assert_ok(embla_gpt_new(&other, 10, 0, &seed));
    for (size_t n = 0; n < embla_gpt_tensor_count(one); n++) {
        embla_gpt_tensor t = tensor_at(one, n);
        embla_gpt_tensor m = tensor_of(more, t.name), s = tensor_of(seed, t.name);
        const float *values = t.values, *theirs = m.values;
        bool ends = strstr(t.name, "attn.o") || strstr(t.name, "mlp.down");
        for (size_t i = 0; i < (size_t)t.rows * t.dim; i++)
            assert_near(theirs[i], ends ? values[i] * sqrt(2.0 / 3) : values[i], 1e-7);
        if (t.decays) assert_memory_not_equal(s.values, m.values, 48);
        for (size_t k = 0; t.decays && k < n; k++)
            if (tensor_at(one, k).decays)
                assert_memory_not_equal(tensor_at(one, k).values, t.values, 16);
    }
    embla_gpt_free(seed);
    embla_gpt_free(more);
    embla_gpt_free(one);
}

/* ---- shapes ---- */

static void what_0_stands_for_is_filled_in(void **state)
{
    embla_gpt_shape shape = tiny();
    (void)state;
    shape.hidden = 0;
    embla_gpt *gpt = made(shape);
    const embla_gpt_shape *s = &gpt->shape;
    assert_true(s->kv_heads == 6 && s->hidden == 48 && s->norm_epsilon == 1e-5 &&
                s->rope_theta == 10000);
    embla_gpt_free(gpt);
}

static void sizes_keep_the_ratios_of_the_preset(void **state)
{
    (void)state;
    embla_gpt_preset preset;
    assert_status(embla_gpt_preset_find("llama-mini", &preset), EMBLA_OK);
    /* dim, heads asked; heads, kv_heads, hidden expected of 6, 2 and 512 */
    static const size_t cases[][5] = {
        {0, 0, 6, 2, 512},  {192, 3, 3, 1, 512}, {96, 12, 12, 4, 256},
        {64, 0, 4, 1, 176}, {20, 0, 5, 1, 56},   {4, 0, 2, 1, 16},
        {7, 0, 1, 1, 24},   {192, 5, 5, 1, 512}, {384, 0, 6, 2, 1024}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        embla_gpt_shape s = preset.shape;
        s.position_kind = cases[i][0] == 20 ? EMBLA_POSITIONS_LEARNED : s.position_kind;
        embla_gpt_resize(&s, cases[i][0], cases[i][1]);
        if (cases[i][0] > 0) assert_int_equal(s.dim, cases[i][0]);
        assert_int_equal(s.heads, cases[i][2]);
        assert_int_equal(s.kv_heads, cases[i][3]);
        assert_int_equal(s.hidden, cases[i][4]);
    }
    embla_gpt_shape s = preset.shape;
    embla_gpt_resize(&s, SIZE_MAX, 0); /* refused later, without an overflow here */
    embla_gpt_resize(&s, 0, SIZE_MAX);
    assert_int_equal(s.hidden, 512);
}

#define REFUSED(change, status, text)                                                              \
    do {                                                                                           \
        embla_gpt_shape s = tiny();                                                                \
        embla_gpt_memory plan = {.total = 77};                                                     \
        embla_gpt *gpt = NULL;                                                                     \
        change;                                                                                    \
        assert_status(embla_gpt_new(&s, 1, 0, &gpt), status);                                      \
        assert_error_has(text);                                                                    \
        assert_null(gpt);                                                                          \
        assert_status(embla_gpt_plan_memory(&s, 1, 1, &plan), status);                             \
        assert_int_equal(plan.total, 77);                                                          \
    } while (0)

static void shapes_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    REFUSED(s.dim = 13, EMBLA_ERR_SHAPE,
            "dim is 13, which is not a multiple of the number of heads, 6");
    REFUSED(s.kv_heads = 4, EMBLA_ERR_SHAPE, "heads is 6, which is not a multiple of kv_heads, 4");
    REFUSED((s.heads = 4, s.position_kind = EMBLA_POSITIONS_ROTARY), EMBLA_ERR_SHAPE,
            "but dim 12 divided by the number of heads, 4, is 3");
    REFUSED(s.no_gain = s.biases = true, EMBLA_ERR_SHAPE, "a norm without a gain has no bias");
    REFUSED(s.vocab = 0, EMBLA_ERR_ARGUMENT, "vocab is 0; it must be from 1 to 2147483647");
    REFUSED(s.vocab = INT64_C(1) << 31, EMBLA_ERR_ARGUMENT, "vocab is 2147483648");
    REFUSED(s.vocab = -1, EMBLA_ERR_ARGUMENT, "vocab is -1");
    REFUSED(s.dim = 0, EMBLA_ERR_ARGUMENT, "0 numbers in a row (dim); it must have 1 to 1048576");
    REFUSED((s.dim = SIZE_MAX, s.hidden = 0), EMBLA_ERR_ARGUMENT,
            "numbers in a row (dim); it must have 1 to");
    REFUSED(s.layers = 0, EMBLA_ERR_ARGUMENT, "0 layers; it must have 1 to 4096");
    REFUSED(s.layers = 4097, EMBLA_ERR_ARGUMENT, "4097 layers");
    REFUSED(s.heads = 0, EMBLA_ERR_ARGUMENT, "0 heads; it must have 1 to 12");
    REFUSED(s.heads = 13, EMBLA_ERR_ARGUMENT, "13 heads; it must have 1 to 12");
    REFUSED(s.kv_heads = 7, EMBLA_ERR_ARGUMENT,
            "7 heads of keys and values (kv_heads); it must have 1 to 6");
    REFUSED(s.hidden = SIZE_MAX, EMBLA_ERR_ARGUMENT, "(hidden); it must have 1 to 16777216");
    REFUSED(s.positions = 0, EMBLA_ERR_ARGUMENT, "a model with 0 positions");
    REFUSED(s.positions = SIZE_MAX, EMBLA_ERR_ARGUMENT, "positions; it must have 1 to 16777216");
    REFUSED(s.norm = (embla_norm_kind)2, EMBLA_ERR_ARGUMENT, "norm is 2; it must be from 0 to 1");
    REFUSED(s.activation = (embla_activation)4, EMBLA_ERR_ARGUMENT, "activation is 4");
    REFUSED(s.position_kind = (embla_positions_kind)4, EMBLA_ERR_ARGUMENT, "position_kind is 4");
    REFUSED(s.rope_order = (embla_rope_order)2, EMBLA_ERR_ARGUMENT, "rope_order is 2");
    REFUSED(s.norm_epsilon = -1, EMBLA_ERR_ARGUMENT, "norm_epsilon is -1");
    REFUSED(s.norm_epsilon = NAN, EMBLA_ERR_ARGUMENT, "norm_epsilon is nan");
    REFUSED(s.rope_theta = INFINITY, EMBLA_ERR_ARGUMENT, "rope_theta is inf");
    REFUSED(s.rope_theta = -2, EMBLA_ERR_ARGUMENT, "rope_theta is -2");
    REFUSED(s.dropout = 1, EMBLA_ERR_ARGUMENT, "dropout is 1");
    REFUSED(s.dropout = -0.5, EMBLA_ERR_ARGUMENT, "dropout is -0.5");
    REFUSED(s.dropout = NAN, EMBLA_ERR_ARGUMENT, "dropout is nan");
}

static void other_arguments_are_refused(void **state)
{
    embla_gpt_shape s = tiny();
    embla_gpt *gpt = NULL;
    embla_gpt_memory plan = {.total = 77};
    (void)state;
    assert_status(embla_gpt_new(NULL, 1, 0, &gpt), EMBLA_ERR_ARGUMENT);
    assert_error_has("the shape is NULL");
    assert_status(embla_gpt_new(&s, 1, 0, NULL), EMBLA_ERR_ARGUMENT);
    assert_error_has("out is NULL");
    assert_status(embla_gpt_blank(&s, NULL), EMBLA_ERR_ARGUMENT);
    assert_error_has("out is NULL");
    assert_status(embla_gpt_new(&s, 1, NAN, &gpt), EMBLA_ERR_ARGUMENT);
    assert_error_has("spread is nan; it must be from 0 to 1e+06");
    assert_status(embla_gpt_new(&s, 1, -1, &gpt), EMBLA_ERR_ARGUMENT);
    assert_status(embla_gpt_new(&s, 1, 2e6, &gpt), EMBLA_ERR_ARGUMENT);
    assert_null(gpt);
    assert_status(embla_gpt_plan_memory(&s, 1, 1, NULL), EMBLA_ERR_ARGUMENT);
    assert_error_has("out is NULL");
    assert_status(embla_gpt_plan_memory(&s, 0, 1, &plan), EMBLA_ERR_ARGUMENT);
    assert_error_has("batch is 0 and length is 1; both must be at least 1");
    assert_status(embla_gpt_plan_memory(&s, 1, 0, &plan), EMBLA_ERR_ARGUMENT);
    assert_status(embla_gpt_plan_memory(&s, 1, 6, &plan), EMBLA_ERR_RANGE);
    assert_error_has("length is 6, but the model has 5 positions");
    assert_status(embla_gpt_plan_memory(&s, SIZE_MAX, 2, &plan), EMBLA_ERR_ARGUMENT);
    assert_error_has("do not fit in memory");
    assert_status(embla_gpt_plan_memory(&s, SIZE_MAX / 8, 2, &plan), EMBLA_ERR_ARGUMENT);
    assert_error_has("activations of");
    s.layers = 4096, s.dim = 1 << 20, s.heads = 1, s.hidden = 1 << 24;
    s.activation = EMBLA_ACTIVATION_SWIGLU;
    assert_status(embla_gpt_plan_memory(&s, 6 << 20, 1, &plan), EMBLA_ERR_ARGUMENT);
    assert_error_has("parameters and");
    assert_int_equal(plan.total, 77);
    assert_status(embla_gpt_reserve(NULL, 1, 1), EMBLA_ERR_ARGUMENT);
    assert_error_has("gpt is NULL");
}

/* ---- room ---- */

static void room_is_what_the_plan_said(void **state)
{
    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        embla_gpt_shape s = tiny();
        embla_gpt_memory plan;
        if (kind & 1) s.activation = EMBLA_ACTIVATION_SWIGLU, s.norm_first = true;
        if (kind & 2) s.no_norm_last = true, s.position_kind = EMBLA_POSITIONS_SINUSOIDAL;
        embla_gpt *gpt = made(s);
        assert_ok(embla_gpt_reserve(gpt, 3, 5));
        assert_ok(embla_gpt_plan_memory(&s, 3, 5, &plan));
        size_t sines = kind & 2 ? 5 * 12 * sizeof(float) : 0;
        assert_int_equal(plan.activations, gpt->at.bytes);
        assert_int_equal(plan.gradients, gpt->numbers * sizeof(float));
        assert_int_equal(plan.weights, gpt->numbers * sizeof(float) + sines);
        assert_int_equal(plan.optimizer, 2 * plan.gradients);
        assert_int_equal(plan.total,
                         plan.weights + plan.gradients + plan.optimizer + plan.activations);
        assert_int_equal(gpt->at.tokens, 15);
        /* the last array of the last layer ends inside */
        assert_true(gpt->at.layers + s.layers * gpt->at.layer_bytes <= gpt->at.bytes);
        assert_true(gpt->at.out + 15 * 12 * sizeof(float) <= gpt->at.layer_bytes);
        embla_gpt_free(gpt);
    }
}

static void room_is_made_once_and_grows(void **state)
{
    embla_gpt *gpt = made(tiny());
    (void)state;
    assert_null(tensor_at(gpt, 0).gradient);
    assert_ok(embla_gpt_reserve(gpt, 2, 5));
    char *activations = gpt->activations;
    float *gradient = tensor_at(gpt, 1).gradient;
    assert_true(gradient == (float *)(void *)gpt->gradients + gpt->parts[1].at);
    gradient[0] = 5;
    assert_ok(embla_gpt_reserve(gpt, 5, 2));
    assert_ptr_equal(gpt->activations, activations);
    assert_ok(embla_gpt_reserve(gpt, 1, 1));
    assert_ptr_equal(gpt->activations, activations);
    assert_int_equal(gpt->at.tokens, 10);
    assert_status(embla_gpt_reserve(gpt, 1, 6), EMBLA_ERR_RANGE);
    assert_status(embla_gpt_reserve(gpt, 0, 1), EMBLA_ERR_ARGUMENT);
    assert_ok(embla_gpt_reserve(gpt, 3, 5));
    assert_int_equal(gpt->at.tokens, 15);
    assert_ptr_equal(tensor_at(gpt, 1).gradient, gradient);
    assert_true(gradient[0] == 5);
    embla_gpt_zero_gradients(gpt);
    assert_true(gradient[0] == 0);
    embla_gpt_free(gpt);
}

static void every_allocation_may_fail(void **state)
{
    size_t live = embla_mem_live();
    embla_gpt_shape s = tiny();
    (void)state;
    s.untied = true;
    for (int kind = 0; kind < 2; kind++) {
        embla_gpt *gpt = NULL;
        s.position_kind = kind ? EMBLA_POSITIONS_SINUSOIDAL : EMBLA_POSITIONS_LEARNED;
        for (size_t at = 1; !gpt; at++) {
            embla_mem_fail(at, false);
            embla_status status = embla_gpt_new(&s, 1, 0, &gpt);
            embla_mem_fail(0, false);
            if (status == EMBLA_OK) break;
            assert_status(status, EMBLA_ERR_MEMORY);
            assert_null(gpt);
            assert_int_equal(embla_mem_live(), live);
        }
        for (size_t tokens = 2; tokens < 5; tokens += 2) { /* the first room, and a larger one */
            size_t before = embla_mem_live(), had = gpt->at.tokens;
            for (size_t at = 1;; at++) {
                embla_mem_fail(at, false);
                embla_status status = embla_gpt_reserve(gpt, 1, tokens);
                embla_mem_fail(0, false);
                if (status == EMBLA_OK) break;
                assert_status(status, EMBLA_ERR_MEMORY);
                assert_int_equal(embla_mem_live(), before);
                assert_int_equal(gpt->at.tokens, had);
            }
            assert_int_equal(gpt->at.tokens, tokens);
        }
        embla_gpt_free(gpt);
        assert_int_equal(embla_mem_live(), live);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_preset_has_options_for_any_steps_rate_and_kind),
        cmocka_unit_test(parameters_are_as_many_as_published),
        cmocka_unit_test(presets_are_found_by_name),
        cmocka_unit_test(microgpt_is_trained_as_its_program_does),
        cmocka_unit_test(gpt2_fits_in_a_small_machine),
        cmocka_unit_test(tensors_come_in_the_order_of_microgpt),
        cmocka_unit_test(a_model_has_the_tensors_it_asks_for),
        cmocka_unit_test(a_tensor_past_the_last_is_refused),
        cmocka_unit_test(first_weights_have_the_spread_that_was_asked_for),
        cmocka_unit_test(first_weights_depend_on_seed_and_place_alone),
        cmocka_unit_test(what_0_stands_for_is_filled_in),
        cmocka_unit_test(shapes_that_do_not_fit_are_refused),
        cmocka_unit_test(other_arguments_are_refused),
        cmocka_unit_test(room_is_what_the_plan_said),
        cmocka_unit_test(sizes_keep_the_ratios_of_the_preset),
        cmocka_unit_test(room_is_made_once_and_grows),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
