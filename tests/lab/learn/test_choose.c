/* SPDX-License-Identifier: Apache-2.0 */
/* Choosing tokens against a full sort: the best k, and draws with every restriction, where the
 * token at the edge of what is left is made to win or is left out by the thickness of one token.
 * Most tables have rows of one number and the vector is 1: rows then are the logits.
 */
#include <math.h>

#include "base/mem.h"
#include "check.h"
#include "embla_learn.h"
#include "learn/choose.h"
#include "slow.h"

static const int thread_counts[] = {1, 2, 3, 4, 8};

static float *new_floats(size_t n)
{
    float *x = malloc((n > 0 ? n : 1) * sizeof *x);
    assert_non_null(x);
    return x;
}

/* ---- the reference: everything sorted ---- */

typedef struct {
    int64_t token;
    float logit;
} candidate;

typedef struct {
    candidate *sorted; /* tokens that can be chosen, the likeliest first */
    size_t count;
    long double mass; /* of all, as e^(x - most) */
    float most;
} reference;

static int by_likelihood(const void *a, const void *b)
{
    const candidate *x = a, *y = b;
    if (x->logit != y->logit) return x->logit > y->logit ? -1 : 1;
    return x->token < y->token ? -1 : 1;
}

static reference sort_all(const float *logits, size_t n)
{
    reference r = {.sorted = malloc((n + 1) * sizeof *r.sorted)};
    assert_non_null(r.sorted);
    for (size_t i = 0; i < n; i++)
        if (logits[i] > -INFINITY)
            r.sorted[r.count++] = (candidate){.token = (int64_t)i, .logit = logits[i]};
    qsort(r.sorted, r.count, sizeof *r.sorted, by_likelihood);
    if (r.count > 0) r.most = r.sorted[0].logit;
    for (size_t i = 0; i < r.count; i++) r.mass += expl((long double)r.sorted[i].logit - r.most);
    return r;
}

/* How many are left by the options, in turn. */
static size_t left(const reference *r, const embla_sample_options *o)
{
    size_t n = r->count;
    if (o->top_k > 0 && o->top_k < n) n = o->top_k;
    if (o->top_p > 0.0 && o->top_p < 1.0) {
        long double all = 0, sum = 0;
        for (size_t i = 0; i < n; i++)
            all += expl(((long double)r->sorted[i].logit - r->most) / o->temperature);
        size_t m = 0;
        while (m < n && (m == 0 || sum < o->top_p * all))
            sum += expl(((long double)r->sorted[m++].logit - r->most) / o->temperature);
        n = m;
    }
    while (o->min_p > 0.0 && n > 1 &&
           expl(((long double)r->sorted[n - 1].logit - r->most) / o->temperature) < o->min_p)
        n--;
    return n;
}

/* u of a token, by Philox4x32-10 as its paper has it, one block at a time. */
static double chance(uint64_t seed, uint64_t draw, int64_t token)
{
    uint64_t block = (uint64_t)token / 32 * 16 + (uint64_t)token % 16;
    uint32_t c[4] = {(uint32_t)block, (uint32_t)draw, (uint32_t)(draw >> 32),
                     64 + (uint32_t)(block >> 32)};
    uint32_t k[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    for (int round = 0; round < 10; round++) {
        uint64_t a = (uint64_t)c[0] * 0xD2511F53u, b = (uint64_t)c[2] * 0xCD9E8D57u;
        uint32_t c0 = (uint32_t)(b >> 32) ^ c[1] ^ k[0], c2 = (uint32_t)(a >> 32) ^ c[3] ^ k[1];
        c[0] = c0;
        c[1] = (uint32_t)b;
        c[2] = c2;
        c[3] = (uint32_t)a;
        k[0] += 0x9E3779B9u;
        k[1] += 0xBB67AE85u;
    }
    size_t first = token % 32 < 16 ? 0 : 2;
    uint64_t bits = (uint64_t)c[first] << 32 | c[first + 1];
    return ((double)(bits >> 12) + 0.5) * 0x1p-52;
}

static double luck(uint64_t seed, uint64_t draw, int64_t token)
{
    return -log(-log1p(-chance(seed, draw, token)));
}

static candidate draw_of(const reference *r, size_t n, const embla_sample_options *o)
{
    size_t best = 0;
    double highest = -INFINITY;
    for (size_t i = 0; i < n; i++) {
        double key = (double)r->sorted[i].logit * (1.0 / o->temperature) +
                     luck(o->seed, (uint64_t)o->step, r->sorted[i].token);
        if (key > highest) best = i;
        if (key > highest) highest = key;
    }
    return r->sorted[best];
}

static void check_choice(const embla_choice *got, candidate wanted, const reference *r)
{
    assert_int_equal(got->token, wanted.token);
    assert_true(got->logit == wanted.logit);
    assert_near(got->log_probability, (double)((long double)wanted.logit - r->most - logl(r->mass)),
                1e-11);
}

/* ---- the best ---- */

static void check_top(const embla_head *head, const float *hidden, size_t count, size_t k,
                      int threads)
{
    size_t rows = (size_t)(head->rows > 0 ? head->rows : embla_table_rows(head->table));
    float *logits = new_floats(count * rows);
    embla_choice *out = malloc(count * k * sizeof *out);
    assert_non_null(out);
    assert_ok(
        embla_head_logits(head, hidden, count, &(embla_head_options){.threads = threads}, logits));
    assert_ok(
        embla_head_top(head, hidden, count, k, &(embla_head_options){.threads = threads}, out));
    for (size_t v = 0; v < count; v++) {
        reference r = sort_all(logits + v * rows, rows);
        for (size_t i = 0; i < k; i++) {
            const embla_choice *got = &out[v * k + i];
            if (i < r.count) {
                check_choice(got, r.sorted[i], &r);
            } else {
                assert_int_equal(got->token, -1);
                assert_true(got->logit == -INFINITY && got->log_probability == -INFINITY);
            }
        }
        free(r.sorted);
    }
    free(out);
    free(logits);
}

static void test_top(void **state)
{
    static const size_t ks[] = {1, 2, 10, 300, 310};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(ks); i++)
        for (size_t count = 1; count <= 7; count += 3) {
            embla_table *table = check_table(EMBLA_F32, 300, 17, 3);
            float hidden[7 * 17], bias[300] = {0};
            check_fill(1, 7 * 17, hidden);
            for (size_t b = 0; b < 300; b += 3) bias[b] = -INFINITY;
            check_top(&(embla_head){.table = table}, hidden, count, ks[i], 2);
            check_top(&(embla_head){.table = table, .rows = 200, .bias = bias, .scale = 50.0f},
                      hidden, count, ks[i], 1);
            check_top(&(embla_head){.table = table, .soft_cap = 0.1f}, hidden, count, ks[i], 1);
            embla_table_free(table);
        }
}

/* A table whose rows are the logits. */
static embla_table *logits_table(const float *logits, size_t rows)
{
    embla_table *table = NULL;
    assert_ok(embla_table_new(EMBLA_F32, (int64_t)rows, 1, NULL, &table));
    assert_ok(embla_table_write(table, 0, rows, logits));
    return table;
}

static void test_top_of_strange_logits(void **state)
{
    enum { ROWS = 3000 };
    static const float one = 1.0f;
    float *x = new_floats(ROWS);
    embla_choice out[4];
    (void)state;
    for (size_t i = 0; i < ROWS; i++) x[i] = i % 3 ? (float)(i % 7) : NAN;
    embla_table *table = logits_table(x, ROWS);
    embla_head head = {.table = table};
    check_top(&head, &one, 1, 900, 2); /* ties, lower tokens first */
    for (size_t i = 0; i < ROWS; i++) x[i] = i % 2 ? NAN : -INFINITY;
    assert_ok(embla_table_write(table, 0, ROWS, x));
    assert_ok(embla_head_top(&head, &one, 1, 2, &(embla_head_options){.threads = 1}, out));
    assert_true(out[0].token == -1 && out[1].token == -1 && out[0].logit == -INFINITY);
    assert_ok(embla_head_sample(&head, &one, 1, &(embla_sample_options){.temperature = 1}, out));
    assert_int_equal(out[0].token, -1);
    assert_ok(embla_head_sample(&head, &one, 1,
                                &(embla_sample_options){.temperature = 1, .top_p = 0.5}, out));
    assert_int_equal(out[0].token, -1);
    x[5] = -3e38f;
    x[2049] = x[2222] = INFINITY; /* share all there is */
    assert_ok(embla_table_write(table, 0, ROWS, x));
    assert_ok(embla_head_top(&head, &one, 1, 3, &(embla_head_options){.threads = 1}, out));
    assert_true(out[0].token == 2049 && out[1].token == 2222 && out[2].token == 5);
    assert_near(out[1].log_probability, log(0.5), 1e-15);
    assert_true(out[2].log_probability == -INFINITY);
    for (int kind = 0; kind < 4; kind++) {
        int seen[2] = {0};
        for (int64_t step = 0; step < 40; step++) {
            embla_sample_options o = {.temperature = 0.5, .step = step};
            if (kind == 1) o.top_p = 0.9;
            if (kind == 2) o.min_p = 0.1;
            if (kind == 3) o.top_k = 3;
            assert_ok(embla_head_sample(&head, &one, 1, &o, out));
            bool second = luck(0, (uint64_t)step, 2222) > luck(0, (uint64_t)step, 2049);
            assert_int_equal(out[0].token, second ? 2222 : 2049);
            seen[second]++;
        }
        assert_true(seen[0] > 5 && seen[1] > 5);
    }
    free(x);
    embla_table_free(table);
}

/* ---- draws, exactly ---- */

/* The first draw in which the token is so lucky. */
static int64_t lucky_draw(uint64_t seed, int64_t token, double luck_wanted)
{
    double most = -expm1(-exp(-luck_wanted));
    int64_t draw = 0;
    while (chance(seed, (uint64_t)draw, token) > most) draw++;
    return draw;
}

static int64_t check_draw(const embla_head *head, const reference *r, size_t n,
                          embla_sample_options o, int64_t step)
{
    static const float one = 1.0f;
    embla_choice got;
    o.step = step;
    assert_ok(embla_head_sample(head, &one, 1, &o, &got));
    candidate wanted = draw_of(r, n, &o);
    check_choice(&got, wanted, r);
    return wanted.token;
}

static size_t edges_tried, edges_won;

static void check_rules(const embla_head *head, const reference *r, const embla_sample_options *o)
{
    size_t n = left(r, o);
    double mass = 0.0, last = (double)r->sorted[n - 1].logit;
    for (size_t i = 0; i < n; i++)
        mass += exp(((double)r->sorted[i].logit - last) / o->temperature);
    check_draw(head, r, n, *o, 3);
    double needed = log(mass) + 1.5;
    if (!(needed < 12.0)) return; /* it takes too long to find it so lucky */
    /* the last that is left wins, most often; and the first that is not would */
    int64_t step = lucky_draw(o->seed, r->sorted[n - 1].token, needed);
    edges_won += check_draw(head, r, n, *o, step) == r->sorted[n - 1].token;
    edges_tried++;
    if (n == r->count) return;
    step = lucky_draw(o->seed, r->sorted[n].token, needed);
    check_draw(head, r, n, *o, step);
}

static void fill_logits(int kind, size_t n, float *x)
{
    uint64_t state = 11;
    for (size_t i = 0; i < n; i++) {
        float normal = 0.0f;
        for (int j = 0; j < 6; j++) normal += 0.7f * check_unit(&state);
        if (kind == 0) x[i] = 2.5f;                                     /* flat */
        if (kind == 1) x[i] = 0.001f * check_unit(&state) - 5.0f;       /* nearly */
        if (kind == 2) x[i] = normal;                                   /* */
        if (kind == 3) x[i] = 4.0f * normal;                            /* peaked */
        if (kind == 4) x[i] = (float)check_below(&state, 4) * 0.5f - 1; /* ties, and 0 */
        if (kind == 5) x[i] = i % 2 ? -0.0f : 0.0f;
        if (kind == 6) x[i] = i % 5 ? normal * 0.1f : i % 2 ? NAN : -INFINITY;
    }
}

static void test_draws_exactly(void **state)
{
    enum { ROWS = 12011 };
    static const embla_sample_options rules[] = {
        {.temperature = 1.0},
        {.temperature = 0.7, .top_k = 1},
        {.temperature = 0.7, .top_k = 40},
        {.temperature = 1.3, .top_k = 8192},
        {.temperature = 1.3, .top_k = 8193},
        {.temperature = 2.0, .top_k = 11000},
        {.temperature = 1.0, .top_k = ROWS},
        {.temperature = 1.0, .top_p = 1e-9},
        {.temperature = 1.0, .top_p = 0.12345},
        {.temperature = 0.8, .top_p = 0.87654},
        {.temperature = 1.7, .top_p = 0.98765},
        {.temperature = 1.0, .min_p = 0.9},
        {.temperature = 1.5, .min_p = 0.01},
        {.temperature = 0.9, .min_p = 1.0},
        {.temperature = 1.0, .top_k = 5000, .top_p = 0.87654, .min_p = 0.3},
        {.temperature = 1.0, .top_k = 10000, .top_p = 0.87654},
        {.temperature = 1.0, .top_k = 10000, .top_p = 0.87654, .min_p = 0.45},
        {.temperature = 1.0, .top_p = 0.87654, .min_p = 0.45},
        {.temperature = 1e-3, .top_p = 0.5},
        {.temperature = 1e-200},
    };
    float *x = new_floats(ROWS);
    (void)state;
    for (int kind = 0; kind < 7; kind++) {
        fill_logits(kind, ROWS, x);
        embla_table *table = logits_table(x, ROWS);
        reference r = sort_all(x, ROWS);
        for (size_t i = 0; i < COUNT_OF(rules); i++) {
            embla_sample_options o = rules[i];
            o.seed = 77 + i;
            o.threads = (int)(1 + i % 3);
            if (o.temperature < 1e-100 && kind != 2) continue;
            embla_head head = {.table = table};
            if (kind == 5) { /* sums begin with 0: only so are there logits of -0 among others */
                head.scale = -1.0f;
                head.bias = x;
            }
            check_rules(&head, &r, &o);
        }
        free(r.sorted);
        embla_table_free(table);
    }
    free(x);
    assert_true(edges_tried > 80 && edges_won > edges_tried / 2);
}

/* ---- draws by their frequency ---- */

/* Chi-square of 100,000 draws against the probabilities of what is left. */
static void check_frequencies(const float *x, size_t n, const embla_sample_options *options)
{
    enum { MOST = 16, CALLS = SLOW_BUILD ? 20 : 100, EACH = 1000 };
    embla_table *table = logits_table(x, n);
    reference r = sort_all(x, n);
    size_t kept = left(&r, options), seen[MOST] = {0}, degrees = 0;
    float *hidden = new_floats(EACH);
    embla_choice *out = malloc(EACH * sizeof *out);
    double all = 0.0, chi = 0.0;
    assert_non_null(out);
    assert_true(n <= MOST);
    for (size_t i = 0; i < EACH; i++) hidden[i] = 1.0f;
    for (size_t c = 0; c < CALLS; c++) {
        embla_sample_options o = *options;
        o.step = (int64_t)c * EACH;
        assert_ok(embla_head_sample(&(embla_head){.table = table}, hidden, EACH, &o, out));
        for (size_t i = 0; i < EACH; i++) seen[out[i].token]++;
    }
    for (size_t i = 0; i < kept; i++)
        all += exp(((double)r.sorted[i].logit - (double)r.most) / options->temperature);
    for (size_t i = 0; i < r.count; i++) {
        double p = exp(((double)r.sorted[i].logit - (double)r.most) / options->temperature) / all;
        double expected = p * CALLS * EACH, got = (double)seen[r.sorted[i].token];
        if (i >= kept) assert_true(got == 0.0);
        if (i >= kept || expected < 5.0) continue;
        chi += (got - expected) * (got - expected) / expected;
        degrees++;
    }
    double usual = (double)degrees - 1.0;
    assert_true(chi < usual + 4.0 * sqrt(2.0 * usual) + 6.0);
    free(out);
    free(hidden);
    free(r.sorted);
    embla_table_free(table);
}

static void test_frequencies(void **state)
{
    static const embla_sample_options rules[] = {
        {.temperature = 1.0},
        {.temperature = 0.6, .seed = 1},
        {.temperature = 2.5, .seed = 2},
        {.temperature = 1.0, .top_k = 7, .seed = 3},
        {.temperature = 1.0, .top_p = 0.8, .seed = 4},
        {.temperature = 1.0, .min_p = 0.1, .seed = 5},
        {.temperature = 1.4, .top_k = 11, .top_p = 0.9, .min_p = 0.05, .seed = 6},
    };
    float x[14];
    uint64_t random = 5;
    (void)state;
    for (size_t i = 0; i < 14; i++) x[i] = 3.0f * check_unit(&random);
    for (size_t i = 0; i < COUNT_OF(rules); i++) check_frequencies(x, 14, &rules[i]);
}

/* ---- what does not matter ---- */

static void assert_same(const embla_choice *a, const embla_choice *b, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(a[i].token, b[i].token);
        assert_memory_equal(&a[i].logit, &b[i].logit, sizeof a[i].logit);
        assert_memory_equal(&a[i].log_probability, &b[i].log_probability, sizeof(double));
    }
}

static void test_same_bits(void **state)
{
    enum { ROWS = 9000, DIM = 16, COUNT = SLOW_BUILD ? 40 : 140 };
    static const embla_sample_options rules[] = {
        {.temperature = 0.0},
        {.temperature = 0.9, .seed = 5},
        {.temperature = 0.9, .seed = 5, .top_p = 0.9},
        {.temperature = 0.2, .seed = 5, .top_p = 0.3, .top_k = 50},
        {.temperature = 0.9, .seed = 5, .min_p = 0.01},
    };
    embla_table *table = check_table(EMBLA_F32, ROWS, DIM, 4);
    embla_choice *wanted = malloc(COUNT * sizeof *wanted), *out = malloc(COUNT * sizeof *out);
    float *hidden = new_floats((size_t)COUNT * DIM);
    (void)state;
    assert_true(wanted && out);
    check_fill(5, (size_t)COUNT * DIM, hidden);
    for (size_t i = 0; i < COUNT_OF(rules); i++) {
        static const size_t counts[] = {1, 3, COUNT};
        for (size_t c = 0; c < COUNT_OF(counts); c++) {
            embla_head head = {.table = table, .scale = i == 2 ? 1.0f : 20.0f};
            embla_sample_options o = rules[i];
            size_t count = i == 2 && counts[c] == COUNT ? 6 : counts[c]; /* deep: many passes */
            o.threads = 1;
            assert_ok(embla_head_sample(&head, hidden, count, &o, wanted));
            for (size_t t = 1; t < COUNT_OF(thread_counts); t++) {
                o.threads = thread_counts[t];
                assert_ok(embla_head_sample(&head, hidden, count, &o, out));
                assert_same(out, wanted, count);
            }
            for (size_t s = 0; s < CHECK_SETS && count <= 4; s++) {
                if (!embla_kernels_find(check_sets[s])) continue;
                embla_kernels_use(embla_kernels_find(check_sets[s]));
                assert_ok(embla_head_sample(&head, hidden, count, &o, out));
                assert_same(out, wanted, count);
            }
            embla_kernels_use(NULL);
        }
    }
    free(hidden);
    free(out);
    free(wanted);
    embla_table_free(table);
}

/* Vector i of a call is draw step + i, and other seeds and draws are other luck. */
static void test_steps(void **state)
{
    enum { ROWS = 500, DIM = 8 };
    embla_table *table = check_table(EMBLA_F32, ROWS, DIM, 4);
    embla_head head = {.table = table};
    embla_choice all[4], one;
    float hidden[4 * DIM];
    int64_t other = 0;
    (void)state;
    check_fill(5, 4 * DIM, hidden);
    for (int p = 0; p < 2; p++)
        for (int64_t step = 0; step < 20; step++) {
            embla_sample_options o = {.temperature = 1, .step = step, .top_p = p ? 0.9 : 0};
            assert_ok(embla_head_sample(&head, hidden, 4, &o, all));
            for (size_t i = 0; i < 4; i++) {
                o.step = step + (int64_t)i;
                assert_ok(embla_head_sample(&head, hidden + i * DIM, 1, &o, &one));
                assert_same(&one, &all[i], 1);
            }
            o.seed = 1;
            assert_ok(embla_head_sample(&head, hidden + 3 * DIM, 1, &o, &one));
            other += one.token != all[3].token;
            o.seed = (uint64_t)1 << 32;
            assert_ok(embla_head_sample(&head, hidden + 3 * DIM, 1, &o, &one));
            other += one.token != all[3].token;
        }
    assert_true(other > 60);
    embla_table_free(table);
}

/* The same where the cut lies deep. */
static void test_steps_deep(void **state)
{
    enum { ROWS = 9000 };
    static const float ones[3] = {1.0f, 1.0f, 1.0f};
    float *x = new_floats(ROWS);
    embla_choice all[3], one;
    (void)state;
    fill_logits(1, ROWS, x);
    embla_table *table = logits_table(x, ROWS);
    embla_head head = {.table = table};
    embla_sample_options o = {.temperature = 1, .step = 5, .top_p = 0.98765};
    assert_ok(embla_head_sample(&head, ones, 3, &o, all));
    for (size_t i = 0; i < 3; i++, o.step++) {
        assert_ok(embla_head_sample(&head, ones, 1, &o, &one));
        assert_same(&one, &all[i], 1);
    }
    assert_true(all[0].token != all[1].token && all[1].token != all[2].token);
    free(x);
    embla_table_free(table);
}

/* Many vectors, more than one group of them. */
static void test_many(void **state)
{
    enum { ROWS = 30, COUNT = 1500 };
    embla_table *table = check_table(EMBLA_F32, ROWS, 4, 4);
    embla_head head = {.table = table, .scale = 9.0f};
    float *hidden = new_floats(COUNT * 4);
    embla_choice *out = malloc(COUNT * sizeof *out), one;
    (void)state;
    assert_non_null(out);
    check_fill(5, COUNT * 4, hidden);
    embla_sample_options o = {.temperature = 1, .top_k = 5, .threads = 2};
    assert_ok(embla_head_sample(&head, hidden, COUNT, &o, out));
    for (size_t i = 0; i < COUNT; i++) {
        o.step = (int64_t)i;
        assert_ok(embla_head_sample(&head, hidden + 4 * i, 1, &o, &one));
        assert_int_equal(one.token, out[i].token);
        assert_near(one.log_probability, out[i].log_probability, 1e-5);
    }
    check_top(&head, hidden, COUNT, 3, 2);
    free(out);
    free(hidden);
    embla_table_free(table);
}

/* ---- what is refused, and what fails ---- */

static void test_bad_arguments(void **state)
{
    embla_table *table = check_table(EMBLA_F32, 10, 8, 1);
    embla_head head = {.table = table};
    embla_choice out = {.token = 99};
    float hidden[8] = {0};
    (void)state;
#define REFUSED(call, text)                                                                        \
    do {                                                                                           \
        assert_status(call, EMBLA_ERR_ARGUMENT);                                                   \
        assert_error_has(text);                                                                    \
    } while (0)
#define SAMPLE(...) embla_head_sample(&head, hidden, 1, &(embla_sample_options){__VA_ARGS__}, &out)
    REFUSED(embla_head_top(&head, hidden, 1, 0, &(embla_head_options){.threads = 1}, &out),
            "k is 0");
    REFUSED(embla_head_top(NULL, hidden, 1, 1, &(embla_head_options){.threads = 1}, &out), "NULL");
    REFUSED(embla_head_top(&head, NULL, 1, 1, &(embla_head_options){.threads = 1}, &out),
            "hidden is NULL");
    REFUSED(embla_head_top(&head, hidden, 1, 1, &(embla_head_options){.threads = 1}, NULL),
            "out is NULL");
    REFUSED(embla_head_top(&head, hidden, 1, 1, &(embla_head_options){.threads = -3}, &out),
            "threads is -3");
    REFUSED(
        embla_head_top(&head, hidden, 1, SIZE_MAX / 8, &(embla_head_options){.threads = 1}, &out),
        "do not fit in memory");
    REFUSED(SAMPLE(.temperature = -1), "temperature is -1");
    REFUSED(SAMPLE(.temperature = NAN), "temperature");
    REFUSED(SAMPLE(.temperature = INFINITY), "temperature");
    REFUSED(SAMPLE(.temperature = 1, .top_p = 1.5), "top_p is 1.5");
    REFUSED(SAMPLE(.temperature = 1, .top_p = -0.1), "top_p");
    REFUSED(SAMPLE(.temperature = 1, .top_p = NAN), "top_p");
    REFUSED(SAMPLE(.temperature = 1, .min_p = 1.5), "min_p is 1.5");
    REFUSED(SAMPLE(.temperature = 1, .min_p = -0.1), "min_p");
    REFUSED(SAMPLE(.temperature = 1, .min_p = NAN), "min_p");
    REFUSED(SAMPLE(.temperature = 1, .threads = -1), "threads is -1");
    REFUSED(embla_head_sample(&head, NULL, 1, &(embla_sample_options){.temperature = 1}, &out),
            "hidden is NULL");
    assert_int_equal(out.token, 99);
    assert_ok(embla_head_top(&head, NULL, 0, 1, &(embla_head_options){.threads = 1}, NULL));
    assert_ok(embla_head_sample(&head, NULL, 0, &(embla_sample_options){.temperature = 1}, NULL));
    assert_ok(embla_head_sample(&head, hidden, 1, NULL, &out)); /* the best: all are 0 */
    assert_int_equal(out.token, 0);
    embla_table_free(table);
}

static void test_no_memory(void **state)
{
    enum { ROWS = 9000 };
    static const float two[2] = {1.0f, 0.5f};
    float *x = new_floats(ROWS);
    (void)state;
    fill_logits(5, ROWS, x);
    embla_table *table = logits_table(x, ROWS);
    embla_head head = {.table = table};
    for (int kind = 0; kind < 4; kind++) {
        embla_sample_options o = {.temperature = kind > 0, .threads = 1};
        if (kind == 2) o.top_k = 3;
        if (kind == 3) o.top_p = 0.98765;
        size_t failures = 0;
        for (size_t at = 1;; at++) {
            embla_choice out[2] = {{.token = 7}, {.token = 8}};
            size_t live = embla_mem_live();
            embla_mem_fail(at, false);
            embla_status status = embla_head_sample(&head, two, 2, &o, out);
            embla_mem_fail(0, false);
            assert_int_equal(embla_mem_live(), live);
            if (status == EMBLA_OK) break;
            assert_status(status, EMBLA_ERR_MEMORY);
            assert_true(out[0].token == 7 && out[1].token == 8);
            failures++;
        }
        assert_true(failures >= (kind == 3 ? 8 : 3));
    }
    free(x);
    embla_table_free(table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_top),           cmocka_unit_test(test_top_of_strange_logits),
        cmocka_unit_test(test_draws_exactly), cmocka_unit_test(test_frequencies),
        cmocka_unit_test(test_same_bits),     cmocka_unit_test(test_steps),
        cmocka_unit_test(test_steps_deep),    cmocka_unit_test(test_many),
        cmocka_unit_test(test_bad_arguments), cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
