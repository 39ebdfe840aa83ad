/* SPDX-License-Identifier: Apache-2.0 */
/* Row numbers in, rows out: in every dtype, to every output dtype, for ids inside and
 * outside the table, wherever output begins and however far apart its rows are.
 * What a row should be is had by embla_dtype_decode and embla_dtype_encode, which test_dtype.c
 * checks. CTest runs the tests of large results three times: written as the CPU likes it, and in
 * both ways there are (EMBLA_WRITE).
 */
#include "check.h"

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

/* 0 stands for raw. */
static const embla_dtype outputs[] = {EMBLA_F32, EMBLA_BF16, EMBLA_F16, (embla_dtype)0};

static embla_lookup_options options_for(embla_dtype out_dtype)
{
    return (embla_lookup_options){.raw = out_dtype == 0, .out_dtype = out_dtype};
}

static size_t out_bytes(const embla_table *table, embla_dtype out_dtype)
{
    size_t bytes = embla_table_row_bytes(table);
    if (out_dtype != 0) assert_ok(embla_dtype_row_bytes(out_dtype, embla_table_dim(table), &bytes));
    return bytes;
}

/* The bytes that a lookup of this row must give. A row that has the output's dtype already
 * is copied as it is, so even a NaN keeps its bits. */
static void wanted_row(const embla_table *table, int64_t row, embla_dtype out_dtype,
                       unsigned char *out)
{
    static float numbers[4096];
    if (out_dtype == 0 || out_dtype == embla_table_dtype(table)) {
        memcpy(out, embla_table_row(table, row), embla_table_row_bytes(table));
    } else {
        check_row(table, row, numbers);
        assert_ok(embla_dtype_encode(out_dtype, numbers, embla_table_dim(table), 0.0f, out));
    }
}

/* All rows of the table as they must come out, one after the other. */
static unsigned char *wanted_rows(const embla_table *table, embla_dtype out_dtype)
{
    size_t bytes = out_bytes(table, out_dtype), rows = (size_t)embla_table_rows(table);
    unsigned char *all = malloc(rows * bytes);
    assert_non_null(all);
    for (size_t row = 0; row < rows; row++)
        wanted_row(table, (int64_t)row, out_dtype, all + row * bytes);
    return all;
}

/* Output rows are those wanted; gaps between them and the bytes around are untouched. */
static void check_output(const check_guarded *out, const int64_t *rows, size_t count, size_t bytes,
                         size_t stride, const unsigned char *wanted)
{
    for (size_t i = 0; i < count; i++) {
        const unsigned char *at = out->bytes + i * stride;
        if (memcmp(at, wanted + (size_t)rows[i] * bytes, bytes) != 0)
            fail_msg("output %zu is not row %" PRId64, i, rows[i]);
        if (i + 1 < count) check_marks(at + bytes, at + stride);
    }
    check_guards(out);
}

/* ---- right rows ---- */

static void lookup_and_check(const embla_table *table, embla_dtype out_dtype, size_t offset,
                             size_t gap)
{
    enum { COUNT = 40 };
    int64_t rows[COUNT], many = embla_table_rows(table);
    int32_t tokens[COUNT];
    uint64_t seed = embla_table_dim(table);
    for (size_t i = 0; i < COUNT; i++)
        tokens[i] = (int32_t)(rows[i] = (int64_t)check_below(&seed, (uint64_t)many));
    rows[0] = tokens[0] = 0;
    rows[1] = tokens[1] = (int32_t)many - 1;
    size_t bytes = out_bytes(table, out_dtype), stride = bytes + gap;
    unsigned char *wanted = wanted_rows(table, out_dtype);
    embla_lookup_options options = options_for(out_dtype);
    if (gap > 0) options.out_stride = stride;
    for (int by_token = 0; by_token < 2; by_token++) {
        check_guarded out = check_guard((COUNT - 1) * stride + bytes, offset);
        assert_ok(by_token ? embla_lookup(table, tokens, COUNT, &options, out.bytes)
                           : embla_lookup_rows(table, rows, COUNT, &options, out.bytes));
        check_output(&out, rows, COUNT, bytes, stride, wanted);
        check_guard_free(&out);
    }
    free(wanted);
}

static void every_dtype_comes_out_in_every_output_dtype(void **state)
{
    const size_t dims[] = {1, 3, 15, 16, 17, 31, 32, 33, 64, 100, 255, 256, 257, 320, 768, 1000};
    (void)state;
    for (int d = CHECK_FIRST_DTYPE; d <= CHECK_LAST_DTYPE; d++)
        for (size_t k = 0; k < COUNT_OF(dims); k++) {
            if (dims[k] % check_block((embla_dtype)d) != 0) continue;
            embla_table *table = check_table((embla_dtype)d, 20, dims[k], 1);
            for (size_t o = 0; o < COUNT_OF(outputs); o++)
                lookup_and_check(table, outputs[o], 0, 0);
            embla_table_free(table);
        }
}

/* Block formats by bytes of any kind: those that are only read cannot be filled otherwise. */
static embla_table *bytes_table(int dtype, int64_t rows, size_t dim)
{
    embla_table *table = check_zeros((embla_dtype)dtype, rows, dim);
    check_fill_bytes((uint64_t)dtype, (size_t)rows * embla_table_row_bytes(table),
                     embla_table_data(table));
    return table;
}

static void tables_of_any_bytes_come_out_as_decode_says(void **state)
{
    const size_t dims[] = {256, 512, 1280};
    (void)state;
    for (int d = EMBLA_Q8_0; d <= CHECK_LAST_DTYPE; d++)
        for (size_t k = 0; k < COUNT_OF(dims); k++) {
            embla_table *table = bytes_table(d, 20, dims[k]);
            for (size_t o = 0; o < COUNT_OF(outputs); o++) {
                lookup_and_check(table, outputs[o], 0, 0);
                lookup_and_check(table, outputs[o], 5, 60);
            }
            embla_table_free(table);
        }
}

static void output_may_be_strided_and_begin_at_an_odd_address(void **state)
{
    const size_t offsets[] = {1, 2, 4, 7, 33}, gaps[] = {1, 4, 5, 60, 64};
    (void)state;
    for (int d = CHECK_FIRST_DTYPE; d <= CHECK_LAST_DTYPE; d++) {
        embla_table *table = check_table((embla_dtype)d, 20, check_dim((embla_dtype)d, 96), 1);
        for (size_t o = 0; o < COUNT_OF(outputs); o++)
            for (size_t k = 0; k < COUNT_OF(offsets); k++)
                lookup_and_check(table, outputs[o], offsets[k], gaps[k]);
        embla_table_free(table);
    }
}

static void a_view_may_begin_at_an_odd_address_and_be_strided(void **state)
{
    (void)state;
    for (int d = CHECK_FIRST_DTYPE; d <= CHECK_LAST_DTYPE; d++) {
        embla_dtype dtype = (embla_dtype)d;
        size_t dim = check_dim(dtype, 96);
        embla_table *table = check_table(dtype, 20, dim, 1), *view = NULL;
        size_t bytes = embla_table_row_bytes(table);
        embla_table_options options = {.row_stride = bytes + 3, .scale = check_scale(dtype)};
        check_guarded data = check_guard(20 * (bytes + 3), 5);
        for (int64_t row = 0; row < 20; row++)
            memcpy(data.bytes + (size_t)row * (bytes + 3), embla_table_row(table, row), bytes);
        assert_ok(embla_table_view(&(embla_table_layout){.dtype = dtype, .rows = 20, .dim = dim},
                                   data.bytes, data.size, &options, &view));
        for (size_t o = 0; o < COUNT_OF(outputs); o++) lookup_and_check(view, outputs[o], 3, 7);
        embla_table_free(view);
        embla_table_free(table);
        check_guard_free(&data);
    }
}

static void nan_and_infinity_come_out_of_every_code(void **state)
{
    unsigned char bytes[512];
    (void)state;
    for (size_t i = 0; i < 512; i++) bytes[i] = (unsigned char)(i % 2 ? i : i / 2);
    for (int d = EMBLA_F16; d <= EMBLA_I8; d++) {
        embla_table *view = NULL;
        size_t row_bytes;
        assert_ok(embla_dtype_row_bytes((embla_dtype)d, 64, &row_bytes));
        int64_t rows = (int64_t)(512 / row_bytes);
        assert_ok(embla_table_view(
            &(embla_table_layout){.dtype = (embla_dtype)d, .rows = rows, .dim = 64}, bytes, 512,
            NULL, &view));
        for (size_t o = 0; o < COUNT_OF(outputs); o++) lookup_and_check(view, outputs[o], 0, 0);
        embla_table_free(view);
    }
}

static void one_row_a_million_times(void **state)
{
    enum { COUNT = 1000000, DIM = 4 };
    embla_table *table = check_table(EMBLA_F32, 9, DIM, 1);
    int32_t *tokens = malloc(COUNT * sizeof *tokens);
    check_guarded out = check_guard(COUNT * DIM * sizeof(float), 0);
    (void)state;
    assert_non_null(tokens);
    for (size_t i = 0; i < COUNT; i++) tokens[i] = 7;
    assert_ok(embla_lookup(table, tokens, COUNT, NULL, out.bytes));
    const void *row = embla_table_row(table, 7);
    for (size_t i = 0; i < COUNT; i++)
        if (memcmp(out.bytes + i * DIM * sizeof(float), row, DIM * sizeof(float)) != 0)
            fail_msg("output %zu", i);
    check_guards(&out);
    check_guard_free(&out);
    free(tokens);
    embla_table_free(table);
}

/* ---- large results: written ahead or streamed ---- */

static void large_lookup(embla_dtype dtype, size_t dim, embla_dtype out_dtype, size_t offset,
                         size_t gap)
{
    enum { ROWS = 1700, LARGE = (4 << 20) + 5000 };
    embla_table *table = check_table(dtype, ROWS, dim, 3);
    unsigned char *wanted = wanted_rows(table, out_dtype);
    size_t bytes = out_bytes(table, out_dtype), stride = bytes + gap, count = LARGE / bytes + 1;
    int64_t *rows = malloc(count * sizeof *rows);
    uint64_t seed = dim;
    assert_non_null(rows);
    for (size_t i = 0; i < count; i++) rows[i] = (int64_t)check_below(&seed, ROWS);
    check_guarded out = check_guard((count - 1) * stride + bytes, offset);
    embla_lookup_options options = options_for(out_dtype);
    options.out_stride = stride;
    assert_ok(embla_lookup_rows(table, rows, count, &options, out.bytes));
    check_output(&out, rows, count, bytes, stride, wanted);
    check_guard_free(&out);
    free(rows);
    free(wanted);
    embla_table_free(table);
}

static void large_results_of_whole_lines_are_right(void **state)
{
    (void)state;
    for (int d = CHECK_FIRST_DTYPE; d <= CHECK_LAST_DTYPE; d++) {
        size_t dim = check_dim((embla_dtype)d, 288);
        large_lookup((embla_dtype)d, dim, EMBLA_F32, 0, 0);
        large_lookup((embla_dtype)d, dim, EMBLA_BF16, 0, 64);
    }
    large_lookup(EMBLA_F32, 288, (embla_dtype)0, 0, 64);
    large_lookup(EMBLA_F16, 288, EMBLA_F16, 0, 0);
}

static void large_results_of_parts_of_lines_are_right(void **state)
{
    (void)state;
    for (int d = CHECK_FIRST_DTYPE; d <= CHECK_LAST_DTYPE; d++) {
        large_lookup((embla_dtype)d, check_dim((embla_dtype)d, 288), EMBLA_F32, 4, 0);
        large_lookup((embla_dtype)d, check_dim((embla_dtype)d, d < EMBLA_Q8_0 ? 250 : 352),
                     EMBLA_F16, 0, 6);
    }
    large_lookup(EMBLA_F32, 250, EMBLA_F32, 1, 3);
    large_lookup(EMBLA_Q8_0, 288, (embla_dtype)0, 0, 0);
}

/* ---- ids outside the table ---- */

/* The bad one stands at place `at` of 30; nothing may be written. */
static void refuse(const embla_table *table, embla_dtype out_dtype, int64_t bad, size_t at,
                   bool by_token)
{
    int64_t rows[30];
    int32_t tokens[30];
    char number[32];
    check_guarded out = check_guard(30 * out_bytes(table, out_dtype), 0);
    embla_lookup_options options = options_for(out_dtype);
    for (size_t i = 0; i < 30; i++) tokens[i] = (int32_t)(rows[i] = (int64_t)(i % 7));
    rows[at] = bad;
    tokens[at] = (int32_t)bad;
    assert_status(by_token ? embla_lookup(table, tokens, 30, &options, out.bytes)
                           : embla_lookup_rows(table, rows, 30, &options, out.bytes),
                  EMBLA_ERR_RANGE);
    snprintf(number, sizeof number, "%s %" PRId64 " ", by_token ? "token" : "row", bad);
    assert_error_has(number);
    snprintf(number, sizeof number, "at index %zu is", at);
    assert_error_has(number);
    assert_error_has("7 rows");
    check_untouched(&out);
    check_guard_free(&out);
}

static void lookup_refuses_a_row_outside_the_table(void **state)
{
    const int64_t bad[] = {-1, 7, INT64_C(1) << 31, INT64_C(1) << 32, INT64_MAX, INT64_MIN};
    (void)state;
    for (int d = CHECK_FIRST_DTYPE; d <= CHECK_LAST_DTYPE; d++) {
        embla_table *table = check_table((embla_dtype)d, 7, check_dim((embla_dtype)d, 64), 1);
        for (size_t o = 0; o < COUNT_OF(outputs); o++)
            for (size_t b = 0; b < COUNT_OF(bad); b++)
                for (size_t at = 0; at < 30; at += 29) refuse(table, outputs[o], bad[b], at, false);
        embla_table_free(table);
    }
}

static void lookup_refuses_a_token_outside_the_table(void **state)
{
    const int64_t bad[] = {-1, 7, 8, INT32_MAX, INT32_MIN};
    (void)state;
    for (int d = CHECK_FIRST_DTYPE; d <= CHECK_LAST_DTYPE; d++) {
        embla_table *table = check_table((embla_dtype)d, 7, check_dim((embla_dtype)d, 64), 1);
        for (size_t o = 0; o < COUNT_OF(outputs); o++)
            for (size_t b = 0; b < COUNT_OF(bad); b++)
                for (size_t at = 0; at < 30; at += 29) refuse(table, outputs[o], bad[b], at, true);
        embla_table_free(table);
    }
}

static void the_first_of_two_bad_ids_is_named(void **state)
{
    embla_table *table = check_table(EMBLA_F32, 5, 4, 1);
    int32_t tokens[] = {1, 2, 9, 3, -4};
    float out[20];
    (void)state;
    assert_status(embla_lookup(table, tokens, 5, NULL, out), EMBLA_ERR_RANGE);
    assert_string_equal(embla_error(), "token 9 at index 2 is out of range: the table has 5 rows");
    embla_table_free(table);
}

/* ---- other refusals ---- */

/* A single row takes a shorter path. */
static void one_row_is_checked_and_copied(void **state)
{
    static const int32_t bad_tokens[] = {-1, 5, INT32_MAX, INT32_MIN};
    static const int64_t bad_rows[] = {-1, 5, INT64_MAX, INT64_MIN};
    float rows[5][3], out[3] = {7, 7, 7};
    embla_table *table = NULL;
    (void)state;
    for (size_t i = 0; i < 15; i++) rows[i / 3][i % 3] = (float)i;
    assert_ok(embla_table_view(&(embla_table_layout){.dtype = EMBLA_F32, .rows = 5, .dim = 3}, rows,
                               sizeof rows, NULL, &table));
    for (size_t i = 0; i < COUNT_OF(bad_tokens); i++) {
        assert_status(embla_lookup(table, &bad_tokens[i], 1, NULL, out), EMBLA_ERR_RANGE);
        assert_status(embla_lookup_rows(table, &bad_rows[i], 1, NULL, out), EMBLA_ERR_RANGE);
        assert_true(out[0] == 7 && out[1] == 7 && out[2] == 7);
    }
    for (int64_t row = 0; row < 5; row++) {
        assert_ok(embla_lookup(table, &(int32_t){(int32_t)row}, 1, NULL, out));
        assert_memory_equal(out, rows[row], sizeof out);
        assert_ok(embla_lookup_rows(table, &row, 1, NULL, out));
        assert_memory_equal(out, rows[row], sizeof out);
    }
    embla_table_free(table);
}

static void no_ids_is_no_work(void **state)
{
    embla_table *table = check_table(EMBLA_F32, 5, 4, 1);
    (void)state;
    assert_ok(embla_lookup(table, NULL, 0, NULL, NULL));
    assert_ok(embla_lookup_rows(table, NULL, 0, NULL, NULL));
    embla_table_free(table);
}

static void null_is_refused(void **state)
{
    embla_table *table = check_table(EMBLA_F32, 5, 4, 1);
    int32_t token = 1;
    int64_t row = 1;
    float out[4];
    (void)state;
    assert_status(embla_lookup(NULL, &token, 1, NULL, out), EMBLA_ERR_ARGUMENT);
    assert_status(embla_lookup(table, NULL, 1, NULL, out), EMBLA_ERR_ARGUMENT);
    assert_status(embla_lookup(table, &token, 1, NULL, NULL), EMBLA_ERR_ARGUMENT);
    assert_status(embla_lookup_rows(NULL, &row, 1, NULL, out), EMBLA_ERR_ARGUMENT);
    assert_status(embla_lookup_rows(table, NULL, 1, NULL, out), EMBLA_ERR_ARGUMENT);
    assert_status(embla_lookup_rows(table, &row, 1, NULL, NULL), EMBLA_ERR_ARGUMENT);
    embla_table_free(table);
}

static void options_that_cannot_be_are_refused(void **state)
{
    embla_table *table = check_table(EMBLA_F32, 5, 4, 1);
    const struct {
        embla_lookup_options options;
        embla_status wanted;
    } bad[] = {
        {{.threads = -1}, EMBLA_ERR_ARGUMENT},
        {{.out_stride = 15}, EMBLA_ERR_SHAPE},
        {{.out_stride = 7, .out_dtype = EMBLA_BF16}, EMBLA_ERR_SHAPE},
        {{.out_stride = 15, .raw = true}, EMBLA_ERR_SHAPE},
        {{.out_stride = SIZE_MAX}, EMBLA_ERR_ARGUMENT},
        {{.out_dtype = EMBLA_F64}, EMBLA_ERR_UNSUPPORTED},
        {{.out_dtype = EMBLA_I8}, EMBLA_ERR_UNSUPPORTED},
        {{.out_dtype = EMBLA_Q8_0}, EMBLA_ERR_UNSUPPORTED},
        {{.out_dtype = (embla_dtype)77}, EMBLA_ERR_UNSUPPORTED},
        {{.out_dtype = (embla_dtype)-1}, EMBLA_ERR_UNSUPPORTED},
    };
    int32_t tokens[3] = {0, 1, 2};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        check_guarded out = check_guard(3 * 4 * sizeof(float), 0);
        assert_status(embla_lookup(table, tokens, 3, &bad[i].options, out.bytes), bad[i].wanted);
        check_untouched(&out);
        check_guard_free(&out);
    }
    embla_table_free(table);
}

static void raw_does_not_look_at_the_output_dtype(void **state)
{
    embla_table *table = check_table(EMBLA_Q4_0, 5, 32, 1);
    embla_lookup_options options = {.raw = true, .out_dtype = EMBLA_F64};
    int32_t token = 3;
    unsigned char out[18];
    (void)state;
    assert_ok(embla_lookup(table, &token, 1, &options, out));
    assert_memory_equal(out, embla_table_row(table, 3), 18);
    embla_table_free(table);
}

/* What is wrong is wrong for an empty batch too. */
static void options_are_looked_at_even_for_no_ids(void **state)
{
    embla_table *table = check_table(EMBLA_F32, 5, 4, 1);
    const embla_lookup_options wrong[] = {
        {.out_stride = 15}, {.out_dtype = (embla_dtype)77}, {.threads = -1}};
    float out;
    (void)state;
    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        assert_int_not_equal(embla_lookup(table, NULL, 0, &wrong[i], &out), EMBLA_OK);
    assert_ok(embla_lookup(table, NULL, 0, NULL, NULL));
    embla_table_free(table);
}

/* Few long rows are shared out too: every count from 1 on, split over every number of
 * threads, gives the rows it should. */
static void a_few_long_rows_are_right_for_any_threads(void **state)
{
    enum { DIM = 16384, MOST = 40 };
    embla_table *table = check_table(EMBLA_I8, 7, DIM, 1);
    float *out = malloc(sizeof(float) * MOST * DIM), *want = malloc(sizeof(float) * DIM);
    int64_t rows[MOST];
    (void)state;
    for (int64_t i = 0; i < MOST; i++) rows[i] = i * 5 % 7;
    for (size_t count = 1; count <= MOST; count += 3)
        for (int threads = 1; threads <= 9; threads += 2) {
            embla_lookup_options options = {.threads = threads};
            memset(out, 0xff, sizeof(float) * count * DIM);
            assert_ok(embla_lookup_rows(table, rows, count, &options, out));
            for (size_t i = 0; i < count; i++) {
                check_row(table, rows[i], want);
                assert_memory_equal(out + i * DIM, want, sizeof(float) * DIM);
            }
        }
    free(out);
    free(want);
    embla_table_free(table);
}

/* The pool's threads are not there in a forked child: it must work without them, not wait. */
static void a_forked_child_can_look_up(void **state)
{
    enum { COUNT = 4096, DIM = 256 };
    embla_table *table = check_table(EMBLA_F32, 11, DIM, 1);
    float *out = malloc(sizeof(float) * COUNT * DIM);
    int32_t *tokens = calloc(COUNT, sizeof *tokens);
    const embla_lookup_options options = {.threads = 2};
    int ended = -1;
    (void)state;
    assert_ok(embla_lookup(table, tokens, COUNT, &options, out));
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)alarm(240); /* should it hang; no bound on its speed */
        embla_status status = embla_lookup(table, tokens, COUNT, &options, out);
        free(tokens); /* the child's too: valgrind counts what it leaves */
        free(out);
        embla_table_free(table);
        _exit(status != EMBLA_OK);
    }
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_int_equal(ended, 0);
    free(tokens);
    free(out);
    embla_table_free(table);
}

/* With an argument, only the tests whose names match it (*large*). */
int main(int count, char **words)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_dtype_comes_out_in_every_output_dtype),
        cmocka_unit_test(tables_of_any_bytes_come_out_as_decode_says),
        cmocka_unit_test(output_may_be_strided_and_begin_at_an_odd_address),
        cmocka_unit_test(a_view_may_begin_at_an_odd_address_and_be_strided),
        cmocka_unit_test(nan_and_infinity_come_out_of_every_code),
        cmocka_unit_test(one_row_a_million_times),
        cmocka_unit_test(large_results_of_whole_lines_are_right),
        cmocka_unit_test(large_results_of_parts_of_lines_are_right),
        cmocka_unit_test(lookup_refuses_a_row_outside_the_table),
        cmocka_unit_test(lookup_refuses_a_token_outside_the_table),
        cmocka_unit_test(the_first_of_two_bad_ids_is_named),
        cmocka_unit_test(one_row_is_checked_and_copied),
        cmocka_unit_test(no_ids_is_no_work),
        cmocka_unit_test(null_is_refused),
        cmocka_unit_test(options_that_cannot_be_are_refused),
        cmocka_unit_test(raw_does_not_look_at_the_output_dtype),
        cmocka_unit_test(options_are_looked_at_even_for_no_ids),
        cmocka_unit_test(a_few_long_rows_are_right_for_any_threads),
        cmocka_unit_test(a_forked_child_can_look_up),
    };
    if (count > 1) cmocka_set_test_filter(words[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
