/* SPDX-License-Identifier: Apache-2.0 */
/* A training has the same bits for any number of threads: 100 steps of lookup, scatter, clip and
 * each optimizer on a table of 50,257 x 768 with tokens as text has them (Zipf), and a shorter
 * one through head and loss. Tables are compared byte for byte after the last step; the SHA-256
 * of each is printed, so that runs, builds and machines can be compared by eye.
 */
#include <math.h>
#include <stdio.h>

#include "check.h"
#include "slow.h"

#include "embla_learn.h"
#include "learn/scatter_sum.h"

static const int thread_counts[] = {1, 2, 3, 4, 8};

/* ---- SHA-256 (FIPS 180-4) ---- */

static uint32_t turn_right(uint32_t x, unsigned n)
{
    return x >> n | x << (32 - n);
}

/* The first 32 bits of the fractional parts of roots of the first primes: 64 cube roots, then 8
 * square roots. long double has 64 digits, of which these take at most 35. */
static void sha_constants(uint32_t k[64], uint32_t state[8])
{
    size_t found = 0;
    for (unsigned n = 2; found < 64; n++) {
        bool prime = true;
        for (unsigned d = 2; d * d <= n; d++) prime = prime && n % d != 0;
        if (!prime) continue;
        long double cube = cbrtl((long double)n), square = sqrtl((long double)n);
        if (found < 8) state[found] = (uint32_t)((square - floorl(square)) * 4294967296.0L);
        k[found++] = (uint32_t)((cube - floorl(cube)) * 4294967296.0L);
    }
}

static void sha_block(const uint32_t k[64], uint32_t state[8], const unsigned char *block)
{
    uint32_t w[64], s[8];
    for (size_t i = 0; i < 16; i++)
        w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
               (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
    for (size_t i = 16; i < 64; i++) {
        uint32_t a = w[i - 15], b = w[i - 2];
        w[i] = w[i - 16] + (turn_right(a, 7) ^ turn_right(a, 18) ^ a >> 3) + w[i - 7] +
               (turn_right(b, 17) ^ turn_right(b, 19) ^ b >> 10);
    }
    memcpy(s, state, sizeof s);
    for (size_t i = 0; i < 64; i++) {
        uint32_t e = s[4], a = s[0];
        uint32_t one = s[7] + (turn_right(e, 6) ^ turn_right(e, 11) ^ turn_right(e, 25)) +
                       ((e & s[5]) ^ (~e & s[6])) + k[i] + w[i];
        uint32_t two = (turn_right(a, 2) ^ turn_right(a, 13) ^ turn_right(a, 22)) +
                       ((a & s[1]) ^ (a & s[2]) ^ (s[1] & s[2]));
        for (size_t j = 7; j > 0; j--) s[j] = s[j - 1];
        s[4] += one;
        s[0] = one + two;
    }
    for (size_t i = 0; i < 8; i++) state[i] += s[i];
}

static void sha_256(const void *data, size_t bytes, char hex[65])
{
    const unsigned char *at = data;
    unsigned char tail[128] = {0};
    uint32_t k[64], state[8];
    size_t rest = bytes % 64, padded = rest < 56 ? 64 : 128;
    sha_constants(k, state);
    for (size_t i = 0; i + 64 <= bytes; i += 64) sha_block(k, state, at + i);
    if (rest > 0) memcpy(tail, at + bytes - rest, rest);
    tail[rest] = 0x80;
    for (size_t i = 0; i < 8; i++)
        tail[padded - 1 - i] = (unsigned char)((uint64_t)bytes * 8 >> 8 * i);
    for (size_t i = 0; i < padded; i += 64) sha_block(k, state, tail + i);
    for (size_t i = 0; i < 8; i++) (void)snprintf(hex + 8 * i, 9, "%08x", state[i]);
}

static void the_digest_is_sha_256(void **state)
{
    char hex[65];
    (void)state;
    sha_256("abc", 3, hex);
    assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    sha_256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq", 56, hex);
    assert_string_equal(hex, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

/* ---- what both trainings share ---- */

/* Tokens by frequency: token k as often as 1/(k+1), nearly. */
static void zipf(uint64_t seed, int64_t rows, size_t count, int32_t *tokens)
{
    for (size_t i = 0; i < count; i++) {
        double u = (double)(check_next(&seed) >> 11) * 0x1p-53;
        tokens[i] = (int32_t)(pow((double)rows, u)) - 1;
    }
}

/* Compares a table with that of the first number of threads, which is kept, or keeps it. */
static void same_as_first(const char *name, size_t turn, const embla_table *table, float *first,
                          const void *untrained)
{
    size_t bytes = (size_t)embla_table_rows(table) * embla_table_row_bytes(table);
    const void *data = embla_table_row(table, 0);
    char hex[65];
    if (turn > 0) {
        if (memcmp(data, first, bytes) != 0)
            fail_msg("%s: %d threads have other bits than one", name, thread_counts[turn]);
        return;
    }
    assert_memory_not_equal(data, untrained, bytes); /* it learned something */
    memcpy(first, data, bytes);
    for (size_t i = 0; i < bytes / sizeof *first; i++)
        if (!isfinite(first[i])) fail_msg("%s: number %zu is %g", name, i, (double)first[i]);
    sha_256(data, bytes, hex);
    print_message("%-24s %s\n", name, hex);
}

/* ---- steps of touched rows ---- */

enum { ROWS = 50257, DIM = 768, TOKENS = 512, LENGTH = 64 };

typedef struct {
    embla_table *table;
    embla_scatter *scatter;
    embla_optim *optim;
    int threads;
    float *vectors, *gradients; /* TOKENS x DIM, each */
} training;

/* Towards zero, and a little to and fro by place. */
static void make_gradient(const float *x, int step, float *out)
{
    uint32_t state = 2654435761u * (uint32_t)(step + 1);
    for (size_t i = 0; i < (size_t)TOKENS * DIM; i++) {
        state = state * 1664525u + 1013904223u;
        out[i] = 0.25f * x[i] + (float)(int32_t)state * 0x1p-36f;
    }
}

static void step_rows(training *t, int step)
{
    int32_t tokens[TOKENS];
    const embla_schedule schedule = {
        .rate = 0.01, .final = 0.001, .steps = 100, .warm_up = 10, .kind = EMBLA_SCHEDULE_LINEAR};
    double rate = 0.0, norm = 0.0;
    zipf((uint64_t)step + 1, ROWS, TOKENS, tokens);
    const embla_scatter_options how = {.threads = t->threads, .frozen = {.below = 1}};
    assert_ok(embla_schedule_rate(&schedule, step, &rate));
    assert_ok(embla_scatter_plan(t->scatter, tokens, TOKENS, &how));
    const int64_t *rows = embla_scatter_rows(t->scatter);
    size_t count = embla_scatter_count(t->scatter);
    assert_ok(embla_optim_catch_up(t->optim, rows, count));
    const embla_embed_options look = {.threads = t->threads};
    assert_ok(embla_embed(t->table, tokens, TOKENS / LENGTH, LENGTH, &look, t->vectors));
    make_gradient(t->vectors, step, t->gradients);
    assert_ok(embla_scatter_sum(t->scatter, t->gradients, DIM, t->vectors));
    const embla_span span = {t->vectors, count * DIM};
    assert_ok(embla_clip(&span, 1, 1.0, &(embla_clip_options){.threads = t->threads}, &norm));
    assert_true(norm > 1.0); /* or clipping is not in the test */
    assert_ok(embla_optim_step_rows(t->optim, rate, rows, count, t->vectors));
}

/* One training from the beginning; the table is the caller's to free. */
static embla_table *train_rows(const embla_table *untrained, const embla_optim_options *options,
                               int threads, int steps)
{
    training t = {.threads = threads};
    embla_optim_options mine = *options;
    mine.threads = threads;
    mine.frozen.below = 1;
    t.vectors = malloc((size_t)TOKENS * DIM * sizeof(float));
    t.gradients = malloc((size_t)TOKENS * DIM * sizeof(float));
    assert_true(t.vectors && t.gradients);
    assert_ok(embla_table_new(EMBLA_F32, ROWS, DIM, NULL, &t.table));
    memcpy(embla_table_data(t.table), embla_table_row(untrained, 0),
           (size_t)ROWS * DIM * sizeof(float));
    assert_ok(embla_scatter_new(ROWS, TOKENS, &t.scatter));
    assert_ok(embla_optim_new(t.table, &mine, &t.optim));
    for (int step = 0; step < steps; step++) step_rows(&t, step);
    assert_int_equal(embla_optim_steps(t.optim), steps);
    assert_ok(embla_optim_catch_up(t.optim, NULL, 0));
    embla_optim_free(t.optim);
    embla_scatter_free(t.scatter);
    free(t.vectors);
    free(t.gradients);
    return t.table;
}

static void steps_of_touched_rows_have_the_same_bits(void **state)
{
    static const struct {
        const char *name;
        embla_optim_options options;
    } kinds[] = {
        {"sgd", {.kind = EMBLA_OPTIM_SGD, .momentum = 0.9, .nesterov = true, .decay = 0.01}},
        {"adagrad", {.kind = EMBLA_OPTIM_ADAGRAD}},
        {"adagrad-rowwise", {.kind = EMBLA_OPTIM_ADAGRAD_ROWWISE, .decay = 0.01}},
        {"adamw", {.kind = EMBLA_OPTIM_ADAMW, .decay = 0.01}},
        {"adamw, catching up", {.kind = EMBLA_OPTIM_ADAMW, .decay = 0.01, .catch_up = true}},
    };
    size_t bytes = (size_t)ROWS * DIM * sizeof(float);
    float *first = malloc(bytes);
    embla_table *untrained = check_table(EMBLA_F32, ROWS, DIM, 1);
    (void)state;
    assert_non_null(first);
    for (size_t k = 0; k < COUNT_OF(kinds); k++)
        for (size_t turn = 0; turn < COUNT_OF(thread_counts); turn++) {
            embla_table *table =
                train_rows(untrained, &kinds[k].options, thread_counts[turn], steps_of(100));
            same_as_first(kinds[k].name, turn, table, first, embla_table_row(untrained, 0));
            assert_memory_equal(embla_table_row(table, 0), embla_table_row(untrained, 0),
                                DIM * sizeof(float)); /* row 0 is frozen */
            embla_table_free(table);
        }
    embla_table_free(untrained);
    free(first);
}

/* ---- steps of all rows, through head and loss ---- */

enum { HEAD_ROWS = 8449, HEAD_TOKENS = 64 };

/* The model is nothing at all: a token's vector is to say which token comes next. Head and
 * lookup share the table, so its gradient is the sum of both. Returns the last loss. */
static double train_head(embla_dtype compute, int threads, int steps, embla_table **out)
{
    embla_table *table = check_table(EMBLA_F32, HEAD_ROWS, DIM, 2);
    size_t all = (size_t)HEAD_ROWS * DIM;
    float *dense = malloc(all * sizeof *dense),
          *hidden = malloc(HEAD_TOKENS * DIM * sizeof *hidden);
    float *back = malloc(HEAD_TOKENS * DIM * sizeof *back);
    float bias[HEAD_ROWS] = {0}, bias_gradient[HEAD_ROWS];
    int32_t tokens[HEAD_TOKENS + 1];
    embla_loss_report report = {0};
    embla_scatter *scatter = NULL;
    embla_optim *optim = NULL;
    const embla_optim_options how = {.kind = EMBLA_OPTIM_ADAMW, .decay = 0.01, .threads = threads};
    const embla_loss_options loss = {
        .compute = compute, .threads = threads, .smoothing = 0.1, .z_loss = 1e-4};
    const embla_head head = {.table = table, .bias = bias, .scale = 0.25f, .soft_cap = 30.0f};
    const embla_loss_gradients gradients = {.hidden = back, .table = dense, .bias = bias_gradient};
    assert_true(dense && hidden && back);
    assert_ok(embla_scatter_new(HEAD_ROWS, HEAD_TOKENS, &scatter));
    assert_ok(embla_optim_new(table, &how, &optim));
    for (int step = 0; step < steps; step++) {
        const embla_lookup_options look = {.threads = threads};
        const embla_scatter_options plan = {.threads = threads};
        const embla_span spans[] = {{dense, all}, {bias_gradient, HEAD_ROWS}};
        zipf((uint64_t)(step % 3) + 1, HEAD_ROWS, HEAD_TOKENS + 1, tokens);
        memset(dense, 0, all * sizeof *dense);
        memset(bias_gradient, 0, sizeof bias_gradient);
        assert_ok(embla_lookup(table, tokens, HEAD_TOKENS, &look, hidden));
        assert_ok(embla_head_loss(
            &head,
            &(embla_loss_batch){.hidden = hidden, .targets = tokens + 1, .count = HEAD_TOKENS},
            &loss, &gradients, &report));
        assert_ok(embla_scatter_plan(scatter, tokens, HEAD_TOKENS, &plan));
        assert_ok(embla_scatter_add(scatter, back, DIM, dense));
        assert_ok(embla_clip(spans, 2, 1.0, &(embla_clip_options){.threads = threads}, NULL));
        assert_ok(embla_optim_step(optim, 0.01, dense));
        for (size_t v = 0; v < HEAD_ROWS; v++) bias[v] -= 0.1f * bias_gradient[v];
    }
    embla_optim_free(optim);
    embla_scatter_free(scatter);
    free(back);
    free(hidden);
    free(dense);
    *out = table;
    return report.loss;
}

static void steps_through_the_loss_have_the_same_bits(void **state)
{
    size_t bytes = (size_t)HEAD_ROWS * DIM * sizeof(float);
    float *first = malloc(bytes);
    embla_table *untrained = check_table(EMBLA_F32, HEAD_ROWS, DIM, 2);
    (void)state;
    assert_non_null(first);
    for (int narrow = 0; narrow < 2; narrow++) {
        double loss_of_one = 0.0;
        for (size_t turn = 0; turn < COUNT_OF(thread_counts); turn++) {
            embla_table *table = NULL;
            double loss = train_head(narrow ? EMBLA_BF16 : EMBLA_F32, thread_counts[turn],
                                     steps_of(20), &table);
            if (turn == 0) loss_of_one = loss;
            assert_true(loss == loss_of_one);
            assert_true(loss > 0.0 && loss < 100.0);
            same_as_first(narrow ? "loss, bf16" : "loss, f32", turn, table, first,
                          embla_table_row(untrained, 0));
            embla_table_free(table);
        }
    }
    embla_table_free(untrained);
    free(first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_digest_is_sha_256),
        cmocka_unit_test(steps_of_touched_rows_have_the_same_bits),
        cmocka_unit_test(steps_through_the_loss_have_the_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
