/* SPDX-License-Identifier: Apache-2.0 */
/* What people really have on their disks, and what only looks like it: names of folders and
 * parts, configurations that Python wrote, pointers to files that were never downloaded,
 * types below a byte.
 */
#include "toy.h"

static scratch place;

static int setup(void **state)
{
    (void)state;
    scratch_new(&place);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    scratch_free(&place);
    return 0;
}

static embla_checkpoint *opened(const char *name)
{
    embla_checkpoint *cp = NULL;
    assert_ok(embla_checkpoint_open(*name ? scratch_path(&place, name) : place.folder, NULL, &cp));
    return cp;
}

static void a_gguf_may_be_called_mixture_of_experts(void **state)
{
    toy_tensor tensors[] = {{"token_embd.weight", 6, 4, 1}};
    (void)state;
    toy_gguf(scratch_path(&place, "mixture-of-experts.gguf"), "llama", 0, tensors, 1);
    embla_checkpoint_free(opened(""));
    scratch_remove(&place, "mixture-of-experts.gguf");
    toy_gguf(scratch_path(&place, "a-00002-of-00003.gguf"), "llama", 0, tensors, 1);
    embla_checkpoint *cp = NULL;
    assert_status(embla_checkpoint_open(place.folder, NULL, &cp), EMBLA_ERR_NOT_FOUND);
}

static void a_static_model_has_its_words_one_folder_down(void **state)
{
    toy_tensor tensors[] = {{"embedding.weight", 2, 4, 1}};
    embla_vocab *vocab = NULL;
    (void)state;
    assert_int_equal(mkdir(scratch_path(&place, "0_StaticEmbedding"), 0700), 0);
    toy_safetensors(scratch_path(&place, "0_StaticEmbedding/model.safetensors"), tensors, 1);
    toy_text(scratch_path(&place, "0_StaticEmbedding/tokenizer.json"),
             "{\"model\":{\"type\":\"WordLevel\",\"vocab\":{\"a\":0,\"b\":1}}}");
    embla_checkpoint *cp = opened("");
    assert_ok(embla_checkpoint_vocab(cp, &vocab));
    assert_int_equal(embla_vocab_count(vocab), 2);
    embla_vocab_free(vocab);
    embla_checkpoint_free(cp);
    scratch_remove(&place, "0_StaticEmbedding/model.safetensors");
    scratch_remove(&place, "0_StaticEmbedding/tokenizer.json");
}

static void a_file_in_a_folder_that_cannot_be_listed_opens(void **state)
{
    toy_tensor tensors[] = {{"wte.weight", 2, 4, 1}};
    (void)state;
    assert_int_equal(mkdir(scratch_path(&place, "private"), 0700), 0);
    toy_safetensors(scratch_path(&place, "private/a.safetensors"), tensors, 1);
    assert_int_equal(chmod(scratch_path(&place, "private"), 0311), 0);
    embla_checkpoint *cp = NULL;
    embla_status status =
        embla_checkpoint_open(scratch_path(&place, "private/a.safetensors"), NULL, &cp);
    assert_int_equal(chmod(scratch_path(&place, "private"), 0700), 0);
    scratch_remove(&place, "private/a.safetensors");
    assert_ok(status);
    embla_checkpoint_free(cp);
}

static void pythons_infinity_does_not_cost_the_flag(void **state)
{
    toy_tensor tensors[] = {{"backbone.embeddings.weight", 6, 4, 1}, {"x", 4, 0, 2}};
    embla_tie tie;
    (void)state;
    toy_safetensors(scratch_path(&place, "model.safetensors"), tensors, 2);
    toy_text(scratch_path(&place, "config.json"),
             "{\"time_step_limit\": [0.0, Infinity], \"big\": 99999999999999999999,"
             " \"tie_word_embeddings\": true}");
    embla_checkpoint *cp = opened("");
    assert_null(embla_checkpoint_note(cp, 0));
    assert_ok(embla_checkpoint_tie(cp, 0, &tie));
    assert_int_equal(tie.kind, EMBLA_TIE_TIED);
    embla_checkpoint_free(cp);
}

static void a_pointer_called_tokenizer_json_is_no_vocabulary(void **state)
{
    toy_tensor tensors[] = {{"wte.weight", 3, 4, 1}};
    embla_vocab *vocab = NULL;
    (void)state;
    toy_safetensors(scratch_path(&place, "model.safetensors"), tensors, 1);
    toy_text(scratch_path(&place, "tokenizer.json"),
             "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12345\n");
    embla_checkpoint *cp = opened("");
    assert_status(embla_checkpoint_vocab(cp, &vocab), EMBLA_ERR_FORMAT);
    embla_checkpoint_free(cp);
}

static void a_layer_called_linear_is_no_head(void **state)
{
    toy_tensor tensors[] = {{"embedding.weight", 6, 4, 1}, {"layers.1.linear.weight", 4, 4, 2}};
    embla_tensor head;
    (void)state;
    toy_safetensors(scratch_path(&place, "model.safetensors"), tensors, 2);
    embla_checkpoint *cp = opened("");
    assert_status(embla_checkpoint_role(cp, EMBLA_ROLE_HEAD, &head, NULL), EMBLA_ERR_NOT_FOUND);
    embla_checkpoint_free(cp);
}

static void a_gguf_says_itself_what_it_is(void **state)
{
    toy_tensor tensors[] = {{"token_embd.weight", 6, 4, 1}};
    embla_tie tie;
    (void)state;
    toy_gguf(scratch_path(&place, "a.gguf"), "llama", 0, tensors, 1);
    toy_text(scratch_path(&place, "config.json"), "{\"general\": {\"architecture\": \"bert\"}}");
    embla_checkpoint *cp = opened("a.gguf");
    assert_string_equal(embla_checkpoint_text(cp, "general.architecture"), "llama");
    assert_ok(embla_checkpoint_tie(cp, 0, &tie));
    assert_int_equal(tie.kind, EMBLA_TIE_TIED);
    embla_checkpoint_free(cp);
}

/* Table and head of F4: two numbers a byte, three in a row. */
static void types_below_a_byte_are_compared_to_the_last_one(void **state)
{
    static const char header[] =
        "{\"lm_head.weight\":{\"dtype\":\"F4\",\"shape\":[2,3],\"data_offsets\":[0,3]},"
        "\"wte.weight\":{\"dtype\":\"F4\",\"shape\":[2,3],\"data_offsets\":[3,6]}}   ";
    for (int differ = 0; differ < 2; differ++) {
        toy_bytes file = {0};
        embla_tie tie;
        (void)state;
        toy_number(&file, sizeof header - 1, 8);
        toy_put(&file, header, sizeof header - 1);
        toy_put(&file, differ ? "\x12\x34\x56\x12\x34\x57" : "\x12\x34\x56\x12\x34\x56", 6);
        scratch_write(scratch_path(&place, "model.safetensors"), file.bytes, file.used);
        free(file.bytes);
        embla_checkpoint *cp = opened("");
        assert_ok(embla_checkpoint_tie(cp, 0, &tie));
        assert_int_equal(tie.kind, differ ? EMBLA_TIE_UNTIED : EMBLA_TIE_STORED_TWICE);
        embla_checkpoint_free(cp);
    }
}

static void a_head_that_is_no_table_differs_from_it(void **state)
{
    toy_tensor tensors[] = {{"wte.weight", 6, 4, 1}, {"lm_head.weight", 24, 0, 1}};
    embla_tie tie;
    (void)state;
    toy_safetensors(scratch_path(&place, "model.safetensors"), tensors, 2);
    embla_checkpoint *cp = opened("");
    assert_ok(embla_checkpoint_tie(cp, 0, &tie));
    assert_int_equal(tie.kind, EMBLA_TIE_UNTIED);
    embla_checkpoint_free(cp);
}

static void null_is_refused(void **state)
{
    toy_tensor tensors[] = {{"wte.weight", 6, 4, 1}};
    embla_tensor tensor;
    int64_t number;
    (void)state;
    toy_safetensors(scratch_path(&place, "model.safetensors"), tensors, 1);
    embla_checkpoint *cp = opened("");
    assert_status(embla_checkpoint_tensor(NULL, 0, &tensor), EMBLA_ERR_ARGUMENT);
    assert_status(embla_checkpoint_tensor(cp, 0, NULL), EMBLA_ERR_ARGUMENT);
    assert_status(embla_checkpoint_tensor(cp, 1, &tensor), EMBLA_ERR_RANGE);
    assert_status(embla_checkpoint_number(NULL, "a", &number), EMBLA_ERR_ARGUMENT);
    assert_status(embla_checkpoint_number(cp, NULL, &number), EMBLA_ERR_ARGUMENT);
    assert_null(embla_checkpoint_text(cp, NULL));
    embla_checkpoint_free(cp);
    embla_checkpoint_free(NULL);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_gguf_may_be_called_mixture_of_experts),
        TEST(a_static_model_has_its_words_one_folder_down),
        TEST(a_file_in_a_folder_that_cannot_be_listed_opens),
        TEST(pythons_infinity_does_not_cost_the_flag),
        TEST(a_pointer_called_tokenizer_json_is_no_vocabulary),
        TEST(a_layer_called_linear_is_no_head),
        TEST(a_gguf_says_itself_what_it_is),
        TEST(types_below_a_byte_are_compared_to_the_last_one),
        TEST(a_head_that_is_no_table_differs_from_it),
        TEST(null_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
