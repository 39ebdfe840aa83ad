/* SPDX-License-Identifier: Apache-2.0 */
/* The tokens that begin and end a text: each way in which files name them, and what is no token. */
#include "scratch.h"

#include "embla_checkpoint.h"
#include "embla_train.h"

/* A folder with this config.json and a table of 4 x 1. */
static void find(const char *config, int64_t tokens, embla_text_ends *out)
{
    static const char table[] = "\x48\0\0\0\0\0\0\0"
                                "{\"wte.weight\":{\"dtype\":\"F32\",\"shape\":[4,1],"
                                "\"data_offsets\":[0,16]}}      "
                                "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
    embla_checkpoint *checkpoint = NULL;
    scratch s;
    scratch_new(&s);
    scratch_write(scratch_path(&s, "config.json"), config, strlen(config));
    scratch_write(scratch_path(&s, "model.safetensors"), table, 8 + 0x48 + 16);
    assert_ok(embla_checkpoint_open(s.folder, NULL, &checkpoint));
    embla_text_ends_find(checkpoint, NULL, tokens, out);
    embla_checkpoint_free(checkpoint);
    scratch_free(&s);
}

static void a_config_names_them(void **state)
{
    embla_text_ends ends;
    (void)state;
    find("{\"model_type\":\"gpt2\",\"bos_token_id\":3,\"eos_token_id\":2}", 4, &ends);
    assert_int_equal(ends.begin, 3);
    assert_true(ends.leads);
    assert_int_equal(ends.end_count, 2);
    assert_int_equal(ends.ends[0], 3);
    assert_int_equal(ends.ends[1], 2);
}

static void there_may_be_several_ends_and_each_counts_once(void **state)
{
    embla_text_ends ends;
    (void)state;
    find("{\"model_type\":\"llama\",\"bos_token_id\":0,\"eos_token_id\":[1,2,1,0]}", 4, &ends);
    assert_int_equal(ends.begin, 0);
    assert_int_equal(ends.end_count, 3);
    assert_int_equal(ends.ends[0], 0);
    assert_int_equal(ends.ends[1], 1);
    assert_int_equal(ends.ends[2], 2);
}

static void a_number_outside_the_vocabulary_is_none(void **state)
{
    embla_text_ends ends;
    (void)state;
    find("{\"model_type\":\"llama\",\"bos_token_id\":4,\"eos_token_id\":-1}", 4, &ends);
    assert_int_equal(ends.begin, -1);
    assert_false(ends.leads);
    assert_int_equal(ends.end_count, 0);
    find("{\"model_type\":\"llama\",\"bos_token_id\":null}", 4, &ends);
    assert_int_equal(ends.begin, -1);
}

static void the_word_of_gpt2_stands_between_texts(void **state)
{
    static const char json[] =
        "{\"model\":{\"type\":\"WordLevel\",\"vocab\":{\"a\":0,\"<|endoftext|>\":1},"
        "\"unk_token\":\"a\"}}";
    embla_checkpoint *checkpoint = NULL;
    embla_tokenizer *tokenizer = NULL;
    embla_text_ends ends;
    (void)state;
    assert_ok(embla_tokenizer_open_bytes(json, sizeof json - 1, "a.json", &tokenizer));
    assert_ok(embla_checkpoint_open(DEMO "/five.vec", NULL, &checkpoint));
    embla_text_ends_find(checkpoint, tokenizer, 2, &ends);
    assert_int_equal(ends.begin, 1);
    assert_false(ends.leads);
    assert_int_equal(ends.end_count, 1);
    embla_text_ends_find(checkpoint, tokenizer, 1, &ends); /* the model has no such row */
    assert_int_equal(ends.begin, -1);
    embla_tokenizer_free(tokenizer);
    embla_checkpoint_free(checkpoint);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_config_names_them),
        cmocka_unit_test(there_may_be_several_ends_and_each_counts_once),
        cmocka_unit_test(a_number_outside_the_vocabulary_is_none),
        cmocka_unit_test(the_word_of_gpt2_stands_between_texts),
    };
    return cmocka_run_group_tests_name("text_ends", tests, NULL, NULL);
}
