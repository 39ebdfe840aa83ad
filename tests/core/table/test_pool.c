/* SPDX-License-Identifier: Apache-2.0 */
/* Many vectors to one, against a loop in double; and what is left undefined elsewhere:
 * no vectors, NaN, weights that sum to nothing.
 */
#include "check.h"

#include <math.h>

enum { BATCH = 4, LENGTH = 9, MOST_DIM = 700 };

static float x[BATCH * LENGTH * MOST_DIM], weights[BATCH * LENGTH];

/* One number of the result, in double. */
static double plain_pool(const embla_pool_options *o, size_t dim, size_t b, size_t column)
{
    size_t count = o->lengths ? o->lengths[b] : LENGTH;
    double sum = 0, total = 0, best = -(double)INFINITY, last = 0;
    for (size_t t = 0; t < count; t++) {
        double w = o->weights ? (double)o->weights[b * LENGTH + t] : 1.0;
        last = (double)x[(b * LENGTH + t) * dim + column];
        sum += w * last;
        total += w;
        best = fmax(best, last);
    }
    if (count == 0) return 0;
    if (o->kind == EMBLA_POOL_MAX) return best;
    if (o->kind == EMBLA_POOL_LAST) return last;
    if (o->kind == EMBLA_POOL_SUM) return sum;
    return total == 0 ? 0 : sum / total;
}

static void pool_and_check(const embla_pool_options *options, size_t dim)
{
    check_guarded out = check_guard(BATCH * dim * sizeof(float), 4);
    float *y = (float *)(void *)out.bytes;
    check_fill(dim, BATCH * LENGTH * dim, x);
    assert_ok(embla_pool(x, BATCH, LENGTH, dim, options, y));
    embla_pool_options plain = options ? *options : (embla_pool_options){0};
    for (size_t b = 0; b < BATCH; b++) {
        double norm = 0;
        for (size_t i = 0; i < dim; i++) norm += pow(plain_pool(&plain, dim, b, i), 2);
        norm = plain.normalize && norm > 0 ? sqrt(norm) : 1;
        for (size_t i = 0; i < dim; i++) {
            double wanted = plain_pool(&plain, dim, b, i) / norm;
            assert_near(y[b * dim + i], wanted, fabs(wanted) * 0x1p-22 + 1e-12);
        }
    }
    check_guards(&out);
    check_guard_free(&out);
}

static void every_kind_agrees_with_a_loop_in_double(void **state)
{
    const size_t dims[] = {1, 2, 17, 255, 256, 257, 700};
    (void)state;
    for (size_t k = 0; k < COUNT_OF(dims); k++) {
        pool_and_check(NULL, dims[k]);
        for (int kind = EMBLA_POOL_MEAN; kind <= EMBLA_POOL_LAST; kind++)
            for (int normalize = 0; normalize < 2; normalize++)
                pool_and_check(&(embla_pool_options){.kind = (embla_pool_kind)kind,
                                                     .normalize = normalize != 0},
                               dims[k]);
    }
}

static void lengths_say_which_vectors_count(void **state)
{
    const size_t lengths[BATCH] = {LENGTH, 1, 0, 5};
    (void)state;
    for (int kind = EMBLA_POOL_MEAN; kind <= EMBLA_POOL_LAST; kind++)
        for (int normalize = 0; normalize < 2; normalize++)
            pool_and_check(&(embla_pool_options){.kind = (embla_pool_kind)kind,
                                                 .lengths = lengths,
                                                 .normalize = normalize != 0},
                           300);
}

static void weights_count_in_mean_and_sum(void **state)
{
    const size_t lengths[BATCH] = {LENGTH, 1, 0, 5};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(weights); i++) weights[i] = (float)(i % 5) * 0.25f;
    for (int kind = EMBLA_POOL_MEAN; kind <= EMBLA_POOL_SUM; kind++) {
        embla_pool_options options = {.kind = (embla_pool_kind)kind, .weights = weights};
        pool_and_check(&options, 300);
        options.lengths = lengths;
        pool_and_check(&options, 300);
    }
}

static void the_mean_by_weights_that_sum_to_0_is_zeros(void **state)
{
    const float in[4] = {1, 2, 3, 4}, w[2] = {1, -1};
    float out[2] = {9, 9};
    (void)state;
    assert_ok(embla_pool(in, 1, 2, 2, &(embla_pool_options){.weights = w}, out));
    assert_true(out[0] == 0 && out[1] == 0);
    embla_pool_options sum = {.weights = w, .kind = EMBLA_POOL_SUM};
    assert_ok(embla_pool(in, 1, 2, 2, &sum, out));
    assert_true(out[0] == -2 && out[1] == -2);
}

static void of_no_vectors_every_kind_is_zeros(void **state)
{
    (void)state;
    for (int kind = EMBLA_POOL_MEAN; kind <= EMBLA_POOL_LAST; kind++) {
        float out[6] = {9, 9, 9, 9, 9, 9};
        embla_pool_options options = {.kind = (embla_pool_kind)kind, .normalize = true};
        assert_ok(embla_pool(NULL, 2, 0, 3, &options, out));
        for (size_t i = 0; i < 6; i++) assert_true(out[i] == 0);
    }
}

static void a_nan_stays_a_nan_in_its_column_alone(void **state)
{
    (void)state;
    for (int kind = EMBLA_POOL_MEAN; kind <= EMBLA_POOL_MAX; kind++)
        for (size_t at = 0; at < 5; at++) {
            float in[5 * 20], out[20];
            check_fill(1, 100, in);
            in[at * 20 + 7] = NAN;
            assert_ok(embla_pool(in, 1, 5, 20, &(embla_pool_options){.kind = (embla_pool_kind)kind},
                                 out));
            for (size_t i = 0; i < 20; i++) assert_int_equal(!isnan(out[i]), i != 7);
        }
}

/* Padding may hold anything, NaN too. */
static void vectors_past_the_length_are_not_looked_at(void **state)
{
    const size_t two = 2;
    (void)state;
    for (int kind = EMBLA_POOL_MEAN; kind <= EMBLA_POOL_LAST; kind++) {
        const float in[6] = {1, 2, 3, 4, NAN, INFINITY};
        float out[2];
        embla_pool_options options = {.kind = (embla_pool_kind)kind, .lengths = &two};
        assert_ok(embla_pool(in, 1, 3, 2, &options, out));
        assert_true(isfinite(out[0]) && isfinite(out[1]));
    }
}

static void sums_are_kept_in_double(void **state)
{
    const float in[4] = {1e8f, 1.0f, 1.0f, -1e8f};
    float out = 0;
    (void)state;
    assert_ok(embla_pool(in, 1, 4, 1, &(embla_pool_options){.kind = EMBLA_POOL_SUM}, &out));
    assert_true(out == 2.0f);
}

static void a_zero_row_is_not_normalised(void **state)
{
    const float in[4] = {1, -1, -1, 1};
    float out[2];
    (void)state;
    assert_ok(embla_pool(in, 1, 2, 2, &(embla_pool_options){.normalize = true}, out));
    assert_true(out[0] == 0 && out[1] == 0);
}

static void what_cannot_be_is_refused(void **state)
{
    const size_t lengths[2] = {1, 3};
    const float w[4] = {1, 1, 1, 1};
    float in[8] = {0}, out[4] = {9, 9, 9, 9};
    const struct {
        embla_pool_options options;
        embla_status wanted;
    } bad[] = {
        {{.lengths = lengths}, EMBLA_ERR_RANGE},
        {{.weights = w, .kind = EMBLA_POOL_MAX}, EMBLA_ERR_ARGUMENT},
        {{.weights = w, .kind = EMBLA_POOL_LAST}, EMBLA_ERR_ARGUMENT},
        {{.kind = (embla_pool_kind)4}, EMBLA_ERR_ARGUMENT},
        {{.kind = (embla_pool_kind)-1}, EMBLA_ERR_ARGUMENT},
        {{.threads = -1}, EMBLA_ERR_ARGUMENT},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        assert_status(embla_pool(in, 2, 2, 2, &bad[i].options, out), bad[i].wanted);
    assert_status(embla_pool(NULL, 2, 2, 2, NULL, out), EMBLA_ERR_ARGUMENT);
    assert_status(embla_pool(in, 2, 2, 2, NULL, NULL), EMBLA_ERR_ARGUMENT);
    assert_status(embla_pool(in, SIZE_MAX, 2, 2, NULL, out), EMBLA_ERR_ARGUMENT);
    assert_status(embla_pool(in, 2, SIZE_MAX, 2, NULL, out), EMBLA_ERR_ARGUMENT);
    assert_status(embla_pool(in, 2, 2, SIZE_MAX / 4, NULL, out), EMBLA_ERR_ARGUMENT);
    assert_status(embla_pool(in, SIZE_MAX, 0, 2, NULL, out), EMBLA_ERR_ARGUMENT);
    for (size_t i = 0; i < 4; i++) assert_true(out[i] == 9);
}

static void a_length_too_long_is_named(void **state)
{
    const size_t lengths[2] = {1, 3};
    float in[8] = {0}, out[4];
    (void)state;
    assert_status(embla_pool(in, 2, 2, 2, &(embla_pool_options){.lengths = lengths}, out),
                  EMBLA_ERR_RANGE);
    assert_string_equal(embla_error(),
                        "the length of sequence 1 is 3, but there are only 2 vectors");
}

static void nothing_to_pool_is_no_work(void **state)
{
    (void)state;
    for (int kind = EMBLA_POOL_MEAN; kind <= EMBLA_POOL_LAST; kind++) {
        embla_pool_options options = {.kind = (embla_pool_kind)kind, .normalize = true};
        assert_ok(embla_pool(NULL, 0, 3, 4, &options, NULL));
        assert_ok(embla_pool(NULL, 3, 3, 0, &options, NULL));
    }
}

static void a_long_sequence_is_summed_in_order(void **state)
{
    enum { MANY = 131, DIM = 77 };
    static float in[MANY * DIM], w[MANY];
    float out[DIM];
    (void)state;
    check_fill(3, MANY * DIM, in);
    check_fill(4, MANY, w);
    embla_pool_options options = {.kind = EMBLA_POOL_SUM, .weights = w};
    assert_ok(embla_pool(in, 1, MANY, DIM, &options, out));
    for (size_t i = 0; i < DIM; i++) {
        double sum = 0;
        for (size_t t = 0; t < MANY; t++) sum += (double)w[t] * (double)in[t * DIM + i];
        assert_true(out[i] == (float)sum);
    }
}

/* ---- rows of a table ---- */

enum { ROWS = 50, TOKENS = 60 };

/* The same bits as a lookup of all rows, then a pool of them. */
static void same_as_two_steps(const embla_table *table, const int32_t *tokens,
                              const embla_pool_options *options)
{
    size_t dim = embla_table_dim(table);
    check_guarded one = check_guard(BATCH * dim * sizeof(float), 4);
    float *two = malloc(BATCH * dim * sizeof *two);
    float *got = (float *)(void *)one.bytes;
    assert_non_null(two);
    assert_ok(embla_lookup(table, tokens, BATCH * LENGTH, NULL, x));
    assert_ok(embla_pool(x, BATCH, LENGTH, dim, options, two));
    assert_ok(embla_lookup_pool(table, tokens, BATCH, LENGTH, options, got));
    assert_memory_equal(got, two, BATCH * dim * sizeof *two);
    check_guards(&one);
    check_guard_free(&one);
    free(two);
}

static void every_kind(const embla_table *table, const int32_t *tokens, const size_t *lengths)
{
    for (int kind = EMBLA_POOL_MEAN; kind <= EMBLA_POOL_LAST; kind++) {
        embla_pool_options options = {.kind = (embla_pool_kind)kind, .normalize = kind == 1};
        same_as_two_steps(table, tokens, &options);
        options.lengths = lengths;
        options.threads = 3;
        same_as_two_steps(table, tokens, &options);
        if (kind <= EMBLA_POOL_SUM) options.weights = weights;
        same_as_two_steps(table, tokens, &options);
    }
}

static void rows_of_tokens_give_the_bits_of_two_steps(void **state)
{
    const size_t dims[] = {1, 32, 255, 256, 257, 640}, lengths[BATCH] = {LENGTH, 1, 0, 5};
    int64_t mapping[TOKENS];
    int32_t tokens[BATCH * LENGTH];
    (void)state;
    for (size_t i = 0; i < TOKENS; i++) mapping[i] = (int64_t)(i * 7 % ROWS);
    for (size_t i = 0; i < BATCH * LENGTH; i++) tokens[i] = (int32_t)(i * 11 % ROWS);
    check_fill(5, BATCH * LENGTH, weights);
    for (int d = CHECK_FIRST_DTYPE; d <= CHECK_LAST_DTYPE; d++)
        for (size_t k = 0; k < COUNT_OF(dims); k++) {
            size_t dim = check_dim((embla_dtype)d, dims[k]);
            if (dim > MOST_DIM) continue; /* blocks of 256 */
            embla_table *table = check_table((embla_dtype)d, ROWS, dim, 7);
            every_kind(table, tokens, lengths);
            embla_table_free(table);
        }
    embla_table *mapped = NULL;
    embla_table_options options = {.token_rows = mapping, .token_count = TOKENS};
    assert_ok(embla_table_new(EMBLA_F32, ROWS, 40, &options, &mapped));
    assert_ok(embla_table_init(mapped, NULL));
    tokens[3] = TOKENS - 1;
    same_as_two_steps(mapped, tokens, NULL);
    embla_table_free(mapped);
}

static void tokens_without_a_row_are_refused_but_not_padding(void **state)
{
    embla_table *table = check_table(EMBLA_F32, 4, 3, 7);
    const int32_t tokens[4] = {1, 4, 2, -1};
    const size_t lengths[2] = {1, 1}, longer[2] = {1, 2};
    float out[6] = {9, 9, 9, 9, 9, 9};
    (void)state;
    assert_status(embla_lookup_pool(table, tokens, 2, 2, NULL, out), EMBLA_ERR_RANGE);
    assert_error_has("token 4 at index 1 is out of range: the table has 4 rows");
    assert_status(
        embla_lookup_pool(table, tokens, 2, 2, &(embla_pool_options){.lengths = longer}, out),
        EMBLA_ERR_RANGE);
    assert_error_has("token -1 at index 1");
    for (size_t i = 0; i < 6; i++) assert_true(out[i] == 9);
    assert_ok(
        embla_lookup_pool(table, tokens, 2, 2, &(embla_pool_options){.lengths = lengths}, out));
    assert_status(embla_lookup_pool(NULL, tokens, 2, 2, NULL, out), EMBLA_ERR_ARGUMENT);
    assert_status(embla_lookup_pool(table, NULL, 2, 2, NULL, out), EMBLA_ERR_ARGUMENT);
    assert_error_has("2 sequences to pool, but tokens is NULL");
    assert_status(embla_lookup_pool(table, tokens, 2, 2, NULL, NULL), EMBLA_ERR_ARGUMENT);
    assert_ok(embla_lookup_pool(table, NULL, 2, 0, NULL, out));
    assert_true(out[0] == 0 && out[5] == 0);
    assert_ok(embla_lookup_pool(table, NULL, 0, 2, NULL, NULL));
    embla_table_free(table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_agrees_with_a_loop_in_double),
        cmocka_unit_test(lengths_say_which_vectors_count),
        cmocka_unit_test(weights_count_in_mean_and_sum),
        cmocka_unit_test(the_mean_by_weights_that_sum_to_0_is_zeros),
        cmocka_unit_test(of_no_vectors_every_kind_is_zeros),
        cmocka_unit_test(a_nan_stays_a_nan_in_its_column_alone),
        cmocka_unit_test(vectors_past_the_length_are_not_looked_at),
        cmocka_unit_test(sums_are_kept_in_double),
        cmocka_unit_test(a_zero_row_is_not_normalised),
        cmocka_unit_test(what_cannot_be_is_refused),
        cmocka_unit_test(a_length_too_long_is_named),
        cmocka_unit_test(nothing_to_pool_is_no_work),
        cmocka_unit_test(a_long_sequence_is_summed_in_order),
        cmocka_unit_test(rows_of_tokens_give_the_bits_of_two_steps),
        cmocka_unit_test(tokens_without_a_row_are_refused_but_not_padding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
