/* SPDX-License-Identifier: Apache-2.0 */
/* Cross-entropy of a head against a slow one in double: all its gradients, every option, every
 * way to cut the work, logits up to 640, what is not a number, and one bit pattern for any
 * number of threads. The slow one is checked by differences of itself.
 */
#include "check.h"
#include "engine.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "base/half.h"
#include "base/mem.h"
#include "embla_lab.h"
#include "embla_learn.h"
#include "engine/engine.h"
#include "files/io.h"
#include "learn/head.h"
#include "learn/loss.h"
#include "scratch.h"
#include "slow.h"

/* ---- the slow loss ---- */

typedef struct {
    size_t rows, dim, count; /* rows of the head */
    double *table, *bias, *hidden;
    const int32_t *targets;
    double scale, cap, smoothing, z;
    bool sum;
    bool has_ignore;
    int32_t ignore;
    double loss, *d_table, *d_bias, *d_hidden, *each; /* what comes out */
} slow;

static void *zeros(size_t n, size_t size)
{
    void *out = calloc(n + 1, size);
    assert_non_null(out);
    return out;
}

static bool slow_counts(const slow *s, size_t i)
{
    return s->targets[i] != EMBLA_TARGET_IGNORE && !(s->has_ignore && s->targets[i] == s->ignore);
}

/* Logits of token i, and what the cap's derivative is at each. */
static void slow_logits(const slow *s, size_t i, double *logits, double *slopes)
{
    for (size_t v = 0; v < s->rows; v++) {
        double x = 0;
        for (size_t d = 0; d < s->dim; d++)
            x += s->hidden[i * s->dim + d] * s->table[v * s->dim + d];
        x = s->scale * x + s->bias[v];
        double t = s->cap > 0 ? tanh(x / s->cap) : 0;
        logits[v] = s->cap > 0 && x != -INFINITY ? s->cap * t : x;
        slopes[v] = s->cap > 0 ? 1 - t * t : 1;
    }
}

static void slow_token(slow *s, size_t i, double weight, double *logits, double *slopes)
{
    double most = -INFINITY, sum = 0, mean = 0;
    slow_logits(s, i, logits, slopes);
    for (size_t v = 0; v < s->rows; v++) most = logits[v] > most ? logits[v] : most;
    for (size_t v = 0; v < s->rows; v++) {
        sum += exp(logits[v] - most);
        mean += logits[v] / (double)s->rows;
    }
    double lse = most + log(sum), target = logits[s->targets[i]];
    s->each[i] = (1 - s->smoothing) * (lse - target) + s->z * lse * lse;
    if (s->smoothing > 0) s->each[i] += s->smoothing * (lse - mean);
    s->loss += s->each[i] * weight;
    for (size_t v = 0; v < s->rows; v++) {
        double g = exp(logits[v] - lse) * (1 + 2 * s->z * lse) - s->smoothing / (double)s->rows;
        if (v == (size_t)s->targets[i]) g -= 1 - s->smoothing;
        g *= weight * slopes[v];
        s->d_bias[v] += g;
        for (size_t d = 0; d < s->dim; d++) {
            s->d_table[v * s->dim + d] += g * s->scale * s->hidden[i * s->dim + d];
            s->d_hidden[i * s->dim + d] += g * s->scale * s->table[v * s->dim + d];
        }
    }
}

static void slow_loss(slow *s)
{
    double *logits = zeros(s->rows, sizeof *logits), *slopes = zeros(s->rows, sizeof *slopes);
    size_t counted = 0;
    s->loss = 0;
    memset(s->d_table, 0, s->rows * s->dim * sizeof *s->d_table);
    memset(s->d_bias, 0, s->rows * sizeof *s->d_bias);
    memset(s->d_hidden, 0, s->count * s->dim * sizeof *s->d_hidden);
    for (size_t i = 0; i < s->count; i++) counted += slow_counts(s, i);
    for (size_t i = 0; i < s->count; i++)
        if (slow_counts(s, i))
            slow_token(s, i, s->sum ? 1.0 : 1.0 / (double)counted, logits, slopes);
    free(logits), free(slopes);
}

static void slow_free(slow *s)
{
    free(s->table), free(s->bias), free(s->hidden), free(s->d_table), free(s->d_bias);
    free(s->d_hidden), free(s->each);
}

/* ---- a problem, and the answer of the library ---- */

typedef struct {
    embla_table *table;
    embla_head head;
    embla_loss_options options;
    size_t count, dim, rows; /* rows of the table */
    float *hidden, *bias;
    int32_t *targets;
    /* what comes out */
    float *d_hidden, *d_table, *d_bias, *each;
    embla_loss_report report;
} problem;

static problem problem_new(embla_dtype dtype, int64_t rows, size_t dim, size_t count, uint64_t seed)
{
    problem p = {.table = check_table(dtype, rows, dim, seed), .count = count, .dim = dim};
    p.rows = (size_t)rows;
    p.head.table = p.table;
    p.hidden = zeros(count * dim, sizeof(float));
    p.bias = zeros(p.rows, sizeof(float));
    p.targets = zeros(count, sizeof *p.targets);
    p.d_hidden = zeros(count * dim, sizeof(float));
    p.d_table = zeros(p.rows * dim, sizeof(float));
    p.d_bias = zeros(p.rows, sizeof(float));
    p.each = zeros(count, sizeof(float));
    for (size_t i = 0; i < count * dim; i++) p.hidden[i] = 2 * check_unit(&seed);
    for (size_t v = 0; v < p.rows; v++) p.bias[v] = check_unit(&seed);
    for (size_t i = 0; i < count; i++) p.targets[i] = (int32_t)check_below(&seed, (uint64_t)rows);
    p.options.threads = 2;
    return p;
}

static void problem_free(problem *p)
{
    embla_table_free(p->table);
    free(p->hidden), free(p->bias), free(p->targets), free(p->d_hidden), free(p->d_table);
    free(p->d_bias), free(p->each);
}

/* All outputs, from zeros. */
static embla_status run(problem *p, const embla_loss_shape *shape)
{
    embla_loss_gradients to = {
        .hidden = p->d_hidden, .table = p->d_table, .bias = p->head.bias ? p->d_bias : NULL};
    memset(p->d_hidden, 0x7f, p->count * p->dim * sizeof(float)); /* is overwritten */
    memset(p->d_table, 0, p->rows * p->dim * sizeof(float));
    memset(p->d_bias, 0, p->rows * sizeof(float));
    return embla_loss_run(&p->head, p->hidden, p->targets, p->count, &p->options, &to, p->each,
                          &p->report, shape, NULL);
}

static float rounded(float x, bool bf16)
{
    uint16_t bits = embla_bf16_from_f32(x);
    return bf16 ? embla_f32_from_bf16(bits) : x;
}

/* The same problem for the slow loss; with bf16, factors as products have them. */
static slow slow_of(const problem *p, bool bf16)
{
    slow s = {.rows = p->head.rows ? (size_t)p->head.rows : p->rows,
              .dim = p->dim,
              .count = p->count,
              .targets = p->targets,
              .scale = p->head.scale == 0.0f ? 1.0 : (double)p->head.scale,
              .cap = (double)p->head.soft_cap,
              .smoothing = p->options.smoothing,
              .z = p->options.z_loss,
              .sum = p->options.sum,
              .has_ignore = p->options.has_ignore,
              .ignore = p->options.ignore};
    float *row = zeros(p->dim, sizeof *row);
    s.table = zeros(s.rows * s.dim, sizeof(double));
    s.d_table = zeros(s.rows * s.dim, sizeof(double));
    s.hidden = zeros(s.count * s.dim, sizeof(double));
    s.d_hidden = zeros(s.count * s.dim, sizeof(double));
    s.bias = zeros(s.rows, sizeof(double));
    s.d_bias = zeros(s.rows, sizeof(double));
    s.each = zeros(s.count, sizeof(double));
    for (size_t v = 0; v < s.rows; v++) {
        check_row(p->table, (int64_t)v, row);
        for (size_t d = 0; d < s.dim; d++) s.table[v * s.dim + d] = (double)rounded(row[d], bf16);
        s.bias[v] = p->head.bias ? (double)p->head.bias[v] : 0;
    }
    for (size_t i = 0; i < s.count * s.dim; i++) s.hidden[i] = (double)rounded(p->hidden[i], bf16);
    free(row);
    return s;
}

/* Length of the difference over the length of what is wanted. */
static double apart(const float *got, const double *wanted, size_t n)
{
    double gap = 0, size = 0;
    for (size_t i = 0; i < n; i++) {
        gap += ((double)got[i] - wanted[i]) * ((double)got[i] - wanted[i]);
        size += wanted[i] * wanted[i];
    }
    return size > 0 ? sqrt(gap / size) : sqrt(gap);
}

static double alike(const float *got, const double *wanted, size_t n)
{
    double product = 0, a = 0, b = 0;
    for (size_t i = 0; i < n; i++) {
        product += (double)got[i] * wanted[i];
        a += (double)got[i] * (double)got[i];
        b += wanted[i] * wanted[i];
    }
    return product / sqrt(a * b);
}

static void check_against_slow(problem *p, const embla_loss_shape *shape, double tolerance)
{
    slow s = slow_of(p, p->options.compute == EMBLA_BF16);
    double weight = p->options.weight == 0 ? 1 : p->options.weight;
    slow_loss(&s);
    assert_ok(run(p, shape));
    assert_near(p->report.loss, s.loss, 2e-6 * (1 + fabs(s.loss)));
    for (size_t i = 0; i < s.count; i++) assert_near(p->each[i], s.each[i], 4e-6 * (1 + s.each[i]));
    for (size_t i = 0; i < s.rows * s.dim; i++) s.d_table[i] *= weight;
    for (size_t i = 0; i < s.rows; i++) s.d_bias[i] *= weight;
    for (size_t i = 0; i < s.count * s.dim; i++) s.d_hidden[i] *= weight;
    assert_near(apart(p->d_table, s.d_table, s.rows * s.dim), 0, tolerance);
    assert_near(apart(p->d_hidden, s.d_hidden, s.count * s.dim), 0, tolerance);
    if (p->head.bias) assert_near(apart(p->d_bias, s.d_bias, s.rows), 0, tolerance);
    for (size_t i = s.rows * s.dim; i < p->rows * s.dim; i++) assert_true(p->d_table[i] == 0);
    for (size_t i = s.rows; i < p->rows; i++) assert_true(p->d_bias[i] == 0);
    slow_free(&s);
}

/* Every option, in turn and together. */
enum { WAYS = 12 };
static void set_way(problem *p, int way)
{
    p->head = (embla_head){.table = p->table};
    p->options = (embla_loss_options){.threads = 2};
    if (way == 1 || way >= 9) p->head.bias = p->bias;
    if (way == 2 || way >= 9) p->head.scale = 0.7f;
    if (way == 3 || way >= 10) p->head.soft_cap = 1.5f;
    if (way == 4 || way >= 9) p->options.smoothing = 0.1;
    if (way == 5 || way >= 9) p->options.z_loss = 0.01;
    if (way == 6 || way == 10) p->options.sum = true;
    if (way == 7 || way >= 11) p->options.weight = -2.5;
    if ((way == 8 || way == 11) && p->rows > 2) {
        p->head.rows = (int64_t)p->rows - 2;
        for (size_t i = 0; i < p->count; i++) p->targets[i] %= (int32_t)p->rows - 2;
    }
}

/* ---- tests ---- */

static double moved(slow *s, double *at, double by)
{
    double before = *at;
    *at = before + by;
    slow_loss(s);
    *at = before;
    return s->loss;
}

static void check_differences(slow *s, double *at, const double *gradient, size_t n)
{
    const double step = 1e-5;
    double *wanted = zeros(n, sizeof *wanted);
    memcpy(wanted, gradient, n * sizeof *wanted);
    for (size_t i = 0; i < n; i++)
        assert_near((moved(s, at + i, step) - moved(s, at + i, -step)) / (2 * step), wanted[i],
                    1e-8);
    free(wanted);
}

static void the_slow_loss_is_its_own_derivative(void **state)
{
    (void)state;
    for (int way = 0; way < WAYS; way++) {
        problem p = problem_new(EMBLA_F32, 7, 3, 4, 11);
        set_way(&p, way);
        p.targets[1] = EMBLA_TARGET_IGNORE;
        slow s = slow_of(&p, false);
        slow_loss(&s);
        check_differences(&s, s.hidden, s.d_hidden, s.count * s.dim);
        slow_loss(&s);
        check_differences(&s, s.table, s.d_table, s.rows * s.dim);
        slow_loss(&s);
        check_differences(&s, s.bias, s.d_bias, s.rows);
        slow_free(&s);
        problem_free(&p);
    }
}

static const embla_loss_shape cuts[] = {
    {256, 1424, 1424, 12, false, true}, {1, 16, 1, 1, false, false},
    {5, 16, 3, 4, false, false},        {16, 48, 16, 3, false, false},
    {7, 33, 33, 100, false, false},     {256, 1424, 1424, 12, true, false},
    {5, 16, 3, 4, true, false},         {7, 33, 33, 100, true, true}};

static void all_gradients_are_those_of_the_slow_loss(void **state)
{
    static const size_t sizes[][3] = {{1, 1, 1},    {1, 4, 3},   {2, 1, 1},    {3, 3, 5},
                                      {100, 17, 9}, {65, 33, 1}, {200, 1, 33}, {257, 100, 40}};
    (void)state;
    SKIP_WITHOUT_ENGINE();
    for (size_t k = 0; k < COUNT_OF(sizes); k++)
        for (int way = 0; way < WAYS; way++) {
            problem p = problem_new(EMBLA_F32, (int64_t)sizes[k][0], sizes[k][1], sizes[k][2], k);
            set_way(&p, way);
            if (sizes[k][2] > 4) p.targets[2] = EMBLA_TARGET_IGNORE;
            check_against_slow(&p, NULL, 3e-6);
            for (size_t c = 0; c < COUNT_OF(cuts); c++) check_against_slow(&p, &cuts[c], 3e-6);
            problem_free(&p);
        }
}

static void bf16_is_the_slow_loss_of_rounded_factors(void **state)
{
    (void)state;
    SKIP_WITHOUT_ENGINE();
    for (int native = -1; native < 2; native++) {
        embla_engine_use_bf16(native); /* an engine that cannot widens all the same */
        for (int way = 0; way < WAYS; way++) {
            problem p = problem_new(EMBLA_F32, 130, 33, 21, 5);
            set_way(&p, way);
            p.options.compute = EMBLA_BF16;
            check_against_slow(&p, NULL, 4e-3);
            /* an engine compiles each shape of product anew: few of them */
            for (size_t c = native > 0 ? COUNT_OF(cuts) - 1 : 1; c < COUNT_OF(cuts); c++)
                check_against_slow(&p, &cuts[c], 4e-3);
            problem_free(&p);
        }
    }
    embla_engine_use_bf16(-1);
}

static void every_dtype_of_table_will_do(void **state)
{
    (void)state;
    SKIP_WITHOUT_ENGINE();
    for (int dtype = CHECK_FIRST_DTYPE; dtype <= CHECK_LAST_DTYPE; dtype++)
        for (int bf16 = 0; bf16 < 2; bf16++) {
            problem p =
                problem_new((embla_dtype)dtype, 75, check_dim((embla_dtype)dtype, 320), 10, 3);
            p.options.compute = bf16 ? EMBLA_BF16 : EMBLA_F32;
            check_against_slow(&p, NULL, bf16 ? 4e-3 : 3e-6);
            check_against_slow(&p, &cuts[2], bf16 ? 4e-3 : 3e-6);
            problem_free(&p);
        }
}

/* Rows that are apart, or that begin anywhere: used where they lie, or copied. */
static void views_of_any_stride_and_alignment(void **state)
{
    (void)state;
    SKIP_WITHOUT_ENGINE();
    for (size_t offset = 0; offset < 3; offset++) {
        problem p = problem_new(EMBLA_F32, 40, 6, 9, 8), q = p;
        size_t stride = 24 + 4 * offset + (offset == 2);
        char *bytes = zeros(40 * stride + 8, 1);
        for (int64_t r = 0; r < 40; r++)
            memcpy(bytes + offset + (size_t)r * stride, embla_table_row(p.table, r), 24);
        embla_table_options options = {.row_stride = stride};
        assert_ok(embla_table_view(&(embla_table_layout){.dtype = EMBLA_F32, .rows = 40, .dim = 6},
                                   bytes + offset, 39 * stride + 24, &options, &q.table));
        q.head.table = q.table;
        check_against_slow(&q, &cuts[3], 3e-6);
        embla_table_free(q.table);
        free(bytes);
        problem_free(&p);
    }
}

/* ---- the function's own differences ---- */

static double loss_with(problem *p, float *at, float value)
{
    float before = *at;
    embla_loss_report report;
    *at = value;
    assert_ok(embla_head_loss(
        &p->head,
        &(embla_loss_batch){.hidden = p->hidden, .targets = p->targets, .count = p->count},
        &p->options, NULL, &report));
    *at = before;
    return report.loss;
}

static void gradients_are_differences_of_the_loss_itself(void **state)
{
    (void)state;
    SKIP_WITHOUT_ENGINE();
    for (int way = 0; way < WAYS; way++) {
        problem p = problem_new(EMBLA_F32, 50, 9, 6, 21);
        set_way(&p, way);
        assert_ok(run(&p, NULL));
        double weight = p.options.weight == 0 ? 1 : p.options.weight, step = 0x1p-7;
        for (size_t i = 0; i < p.count * p.dim; i += 5) {
            float *at = p.hidden + i, value = *at;
            double up = loss_with(&p, at, value + (float)step);
            double down = loss_with(&p, at, value - (float)step);
            assert_near(weight * (up - down) / (2 * step), p.d_hidden[i],
                        1e-4 * (p.options.sum ? 6 : 1));
        }
        for (size_t v = 0; p.head.bias && v < 48; v++) {
            float *at = p.bias + v, value = *at;
            double up = loss_with(&p, at, value + (float)step);
            double down = loss_with(&p, at, value - (float)step);
            assert_near(weight * (up - down) / (2 * step), p.d_bias[v],
                        1e-4 * (p.options.sum ? 6 : 1));
        }
        problem_free(&p);
    }
}

/* ---- large logits ---- */

/* Hidden vectors such that the largest |logit| is about this. */
static problem problem_of_size(double size, embla_dtype compute)
{
    problem p = problem_new(EMBLA_F32, 1000, 64, 24, 77);
    slow s = slow_of(&p, false);
    double most = 0, *logits = zeros(s.rows, sizeof *logits),
           *slopes = zeros(s.rows, sizeof(double));
    for (size_t i = 0; i < s.count; i++) {
        slow_logits(&s, i, logits, slopes);
        for (size_t v = 0; v < s.rows; v++) most = fmax(most, fabs(logits[v]));
    }
    for (size_t i = 0; i < p.count * p.dim; i++) p.hidden[i] *= (float)(size / most);
    p.options.compute = compute;
    free(logits), free(slopes);
    slow_free(&s);
    return p;
}

static const double large[] = {5, 20, 80, 160, 640};

static void large_logits_in_f32(void **state)
{
    (void)state;
    SKIP_WITHOUT_ENGINE();
    for (size_t k = 0; k < COUNT_OF(large); k++) {
        problem p = problem_of_size(large[k], EMBLA_F32);
        slow s = slow_of(&p, false);
        slow_loss(&s);
        assert_ok(run(&p, NULL));
        assert_near(p.report.loss, s.loss, 1e-5 * s.loss);
        for (size_t i = 0; i < p.count; i++) assert_near(p.each[i], s.each[i], 1e-5 * s.each[i]);
        assert_true(apart(p.d_hidden, s.d_hidden, p.count * p.dim) < 1e-4);
        assert_true(apart(p.d_table, s.d_table, p.rows * p.dim) < 1e-4);
        slow_free(&s);
        problem_free(&p);
    }
}

static void large_logits_in_bf16(void **state)
{
    (void)state;
    SKIP_WITHOUT_ENGINE();
    for (size_t k = 0; k < COUNT_OF(large); k++) {
        problem p = problem_of_size(large[k], EMBLA_BF16);
        slow s = slow_of(&p, false), r = slow_of(&p, true);
        slow_loss(&s);
        slow_loss(&r);
        assert_ok(run(&p, NULL));
        assert_near(p.report.loss, s.loss, 1e-2 * s.loss); /* against what was meant */
        assert_true(alike(p.d_hidden, s.d_hidden, p.count * p.dim) > 0.999);
        assert_true(alike(p.d_table, s.d_table, p.rows * p.dim) > 0.999);
        assert_near(p.report.loss, r.loss, 1e-5 * r.loss); /* and its own loss and gradient */
        for (size_t i = 0; i < p.count; i++) assert_near(p.each[i], r.each[i], 1e-5 * r.each[i]);
        assert_true(apart(p.d_hidden, r.d_hidden, p.count * p.dim) < 4e-3);
        assert_true(apart(p.d_table, r.d_table, p.rows * p.dim) < 4e-3);
        slow_free(&s), slow_free(&r);
        problem_free(&p);
    }
}

/* A target that is all but certain: loss and gradient keep their digits. */
static void a_small_loss_is_exact(void **state)
{
    enum { ROWS = 40 };
    float numbers[ROWS] = {1}, hidden[1] = {18}, gradient[1];
    int32_t target = 0;
    embla_loss_report report;
    embla_table *table = NULL;
    (void)state;
    SKIP_WITHOUT_ENGINE();
    assert_ok(embla_table_view(&(embla_table_layout){.dtype = EMBLA_F32, .rows = ROWS, .dim = 1},
                               numbers, sizeof numbers, NULL, &table));
    assert_ok(embla_head_loss(&(embla_head){.table = table},
                              &(embla_loss_batch){.hidden = hidden, .targets = &target, .count = 1},
                              NULL, &(embla_loss_gradients){.hidden = gradient}, &report));
    double wanted = log1p(39 * exp(-18.0));
    assert_near(report.loss, wanted, 1e-6 * wanted);
    assert_near(gradient[0], expm1(-wanted), 1e-6 * wanted);
    assert_int_equal(report.correct, 1);
    embla_table_free(table);
}

/* ---- what is not counted ---- */

static void ignored_targets_change_nothing(void **state)
{
    (void)state;
    SKIP_WITHOUT_ENGINE();
    for (int bf16 = 0; bf16 < 2; bf16++) {
        problem p = problem_new(EMBLA_F32, 90, 12, 11, 2),
                all = problem_new(EMBLA_F32, 90, 12, 31, 3);
        p.options = (embla_loss_options){.threads = 1, .compute = bf16 ? EMBLA_BF16 : EMBLA_F32};
        for (size_t i = 0; i < p.count; i++)
            if (p.targets[i] == 7) p.targets[i] = 8;
        all.head.table = p.table;
        all.options = p.options;
        all.options.has_ignore = true;
        all.options.ignore = 7;                  /* a token, otherwise */
        for (size_t i = 0, k = 0; i < 31; i++) { /* counted ones among others, in order */
            bool counted = i % 3 == 1 && k < p.count;
            all.targets[i] = counted ? p.targets[k] : i % 2 ? EMBLA_TARGET_IGNORE : 7;
            if (!counted && i == 30) all.hidden[i * 12] = NAN;
            if (counted) memcpy(all.hidden + i * 12, p.hidden + k++ * 12, 12 * sizeof(float));
        }
        assert_ok(run(&p, &cuts[2]));
        all.report.ignored = 99;
        assert_ok(run(&all, &cuts[2]));
        assert_true(all.report.counted < 31 && all.report.counted + all.report.ignored == 31);
        if (all.report.counted == (int64_t)p.count) {
            assert_true(all.report.loss == p.report.loss);
            assert_memory_equal(all.d_table, p.d_table, 90 * 12 * sizeof(float));
        }
        for (size_t i = 0; i < 31; i++) {
            bool counted = all.targets[i] != EMBLA_TARGET_IGNORE && all.targets[i] != 7;
            for (size_t d = 0; d < 12 && !counted; d++) assert_true(all.d_hidden[i * 12 + d] == 0);
            if (!counted) assert_true(all.each[i] == 0);
        }
        problem_free(&p), problem_free(&all);
    }
}

static void nothing_counted_is_a_loss_of_zero(void **state)
{
    problem p = problem_new(EMBLA_F32, 20, 3, 5, 2);
    (void)state;
    for (size_t i = 0; i < p.count; i++) p.targets[i] = EMBLA_TARGET_IGNORE;
    p.report.loss = 7;
    p.each[2] = 7;
    assert_ok(run(&p, NULL)); /* and needs no engine */
    assert_true(p.report.loss == 0 && p.report.z_loss == 0);
    assert_true(p.report.counted == 0 && p.report.ignored == 5 && p.report.correct == 0);
    for (size_t i = 0; i < 15; i++) assert_true(p.d_hidden[i] == 0);
    for (size_t i = 0; i < 60; i++) assert_true(p.d_table[i] == 0);
    for (size_t i = 0; i < 5; i++) assert_true(p.each[i] == 0);
    assert_ok(embla_head_loss(&p.head, &(embla_loss_batch){0}, NULL, NULL, &p.report));
    assert_true(p.report.ignored == 0 && p.report.loss == 0);
    problem_free(&p);
}

static void gradients_are_added_and_only_where_wanted(void **state)
{
    problem p = problem_new(EMBLA_F32, 70, 5, 8, 2);
    float *table = zeros(70 * 5, sizeof *table), *bias = zeros(70, sizeof *bias), hidden[40];
    (void)state;
    SKIP_WITHOUT_ENGINE();
    p.head.bias = p.bias;
    assert_ok(run(&p, NULL));
    for (size_t i = 0; i < 350; i++) table[i] = 8;
    for (size_t i = 0; i < 70; i++) bias[i] = -8;
    embla_loss_gradients to = {.table = table};
    assert_ok(embla_head_loss(
        &p.head, &(embla_loss_batch){.hidden = p.hidden, .targets = p.targets, .count = 8}, NULL,
        &to, NULL));
    to = (embla_loss_gradients){.bias = bias};
    assert_ok(embla_head_loss(
        &p.head, &(embla_loss_batch){.hidden = p.hidden, .targets = p.targets, .count = 8}, NULL,
        &to, NULL));
    to = (embla_loss_gradients){.hidden = hidden};
    assert_ok(embla_head_loss(
        &p.head, &(embla_loss_batch){.hidden = p.hidden, .targets = p.targets, .count = 8}, NULL,
        &to, NULL));
    for (size_t i = 0; i < 350; i++) assert_near(table[i] - 8, p.d_table[i], 2e-6);
    for (size_t i = 0; i < 70; i++) assert_near(bias[i] + 8, p.d_bias[i], 2e-6);
    assert_memory_equal(hidden, p.d_hidden, sizeof hidden);
    /* in the place of hidden itself */
    to = (embla_loss_gradients){.hidden = p.hidden};
    assert_ok(embla_head_loss(
        &p.head, &(embla_loss_batch){.hidden = p.hidden, .targets = p.targets, .count = 8}, NULL,
        &to, NULL));
    assert_memory_equal(hidden, p.hidden, sizeof hidden);
    free(table), free(bias);
    problem_free(&p);
}

/* ---- what is not a number, or endless ---- */

static void a_nan_stays_with_its_token(void **state)
{
    problem p = problem_new(EMBLA_F32, 100, 8, 9, 4);
    (void)state;
    SKIP_WITHOUT_ENGINE();
    assert_ok(run(&p, &cuts[2]));
    float *clean = zeros(72, sizeof *clean);
    memcpy(clean, p.d_hidden, 72 * sizeof *clean);
    p.hidden[4 * 8 + 3] = NAN;
    assert_ok(run(&p, &cuts[2]));
    assert_true(isnan(p.report.loss) && isnan(p.each[4]) && !isnan(p.each[3]));
    for (size_t i = 0; i < 72; i++)
        if (i / 8 == 4)
            assert_true(isnan(p.d_hidden[i]));
        else
            assert_true(p.d_hidden[i] == clean[i]);
    for (size_t i = 0; i < 800; i++) assert_true(isnan(p.d_table[i]));
    p.hidden[4 * 8 + 3] = INFINITY; /* logits are +-infinity */
    assert_ok(run(&p, &cuts[2]));
    assert_true(isnan(p.each[4]) && !isnan(p.each[5]));
    free(clean);
    problem_free(&p);
}

static void a_barred_token_has_no_probability(void **state)
{
    (void)state;
    SKIP_WITHOUT_ENGINE();
    for (int cap = 0; cap < 2; cap++) {
        problem p = problem_new(EMBLA_F32, 70, 5, 6, 4);
        p.head.bias = p.bias;
        p.head.soft_cap = cap ? 2.0f : 0.0f;
        for (size_t v = 16; v < 34; v++) p.bias[v] = -INFINITY; /* a whole block, and more */
        for (size_t i = 0; i < 6; i++) p.targets[i] = (int32_t)i;
        check_against_slow(&p, &cuts[2], 3e-6);
        check_against_slow(&p, NULL, 3e-6);
        for (size_t i = 16 * 5; i < 34 * 5; i++) assert_true(p.d_table[i] == 0);
        p.targets[3] = 20;
        assert_ok(run(&p, &cuts[2]));
        assert_true(isinf(p.each[3]) && p.each[3] > 0 && isinf(p.report.loss));
        for (size_t i = 0; i < 30; i++) assert_true(isfinite(p.d_hidden[i]));
        p.targets[3] = 3;
        for (size_t v = 0; v < 70; v++) p.bias[v] = -INFINITY; /* nothing is left */
        assert_ok(run(&p, &cuts[2]));
        assert_true(isnan(p.each[0]) && p.report.correct == 0);
        problem_free(&p);
    }
}

static void huge_and_tiny_numbers(void **state)
{
    problem p = problem_new(EMBLA_F32, 30, 4, 3, 4);
    (void)state;
    SKIP_WITHOUT_ENGINE();
    for (size_t i = 0; i < 12; i++) p.hidden[i] = i < 4 ? 1e38f : i < 8 ? 1e-42f : 0.0f;
    assert_ok(run(&p, NULL));
    assert_near(p.each[1], log(30), 1e-5);
    assert_near(p.each[2], log(30), 1e-5);
    assert_true(p.each[0] > 1e30f || isnan(p.each[0]));
    problem_free(&p);
}

static void one_class_is_certain(void **state)
{
    problem p = problem_new(EMBLA_F32, 1, 5, 4, 4);
    (void)state;
    SKIP_WITHOUT_ENGINE();
    assert_ok(run(&p, NULL));
    assert_true(p.report.loss == 0 && p.report.correct == 4);
    for (size_t i = 0; i < 20; i++) assert_true(p.d_hidden[i] == 0);
    for (size_t i = 0; i < 5; i++) assert_true(p.d_table[i] == 0);
    problem_free(&p);
}

static void the_first_of_equals_is_the_right_one(void **state)
{
    float numbers[50], hidden[50];
    int32_t targets[50];
    embla_loss_report report;
    embla_table *table = NULL;
    const embla_loss_shape shape = {3, 16, 16, 2, false, false};
    (void)state;
    SKIP_WITHOUT_ENGINE();
    for (size_t i = 0; i < 50; i++) {
        hidden[i] = 1;
        targets[i] = (int32_t)i;
        numbers[i] = i == 20 || i == 21 || i == 40 ? 3.0f : 1.0f;
    }
    assert_ok(embla_table_view(&(embla_table_layout){.dtype = EMBLA_F32, .rows = 50, .dim = 1},
                               numbers, sizeof numbers, NULL, &table));
    embla_head head = {.table = table};
    assert_ok(embla_loss_run(&head, hidden, targets, 50, NULL, NULL, NULL, &report, &shape, NULL));
    assert_int_equal(report.correct, 1); /* 20 alone */
    numbers[3] = 3;
    assert_ok(embla_loss_run(&head, hidden, targets, 50, NULL, NULL, NULL, &report, &shape, NULL));
    assert_int_equal(report.correct, 1);
    for (size_t i = 0; i < 50; i++) targets[i] = 20;
    assert_ok(embla_loss_run(&head, hidden, targets, 50, NULL, NULL, NULL, &report, &shape, NULL));
    assert_int_equal(report.correct, 0);
    for (size_t i = 0; i < 50; i++) targets[i] = 3;
    assert_ok(embla_loss_run(&head, hidden, targets, 50, NULL, NULL, NULL, &report, &shape, NULL));
    assert_int_equal(report.correct, 50);
    embla_table_free(table);
}

static void z_loss_is_reported_apart(void **state)
{
    problem p = problem_new(EMBLA_F32, 30, 4, 5, 4);
    (void)state;
    SKIP_WITHOUT_ENGINE();
    assert_ok(run(&p, NULL));
    double plain = p.report.loss;
    assert_true(p.report.z_loss == 0);
    p.options.z_loss = 0.5;
    assert_ok(run(&p, NULL));
    assert_true(p.report.z_loss > 0);
    assert_near(p.report.loss - p.report.z_loss, plain, 1e-12);
    problem_free(&p);
}

/* ---- the same bits ---- */

static void check_threads(problem *p, const embla_loss_shape *shape)
{
    size_t vectors = p->count * p->dim * sizeof(float), rows = p->rows * p->dim * sizeof(float);
    float *hidden = malloc(vectors), *table = malloc(rows), *bias = malloc(p->rows * 4);
    embla_loss_report report = {0};
    static const int teams[] = {1, 2, 3, 4, 8, 2, 3};
    for (size_t t = 0; t < COUNT_OF(teams); t++) {
        p->options.threads = teams[t];
        assert_ok(run(p, shape));
        if (t == 0) {
            memcpy(hidden, p->d_hidden, vectors);
            memcpy(table, p->d_table, rows);
            memcpy(bias, p->d_bias, p->rows * 4);
            report = p->report;
            continue;
        }
        assert_memory_equal(p->d_hidden, hidden, vectors);
        assert_memory_equal(p->d_table, table, rows);
        assert_memory_equal(p->d_bias, bias, p->rows * 4);
        assert_true(p->report.loss == report.loss && p->report.correct == report.correct);
    }
    free(hidden), free(table), free(bias);
}

static void any_number_of_threads_gives_the_same_bits(void **state)
{
    static const embla_dtype dtypes[] = {EMBLA_F32, EMBLA_BF16, EMBLA_Q8_0};
    static const embla_loss_shape small = {64, 272, 48, 7, false, false},
                                  again = {64, 272, 48, 7, true, true};
    (void)state;
    SKIP_WITHOUT_ENGINE();
    for (size_t k = 0; k < COUNT_OF(dtypes); k++)
        for (int bf16 = 0; bf16 < 2; bf16++) {
            problem p = problem_new(dtypes[k], 4003, 64, 150, 9);
            p.head = (embla_head){.table = p.table, .bias = p.bias, .soft_cap = 5, .scale = 0.5f};
            p.options = (embla_loss_options){.smoothing = 0.1, .z_loss = 1e-3};
            p.options.compute = bf16 ? EMBLA_BF16 : EMBLA_F32;
            p.targets[17] = EMBLA_TARGET_IGNORE;
            check_threads(&p, NULL);
            check_threads(&p, &small);
            check_threads(&p, &again);
            problem_free(&p);
        }
}

/* A batch in two calls, cut after a whole number of chunks, adds the same bits to the table. */
static void shards_of_whole_chunks_give_the_same_table(void **state)
{
    const embla_loss_shape shape = {16, 48, 48, 3, false, false};
    problem p = problem_new(EMBLA_F32, 200, 24, 70, 9);
    float *table = zeros(200 * 24, sizeof *table), *hidden = zeros(70 * 24, sizeof *hidden);
    (void)state;
    SKIP_WITHOUT_ENGINE();
    p.options = (embla_loss_options){.threads = 2};
    assert_ok(run(&p, &shape));
    p.options.sum = true;
    p.options.weight = 1.0 / 70;
    for (size_t from = 0, n = 32; from < 70; from += n, n = 70 - from)
        assert_ok(
            embla_loss_run(&p.head, p.hidden + from * 24, p.targets + from, n, &p.options,
                           &(embla_loss_gradients){.table = table, .hidden = hidden + from * 24},
                           NULL, NULL, &shape, NULL));
    assert_memory_equal(table, p.d_table, 200 * 24 * sizeof(float));
    assert_memory_equal(hidden, p.d_hidden, 70 * 24 * sizeof(float));
    free(table), free(hidden);
    problem_free(&p);
}

static void shapes_keep_their_promise(void **state)
{
    static const int64_t rows[] = {1,     16,     17,     64,      65,       1424,      5000,
                                   50257, 131072, 262144, 1000000, 13107200, 100000000, 2147483648};
    static const size_t dims[] = {1, 16, 768, 4096, 100000, 1 << 20};
    (void)state;
    for (size_t r = 0; r < COUNT_OF(rows); r++)
        for (size_t d = 0; d < COUNT_OF(dims); d++) {
            embla_loss_shape s = embla_loss_shape_of((size_t)rows[r], dims[d], false);
            size_t all = ((size_t)rows[r] + 15) / 16 * 16;
            assert_true(s.chunk >= 1 && s.block >= 1 && s.part >= 1 && s.groups >= 1);
            assert_true(s.block % 16 == 0 && (rows[r] <= 64 || s.block / 16 % 2 == 1));
            assert_true(s.block <= 1440 && s.part <= s.block && s.groups <= 12);
            if (s.again) assert_true(dims[d] <= 128 && s.chunk * (all / s.block) <= 1 << 20);
            if (s.chunk > 1) {
                assert_true(s.again || s.chunk * all * 4 <= (size_t)50 << 20);
                assert_true(s.chunk * dims[d] * 4 <= (size_t)2 << 20);
            }
            if (s.groups > 1) assert_true(s.groups * s.chunk * dims[d] * 4 <= (size_t)8 << 20);
        }
    assert_int_equal(embla_loss_shape_of(50257, 768, false).chunk, 256);
    assert_int_equal(embla_loss_shape_of(262144, 256, false).chunk, 48);
    assert_int_equal(embla_loss_shape_of(262144, 64, false).chunk, 256); /* logits twice */
}

/* ---- refusals ---- */

#define REFUSED(status, text)                                                                      \
    do {                                                                                           \
        assert_status(embla_head_loss(&p.head,                                                     \
                                      &(embla_loss_batch){.hidden = p.hidden,                      \
                                                          .targets = p.targets,                    \
                                                          .count = p.count,                        \
                                                          .each = each},                           \
                                      &p.options, &to, &p.report),                                 \
                      status);                                                                     \
        assert_error_has(text);                                                                    \
        check_untouched(&g);                                                                       \
        assert_true(p.report.loss == 7);                                                           \
    } while (0)

static void what_is_refused_is_left_alone(void **state)
{
    problem p = problem_new(EMBLA_F32, 20, 3, 5, 2);
    check_guarded g = check_guard((15 + 60 + 20 + 5) * sizeof(float), 0);
    float *out = (float *)(void *)g.bytes, *each = out + 95;
    embla_loss_gradients to = {.hidden = out, .table = out + 15, .bias = out + 75};
    embla_table *table = p.table;
    (void)state;
    p.report.loss = 7;
    p.head.bias = p.bias;
    p.targets[3] = 20;
    REFUSED(EMBLA_ERR_RANGE, "target 20 at index 3; the head has 20 tokens");
    p.targets[3] = -1;
    REFUSED(EMBLA_ERR_RANGE, "target -1 at index 3");
    p.head.rows = 10;
    p.targets[0] = p.targets[1] = p.targets[2] = p.targets[4] = 2;
    p.targets[3] = 10;
    REFUSED(EMBLA_ERR_RANGE, "target 10 at index 3; the head has 10 tokens");
    p.targets[3] = 9;
    p.head.rows = 21;
    REFUSED(EMBLA_ERR_ARGUMENT, "21 tokens");
    p.head.rows = 0;
    p.head.table = NULL;
    REFUSED(EMBLA_ERR_ARGUMENT, "NULL");
    p.head.table = table;
    static const double bad[] = {-0.1, 1.0, NAN, INFINITY};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        p.options.smoothing = bad[i];
        REFUSED(EMBLA_ERR_ARGUMENT, "smoothing");
        p.options.smoothing = 0;
        p.options.z_loss = bad[i] == 1.0 ? -1.0 : bad[i];
        REFUSED(EMBLA_ERR_ARGUMENT, "z_loss");
        p.options.z_loss = 0;
    }
    p.options.weight = NAN;
    REFUSED(EMBLA_ERR_ARGUMENT, "weight");
    p.options.weight = 0;
    p.options.compute = EMBLA_F16;
    REFUSED(EMBLA_ERR_UNSUPPORTED, "f16");
    p.options.compute = 0;
    p.options.threads = -1;
    REFUSED(EMBLA_ERR_ARGUMENT, "threads is -1");
    p.options.threads = 0;
    p.head.bias = NULL;
    REFUSED(EMBLA_ERR_ARGUMENT, "bias");
    p.head.bias = p.bias;
    float *hidden = p.hidden;
    int32_t *targets = p.targets;
    p.hidden = NULL;
    REFUSED(EMBLA_ERR_ARGUMENT, "NULL");
    p.hidden = hidden;
    p.targets = NULL;
    REFUSED(EMBLA_ERR_ARGUMENT, "NULL");
    p.targets = targets;
    if (no_engine()) REFUSED(EMBLA_ERR_UNSUPPORTED, embla_engine_warning());
    check_guard_free(&g);
    problem_free(&p);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    SKIP_WITHOUT_ENGINE();
    for (int bf16 = 0; bf16 < 2; bf16++)
        for (int forever = 0; forever < 2; forever++) {
            problem p = problem_new(EMBLA_F16, 20, 3, 5, 2);
            check_guarded g = check_guard((15 + 60 + 5) * sizeof(float), 0);
            float *out = (float *)(void *)g.bytes, *each = out + 75;
            embla_loss_gradients to = {.hidden = out, .table = out + 15};
            p.options.compute = bf16 ? EMBLA_BF16 : EMBLA_F32;
            p.report.loss = 7;
            size_t live = embla_mem_live(), failures = 0;
            for (size_t at = 1;; at++) {
                embla_mem_fail(at, forever == 1);
                embla_status status = embla_head_loss(
                    &p.head,
                    &(embla_loss_batch){
                        .hidden = p.hidden, .targets = p.targets, .count = p.count, .each = each},
                    &p.options, &to, &p.report);
                embla_mem_fail(0, false);
                assert_int_equal(embla_mem_live(), live);
                if (status == EMBLA_OK) break;
                assert_status(status, EMBLA_ERR_MEMORY);
                assert_error_has("logits");
                check_untouched(&g);
                assert_true(p.report.loss == 7);
                failures++;
            }
            assert_int_equal(failures, 1); /* one block for all */
            check_guard_free(&g);
            problem_free(&p);
        }
}

/* Rows that lie in a file; and when it is cut short, a status. */
static void a_table_in_a_file(void **state)
{
    enum { ROWS = 300, DIM = 16, HEADER = 128 };
    static char file[HEADER + ROWS * DIM * 4];
    problem p = problem_new(EMBLA_F32, ROWS, DIM, 12, 2);
    embla_checkpoint *checkpoint = NULL;
    scratch s;
    (void)state;
    SKIP_WITHOUT_ENGINE();
    memset(file, ' ', HEADER);
    memcpy(file, "\x93NUMPY\x01\x00\x76\x00", 10);
    char text[100];
    int length =
        snprintf(text, sizeof text, "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }",
                 ROWS, DIM);
    memcpy(file + 10, text, (size_t)length);
    file[HEADER - 1] = '\n';
    memcpy(file + HEADER, embla_table_row(p.table, 0), sizeof file - HEADER);
    assert_ok(run(&p, NULL));
    float *wanted = malloc(ROWS * DIM * 4);
    memcpy(wanted, p.d_table, ROWS * DIM * 4);
    scratch_new(&s);
    scratch_write(scratch_path(&s, "t.npy"), file, sizeof file);
    assert_ok(embla_checkpoint_open(s.path, NULL, &checkpoint));
    embla_table_free(p.table);
    assert_ok(embla_table_open(checkpoint, NULL, NULL, &p.table));
    embla_checkpoint_free(checkpoint);
    p.head.table = p.table;
    assert_ok(run(&p, NULL));
    assert_memory_equal(wanted, p.d_table, ROWS * DIM * 4);
    p.report.loss = 7;
    embla_io_fail(2, false,
                  EMBLA_SYSTEM_OTHER); /* there before the rows were read, and not after */
    assert_status(embla_head_loss(&p.head,
                                  &(embla_loss_batch){
                                      .hidden = p.hidden, .targets = p.targets, .count = p.count},
                                  &p.options, NULL, &p.report),
                  EMBLA_ERR_IO);
    embla_io_fail(0, false, 0);
    assert_int_equal(truncate(s.path, 200), 0);
    assert_status(embla_head_loss(&p.head,
                                  &(embla_loss_batch){
                                      .hidden = p.hidden, .targets = p.targets, .count = p.count},
                                  &p.options, NULL, &p.report),
                  EMBLA_ERR_IO);
    assert_true(p.report.loss == 7);
    free(wanted);
    problem_free(&p);
    scratch_free(&s);
}

/* ---- memory ---- */

#if defined(__OPTIMIZE__) && EMBLA_X86
enum { MEASURES_MEMORY = !SLOW_BUILD };
#else
enum { MEASURES_MEMORY = 0 };
#endif

/* A line of /proc/self/status, in KiB. */
static long status_line(const char *name)
{
    char line[256];
    long kib = -1;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, name, strlen(name)) == 0) kib = strtol(line + strlen(name) + 1, NULL, 10);
    if (f) (void)fclose(f);
    return kib;
}

static bool forget_peak(void)
{
    FILE *f = fopen("/proc/self/clear_refs", "w");
    bool done = f && fputs("5", f) >= 0;
    if (f && fclose(f) != 0) done = false;
    return done;
}

/* The growth of the peak of resident memory in KiB, or -1 if it cannot be measured. */
static long grown_by(size_t rows)
{
    enum { DIM = 4, COUNT = 8192 };
    problem p = problem_new(EMBLA_F32, (int64_t)rows, DIM, COUNT, 2);
    p.head.bias = p.bias;
    memset(p.d_table, 0, rows * DIM * 4); /* arguments are there before */
    memset(p.d_hidden, 0, (size_t)COUNT * DIM * 4);
    memset(p.each, 0, COUNT * 4);
    memset(p.d_bias, 0, rows * 4);
    long grown = -1, before = status_line("VmRSS:");
    if (forget_peak() && before > 0) {
        assert_ok(run(&p, NULL));
        grown = status_line("VmHWM:") - before;
        print_message("%zu rows: peak resident grew by %ld KiB\n", rows, grown);
        assert_int_equal(p.report.counted, COUNT);
    }
    problem_free(&p);
    return grown;
}

static void memory_is_64_mib_at_most(void **state)
{
    (void)state;
    SKIP_WITHOUT_ENGINE();
    if (!MEASURES_MEMORY) skip_because("slow builds and sanitizers do not measure memory");
    long held = grown_by(65536), again = grown_by(262144);
    if (held < 0 || again < 0) skip_because("/proc does not tell the memory of a process");
    assert_true(held > 40 << 10 && held <= 64 << 10);
    assert_true(again > 0 && again <= 40 << 10); /* no logits are held */
}

int main(int count, char **words)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_slow_loss_is_its_own_derivative),
        cmocka_unit_test(all_gradients_are_those_of_the_slow_loss),
        cmocka_unit_test(bf16_is_the_slow_loss_of_rounded_factors),
        cmocka_unit_test(every_dtype_of_table_will_do),
        cmocka_unit_test(views_of_any_stride_and_alignment),
        cmocka_unit_test(gradients_are_differences_of_the_loss_itself),
        cmocka_unit_test(large_logits_in_f32),
        cmocka_unit_test(large_logits_in_bf16),
        cmocka_unit_test(a_small_loss_is_exact),
        cmocka_unit_test(ignored_targets_change_nothing),
        cmocka_unit_test(nothing_counted_is_a_loss_of_zero),
        cmocka_unit_test(gradients_are_added_and_only_where_wanted),
        cmocka_unit_test(a_nan_stays_with_its_token),
        cmocka_unit_test(a_barred_token_has_no_probability),
        cmocka_unit_test(huge_and_tiny_numbers),
        cmocka_unit_test(one_class_is_certain),
        cmocka_unit_test(the_first_of_equals_is_the_right_one),
        cmocka_unit_test(z_loss_is_reported_apart),
        cmocka_unit_test(any_number_of_threads_gives_the_same_bits),
        cmocka_unit_test(shards_of_whole_chunks_give_the_same_table),
        cmocka_unit_test(shapes_keep_their_promise),
        cmocka_unit_test(what_is_refused_is_left_alone),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(a_table_in_a_file),
        cmocka_unit_test(memory_is_64_mib_at_most),
    };
    if (count > 1) cmocka_set_test_filter(words[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
