/* SPDX-License-Identifier: Apache-2.0 */
/* NULL: a getter of a NULL handle returns 0, NULL or -1; describe and free accept it; the name of
 * an unknown value is NULL. All getters of embla.h, embla_checkpoint.h, embla_store.h and
 * embla_text.h.
 */
#include "check.h"

#include "embla_checkpoint.h"
#include "embla_store.h"
#include "embla_text.h"

static void getters_of_null_answer(void **state)
{
    size_t n[12] = {7, 7, 7, 7, 7, 7,
                    7, 7, 7, 7, 7, 7}; /* one for each call: they run in any order */
    char sum[33] = "x";
    (void)state;
    /* 1 where the answer is that of the rule */
    const struct {
        const char *name;
        bool right;
    } cases[] = {
        {"table_rows", embla_table_rows(NULL) == 0},
        {"table_dim", embla_table_dim(NULL) == 0},
        {"table_tokens", embla_table_tokens(NULL) == 0},
        {"table_dtype", embla_table_dtype(NULL) == 0},
        {"table_scale", embla_table_scale(NULL) == 0.0f},
        {"table_placement", embla_table_placement(NULL) == 0},
        {"table_row_bytes", embla_table_row_bytes(NULL) == 0},
        {"table_row_stride", embla_table_row_stride(NULL) == 0},
        {"table_row", embla_table_row(NULL, 0) == NULL},
        {"table_data", embla_table_data(NULL) == NULL},
        {"vocab_source", embla_vocab_source(NULL) == NULL},
        {"vocab_count", embla_vocab_count(NULL) == 0},
        {"vocab_end", embla_vocab_end(NULL) == 0},
        {"vocab_word", embla_vocab_word(NULL, 0, &n[10]) == NULL},
        {"vocab_words", !embla_vocab_words(NULL, &n[0]) && n[0] == 0},
        {"checkpoint_format", embla_checkpoint_format(NULL) == NULL},
        {"checkpoint_files", !embla_checkpoint_files(NULL, &n[1]) && n[1] == 0},
        {"checkpoint_notes", !embla_checkpoint_notes(NULL, &n[2]) && n[2] == 0},
        {"checkpoint_text", embla_checkpoint_text(NULL, "key") == NULL},
        {"checkpoint_tensors", !embla_checkpoint_tensors(NULL, &n[3]) && n[3] == 0},
        {"fold_checksum", (embla_fold_checksum(NULL, sum), sum[0] == (char)0)},
        {"ngram_fold", embla_ngram_fold(NULL) == NULL},
        {"frequent_rows", !embla_frequent_rows(NULL, &n[8], &n[9]) && n[8] == 0 && n[9] == 0},
        {"tickets_event", embla_tickets_event(NULL) == -1},
        {"swap_acquire", embla_swap_acquire(NULL) == NULL},
        {"swap_release", (embla_swap_release(NULL, NULL), true)},
        {"tokenizer_text", embla_tokenizer_text(NULL, 0, &n[11]) == NULL},
        {"tokenizer_token", embla_tokenizer_token(NULL, "a", 1) == -1},
        {"tokenized_count", embla_tokenized_count(NULL) == 0},
        {"tokenized_tokens", embla_tokenized_tokens(NULL) == NULL},
        {"tokenized_offsets", embla_tokenized_offsets(NULL) == NULL},
        {"tokenized_special", embla_tokenized_special(NULL) == NULL},
        {"tokenized_types", embla_tokenized_types(NULL) == NULL},
        {"tokenized_sides", embla_tokenized_sides(NULL) == NULL},
        {"tokenized_starts", embla_tokenized_starts(NULL) == NULL},
        {"tokenized_cut", embla_tokenized_cut(NULL) == 0},
        {"detokenizer_begin", (embla_detokenizer_begin(NULL), true)},
        {"encoder_tokenizer", embla_encoder_tokenizer(NULL) == NULL},
        {"subwords_dim", embla_subwords_dim(NULL) == 0},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        if (!cases[i].right) fail_msg("embla_%s of NULL", cases[i].name);
}

static void unknown_values_have_no_name(void **state)
{
    (void)state;
    assert_null(embla_status_name((embla_status)99));
    assert_null(embla_dtype_name((embla_dtype)99));
    assert_null(embla_placement_name((embla_placement)99));
    assert_null(embla_role_name((embla_role)99));
    assert_null(embla_role_name((embla_role)-1));
    assert_string_equal(embla_role_name(EMBLA_ROLE_NONE), "none");
    assert_null(embla_tie_name((embla_tie_kind)0));
    assert_null(embla_tie_name((embla_tie_kind)99));
    assert_null(embla_reader_name((embla_reader_kind)99));
    assert_null(embla_compat_name((embla_compat)99));
    assert_null(embla_ngram_model_name(99));
}

/* The sentence names the function and the parameter. */
#define DESCRIBED(noun)                                                                            \
    {                                                                                              \
        embla_##noun##_info info;                                                                  \
        assert_status(embla_##noun##_describe(NULL, &info), EMBLA_ERR_ARGUMENT);                   \
    }

static void describe_refuses_null(void **state)
{
    (void)state;
    DESCRIBED(ngram);
    assert_string_equal(embla_error(), "embla_ngram_describe: ngram is NULL");
    DESCRIBED(store);
    assert_string_equal(embla_error(), "embla_store_describe: store is NULL");
    DESCRIBED(batch);
    assert_string_equal(embla_error(), "embla_batch_describe: batch is NULL");
    DESCRIBED(tickets);
    assert_string_equal(embla_error(), "embla_tickets_describe: tickets is NULL");
    DESCRIBED(tokenizer);
    assert_string_equal(embla_error(), "embla_tokenizer_describe: tokenizer is NULL");
    DESCRIBED(encoder);
    assert_string_equal(embla_error(), "embla_encoder_describe: encoder is NULL");
}

static void null_is_freed(void **state)
{
    (void)state;
    embla_table_free(NULL);
    embla_vocab_free(NULL);
    embla_checkpoint_free(NULL);
    embla_rope_free(NULL);
    embla_fold_free(NULL);
    embla_ngram_free(NULL);
    embla_frequent_free(NULL);
    embla_store_free(NULL);
    embla_batch_free(NULL);
    embla_tickets_free(NULL);
    embla_swap_free(NULL);
    embla_tokenizer_free(NULL);
    embla_tokenized_free(NULL);
    embla_detokenizer_free(NULL);
    embla_encoder_free(NULL);
    embla_subwords_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(getters_of_null_answer), cmocka_unit_test(unknown_values_have_no_name),
        cmocka_unit_test(describe_refuses_null), cmocka_unit_test(null_is_freed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
