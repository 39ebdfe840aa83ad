/* SPDX-License-Identifier: Apache-2.0 */
/* The n-gram table beside a decoder: gradients of it and of all tensors against central differences
 * of the same model in double (reference_gpt.h), what is named ahead against what is not, rows that
 * are shared, saved, opened and decoded; the model without them, to the bit, while they are 0.
 */
#include "scratch.h"

#include <errno.h>
#include <math.h>

#include "base/mem.h"
#include "files/io.h"
#include "model/gpt.h"
#include "model/gpt_ngram.h"
#include "reference_gpt.h"

enum { BATCH = 3, LENGTH = 9, TOKENS = BATCH * LENGTH, VOCAB = 11, DIM = 12 };

static embla_gpt_shape shape_of(size_t layer)
{
    return (embla_gpt_shape){
        .vocab = VOCAB,
        .dim = DIM,
        .layers = 2,
        .heads = 3,
        .hidden = 20,
        .positions = LENGTH,
        .biases = true,
        .ngram = {.rows = 90, .heads = 2, .orders = 3, .dim = 5, .layer = layer, .seed = 4}};
}

typedef struct {
    int32_t tokens[TOKENS], targets[TOKENS];
} batch;

static batch batch_of(uint64_t seed)
{
    batch b;
    for (size_t i = 0; i < TOKENS; i++) {
        b.tokens[i] = (int32_t)check_below(&seed, VOCAB);
        b.targets[i] = (int32_t)check_below(&seed, VOCAB);
    }
    return b;
}

static size_t table_count(embla_gpt *gpt)
{
    const embla_table *t = embla_gpt_ngram_table(gpt);
    return (size_t)embla_table_rows(t) * embla_table_dim(t);
}

/* With room, and rows that are not 0. */
static embla_gpt *model_of(const embla_gpt_shape *shape)
{
    embla_gpt *gpt = NULL;
    uint64_t seed = 8;
    assert_ok(embla_gpt_new(shape, 3, 0.3, &gpt));
    assert_ok(embla_gpt_reserve(gpt, BATCH, LENGTH));
    if (!embla_gpt_ngram_table(gpt)) return gpt;
    float *rows = embla_table_data(embla_gpt_ngram_table(gpt));
    for (size_t i = 0; i < table_count(gpt); i++) rows[i] = check_unit(&seed);
    return gpt;
}

static double loss_of(embla_gpt *gpt, const batch *b)
{
    embla_loss_report report;
    assert_ok(embla_gpt_loss(
        gpt,
        &(embla_gpt_batch){
            .tokens = b->tokens, .targets = b->targets, .batch = BATCH, .length = LENGTH},
        NULL, &report));
    return report.loss;
}

static double learn(embla_gpt *gpt, const batch *b, int threads)
{
    const embla_gpt_options options = {.threads = threads};
    embla_loss_report report;
    embla_gpt_zero_gradients(gpt);
    assert_ok(embla_gpt_backward(
        gpt,
        &(embla_gpt_batch){
            .tokens = b->tokens, .targets = b->targets, .batch = BATCH, .length = LENGTH},
        &options, &report));
    return report.loss;
}

static embla_gpt_tensor named(const embla_gpt *gpt, const char *name)
{
    embla_gpt_tensor t = {0};
    for (size_t n = 0; n < embla_gpt_tensor_count(gpt); n++) {
        assert_ok(embla_gpt_tensor_at(gpt, n, &t));
        if (strcmp(t.name, name) == 0) return t;
    }
    fail_msg("there is no %s", name);
    return t;
}

typedef struct {
    const int64_t *rows;
    const float *gradients;
    size_t count;
} learned;

static learned learned_of(const embla_gpt *gpt)
{
    learned l;
    assert_ok(embla_gpt_ngram_gradients(gpt, &l.rows, &l.gradients, &l.count));
    return l;
}

/* ---- shape ---- */

static void what_0_stands_for_is_filled_in(void **state)
{
    embla_gpt_shape s = shape_of(0), out;
    (void)state;
    s.dim = 24;
    s.ngram = (embla_gpt_ngram){.rows = 1000};
    assert_ok(embla_gpt_shape_check(&s, &out));
    assert_int_equal(out.ngram.heads, 4);
    assert_int_equal(out.ngram.orders, 3);
    assert_int_equal(out.ngram.dim, 3); /* 24 / 8 */
    s.dim = 3;
    assert_ok(embla_gpt_shape_check(&s, &out));
    assert_int_equal(out.ngram.dim, 1);
    s.ngram = (embla_gpt_ngram){.heads = 7, .layer = 99}; /* no rows: no table */
    assert_ok(embla_gpt_shape_check(&s, &out));
    assert_int_equal(out.ngram.heads, 0);
    assert_int_equal(embla_gpt_ngram_width(&out), 0);
}

static void shapes_that_do_not_fit_are_refused(void **state)
{
    const struct {
        embla_gpt_ngram ngram;
        const char *says;
    } bad[] = {
        {{.rows = -1}, "ngram.rows is -1"},
        {{.rows = 7}, "7 rows"},
        {{.rows = INT64_MAX}, "rows"},
        {{.rows = 100, .heads = 65}, "an n-gram table with 65 heads"},
        {{.rows = 100, .orders = 1}, "1 tokens in the longest n-gram"},
        {{.rows = 100, .orders = 9}, "9 tokens in the longest"},
        {{.rows = 100, .dim = 1 << 20}, "1048576 numbers in a row; it must have 1 to 131072"},
        {{.rows = 100, .layer = 2}, "ngram.layer is 2, but the model has 2"},
    };
    embla_gpt *gpt = NULL;
    embla_gpt_memory plan;
    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        embla_gpt_shape s = shape_of(0);
        s.ngram = bad[i].ngram;
        assert_status(embla_gpt_new(&s, 1, 0, &gpt), EMBLA_ERR_ARGUMENT);
        assert_error_has(bad[i].says);
        assert_null(gpt);
    }
    embla_gpt_shape s = shape_of(0);
    s.vocab = INT32_MAX;
    assert_status(embla_gpt_plan_memory(&s, 1, 1, &plan), EMBLA_ERR_ARGUMENT);
    assert_error_has("2147483647 tokens");
}

/* Rows, their numbers, and what an optimizer remembers of each are counted. */
static void it_is_counted(void **state)
{
    embla_gpt_shape with = shape_of(1), without = shape_of(1);
    embla_gpt_memory a, b;
    (void)state;
    without.ngram.rows = 0;
    embla_gpt *gpt = model_of(&with), *plain = model_of(&without);
    int64_t rows = embla_table_rows(embla_gpt_ngram_table(gpt));
    assert_in_range(rows, 90, 130);
    assert_int_equal(embla_table_dim(embla_gpt_ngram_table(gpt)), 5);
    assert_int_equal(embla_gpt_parameters(gpt) - embla_gpt_parameters(plain),
                     rows * 5 + 2 * DIM * 4 * 5);
    assert_int_equal(embla_gpt_tensor_count(gpt) - embla_gpt_tensor_count(plain), 2);
    assert_ok(embla_gpt_plan_memory(&with, BATCH, LENGTH, &a));
    assert_ok(embla_gpt_plan_memory(&without, BATCH, LENGTH, &b));
    int64_t tensors = 2 * DIM * 20 * 4;
    assert_int_equal(a.weights - b.weights, rows * 20 + tensors);
    assert_int_equal(a.gradients - b.gradients, tensors);
    assert_int_equal(a.optimizer - b.optimizer, rows * 4 + 2 * tensors);
    /* grams and their gradients, pair, stats, enriched; rows thrice, tokens twice, sums */
    int64_t least = TOKENS * (4 * (20 + 20 + 2 * DIM + 4 + DIM) + 3 * 4 * 8 + 2 * 4 + 20 * 4);
    assert_in_range(a.activations - b.activations, least, least + 64 * 12);
    assert_int_equal(a.total, a.weights + a.gradients + a.optimizer + a.activations);
    embla_gpt_free(gpt);
    embla_gpt_free(plain);
}

static void a_model_without_has_none(void **state)
{
    embla_gpt_shape s = shape_of(0);
    int32_t token = 0;
    learned l;
    (void)state;
    s.ngram.rows = 0;
    embla_gpt *gpt = model_of(&s);
    assert_null(embla_gpt_ngram_table(gpt));
    assert_null(embla_gpt_ngram_hasher(gpt));
    assert_null(embla_gpt_ngram_table(NULL));
    assert_null(embla_gpt_ngram_hasher(NULL));
    assert_status(embla_gpt_ngram_gradients(gpt, &l.rows, &l.gradients, &l.count),
                  EMBLA_ERR_NOT_FOUND);
    assert_status(embla_gpt_ngram_prefetch(gpt, &token, 1, 1, &(embla_gpt_options){.threads = 1}),
                  EMBLA_ERR_NOT_FOUND);
    assert_status(embla_gpt_ngram_share(gpt, "/nowhere"), EMBLA_ERR_NOT_FOUND);
    assert_error_has("no n-gram table");
    assert_status(embla_gpt_ngram_gradients(NULL, &l.rows, &l.gradients, &l.count),
                  EMBLA_ERR_ARGUMENT);
    embla_gpt_free(gpt);
}

/* ---- the first numbers ---- */

/* All other tensors begin as without the table; while rows are 0 so is the loss, to the bit. */
static void it_begins_as_the_model_without(void **state)
{
    embla_gpt_shape with = shape_of(1), without = shape_of(1), deeper = shape_of(1);
    embla_gpt *a = NULL, *b = NULL, *c = NULL;
    const batch data = batch_of(1);
    (void)state;
    without.ngram.rows = 0;
    deeper.layers = 4;
    assert_ok(embla_gpt_new(&with, 7, 0, &a));
    assert_ok(embla_gpt_new(&without, 7, 0, &b));
    assert_ok(embla_gpt_new(&deeper, 7, 0, &c));
    for (size_t n = 0; n < embla_gpt_tensor_count(b); n++) {
        embla_gpt_tensor t;
        assert_ok(embla_gpt_tensor_at(b, n, &t));
        assert_memory_equal(t.values, named(a, t.name).values, (size_t)t.rows * t.dim * 4);
    }
    embla_gpt_tensor key = named(a, "ngram.key"), value = named(a, "ngram.value");
    assert_int_equal(key.rows, DIM);
    assert_int_equal(key.dim, 20);
    assert_true(key.decays && value.decays);
    assert_ptr_equal((float *)key.values + DIM * 20, value.values);
    assert_memory_not_equal(key.values, value.values, DIM * 20 * 4);
    assert_memory_equal(key.values, named(c, "ngram.key").values, 2 * DIM * 20 * 4);
    double keys = 0, values = 0;
    for (size_t i = 0; i < DIM * 20; i++) {
        keys += (double)((float *)key.values)[i] * (double)((float *)key.values)[i];
        values += (double)((float *)value.values)[i] * (double)((float *)value.values)[i];
    }
    assert_near(sqrt(keys / DIM), 1, 0.2); /* 20 numbers with a spread of 1 / sqrt(20) */
    assert_near(sqrt(values / DIM), 4, 0.8);
    assert_ok(embla_gpt_reserve(a, BATCH, LENGTH));
    assert_ok(embla_gpt_reserve(b, BATCH, LENGTH));
    assert_true(loss_of(a, &data) == loss_of(b, &data));
    const float *rows = embla_table_row(embla_gpt_ngram_table(a), 0);
    for (size_t i = 0; i < table_count(a); i++) assert_true(rows[i] == 0);
    (void)learn(a, &data, 1); /* and yet rows learn at once */
    learned l = learned_of(a);
    double squares = 0;
    for (size_t i = 0; i < l.count * 5; i++) squares += fabs((double)l.gradients[i]);
    assert_true(squares > 1e-4);
    embla_gpt_free(a);
    embla_gpt_free(b);
    embla_gpt_free(c);
}

/* ---- rows ---- */

static void the_rows_of_a_batch_are_those_of_the_hasher(void **state)
{
    embla_gpt_shape s = shape_of(0);
    embla_gpt *gpt = model_of(&s);
    const batch b = batch_of(2);
    int64_t rows[TOKENS * 4];
    uint8_t seen[256] = {0};
    size_t different = 0;
    (void)state;
    (void)learn(gpt, &b, 1);
    learned l = learned_of(gpt);
    assert_ok(embla_ngram_rows(embla_gpt_ngram_hasher(gpt), b.tokens, BATCH, LENGTH, NULL, rows));
    for (size_t i = 0; i < TOKENS * 4; i++) seen[rows[i]] = 1;
    for (int64_t r = 0; r < 256; r++)
        if (seen[r]) assert_int_equal(l.rows[different++], r);
    assert_int_equal(different, l.count);
    embla_gpt_free(gpt);
}

/* No n-gram reaches over the last token of the vocabulary, nor from one sequence to the next. */
static void documents_are_apart(void **state)
{
    const int32_t tokens[] = {1,         2, VOCAB - 1, 3, 4, /* the same after the BOS */
                              5,         6, VOCAB - 1, 3, 4,
                              VOCAB - 1, 3, 4,         1, 2,  /* and where it begins with it */
                              3,         4, 1,         2, 1}; /* or without */
    enum { N = 4 };
    int64_t rows[4][5][N], other[1][5][N];
    embla_gpt_shape s = shape_of(0);
    embla_gpt *gpt = model_of(&s);
    const embla_ngram *hasher = embla_gpt_ngram_hasher(gpt);
    (void)state;
    assert_ok(embla_ngram_rows(hasher, tokens, 4, 5, NULL, &rows[0][0][0]));
    assert_memory_equal(rows[0][3], rows[1][3], 2 * sizeof rows[0][0]);
    assert_memory_equal(rows[0][3], rows[2][1], 2 * sizeof rows[0][0]);
    assert_memory_equal(rows[0][3], rows[3][0], 2 * sizeof rows[0][0]);
    assert_memory_not_equal(rows[0][1], rows[1][1], sizeof rows[0][0]);
    assert_ok(embla_ngram_rows(hasher, tokens + 10, 1, 5, NULL, &other[0][0][0]));
    assert_memory_equal(rows[2], other, sizeof other);
    s.ngram.seed = 5;
    embla_gpt *another = model_of(&s);
    assert_ok(
        embla_ngram_rows(embla_gpt_ngram_hasher(another), tokens + 10, 1, 5, NULL, &rows[0][0][0]));
    assert_memory_not_equal(rows[0], other, sizeof other);
    embla_gpt_free(another);
    embla_gpt_free(gpt);
}

/* ---- gradients ---- */

/* Rows that a batch uses, as rows of the reference: one after the other. */
static void check_rows(reference *r, const embla_gpt_batch *asked, const learned *l, size_t dim)
{
    double largest = 0;
    for (size_t i = 0; i < l->count * dim; i++)
        if (fabs((double)l->gradients[i]) > largest) largest = fabs((double)l->gradients[i]);
    assert_true(largest > 1e-3);
    for (size_t i = 0; i < l->count * dim; i++) {
        double *at = r->grams + (size_t)l->rows[i / dim] * dim + i % dim;
        assert_near(l->gradients[i], reference_slope(r, asked, at), 1e-5 * largest);
    }
}

static void gradients_are_those_of_differences(void **state)
{
    const batch b = batch_of(3);
    const embla_gpt_batch asked = {
        .tokens = b.tokens, .targets = b.targets, .batch = BATCH, .length = LENGTH};
    (void)state;
    for (size_t layer = 0; layer < 2; layer++)
        for (size_t first = 0; first < 2; first++) {
            embla_gpt_shape s = shape_of(layer);
            s.norm_first = first == 1;
            embla_gpt *gpt = model_of(&s);
            reference r = reference_new(gpt);
            double loss = learn(gpt, &b, 1), right = reference_loss(&r, &asked, NULL);
            assert_near(loss, right, 1e-5 * (1 + right));
            for (size_t n = 0; n < embla_gpt_tensor_count(gpt); n++) {
                embla_gpt_tensor t;
                assert_ok(embla_gpt_tensor_at(gpt, n, &t));
                reference_check_gradient(&r, &asked, t.name, r.tensors[n], t.gradient,
                                         (size_t)t.rows * t.dim, 1e-5);
            }
            learned l = learned_of(gpt);
            check_rows(&r, &asked, &l, 5);
            reference_free(&r);
            embla_gpt_free(gpt);
        }
}

static void gradients_of_rows_are_not_added_up(void **state)
{
    const batch b = batch_of(4), c = batch_of(5);
    embla_gpt_shape s = shape_of(1);
    embla_gpt *gpt = model_of(&s), *fresh = model_of(&s);
    const embla_gpt_options twice = {.weight = 2};
    embla_loss_report report;
    learned l;
    (void)state;
    assert_status(embla_gpt_ngram_gradients(gpt, &l.rows, &l.gradients, &l.count),
                  EMBLA_ERR_ARGUMENT);
    assert_error_has("embla_gpt_backward");
    (void)learn(gpt, &b, 1);
    (void)learn(gpt, &c, 1);
    (void)learn(fresh, &c, 1);
    learned x = learned_of(gpt), y = learned_of(fresh);
    assert_int_equal(x.count, y.count);
    assert_memory_equal(x.rows, y.rows, x.count * sizeof *x.rows);
    assert_memory_equal(x.gradients, y.gradients, x.count * 5 * sizeof(float));
    float one = x.gradients[0];
    assert_ok(embla_gpt_backward(
        gpt,
        &(embla_gpt_batch){
            .tokens = c.tokens, .targets = c.targets, .batch = BATCH, .length = LENGTH},
        &twice, &report));
    assert_true(learned_of(gpt).gradients[0] == 2 * one);
    assert_status(embla_gpt_ngram_gradients(gpt, NULL, &l.gradients, &l.count), EMBLA_ERR_ARGUMENT);
    assert_status(embla_gpt_ngram_gradients(gpt, &l.rows, NULL, &l.count), EMBLA_ERR_ARGUMENT);
    assert_status(embla_gpt_ngram_gradients(gpt, &l.rows, &l.gradients, NULL), EMBLA_ERR_ARGUMENT);
    embla_gpt_free(gpt);
    embla_gpt_free(fresh);
}

/* ---- bits ---- */

static uint64_t sum_of(const embla_gpt *gpt)
{
    uint64_t sum = 0;
    learned l = learned_of(gpt);
    const unsigned char *bytes = (const unsigned char *)l.gradients;
    for (size_t i = 0; i < l.count * 5 * sizeof(float); i++) sum = sum * 31 + bytes[i];
    for (size_t i = 0; i < l.count; i++) sum = sum * 31 + (uint64_t)l.rows[i];
    bytes = (const unsigned char *)gpt->gradients;
    for (size_t i = 0; i < gpt->numbers * sizeof(float); i++) sum = sum * 31 + bytes[i];
    return sum;
}

static void bits_do_not_depend_on_threads(void **state)
{
    static const int threads[] = {1, 2, 3, 4, 8};
    const batch b = batch_of(6);
    uint64_t first = 0;
    (void)state;
    for (size_t i = 0; i < COUNT_OF(threads); i++) {
        embla_gpt_shape s = shape_of(1);
        embla_gpt *gpt = model_of(&s);
        (void)learn(gpt, &b, threads[i]);
        if (i == 0) first = sum_of(gpt);
        assert_true(sum_of(gpt) == first);
        embla_gpt_free(gpt);
    }
}

/* A batch large enough for threads to be woken. */
static void bits_of_a_large_batch_do_not_depend_on_threads(void **state)
{
    enum { B = 8, T = 64, N = B * T };
    const embla_gpt_shape s = {.vocab = 256,
                               .dim = 64,
                               .layers = 1,
                               .heads = 2,
                               .positions = T,
                               .ngram = {.rows = 4096, .seed = 1}};
    int32_t tokens[N], targets[N];
    uint64_t seed = 1, first = 0;
    (void)state;
    for (size_t i = 0; i < N; i++) {
        tokens[i] = (int32_t)check_below(&seed, 256);
        targets[i] = (int32_t)check_below(&seed, 256);
    }
    for (int threads = 1; threads <= 4; threads++) {
        const embla_gpt_options options = {.threads = threads};
        embla_gpt *gpt = NULL;
        assert_ok(embla_gpt_new(&s, 1, 0, &gpt));
        embla_init_options init = {.seed = 3, .spread = 0.1f};
        assert_ok(embla_table_init(embla_gpt_ngram_table(gpt), &init));
        assert_ok(embla_gpt_reserve(gpt, B, T));
        assert_ok(
            embla_gpt_ngram_prefetch(gpt, tokens, B, T, &(embla_gpt_options){.threads = threads}));
        assert_ok(embla_gpt_backward(
            gpt, &(embla_gpt_batch){.tokens = tokens, .targets = targets, .batch = B, .length = T},
            &options, NULL));
        learned l = learned_of(gpt);
        uint64_t sum = 0;
        for (size_t i = 0; i < l.count * 8; i++) sum = sum * 31 + check_bits_of(l.gradients[i]);
        if (threads == 1) first = sum;
        assert_true(sum == first);
        embla_gpt_free(gpt);
    }
}

/* ---- ahead ---- */

static void ahead_changes_nothing_but_speed(void **state)
{
    const batch b = batch_of(7), c = batch_of(8);
    embla_gpt_shape s = shape_of(0);
    (void)state;
    embla_gpt *plain = model_of(&s);
    double loss_b = learn(plain, &b, 1);
    uint64_t sum_b = sum_of(plain);
    double loss_c = learn(plain, &c, 1);
    uint64_t sum_c = sum_of(plain);
    embla_gpt *gpt = model_of(&s);
    assert_ok(
        embla_gpt_ngram_prefetch(gpt, b.tokens, BATCH, LENGTH, &(embla_gpt_options){.threads = 1}));
    assert_true(learn(gpt, &b, 1) == loss_b);
    assert_true(sum_of(gpt) == sum_b);
    assert_ok(
        embla_gpt_ngram_prefetch(gpt, c.tokens, BATCH, LENGTH, &(embla_gpt_options){.threads = 2}));
    assert_true(sum_of(gpt) == sum_b); /* gradients are still those of b .. */
    assert_true(loss_of(gpt, &b) == loss_b);
    assert_true(loss_of(gpt, &c) == loss_c);
    assert_true(sum_of(gpt) == sum_b); /* .. also after a loss */
    assert_true(learn(gpt, &c, 1) == loss_c);
    assert_true(sum_of(gpt) == sum_c);
    assert_ok(
        embla_gpt_ngram_prefetch(gpt, c.tokens, BATCH, LENGTH, &(embla_gpt_options){.threads = 1}));
    assert_true(learn(gpt, &b, 1) == loss_b); /* another batch than was said */
    assert_true(sum_of(gpt) == sum_b);
    assert_true(learn(gpt, &c, 1) == loss_c); /* said two batches ago */
    assert_true(sum_of(gpt) == sum_c);
    /* fewer of the same tokens are another batch, too */
    assert_ok(
        embla_gpt_ngram_prefetch(gpt, b.tokens, BATCH, LENGTH, &(embla_gpt_options){.threads = 1}));
    assert_true(learn(gpt, &b, 1) == loss_b);
    assert_true(learn(gpt, &c, 1) == loss_c);
    assert_ok(
        embla_gpt_ngram_prefetch(gpt, c.tokens, BATCH, LENGTH, &(embla_gpt_options){.threads = 1}));
    assert_true(learn(gpt, &c, 1) == loss_c);
    assert_ok(embla_gpt_ngram_prefetch(gpt, c.tokens, BATCH, LENGTH - 1,
                                       &(embla_gpt_options){.threads = 1}));
    assert_true(learn(gpt, &c, 1) == loss_c);
    assert_true(sum_of(gpt) == sum_c);
    /* the same tokens as other sequences are another batch */
    assert_ok(
        embla_gpt_ngram_prefetch(gpt, b.tokens, LENGTH, BATCH, &(embla_gpt_options){.threads = 1}));
    assert_true(learn(gpt, &b, 1) == loss_b);
    assert_true(sum_of(gpt) == sum_b);
    embla_gpt_free(plain);
    embla_gpt_free(gpt);
}

static void bad_batches_ahead_are_refused(void **state)
{
    embla_gpt_shape s = shape_of(0);
    embla_gpt *gpt = model_of(&s), *roomless = NULL;
    batch b = batch_of(9);
    (void)state;
    double loss = loss_of(gpt, &b);
    assert_status(embla_gpt_ngram_prefetch(gpt, NULL, 1, 1, &(embla_gpt_options){.threads = 1}),
                  EMBLA_ERR_ARGUMENT);
    assert_error_has("and tokens is NULL");
    assert_status(embla_gpt_ngram_prefetch(gpt, b.tokens, 0, 1, &(embla_gpt_options){.threads = 1}),
                  EMBLA_ERR_ARGUMENT);
    assert_status(embla_gpt_ngram_prefetch(gpt, b.tokens, 1, 0, &(embla_gpt_options){.threads = 1}),
                  EMBLA_ERR_ARGUMENT);
    assert_status(
        embla_gpt_ngram_prefetch(gpt, b.tokens, 1, 1, &(embla_gpt_options){.threads = -1}),
        EMBLA_ERR_ARGUMENT);
    assert_status(embla_gpt_ngram_prefetch(gpt, b.tokens, BATCH, LENGTH + 1,
                                           &(embla_gpt_options){.threads = 1}),
                  EMBLA_ERR_SHAPE);
    assert_error_has("the model has memory for only 27 tokens");
    assert_status(
        embla_gpt_ngram_prefetch(gpt, b.tokens, SIZE_MAX, 2, &(embla_gpt_options){.threads = 1}),
        EMBLA_ERR_SHAPE);
    assert_ok(
        embla_gpt_ngram_prefetch(gpt, b.tokens, BATCH, LENGTH, &(embla_gpt_options){.threads = 1}));
    int32_t kept = b.tokens[5];
    b.tokens[5] = VOCAB;
    assert_status(
        embla_gpt_ngram_prefetch(gpt, b.tokens, BATCH, LENGTH, &(embla_gpt_options){.threads = 1}),
        EMBLA_ERR_RANGE);
    b.tokens[5] = kept;
    assert_true(loss_of(gpt, &b) == loss);
    assert_true(learn(gpt, &b, 1) == loss);
    assert_ok(embla_gpt_new(&s, 1, 0, &roomless));
    assert_status(
        embla_gpt_ngram_prefetch(roomless, b.tokens, 1, 1, &(embla_gpt_options){.threads = 1}),
        EMBLA_ERR_SHAPE);
    embla_gpt_free(roomless);
    embla_gpt_free(gpt);
}

/* ---- steps ---- */

static double steps_of(embla_gpt *gpt, const batch *b, int steps)
{
    const embla_optim_options options = {.kind = EMBLA_OPTIM_ADAGRAD_ROWWISE};
    embla_optim *optim = NULL;
    assert_ok(embla_optim_new(embla_gpt_ngram_table(gpt), &options, &optim));
    for (int i = 0; i < steps; i++) {
        (void)learn(gpt, b, 1);
        learned l = learned_of(gpt);
        assert_ok(embla_optim_step_rows(optim, 0.1, l.rows, l.count, l.gradients));
    }
    embla_optim_free(optim);
    return loss_of(gpt, b);
}

/* Rows alone, from 0 on, learn what comes after each n-gram. */
static void rows_learn(void **state)
{
    const batch b = batch_of(10);
    embla_gpt_shape s = shape_of(0);
    embla_gpt *gpt = NULL;
    (void)state;
    assert_ok(embla_gpt_new(&s, 3, 0, &gpt));
    assert_ok(embla_gpt_reserve(gpt, BATCH, LENGTH));
    double before = loss_of(gpt, &b), after = steps_of(gpt, &b, 150);
    if (!(after < 0.5 * before)) fail_msg("a loss of %.3g, before %.3g", after, before);
    embla_gpt_free(gpt);
}

/* ---- shared ---- */

static void shared_rows_are_seen_by_others(void **state)
{
    const batch b = batch_of(11);
    embla_gpt_shape s = shape_of(1);
    embla_gpt *gpt = model_of(&s), *same = model_of(&s);
    embla_table *table = embla_gpt_ngram_table(gpt), *theirs = NULL;
    embla_checkpoint *cp = NULL;
    scratch place;
    (void)state;
    scratch_new(&place);
    const char *path = scratch_path(&place, "rows.npy");
    double loss = loss_of(gpt, &b);
    assert_ok(embla_gpt_ngram_share(gpt, path));
    assert_ptr_equal(embla_gpt_ngram_table(gpt), table);
    assert_true(loss_of(gpt, &b) == loss);
    assert_ok(embla_checkpoint_open(path, NULL, &cp));
    assert_ok(embla_table_open(cp, NULL, NULL, &theirs));
    assert_int_equal(embla_table_rows(theirs), embla_table_rows(table));
    assert_int_equal(embla_table_dim(theirs), 5);
    double after = steps_of(gpt, &b, 3);
    assert_true(after == steps_of(same, &b, 3));
    assert_memory_equal(embla_table_row(theirs, 0), embla_table_row(table, 0),
                        table_count(gpt) * sizeof(float));
    assert_memory_equal(embla_table_row(theirs, 0), embla_table_row(embla_gpt_ngram_table(same), 0),
                        table_count(gpt) * sizeof(float));
    assert_status(embla_gpt_ngram_share(gpt, path), EMBLA_ERR_ARGUMENT);
    assert_error_has("exists");
    assert_ok(embla_gpt_ngram_share(gpt, scratch_path(&place, "again.npy")));
    assert_true(loss_of(gpt, &b) == after);
    embla_gpt_free(gpt);
    assert_int_equal(scratch_count(&place, ".npy"), 2); /* they stay */
    embla_table_free(theirs);
    embla_checkpoint_free(cp);
    embla_gpt_free(same);
    assert_int_equal(embla_io_live(), 0);
    scratch_free(&place);
}

static void bad_paths_are_refused(void **state)
{
    embla_gpt_shape s = shape_of(0);
    embla_gpt *gpt = model_of(&s);
    (void)state;
    assert_status(embla_gpt_ngram_share(gpt, NULL), EMBLA_ERR_ARGUMENT);
    assert_error_has("NULL");
    assert_status(embla_gpt_ngram_share(gpt, ""), EMBLA_ERR_ARGUMENT);
    assert_error_has("empty");
    assert_status(embla_gpt_ngram_share(NULL, "x"), EMBLA_ERR_ARGUMENT);
    assert_int_not_equal(embla_gpt_ngram_share(gpt, "/nowhere/at/all.npy"), EMBLA_OK);
    embla_gpt_free(gpt);
}

/* Whatever fails, the rows are where they were. */
static void fail_at_each(bool memory)
{
    const batch b = batch_of(12);
    embla_gpt_shape s = shape_of(0);
    embla_gpt *gpt = model_of(&s);
    scratch place;
    size_t failures = 0, left = 0, live = embla_mem_live();
    scratch_new(&place);
    const char *path = scratch_path(&place, "rows.npy");
    double loss = loss_of(gpt, &b);
    const void *rows = embla_table_row(embla_gpt_ngram_table(gpt), 0);
    for (size_t n = 1;; n++) {
        embla_mem_fail(memory ? n : 0, false);
        embla_io_fail(memory ? 0 : n, false, EMBLA_SYSTEM_NO_SPACE);
        embla_status status = embla_gpt_ngram_share(gpt, path);
        embla_mem_fail(0, false);
        embla_io_fail(0, false, 0);
        assert_true(loss_of(gpt, &b) == loss);
        if (status == EMBLA_OK) break;
        assert_int_equal(status, memory ? EMBLA_ERR_MEMORY : EMBLA_ERR_IO);
        assert_int_equal(embla_mem_live(), live);
        assert_int_equal(embla_io_live(), 0);
        assert_ptr_equal(embla_table_row(embla_gpt_ngram_table(gpt), 0), rows);
        assert_int_equal(scratch_count(&place, ".tmp."), 0);
        left += unlink(path) == 0; /* where the folder could not be synced it has its name */
        failures++;
    }
    assert_true(failures >= (memory ? 1 : 8));
    assert_true(left <= 1);
    embla_gpt_free(gpt);
    assert_int_equal(embla_io_live(), 0);
    scratch_free(&place);
}

static void sharing_may_fail_anywhere(void **state)
{
    (void)state;
    fail_at_each(false);
    fail_at_each(true);
}

/* ---- files ---- */

static embla_gpt *opened(const scratch *place)
{
    embla_checkpoint *cp = NULL;
    embla_gpt *gpt = NULL;
    assert_ok(embla_checkpoint_open(place->folder, NULL, &cp));
    assert_ok(embla_gpt_open(cp, &gpt));
    embla_checkpoint_free(cp);
    return gpt;
}

/* The n-gram verbs find the hasher and the table of a saved model. */
static void check_hasher(const scratch *place, embla_gpt *gpt, size_t layer)
{
    embla_checkpoint *cp = NULL;
    embla_ngram *hasher = NULL;
    embla_store *store = NULL;
    embla_ngram_info ours, theirs;
    embla_store_info info;
    int32_t tokens[16];
    int64_t a[16 * 32], b[16 * 32];
    assert_ok(embla_checkpoint_open(place->folder, NULL, &cp));
    assert_ok(embla_ngram_open(cp, -1, NULL, &hasher));
    assert_ok(embla_ngram_describe(embla_gpt_ngram_hasher(gpt), &ours));
    assert_ok(embla_ngram_describe(hasher, &theirs));
    assert_int_equal(theirs.layer, layer);
    assert_int_equal(theirs.rows_per_token, ours.rows_per_token);
    assert_true(ours.rows_per_token <= 32);
    for (int i = 0; i < 16; i++) tokens[i] = (int32_t)((i * 7) % ours.tokens);
    assert_ok(embla_ngram_rows(embla_gpt_ngram_hasher(gpt), tokens, 1, 16, NULL, a));
    assert_ok(embla_ngram_rows(hasher, tokens, 1, 16, NULL, b));
    assert_memory_equal(a, b, 16 * ours.rows_per_token * sizeof *a);
    assert_ok(embla_store_open(cp, NULL, -1, NULL, &store));
    assert_ok(embla_store_describe(store, &info));
    assert_int_equal(info.rows, embla_table_rows(embla_gpt_ngram_table(gpt)));
    embla_store_free(store);
    embla_ngram_free(hasher);
    embla_checkpoint_free(cp);
}

static void it_is_saved_and_opened(void **state)
{
    const batch b = batch_of(13);
    scratch place;
    (void)state;
    scratch_new(&place);
    for (size_t layer = 0; layer < 2; layer++) {
        embla_gpt_shape s = shape_of(layer);
        s.ngram.seed = layer == 0 ? UINT64_MAX - 5 : 77;
        embla_gpt *gpt = model_of(&s);
        assert_ok(embla_gpt_save(gpt, place.folder, NULL));
        embla_gpt *back = opened(&place);
        const embla_gpt_ngram *x = &gpt->shape.ngram, *y = &back->shape.ngram;
        assert_int_equal(x->rows, y->rows);
        assert_int_equal(x->heads, y->heads);
        assert_int_equal(x->orders, y->orders);
        assert_int_equal(x->dim, y->dim);
        assert_int_equal(x->layer, y->layer);
        assert_true(x->seed == y->seed);
        assert_memory_equal(embla_table_row(embla_gpt_ngram_table(gpt), 0),
                            embla_table_row(embla_gpt_ngram_table(back), 0),
                            table_count(gpt) * sizeof(float));
        assert_ok(embla_gpt_reserve(back, BATCH, LENGTH));
        assert_true(loss_of(gpt, &b) == loss_of(back, &b));
        check_hasher(&place, gpt, layer);
        embla_gpt_free(gpt);
        embla_gpt_free(back);
    }
    scratch_free(&place);
}

/* The text of a file with `from` made `to`, which are of one length. */
static void edit(scratch *place, const char *name, const char *from, const char *to)
{
    char text[4096];
    FILE *file = fopen(scratch_path(place, name), "r+");
    assert_non_null(file);
    size_t length = fread(text, 1, sizeof text - 1, file);
    text[length] = 0;
    char *at = strstr(text, from);
    assert_non_null(at);
    assert_int_equal(strlen(from), strlen(to));
    memcpy(at, to, strlen(to));
    rewind(file);
    assert_int_equal(fwrite(text, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
}

static void damaged_settings_are_refused(void **state)
{
    static const struct {
        const char *from, *to, *says;
    } bad[] = {
        {"\"ngram_rows\": 90", "\"ngram_rows\": -3", "-3 rows"},
        {"\"ngram_rows\": 90", "\"ngram_rows\": 91", "the model's sizes require"},
        {"\"ngram_rows\": 90", "\"other_rows\": 90", "is not part of a model"},
        {"\"ngram_heads\"", "\"other_heads\"", "ngram_heads"},
        {"\"ngram_dim\"", "\"other_dim\"", "ngram_dim"},
        {"\"ngram_seed\"", "\"other_seed\"", "seed"},
        {"\"ngram_layer\": 1", "\"ngram_layer\": 2", "ngram.layer is 2"},
        {"\"ngram_layer\"", "\"other_layer\"", "layer"},
        {"\"ngram_orders\": 3", "\"ngram_orders\": 9", "9 tokens"},
    };
    embla_gpt_shape s = shape_of(1);
    embla_gpt *gpt = model_of(&s), *back = NULL;
    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        scratch place;
        embla_checkpoint *cp = NULL;
        scratch_new(&place);
        if (i == 1) s.ngram.rows = 90;
        assert_ok(embla_gpt_save(gpt, place.folder, NULL));
        edit(&place, "config.json", bad[i].from, bad[i].to);
        assert_ok(embla_checkpoint_open(place.folder, NULL, &cp));
        embla_status status = embla_gpt_open(cp, &back);
        if (i == 1 && status == EMBLA_OK) { /* the same primes after all */
            embla_gpt_free(back);
            back = NULL;
        } else {
            assert_true(status == EMBLA_ERR_FORMAT || status == EMBLA_ERR_UNSUPPORTED);
            assert_error_has(bad[i].says);
            assert_null(back);
        }
        embla_checkpoint_free(cp);
        scratch_free(&place);
    }
    embla_gpt_free(gpt);
}

/* ---- decoder ---- */

static void a_decoder_says_the_same(void **state)
{
    enum { LONG = 80 };
    static const size_t pieces[] = {1, 2, 7, 63, 64, 65, 80};
    (void)state;
    for (size_t layer = 0; layer < 2; layer++)
        for (size_t k = 0; k < COUNT_OF(pieces); k++) {
            embla_gpt_shape s = shape_of(layer);
            int32_t tokens[LONG];
            float hidden[DIM];
            uint64_t seed = 20 + k;
            embla_decoder *d = NULL;
            s.positions = LONG;
            s.ngram.orders = 4;
            embla_gpt *gpt = model_of(&s);
            for (size_t i = 0; i < LONG; i++) tokens[i] = (int32_t)check_below(&seed, VOCAB);
            assert_ok(embla_gpt_reserve(gpt, 1, LONG));
            assert_ok(embla_gpt_loss(
                gpt,
                &(embla_gpt_batch){.tokens = tokens, .targets = tokens, .batch = 1, .length = LONG},
                NULL, NULL));
            const float *want = embla_gpt_hidden(gpt);
            assert_ok(embla_decoder_new(gpt, LONG, &d));
            for (int again = 0; again < 2; again++) {
                for (size_t i = 0, n; i < LONG; i += n) {
                    n = LONG - i < pieces[k] ? LONG - i : pieces[k];
                    assert_ok(embla_decoder_append(d, tokens + i, n,
                                                   &(embla_decoder_options){.threads = 1}, hidden));
                    for (size_t c = 0; c < DIM; c++)
                        assert_near(hidden[c], want[(i + n - 1) * DIM + c], 2e-4);
                }
                embla_decoder_reset(d);
                assert_ok(embla_decoder_append(d, tokens + 9, 5,
                                               &(embla_decoder_options){.threads = 1},
                                               NULL)); /* forgotten, too */
                embla_decoder_reset(d);
            }
            embla_decoder_free(d);
            embla_gpt_free(gpt);
        }
}

/* ---- memory ---- */

static void every_allocation_may_fail(void **state)
{
    embla_gpt_shape s = shape_of(1);
    embla_gpt *gpt = NULL;
    embla_gpt_memory plan;
    size_t live = embla_mem_live(), failures = 0;
    (void)state;
    for (size_t n = 1;; n++) {
        embla_mem_fail(n, false);
        embla_status status = embla_gpt_new(&s, 1, 0, &gpt);
        embla_mem_fail(0, false);
        if (status == EMBLA_OK) break;
        assert_int_equal(status, EMBLA_ERR_MEMORY);
        assert_null(gpt);
        assert_int_equal(embla_mem_live(), live);
        failures++;
    }
    assert_true(failures >= 8);
    live = embla_mem_live();
    failures = 0;
    for (size_t n = 1;; n++) {
        embla_mem_fail(n, false);
        embla_status status = embla_gpt_reserve(gpt, BATCH, LENGTH);
        embla_mem_fail(0, false);
        if (status == EMBLA_OK) break;
        assert_int_equal(status, EMBLA_ERR_MEMORY);
        assert_int_equal(embla_mem_live(), live);
        failures++;
    }
    assert_true(failures >= 8);
    embla_mem_fail(1, false);
    assert_status(embla_gpt_plan_memory(&s, 1, 1, &plan), EMBLA_ERR_MEMORY);
    embla_mem_fail(0, false);
    embla_gpt_free(gpt);
}

/* Room that is made anew forgets what was learned in the old one. */
static void more_room_can_be_had(void **state)
{
    const batch b = batch_of(14);
    embla_gpt_shape s = shape_of(0);
    embla_gpt *gpt = model_of(&s);
    learned l;
    (void)state;
    double loss = learn(gpt, &b, 1);
    uint64_t sum = sum_of(gpt);
    assert_ok(embla_gpt_reserve(gpt, BATCH + 1, LENGTH));
    assert_status(embla_gpt_ngram_gradients(gpt, &l.rows, &l.gradients, &l.count),
                  EMBLA_ERR_ARGUMENT);
    assert_true(learn(gpt, &b, 1) == loss);
    assert_true(sum_of(gpt) == sum);
    embla_gpt_free(gpt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_0_stands_for_is_filled_in),
        cmocka_unit_test(shapes_that_do_not_fit_are_refused),
        cmocka_unit_test(it_is_counted),
        cmocka_unit_test(a_model_without_has_none),
        cmocka_unit_test(it_begins_as_the_model_without),
        cmocka_unit_test(the_rows_of_a_batch_are_those_of_the_hasher),
        cmocka_unit_test(documents_are_apart),
        cmocka_unit_test(gradients_are_those_of_differences),
        cmocka_unit_test(gradients_of_rows_are_not_added_up),
        cmocka_unit_test(bits_do_not_depend_on_threads),
        cmocka_unit_test(bits_of_a_large_batch_do_not_depend_on_threads),
        cmocka_unit_test(ahead_changes_nothing_but_speed),
        cmocka_unit_test(bad_batches_ahead_are_refused),
        cmocka_unit_test(rows_learn),
        cmocka_unit_test(shared_rows_are_seen_by_others),
        cmocka_unit_test(bad_paths_are_refused),
        cmocka_unit_test(sharing_may_fail_anywhere),
        cmocka_unit_test(it_is_saved_and_opened),
        cmocka_unit_test(damaged_settings_are_refused),
        cmocka_unit_test(a_decoder_says_the_same),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(more_room_can_be_had),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
