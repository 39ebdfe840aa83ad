/* SPDX-License-Identifier: Apache-2.0 */
/* embla_checkpoint_view: a table in memory as a checkpoint, which convert writes to any format.
 */
#include "convert_files.h"

/* A table that no file holds, with words, to every format that has its dtype. */
static void a_table_in_memory_is_written_to_every_format(void **state)
{
    static const char *const files[] = {"a.vec", "a.txt",         "a.w2v",
                                        "a.npy", "a.safetensors", "a.gguf"};
    static const float rows[] = {1, -2, 3, -4, 5, -6};
    place p = begin();
    embla_table *table = NULL;
    embla_vocab *vocab = NULL;
    embla_checkpoint *checkpoint = NULL;
    (void)state;
    scratch_write(scratch_path(&p.s, "words.txt"), "one\ntwo\nthree\n", 14);
    assert_ok(embla_vocab_open_file(scratch_path(&p.s, "words.txt"), &vocab));
    assert_ok(embla_table_view(&(embla_table_layout){.dtype = EMBLA_F32, .rows = 3, .dim = 2}, rows,
                               sizeof rows, NULL, &table));
    assert_ok(embla_checkpoint_view(table, vocab, &checkpoint));
    assert_string_equal(embla_checkpoint_format(checkpoint), "memory");
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        embla_account *account = NULL;
        char path[SCRATCH_PATH];
        snprintf(path, sizeof path, "%s", scratch_path(&p.s, files[i]));
        assert_ok(embla_convert(checkpoint, path, NULL, &account));
        size_t count;
        assert_int_equal(embla_account_lines(account, &count)->rows_same, 3);
        embla_account_free(account);
        assert_rows(&p, files[i], rows, 3, 2);
        assert_word(&p, files[i], 0, "one");
        assert_word(&p, files[i], 2, "three");
    }
    embla_checkpoint_free(checkpoint);
    embla_vocab_free(vocab);
    embla_table_free(table);
    end(&p);
}

static void a_table_in_memory_can_be_opened_like_any_other(void **state)
{
    static const float rows[] = {1, -2, 3, -4, 5, -6};
    embla_table *table = NULL, *again = NULL;
    embla_checkpoint *checkpoint = NULL;
    embla_vocab *vocab = NULL;
    float row[2];
    const int32_t token = 2;
    (void)state;
    assert_ok(embla_table_view(&(embla_table_layout){.dtype = EMBLA_F32, .rows = 3, .dim = 2}, rows,
                               sizeof rows, NULL, &table));
    assert_ok(embla_checkpoint_view(table, NULL, &checkpoint));
    assert_ok(embla_table_open(checkpoint, NULL, NULL, &again));
    assert_ok(embla_lookup(again, &token, 1, NULL, row));
    assert_true(row[0] == 5 && row[1] == -6);
    assert_status(embla_vocab_open(checkpoint, &vocab), EMBLA_ERR_NOT_FOUND);
    embla_table_free(again);
    embla_checkpoint_free(checkpoint);
    embla_table_free(table);
}

static void a_table_that_no_file_can_hold_is_refused_with_both_numbers(void **state)
{
    static const float rows[6];
    static const int8_t bytes[6];
    static const int64_t mapping[4] = {0, 1, 2, 0};
    embla_table *table = NULL;
    embla_checkpoint *checkpoint = NULL;
    embla_vocab *vocab = NULL;
    place p = begin();
    (void)state;
    assert_ok(embla_table_view(&(embla_table_layout){.dtype = EMBLA_F32, .rows = 2, .dim = 2}, rows,
                               sizeof rows, &(embla_table_options){.row_stride = 12}, &table));
    assert_status(embla_checkpoint_view(table, NULL, &checkpoint), EMBLA_ERR_UNSUPPORTED);
    assert_error_has("rows of 8 bytes, 12 bytes apart");
    embla_table_free(table);
    assert_ok(embla_table_view(&(embla_table_layout){.dtype = EMBLA_I8, .rows = 3, .dim = 2}, bytes,
                               sizeof bytes, &(embla_table_options){.scale = 0.5f}, &table));
    assert_status(embla_checkpoint_view(table, NULL, &checkpoint), EMBLA_ERR_UNSUPPORTED);
    assert_error_has("a scale of 0.5");
    embla_table_free(table);
    assert_ok(embla_table_view(&(embla_table_layout){.dtype = EMBLA_F4_E2M1, .rows = 3, .dim = 4},
                               bytes, sizeof bytes, NULL, &table));
    assert_status(embla_checkpoint_view(table, NULL, &checkpoint), EMBLA_ERR_UNSUPPORTED);
    assert_error_has("the table has rows of f4_e2m1");
    embla_table_free(table);
    assert_ok(embla_table_view(
        &(embla_table_layout){.dtype = EMBLA_F32, .rows = 3, .dim = 2}, rows, sizeof rows,
        &(embla_table_options){.token_rows = mapping, .token_count = 4}, &table));
    assert_status(embla_checkpoint_view(table, NULL, &checkpoint), EMBLA_ERR_UNSUPPORTED);
    assert_error_has("4 tokens to 3 rows");
    embla_table_free(table);
    scratch_write(scratch_path(&p.s, "words.txt"), "a\nb\nc\nd\n", 8);
    assert_ok(embla_vocab_open_file(scratch_path(&p.s, "words.txt"), &vocab));
    assert_ok(embla_table_view(&(embla_table_layout){.dtype = EMBLA_F32, .rows = 3, .dim = 2}, rows,
                               sizeof rows, NULL, &table));
    assert_status(embla_checkpoint_view(table, vocab, &checkpoint), EMBLA_ERR_SHAPE);
    assert_error_has("tokens up to 3, but the table has 3 rows");
    assert_status(embla_checkpoint_view(NULL, NULL, &checkpoint), EMBLA_ERR_ARGUMENT);
    assert_status(embla_checkpoint_view(table, NULL, NULL), EMBLA_ERR_ARGUMENT);
    assert_null(checkpoint);
    embla_table_free(table);
    embla_vocab_free(vocab);
    end(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_table_in_memory_is_written_to_every_format),
        cmocka_unit_test(a_table_in_memory_can_be_opened_like_any_other),
        cmocka_unit_test(a_table_that_no_file_can_hold_is_refused_with_both_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
