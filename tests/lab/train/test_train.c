/* SPDX-License-Identifier: Apache-2.0 */
/* A training, step by step: the arithmetic of a step against a second one written here, the same
 * bits for any number of threads, a loss that falls, validation, and all that is refused. The
 * text is names made of syllables, the same on every machine.
 */
#include <math.h>
#include <stdio.h>

#include "check.h"
#include "engine.h"
#include "gpt_shapes.h"
#include "name_corpus.h"
#include "scratch.h"
#include "slow.h"

#include "base/checksum.h"
#include "base/mem.h"
#include "files/io.h"
#include "train/train.h"

/* ---- what there is to train on ---- */

static embla_corpus *corpus_of(const embla_corpus_options *options, size_t lines)
{
    char *text = malloc(lines * NAME_MOST);
    assert_non_null(text);
    embla_corpus *corpus = open_text(options, text, write_names(text, lines, 16, 11));
    free(text);
    return corpus;
}

static const embla_corpus_options documents = {.documents = true, .validation = 0.1, .seed = 3};
static const embla_corpus_options stream = {.validation = 0.1, .seed = 3};

/* A training and what it is made of. */
typedef struct {
    embla_gpt *gpt;
    embla_corpus *corpus;
    embla_train *train;
} trained;

typedef struct {
    const char *name;
    embla_gpt_shape shape;
    embla_train_options options;
    bool documents;
} variant;

#define RATE(r, n)                                                                                 \
    {                                                                                              \
        .rate = (r), .final = (r) / 10, .steps = (n), .warm_up = 5, .kind = EMBLA_SCHEDULE_COSINE  \
    }

static const variant variants[] = {
    {"microgpt",
     {.dim = 16, .layers = 1, .heads = 4, .hidden = 64, .positions = 16, MICROGPT_KIND},
     {.batch = 1, .schedule = RATE(0.01, 200), .beta1 = 0.85, .beta2 = 0.99},
     true},
    {"gpt2, dropout",
     {.dim = 64, .layers = 2, .heads = 4, .positions = 64, .biases = true, .dropout = 0.1},
     {.batch = 4,
      .schedule = RATE(0.003, 200),
      .decay = 0.1,
      .clip = 1.0,
      .seed = 9,
      .engine = EMBLA_TRAIN_ENGINE_LIBRARY},
     false},
    {"llama",
     {.dim = 64,
      .layers = 2,
      .heads = 4,
      .kv_heads = 2,
      .hidden = 96,
      .positions = 64,
      LLAMA_KIND,
      .untied = true},
     {.batch = 3, .length = 61, .schedule = RATE(0.003, 200), .decay = 0.1, .clip = 0.5},
     false},
    {"gpt2, bf16",
     {.dim = 64, .layers = 1, .heads = 4, .positions = 64, .biases = true},
     {.batch = 4, .schedule = RATE(0.003, 200), .compute = EMBLA_BF16, .clip = 1.0},
     false},
    {"n-grams",
     {.dim = 32,
      .layers = 2,
      .heads = 4,
      .positions = 32,
      .ngram = {.rows = 500, .heads = 2, .layer = 1}},
     {.batch = 4, .schedule = RATE(0.003, 200), .decay = 0.1, .clip = 0.5},
     false},
    {"documents, biases",
     {.dim = 16, .layers = 1, .heads = 2, .positions = 16, .biases = true},
     {.batch = 2, .schedule = RATE(0.01, 200), .decay = 0.1, .clip = 0.5},
     true},
};

static trained start(const variant *v, int threads)
{
    trained t = {0};
    embla_gpt_shape shape = v->shape;
    embla_train_options options = v->options;
    t.corpus = corpus_of(v->documents ? &documents : &stream, 400);
    if (shape.vocab == 0) shape.vocab = embla_corpus_vocab(t.corpus);
    options.threads = threads;
    assert_ok(embla_gpt_new(&shape, 1, 0.08, &t.gpt));
    assert_ok(embla_train_new(t.gpt, t.corpus, &options, &t.train));
    return t;
}

static void stop(trained *t)
{
    embla_train_free(t->train);
    embla_gpt_free(t->gpt);
    embla_corpus_free(t->corpus);
}

/* All numbers that a step can change, one after the other. */
static embla_checksum sum_of(const trained *t)
{
    embla_checksum_state state;
    size_t bytes = t->gpt->numbers * sizeof(float);
    embla_checksum_begin(&state);
    embla_checksum_add(&state, t->gpt->weights, bytes);
    embla_checksum_add(&state, t->train->mean, bytes);
    embla_checksum_add(&state, t->train->squares, bytes);
    embla_table *table = embla_gpt_ngram_table(t->gpt);
    if (table) {
        embla_optim_state squares;
        assert_ok(embla_optim_state_at(t->train->ngram, 0, &squares));
        embla_checksum_add(&state, squares.values, (size_t)squares.rows * sizeof(float));
        embla_checksum_add(&state, embla_table_data(table),
                           (size_t)embla_table_rows(table) * embla_table_row_bytes(table));
    }
    return embla_checksum_end(&state);
}

static void assert_same_sum(const char *name, embla_checksum a, embla_checksum b)
{
    if (a.high != b.high || a.low != b.low)
        fail_msg("%s: %016" PRIx64 "%016" PRIx64 " is not %016" PRIx64 "%016" PRIx64, name, a.high,
                 a.low, b.high, b.low);
}

/* ---- the same bits ---- */

static embla_checksum run(const variant *v, int threads, int steps, double *last)
{
    trained t = start(v, threads);
    embla_train_report r = {0};
    embla_checksum before = sum_of(&t);
    for (int i = 0; i < steps; i++) {
        assert_ok(embla_train_step(t.train, &r));
        assert_int_equal(r.step, i);
        assert_false(r.skipped);
        assert_true(isfinite(r.loss) && r.norm > 0 && r.tokens > 0);
    }
    embla_checksum after = sum_of(&t);
    assert_true(before.low != after.low);
    *last = r.loss;
    stop(&t);
    return after;
}

static void any_number_of_threads_gives_the_same_bits(void **state)
{
    static const int few[] = {3, 8};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(variants); i++) {
        const variant *v = &variants[i];
        double one = 0, two = 0;
        int steps = steps_of(i < 3 ? 200 : 50);
        embla_checksum a = run(v, 1, steps, &one), b = run(v, 2, steps, &two);
        assert_same_sum(v->name, b, a);
        assert_true(one == two);
        print_message("%-16s %016" PRIx64 "%016" PRIx64 "  loss %.6f\n", v->name, a.high, a.low,
                      one);
        embla_checksum first = run(v, 1, 4, &one);
        for (size_t k = 0; k < COUNT_OF(few); k++)
            assert_same_sum(v->name, run(v, few[k], 4, &two), first);
    }
}

static void what_is_learned_does_not_depend_on_what_was_asked_between(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(variants); i++) {
        trained a = start(&variants[i], 1), b = start(&variants[i], 1);
        double loss;
        for (int k = 0; k < 5; k++) {
            assert_ok(embla_train_step(a.train, NULL));
            assert_ok(embla_train_validate(a.train, 2, &loss));
            assert_ok(embla_train_step(b.train, NULL));
        }
        assert_same_sum(variants[i].name, sum_of(&a), sum_of(&b));
        stop(&a);
        stop(&b);
    }
}

/* ---- the arithmetic of a step ---- */

/* Weights, means and squares in double, and what a second model learned. */
typedef struct {
    size_t n;
    double *w, *a, *b;
} second;

static double number_at(const char *block, size_t i)
{
    return (double)((const float *)(const void *)block)[i];
}

static second second_of(const embla_gpt *gpt)
{
    second s = {.n = gpt->numbers};
    s.w = calloc(3 * s.n, sizeof *s.w);
    assert_non_null(s.w);
    s.a = s.w + s.n;
    s.b = s.a + s.n;
    for (size_t i = 0; i < s.n; i++) s.w[i] = number_at(gpt->weights, i);
    return s;
}

/* One step by the book: Kingma and Ba with decoupled decay, gradients shortened to clip. */
static double second_step(second *s, const embla_gpt *twin, const embla_train_options *o,
                          int64_t step, double rate)
{
    double length = 0;
    for (size_t i = 0; i < s->n; i++) length += pow(number_at(twin->gradients, i), 2);
    length = sqrt(length);
    double factor = o->clip > 0 && length > o->clip ? o->clip / length : 1;
    for (size_t p = 0; p < twin->part_count; p++) {
        const embla_gpt_part *part = &twin->parts[p];
        size_t end = part->at + (size_t)part->rows * part->dim;
        for (size_t i = part->at; i < end; i++) {
            double g = factor * number_at(twin->gradients, i);
            s->a[i] = o->beta1 * s->a[i] + (1 - o->beta1) * g;
            s->b[i] = o->beta2 * s->b[i] + (1 - o->beta2) * g * g;
            double mean = s->a[i] / (1 - pow(o->beta1, (double)step + 1));
            double squares = s->b[i] / (1 - pow(o->beta2, (double)step + 1));
            if (part->rows > 1) s->w[i] -= rate * o->decay * s->w[i];
            s->w[i] -= rate * mean / (sqrt(squares) + o->epsilon);
        }
    }
    return length;
}

/* A step is about ten operations on floats, each off by at most 6e-8: of the weight, or of what the
 * step moves it by, which is the rate or a little more. */
static void follow(const variant *v)
{
    trained t = start(v, 1);
    const embla_train_options *o = &t.train->options;
    embla_gpt *twin = NULL;
    second s = second_of(t.gpt);
    int32_t tokens[512], targets[512];
    assert_true(o->batch * o->length <= 512);
    assert_ok(embla_gpt_new(&t.gpt->shape, 1, 0.08, &twin));
    assert_ok(embla_gpt_reserve(twin, o->batch, o->length));
    for (int64_t step = 0; step < 8; step++) {
        const embla_gpt_options how = {.compute = o->compute,
                                       .seed = o->seed,
                                       .step = step,
                                       .no_engine = o->engine == EMBLA_TRAIN_ENGINE_NONE};
        embla_train_report r;
        embla_loss_report loss;
        size_t used;
        double rate;
        assert_ok(embla_corpus_batch(
            t.corpus, &(embla_corpus_request){.step = step, .batch = o->batch, .length = o->length},
            tokens, targets, &used));
        memcpy(twin->weights, t.gpt->weights, twin->numbers * sizeof(float));
        embla_gpt_zero_gradients(twin);
        assert_ok(embla_gpt_backward(
            twin,
            &(embla_gpt_batch){
                .tokens = tokens, .targets = targets, .batch = o->batch, .length = used},
            &how, &loss));
        assert_ok(embla_schedule_rate(&o->schedule, step, &rate));
        double length = second_step(&s, twin, o, step, rate);
        assert_ok(embla_train_step(t.train, &r));
        assert_true(r.loss == loss.loss && r.rate == rate && r.tokens == loss.counted);
        assert_near(r.norm, length, 1e-6 * length);
        for (size_t i = 0; i < s.n; i++) {
            assert_near(number_at(t.gpt->weights, i), s.w[i], 1.5e-7 * fabs(s.w[i]) + 2e-6 * rate);
            /* means are sums of gradients with both signs: off by a share of their size */
            assert_near(number_at(t.train->mean, i), s.a[i], 1e-6 * (fabs(s.a[i]) + sqrt(s.b[i])));
            assert_near(number_at(t.train->squares, i), s.b[i], 2e-6 * s.b[i]);
            s.w[i] = number_at(t.gpt->weights, i);
        }
    }
    assert_int_equal(embla_train_steps(t.train), 8);
    free(s.w);
    embla_gpt_free(twin);
    stop(&t);
}

static void a_step_is_adamw_by_the_book(void **state)
{
    (void)state;
    follow(&variants[0]);
    follow(&variants[1]);
    follow(&variants[2]);
    follow(&variants[5]);
}

static void gaps_between_tensors_and_gradients_are_zero_after_steps(void **state)
{
    static const embla_gpt_shape odd = {
        .dim = 6, .layers = 2, .heads = 2, .hidden = 5, .positions = 7, .biases = true};
    const variant v = {"odd", odd, {.batch = 2, .schedule = RATE(0.01, 20), .decay = 0.5}, true};
    trained t = start(&v, 1);
    size_t at = 0, gaps = 0;
    (void)state;
    for (int i = 0; i < 5; i++) assert_ok(embla_train_step(t.train, NULL));
    for (size_t p = 0; p <= t.gpt->part_count; p++) {
        const embla_gpt_part *part = &t.gpt->parts[p];
        size_t begins = p < t.gpt->part_count ? part->at : t.gpt->numbers;
        for (; at < begins; at++, gaps++) assert_true(number_at(t.gpt->weights, at) == 0);
        if (p < t.gpt->part_count) at += (size_t)part->rows * part->dim;
    }
    assert_true(gaps > 0);
    for (size_t i = 0; i < t.gpt->numbers; i++) assert_true(number_at(t.gpt->gradients, i) == 0);
    stop(&t);
}

static void rows_of_ngrams_move_by_row_wise_adagrad(void **state)
{
    const variant *v = &variants[4];
    trained t = start(v, 1), twin = start(v, 1);
    const embla_train_options *o = &t.train->options;
    embla_table *table = embla_gpt_ngram_table(t.gpt), *other = embla_gpt_ngram_table(twin.gpt);
    size_t dim = embla_table_dim(table), rows = (size_t)embla_table_rows(table);
    double *w = calloc(rows * dim, sizeof *w), *squares = calloc(rows, sizeof *squares);
    int32_t tokens[256], targets[256];
    bool moved = false;
    (void)state;
    assert_true(w && squares && o->batch * o->length <= 256);
    for (int64_t step = 0; step < 6; step++) {
        const embla_gpt_options how = {.step = step, .no_engine = true};
        const int64_t *named = NULL;
        const float *g = NULL;
        size_t used, count = 0;
        double rate, length = 0;
        embla_train_report r;
        assert_ok(embla_corpus_batch(
            t.corpus, &(embla_corpus_request){.step = step, .batch = o->batch, .length = o->length},
            tokens, targets, &used));
        memcpy(twin.gpt->weights, t.gpt->weights, t.gpt->numbers * sizeof(float));
        memcpy(embla_table_data(other), embla_table_data(table), rows * dim * sizeof(float));
        embla_gpt_zero_gradients(twin.gpt);
        assert_ok(embla_gpt_backward(
            twin.gpt,
            &(embla_gpt_batch){
                .tokens = tokens, .targets = targets, .batch = o->batch, .length = used},
            &how, NULL));
        assert_ok(embla_gpt_ngram_gradients(twin.gpt, &named, &g, &count));
        assert_true(count > 0);
        for (size_t i = 0; i < t.gpt->numbers; i++)
            length += pow(number_at(twin.gpt->gradients, i), 2);
        for (size_t i = 0; i < count * dim; i++) length += (double)g[i] * (double)g[i];
        length = sqrt(length);
        double factor = length > o->clip ? o->clip / length : 1;
        assert_ok(embla_schedule_rate(&o->schedule, step, &rate));
        for (size_t i = 0; i < count; i++) {
            double mean = 0, *row = w + (size_t)named[i] * dim;
            for (size_t k = 0; k < dim; k++) mean += pow(factor * (double)g[i * dim + k], 2);
            squares[named[i]] += mean / (double)dim;
            for (size_t k = 0; k < dim; k++)
                row[k] -= 0.05 * rate / 0.003 * factor * (double)g[i * dim + k] /
                          (sqrt(squares[named[i]]) + 1e-10);
        }
        assert_ok(embla_train_step(t.train, &r));
        assert_near(r.norm, length, 1e-6 * length);
        const float *now = embla_table_data(table);
        for (size_t i = 0; i < rows * dim; i++) {
            assert_near(now[i], w[i], 1e-6);
            moved = moved || now[i] != 0;
            w[i] = (double)now[i];
        }
    }
    assert_true(moved);
    free(w);
    free(squares);
    stop(&t);
    stop(&twin);
}

/* ---- learning ---- */

static void the_loss_falls(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(variants); i++) {
        trained t = start(&variants[i], 1);
        int steps = steps_of(200), share = steps / 5;
        double first = 0, last = 0, before = 0, after = 0;
        assert_ok(embla_train_validate(t.train, 0, &before));
        for (int k = 0; k < steps; k++) {
            embla_train_report r;
            assert_ok(embla_train_step(t.train, &r));
            if (k < share) first += r.loss / share;
            if (k >= steps - share) last += r.loss / share;
        }
        assert_ok(embla_train_validate(t.train, 0, &after));
        print_message("%-16s loss %.3f -> %.3f, validation %.3f -> %.3f\n", variants[i].name, first,
                      last, before, after);
        assert_true(last < first && after < before);
        if (!SLOW_BUILD && !getenv("EMBLA_TEST_SLOW")) assert_true(last < first - 0.2);
        stop(&t);
    }
}

static void steps_past_the_last_go_on_at_its_rate(void **state)
{
    variant v = variants[0];
    embla_train_report r;
    (void)state;
    v.options.schedule =
        (embla_schedule){.rate = 0.01, .final = 0.001, .steps = 3, .kind = EMBLA_SCHEDULE_LINEAR};
    trained t = start(&v, 1);
    for (int i = 0; i < 5; i++) {
        assert_ok(embla_train_step(t.train, &r));
        assert_near(r.rate, i == 0 ? 0.01 : i == 1 ? 0.0055 : 0.001, 1e-15);
    }
    stop(&t);
}

/* ---- gradients that are no numbers ---- */

static void a_gradient_that_is_not_finite_changes_nothing(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(variants); i++) {
        trained t = start(&variants[i], 1), calm = start(&variants[i], 1);
        embla_train_report r = {0};
        assert_ok(embla_train_step(t.train, NULL));
        assert_ok(embla_train_step(calm.train, NULL));
        /* of token 0 the first number: not every batch looks it up, but the head does */
        float *first = embla_gpt_weight(t.gpt, embla_gpt_head_slot(t.gpt)), kept = *first;
        *first = NAN;
        embla_checksum before = sum_of(&t);
        assert_ok(embla_train_step(t.train, &r));
        assert_true(r.skipped && !isfinite(r.norm));
        assert_int_equal(r.step, 1);
        assert_same_sum(variants[i].name, sum_of(&t), before);
        assert_int_equal(embla_train_steps(t.train), 2);
        *first = kept;
        /* The next is made as if that one had never been: AdamW has counted one. */
        calm.train->step = 2;
        assert_ok(embla_train_step(t.train, &r));
        assert_false(r.skipped);
        assert_ok(embla_train_step(calm.train, NULL));
        assert_same_sum(variants[i].name, sum_of(&t), sum_of(&calm));
        stop(&t);
        stop(&calm);
    }
}

static void a_training_that_diverges_is_an_error(void **state)
{
    (void)state;
    trained t = start(&variants[0], 1);
    embla_train_report r = {0};
    assert_ok(embla_train_check(t.train));
    assert_ok(embla_train_step(t.train, NULL));
    assert_ok(embla_train_check(t.train));
    float *first = embla_gpt_weight(t.gpt, embla_gpt_head_slot(t.gpt)), kept = *first;
    *first = NAN;
    assert_status(embla_train_check(t.train), EMBLA_ERR_RANGE);
    assert_error_has("the training has diverged: row 0 of '");
    assert_ok(embla_train_step(t.train, NULL));
    *first = kept;
    assert_ok(embla_train_check(t.train)); /* one step of two */
    *first = INFINITY;
    for (int i = 1; i < 99; i++) assert_ok(embla_train_step(t.train, NULL));
    *first = kept;
    assert_status(embla_train_check(t.train), EMBLA_ERR_RANGE);
    assert_error_has("the gradients of the last 99 of 100 steps are not finite");
    *first = INFINITY;
    assert_status(embla_train_step(t.train, &r), EMBLA_ERR_RANGE);
    assert_error_has("the gradients of the last 100 steps are not finite");
    assert_int_equal(r.step, 100);
    assert_int_equal(embla_train_steps(t.train), 101);
    *first = kept;
    assert_ok(embla_train_step(t.train, NULL));
    assert_ok(embla_train_check(t.train)); /* it learns again */
    stop(&t);
}

/* ---- validation ---- */

static void validation_is_the_mean_over_counted_targets(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(variants); i++) {
        trained t = start(&variants[i], 1);
        const embla_train_options *o = &t.train->options;
        int32_t tokens[512], targets[512];
        double sum = 0, one = 0, loss = 0;
        int64_t counted = 0, n = 0;
        for (;; n++) {
            size_t used = 0;
            embla_loss_report r;
            const embla_gpt_options how = {.compute = o->compute,
                                           .no_engine = o->engine == EMBLA_TRAIN_ENGINE_NONE};
            if (n == 1) one = sum / (double)counted;
            if (embla_corpus_batch(
                    t.corpus,
                    &(embla_corpus_request){
                        .step = n, .batch = o->batch, .length = o->length, .validation = true},
                    tokens, targets, &used) != EMBLA_OK)
                break;
            assert_ok(embla_gpt_loss(
                t.gpt,
                &(embla_gpt_batch){
                    .tokens = tokens, .targets = targets, .batch = o->batch, .length = used},
                &how, &r));
            sum += r.loss * (double)r.counted;
            counted += r.counted;
        }
        assert_true(n > 1);
        assert_ok(embla_train_validate(t.train, 0, &loss));
        assert_true(loss == sum / (double)counted);
        assert_ok(embla_train_validate(t.train, 1, &loss));
        assert_true(loss == one);
        assert_ok(embla_train_validate(t.train, 100000, &loss));
        assert_true(loss == sum / (double)counted);
        stop(&t);
    }
}

static void a_corpus_that_keeps_nothing_has_no_validation(void **state)
{
    const embla_corpus_options none = {.documents = true};
    const embla_train_options options = {.batch = 1, .schedule = {.rate = 0.01}};
    trained t = {.corpus = corpus_of(&none, 20)};
    embla_gpt_shape shape = variants[0].shape;
    double loss = 7;
    (void)state;
    shape.vocab = embla_corpus_vocab(t.corpus);
    assert_ok(embla_gpt_new(&shape, 1, 0, &t.gpt));
    assert_ok(embla_train_new(t.gpt, t.corpus, &options, &t.train));
    assert_status(embla_train_validate(t.train, 0, &loss), EMBLA_ERR_NOT_FOUND);
    assert_error_has("tokens is set aside for validation");
    assert_true(loss == 7);
    assert_status(embla_train_validate(t.train, 0, NULL), EMBLA_ERR_ARGUMENT);
    assert_status(embla_train_validate(NULL, 0, &loss), EMBLA_ERR_ARGUMENT);
    stop(&t);
}

/* ---- options ---- */

static void what_0_stands_for_is_filled_in(void **state)
{
    variant v = variants[0];
    (void)state;
    v.options = (embla_train_options){.batch = 2, .schedule = {.rate = 0.5}};
    trained t = start(&v, 3);
    const embla_train_options *o = &t.train->options;
    assert_int_equal(o->length, 16);
    assert_int_equal(o->threads, 3);
    assert_int_equal(o->compute, EMBLA_F32);
    assert_true(o->beta1 == 0.9 && o->beta2 == 0.95 && o->epsilon == 1e-8 && o->decay == 0);
    assert_true(o->clip == 0 && o->ngram_rate == 0.05);
    assert_int_equal(o->engine, EMBLA_TRAIN_ENGINE_NONE); /* the model is small */
    embla_train_options described;
    assert_ok(embla_train_describe(t.train, &described));
    assert_memory_equal(&described, o, sizeof described);
    stop(&t);
    assert_status(embla_train_describe(NULL, &described), EMBLA_ERR_ARGUMENT);
    assert_error_has("embla_train_describe: train is NULL");
    assert_int_equal(embla_train_steps(NULL), 0);
    embla_train_free(NULL);
    assert_status(embla_train_step(NULL, NULL), EMBLA_ERR_ARGUMENT);
}

static void refuse(embla_gpt *gpt, const embla_corpus *corpus, embla_train_options options,
                   embla_status wanted, const char *sentence)
{
    embla_train *train = (embla_train *)(void *)&options;
    size_t live = embla_mem_live();
    assert_status(embla_train_new(gpt, corpus, &options, &train), wanted);
    assert_error_has(sentence);
    assert_ptr_equal(train, &options);
    assert_int_equal(embla_mem_live(), live);
}

static void what_does_not_fit_is_refused(void **state)
{
    const embla_train_options good = {.batch = 2, .schedule = {.rate = 0.1}};
    embla_corpus *corpus = corpus_of(&documents, 30), *tiny = corpus_of(&stream, 3);
    embla_gpt_shape shape = variants[0].shape;
    embla_gpt *gpt = NULL, *small = NULL, *longer = NULL;
    embla_train *train = NULL;
    (void)state;
    shape.vocab = embla_corpus_vocab(corpus);
    assert_ok(embla_gpt_new(&shape, 1, 0, &gpt));
    shape.vocab--;
    assert_ok(embla_gpt_new(&shape, 1, 0, &small));
    shape.vocab++;
    shape.positions = 4096;
    assert_ok(embla_gpt_new(&shape, 1, 0, &longer));
    assert_status(embla_train_new(NULL, corpus, &good, &train), EMBLA_ERR_ARGUMENT);
    assert_error_has("embla_train_new: gpt is NULL");
    assert_status(embla_train_new(gpt, NULL, &good, &train), EMBLA_ERR_ARGUMENT);
    assert_error_has("embla_train_new: corpus is NULL");
    assert_status(embla_train_new(gpt, corpus, NULL, &train), EMBLA_ERR_ARGUMENT);
    assert_error_has("embla_train_new: options is NULL");
    assert_status(embla_train_new(gpt, corpus, &good, NULL), EMBLA_ERR_ARGUMENT);
    assert_error_has("out is NULL");
#define BAD(field, value, status, sentence)                                                        \
    do {                                                                                           \
        embla_train_options bad = good;                                                            \
        bad.field = (value);                                                                       \
        refuse(gpt, corpus, bad, status, sentence);                                                \
    } while (0)
    BAD(batch, 0, EMBLA_ERR_ARGUMENT, "batch is 0");
    BAD(batch, (size_t)1 << 40, EMBLA_ERR_ARGUMENT, "batch is 1099511627776");
    BAD(length, 17, EMBLA_ERR_SHAPE, "length is 17, but the model has 16 positions");
    BAD(beta1, 1.0, EMBLA_ERR_ARGUMENT, "beta1 is 1");
    BAD(beta1, -0.1, EMBLA_ERR_ARGUMENT, "beta1 is -0.1");
    BAD(beta2, NAN, EMBLA_ERR_ARGUMENT, "beta2 is ");
    BAD(epsilon, -1.0, EMBLA_ERR_ARGUMENT, "epsilon is -1");
    BAD(epsilon, 1e-60, EMBLA_ERR_ARGUMENT, "it must fit in an f32");
    BAD(decay, INFINITY, EMBLA_ERR_ARGUMENT, "decay is inf");
    BAD(clip, -1.0, EMBLA_ERR_ARGUMENT, "clip is -1");
    BAD(ngram_rate, -1.0, EMBLA_ERR_ARGUMENT, "ngram_rate is -1");
    BAD(compute, EMBLA_F16, EMBLA_ERR_UNSUPPORTED, "f32 or bf16");
    BAD(threads, -1, EMBLA_ERR_ARGUMENT, "-1");
    BAD(schedule.rate, -1.0, EMBLA_ERR_ARGUMENT, "is -1; it must be");
    BAD(schedule.kind, EMBLA_SCHEDULE_COSINE, EMBLA_ERR_ARGUMENT, "0 steps");
    BAD(engine, (embla_train_engine)3, EMBLA_ERR_ARGUMENT, "engine is 3");
    embla_train_options sampled = good;
    sampled.engine = EMBLA_TRAIN_ENGINE_NONE;
    sampled.negatives = 3;
    refuse(gpt, corpus, sampled, EMBLA_ERR_ARGUMENT, "3 sampled tokens needs an engine");
    refuse(small, corpus, good, EMBLA_ERR_SHAPE, "different tokens, but the model's vocabulary is");
    refuse(longer, tiny, good, EMBLA_ERR_SHAPE, "sequences of 4096 tokens");
    embla_corpus_free(corpus);
    embla_corpus_free(tiny);
    embla_gpt_free(gpt);
    embla_gpt_free(small);
    embla_gpt_free(longer);
}

static void a_rate_that_an_f32_cannot_hold_fails_before_anything_moves(void **state)
{
    variant v = variants[0];
    embla_train_report r = {.loss = 7};
    (void)state;
    v.options.schedule = (embla_schedule){.rate = 1e300};
    trained t = start(&v, 1);
    embla_checksum before = sum_of(&t);
    assert_status(embla_train_step(t.train, &r), EMBLA_ERR_ARGUMENT);
    assert_error_has("does not fit in an f32");
    assert_same_sum("rate", sum_of(&t), before);
    assert_true(r.loss == 7 && embla_train_steps(t.train) == 0);
    t.train->step = EMBLA_TRAIN_STEPS_MOST;
    assert_status(embla_train_step(t.train, &r), EMBLA_ERR_ARGUMENT);
    assert_error_has("9007199254740992");
    stop(&t);
}

/* ---- memory ---- */

static void every_allocation_may_fail(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(variants); i++) {
        const variant *v = &variants[i];
        embla_corpus *corpus = corpus_of(v->documents ? &documents : &stream, 50);
        embla_gpt_shape shape = v->shape;
        size_t failed = 0, before = embla_mem_live();
        shape.vocab = embla_corpus_vocab(corpus);
        for (size_t at = 1;; at++, failed++) {
            embla_gpt *gpt = NULL;
            embla_train *train = NULL;
            assert_ok(embla_gpt_new(&shape, 1, 0, &gpt));
            size_t live = embla_mem_live();
            embla_mem_fail(at, false);
            embla_status status = embla_train_new(gpt, corpus, &v->options, &train);
            embla_mem_fail(0, false);
            if (status == EMBLA_OK) {
                embla_train_free(train);
                embla_gpt_free(gpt);
                break;
            }
            assert_status(status, EMBLA_ERR_MEMORY);
            assert_null(train);
            /* room that the model made for itself it keeps */
            assert_true(embla_mem_live() >= live);
            embla_gpt_free(gpt);
            assert_int_equal(embla_mem_live(), before);
        }
        assert_true(failed >= 5);
        assert_int_equal(embla_mem_live(), before);
        embla_corpus_free(corpus);
    }
}

static void a_step_that_fails_for_want_of_memory_can_be_made_again(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(variants); i++) {
        trained t = start(&variants[i], 1), calm = start(&variants[i], 1);
        size_t live = embla_mem_live(), failed = 0;
        for (int step = 0; step < 3; step++) {
            assert_ok(embla_train_step(calm.train, NULL));
            for (size_t at = 1;; at++, failed++) {
                embla_checksum before = sum_of(&t);
                embla_mem_fail(at, false);
                embla_status status = embla_train_step(t.train, NULL);
                embla_mem_fail(0, false);
                if (status == EMBLA_OK) break;
                assert_status(status, EMBLA_ERR_MEMORY);
                assert_same_sum("a step that failed", sum_of(&t), before);
                assert_int_equal(embla_train_steps(t.train), step);
            }
            /* both models keep scratch memory, and rounded weights, from the first step on */
            assert_true(embla_mem_live() <= live + (step == 0 ? 4 : 0));
            live = embla_mem_live();
            assert_same_sum(variants[i].name, sum_of(&t), sum_of(&calm));
        }
        print_message("%-16s %zu allocations failed in 3 steps\n", variants[i].name, failed);
        if (i == 0) assert_int_equal(failed, 0); /* a small model takes nothing at all */
        stop(&t);
        stop(&calm);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_number_of_threads_gives_the_same_bits),
        cmocka_unit_test(what_is_learned_does_not_depend_on_what_was_asked_between),
        cmocka_unit_test(a_step_is_adamw_by_the_book),
        cmocka_unit_test(gaps_between_tensors_and_gradients_are_zero_after_steps),
        cmocka_unit_test(rows_of_ngrams_move_by_row_wise_adagrad),
        cmocka_unit_test(the_loss_falls),
        cmocka_unit_test(steps_past_the_last_go_on_at_its_rate),
        cmocka_unit_test(a_gradient_that_is_not_finite_changes_nothing),
        cmocka_unit_test(a_training_that_diverges_is_an_error),
        cmocka_unit_test(validation_is_the_mean_over_counted_targets),
        cmocka_unit_test(a_corpus_that_keeps_nothing_has_no_validation),
        cmocka_unit_test(what_0_stands_for_is_filled_in),
        cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(a_rate_that_an_f32_cannot_hold_fails_before_anything_moves),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(a_step_that_fails_for_want_of_memory_can_be_made_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
