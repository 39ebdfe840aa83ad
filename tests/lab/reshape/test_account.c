/* SPDX-License-Identifier: Apache-2.0 */
/* The account of a conversion: every row is counted once, as what it is, and the largest
 * difference is the largest there is; measured here again by reading the new file. What
 * stays behind, and what the new file would be taken for, is said.
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
                          q8 = {.dtype = EMBLA_Q8_0};
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
    assert_int_equal(line.rows_same, 3); /* 0, the NaN, and -0 */
    assert_int_equal(line.rows_rounded, 3);
    assert_int_equal(line.rows_nonfinite, 2); /* the NaN, and what became an infinity */
    assert_int_equal(line.rows_overflowed, 1);
    assert_int_equal(line.rows_vanished, 1); /* 2^-130; a row of -0 was zero before */
    embla_account_free(account);

    account = convert(&p, "m.safetensors", "q8.gguf", &q8);
    line = sample_line(account, "wte.weight");
    assert_string_equal(line.new_type, "Q8_0");
    assert_int_equal(line.bytes, 6 * 34);
    assert_int_equal(line.rows_same + line.rows_rounded, 6); /* each row once */
    assert_int_equal(line.rows_nonfinite, 1);
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
    const double rows[4][4] = {
        {1, 2.5, -3, 0.5}, {1.0 + 0x1p-40, 2, 3, 4}, {1e300, 0, 0, 0}, {1e-300, 0, 0, 0}};
    (void)state;
    place p = begin();
    const sample_tensor table = {"wte.weight", "F64", "4,4", rows, sizeof rows};
    sample_safetensors(scratch_path(&p.s, "m.safetensors"), NULL, &table, 1);
    embla_account *account = convert(&p, "m.safetensors", "m.vec", NULL);
    embla_account_line line = sample_line(account, "wte.weight");
    assert_string_equal(line.type, "F64");
    assert_string_equal(line.new_type, "F32");
    assert_int_equal(line.rows_same, 1);
    assert_int_equal(line.rows_rounded, 3);
    assert_int_equal(line.rows_nonfinite, 1);
    assert_int_equal(line.rows_overflowed, 1); /* 1e300 */
    assert_int_equal(line.rows_vanished, 1);   /* 1e-300 is not zero */
    assert_near(line.difference, 0x1p-40, 0);
    embla_account_free(account);
    account = convert(&p, "m.safetensors", "m.npy", NULL); /* as they are */
    line = sample_line(account, "wte.weight");
    assert_int_equal(line.rows_same, 4);
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
        assert_int_equal(sample_line(account, "wte.weight").rows_rounded, 1);
        assert_int_equal(sample_line(account, "wte.weight").rows_overflowed, 0);
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
            assert_ok(embla_dtype_encode(EMBLA_BF16, rows + at, shapes[i].dim, 0, half + at));
        assert_bytes(&p, "n.safetensors", "wte.weight", half, count * sizeof *half);
        end(&p);
        free(rows);
        free(half);
    }
}

static void the_account_ends_where_it_ends(void **state)
{
    sample_numbers n;
    size_t count = 77;
    (void)state;
    place p = begin();
    sample_model(scratch_path(&p.s, "m.safetensors"), &n);
    embla_account *account = convert(&p, "m.safetensors", "out.npy", NULL);
    assert_int_equal(sample_lines(account), 7);
    assert_int_equal(sample_lines(NULL), 0);
    assert_null(embla_account_notes(NULL, &count));
    assert_int_equal(count, 0);
    embla_account_free(account);
    embla_account_free(NULL);
    end(&p);
}

/* ---- what lies beside the source ---- */

static void what_stays_behind_is_named(void **state)
{
    static const char config[] = "{\"model_type\":\"gpt2\",\"tie_word_embeddings\":false}";
    sample_numbers n;
    scratch there;
    (void)state;
    place p = begin();
    sample_model(scratch_path(&p.s, "m.safetensors"), &n);
    sample_vocab(scratch_path(&p.s, "vocab.json"));
    scratch_write(scratch_path(&p.s, "config.json"), config, sizeof config - 1);
    embla_account *account = convert(&p, "m.safetensors", "n.safetensors", NULL);
    assert_false(sample_noted(account, "config.json"));
    embla_account_free(account);
    scratch_new(&there);
    p.out = there;
    account = convert(&p, "m.safetensors", "n.safetensors", NULL);
    assert_true(sample_noted(account, "config.json is not copied; copy it yourself"));
    assert_true(sample_noted(account, "n.vocab.txt"));
    assert_false(sample_noted(account, "tied:"));
    embla_account_free(account);
    embla_checkpoint *found = sample_open(scratch_path(&there, "n.safetensors"));
    assert_string_equal(embla_checkpoint_text(found, "tie_word_embeddings"), "false");
    assert_string_equal(embla_checkpoint_text(found, "note"), "by hand");
    embla_checkpoint_free(found);
    scratch here = p.s;
    p.s = there;
    assert_word(&p, "n.safetensors", 6, "end");
    p.s = here;
    scratch_free(&there);
    end(&p);
}

/* A head that is due and not there is said by a flag that a GGUF has not. */
static void a_verdict_that_changes_is_worth_a_word(void **state)
{
    static const char config[] = "{\"model_type\":\"llama\",\"tie_word_embeddings\":false}";
    static const float rows[] = {1, 2, 3, 4};
    (void)state;
    place p = begin();
    const sample_tensor table = {"model.embed_tokens.weight", "F32", "2,2", rows, sizeof rows};
    sample_safetensors(scratch_path(&p.s, "m.safetensors"), NULL, &table, 1);
    scratch_write(scratch_path(&p.s, "config.json"), config, sizeof config - 1);
    embla_account *account = convert(&p, "m.safetensors", "m.gguf", NULL);
    assert_true(sample_noted(account, "m.safetensors is 'head missing'"));
    assert_true(sample_noted(account, "m.gguf is 'tied'"));
    embla_account_free(account);
    account = convert(&p, "m.safetensors", "n.safetensors", NULL);
    assert_false(sample_noted(account, "reads as"));
    embla_account_free(account);
    end(&p);
}

static void metadata_that_is_left_out_is_counted(void **state)
{
    sample_numbers n;
    embla_convert_options only = {.tables_only = true};
    (void)state;
    place p = begin();
    sample_model(scratch_path(&p.s, "m.safetensors"), &n);
    sample_vocab(scratch_path(&p.s, "vocab.json"));
    embla_account *account = convert(&p, "m.safetensors", "m.npy", NULL); /* "note" */
    assert_true(sample_noted(account, "1 of the keys of its metadata is left out"));
    embla_account_free(account);
    account = convert(&p, "m.safetensors", "n.safetensors", NULL);
    assert_false(sample_noted(account, "metadata"));
    embla_account_free(account);
    account = convert(&p, "m.safetensors", "m.gguf", &only);
    assert_false(sample_noted(account, "metadata"));
    embla_account_free(account);
    /* vocab_size and token_type are no text; words go by themselves */
    account = convert(&p, "m.gguf", "o.safetensors", NULL);
    assert_true(sample_noted(account, "2 of the keys of its metadata are left out"));
    embla_account_free(account);
    account = convert(&p, "m.gguf", "o.gguf", NULL);
    assert_false(sample_noted(account, "metadata"));
    embla_account_free(account);
    end(&p);
}

/* Rows of types below a byte need not be whole bytes. */
static void rows_that_are_no_whole_bytes_are_copied(void **state)
{
    static const unsigned char bytes[] = {0x12, 0x34, 0x56};
    static const struct {
        const char *type, *shape;
        size_t count;
    } tables[] = {{"F4", "2,1", 1}, {"F4", "2,3", 3}, {"F4", "3,2", 3}, {"F6_E2M3", "4,1", 3}};
    embla_convert_options bf16 = {.dtype = EMBLA_BF16};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(tables); i++) {
        place p = begin();
        const sample_tensor table = {"wte.weight", tables[i].type, tables[i].shape, bytes,
                                     tables[i].count};
        sample_safetensors(scratch_path(&p.s, "m.safetensors"), NULL, &table, 1);
        embla_account *account = convert(&p, "m.safetensors", "n.safetensors", NULL);
        assert_int_equal(sample_line(account, "wte.weight").table, i == 2); /* a byte each */
        embla_account_free(account);
        assert_bytes(&p, "n.safetensors", "wte.weight", bytes, tables[i].count);
        refuse(&p, "m.safetensors", "out.vec", NULL, EMBLA_ERR_UNSUPPORTED, "cannot be decoded");
        refuse(&p, "m.safetensors", "out.npy", NULL, EMBLA_ERR_UNSUPPORTED, "safetensors has F");
        refuse(&p, "m.safetensors", "o.safetensors", &bf16, EMBLA_ERR_UNSUPPORTED, "decoded");
        end(&p);
    }
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
        cmocka_unit_test(what_stays_behind_is_named),
        cmocka_unit_test(a_verdict_that_changes_is_worth_a_word),
        cmocka_unit_test(metadata_that_is_left_out_is_counted),
        cmocka_unit_test(rows_that_are_no_whole_bytes_are_copied),
    };
    return cmocka_run_group_tests_name("account", tests, NULL, NULL);
}
