/* SPDX-License-Identifier: Apache-2.0 */
/* Adaptive softmax against the definition in double, its gradients against central differences
 * of that definition, the same bits for any number of threads, and what is refused.
 */
#include <math.h>

#include "base/mem.h"
#include "check.h"
#include "embla_learn.h"
#include "learn/lanes.h"
#include "learn/sampled.h"

/* ---- the definition, in double ---- */

typedef struct {
    size_t dim, clusters;
    int64_t begins[8];  /* as in adaptive.c */
    size_t widths[8];   /* numbers in a row of cluster i */
    double *tables[16]; /* as embla_adaptive_table */
} truth;

static size_t table_rows(const truth *t, size_t n)
{
    if (n == 0) return (size_t)t->begins[0] + t->clusters;
    size_t i = (n - 1) / 2;
    return n % 2 == 1 ? t->widths[i] : (size_t)(t->begins[i + 1] - t->begins[i]);
}

static size_t table_dim(const truth *t, size_t n)
{
    return n > 0 && n % 2 == 0 ? t->widths[(n - 1) / 2] : t->dim;
}

static truth truth_of(embla_adaptive *adaptive, int64_t rows, size_t dim, const int64_t *cutoffs,
                      size_t clusters)
{
    truth t = {.dim = dim, .clusters = clusters};
    for (size_t i = 0; i < clusters; i++) t.begins[i] = cutoffs[i];
    t.begins[clusters] = rows;
    for (size_t n = 0; n <= 2 * clusters; n++) {
        const embla_table *table = embla_adaptive_table(adaptive, n);
        assert_non_null(table);
        if (n % 2 == 1) t.widths[(n - 1) / 2] = (size_t)embla_table_rows(table);
        assert_int_equal(embla_table_rows(table), table_rows(&t, n));
        assert_int_equal(embla_table_dim(table), table_dim(&t, n));
        size_t numbers = table_rows(&t, n) * table_dim(&t, n);
        const float *data = embla_table_row(table, 0);
        t.tables[n] = malloc(numbers * sizeof(double));
        assert_non_null(t.tables[n]);
        for (size_t i = 0; i < numbers; i++) t.tables[n][i] = (double)data[i];
    }
    assert_null(embla_adaptive_table(adaptive, 2 * clusters + 1));
    return t;
}

static void truth_free(truth *t)
{
    for (size_t n = 0; n <= 2 * t->clusters; n++) free(t->tables[n]);
}

static double dot(const double *a, const double *b, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

/* log-probability of row `row` among the rows of table n, for x of that table's dim. */
static double log_share(const truth *t, size_t n, const double *x, size_t row)
{
    size_t rows = table_rows(t, n), dim = table_dim(t, n);
    double most = -INFINITY, sum = 0;
    for (size_t r = 0; r < rows; r++) most = fmax(most, dot(t->tables[n] + r * dim, x, dim));
    for (size_t r = 0; r < rows; r++) sum += exp(dot(t->tables[n] + r * dim, x, dim) - most);
    return dot(t->tables[n] + row * dim, x, dim) - most - log(sum);
}

static double log_probability(const truth *t, const double *x, int64_t token)
{
    double narrow[64];
    if (token < t->begins[0]) return log_share(t, 0, x, (size_t)token);
    size_t i = 0;
    while (token >= t->begins[i + 1]) i++;
    assert_true(t->widths[i] <= COUNT_OF(narrow));
    for (size_t r = 0; r < t->widths[i]; r++)
        narrow[r] = dot(t->tables[2 * i + 1] + r * t->dim, x, t->dim);
    return log_share(t, 0, x, (size_t)t->begins[0] + i) +
           log_share(t, 2 * i + 2, narrow, (size_t)(token - t->begins[i]));
}

/* Sum over targets that are not negative. */
static double loss_of(const truth *t, const double *x, const int32_t *targets, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        if (targets[i] >= 0) sum -= log_probability(t, x + i * t->dim, targets[i]);
    return sum;
}

/* ---- what the tests have in common ---- */

enum { MOST_TABLES = 16 };

typedef struct {
    embla_adaptive *adaptive;
    truth truth;
    size_t count, dim;
    float *hidden, *each, *dhidden;
    double *x;
    int32_t *targets;
    float *gradients[MOST_TABLES];
    size_t bytes[MOST_TABLES];
} setup;

static void *taken(size_t bytes)
{
    void *memory = calloc(bytes + 1, 1);
    assert_non_null(memory);
    return memory;
}

/* Targets go over all parts, some are ignored. */
static setup set_up(int64_t rows, size_t dim, const int64_t *cutoffs, size_t clusters, size_t count,
                    double divide)
{
    setup s = {.count = count, .dim = dim};
    embla_adaptive_options options = {
        .cutoffs = cutoffs, .cutoff_count = clusters, .divide = divide, .seed = 5};
    uint64_t seed = 11;
    assert_ok(embla_adaptive_new(rows, dim, &options, &s.adaptive));
    s.truth = truth_of(s.adaptive, rows, dim, cutoffs, clusters);
    s.hidden = taken(count * dim * sizeof(float));
    s.x = taken(count * dim * sizeof(double));
    s.dhidden = taken(count * dim * sizeof(float));
    s.each = taken(count * sizeof(float));
    s.targets = taken(count * sizeof(int32_t));
    for (size_t i = 0; i < count * dim; i++) {
        s.hidden[i] = 2.0f * check_unit(&seed);
        s.x[i] = (double)s.hidden[i];
    }
    for (size_t i = 0; i < count; i++) {
        s.targets[i] = (int32_t)check_below(&seed, (uint64_t)rows);
        if (i % 3 == 0) s.targets[i] = (int32_t)check_below(&seed, (uint64_t)s.truth.begins[0]);
        if (i % 7 == 5) s.targets[i] = EMBLA_TARGET_IGNORE;
    }
    for (size_t n = 0; n <= 2 * clusters; n++) {
        s.bytes[n] = table_rows(&s.truth, n) * table_dim(&s.truth, n) * sizeof(float);
        s.gradients[n] = taken(s.bytes[n]);
    }
    return s;
}

static void clear(setup *s)
{
    for (size_t n = 0; n <= 2 * s->truth.clusters; n++) memset(s->gradients[n], 0, s->bytes[n]);
    for (size_t i = 0; i < s->count * s->dim; i++) s->dhidden[i] = 5; /* is overwritten */
    memset(s->each, CHECK_MARK, s->count * sizeof(float));
}

static void tear_down(setup *s)
{
    for (size_t n = 0; n <= 2 * s->truth.clusters; n++) free(s->gradients[n]);
    free(s->hidden);
    free(s->x);
    free(s->dhidden);
    free(s->each);
    free(s->targets);
    truth_free(&s->truth);
    embla_adaptive_free(s->adaptive);
}

static int64_t counted_of(const setup *s)
{
    int64_t counted = 0;
    for (size_t i = 0; i < s->count; i++) counted += s->targets[i] >= 0;
    return counted;
}

/* ---- forward ---- */

typedef struct {
    int64_t rows;
    size_t dim;
    int64_t cutoffs[4];
    size_t clusters, count;
    double divide;
} shape;

static const shape shapes[] = {
    {1, 1, {0}, 0, 3, 0},
    {2, 1, {1}, 1, 5, 0},
    {9, 3, {2, 5}, 2, 8, 2},
    {40, 17, {10, 20, 39}, 3, 30, 0},
    {300, 33, {20, 100}, 2, 40, 1.5},
    {700, 8, {600}, 1, 60, 1}, /* a head of several lanes */
    {900, 8, {2}, 1, 40, 1},   /* a cluster of several lanes */
};

static void the_loss_is_that_of_the_definition(void **state)
{
    (void)state;
    for (size_t at = 0; at < COUNT_OF(shapes); at++) {
        const shape *is = &shapes[at];
        setup s = set_up(is->rows, is->dim, is->cutoffs, is->clusters, is->count, is->divide);
        embla_loss_report mean, sum;
        embla_loss_options summed = {.sum = true};
        double wanted = loss_of(&s.truth, s.x, s.targets, s.count);
        assert_ok(embla_adaptive_loss(s.adaptive, s.hidden, s.targets, s.count, NULL, NULL, NULL,
                                      s.each, &mean));
        assert_ok(embla_adaptive_loss(s.adaptive, s.hidden, s.targets, s.count, &summed, NULL, NULL,
                                      NULL, &sum));
        int64_t counted = counted_of(&s);
        assert_int_equal(mean.counted, counted);
        assert_int_equal(mean.ignored, (int64_t)s.count - counted);
        assert_true(mean.z_loss == 0);
        assert_near(sum.loss, wanted, 1e-5 * fmax(1, wanted));
        assert_near(mean.loss, wanted / (double)counted, 1e-5 * fmax(1, wanted));
        for (size_t i = 0; i < s.count; i++) {
            double one =
                s.targets[i] < 0 ? 0 : -log_probability(&s.truth, s.x + i * s.dim, s.targets[i]);
            assert_near(s.each[i], one, 1e-5 * fmax(1, one));
        }
        tear_down(&s);
    }
}

static void probabilities_are_those_of_the_definition_and_sum_to_one(void **state)
{
    (void)state;
    for (size_t at = 0; at < COUNT_OF(shapes); at++) {
        const shape *is = &shapes[at];
        setup s = set_up(is->rows, is->dim, is->cutoffs, is->clusters, is->count, is->divide);
        size_t rows = (size_t)is->rows;
        check_guarded out = check_guard(s.count * rows * sizeof(float), 0);
        float *logs = (float *)(void *)out.bytes;
        assert_ok(embla_adaptive_log_probabilities(s.adaptive, s.hidden, s.count,
                                                   &(embla_head_options){.threads = 2}, logs));
        for (size_t i = 0; i < s.count; i++) {
            double sum = 0;
            for (size_t v = 0; v < rows; v++) {
                double one = log_probability(&s.truth, s.x + i * s.dim, (int64_t)v);
                assert_near(logs[i * rows + v], one, 1e-5 * fmax(1, fabs(one)));
                sum += exp((double)logs[i * rows + v]);
            }
            assert_near(sum, 1, 1e-5);
        }
        check_guards(&out);
        check_guard_free(&out);
        tear_down(&s);
    }
}

/* ---- backward ---- */

/* The slope of the summed loss along one number, by central differences in double. */
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

static void gradients_are_the_slopes_of_the_definition(void **state)
{
    (void)state;
    for (size_t at = 0; at < COUNT_OF(shapes); at++) {
        const shape *is = &shapes[at];
        setup s = set_up(is->rows, is->dim, is->cutoffs, is->clusters, is->count, is->divide);
        embla_loss_options options = {.weight = 3, .sum = at % 2 == 0};
        double factor = at % 2 == 0 ? 3 : 3 / (double)counted_of(&s);
        uint64_t seed = 3;
        clear(&s);
        for (size_t n = 0; n <= 2 * is->clusters; n++) s.gradients[n][0] = 10; /* is added to */
        assert_ok(embla_adaptive_loss(s.adaptive, s.hidden, s.targets, s.count, &options, s.dhidden,
                                      s.gradients, NULL, NULL));
        for (size_t n = 0; n <= 2 * is->clusters; n++) {
            size_t numbers = s.bytes[n] / sizeof(float);
            for (size_t tried = 0; tried < 24; tried++) {
                size_t i = tried == 0 ? 0 : check_below(&seed, numbers);
                double wanted = factor * slope(&s, &s.truth.tables[n][i]) + (i == 0 ? 10 : 0);
                assert_near(s.gradients[n][i], wanted, 2e-5 * fmax(1, fabs(wanted)));
            }
        }
        for (size_t tried = 0; tried < 40; tried++) {
            size_t i = check_below(&seed, s.count * s.dim);
            double wanted = factor * slope(&s, &s.x[i]);
            assert_near(s.dhidden[i], wanted, 2e-5 * fmax(1, fabs(wanted)));
        }
        for (size_t i = 0; i < s.count; i++)
            for (size_t j = 0; j < s.dim && s.targets[i] < 0; j++)
                assert_true(s.dhidden[i * s.dim + j] == 0);
        tear_down(&s);
    }
}

/* Each gradient alone has the bits it has among the others. */
static void gradients_that_are_not_wanted_change_no_other(void **state)
{
    static const int64_t cutoffs[] = {20, 90};
    setup s = set_up(300, 16, cutoffs, 2, 50, 2);
    float *all[5], *hidden = taken(50 * 16 * sizeof(float));
    (void)state;
    clear(&s);
    assert_ok(embla_adaptive_loss(s.adaptive, s.hidden, s.targets, s.count, NULL, s.dhidden,
                                  s.gradients, NULL, NULL));
    memcpy(hidden, s.dhidden, 50 * 16 * sizeof(float));
    for (size_t n = 0; n < 5; n++) {
        all[n] = taken(s.bytes[n]);
        memcpy(all[n], s.gradients[n], s.bytes[n]);
    }
    for (size_t n = 0; n < 5; n++) {
        float *one[5] = {NULL};
        one[n] = s.gradients[n];
        clear(&s);
        assert_ok(embla_adaptive_loss(s.adaptive, s.hidden, s.targets, s.count, NULL, NULL, one,
                                      NULL, NULL));
        assert_memory_equal(one[n], all[n], s.bytes[n]);
    }
    clear(&s);
    assert_ok(embla_adaptive_loss(s.adaptive, s.hidden, s.targets, s.count, NULL, s.dhidden, NULL,
                                  NULL, NULL));
    assert_memory_equal(s.dhidden, hidden, 50 * 16 * sizeof(float));
    for (size_t n = 0; n < 5; n++) free(all[n]);
    free(hidden);
    tear_down(&s);
}

static void correct_is_highest_in_the_head_and_in_the_cluster(void **state)
{
    /* head: tokens 0, 1 and cluster rows; hidden chooses by its columns */
    static const int64_t cutoffs[] = {2, 4};
    static const float head[4][4] = {{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}, {0, 0, 0, 1}};
    embla_adaptive_options options = {.cutoffs = cutoffs, .cutoff_count = 2, .divide = 1};
    embla_adaptive *adaptive = NULL;
    embla_loss_report report;
    (void)state;
    assert_ok(embla_adaptive_new(6, 4, &options, &adaptive));
    memcpy(embla_table_data(embla_adaptive_table(adaptive, 0)), head, sizeof head);
    for (size_t n = 1; n <= 4; n++) {
        float *data = embla_table_data(embla_adaptive_table(adaptive, n));
        memset(data, 0, (n % 2 ? 16 : 8) * sizeof(float));
    }
    for (size_t j = 0; j < 4; j++) { /* the first cluster: projection 1, row 1 is higher */
        ((float *)embla_table_data(embla_adaptive_table(adaptive, 1)))[5 * j] = 1;
        ((float *)embla_table_data(embla_adaptive_table(adaptive, 2)))[4 + j] = 1;
    }
    static const float hidden[7][4] = {{2, 1, 1, 1}, {2, 2, 1, 1}, {2, 2, 1, 1}, {1, 1, 2, 1},
                                       {1, 1, 2, 1}, {2, 1, 1, 1}, {1, 1, 1, 2}};
    /*                                 highest     of equals, 0   it is        row 1 is
     *                  row 0 is not   the cluster is not         of equals the first */
    static const int32_t targets[7] = {0, 1, 0, 3, 2, 3, 4};
    assert_ok(
        embla_adaptive_loss(adaptive, &hidden[0][0], targets, 7, NULL, NULL, NULL, NULL, &report));
    assert_int_equal(report.correct, 4); /* 0, 2, 3 and 6 */
    embla_adaptive_free(adaptive);
}

/* ---- threads ---- */

static void threads_and_kernel_sets_change_no_bit(void **state)
{
    static const int64_t cutoffs[] = {300, 900};
    enum { COUNT = 1100, DIM = 48, ROWS = 5000 }; /* three chunks in the head */
    setup s = set_up(ROWS, DIM, cutoffs, 2, COUNT, 0);
    float *first[5], *hidden = taken(COUNT * DIM * sizeof(float)), *each = taken(COUNT * 4);
    float *logs = taken(40 * ROWS * sizeof(float)), *again = taken(40 * ROWS * sizeof(float));
    embla_loss_report report, other;
    static const int teams[] = {1, 2, 3, 4, 8};
    (void)state;
    for (size_t at = 0; at < COUNT_OF(teams); at++) {
        embla_loss_options options = {.threads = teams[at]};
        clear(&s);
        assert_ok(embla_adaptive_loss(s.adaptive, s.hidden, s.targets, COUNT, &options, s.dhidden,
                                      s.gradients, s.each, at == 0 ? &report : &other));
        assert_ok(embla_adaptive_log_probabilities(s.adaptive, s.hidden, 40,
                                                   &(embla_head_options){.threads = teams[at]},
                                                   at == 0 ? logs : again));
        if (at == 0) {
            memcpy(hidden, s.dhidden, COUNT * DIM * sizeof(float));
            memcpy(each, s.each, COUNT * sizeof(float));
            for (size_t n = 0; n < 5; n++) {
                first[n] = taken(s.bytes[n]);
                memcpy(first[n], s.gradients[n], s.bytes[n]);
            }
            continue;
        }
        assert_memory_equal(logs, again, 40 * ROWS * sizeof(float));
        assert_memory_equal(&report.loss, &other.loss, sizeof report.loss);
        assert_int_equal(report.correct, other.correct);
        assert_memory_equal(hidden, s.dhidden, COUNT * DIM * sizeof(float));
        assert_memory_equal(each, s.each, COUNT * sizeof(float));
        for (size_t n = 0; n < 5; n++) assert_memory_equal(first[n], s.gradients[n], s.bytes[n]);
    }
    for (size_t at = 0; at < CHECK_SETS; at++) {
        const embla_kernels *set = embla_kernels_find(check_sets[at]);
        if (!set) continue;
        embla_kernels_use(set);
        clear(&s);
        assert_ok(embla_adaptive_loss(s.adaptive, s.hidden, s.targets, COUNT, NULL, s.dhidden,
                                      s.gradients, s.each, &other));
        embla_kernels_use(NULL);
        assert_memory_equal(&report.loss, &other.loss, sizeof report.loss);
        assert_memory_equal(hidden, s.dhidden, COUNT * DIM * sizeof(float));
        for (size_t n = 0; n < 5; n++) assert_memory_equal(first[n], s.gradients[n], s.bytes[n]);
    }
    for (size_t n = 0; n < 5; n++) free(first[n]);
    free(hidden);
    free(each);
    free(logs);
    free(again);
    tear_down(&s);
}

static void lanes_and_chunks_are_bounded(void **state)
{
    static const size_t sizes[] = {1,   2,   63,   64,    65,      511,    512,
                                   513, 700, 5000, 50257, 4 << 20, 1 << 27};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        for (size_t dim = 1; dim <= 1 << 20; dim *= 32) {
            size_t n = sizes[i], lanes = embla_lanes_of(n), chunk = embla_lanes_chunk(n, dim);
            assert_true(lanes >= 1 && lanes <= 8);
            assert_true(chunk >= 1 && chunk <= 512);
            if (chunk > 1) assert_true(chunk * n <= 4 << 20 && chunk * lanes * dim <= 4 << 20);
        }
    }
    assert_int_equal(embla_lanes_chunk(8, 8), 512);
    assert_int_equal(embla_lanes_chunk(1 << 16, 64), 64);
    assert_int_equal(embla_lanes_of(64), 1);
    assert_int_equal(embla_lanes_of(65), 2);
    assert_int_equal(embla_lanes_of(513), 7); /* of 80 rows */
    assert_int_equal(embla_lanes_of(50257), 8);
}

static void what_lanes_give_is_added_in_double(void **state)
{
    float rows[192] = {0}, gradients[192] = {0}, parts[3], x = 1, dx = 7;
    embla_lanes lanes = {
        .rows = rows, .n = 192, .dim = 1, .stride = 1, .logits = gradients, .parts = parts};
    (void)state;
    rows[0] = 1e10f, rows[64] = 1, rows[128] = -1e10f; /* one in each lane */
    gradients[0] = gradients[64] = gradients[128] = 1;
    assert_int_equal(embla_lanes_of(192), 3);
    assert_ok(embla_lanes_backward(&lanes, &x, 1, &dx));
    assert_true(dx == 1);
}

/* ---- the edges ---- */

static void nothing_to_count_is_a_loss_of_zero(void **state)
{
    static const int64_t cutoffs[] = {4};
    setup s = set_up(12, 6, cutoffs, 1, 9, 0);
    embla_loss_report report = {.loss = 5};
    embla_loss_options padding = {.ignore = 3, .has_ignore = true};
    (void)state;
    assert_ok(
        embla_adaptive_loss(s.adaptive, NULL, NULL, 0, NULL, NULL, s.gradients, NULL, &report));
    assert_true(report.loss == 0 && report.counted == 0 && report.ignored == 0);
    assert_ok(embla_adaptive_log_probabilities(s.adaptive, NULL, 0, NULL, NULL));
    for (size_t i = 0; i < s.count; i++) s.targets[i] = i % 2 ? 3 : EMBLA_TARGET_IGNORE;
    clear(&s);
    assert_ok(embla_adaptive_loss(s.adaptive, s.hidden, s.targets, s.count, &padding, s.dhidden,
                                  s.gradients, s.each, &report));
    assert_true(report.loss == 0 && report.counted == 0 && report.ignored == 9);
    for (size_t i = 0; i < s.count * s.dim; i++) assert_true(s.dhidden[i] == 0);
    for (size_t i = 0; i < s.count; i++) assert_true(s.each[i] == 0);
    for (size_t n = 0; n < 3; n++)
        for (size_t i = 0; i < s.bytes[n] / 4; i++) assert_true(s.gradients[n][i] == 0);
    s.targets[4] = 11; /* one is counted */
    assert_ok(embla_adaptive_loss(s.adaptive, s.hidden, s.targets, s.count, &padding, NULL, NULL,
                                  s.each, &report));
    assert_true(report.counted == 1 && report.ignored == 8);
    assert_near(report.loss, s.each[4], 1e-6);
    tear_down(&s);
}

static void a_nan_stays_with_its_token(void **state)
{
    static const int64_t cutoffs[] = {4};
    setup s = set_up(12, 6, cutoffs, 1, 4, 0);
    embla_loss_report report;
    (void)state;
    for (size_t i = 0; i < 4; i++) s.targets[i] = (int32_t)(3 * i);
    s.hidden[2 * 6] = NAN;
    assert_ok(embla_adaptive_loss(s.adaptive, s.hidden, s.targets, 4, NULL, s.dhidden, s.gradients,
                                  s.each, &report));
    assert_true(isnan(report.loss));
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(isnan(s.each[i]), i == 2);
        for (size_t j = 0; j < 6; j++) assert_int_equal(isnan(s.dhidden[i * 6 + j]), i == 2);
    }
    for (size_t j = 0; j < 6; j++) s.hidden[2 * 6 + j] = 0; /* huge numbers: 1 for sure */
    float *head = embla_table_data(embla_adaptive_table(s.adaptive, 0));
    s.hidden[2 * 6] = 1e30f;
    for (size_t r = 0; r < 5; r++) head[r * 6] = r == 4 ? 1.0f : -1.0f;
    for (size_t i = 0; i < 4; i++) s.targets[i] = i == 2 ? 3 : EMBLA_TARGET_IGNORE;
    clear(&s);
    assert_ok(embla_adaptive_loss(s.adaptive, s.hidden, s.targets, 4, NULL, s.dhidden, s.gradients,
                                  s.each, &report));
    assert_near(report.loss / 2e30, 1, 1e-5);
    assert_near(s.dhidden[2 * 6], 2, 1e-6); /* from row 3 to row 4 */
    for (size_t j = 0; j < 6; j++) s.hidden[2 * 6 + j] = j == 0 ? 3e38f : 0;
    head[4 * 6] = 1e10f; /* the product is infinite */
    assert_ok(embla_adaptive_loss(s.adaptive, s.hidden, s.targets, 4, NULL, s.dhidden, s.gradients,
                                  s.each, &report));
    assert_true(isnan(report.loss) && report.correct == 0);
    for (size_t r = 0; r < 5; r++) head[r * 6] = r == 3 ? 1.0f : r == 4 ? NAN : -1.0f;
    s.hidden[2 * 6] = 1; /* the highest, but for a NaN */
    assert_ok(embla_adaptive_loss(s.adaptive, s.hidden, s.targets, 4, NULL, s.dhidden, s.gradients,
                                  s.each, &report));
    assert_true(isnan(report.loss) && report.correct == 0);
    tear_down(&s);
}

static void bad_arguments_are_refused_and_nothing_is_written(void **state)
{
    static const int64_t cutoffs[] = {4};
    setup s = set_up(12, 6, cutoffs, 1, 4, 0);
    check_guarded hidden = check_guard(4 * 6 * 4, 0), head = check_guard(s.bytes[0], 0);
    check_guarded each = check_guard(16, 0);
    float *dhidden = (float *)(void *)hidden.bytes, *tables[3] = {(float *)(void *)head.bytes};
    float *one = (float *)(void *)each.bytes;
    embla_loss_report report = {.loss = 7};
    struct {
        embla_loss_options options;
        embla_status status;
        const char *says;
    } bad[] = {{{.smoothing = 0.1}, EMBLA_ERR_UNSUPPORTED, "smoothing (0.1)"},
               {{.z_loss = 0.5}, EMBLA_ERR_UNSUPPORTED, "z_loss (0.5)"},
               {{.smoothing = NAN}, EMBLA_ERR_UNSUPPORTED, "nan"},
               {{.compute = EMBLA_BF16}, EMBLA_ERR_UNSUPPORTED, "bf16"},
               {{.compute = EMBLA_I8}, EMBLA_ERR_ARGUMENT, "compute"},
               {{.weight = INFINITY}, EMBLA_ERR_ARGUMENT, "weight is inf"},
               {{.threads = -1}, EMBLA_ERR_ARGUMENT, "threads is -1"}};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        assert_status(embla_adaptive_loss(s.adaptive, s.hidden, s.targets, 4, &bad[i].options,
                                          dhidden, tables, one, &report),
                      bad[i].status);
        assert_error_has(bad[i].says);
    }
    static const int32_t wrong[] = {12, -1, -99, INT32_MAX, INT32_MIN};
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        s.targets[3] = wrong[i];
        assert_status(embla_adaptive_loss(s.adaptive, s.hidden, s.targets, 4, NULL, dhidden, tables,
                                          one, &report),
                      EMBLA_ERR_RANGE);
        assert_error_has("at index 3 is not from 0 to 11");
    }
    s.targets[3] = 1;
    assert_status(
        embla_adaptive_loss(NULL, s.hidden, s.targets, 4, NULL, dhidden, tables, one, NULL),
        EMBLA_ERR_ARGUMENT);
    assert_error_has("adaptive is NULL");
    assert_status(
        embla_adaptive_loss(s.adaptive, NULL, s.targets, 4, NULL, dhidden, tables, one, NULL),
        EMBLA_ERR_ARGUMENT);
    assert_error_has("hidden is NULL");
    assert_status(
        embla_adaptive_loss(s.adaptive, s.hidden, NULL, 4, NULL, dhidden, tables, one, NULL),
        EMBLA_ERR_ARGUMENT);
    assert_error_has("targets is NULL");
    assert_status(embla_adaptive_loss(s.adaptive, s.hidden, s.targets, SIZE_MAX / 8, NULL, dhidden,
                                      tables, one, NULL),
                  EMBLA_ERR_ARGUMENT);
    assert_error_has("do not fit in memory");
    assert_status(embla_adaptive_log_probabilities(s.adaptive, s.hidden, 4,
                                                   &(embla_head_options){.threads = -2}, one),
                  EMBLA_ERR_ARGUMENT);
    assert_status(embla_adaptive_log_probabilities(s.adaptive, s.hidden, 4, NULL, NULL),
                  EMBLA_ERR_ARGUMENT);
    assert_error_has("out is NULL");
    assert_status(embla_adaptive_log_probabilities(s.adaptive, s.hidden, SIZE_MAX / 64, NULL, one),
                  EMBLA_ERR_ARGUMENT);
    assert_error_has("do not fit in memory");
    check_untouched(&hidden);
    check_untouched(&head);
    check_untouched(&each);
    assert_true(report.loss == 7);
    check_guard_free(&hidden);
    check_guard_free(&head);
    check_guard_free(&each);
    tear_down(&s);
}

static void cutoffs_must_ascend_inside(void **state)
{
    static const int64_t lists[][2] = {{0, 5},  {-3, 5},        {5, 5},        {6, 5},
                                       {5, 10}, {5, INT64_MAX}, {INT64_MIN, 3}};
    embla_adaptive *out = NULL;
    embla_adaptive_options options = {.cutoff_count = 2};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(lists); i++) {
        options.cutoffs = lists[i];
        assert_status(embla_adaptive_new(10, 4, &options, &out), EMBLA_ERR_ARGUMENT);
        assert_error_has("it must be");
    }
    options.cutoffs = NULL;
    assert_status(embla_adaptive_new(10, 4, &options, &out), EMBLA_ERR_ARGUMENT);
    assert_error_has("cutoffs is NULL");
    options = (embla_adaptive_options){.divide = 0.5};
    assert_status(embla_adaptive_new(10, 4, &options, &out), EMBLA_ERR_ARGUMENT);
    assert_error_has("divisor of rows is 0.5");
    options.divide = INFINITY;
    assert_status(embla_adaptive_new(10, 4, &options, &out), EMBLA_ERR_ARGUMENT);
    options.divide = NAN;
    assert_status(embla_adaptive_new(10, 4, &options, &out), EMBLA_ERR_ARGUMENT);
    assert_status(embla_adaptive_new(0, 4, NULL, &out), EMBLA_ERR_ARGUMENT);
    assert_status(embla_adaptive_new(10, 0, NULL, &out), EMBLA_ERR_ARGUMENT);
    assert_status(embla_adaptive_new(INT64_MAX, 4, NULL, &out), EMBLA_ERR_ARGUMENT);
    assert_status(embla_adaptive_new(10, (size_t)1 << 40, NULL, &out), EMBLA_ERR_ARGUMENT);
    assert_error_has("are supported");
    assert_status(embla_adaptive_new(10, 4, NULL, NULL), EMBLA_ERR_ARGUMENT);
    assert_null(out);
    embla_adaptive_free(NULL);
    assert_null(embla_adaptive_table(NULL, 0));
}

static void widths_shrink_to_one_and_weights_differ(void **state)
{
    static const int64_t cutoffs[] = {10, 20, 30};
    static const size_t widths[] = {25, 6, 1};
    embla_adaptive *a = NULL, *b = NULL;
    embla_adaptive_options options = {.cutoffs = cutoffs, .cutoff_count = 3, .seed = 1};
    (void)state;
    assert_ok(embla_adaptive_new(40, 100, &options, &a));
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(embla_table_rows(embla_adaptive_table(a, 2 * i + 1)), widths[i]);
        assert_int_equal(embla_table_dim(embla_adaptive_table(a, 2 * i + 2)), widths[i]);
    }
    options.seed = 2;
    assert_ok(embla_adaptive_new(40, 100, &options, &b));
    for (size_t n = 0; n <= 6; n++) { /* all first numbers are different */
        const float *x = embla_table_row(embla_adaptive_table(a, n), 0);
        assert_true(isfinite(x[0]) && x[0] != 0);
        for (size_t m = 0; m <= 6; m++) {
            const float *y = embla_table_row(embla_adaptive_table(b, m), 0);
            const float *z = embla_table_row(embla_adaptive_table(a, m), 0);
            assert_true(x[0] != y[0] && (m == n || x[0] != z[0]));
        }
    }
    embla_adaptive_free(a);
    embla_adaptive_free(b);
}

static void an_allocation_that_fails_is_reported_and_leaks_nothing(void **state)
{
    static const int64_t cutoffs[] = {4, 8};
    embla_adaptive_options options = {.cutoffs = cutoffs, .cutoff_count = 2};
    size_t failures = 0, live = embla_mem_live();
    (void)state;
    for (size_t at = 1;; at++) {
        embla_adaptive *out = NULL;
        embla_mem_fail(at, false);
        embla_status status = embla_adaptive_new(12, 6, &options, &out);
        embla_mem_fail(0, false);
        embla_adaptive_free(out);
        assert_int_equal(embla_mem_live(), live);
        if (status == EMBLA_OK) break;
        assert_int_equal(status, EMBLA_ERR_MEMORY);
        assert_null(out);
        failures++;
    }
    assert_int_equal(failures, 1 + 5 * 2);
    setup s = set_up(12, 6, cutoffs, 2, 4, 0);
    check_guarded hidden = check_guard(4 * 6 * 4, 0);
    float *out = (float *)(void *)hidden.bytes;
    live = embla_mem_live();
    embla_mem_fail(1, true);
    assert_status(
        embla_adaptive_loss(s.adaptive, s.hidden, s.targets, 4, NULL, out, NULL, NULL, NULL),
        EMBLA_ERR_MEMORY);
    assert_status(embla_adaptive_log_probabilities(s.adaptive, s.hidden, 2, NULL, out),
                  EMBLA_ERR_MEMORY);
    embla_mem_fail(0, false);
    check_untouched(&hidden);
    assert_int_equal(embla_mem_live(), live);
    embla_mem_fail(2, true); /* one is all there is */
    assert_ok(embla_adaptive_loss(s.adaptive, s.hidden, s.targets, 4, NULL, out, s.gradients, NULL,
                                  NULL));
    embla_mem_fail(0, false);
    check_guard_free(&hidden);
    tear_down(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_loss_is_that_of_the_definition),
        cmocka_unit_test(probabilities_are_those_of_the_definition_and_sum_to_one),
        cmocka_unit_test(gradients_are_the_slopes_of_the_definition),
        cmocka_unit_test(gradients_that_are_not_wanted_change_no_other),
        cmocka_unit_test(correct_is_highest_in_the_head_and_in_the_cluster),
        cmocka_unit_test(threads_and_kernel_sets_change_no_bit),
        cmocka_unit_test(lanes_and_chunks_are_bounded),
        cmocka_unit_test(what_lanes_give_is_added_in_double),
        cmocka_unit_test(nothing_to_count_is_a_loss_of_zero),
        cmocka_unit_test(a_nan_stays_with_its_token),
        cmocka_unit_test(bad_arguments_are_refused_and_nothing_is_written),
        cmocka_unit_test(cutoffs_must_ascend_inside),
        cmocka_unit_test(widths_shrink_to_one_and_weights_differ),
        cmocka_unit_test(an_allocation_that_fails_is_reported_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
