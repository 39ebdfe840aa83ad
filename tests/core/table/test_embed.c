/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens (B, T) and positions to vectors (B, T, dim): against a plain loop over decoded
 * rows, in float as the library does it, so the same bits are wanted.
 */
#include "check.h"

#include <math.h>

enum { ROWS = 40, PLACES = 30, BATCH = 3, LENGTH = 7, COUNT = BATCH * LENGTH };

static const int32_t tokens[COUNT] = {0, 39, 5, 5, 1, 17, 3, 8,  9,  10, 11,
                                      2, 30, 7, 7, 7, 1,  0, 38, 20, 21};

/* What embed should give, encoded to out_dtype. */
static void plain_embed(const embla_table *table, const embla_table *positions,
                        const embla_embed_options *o, unsigned char *out)
{
    float row[1024], place[1024];
    size_t dim = embla_table_dim(table), bytes = 0;
    embla_dtype out_dtype = o->out_dtype ? o->out_dtype : EMBLA_F32;
    float scale = o->scale == 0.0f ? 1.0f : o->scale;
    if (o->sqrt_dim) scale *= (float)sqrt((double)dim);
    assert_ok(embla_dtype_row_bytes(out_dtype, dim, &bytes));
    for (size_t i = 0; i < COUNT; i++) {
        int64_t at = o->positions ? o->positions[i] : o->first_position + (int64_t)(i % LENGTH);
        check_row(table, tokens[i], row);
        if (positions) check_row(positions, at, place);
        for (size_t j = 0; j < dim; j++) {
            row[j] = row[j] * scale;
            if (positions) row[j] = row[j] + place[j];
        }
        assert_ok(embla_dtype_encode(out_dtype, row, dim, 0.0f, out + i * bytes));
    }
}

/* Embeds with these options and compares; the gap between output rows must stay as it was. */
static void embed_and_check(const embla_table *table, const embla_table *positions,
                            embla_embed_options options, size_t gap, size_t offset)
{
    static unsigned char wanted[COUNT * 1024 * 4];
    size_t bytes;
    plain_embed(table, positions, &options, wanted);
    assert_ok(embla_dtype_row_bytes(options.out_dtype ? options.out_dtype : EMBLA_F32,
                                    embla_table_dim(table), &bytes));
    size_t stride = bytes + gap;
    check_guarded out = check_guard((COUNT - 1) * stride + bytes, offset);
    options.out_stride = gap ? stride : 0;
    options.position_table = positions;
    assert_ok(embla_embed(table, tokens, BATCH, LENGTH, &options, out.bytes));
    for (size_t i = 0; i < COUNT; i++) {
        assert_memory_equal(out.bytes + i * stride, wanted + i * bytes, bytes);
        if (i + 1 < COUNT)
            check_marks(out.bytes + i * stride + bytes, out.bytes + (i + 1) * stride);
    }
    check_guards(&out);
    check_guard_free(&out);
}

static void a_vector_is_its_tokens_row_plus_its_positions_row(void **state)
{
    const size_t dims[] = {1, 16, 17, 100, 256, 300, 1000};
    (void)state;
    for (size_t k = 0; k < COUNT_OF(dims); k++) {
        embla_table *table = check_table(EMBLA_F32, ROWS, dims[k], 1);
        embla_table *positions = check_table(EMBLA_F32, PLACES, dims[k], 2);
        embed_and_check(table, positions, (embla_embed_options){0}, 0, 0);
        embla_table_free(table);
        embla_table_free(positions);
    }
}

static void tables_of_any_two_dtypes_go_together(void **state)
{
    const embla_dtype outs[] = {EMBLA_F32, EMBLA_BF16, EMBLA_F16};
    (void)state;
    for (int a = CHECK_FIRST_DTYPE; a <= CHECK_LAST_DTYPE; a++)
        for (int b = CHECK_FIRST_DTYPE; b <= CHECK_LAST_DTYPE; b++) {
            embla_table *table = check_table((embla_dtype)a, ROWS, 512, 1);
            embla_table *positions = check_table((embla_dtype)b, PLACES, 512, 2);
            embla_embed_options options = {.out_dtype = outs[(a + b) % 3]};
            embed_and_check(table, positions, options, 0, 0);
            embla_table_free(table);
            embla_table_free(positions);
        }
}

static void without_positions_embed_is_lookup(void **state)
{
    const embla_dtype outs[] = {EMBLA_F32, EMBLA_BF16, EMBLA_F16};
    static unsigned char embedded[COUNT * 256 * 4], looked_up[COUNT * 256 * 4];
    (void)state;
    for (int d = CHECK_FIRST_DTYPE; d <= CHECK_LAST_DTYPE; d++)
        for (size_t o = 0; o < COUNT_OF(outs); o++) {
            size_t dim = check_dim((embla_dtype)d, 96);
            embla_table *table = check_table((embla_dtype)d, ROWS, dim, 1);
            embla_embed_options options = {.out_dtype = outs[o]};
            embla_lookup_options same = {.out_dtype = outs[o]};
            assert_ok(embla_embed(table, tokens, BATCH, LENGTH, &options, embedded));
            assert_ok(embla_lookup(table, tokens, COUNT, &same, looked_up));
            assert_memory_equal(embedded, looked_up,
                                COUNT * dim * (outs[o] == EMBLA_F32 ? 4u : 2u));
            embla_table_free(table);
        }
}

static void the_row_is_scaled_before_the_position_is_added(void **state)
{
    const embla_embed_options all[] = {{.scale = 3.0f},
                                       {.sqrt_dim = true},
                                       {.sqrt_dim = true, .scale = -0.5f},
                                       {.sqrt_dim = true, .out_dtype = EMBLA_BF16}};
    embla_table *table = check_table(EMBLA_BF16, ROWS, 300, 1);
    embla_table *positions = check_table(EMBLA_F32, PLACES, 300, 2);
    (void)state;
    for (size_t i = 0; i < COUNT_OF(all); i++) {
        embed_and_check(table, positions, all[i], 0, 0);
        embed_and_check(table, NULL, all[i], 0, 0);
    }
    embla_table_free(table);
    embla_table_free(positions);
}

static void positions_begin_where_asked_or_are_given(void **state)
{
    int64_t given[COUNT];
    embla_table *table = check_table(EMBLA_F32, ROWS, 64, 1);
    embla_table *positions = check_table(EMBLA_F32, PLACES, 64, 2);
    (void)state;
    for (int64_t i = 0; i < COUNT; i++) given[i] = i * 11 % PLACES;
    embed_and_check(table, positions, (embla_embed_options){.first_position = 5}, 0, 0);
    embed_and_check(table, positions, (embla_embed_options){.first_position = PLACES - LENGTH}, 0,
                    0);
    embed_and_check(table, positions, (embla_embed_options){.positions = given}, 0, 0);
    embla_table_free(table);
    embla_table_free(positions);
}

static void output_may_be_strided_and_begin_at_an_odd_address(void **state)
{
    const embla_dtype outs[] = {EMBLA_F32, EMBLA_BF16, EMBLA_F16};
    embla_table *table = check_table(EMBLA_Q8_0, ROWS, 96, 1);
    embla_table *positions = check_table(EMBLA_F32, PLACES, 96, 2);
    (void)state;
    for (size_t o = 0; o < COUNT_OF(outs); o++) {
        embla_embed_options options = {.out_dtype = outs[o]};
        embed_and_check(table, positions, options, 5, 1);
        embed_and_check(table, NULL, options, 3, 7);
        embed_and_check(table, positions, options, 64, 0);
    }
    embla_table_free(table);
    embla_table_free(positions);
}

/* 64 x 130 x 256 floats, 8.5 MB: written ahead or streamed, by whole lines. */
static void a_large_batch_is_right(void **state)
{
    enum { MANY = 64, LONG = 130, DIM = 256 };
    embla_table *table = check_table(EMBLA_F16, 2000, DIM, 1);
    embla_table *positions = check_table(EMBLA_F32, LONG, DIM, 2);
    int32_t *ids = malloc(MANY * LONG * sizeof *ids);
    check_guarded out = check_guard(MANY * LONG * DIM * sizeof(float), 0);
    float row[DIM];
    uint64_t seed = 1;
    (void)state;
    assert_non_null(ids);
    for (size_t i = 0; i < MANY * LONG; i++) ids[i] = (int32_t)check_below(&seed, 2000);
    assert_ok(embla_embed(table, ids, MANY, LONG,
                          &(embla_embed_options){.position_table = positions}, out.bytes));
    for (size_t i = 0; i < MANY * LONG; i++) {
        const float *place = embla_table_row(positions, (int64_t)(i % LONG));
        check_row(table, ids[i], row);
        for (size_t j = 0; j < DIM; j++) row[j] += place[j];
        assert_memory_equal(out.bytes + i * sizeof row, row, sizeof row);
    }
    check_guards(&out);
    check_guard_free(&out);
    free(ids);
    embla_table_free(table);
    embla_table_free(positions);
}

/* ---- refusals ---- */

static void refuse(const embla_table *table, const embla_table *positions, const int32_t *ids,
                   const embla_embed_options *options, embla_status wanted)
{
    check_guarded out = check_guard(COUNT * 64 * sizeof(float), 0);
    embla_embed_options all = options ? *options : (embla_embed_options){0};
    all.position_table = positions;
    assert_status(embla_embed(table, ids, BATCH, LENGTH, &all, out.bytes), wanted);
    check_untouched(&out);
    check_guard_free(&out);
}

static void a_token_or_position_outside_its_table_is_refused(void **state)
{
    embla_table *table = check_table(EMBLA_F32, ROWS, 64, 1);
    embla_table *positions = check_table(EMBLA_F32, PLACES, 64, 2);
    const int64_t bad_firsts[] = {-1, PLACES - LENGTH + 1, PLACES, INT64_MAX, INT64_MIN};
    const int64_t bad_places[] = {-1, PLACES, INT64_C(1) << 32, INT64_MAX, INT64_MIN};
    const int32_t bad_tokens[] = {-1, ROWS, INT32_MAX, INT32_MIN};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad_firsts); i++)
        refuse(table, positions, tokens, &(embla_embed_options){.first_position = bad_firsts[i]},
               EMBLA_ERR_RANGE);
    for (size_t i = 0; i < COUNT_OF(bad_places); i++) {
        int64_t places[COUNT] = {0};
        places[COUNT - 1] = bad_places[i];
        refuse(table, positions, tokens, &(embla_embed_options){.positions = places},
               EMBLA_ERR_RANGE);
        assert_error_has("position");
        assert_error_has("30 rows");
    }
    for (size_t i = 0; i < COUNT_OF(bad_tokens); i++) {
        int32_t ids[COUNT] = {0};
        ids[COUNT - 1] = bad_tokens[i];
        refuse(table, positions, ids, NULL, EMBLA_ERR_RANGE);
        assert_error_has("token");
    }
    embla_table_free(table);
    embla_table_free(positions);
}

static void what_cannot_be_is_refused(void **state)
{
    embla_table *table = check_table(EMBLA_F32, ROWS, 64, 1);
    embla_table *positions = check_table(EMBLA_F32, PLACES, 32, 2);
    const embla_embed_options bad[] = {
        {.scale = NAN}, {.scale = INFINITY}, {.scale = 3e38f, .sqrt_dim = true}, {.threads = -2}};
    float out[64];
    (void)state;
    refuse(table, positions, tokens, NULL, EMBLA_ERR_SHAPE); /* 64 and 32 columns */
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        refuse(table, NULL, tokens, &bad[i], EMBLA_ERR_ARGUMENT);
    refuse(table, NULL, tokens, &(embla_embed_options){.out_stride = 255}, EMBLA_ERR_SHAPE);
    refuse(table, NULL, tokens, &(embla_embed_options){.out_dtype = EMBLA_I8},
           EMBLA_ERR_UNSUPPORTED);
    refuse(NULL, NULL, tokens, NULL, EMBLA_ERR_ARGUMENT);
    refuse(table, NULL, NULL, NULL, EMBLA_ERR_ARGUMENT);
    assert_status(embla_embed(table, tokens, BATCH, LENGTH, NULL, NULL), EMBLA_ERR_ARGUMENT);
    assert_status(embla_embed(table, tokens, SIZE_MAX, 2, NULL, out), EMBLA_ERR_ARGUMENT);
    embla_table_free(table);
    embla_table_free(positions);
}

static void no_tokens_is_no_work(void **state)
{
    embla_table *table = check_table(EMBLA_F32, ROWS, 64, 1);
    (void)state;
    assert_ok(
        embla_embed(table, NULL, 0, 5, &(embla_embed_options){.position_table = table}, NULL));
    assert_ok(
        embla_embed(table, NULL, 5, 0, &(embla_embed_options){.position_table = table}, NULL));
    embla_table_free(table);
}

static void positions_without_their_table_are_refused(void **state)
{
    embla_table *table = check_table(EMBLA_F32, 5, 4, 1);
    const int64_t places[] = {1, 2};
    const int32_t two[] = {3, 4};
    const embla_embed_options wrong[] = {{.positions = places}, {.first_position = 1}};
    float out[8] = {7.0f};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        assert_status(embla_embed(table, two, 1, 2, &wrong[i], out), EMBLA_ERR_ARGUMENT);
    assert_true(out[0] == 7.0f);
    embla_table_free(table);
}

/* With an argument, only the tests whose names match it (*large*). */
int main(int count, char **words)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_vector_is_its_tokens_row_plus_its_positions_row),
        cmocka_unit_test(tables_of_any_two_dtypes_go_together),
        cmocka_unit_test(without_positions_embed_is_lookup),
        cmocka_unit_test(the_row_is_scaled_before_the_position_is_added),
        cmocka_unit_test(positions_begin_where_asked_or_are_given),
        cmocka_unit_test(output_may_be_strided_and_begin_at_an_odd_address),
        cmocka_unit_test(a_large_batch_is_right),
        cmocka_unit_test(a_token_or_position_outside_its_table_is_refused),
        cmocka_unit_test(what_cannot_be_is_refused),
        cmocka_unit_test(no_tokens_is_no_work),
        cmocka_unit_test(positions_without_their_table_are_refused),
    };
    if (count > 1) cmocka_set_test_filter(words[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
