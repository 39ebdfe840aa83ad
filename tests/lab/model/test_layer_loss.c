/* SPDX-License-Identifier: Apache-2.0 */
/* The loss of a head in its two ways, by plain loops and by the engine: against its definition in
 * double, and gradients against central differences of that.
 */
#include "reals.h"

#include "engine.h"

typedef struct {
    size_t n, dim;
    int64_t vocab;
    double weight;
    reals hidden, table, dhidden, dtable;
    int32_t *targets;
    embla_loss_report report;
} head;

static head head_new(size_t n, size_t dim, int64_t vocab)
{
    uint64_t seed = 55;
    head h = {.n = n, .dim = dim, .vocab = vocab};
    h.hidden = reals_new(n * dim, 51);
    h.table = reals_new((size_t)vocab * dim, 52);
    h.dhidden = reals_new(n * dim, 53); /* overwritten */
    h.dtable = reals_new((size_t)vocab * dim, 54);
    h.targets = calloc(n + 1, sizeof *h.targets);
    assert_non_null(h.targets);
    for (size_t i = 0; i < n; i++) {
        h.targets[i] = (int32_t)check_below(&seed, (uint64_t)vocab);
        if (i % 5 == 3) h.targets[i] = EMBLA_TARGET_IGNORE;
    }
    return h;
}

static void head_free(head *h)
{
    reals *all[] = {&h->hidden, &h->table, &h->dhidden, &h->dtable};
    for (size_t i = 0; i < COUNT_OF(all); i++) reals_free(all[i]);
    free(h->targets);
}

static embla_status run_way(head *h, const embla_layer_way *way, bool learn)
{
    return embla_layer_loss(way, h->hidden.f, h->targets, h->n, h->dim, h->table.f, h->vocab,
                            h->weight, learn ? h->dhidden.f : NULL, h->dtable.f, &h->report);
}

static embla_status run(head *h, int threads, bool learn)
{
    embla_layer_way way = reals_way(threads);
    return run_way(h, &way, learn);
}

/* The loss by its definition; *correct is how often the target was the highest. */
static double define(const head *h, int64_t *correct, int64_t *counted)
{
    double loss = 0.0;
    *correct = *counted = 0;
    for (size_t t = 0; t < h->n; t++) {
        double sum = 0.0, at = 0.0, most = -INFINITY;
        int64_t best = 0;
        if (h->targets[t] == EMBLA_TARGET_IGNORE) continue;
        for (int64_t v = 0; v < h->vocab; v++) {
            double logit =
                reals_dot(h->hidden.d + t * h->dim, h->table.d + (size_t)v * h->dim, h->dim);
            sum += exp(logit);
            if (v == h->targets[t]) at = logit;
            if (logit > most) most = logit, best = v;
        }
        loss += log(sum) - at;
        *correct += best == h->targets[t];
        ++*counted;
    }
    return *counted ? loss / (double)*counted : 0.0;
}

static double scalar(void *context)
{
    int64_t correct, counted;
    return define(context, &correct, &counted);
}

static void check_report(const head *h, double tolerance)
{
    int64_t correct, counted;
    double loss = define(h, &correct, &counted);
    const embla_loss_report *report = &h->report;
    assert_near(report->loss, loss, tolerance * (1.0 + loss));
    assert_true(report->z_loss == 0.0);
    assert_int_equal(report->correct, correct);
    assert_int_equal(report->counted, counted);
    assert_int_equal(report->ignored, (int64_t)h->n - counted);
}

/* The definition's gradients in double; dtable is added. */
static void define_back(head *h)
{
    double *p = calloc((size_t)h->vocab, sizeof *p), counted = 0.0;
    assert_non_null(p);
    for (size_t t = 0; t < h->n; t++) counted += h->targets[t] != EMBLA_TARGET_IGNORE;
    for (size_t t = 0; t < h->n; t++) {
        const double *x = h->hidden.d + t * h->dim;
        double *dx = h->dhidden.d + t * h->dim, sum = 0.0;
        for (size_t i = 0; i < h->dim; i++) dx[i] = 0.0;
        if (h->targets[t] == EMBLA_TARGET_IGNORE) continue;
        for (size_t v = 0; v < (size_t)h->vocab; v++)
            sum += p[v] = exp(reals_dot(x, h->table.d + v * h->dim, h->dim));
        for (size_t v = 0; v < (size_t)h->vocab; v++) {
            double d = (p[v] / sum - ((int32_t)v == h->targets[t])) / counted;
            for (size_t i = 0; i < h->dim; i++) {
                dx[i] += d * h->table.d[v * h->dim + i];
                h->dtable.d[v * h->dim + i] += d * x[i];
            }
        }
    }
    free(p);
}

static void check_head(size_t n, size_t dim, int64_t vocab)
{
    head h = head_new(n, dim, vocab), zero = head_new(n, dim, vocab);
    assert_ok(run(&h, 2, true));
    check_report(&h, 2e-6);
    define_back(&h);
    reals_agree(&h.dhidden, 5e-6);
    reals_agree(&h.dtable, 5e-6);
    memset(zero.dtable.f, 0, zero.dtable.n * sizeof(float));
    assert_ok(run(&zero, 2, true));
    reals_derivative(scalar, &h, h.hidden.d, zero.dhidden.f, h.hidden.n, 1 + h.hidden.n / 20, 5e-6);
    reals_derivative(scalar, &h, h.table.d, zero.dtable.f, h.table.n, 1 + h.table.n / 20, 5e-6);
    for (size_t t = 3; t < n; t += 5) /* not counted */
        for (size_t i = 0; i < dim; i++) assert_true(h.dhidden.f[t * dim + i] == 0.0f);
    head_free(&zero);
    head_free(&h);
}

static void the_loss_and_its_gradients_are_those_of_the_definition(void **state)
{
    (void)state;
    check_head(1, 1, 1);
    check_head(3, 4, 2);
    check_head(8, 16, 27);
    check_head(17, 6, 65);
    check_head(130, 17, 100); /* three chunks */
    check_head(70, 24, 1000); /* by the engine, where there is one */
}

static void the_weight_multiplies_gradients_alone(void **state)
{
    static const size_t sizes[][3] = {{9, 8, 30}, {70, 32, 700}};
    (void)state;
    for (size_t s = 0; s < COUNT_OF(sizes); s++) {
        head one = head_new(sizes[s][0], sizes[s][1], (int64_t)sizes[s][2]);
        head two = head_new(sizes[s][0], sizes[s][1], (int64_t)sizes[s][2]);
        two.weight = 0.25;
        memset(one.dtable.f, 0, one.dtable.n * sizeof(float));
        memset(two.dtable.f, 0, two.dtable.n * sizeof(float));
        assert_ok(run(&one, 1, true));
        assert_ok(run(&two, 1, true));
        assert_true(one.report.loss == two.report.loss);
        for (size_t i = 0; i < one.dtable.n; i++)
            assert_near(two.dtable.f[i], 0.25f * one.dtable.f[i], 1e-9);
        for (size_t i = 0; i < one.dhidden.n; i++)
            assert_near(two.dhidden.f[i], 0.25f * one.dhidden.f[i], 1e-8);
        head_free(&one);
        head_free(&two);
    }
}

static void without_gradients_nothing_but_the_report_is_written(void **state)
{
    static const size_t sizes[][3] = {{9, 8, 30}, {70, 32, 700}};
    (void)state;
    for (size_t s = 0; s < COUNT_OF(sizes); s++) {
        head h = head_new(sizes[s][0], sizes[s][1], (int64_t)sizes[s][2]);
        reals kept = reals_new(h.dtable.n, 54);
        assert_ok(run(&h, 1, false));
        assert_memory_equal(h.dtable.f, kept.f, kept.n * sizeof(float));
        double loss = h.report.loss;
        assert_ok(run(&h, 1, true));
        assert_true(h.report.loss == loss);
        reals_free(&kept);
        head_free(&h);
    }
}

static void gradients_may_take_the_place_of_hidden(void **state)
{
    static const size_t sizes[][3] = {{130, 8, 30}, {70, 32, 700}};
    (void)state;
    for (size_t s = 0; s < COUNT_OF(sizes); s++) {
        head h = head_new(sizes[s][0], sizes[s][1], (int64_t)sizes[s][2]);
        embla_layer_way way = reals_way(1);
        assert_ok(run(&h, 1, true));
        assert_ok(embla_layer_loss(&way, h.hidden.f, h.targets, h.n, h.dim, h.table.f, h.vocab, 0.0,
                                   h.hidden.f, NULL, NULL));
        assert_memory_equal(h.hidden.f, h.dhidden.f, h.hidden.n * sizeof(float));
        head_free(&h);
    }
}

static void nothing_counted_is_a_loss_of_0(void **state)
{
    (void)state;
    head h = head_new(6, 4, 9);
    for (size_t i = 0; i < 6; i++) h.targets[i] = EMBLA_TARGET_IGNORE;
    assert_ok(run(&h, 1, true));
    assert_true(h.report.loss == 0.0 && h.report.ignored == 6);
    for (size_t i = 0; i < 24; i++) assert_true(h.dhidden.f[i] == 0.0f);
    h.n = 0;
    assert_ok(run(&h, 1, true));
    assert_int_equal(h.report.counted, 0);
    head_free(&h);
}

static void the_first_of_equal_logits_is_the_choice(void **state)
{
    (void)state;
    head h = head_new(2, 4, 9);
    memset(h.hidden.f, 0, 8 * sizeof(float));
    h.targets[0] = 0, h.targets[1] = 1;
    assert_ok(run(&h, 1, false));
    assert_int_equal(h.report.correct, 1);
    assert_near(h.report.loss, log(9.0), 1e-7);
    head_free(&h);
}

static void a_target_past_the_table_is_refused(void **state)
{
    static const int32_t wrong[] = {9, -1, -99, INT32_MAX};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        head h = head_new(6, 4, 9);
        reals kept = reals_new(24, 53);
        h.targets[5] = wrong[i];
        h.report.counted = 77;
        assert_status(run(&h, 1, true), EMBLA_ERR_RANGE);
        assert_error_has("9 rows");
        assert_memory_equal(h.dhidden.f, kept.f, 24 * sizeof(float));
        assert_int_equal(h.report.counted, 77);
        reals_free(&kept);
        head_free(&h);
    }
}

static void large_logits_keep_their_digits(void **state)
{
    (void)state;
    head h = head_new(7, 8, 12);
    for (size_t i = 0; i < h.hidden.n; i++) h.hidden.d[i] = (double)(h.hidden.f[i] *= 50.0f);
    assert_ok(run(&h, 1, true));
    check_report(&h, 1e-5);
    head_free(&h);
}

static void threads_do_not_change_the_loss(void **state)
{
    static const size_t sizes[][3] = {{9, 8, 30}, {150, 32, 300}, {200, 48, 900}};
    (void)state;
    for (size_t s = 0; s < COUNT_OF(sizes); s++) {
        head first = head_new(sizes[s][0], sizes[s][1], (int64_t)sizes[s][2]);
        for (size_t i = 0; i < COUNT_OF(reals_threads); i++) {
            head other = head_new(sizes[s][0], sizes[s][1], (int64_t)sizes[s][2]);
            head *h = i == 0 ? &first : &other;
            assert_ok(run(h, reals_threads[i], true));
            assert_memory_equal(h->dtable.f, first.dtable.f, first.dtable.n * sizeof(float));
            assert_memory_equal(h->dhidden.f, first.dhidden.f, first.dhidden.n * sizeof(float));
            assert_memory_equal(&h->report, &first.report, sizeof first.report);
            head_free(&other);
        }
        head_free(&first);
    }
}

static void bf16_is_near(void **state)
{
    static const size_t sizes[][3] = {{9, 8, 30}, {70, 32, 700}};
    (void)state;
    for (size_t s = 0; s < COUNT_OF(sizes); s++) {
        head h = head_new(sizes[s][0], sizes[s][1], (int64_t)sizes[s][2]);
        embla_layer_way way = reals_way(1);
        way.compute = EMBLA_BF16;
        assert_ok(run_way(&h, &way, true));
        define_back(&h);
        double loss = scalar(&h);
        assert_near(h.report.loss, loss, 1e-2 * loss);
        assert_true(fabs(h.report.loss - loss) > 1e-6 * loss);
        reals_agree(&h.dhidden, 1e-2);
        head_free(&h);
    }
}

static void the_loss_survives_failed_allocations(void **state)
{
    (void)state;
    head large = head_new(70, 32, 700), small = head_new(64, 16, 300);
    assert_ok(run(&large, 2, true));
    REALS_EACH_ALLOCATION_FAILS(run(&large, 2, true));
    REALS_EACH_ALLOCATION_FAILS(run(&small, 2, true));
    head_free(&large);
    head_free(&small);
}

/* More rows than logits are held at once; where there is no engine, a token at a time. */
static void tables_of_a_million_rows_are_fine(void **state)
{
    size_t vocab = (1 << 20) + 5;
    float hidden[2] = {1.0f, -1.0f}, dhidden[2], *table = calloc(vocab, sizeof *table);
    float *dtable = calloc(vocab, sizeof *dtable);
    const int32_t targets[2] = {3, (int32_t)vocab - 1};
    embla_layer_way way = reals_way(1);
    embla_loss_report report;
    (void)state;
    assert_true(table && dtable);
    assert_ok(embla_layer_loss(&way, hidden, targets, 2, 1, table, (int64_t)vocab, 0.0, dhidden,
                               dtable, &report));
    assert_near(report.loss, log((double)vocab), 1e-6);
    assert_near(dtable[3], -0.5, 1e-5);
    assert_near(dtable[vocab - 1], 0.5, 1e-5);
    free(table);
    free(dtable);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_loss_and_its_gradients_are_those_of_the_definition),
        cmocka_unit_test(the_weight_multiplies_gradients_alone),
        cmocka_unit_test(without_gradients_nothing_but_the_report_is_written),
        cmocka_unit_test(gradients_may_take_the_place_of_hidden),
        cmocka_unit_test(nothing_counted_is_a_loss_of_0),
        cmocka_unit_test(the_first_of_equal_logits_is_the_choice),
        cmocka_unit_test(a_target_past_the_table_is_refused),
        cmocka_unit_test(large_logits_keep_their_digits),
        cmocka_unit_test(threads_do_not_change_the_loss),
        cmocka_unit_test(bf16_is_near),
        cmocka_unit_test(tables_of_a_million_rows_are_fine),
        cmocka_unit_test(the_loss_survives_failed_allocations),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
