/* SPDX-License-Identifier: Apache-2.0 */
/* Roles, ties and words at their edges: names that are nearly a rule's, tensors that nearly
 * agree, words that nearly belong. The usual cases are in test_checkpoint.c.
 */
#include "models.h"
#include "opened.h"

#include <math.h>

#include "checkpoint/checkpoint.h"

/* The folder's model.safetensors and, unless NULL, its config.json. */
static embla_checkpoint *with_config(const toy_tensor *tensors, size_t count, const char *config)
{
    toy_safetensors(scratch_path(&place, "model.safetensors"), tensors, count);
    if (config) toy_text(scratch_path(&place, "config.json"), config);
    return opened("");
}

/* ---- roles ---- */

static void names_that_are_nearly_a_rules_have_no_role(void **state)
{
    static const char *const names[] = {
        "mod.wte.weight",              /* less than a component */
        "models.wte.weight",           /* more than one */
        "layers..embed_tokens.weight", /* no number */
        "layersx3.embed_tokens.weight",
        "xlayers.3.embed_tokens.weight",
        "layers.3xembed_tokens.weight",
        "xblk.3.nextn.embed_tokens.weight",
        "nextn.embed_tokens.weight", /* in no layer */
        "3.embed_tokens.weight",
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        toy_tensor tensors[] = {{names[i], 6, 4, 1}, {"other.thing", 6, 4, 2}};
        embla_checkpoint *cp = with_config(tensors, 2, NULL);
        if (role_of(cp, names[i]) != EMBLA_ROLE_NONE)
            fail_msg("%s is '%s'", names[i], embla_role_name(role_of(cp, names[i])));
        embla_checkpoint_free(cp);
    }
}

static void the_last_layer_of_phi_1_is_found_in_any_order(void **state)
{
    toy_tensor tensors[] = {{"layers.0.wte.weight", 6, 4, 1},
                            {"layers.25.linear.weight", 6, 4, 3},
                            {"layers.3.linear.weight", 4, 4, 2},
                            {"layers.30.linear.weight_scale", 6, 4, 4}};
    (void)state;
    embla_checkpoint *cp = with_config(tensors, 4, NULL);
    assert_int_equal(role_of(cp, "layers.25.linear.weight"), EMBLA_ROLE_HEAD);
    assert_int_equal(role_of(cp, "layers.3.linear.weight"), EMBLA_ROLE_NONE);
    assert_int_equal(role_of(cp, "layers.30.linear.weight_scale"), EMBLA_ROLE_NONE);
    embla_checkpoint_free(cp);
}

static void a_mapping_belongs_to_model2vec(void **state)
{
    toy_tensor tensors[] = {{"wte.weight", 6, 4, 1}, {"mapping", 6, 0, 2}};
    (void)state;
    embla_checkpoint *cp = with_config(tensors, 2, NULL);
    assert_int_equal(role_of(cp, "mapping"), EMBLA_ROLE_NONE);
    embla_checkpoint_free(cp);
    tensors[0].name = "embeddings";
    cp = with_config(tensors, 2, NULL);
    assert_int_equal(role_of(cp, "mapping"), EMBLA_ROLE_MAPPING);
    embla_checkpoint_free(cp);
}

static void the_width_of_the_config_chooses_or_nobody_does(void **state)
{
    static const char *const keys[] = {
        "\"hidden_size\":5",    "\"n_embd\":5",     "\"d_model\":5",
        "\"embedding_size\":5", "\"hidden_dim\":5", "\"word_embed_proj_dim\":5",
    };
    toy_tensor tensors[] = {{"wte.weight", 5, 4, 1}, {"model.embed_tokens.weight", 7, 5, 2}};
    embla_tensor table;
    char config[64];
    (void)state;
    for (size_t i = 0; i <= COUNT_OF(keys); i++) {
        if (i < COUNT_OF(keys))
            (void)snprintf(config, sizeof config, "{%s}", keys[i]);
        else
            strcpy(config, "{\"text_config\":{\"hidden_size\":5}}");
        embla_checkpoint *cp = with_config(tensors, 2, config);
        if (embla_checkpoint_role(cp, EMBLA_ROLE_TOKENS, &table, NULL) != EMBLA_OK)
            fail_msg("%s: %s", config, embla_error());
        assert_string_equal(table.name, "model.embed_tokens.weight");
        embla_checkpoint_free(cp);
    }
    embla_checkpoint *cp = with_config(tensors, 2, "{\"hidden_size\":99}");
    assert_status(embla_checkpoint_role(cp, EMBLA_ROLE_TOKENS, &table, NULL), EMBLA_ERR_NOT_FOUND);
    assert_error_has("2 tensors could have the role 'tokens'");
    embla_checkpoint_free(cp);
}

static void one_dimension_is_a_table_only_where_a_file_has_one_table(void **state)
{
    static const char header[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }    \n";
    toy_tensor tensors[] = {{"something", 4, 0, 1}};
    toy_bytes npy = {0};
    (void)state;
    embla_checkpoint *cp = with_config(tensors, 1, NULL);
    assert_int_equal(role_of(cp, "something"), EMBLA_ROLE_NONE);
    embla_checkpoint_free(cp);
    toy_put(&npy, "\x93NUMPY\1\0", 8);
    toy_number(&npy, sizeof header - 1, 2);
    toy_put(&npy, header, sizeof header - 1);
    toy_number(&npy, 0, 8);
    scratch_write(scratch_path(&place, "a.npy"), npy.bytes, npy.used);
    free(npy.bytes);
    cp = opened("a.npy");
    assert_int_equal(role_of(cp, "array"), EMBLA_ROLE_TOKENS);
    embla_vocab *vocab = NULL; /* and it takes no words from beside it */
    toy_text(scratch_path(&place, "vocab.txt"), "the\ncat\n");
    assert_status(embla_vocab_open(cp, &vocab), EMBLA_ERR_NOT_FOUND);
    embla_checkpoint_free(cp);
}

static void the_output_of_a_quantized_fasttext_is_no_table(void **state)
{
    fasttext_model m = fasttext_quantized();
    model_file f = fasttext_file(&m);
    (void)state;
    scratch_write(scratch_path(&place, "a.bin"), f.bytes, f.size);
    embla_checkpoint *cp = opened("a.bin");
    assert_int_equal(tensor_count(cp), 1);
    assert_int_equal(role_of(cp, "output"), EMBLA_ROLE_NONE);
    embla_checkpoint_free(cp);
}

/* ---- tied or not ---- */

/* Table and head by the text of their two entries; the data is bytes, then bytes again. */
static embla_tie tie_of_bytes(const char *table, const char *head, const void *bytes, size_t count,
                              const void *more, size_t more_count)
{
    toy_bytes file = {0};
    char header[512];
    embla_tie tie;
    int n = snprintf(header, sizeof header,
                     "{\"wte.weight\":{%s,\"data_offsets\":[0,%zu]},"
                     "\"lm_head.weight\":{%s,\"data_offsets\":[%zu,%zu]}}",
                     table, count, head, count, count + more_count);
    toy_number(&file, (uint64_t)n, 8);
    toy_put(&file, header, (size_t)n);
    toy_typed(&file, strstr(table, "dtype") + strlen("dtype\":\""), bytes, count);
    toy_typed(&file, strstr(head, "dtype") + strlen("dtype\":\""), more, more_count);
    scratch_write(scratch_path(&place, "model.safetensors"), file.bytes, file.used);
    free(file.bytes);
    embla_checkpoint *cp = opened("");
    assert_ok(embla_checkpoint_tie(cp, 0, &tie));
    embla_checkpoint_free(cp);
    return tie;
}

#define F32_2X2 "\"dtype\":\"F32\",\"shape\":[2,2]"

static void the_difference_is_the_largest(void **state)
{
    float a[4] = {1, 2, 3, 4}, b[4] = {1, 2.5f, 3.25f, 4};
    (void)state;
    embla_tie tie = tie_of_bytes(F32_2X2, F32_2X2, a, sizeof a, b, sizeof b);
    assert_int_equal(tie.kind, EMBLA_TIE_UNTIED);
    assert_false(tie.conflict); /* nothing said that they are one */
    assert_string_equal(tie.rule, "2");
    assert_true(tie.difference == 0.5);
    a[3] = b[3] = NAN; /* the same in both */
    assert_true(tie_of_bytes(F32_2X2, F32_2X2, a, sizeof a, b, sizeof b).difference == 0.5);
    b[3] = 4;
    assert_true(isinf(tie_of_bytes(F32_2X2, F32_2X2, a, sizeof a, b, sizeof b).difference));
}

static void types_and_shapes_must_agree_too(void **state)
{
    static const uint16_t bytes[8] = {0x3c00, 0x4000, 0x4200, 0x4400}; /* F16: 1, 2, 3, 4 */
    const float numbers[4] = {1, 2, 3, 4};
    (void)state;
    embla_tie tie = tie_of_bytes("\"dtype\":\"F16\",\"shape\":[2,2]",
                                 "\"dtype\":\"BF16\",\"shape\":[2,2]", bytes, 8, bytes, 8);
    assert_int_equal(tie.kind, EMBLA_TIE_UNTIED); /* the same bytes, other numbers */
    tie = tie_of_bytes(F32_2X2, "\"dtype\":\"I32\",\"shape\":[2,2]", numbers, 16, numbers, 16);
    assert_int_equal(tie.kind, EMBLA_TIE_UNTIED); /* one that cannot be decoded */
    assert_int_equal(tie.rows_compared, 2);
    tie = tie_of_bytes("\"dtype\":\"F32\",\"shape\":[1,2]", "\"dtype\":\"F32\",\"shape\":[1,4]",
                       numbers, 8, numbers, 16);
    assert_int_equal(tie.rows_compared, 0);
    tie = tie_of_bytes("\"dtype\":\"F32\",\"shape\":[2,1]", "\"dtype\":\"F32\",\"shape\":[3,1]",
                       numbers, 8, numbers, 12);
    assert_int_equal(tie.kind, EMBLA_TIE_UNTIED); /* the first rows are the same */
    assert_int_equal(tie.rows_compared, 0);
    tie = tie_of_bytes("\"dtype\":\"F6_E2M3\",\"shape\":[4,1]",
                       "\"dtype\":\"F6_E3M2\",\"shape\":[4,1]", bytes, 3, bytes, 3);
    assert_int_equal(tie.kind, EMBLA_TIE_UNTIED);
    assert_int_equal(tie.rows_compared, 0);
}

/* More than a block of rows, of two sizes. */
static void rows_of_two_types_are_compared_to_the_last(void **state)
{
    enum { ROWS = 300000 };
    float *a = malloc(ROWS * sizeof *a), *b = malloc(ROWS * sizeof *b);
    uint16_t *half = malloc(ROWS * sizeof *half);
    (void)state;
    assert_true(a && b && half);
    for (size_t i = 0; i < ROWS; i++) {
        a[i] = b[i] = i % 2 ? 1.0f : -2.0f;
        half[i] = i % 2 ? 0x3c00 : 0xc000;
    }
    embla_tie tie = tie_of_bytes("\"dtype\":\"F32\",\"shape\":[300000,1]",
                                 "\"dtype\":\"F16\",\"shape\":[300000,1]", a, ROWS * sizeof *a,
                                 half, ROWS * sizeof *half);
    assert_int_equal(tie.kind, EMBLA_TIE_UNTIED);
    assert_true(tie.difference == 0);
    assert_int_equal(tie.rows_compared, ROWS);
    half[ROWS - 2] = 0x3c00; /* other than its neighbour */
    tie = tie_of_bytes("\"dtype\":\"F32\",\"shape\":[300000,1]",
                       "\"dtype\":\"F16\",\"shape\":[300000,1]", a, ROWS * sizeof *a, half,
                       ROWS * sizeof *half);
    assert_true(tie.difference == 3);
    b[0] = -1; /* and beyond the first block that differs */
    b[ROWS - 1] = 9;
    tie = tie_of_bytes("\"dtype\":\"F32\",\"shape\":[300000,1]",
                       "\"dtype\":\"F32\",\"shape\":[300000,1]", a, ROWS * sizeof *a, b,
                       ROWS * sizeof *b);
    assert_true(tie.difference == 8);
    assert_int_equal(tie.rows_compared, ROWS);
    free(a);
    free(b);
    free(half);
}

static void a_sample_is_one_only_where_rows_are_left_out(void **state)
{
    toy_tensor tensors[] = {{"wte.weight", 12, 4, 1}, {"lm_head.weight", 12, 4, 1}};
    embla_tie tie;
    (void)state;
    embla_checkpoint *cp = with_config(tensors, 2, NULL);
    assert_ok(embla_checkpoint_tie(cp, 4, &tie));
    assert_true(tie.sampled);
    assert_int_equal(tie.rows_compared, 4);
    assert_ok(embla_checkpoint_tie(cp, 12, &tie));
    assert_false(tie.sampled);
    assert_int_equal(tie.rows_compared, 12);
    embla_checkpoint_free(cp);
    tensors[1].seed = 2; /* a difference is one, however few were looked at */
    cp = with_config(tensors, 2, NULL);
    assert_ok(embla_checkpoint_tie(cp, 4, &tie));
    assert_false(tie.sampled);
    assert_int_equal(tie.rows_compared, 1);
    embla_checkpoint_free(cp);
}

static void the_flag_goes_before_the_architecture(void **state)
{
    static const struct {
        const char *config;
        embla_tie_kind kind;
        const char *flag;
    } cases[] = {
        {"{\"model_type\":\"gpt2\"}", EMBLA_TIE_TIED,
         "not set; the architecture's default is true"},
        {"{\"model_type\":\"gpt2\",\"tie_word_embeddings\":true}", EMBLA_TIE_TIED,
         "tie_word_embeddings = true"},
        {"{\"model_type\":\"gpt2\",\"tie_word_embeddings\":false}", EMBLA_TIE_HEAD_MISSING,
         "tie_word_embeddings = false"},
        {"{\"model_type\":\"gptj\"}", EMBLA_TIE_HEAD_MISSING,
         "not set; the architecture's default is false"},
        {"{\"model_type\":\"gptj\",\"tie_word_embeddings\":false}", EMBLA_TIE_HEAD_MISSING,
         "tie_word_embeddings = false"},
        {"{\"model_type\":\"unheard of\"}", EMBLA_TIE_HEAD_MISSING, "not set"},
    };
    toy_tensor tensors[] = {{"wte.weight", 6, 4, 1}, {"x", 4, 0, 3}};
    embla_tie tie;
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        embla_checkpoint *cp = with_config(tensors, 2, cases[i].config);
        assert_ok(embla_checkpoint_tie(cp, 0, &tie));
        assert_int_equal(tie.kind, cases[i].kind);
        assert_string_equal(tie.flag, cases[i].flag);
        embla_checkpoint_free(cp);
    }
}

/* ---- formats that say it themselves ---- */

/* A model of llama2.c: 3 tokens, or -3 for a head of its own; dim 2, one of everything else. */
static void llama2c_file(const char *name, int64_t tokens)
{
    const int64_t fields[7] = {2, 1, 1, 1, 1, tokens, 1};
    model_file f = {.size = 0};
    for (size_t i = 0; i < 7; i++) put_i32(&f, fields[i]);
    put_floats(&f, tokens < 0 ? 42 : 36, 0);
    scratch_write(scratch_path(&place, name), f.bytes, f.size);
}

static void a_header_says_whether_there_is_a_head(void **state)
{
    const int64_t fields[8] = {20240326, 3, 1, 2, 1, 1, 2, 2};
    model_file f = {.size = 0};
    embla_tie tie;
    (void)state;
    llama2c_file("a.bin", 3);
    embla_checkpoint *cp = opened("a.bin");
    assert_ok(embla_checkpoint_tie(cp, 0, &tie));
    assert_int_equal(tie.kind, EMBLA_TIE_TIED);
    assert_string_equal(tie.flag, "tie_word_embeddings = true");
    embla_checkpoint_free(cp);
    llama2c_file("a.bin", -3);
    cp = opened("a.bin");
    assert_ok(embla_checkpoint_tie(cp, 0, &tie));
    assert_int_equal(tie.kind, EMBLA_TIE_UNTIED);
    assert_string_equal(tie.flag, "tie_word_embeddings = false");
    embla_checkpoint_free(cp);
    /* llm.c has no head at all: it ties */
    for (size_t i = 0; i < 256; i++) put_i32(&f, i < 8 ? fields[i] : 0);
    put_floats(&f, 84, 0);
    scratch_write(scratch_path(&place, "b.bin"), f.bytes, f.size);
    cp = opened("b.bin");
    assert_ok(embla_checkpoint_tie(cp, 0, &tie));
    assert_int_equal(tie.kind, EMBLA_TIE_TIED);
    embla_checkpoint_free(cp);
}

/* ---- words ---- */

/* llama2.c's tokenizer: words of one letter. */
static void tokenizer_file(const char *name, size_t words)
{
    model_file f = {.size = 0};
    put_i32(&f, 1);
    for (size_t i = 0; i < words; i++) {
        put_i32(&f, 0);
        put_i32(&f, 1);
        put_u8(&f, (int)('a' + i));
    }
    scratch_write(scratch_path(&place, name), f.bytes, f.size);
}

static void words_are_from(const embla_checkpoint *cp, const char *source)
{
    embla_vocab *vocab = NULL;
    assert_ok(embla_vocab_open(cp, &vocab));
    assert_string_equal(embla_vocab_source(vocab), source);
    embla_vocab_free(vocab);
}

static void no_words(const embla_checkpoint *cp, embla_status status)
{
    embla_vocab *vocab = NULL;
    assert_status(embla_vocab_open(cp, &vocab), status);
    assert_null(vocab);
}

static void llama2c_has_the_only_tok_bin_with_a_word_for_each_row(void **state)
{
    (void)state;
    llama2c_file("stories.bin", 3); /* a .bin too */
    embla_checkpoint *cp = opened("stories.bin");
    no_words(cp, EMBLA_ERR_NOT_FOUND);
    tokenizer_file("token.md", 3);
    no_words(cp, EMBLA_ERR_NOT_FOUND);
    tokenizer_file("tok.bin", 3);
    words_are_from(cp, "tok.bin");
    tokenizer_file("tok.bin", 2);
    no_words(cp, EMBLA_ERR_NOT_FOUND);
    tokenizer_file("tok.bin", 4);
    no_words(cp, EMBLA_ERR_NOT_FOUND);
    tokenizer_file("tok.bin", 3);
    tokenizer_file("tok512.bin", 3);
    no_words(cp, EMBLA_ERR_NOT_FOUND); /* either could be meant */
    scratch_remove(&place, "tok512.bin");
    words_are_from(cp, "tok.bin");
    toy_text(scratch_path(&place, "stories.vocab.txt"), "#embla-vocab 1\n\\q\n");
    no_words(cp, EMBLA_ERR_FORMAT); /* its own, if broken, is not passed over */
    embla_checkpoint_free(cp);
}

static void words_are_looked_for_in_an_order(void **state)
{
    static const char *const names[] = {"vocab.txt", "vocab.json", "tokenizer.json"};
    toy_tensor tensors[] = {{"wte.weight", 2, 4, 1}};
    (void)state;
    toy_safetensors(scratch_path(&place, "a.safetensors"), tensors, 1);
    embla_checkpoint *cp = opened("a.safetensors");
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        toy_text(scratch_path(&place, names[i]), "{\"the\":0,\"cat\":1}");
        words_are_from(cp, names[i]);
    }
    toy_text(scratch_path(&place, "tokenizer.json"), "{\"the\":");
    no_words(cp, EMBLA_ERR_FORMAT); /* one that is broken is not passed over */
    toy_text(scratch_path(&place, "a.vocab.txt"), "#embla-vocab 1\n\\q\n");
    no_words(cp, EMBLA_ERR_FORMAT);
    embla_checkpoint_free(cp);
    toy_gguf(scratch_path(&place, "b.gguf"), "llama", 0, tensors, 1); /* no words of its own */
    cp = opened("b.gguf");
    toy_text(scratch_path(&place, "tokenizer.json"), "{\"the\":0}");
    words_are_from(cp, "tokenizer.json");
    embla_checkpoint_free(cp);
    toy_text(scratch_path(&place, "c.vec"), "1 2\nthe 1 2\n"); /* one word is enough */
    cp = opened("c.vec");
    words_are_from(cp, "the file itself");
    embla_checkpoint_free(cp);
}

static void variants_with_a_config_share_the_words_above_them(void **state)
{
    toy_tensor tensors[] = {{"wte.weight", 2, 4, 1}};
    (void)state;
    assert_int_equal(mkdir(scratch_path(&place, "small"), 0700), 0);
    toy_safetensors(scratch_path(&place, "small/model.safetensors"), tensors, 1);
    toy_text(scratch_path(&place, "tokenizer.json"), "{\"the\":0,\"cat\":1}");
    embla_checkpoint *cp = opened("small");
    no_words(cp, EMBLA_ERR_NOT_FOUND);
    embla_checkpoint_free(cp);
    toy_text(scratch_path(&place, "small/config.json"), "{}");
    cp = opened("small");
    words_are_from(cp, "../tokenizer.json");
    embla_checkpoint_free(cp);
    scratch_remove(&place, "small/config.json");
    scratch_remove(&place, "small/model.safetensors");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(names_that_are_nearly_a_rules_have_no_role),
        TEST(the_last_layer_of_phi_1_is_found_in_any_order),
        TEST(a_mapping_belongs_to_model2vec),
        TEST(the_width_of_the_config_chooses_or_nobody_does),
        TEST(one_dimension_is_a_table_only_where_a_file_has_one_table),
        TEST(the_output_of_a_quantized_fasttext_is_no_table),
        TEST(the_difference_is_the_largest),
        TEST(types_and_shapes_must_agree_too),
        TEST(rows_of_two_types_are_compared_to_the_last),
        TEST(a_sample_is_one_only_where_rows_are_left_out),
        TEST(the_flag_goes_before_the_architecture),
        TEST(a_header_says_whether_there_is_a_head),
        TEST(llama2c_has_the_only_tok_bin_with_a_word_for_each_row),
        TEST(words_are_looked_for_in_an_order),
        TEST(variants_with_a_config_share_the_words_above_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
