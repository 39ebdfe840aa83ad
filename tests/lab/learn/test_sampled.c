/* SPDX-License-Identifier: Apache-2.0 */
/* Sampled softmax against its definition in double for the very tokens that were drawn, its
 * gradients against central differences of that definition, how it comes near the full softmax,
 * the drawing, the same bits for any number of threads, and what is refused.
 */
#include <math.h>

#include "base/half.h"
#include "base/mem.h"
#include "check.h"
#include "embla_learn.h"
#include "engine.h"
#include "learn/sampled.h"

/* ---- the definition, in double ---- */

typedef struct {
    embla_head head;
    double *rows; /* of the table, as they are decoded */
    size_t dim, tokens;
    embla_negatives negatives;
    int64_t *drawn; /* each once */
    size_t distinct;
} truth;

static double probability(const truth *t, int64_t token)
{
    double rows = (double)t->tokens;
    if (t->negatives.proposal == EMBLA_PROPOSAL_UNIFORM) return 1 / rows;
    return log(((double)token + 2) / ((double)token + 1)) / log(rows + 1);
}

static double plain_logit(const truth *t, const double *x, int64_t token)
{
    double sum = 0, cap = (double)t->head.soft_cap;
    for (size_t j = 0; j < t->dim; j++) sum += x[j] * t->rows[(size_t)token * t->dim + j];
    if (t->head.scale != 0) sum *= (double)t->head.scale;
    if (t->head.bias) sum += (double)t->head.bias[token];
    return cap > 0 && isfinite(sum) ? cap * tanh(sum / cap) : sum;
}

static double corrected(const truth *t, const double *x, int64_t token)
{
    double never = pow(1 - probability(t, token), (double)t->negatives.negatives);
    return plain_logit(t, x, token) - log(1 - never);
}

static void draw(truth *t)
{
    size_t distinct = 0;
    embla_sampled_draw(&t->negatives, (int64_t)t->tokens, t->drawn);
    for (size_t i = 0; i < t->negatives.negatives; i++) {
        bool again = false;
        for (size_t k = 0; k < distinct; k++) again = again || t->drawn[k] == t->drawn[i];
        if (!again) t->drawn[distinct++] = t->drawn[i];
    }
    t->distinct = distinct;
}

/* all: against every token instead of the drawn ones */
static double loss_at(const truth *t, const double *x, int64_t target, bool all)
{
    double own = all ? plain_logit(t, x, target) : corrected(t, x, target), most = own, sum = 1;
    size_t n = all ? t->tokens : t->distinct;
    for (int pass = 0; pass < 2; pass++) {
        sum = exp(own - most);
        for (size_t i = 0; i < n; i++) {
            int64_t token = all ? (int64_t)i : t->drawn[i];
            if (token == target) continue;
            double other = all ? plain_logit(t, x, token) : corrected(t, x, token);
            most = pass == 0 ? fmax(most, other) : most;
            sum += exp(other - most);
        }
    }
    return most + log(sum) - own;
}

static double loss_of(const truth *t, const double *x, const int32_t *targets, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        if (targets[i] >= 0) sum += loss_at(t, x + i * t->dim, targets[i], false);
    return sum;
}

/* ---- what the tests have in common ---- */

typedef struct {
    truth truth;
    embla_table *table;
    size_t count, dim;
    float *hidden, *bias, *each;
    double *x;
    int32_t *targets;
    embla_sampled_gradients gradients;
} setup;

static void *taken(size_t bytes)
{
    void *memory = calloc(bytes + 1, 1);
    assert_non_null(memory);
    return memory;
}

typedef struct {
    embla_dtype dtype;
    int64_t rows, tokens; /* of the table; of the head, 0: all */
    size_t dim, count, negatives;
    embla_proposal proposal;
    float scale, soft_cap;
    bool bias;
} shape;

static setup set_up(const shape *is)
{
    SKIP_WITHOUT_ENGINE();
    setup s = {.count = is->count, .dim = is->dim};
    size_t rows = (size_t)is->rows, room = is->count + is->negatives;
    uint64_t seed = 17;
    s.table = check_table(is->dtype, is->rows, is->dim, 4);
    s.bias = taken(rows * sizeof(float));
    s.hidden = taken(is->count * is->dim * sizeof(float));
    s.x = taken(is->count * is->dim * sizeof(double));
    s.each = taken(is->count * sizeof(float));
    s.targets = taken(is->count * sizeof(int32_t));
    s.gradients = (embla_sampled_gradients){.hidden = taken(is->count * is->dim * sizeof(float)),
                                            .rows = taken(room * sizeof(int64_t)),
                                            .table = taken(room * is->dim * sizeof(float))};
    truth *t = &s.truth;
    *t = (truth){.dim = is->dim, .tokens = (size_t)(is->tokens ? is->tokens : is->rows)};
    t->rows = taken(rows * is->dim * sizeof(double));
    t->head = (embla_head){.table = s.table,
                           .rows = is->tokens,
                           .bias = is->bias ? s.bias : NULL,
                           .scale = is->scale,
                           .soft_cap = is->soft_cap};
    t->negatives = (embla_negatives){
        .negatives = is->negatives, .seed = 9, .step = 3, .proposal = is->proposal};
    t->drawn = taken(is->negatives * sizeof(int64_t));
    draw(t);
    float *row = taken(is->dim * sizeof(float));
    for (size_t r = 0; r < rows; r++) {
        check_row(s.table, (int64_t)r, row);
        for (size_t j = 0; j < is->dim; j++) t->rows[r * is->dim + j] = (double)row[j];
        s.bias[r] = check_unit(&seed);
    }
    free(row);
    for (size_t i = 0; i < is->count * is->dim; i++) {
        s.hidden[i] = 2.0f * check_unit(&seed);
        s.x[i] = (double)s.hidden[i];
    }
    for (size_t i = 0; i < is->count; i++) {
        s.targets[i] = (int32_t)check_below(&seed, t->tokens);
        if (i % 3 == 0) s.targets[i] = (int32_t)t->drawn[i % t->distinct]; /* hits */
        if (i % 7 == 5) s.targets[i] = EMBLA_TARGET_IGNORE;
    }
    return s;
}

static void tear_down(setup *s)
{
    embla_table_free(s->table);
    free(s->bias);
    free(s->hidden);
    free(s->x);
    free(s->each);
    free(s->targets);
    free(s->gradients.hidden);
    free(s->gradients.rows);
    free(s->gradients.table);
    free(s->truth.rows);
    free(s->truth.drawn);
}

static embla_status run(setup *s, const embla_loss_options *options, embla_loss_report *report)
{
    return embla_sampled_loss(
        &s->truth.head,
        &(embla_loss_batch){
            .hidden = s->hidden, .targets = s->targets, .count = s->count, .each = s->each},
        &s->truth.negatives, options, &s->gradients, report);
}

static size_t counted_of(const setup *s)
{
    size_t counted = 0;
    for (size_t i = 0; i < s->count; i++) counted += s->targets[i] >= 0;
    return counted;
}

static const shape shapes[] = {
    {EMBLA_F32, 1, 0, 1, 3, 2, EMBLA_PROPOSAL_LOG_UNIFORM, 0, 0, false},
    {EMBLA_F32, 2, 0, 1, 4, 1, EMBLA_PROPOSAL_UNIFORM, 0, 0, true},
    {EMBLA_F32, 50, 0, 3, 12, 20, EMBLA_PROPOSAL_LOG_UNIFORM, 0, 0, false},
    {EMBLA_F32, 50, 41, 17, 12, 60, EMBLA_PROPOSAL_UNIFORM, 0, 0, false},
    {EMBLA_F32, 90, 0, 33, 20, 40, EMBLA_PROPOSAL_LOG_UNIFORM, 0.5f, 2, true},
    {EMBLA_F32, 3000, 0, 16, 20, 600, EMBLA_PROPOSAL_UNIFORM, 3, 30, false}, /* several lanes */
    {EMBLA_BF16, 200, 0, 33, 20, 40, EMBLA_PROPOSAL_LOG_UNIFORM, 0, 0, true},
    {EMBLA_Q8_0, 200, 190, 64, 20, 40, EMBLA_PROPOSAL_UNIFORM, 2, 0, true},
};

/* ---- drawing ---- */

static void drawn_tokens_are_a_function_of_seed_step_and_index(void **state)
{
    enum { N = 200 };
    int64_t some[N], again[N];
    (void)state;
    for (int p = 0; p < 2; p++) {
        embla_negatives one = {.negatives = N, .seed = 1, .step = 2, .proposal = (embla_proposal)p};
        embla_negatives other = one;
        embla_sampled_draw(&one, 1000, some);
        other.negatives = 77; /* fewer are the first of them */
        embla_sampled_draw(&other, 1000, again);
        assert_memory_equal(some, again, 77 * sizeof *some);
        other = one;
        other.step = 3;
        embla_sampled_draw(&other, 1000, again);
        assert_true(memcmp(some, again, sizeof some) != 0);
        other = one;
        other.seed = (uint64_t)1 << 40 | 1;
        embla_sampled_draw(&other, 1000, again);
        assert_true(memcmp(some, again, sizeof some) != 0);
        other = one;
        other.step = 2 + ((int64_t)1 << 32);
        embla_sampled_draw(&other, 1000, again);
        assert_true(memcmp(some, again, sizeof some) != 0);
        static const int64_t rows[] = {1, 2, 3, 50257, (int64_t)1 << 40};
        for (size_t i = 0; i < COUNT_OF(rows); i++) {
            int64_t most = 0;
            one.step = -5; /* any number */
            embla_sampled_draw(&one, rows[i], some);
            for (size_t k = 0; k < N; k++) {
                assert_true(some[k] >= 0 && some[k] < rows[i]);
                most = some[k] > most ? some[k] : most;
            }
            assert_true(most >= rows[i] / 2 - (rows[i] < 3)); /* the end is reached */
        }
    }
}

static void tokens_are_drawn_as_often_as_expected(void **state)
{
    enum { N = 200000, ROWS = 30 };
    int64_t *drawn = taken(N * sizeof *drawn);
    (void)state;
    for (int p = 0; p < 2; p++) {
        embla_negatives one = {.negatives = N, .seed = 7, .proposal = (embla_proposal)p};
        truth t = {.tokens = ROWS, .negatives = one};
        double counts[ROWS] = {0}, chi = 0, sum = 0;
        embla_sampled_draw(&one, ROWS, drawn);
        for (size_t i = 0; i < N; i++) counts[drawn[i]]++;
        for (int64_t v = 0; v < ROWS; v++) {
            double expected = N * probability(&t, v);
            one.negatives = 50;
            double chance = 1 - pow(1 - probability(&t, v), 50);
            assert_near(embla_sampled_log_chance(&one, ROWS, v), log(chance), 1e-12);
            one.negatives = N;
            chi += (counts[v] - expected) * (counts[v] - expected) / expected;
            sum += expected;
        }
        assert_near(sum, N, 1e-6);
        assert_true(chi < 58.3); /* 29 degrees of freedom: one in a thousand is above */
    }
    free(drawn);
}

/* ---- forward ---- */

static void the_loss_is_that_of_the_definition(void **state)
{
    (void)state;
    for (size_t at = 0; at < COUNT_OF(shapes); at++) {
        setup s = set_up(&shapes[at]);
        embla_loss_report mean, sum;
        embla_loss_options summed = {.sum = true};
        double wanted = loss_of(&s.truth, s.x, s.targets, s.count);
        size_t counted = counted_of(&s);
        int64_t right = 0;
        assert_ok(run(&s, &summed, &sum));
        assert_ok(run(&s, NULL, &mean));
        assert_int_equal(mean.counted, counted);
        assert_int_equal(mean.ignored, s.count - counted);
        assert_near(sum.loss, wanted, 1e-5 * fmax(1, wanted));
        assert_near(mean.loss, wanted / (double)counted, 1e-5 * fmax(1, wanted));
        for (size_t i = 0; i < s.count; i++) {
            if (s.targets[i] < 0) {
                assert_true(s.each[i] == 0);
                continue;
            }
            const double *x = s.x + i * s.dim;
            double one = loss_at(&s.truth, x, s.targets[i], false);
            double own = plain_logit(&s.truth, x, s.targets[i]), most = -INFINITY;
            assert_near(s.each[i], one, 1e-5 * fmax(1, one));
            for (size_t k = 0; k < s.truth.distinct; k++)
                if (s.truth.drawn[k] != s.targets[i])
                    most = fmax(most, plain_logit(&s.truth, x, s.truth.drawn[k]));
            right += own > most;
        }
        assert_int_equal(mean.correct, right);
        tear_down(&s);
    }
}

/* ---- backward ---- */

static double slope(const setup *s, double *number)
{
    double step = 1e-5, was = *number, above, below;
    *number = was + step;
    above = loss_of(&s->truth, s->x, s->targets, s->count);
    *number = was - step;
    below = loss_of(&s->truth, s->x, s->targets, s->count);
    *number = was;
    return (above - below) / (2 * step);
}

/* rows are the targets and the drawn, ascending, each once */
static void check_rows(const setup *s)
{
    size_t touched = 0;
    for (int64_t r = 0; r < (int64_t)s->truth.tokens; r++) {
        bool is = false;
        for (size_t i = 0; i < s->count; i++) is = is || s->targets[i] == r;
        for (size_t i = 0; i < s->truth.distinct; i++) is = is || s->truth.drawn[i] == r;
        if (!is) continue;
        assert_true(touched < s->gradients.touched);
        assert_int_equal(s->gradients.rows[touched++], r);
    }
    assert_int_equal(s->gradients.touched, touched);
}

static void gradients_are_the_slopes_of_the_definition(void **state)
{
    (void)state;
    for (size_t at = 0; at < COUNT_OF(shapes); at++) {
        setup s = set_up(&shapes[at]);
        embla_loss_options options = {.weight = 3, .sum = at % 2 == 0};
        double factor = at % 2 == 0 ? 3 : 3 / (double)counted_of(&s);
        uint64_t seed = 3;
        assert_ok(run(&s, &options, NULL));
        check_rows(&s);
        for (size_t tried = 0; tried < 60; tried++) {
            size_t i = check_below(&seed, s.gradients.touched * s.dim);
            size_t row = (size_t)s.gradients.rows[i / s.dim];
            double wanted = factor * slope(&s, &s.truth.rows[row * s.dim + i % s.dim]);
            assert_near(s.gradients.table[i], wanted, 2e-5 * fmax(1, fabs(wanted)));
        }
        for (size_t tried = 0; tried < 40; tried++) {
            size_t i = check_below(&seed, s.count * s.dim);
            double wanted = factor * slope(&s, &s.x[i]);
            assert_near(s.gradients.hidden[i], wanted, 2e-5 * fmax(1, fabs(wanted)));
        }
        for (size_t i = 0; i < s.count * s.dim; i++)
            if (s.targets[i / s.dim] < 0) assert_true(s.gradients.hidden[i] == 0);
        tear_down(&s);
    }
}

/* The same numbers whether the others are wanted or not. */
static void each_gradient_can_be_had_alone(void **state)
{
    setup s = set_up(&shapes[4]), t = set_up(&shapes[4]);
    embla_sampled_gradients hidden = t.gradients, table = t.gradients;
    const embla_head *head = &s.truth.head;
    const embla_negatives *negatives = &s.truth.negatives;
    (void)state;
    hidden.rows = NULL, hidden.table = NULL, hidden.touched = 9;
    table.hidden = NULL;
    assert_ok(run(&s, NULL, NULL));
    assert_ok(embla_sampled_loss(
        head, &(embla_loss_batch){.hidden = s.hidden, .targets = s.targets, .count = s.count},
        negatives, NULL, &hidden, NULL));
    assert_int_equal(hidden.touched, 0);
    assert_ok(embla_sampled_loss(
        head, &(embla_loss_batch){.hidden = s.hidden, .targets = s.targets, .count = s.count},
        negatives, NULL, &table, NULL));
    assert_int_equal(table.touched, s.gradients.touched);
    assert_memory_equal(hidden.hidden, s.gradients.hidden, s.count * s.dim * sizeof(float));
    assert_memory_equal(table.table, s.gradients.table, table.touched * s.dim * sizeof(float));
    assert_ok(embla_sampled_loss(
        head, &(embla_loss_batch){.hidden = s.hidden, .targets = s.targets, .count = s.count},
        negatives, NULL, NULL, NULL));
    tear_down(&s);
    tear_down(&t);
}

/* Products of factors that were rounded to bf16: the definition for rounded numbers. */
static void bf16_rounds_the_factors(void **state)
{
    setup s = set_up(&shapes[4]);
    embla_loss_options options = {.compute = EMBLA_BF16, .sum = true};
    embla_loss_report report;
    uint64_t seed = 3;
    (void)state;
    for (size_t i = 0; i < s.count * s.dim; i++)
        s.x[i] = (double)embla_f32_from_bf16(embla_bf16_from_f32(s.hidden[i]));
    for (size_t i = 0; i < 90 * s.dim; i++)
        s.truth.rows[i] = (double)embla_f32_from_bf16(embla_bf16_from_f32((float)s.truth.rows[i]));
    assert_ok(run(&s, &options, &report));
    double wanted = loss_of(&s.truth, s.x, s.targets, s.count), exact = 0;
    assert_near(report.loss, wanted, 1e-5 * wanted);
    for (size_t tried = 0; tried < 40; tried++) {
        size_t i = check_below(&seed, s.count * s.dim);
        double one = slope(&s, &s.x[i]);
        assert_near(s.gradients.hidden[i], one, 1e-2);
        exact += fabs((double)s.gradients.hidden[i] - one);
    }
    assert_true(exact > 1e-5); /* the gradients of logits were rounded, too: */
    tear_down(&s);
    shape one = {EMBLA_F32, 50, 0, 1, 1, 20, EMBLA_PROPOSAL_LOG_UNIFORM, 0, 0, true};
    s = set_up(&one);
    s.hidden[0] = 1; /* a row's gradient is its logit's */
    assert_ok(run(&s, &options, NULL));
    assert_true(s.gradients.touched > 5);
    for (size_t i = 0; i < s.gradients.touched; i++) {
        float gradient = s.gradients.table[i];
        assert_true(gradient != 0 &&
                    gradient == embla_f32_from_bf16(embla_bf16_from_f32(gradient)));
    }
    tear_down(&s);
}

/* Of the same logit the lower token is the higher. */
static void equal_logits_are_right_for_the_lowest(void **state)
{
    shape is = {EMBLA_F32, 40, 0, 1, 2, 30, EMBLA_PROPOSAL_UNIFORM, 0, 0, false};
    setup s = set_up(&is);
    embla_loss_report report;
    (void)state;
    memset(s.hidden, 0, 2 * sizeof(float));
    s.targets[0] = 0, s.targets[1] = EMBLA_TARGET_IGNORE;
    assert_ok(run(&s, NULL, &report));
    assert_int_equal(report.correct, 1);
    s.targets[0] = 39;
    assert_ok(run(&s, NULL, &report));
    assert_int_equal(report.correct, 0);
    tear_down(&s);
}

/* ---- how near it comes to the full softmax ---- */

/* Where all have the same chance and all came, it is the full softmax. */
static void one_of_each_is_the_full_loss(void **state)
{
    shape is = {EMBLA_F32, 3, 0, 5, 6, 3, EMBLA_PROPOSAL_UNIFORM, 0, 0, true};
    setup s = set_up(&is);
    size_t found = 0;
    (void)state;
    for (s.truth.negatives.step = 0; s.truth.negatives.step < 60; s.truth.negatives.step++) {
        embla_loss_report report;
        double wanted = 0;
        draw(&s.truth);
        if (s.truth.distinct < 3) continue;
        found++;
        for (size_t i = 0; i < s.count; i++)
            if (s.targets[i] >= 0) wanted += loss_at(&s.truth, s.x + i * s.dim, s.targets[i], true);
        assert_ok(run(&s, NULL, &report));
        assert_near(report.loss, wanted / (double)counted_of(&s), 1e-6);
    }
    assert_true(found > 5);
    tear_down(&s);
}

/* The mean over draws of the gradient of hidden, less that of the full loss: its length. */
static double bias_of(size_t negatives, embla_proposal proposal)
{
    enum { DRAWS = 400, DIM = 6 };
    shape is = {EMBLA_F32, 60, 0, DIM, 1, 1, proposal, 4, 0, false};
    setup s = set_up(&is);
    double mean[DIM] = {0}, length = 0;
    s.targets[0] = 7;
    s.truth.negatives.negatives = negatives;
    s.gradients.rows = realloc(s.gradients.rows, (negatives + 1) * sizeof(int64_t));
    s.gradients.table = realloc(s.gradients.table, (negatives + 1) * DIM * sizeof(float));
    for (int64_t draw = 0; draw < DRAWS; draw++) {
        s.truth.negatives.step = draw;
        assert_ok(run(&s, NULL, NULL));
        for (size_t j = 0; j < DIM; j++) mean[j] += (double)s.gradients.hidden[j] / DRAWS;
    }
    for (size_t j = 0; j < DIM; j++) {
        double step = 1e-5, was = s.x[j], above, below;
        s.x[j] = was + step;
        above = loss_at(&s.truth, s.x, 7, true);
        s.x[j] = was - step;
        below = loss_at(&s.truth, s.x, 7, true);
        s.x[j] = was;
        double gap = mean[j] - (above - below) / (2 * step);
        length += gap * gap;
    }
    tear_down(&s);
    return sqrt(length);
}

static void more_negatives_come_nearer_to_the_full_gradient(void **state)
{
    (void)state;
    for (int p = 0; p < 2; p++) {
        double few = bias_of(2, (embla_proposal)p), some = bias_of(40, (embla_proposal)p);
        double many = bias_of(2000, (embla_proposal)p);
        assert_true(some < few * 0.7);
        assert_true(many < some / 10);
        assert_true(many < 0.004);
    }
}

/* ---- threads ---- */

static void threads_and_kernel_sets_change_no_bit(void **state)
{
    shape is = {EMBLA_BF16, 4000, 0, 48, 900, 3000, EMBLA_PROPOSAL_LOG_UNIFORM, 1.5f, 20, true};
    static const int teams[] = {1, 2, 3, 4, 8};
    setup s = set_up(&is);
    embla_loss_report report, other;
    embla_loss_options options = {.threads = 1};
    size_t hidden_bytes = 900 * 48 * sizeof(float);
    (void)state;
    assert_ok(run(&s, &options, &report));
    size_t table_bytes = s.gradients.touched * 48 * sizeof(float);
    float *hidden = taken(hidden_bytes), *table = taken(table_bytes), *each = taken(900 * 4);
    memcpy(hidden, s.gradients.hidden, hidden_bytes);
    memcpy(table, s.gradients.table, table_bytes);
    memcpy(each, s.each, 900 * sizeof(float));
    for (size_t at = 1; at < COUNT_OF(teams) + CHECK_SETS; at++) {
        const char *set = at < COUNT_OF(teams) ? NULL : check_sets[at - COUNT_OF(teams)];
        if (set && !embla_kernels_find(set)) continue;
        embla_kernels_use(set ? embla_kernels_find(set) : NULL);
        options.threads = set ? 2 : teams[at];
        memset(s.gradients.hidden, CHECK_MARK, hidden_bytes);
        memset(s.gradients.table, CHECK_MARK, table_bytes);
        assert_ok(run(&s, &options, &other));
        embla_kernels_use(NULL);
        assert_memory_equal(&report.loss, &other.loss, sizeof report.loss);
        assert_int_equal(report.correct, other.correct);
        assert_memory_equal(hidden, s.gradients.hidden, hidden_bytes);
        assert_memory_equal(table, s.gradients.table, table_bytes);
        assert_memory_equal(each, s.each, 900 * sizeof(float));
    }
    free(hidden);
    free(table);
    free(each);
    tear_down(&s);
}

/* ---- the edges ---- */

static void nothing_to_count_touches_nothing(void **state)
{
    setup s = set_up(&shapes[2]);
    embla_loss_report report = {.loss = 4};
    embla_loss_options padding = {.ignore = 6, .has_ignore = true};
    (void)state;
    s.gradients.touched = 5;
    assert_ok(embla_sampled_loss(&s.truth.head, &(embla_loss_batch){0}, &s.truth.negatives, NULL,
                                 &s.gradients, &report));
    assert_true(report.loss == 0 && report.counted == 0 && s.gradients.touched == 0);
    for (size_t i = 0; i < s.count; i++) s.targets[i] = i % 2 ? 6 : EMBLA_TARGET_IGNORE;
    for (size_t i = 0; i < s.count * s.dim; i++) s.gradients.hidden[i] = 1;
    s.gradients.touched = 5;
    assert_ok(run(&s, &padding, &report));
    assert_true(report.loss == 0 && report.ignored == (int64_t)s.count && s.gradients.touched == 0);
    for (size_t i = 0; i < s.count * s.dim; i++) assert_true(s.gradients.hidden[i] == 0);
    tear_down(&s);
}

/* A token that is barred by its bias: as a negative it is nothing, as a target infinite. */
static void minus_infinity_bars_a_token(void **state)
{
    shape is = {EMBLA_F32, 4, 0, 3, 3, 64, EMBLA_PROPOSAL_UNIFORM, 0, 0, true};
    setup s = set_up(&is);
    embla_loss_report report;
    (void)state;
    s.bias[1] = -INFINITY;
    for (int cap = 0; cap < 2; cap++) {
        s.truth.head.soft_cap = cap ? 5.0f : 0.0f;
        for (size_t i = 0; i < 3; i++) s.targets[i] = i == 2 ? 1 : 0;
        assert_ok(run(&s, NULL, &report));
        assert_true(isinf(s.each[2]) && s.each[2] > 0 && isinf(report.loss));
        s.targets[2] = 3;
        assert_ok(run(&s, NULL, &report));
        for (size_t i = 0; i < 3; i++)
            assert_near(s.each[i], loss_at(&s.truth, s.x + 3 * i, s.targets[i], false), 1e-5);
        assert_int_equal(s.gradients.touched, 4);
        for (size_t j = 0; j < 3; j++) assert_true(s.gradients.table[3 + j] == 0);
    }
    tear_down(&s);
}

static void a_nan_stays_with_its_token(void **state)
{
    setup s = set_up(&shapes[2]);
    embla_loss_report report;
    (void)state;
    s.targets[1] = 2;
    s.hidden[s.dim] = NAN;
    assert_ok(run(&s, NULL, &report));
    assert_true(isnan(report.loss));
    for (size_t i = 0; i < s.count; i++) {
        assert_int_equal(isnan(s.each[i]), i == 1);
        for (size_t j = 0; j < s.dim; j++)
            assert_int_equal(isnan(s.gradients.hidden[i * s.dim + j]), i == 1);
    }
    s.hidden[s.dim] = 3e38f; /* huge, and the product may be infinite: no crash, no untruth */
    ((float *)embla_table_data(s.table))[2 * s.dim] = 1e10f;
    assert_ok(run(&s, NULL, &report));
    assert_true(isnan(s.each[1]) || isinf(s.each[1]) || s.each[1] >= 0);
    s.hidden[s.dim] = 1e30f;
    ((float *)embla_table_data(s.table))[2 * s.dim] = 1.0f;
    assert_ok(run(&s, NULL, &report));
    assert_true(s.each[1] >= 0 && s.each[1] < 1e38f);
    for (size_t i = 0; i < s.count; i++) s.targets[i] = i == 1 ? 2 : EMBLA_TARGET_IGNORE;
    assert_ok(run(&s, NULL, &report));
    assert_int_equal(report.correct, 1);
    size_t other = s.truth.drawn[0] == 2 ? 1 : 0; /* the highest, but for a NaN */
    ((float *)embla_table_data(s.table))[(size_t)s.truth.drawn[other] * s.dim] = NAN;
    assert_ok(run(&s, NULL, &report));
    assert_true(isnan(report.loss) && report.correct == 0);
    tear_down(&s);
}

static void bad_arguments_are_refused_and_nothing_is_written(void **state)
{
    setup s = set_up(&shapes[2]);
    size_t room = s.count + shapes[2].negatives;
    check_guarded hidden = check_guard(s.count * s.dim * 4, 0), rows = check_guard(room * 8, 0);
    check_guarded table = check_guard(room * s.dim * 4, 0), each = check_guard(s.count * 4, 0);
    embla_sampled_gradients out = {.hidden = (float *)(void *)hidden.bytes,
                                   .rows = (int64_t *)(void *)rows.bytes,
                                   .table = (float *)(void *)table.bytes,
                                   .touched = 77};
    float *losses = (float *)(void *)each.bytes;
    embla_loss_report report = {.loss = 7};
    const embla_head *good = &s.truth.head;
    const embla_negatives *n = &s.truth.negatives;
    (void)state;
#define REFUSED(status, says, head, hidden_is, targets_are, negatives, options, gradients)         \
    do {                                                                                           \
        assert_status(embla_sampled_loss(head,                                                     \
                                         &(embla_loss_batch){.hidden = hidden_is,                  \
                                                             .targets = targets_are,               \
                                                             .count = s.count,                     \
                                                             .each = losses},                      \
                                         negatives, options, gradients, &report),                  \
                      status);                                                                     \
        assert_error_has(says);                                                                    \
    } while (0)
    struct {
        embla_loss_options options;
        embla_status status;
        const char *says;
    } bad[] = {{{.smoothing = 0.1}, EMBLA_ERR_UNSUPPORTED, "smoothing (0.1)"},
               {{.z_loss = 1e-4}, EMBLA_ERR_UNSUPPORTED, "z_loss (0.0001)"},
               {{.compute = EMBLA_F16}, EMBLA_ERR_ARGUMENT, "f32 and bf16"},
               {{.weight = NAN}, EMBLA_ERR_ARGUMENT, "weight is"},
               {{.threads = -1}, EMBLA_ERR_ARGUMENT, "threads is -1"}};
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        REFUSED(bad[i].status, bad[i].says, good, s.hidden, s.targets, n, &bad[i].options, &out);
    embla_negatives none = *n, many = *n, odd = *n;
    none.negatives = 0, many.negatives = (size_t)1 << 31, odd.proposal = (embla_proposal)2;
    REFUSED(EMBLA_ERR_ARGUMENT, "negatives is 0; it must be from 1 to 2147483647", good, s.hidden,
            s.targets, &none, NULL, &out);
    REFUSED(EMBLA_ERR_ARGUMENT, "negatives is 2147483648", good, s.hidden, s.targets, &many, NULL,
            &out);
    REFUSED(EMBLA_ERR_ARGUMENT, "proposal 2", good, s.hidden, s.targets, &odd, NULL, &out);
    REFUSED(EMBLA_ERR_ARGUMENT, "negatives is NULL", good, s.hidden, s.targets, NULL, NULL, &out);
    REFUSED(EMBLA_ERR_ARGUMENT, "hidden is NULL", good, NULL, s.targets, n, NULL, &out);
    REFUSED(EMBLA_ERR_ARGUMENT, "targets is NULL", good, s.hidden, NULL, n, NULL, &out);
    REFUSED(EMBLA_ERR_ARGUMENT, "NULL", NULL, s.hidden, s.targets, n, NULL, &out);
    embla_head long_head = *good;
    long_head.rows = 51;
    REFUSED(EMBLA_ERR_ARGUMENT, "51", &long_head, s.hidden, s.targets, n, NULL, &out);
    embla_sampled_gradients half = out;
    half.rows = NULL;
    REFUSED(EMBLA_ERR_ARGUMENT, "table is set, but rows is NULL", good, s.hidden, s.targets, n,
            NULL, &half);
    half = out, half.table = NULL;
    REFUSED(EMBLA_ERR_ARGUMENT, "rows is set, but table is NULL", good, s.hidden, s.targets, n,
            NULL, &half);
    static const int32_t wrong[] = {50, -1, INT32_MIN, INT32_MAX};
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        s.targets[2] = wrong[i];
        REFUSED(EMBLA_ERR_RANGE, "at index 2 is not from 0 to 49", good, s.hidden, s.targets, n,
                NULL, &out);
    }
    assert_status(embla_sampled_loss(good,
                                     &(embla_loss_batch){.hidden = s.hidden,
                                                         .targets = s.targets,
                                                         .count = SIZE_MAX / 4,
                                                         .each = losses},
                                     n, NULL, &out, &report),
                  EMBLA_ERR_ARGUMENT);
    assert_error_has("do not fit in memory");
    assert_true(report.loss == 7 && out.touched == 77);
    check_untouched(&hidden);
    check_untouched(&rows);
    check_untouched(&table);
    check_untouched(&each);
    check_guard_free(&hidden);
    check_guard_free(&rows);
    check_guard_free(&table);
    check_guard_free(&each);
    tear_down(&s);
}

static void an_allocation_that_fails_is_reported_and_leaks_nothing(void **state)
{
    setup s = set_up(&shapes[4]);
    size_t bytes = s.count * s.dim * sizeof(float), live = embla_mem_live(), failures = 0;
    float *was = taken(bytes);
    (void)state;
    memset(was, CHECK_MARK, bytes);
    for (size_t at = 1;; at++) {
        memset(s.gradients.hidden, CHECK_MARK, bytes);
        s.gradients.touched = 77;
        embla_mem_fail(at, true);
        embla_status status = run(&s, NULL, NULL);
        embla_mem_fail(0, false);
        assert_int_equal(embla_mem_live(), live);
        if (status == EMBLA_OK) break;
        assert_int_equal(status, EMBLA_ERR_MEMORY);
        assert_memory_equal(was, s.gradients.hidden, bytes);
        assert_int_equal(s.gradients.touched, 77);
        failures++;
    }
    assert_int_equal(failures, 4); /* lists, rows, and the two of a scatter */
    free(was);
    tear_down(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drawn_tokens_are_a_function_of_seed_step_and_index),
        cmocka_unit_test(tokens_are_drawn_as_often_as_expected),
        cmocka_unit_test(the_loss_is_that_of_the_definition),
        cmocka_unit_test(gradients_are_the_slopes_of_the_definition),
        cmocka_unit_test(each_gradient_can_be_had_alone),
        cmocka_unit_test(bf16_rounds_the_factors),
        cmocka_unit_test(equal_logits_are_right_for_the_lowest),
        cmocka_unit_test(one_of_each_is_the_full_loss),
        cmocka_unit_test(more_negatives_come_nearer_to_the_full_gradient),
        cmocka_unit_test(threads_and_kernel_sets_change_no_bit),
        cmocka_unit_test(nothing_to_count_touches_nothing),
        cmocka_unit_test(minus_infinity_bars_a_token),
        cmocka_unit_test(a_nan_stays_with_its_token),
        cmocka_unit_test(bad_arguments_are_refused_and_nothing_is_written),
        cmocka_unit_test(an_allocation_that_fails_is_reported_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
