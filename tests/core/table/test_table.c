/* SPDX-License-Identifier: Apache-2.0 */
/* Making, viewing, filling and asking a table, up to tables whose size and whose row
 * numbers do not fit in 32 bits.
 */
#include "check.h"

#include <math.h>

#include "base/mem.h"

static void a_new_table_is_zeros_of_the_shape_asked_for(void **state)
{
    (void)state;
    for (int d = CHECK_FIRST_DTYPE; d <= CHECK_LAST_DTYPE; d++) {
        embla_table *table = NULL;
        size_t row_bytes, dim = check_dim((embla_dtype)d, 96);
        assert_ok(embla_table_new((embla_dtype)d, 7, dim, NULL, &table));
        assert_ok(embla_dtype_row_bytes((embla_dtype)d, dim, &row_bytes));
        assert_int_equal(embla_table_rows(table), 7);
        assert_int_equal(embla_table_dim(table), dim);
        assert_int_equal(embla_table_dtype(table), d);
        assert_true(embla_table_scale(table) == 1.0f);
        assert_int_equal(embla_table_row_bytes(table), row_bytes);
        assert_int_equal(embla_table_row_stride(table), row_bytes);
        const unsigned char *bytes = embla_table_data(table);
        for (size_t i = 0; i < 7 * row_bytes; i++) assert_int_equal(bytes[i], 0);
        embla_table_free(table);
    }
}

static void rows_lie_one_stride_apart(void **state)
{
    embla_table *table = NULL;
    embla_table_options options = {.row_stride = 100};
    (void)state;
    assert_ok(embla_table_new(EMBLA_F32, 9, 5, &options, &table));
    assert_int_equal(embla_table_row_stride(table), 100);
    assert_int_equal(embla_table_row_bytes(table), 20);
    const char *data = embla_table_data(table);
    for (int64_t row = 0; row < 9; row++)
        assert_ptr_equal(embla_table_row(table, row), data + 100 * row);
    embla_table_free(table);
}

static void there_is_no_row_outside(void **state)
{
    embla_table *table = check_table(EMBLA_F32, 9, 5, 1);
    const int64_t outside[] = {-1, 9, INT64_C(1) << 32, INT64_MAX, INT64_MIN};
    (void)state;
    assert_non_null(embla_table_row(table, 8));
    for (size_t i = 0; i < COUNT_OF(outside); i++) assert_null(embla_table_row(table, outside[i]));
    embla_table_free(table);
}

static void shapes_outside_the_limits_are_refused(void **state)
{
    const struct {
        embla_dtype dtype;
        int64_t rows;
        size_t dim, stride;
        embla_status wanted;
    } bad[] = {
        {EMBLA_F32, 0, 4, 0, EMBLA_ERR_ARGUMENT},
        {EMBLA_F32, -1, 4, 0, EMBLA_ERR_ARGUMENT},
        {EMBLA_F32, INT64_MIN, 4, 0, EMBLA_ERR_ARGUMENT},
        {EMBLA_F32, (INT64_C(1) << 40) + 1, 4, 0, EMBLA_ERR_ARGUMENT},
        {EMBLA_F32, 4, 0, 0, EMBLA_ERR_ARGUMENT},
        {EMBLA_F32, 4, ((size_t)1 << 20) + 1, 0, EMBLA_ERR_ARGUMENT},
        {EMBLA_F32, 4, SIZE_MAX, 0, EMBLA_ERR_ARGUMENT},
        {EMBLA_F64, INT64_C(1) << 40, (size_t)1 << 20, 0, EMBLA_ERR_ARGUMENT},
        {EMBLA_F32, 2, 4, SIZE_MAX, EMBLA_ERR_ARGUMENT},
        {EMBLA_F32, 3, 4, (size_t)1 << 62, EMBLA_ERR_ARGUMENT},
        {EMBLA_F32, 4, 4, 15, EMBLA_ERR_SHAPE},
        {EMBLA_Q4_0, 4, 33, 0, EMBLA_ERR_SHAPE},
        {(embla_dtype)0, 4, 4, 0, EMBLA_ERR_ARGUMENT},
        {EMBLA_Q4_K, 4, 160, 0, EMBLA_ERR_SHAPE},
        {EMBLA_NVFP4, 4, 96, 0, EMBLA_ERR_SHAPE},
        {EMBLA_F4_E2M1, 4, 5, 0, EMBLA_ERR_SHAPE},
        {(embla_dtype)(CHECK_LAST_DTYPE + 1), 4, 4, 0, EMBLA_ERR_ARGUMENT},
    };
    static float data[64];
    size_t live = embla_mem_live();
    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        embla_table *table = NULL;
        embla_table_options options = {.row_stride = bad[i].stride};
        assert_status(embla_table_new(bad[i].dtype, bad[i].rows, bad[i].dim, &options, &table),
                      bad[i].wanted);
        assert_status(embla_table_view(&(embla_table_layout){.dtype = bad[i].dtype,
                                                             .rows = bad[i].rows,
                                                             .dim = bad[i].dim},
                                       data, sizeof data, &options, &table),
                      bad[i].wanted);
        assert_null(table);
    }
    assert_int_equal(embla_mem_live(), live);
}

static void null_is_refused(void **state)
{
    embla_table *table = NULL;
    float data[4] = {0};
    (void)state;
    assert_status(embla_table_new(EMBLA_F32, 1, 4, NULL, NULL), EMBLA_ERR_ARGUMENT);
    assert_status(embla_table_view(&(embla_table_layout){.dtype = EMBLA_F32, .rows = 1, .dim = 4},
                                   data, 16, NULL, NULL),
                  EMBLA_ERR_ARGUMENT);
    assert_status(embla_table_view(&(embla_table_layout){.dtype = EMBLA_F32, .rows = 1, .dim = 4},
                                   NULL, 16, NULL, &table),
                  EMBLA_ERR_ARGUMENT);
    assert_null(table);
}

static void a_scale_goes_with_the_dtypes_that_take_one(void **state)
{
    embla_table_options half = {.scale = 0.5f}, nan = {.scale = NAN};
    (void)state;
    for (int d = CHECK_FIRST_DTYPE; d <= CHECK_LAST_DTYPE; d++) {
        embla_table *table = NULL;
        bool takes = check_scale((embla_dtype)d) != 0.0f;
        assert_status(embla_table_new((embla_dtype)d, 2, 256, &half, &table),
                      takes ? EMBLA_OK : EMBLA_ERR_ARGUMENT);
        if (takes) assert_true(embla_table_scale(table) == 0.5f);
        embla_table_free(table);
        assert_status(embla_table_new((embla_dtype)d, 2, 256, &nan, &table), EMBLA_ERR_ARGUMENT);
    }
}

/* ---- views ---- */

static void a_view_needs_bytes_for_its_last_row_but_not_for_its_stride(void **state)
{
    static const unsigned char data[1000];
    embla_table *table = NULL;
    embla_table_options options = {.row_stride = 100};
    (void)state;
    assert_ok(embla_table_view(&(embla_table_layout){.dtype = EMBLA_F32, .rows = 10, .dim = 5},
                               data, 920, &options, &table));
    embla_table_free(table);
    table = NULL;
    assert_status(embla_table_view(&(embla_table_layout){.dtype = EMBLA_F32, .rows = 10, .dim = 5},
                                   data, 919, &options, &table),
                  EMBLA_ERR_SHAPE);
    assert_error_has("920");
    assert_error_has("919");
    assert_status(embla_table_view(&(embla_table_layout){.dtype = EMBLA_F32, .rows = 1, .dim = 5},
                                   data, 0, NULL, &table),
                  EMBLA_ERR_SHAPE);
    assert_null(table);
}

static void a_view_is_of_the_callers_own_bytes(void **state)
{
    float data[6] = {1, 2, 3, 4, 5, 6};
    embla_table *table = NULL;
    (void)state;
    assert_ok(embla_table_view(&(embla_table_layout){.dtype = EMBLA_F32, .rows = 3, .dim = 2}, data,
                               sizeof data, NULL, &table));
    assert_ptr_equal(embla_table_row(table, 2), data + 4);
    assert_int_equal(embla_table_placement(table), EMBLA_PLACEMENT_VIEW);
    data[5] = 7;
    assert_true(((const float *)embla_table_row(table, 2))[1] == 7);
    embla_table_free(table);
    assert_true(data[0] == 1);
    assert_ok(embla_table_new(EMBLA_F32, 3, 2, NULL, &table));
    assert_int_equal(embla_table_placement(table), EMBLA_PLACEMENT_RAM);
    embla_table_free(table);
}

static void a_read_only_view_cannot_be_changed(void **state)
{
    float data[4] = {1, 2, 3, 4}, values[4] = {0};
    embla_table *table = NULL;
    (void)state;
    assert_ok(embla_table_view(&(embla_table_layout){.dtype = EMBLA_F32, .rows = 2, .dim = 2}, data,
                               sizeof data, NULL, &table));
    assert_null(embla_table_data(table));
    assert_status(embla_table_init(table, NULL), EMBLA_ERR_ARGUMENT);
    assert_error_has("read-only");
    assert_status(embla_table_write(table, 0, 2, values), EMBLA_ERR_ARGUMENT);
    assert_true(data[0] == 1 && data[1] == 2 && data[2] == 3 && data[3] == 4);
    embla_table_free(table);
}

static void a_writable_view_changes_the_callers_bytes(void **state)
{
    float data[4] = {1, 2, 3, 4}, values[2] = {8, 9};
    embla_table *table = NULL;
    embla_table_options options = {.writable = true};
    (void)state;
    assert_ok(embla_table_view(&(embla_table_layout){.dtype = EMBLA_F32, .rows = 2, .dim = 2}, data,
                               sizeof data, &options, &table));
    assert_ptr_equal(embla_table_data(table), data);
    assert_ok(embla_table_write(table, 1, 1, values));
    assert_true(data[0] == 1 && data[1] == 2 && data[2] == 8 && data[3] == 9);
    embla_table_free(table);
}

/* ---- write ---- */

static void written_rows_are_encoded_where_they_belong(void **state)
{
    static float values[3 * 64], back[64];
    (void)state;
    check_fill(4, 3 * 64, values);
    for (int d = CHECK_FIRST_DTYPE; d <= CHECK_LAST_DTYPE; d++) {
        embla_dtype dtype = (embla_dtype)d;
        if (!check_writes(dtype)) continue; /* what_is_read_is_not_written has them */
        embla_table *table = check_table(dtype, 6, 64, 1);
        float scale = check_scale(dtype);
        unsigned char wanted[512], before[512], *stored;
        size_t bytes = embla_table_row_bytes(table);
        memcpy(before, embla_table_row(table, 1), bytes);
        assert_ok(embla_table_write(table, 2, 3, values));
        for (int64_t i = 0; i < 3; i++) {
            assert_ok(embla_dtype_encode(dtype, values + 64 * i, 64, scale, wanted));
            assert_memory_equal(embla_table_row(table, 2 + i), wanted, bytes);
        }
        assert_memory_equal(embla_table_row(table, 1), before, bytes);
        check_row(table, 3, back);
        for (size_t i = 0; i < 64; i++) assert_near(back[i], values[64 + i], 0.3);
        stored = embla_table_data(table);
        assert_ptr_equal(stored, embla_table_row(table, 0));
        embla_table_free(table);
    }
}

/* A table of a dtype that is only read holds what its maker puts there, byte by byte. */
static void what_is_read_is_not_written(void **state)
{
    static const float values[512];
    (void)state;
    for (int d = CHECK_FIRST_DTYPE; d <= CHECK_LAST_DTYPE; d++) {
        embla_table *table = check_zeros((embla_dtype)d, 2, 256);
        size_t bytes = 2 * embla_table_row_bytes(table);
        unsigned char *data = embla_table_data(table), before[4096];
        bool read_only = !check_writes((embla_dtype)d);
        embla_status wanted = read_only ? EMBLA_ERR_UNSUPPORTED : EMBLA_OK;
        check_fill_bytes(3, bytes, data);
        memcpy(before, data, bytes);
        assert_status(embla_table_init(table, NULL), wanted);
        if (read_only) assert_error_has("is read-only: encoding is not supported");
        assert_status(embla_table_write(table, 0, 2, values), wanted);
        if (read_only) assert_error_has("is read-only: encoding is not supported");
        if (read_only) assert_memory_equal(data, before, bytes);
        embla_table_free(table);
    }
}

static void writing_leaves_the_bytes_between_rows_alone(void **state)
{
    check_guarded data = check_guard(4 * 30, 0);
    float values[20];
    embla_table *table = NULL;
    embla_table_options options = {.row_stride = 30, .writable = true};
    (void)state;
    check_fill(4, 20, values);
    assert_ok(embla_table_view(&(embla_table_layout){.dtype = EMBLA_F32, .rows = 4, .dim = 5},
                               data.bytes, data.size, &options, &table));
    assert_ok(embla_table_write(table, 0, 4, values));
    for (size_t row = 0; row < 4; row++) {
        assert_memory_equal(data.bytes + 30 * row, values + 5 * row, 20);
        check_marks(data.bytes + 30 * row + 20, data.bytes + 30 * row + 30);
    }
    assert_ok(embla_table_init(table, NULL));
    for (size_t row = 0; row < 4; row++)
        check_marks(data.bytes + 30 * row + 20, data.bytes + 30 * row + 30);
    check_guards(&data);
    embla_table_free(table);
    check_guard_free(&data);
}

static void writing_past_the_last_row_is_refused(void **state)
{
    embla_table *table = check_table(EMBLA_F32, 6, 2, 1);
    float values[14] = {0}, before[12];
    const struct {
        int64_t first;
        size_t count;
    } bad[] = {{-1, 1},       {6, 1},         {5, 2},         {0, 7},
               {0, SIZE_MAX}, {INT64_MAX, 1}, {INT64_MIN, 1}, {7, 0}};
    (void)state;
    memcpy(before, embla_table_row(table, 0), sizeof before);
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        assert_status(embla_table_write(table, bad[i].first, bad[i].count, values),
                      EMBLA_ERR_RANGE);
    assert_status(embla_table_write(table, 0, 1, NULL), EMBLA_ERR_ARGUMENT);
    assert_status(embla_table_write(NULL, 0, 1, values), EMBLA_ERR_ARGUMENT);
    assert_memory_equal(before, embla_table_row(table, 0), sizeof before);
    assert_ok(embla_table_write(table, 6, 0, NULL));
    embla_table_free(table);
}

/* ---- giants ---- */

/* NULL, with a message, where the system does not give so much address space. */
static embla_table *giant(embla_dtype dtype, int64_t rows, size_t dim)
{
    embla_table *table = NULL;
    embla_status status = embla_table_new(dtype, rows, dim, NULL, &table);
    if (status == EMBLA_ERR_MEMORY) print_message("skipped: %s\n", embla_error());
    if (status != EMBLA_ERR_MEMORY) assert_ok(status);
    return table;
}

/* Row `row` of a giant must be found in every way there is, not the row 2^32 bytes before. */
static void check_giant_row(const embla_table *table, int64_t row, const float *wanted)
{
    static float out[1 << 13];
    static uint16_t narrow[1 << 13], wanted_narrow[1 << 13];
    size_t dim = embla_table_dim(table);
    int32_t token = (int32_t)row;
    assert_ok(embla_lookup(table, &token, 1, NULL, out));
    assert_memory_equal(out, wanted, sizeof out);
    assert_ok(embla_lookup_rows(table, &row, 1, &(embla_lookup_options){.raw = true}, out));
    assert_memory_equal(out, wanted, sizeof out);
    assert_memory_equal(embla_table_row(table, row), wanted, sizeof out);
    embla_embed_options half = {.out_dtype = EMBLA_F16}; /* decoded, not copied */
    assert_ok(embla_embed(table, &token, 1, 1, &half, narrow));
    assert_ok(embla_dtype_encode(EMBLA_F16, wanted, dim, 0.0f, wanted_narrow));
    assert_memory_equal(narrow, wanted_narrow, sizeof narrow);
    embla_embed_options at = {.position_table = table, .first_position = row}; /* twice itself */
    assert_ok(embla_embed(table, &token, 1, 1, &at, out));
    for (size_t i = 0; i < dim; i++) assert_true(out[i] == wanted[i] + wanted[i]);
}

/* 2^18 x 2^13 x 4 bytes = 8 GiB, of which a few pages are touched. */
static void no_product_of_a_giant_table_is_cut_to_32_bits(void **state)
{
    const int64_t rows = INT64_C(1) << 18, marked[] = {0, 1 << 16, (1 << 17) + 1, (1 << 18) - 1};
    const size_t dim = (size_t)1 << 13;
    static float row[1 << 13];
    embla_table *table = giant(EMBLA_F32, rows, dim);
    (void)state;
    if (!table) skip_because("no memory for a giant table");
    for (size_t i = 0; i < COUNT_OF(marked); i++) {
        check_fill((uint64_t)marked[i], dim, row);
        assert_ok(embla_table_write(table, marked[i], 1, row));
    }
    for (size_t i = 0; i < COUNT_OF(marked); i++) {
        check_fill((uint64_t)marked[i], dim, row);
        check_giant_row(table, marked[i], row);
    }
    assert_status(embla_lookup_rows(table, &rows, 1, NULL, row), EMBLA_ERR_RANGE);
    embla_table_free(table);
}

/* init, too, finds the rows past 4 GiB: a table whose rows lie 1 GiB apart. */
static void init_fills_rows_far_apart(void **state)
{
    embla_table *table = NULL, *near = check_table(EMBLA_F32, 6, 4, 8);
    embla_table_options options = {.row_stride = (size_t)1 << 30};
    embla_init_options init = {.seed = 8, .spread = 0.25f};
    (void)state;
    embla_status status = embla_table_new(EMBLA_F32, 6, 4, &options, &table);
    if (status == EMBLA_ERR_MEMORY) skip_because("no memory for a giant table");
    assert_ok(status);
    assert_ok(embla_table_init(table, &init));
    const char *data = embla_table_data(table);
    for (size_t row = 0; row < 6; row++)
        assert_memory_equal(data + (row << 30), embla_table_row(near, (int64_t)row), 16);
    embla_table_free(table);
    embla_table_free(near);
}

static void row_numbers_go_past_2_to_the_31(void **state)
{
    const int64_t rows = (INT64_C(1) << 31) + 16;
    const int64_t there[] = {0, INT64_C(1) << 31, rows - 1, INT32_MAX};
    const int64_t outside[] = {-1, rows, INT64_C(1) << 32, INT64_MAX, INT64_MIN};
    const float values[] = {11, 22, 33, 44};
    embla_table *table = giant(EMBLA_I8, rows, 1);
    float out[4] = {0};
    int32_t largest = INT32_MAX, negative = -1, most_negative = INT32_MIN;
    (void)state;
    if (!table) skip_because("no memory for a giant table");
    for (size_t i = 0; i < COUNT_OF(there); i++)
        assert_ok(embla_table_write(table, there[i], 1, &values[i]));
    assert_ok(embla_lookup_rows(table, there, COUNT_OF(there), NULL, out));
    assert_memory_equal(out, values, sizeof out);
    assert_ok(embla_lookup(table, &largest, 1, NULL, out));
    assert_true(out[0] == 44);
    assert_status(embla_lookup(table, &negative, 1, NULL, out), EMBLA_ERR_RANGE);
    assert_status(embla_lookup(table, &most_negative, 1, NULL, out), EMBLA_ERR_RANGE);
    for (size_t i = 0; i < COUNT_OF(outside); i++) {
        assert_status(embla_lookup_rows(table, &outside[i], 1, NULL, out), EMBLA_ERR_RANGE);
        assert_error_has("2147483664");
        assert_null(embla_table_row(table, outside[i]));
    }
    assert_true(out[0] == 44);
    embla_table_free(table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_table_is_zeros_of_the_shape_asked_for),
        cmocka_unit_test(rows_lie_one_stride_apart),
        cmocka_unit_test(there_is_no_row_outside),
        cmocka_unit_test(shapes_outside_the_limits_are_refused),
        cmocka_unit_test(null_is_refused),
        cmocka_unit_test(a_scale_goes_with_the_dtypes_that_take_one),
        cmocka_unit_test(a_view_needs_bytes_for_its_last_row_but_not_for_its_stride),
        cmocka_unit_test(a_view_is_of_the_callers_own_bytes),
        cmocka_unit_test(a_read_only_view_cannot_be_changed),
        cmocka_unit_test(a_writable_view_changes_the_callers_bytes),
        cmocka_unit_test(written_rows_are_encoded_where_they_belong),
        cmocka_unit_test(what_is_read_is_not_written),
        cmocka_unit_test(writing_leaves_the_bytes_between_rows_alone),
        cmocka_unit_test(writing_past_the_last_row_is_refused),
        cmocka_unit_test(no_product_of_a_giant_table_is_cut_to_32_bits),
        cmocka_unit_test(init_fills_rows_far_apart),
        cmocka_unit_test(row_numbers_go_past_2_to_the_31),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
