/* SPDX-License-Identifier: Apache-2.0 */
/* The account of a conversion: every row is counted once, as what it is, and the largest
 * difference is the largest there is; measured here again by reading the new file.
 */
#include "convert_files.h"

#include <math.h>

/* ---- rows that change ---- */

static void every_row_is_in_the_account(void **state)
{
    enum { DIM = 32 };
    float rows[6][DIM] = {{0}};
    embla_account_line line;
    embla_convert_options bf16 = {.dtype = EMBLA_BF16}, f16 = {.dtype = EMBLA_F16},
                          q8 = {.dtype = EMBLA_Q8_0}, i8 = {.dtype = EMBLA_I8};
    (void)state;
    place p = begin();
    for (size_t k = 0; k < DIM; k++) {
        rows[0][k] = (float)k - 16.0f; /* exact in all */
        rows[1][k] = 1.0f + 0x1p-20f;  /* exact in none */
        rows[2][k] = 0x1p-130f;        /* too small for f16 */
        rows[4][k] = 65536.0f;         /* too large for f16 */
        rows[5][k] = -0.0f;
    }
    rows[3][7] = NAN;
    const sample_tensor table = {"wte.weight", "F32", "6,32", rows, sizeof rows};
    sample_safetensors(scratch_path(&p.s, "m.safetensors"), NULL, &table, 1);

    embla_account *account = convert(&p, "m.safetensors", "same.safetensors", NULL);
    line = sample_line(account, "wte.weight");
    assert_int_equal(line.rows_same, 6);
    assert_int_equal(line.rows_nonfinite, 1);
    assert_int_equal(line.rows_rounded, 0);
    embla_account_free(account);

    account = convert(&p, "m.safetensors", "bf16.safetensors", &bf16);
    line = sample_line(account, "wte.weight");
    assert_int_equal(line.rows, 6);
    assert_int_equal(line.rows_same, 4 + 1); /* all but row 1; a NaN of these bits is kept */
    assert_int_equal(line.rows_rounded, 1);
    assert_int_equal(line.rows_nonfinite, 1);
    assert_near(line.difference, 0x1p-20, 0);
    embla_account_free(account);

    account = convert(&p, "m.safetensors", "f16.safetensors", &f16);
    line = sample_line(account, "wte.weight");
    assert_int_equal(line.rows_rounded, 2);
    assert_int_equal(line.rows_nonfinite, 2); /* the NaN, and what became an infinity */
    embla_account_free(account);

    account = convert(&p, "m.safetensors", "q8.gguf", &q8);
    line = sample_line(account, "wte.weight");
    assert_string_equal(line.new_type, "Q8_0");
    assert_int_equal(line.bytes, 6 * 34);
    assert_int_equal(line.rows_same + line.rows_rounded + line.rows_nonfinite, 6);
    assert_int_equal(line.rows_nonfinite, 1);
    embla_account_free(account);

    account = convert(&p, "m.safetensors", "i8.safetensors", &i8); /* 65536 becomes 127 */
    line = sample_line(account, "wte.weight");
    assert_near(line.difference, 65536 - 127, 0);
    assert_int_equal(line.rows_nonfinite, 1); /* the NaN is 0 now, but it was there */
    embla_account_free(account);
    end(&p);
}

/* Blocks of rows, by a decoder of this test's own: what was counted is what is there. */
static void the_difference_is_the_largest_there_is(void **state)
{
    enum { ROWS = 40, DIM = 64 };
    static float rows[ROWS * DIM];
    static const embla_dtype dtypes[] = {EMBLA_F16, EMBLA_BF16, EMBLA_Q8_0, EMBLA_Q4_0,
                                         EMBLA_F8_E4M3};
    (void)state;
    check_fill(77, COUNT_OF(rows), rows);
    place p = begin();
    const sample_tensor table = {"wte.weight", "F32", "40,64", rows, sizeof rows};
    sample_safetensors(scratch_path(&p.s, "m.safetensors"), NULL, &table, 1);
    for (size_t i = 0; i < COUNT_OF(dtypes); i++) {
        embla_convert_options options = {.dtype = dtypes[i], .overwrite = true};
        bool gguf = dtypes[i] == EMBLA_Q8_0 || dtypes[i] == EMBLA_Q4_0;
        const char *name = gguf ? "x.gguf" : "x.safetensors";
        embla_account *account = convert(&p, "m.safetensors", name, &options);
        embla_account_line line = sample_line(account, "wte.weight");
        embla_checkpoint *found = sample_open(scratch_path(&p.s, name));
        embla_table *made = NULL;
        double most = 0;
        int64_t same = 0;
        assert_ok(embla_table_open(found, NULL, NULL, &made));
        assert_int_equal(embla_table_dtype(made), dtypes[i]);
        for (int64_t r = 0; r < ROWS; r++) {
            float row[DIM];
            check_row(made, r, row);
            same += memcmp(row, rows + r * DIM, sizeof row) == 0;
            for (size_t k = 0; k < DIM; k++) {
                double gap = fabs((double)row[k] - (double)rows[(size_t)r * DIM + k]);
                if (gap > most) most = gap;
            }
        }
        assert_true(most > 0 && line.difference == most);
        assert_int_equal(line.rows_same, same);
        assert_int_equal(line.rows_rounded, ROWS - same);
        embla_table_free(made);
        embla_checkpoint_free(found);
        embla_account_free(account);
    }
    end(&p);
}

static void f64_is_measured_as_f64(void **state)
{
    const double rows[3][4] = {{1, 2.5, -3, 0.5}, {1.0 + 0x1p-40, 2, 3, 4}, {1e300, 0, 0, 0}};
    (void)state;
    place p = begin();
    const sample_tensor table = {"wte.weight", "F64", "3,4", rows, sizeof rows};
    sample_safetensors(scratch_path(&p.s, "m.safetensors"), NULL, &table, 1);
    embla_account *account = convert(&p, "m.safetensors", "m.vec", NULL);
    embla_account_line line = sample_line(account, "wte.weight");
    assert_string_equal(line.type, "F64");
    assert_string_equal(line.new_type, "F32");
    assert_int_equal(line.rows_same, 1);
    assert_int_equal(line.rows_rounded, 1);
    assert_int_equal(line.rows_nonfinite, 1);
    assert_near(line.difference, 0x1p-40, 0);
    embla_account_free(account);
    account = convert(&p, "m.safetensors", "m.npy", NULL); /* as they are */
    line = sample_line(account, "wte.weight");
    assert_int_equal(line.rows_same, 3);
    assert_int_equal(line.rows_nonfinite, 0); /* 1e300 is a number */
    embla_account_free(account);
    end(&p);
}

/* Text has one NaN; any other becomes it, and reading back still agrees. */
static void text_keeps_a_nan_and_an_infinity(void **state)
{
    float rows[] = {1.0f, check_float_of(0xffc12345u), -INFINITY, 2.0f, INFINITY, 3.0f};
    (void)state;
    place p = begin();
    const sample_tensor table = {"wte.weight", "F32", "2,3", rows, sizeof rows};
    sample_safetensors(scratch_path(&p.s, "m.safetensors"), NULL, &table, 1);
    for (int glove = 0; glove < 2; glove++) {
        embla_account *account = convert(&p, "m.safetensors", glove ? "m.txt" : "m.vec", NULL);
        assert_int_equal(sample_line(account, "wte.weight").rows_nonfinite, 2);
        assert_int_equal(sample_line(account, "wte.weight").rows_same, 1); /* the infinities */
        embla_account_free(account);
    }
    embla_account_free(convert(&p, "m.safetensors", "m.w2v", NULL)); /* and binary every bit */
    assert_rows(&p, "m.w2v", rows, 2, 3);
    rows[1] = check_float_of(0x7fc00000u);
    assert_rows(&p, "m.vec", rows, 2, 3);
    end(&p);
}

/* Rows longer and shorter than the blocks and pieces that they pass through in. */
static void blocks_meet_without_a_seam(void **state)
{
    static const struct {
        size_t rows, dim;
    } shapes[] = {{3000, 1000}, {3, 1 << 20}, {100003, 7}, {1, 32}};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(shapes); i++) {
        size_t count = shapes[i].rows * shapes[i].dim;
        float *rows = malloc(count * sizeof *rows);
        uint16_t *half = malloc(count * sizeof *half);
        char shape[64];
        assert_true(rows && half);
        check_fill(i, count, rows);
        place p = begin();
        snprintf(shape, sizeof shape, "%zu,%zu", shapes[i].rows, shapes[i].dim);
        const sample_tensor table = {"wte.weight", "F32", shape, rows, count * sizeof *rows};
        sample_safetensors(scratch_path(&p.s, "m.safetensors"), NULL, &table, 1);
        embla_convert_options options = {.dtype = EMBLA_BF16};
        embla_account *account = convert(&p, "m.safetensors", "n.safetensors", &options);
        assert_int_equal(sample_line(account, "wte.weight").rows_same +
                             sample_line(account, "wte.weight").rows_rounded,
                         shapes[i].rows);
        embla_account_free(account);
        for (size_t at = 0; at < count; at += shapes[i].dim)
            assert_ok(embla_encode(EMBLA_BF16, rows + at, shapes[i].dim, 0, half + at));
        assert_bytes(&p, "n.safetensors", "wte.weight", half, count * sizeof *half);
        end(&p);
        free(rows);
        free(half);
    }
}

static void the_account_ends_where_it_ends(void **state)
{
    sample_numbers n;
    embla_account_line line = {.name = "untouched"};
    (void)state;
    place p = begin();
    sample_model(scratch_path(&p.s, "m.safetensors"), &n);
    embla_account *account = convert(&p, "m.safetensors", "out.npy", NULL);
    assert_status(embla_account_at(account, 7, &line), EMBLA_ERR_RANGE);
    assert_error_has("line 7 of an account of 7");
    assert_string_equal(line.name, "untouched");
    assert_status(embla_account_at(NULL, 0, &line), EMBLA_ERR_ARGUMENT);
    assert_null(embla_account_note(account, 100));
    embla_account_free(account);
    embla_account_free(NULL);
    end(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_is_in_the_account),
        cmocka_unit_test(the_difference_is_the_largest_there_is),
        cmocka_unit_test(f64_is_measured_as_f64),
        cmocka_unit_test(text_keeps_a_nan_and_an_infinity),
        cmocka_unit_test(blocks_meet_without_a_seam),
        cmocka_unit_test(the_account_ends_where_it_ends),
    };
    return cmocka_run_group_tests_name("account", tests, NULL, NULL);
}
