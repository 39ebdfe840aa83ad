/* SPDX-License-Identifier: Apache-2.0 */
/* The worked examples of the documents the project began with, A to E, and the two
 * statements they are there for: a lookup is a one-hot product, and without positions
 * the order of tokens is lost.
 */
#include "check.h"

#include <math.h>

static const float five_by_four[5][4] = {
    {0.10f, -0.20f, 0.30f, -0.40f}, {0.50f, 0.60f, -0.70f, 0.80f},  {-0.90f, 0.10f, 0.20f, -0.30f},
    {0.40f, -0.50f, 0.60f, -0.70f}, {-0.10f, 0.80f, -0.40f, 0.50f},
};

static const float twelve_by_eight[12][8] = {
    {-0.26f, -0.93f, 0.42f, -0.17f, 0.16f, -0.18f, 0.11f, -0.03f},
    {-0.44f, 0.36f, 0.30f, -0.46f, 0.11f, -0.96f, 0.90f, -0.80f},
    {-0.55f, 0.34f, -0.10f, 0.03f, 0.81f, -0.98f, 0.54f, -0.77f},
    {-0.73f, 0.94f, -0.38f, 0.11f, -0.80f, -0.18f, 0.79f, -0.98f},
    {-0.18f, 0.54f, -0.09f, 0.27f, -0.81f, 0.09f, 0.38f, -0.93f},
    {-0.25f, 0.57f, -0.31f, 0.97f, -0.32f, 0.26f, -0.25f, 0.59f},
    {-0.50f, 0.57f, -0.88f, 0.43f, -0.07f, 0.14f, -0.94f, 0.87f},
    {-0.48f, 0.57f, -0.16f, 0.00f, -0.33f, 0.67f, -0.16f, 0.55f},
    {0.52f, -0.43f, -0.94f, 0.50f, -0.02f, 0.42f, -0.06f, 0.08f},
    {0.02f, -0.62f, 0.29f, 0.58f, -0.13f, 0.74f, -0.85f, 0.61f},
    {0.59f, -0.08f, 0.74f, -0.26f, -0.47f, 0.84f, -0.09f, 0.23f},
    {0.61f, -0.19f, 0.63f, -0.37f, 0.92f, -0.30f, -0.90f, 0.49f},
};

static embla_table *view_of(const void *rows, int64_t count, size_t dim)
{
    embla_table *table = NULL;
    assert_ok(embla_table_view(&(embla_table_layout){.dtype = EMBLA_F32, .rows = count, .dim = dim},
                               rows, (size_t)count * dim * sizeof(float), NULL, &table));
    return table;
}

static void a_ids_2_3_0_give_rows_2_3_0(void **state)
{
    const int32_t ids[3] = {2, 3, 0};
    const float wanted[3][4] = {{-0.90f, 0.10f, 0.20f, -0.30f},
                                {0.40f, -0.50f, 0.60f, -0.70f},
                                {0.10f, -0.20f, 0.30f, -0.40f}};
    embla_table *table = view_of(five_by_four, 5, 4);
    float out[3][4];
    (void)state;
    assert_ok(embla_lookup(table, ids, 3, NULL, out));
    assert_memory_equal(out, wanted, sizeof out);
    embla_table_free(table);
}

static void a_dot_of_rows_0_and_2_is_0_07(void **state)
{
    (void)state;
    assert_near(embla_dot(five_by_four[0], five_by_four[2], 4), 0.07, 3e-8);
}

/* one_hot (V) times table (V x d), as a matrix product would have it. */
static void one_hot_product(const float *table, size_t rows, size_t dim, size_t hot, float *out)
{
    for (size_t j = 0; j < dim; j++) {
        out[j] = 0.0f;
        for (size_t v = 0; v < rows; v++) out[j] += (v == hot ? 1.0f : 0.0f) * table[v * dim + j];
    }
}

static void a_one_hot_product_is_a_lookup(void **state)
{
    embla_table *small = view_of(five_by_four, 5, 4), *large = view_of(twelve_by_eight, 12, 8);
    float product[8], row[8];
    (void)state;
    for (int32_t v = 0; v < 12; v++) {
        one_hot_product(&twelve_by_eight[0][0], 12, 8, (size_t)v, product);
        assert_ok(embla_lookup(large, &v, 1, NULL, row));
        for (size_t j = 0; j < 8; j++) assert_true(product[j] == row[j]);
        if (v >= 5) continue;
        one_hot_product(&five_by_four[0][0], 5, 4, (size_t)v, product);
        assert_ok(embla_lookup(small, &v, 1, NULL, row));
        for (size_t j = 0; j < 4; j++) assert_true(product[j] == row[j]);
    }
    embla_table_free(small);
    embla_table_free(large);
}

static void b_the_quick_brown_fox_is_five_rows_of_twelve(void **state)
{
    const int32_t the_quick_brown_fox[5] = {2, 5, 7, 11, 0};
    embla_table *table = view_of(twelve_by_eight, 12, 8);
    float out[5][8];
    (void)state;
    assert_ok(embla_lookup(table, the_quick_brown_fox, 5, NULL, out));
    for (size_t i = 0; i < 5; i++)
        assert_memory_equal(out[i], twelve_by_eight[the_quick_brown_fox[i]], sizeof out[i]);
    assert_true(out[0][4] == 0.81f && out[3][0] == 0.61f && out[4][1] == -0.93f);
    embla_table_free(table);
}

static void c_e_at_position_2_is_the_sum_of_two_rows(void **state)
{
    const int32_t emma[4] = {4, 12, 4, 0};
    embla_table *letters = check_table(EMBLA_F32, 27, 16, 42);
    embla_table *positions = check_table(EMBLA_F32, 8, 16, 43);
    const float *e = embla_table_row(letters, 4), *third = embla_table_row(positions, 2);
    float out[4][16];
    (void)state;
    assert_ok(
        embla_embed(letters, emma, 1, 4, &(embla_embed_options){.position_table = positions}, out));
    for (size_t j = 0; j < 16; j++) assert_true(out[2][j] == e[j] + third[j]);
    assert_memory_not_equal(out[0], out[2], sizeof out[0]); /* 'e' first is not 'e' third */
    embla_table_free(letters);
    embla_table_free(positions);
}

static void d_a_random_table_has_shape_dot_and_cosine(void **state)
{
    const int32_t ids[3] = {1, 2, 3};
    float out[3][8], again[3][8];
    double dot = 0, first = 0, second = 0;
    (void)state;
    for (int round = 0; round < 2; round++) {
        embla_table *table = check_table(EMBLA_F32, 100, 8, 42);
        assert_ok(embla_lookup(table, ids, 3, NULL, round ? again : out));
        embla_table_free(table);
    }
    assert_memory_equal(out, again, sizeof out); /* a seed is a table */
    for (size_t j = 0; j < 8; j++) {
        dot += (double)out[0][j] * (double)out[1][j];
        first += (double)out[0][j] * (double)out[0][j];
        second += (double)out[1][j] * (double)out[1][j];
    }
    assert_near(embla_dot(out[0], out[1], 8), dot, 1e-15);
    assert_near(embla_cosine(out[0], out[1], 8), dot / sqrt(first * second), 1e-14);
    assert_true(fabs(embla_cosine(out[0], out[1], 8)) < 1);
}

/* 1,024 ids through tables of 8,449 x 768 and 1,024 x 768, here in bf16 to spare time. */
static void e_andrea_takes_two_lookups_and_a_sum(void **state)
{
    enum { T = 1024, DIM = 768 };
    embla_table *table = NULL, *positions = check_table(EMBLA_BF16, T, DIM, 2);
    float *out = malloc(T * DIM * sizeof *out), *rows = malloc(T * DIM * sizeof *rows);
    float place[DIM], value[DIM];
    int32_t ids[T] = {256, 1842, 7301};
    uint64_t seed = 1;
    (void)state;
    assert_true(out && rows);
    assert_ok(embla_table_new(EMBLA_BF16, 8449, DIM, NULL, &table));
    for (size_t i = 3; i < T; i++) ids[i] = (int32_t)check_below(&seed, 8449);
    for (size_t i = 0; i < T; i++) {
        check_fill((uint64_t)ids[i], DIM, value);
        assert_ok(embla_table_write(table, ids[i], 1, value));
    }
    assert_ok(
        embla_embed(table, ids, 1, T, &(embla_embed_options){.position_table = positions}, out));
    assert_ok(embla_lookup(table, ids, T, NULL, rows));
    for (size_t i = 0; i < T; i++) {
        check_row(positions, (int64_t)i, place);
        for (size_t j = 0; j < DIM; j++)
            assert_true(out[i * DIM + j] == rows[i * DIM + j] + place[j]);
    }
    free(out);
    free(rows);
    embla_table_free(table);
    embla_table_free(positions);
}

/* ---- order ---- */

static int by_bytes(const void *a, const void *b)
{
    return memcmp(a, b, 8 * sizeof(float));
}

/* Embeds two orders of the same tokens and says if the sets of vectors are equal. */
static bool same_set(const embla_table *positions)
{
    const int32_t in_order[5] = {2, 5, 7, 11, 0}, shuffled[5] = {11, 0, 7, 2, 5};
    embla_table *table = view_of(twelve_by_eight, 12, 8);
    float first[5][8], second[5][8];
    assert_ok(embla_embed(table, in_order, 1, 5,
                          &(embla_embed_options){.position_table = positions}, first));
    assert_ok(embla_embed(table, shuffled, 1, 5,
                          &(embla_embed_options){.position_table = positions}, second));
    assert_memory_not_equal(first, second, sizeof first);
    qsort(first, 5, sizeof first[0], by_bytes);
    qsort(second, 5, sizeof second[0], by_bytes);
    embla_table_free(table);
    return memcmp(first, second, sizeof first) == 0;
}

static void without_positions_shuffled_tokens_give_the_same_set(void **state)
{
    (void)state;
    assert_true(same_set(NULL));
}

static void with_positions_shuffled_tokens_give_another_set(void **state)
{
    float sines[5 * 8];
    embla_table *learned = check_table(EMBLA_F32, 8, 8, 7), *fixed;
    (void)state;
    assert_false(same_set(learned));
    assert_ok(embla_sinusoid(0, 5, 8, 0.0, sines));
    fixed = view_of(sines, 5, 8);
    assert_false(same_set(fixed));
    embla_table_free(learned);
    embla_table_free(fixed);
}

/* Pooled vectors are a bag of words: their mean does not know the order. */
static void a_sum_of_vectors_does_not_know_the_order(void **state)
{
    const int32_t in_order[5] = {2, 5, 7, 11, 0}, shuffled[5] = {11, 0, 7, 2, 5};
    embla_table *table = view_of(twelve_by_eight, 12, 8);
    float x[5][8], first[8], second[8];
    (void)state;
    assert_ok(embla_lookup(table, in_order, 5, NULL, x));
    assert_ok(embla_pool(&x[0][0], 1, 5, 8, NULL, first));
    assert_ok(embla_lookup(table, shuffled, 5, NULL, x));
    assert_ok(embla_pool(&x[0][0], 1, 5, 8, NULL, second));
    for (size_t j = 0; j < 8; j++) assert_near(first[j], second[j], 1e-7);
    embla_table_free(table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_ids_2_3_0_give_rows_2_3_0),
        cmocka_unit_test(a_dot_of_rows_0_and_2_is_0_07),
        cmocka_unit_test(a_one_hot_product_is_a_lookup),
        cmocka_unit_test(b_the_quick_brown_fox_is_five_rows_of_twelve),
        cmocka_unit_test(c_e_at_position_2_is_the_sum_of_two_rows),
        cmocka_unit_test(d_a_random_table_has_shape_dot_and_cosine),
        cmocka_unit_test(e_andrea_takes_two_lookups_and_a_sum),
        cmocka_unit_test(without_positions_shuffled_tokens_give_the_same_set),
        cmocka_unit_test(with_positions_shuffled_tokens_give_another_set),
        cmocka_unit_test(a_sum_of_vectors_does_not_know_the_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
