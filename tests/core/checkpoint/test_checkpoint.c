/* SPDX-License-Identifier: Apache-2.0 */
/* The one door: files and folders, what each tensor is for, tied or not, words, padding. */
#include "opened.h"

#include "base/byte_order.h"
#include "base/mem.h"
#include "files/io.h"

/* ---- roles ---- */

static void names_of_every_architecture_have_their_roles(void **state)
{
    static const struct {
        const char *name;
        embla_role role;
    } cases[] = {
        {"wte.weight", EMBLA_ROLE_TOKENS},
        {"transformer.wte.weight", EMBLA_ROLE_TOKENS},
        {"_orig_mod.transformer.wte.weight", EMBLA_ROLE_TOKENS},
        {"model.embed_tokens.weight", EMBLA_ROLE_TOKENS},
        {"language_model.model.embed_tokens.weight", EMBLA_ROLE_TOKENS},
        {"model.language_model.embed_tokens.weight", EMBLA_ROLE_TOKENS},
        {"base_model.model.model.embed_tokens.weight", EMBLA_ROLE_TOKENS},
        {"model.decoder.embed_tokens.weight", EMBLA_ROLE_TOKENS},
        {"gpt_neox.embed_in.weight", EMBLA_ROLE_TOKENS},
        {"model.embeddings.tok_embeddings.weight", EMBLA_ROLE_TOKENS},
        {"tok_embeddings.weight", EMBLA_ROLE_TOKENS},
        {"bert.embeddings.word_embeddings.weight", EMBLA_ROLE_TOKENS},
        {"transformer.embedding.word_embeddings.weight", EMBLA_ROLE_TOKENS},
        {"transformer.embd.wte.weight", EMBLA_ROLE_TOKENS},
        {"transformer.word_embedding.weight", EMBLA_ROLE_TOKENS},
        {"transformer.w.weight", EMBLA_ROLE_TOKENS},
        {"backbone.embeddings.weight", EMBLA_ROLE_TOKENS},
        {"backbone.embedding.weight", EMBLA_ROLE_TOKENS},
        {"rwkv.embeddings.weight", EMBLA_ROLE_TOKENS},
        {"model.embeddings.weight", EMBLA_ROLE_TOKENS},
        {"shared.weight", EMBLA_ROLE_TOKENS},
        {"model.shared.weight", EMBLA_ROLE_TOKENS},
        {"token_embd.weight", EMBLA_ROLE_TOKENS},
        {"wpe.weight", EMBLA_ROLE_POSITIONS},
        {"embeddings.position_embeddings.weight", EMBLA_ROLE_POSITIONS},
        {"model.decoder.embed_positions.weight", EMBLA_ROLE_POSITIONS},
        {"position_embd.weight", EMBLA_ROLE_POSITIONS},
        {"lm_head.weight", EMBLA_ROLE_HEAD},
        {"language_model.lm_head.weight", EMBLA_ROLE_HEAD},
        {"embed_out.weight", EMBLA_ROLE_HEAD},
        {"output.weight", EMBLA_ROLE_HEAD},
        {"head.weight", EMBLA_ROLE_HEAD},
        {"model.transformer.ff_out.weight", EMBLA_ROLE_HEAD},
        {"decoder.weight", EMBLA_ROLE_HEAD},
        {"cls.predictions.decoder.weight", EMBLA_ROLE_HEAD},
        {"lm_head.decoder.weight", EMBLA_ROLE_HEAD},
        {"predictions.decoder.weight", EMBLA_ROLE_HEAD},
        {"generator_lm_head.weight", EMBLA_ROLE_HEAD},
        {"vocab_projector.weight", EMBLA_ROLE_HEAD},
        {"lm_loss.weight", EMBLA_ROLE_HEAD},
        {"transformer.output_layer.weight", EMBLA_ROLE_HEAD},
        {"lm_head.linear.weight", EMBLA_ROLE_HEAD},
        {"lm_head.bias", EMBLA_ROLE_HEAD_BIAS},
        {"lm_loss.bias", EMBLA_ROLE_HEAD_BIAS},
        {"cls.predictions.bias", EMBLA_ROLE_HEAD_BIAS},
        {"final_logits_bias", EMBLA_ROLE_HEAD_BIAS},
        {"decoder.bias", EMBLA_ROLE_HEAD_BIAS},
        {"output.bias", EMBLA_ROLE_HEAD_BIAS},
        {"model.embed_tokens_per_layer.weight", EMBLA_ROLE_PER_LAYER},
        {"model.language_model.embed_tokens_per_layer.weight", EMBLA_ROLE_PER_LAYER},
        {"per_layer_token_embd.weight", EMBLA_ROLE_PER_LAYER},
        {"model.layers.61.embed_tokens.weight", EMBLA_ROLE_TOKENS_COPY},
        {"model.layers.61.shared_head.head.weight", EMBLA_ROLE_HEAD_COPY},
        {"blk.61.nextn.embed_tokens.weight", EMBLA_ROLE_TOKENS_COPY},
        {"blk.61.nextn.shared_head_head.weight", EMBLA_ROLE_HEAD_COPY},
        {"bert.embeddings.token_type_embeddings.weight", EMBLA_ROLE_TOKEN_TYPES},
        {"token_types.weight", EMBLA_ROLE_TOKEN_TYPES},
        /* what only looks like it */
        {"encoder.relative_attention_bias.weight", EMBLA_ROLE_NONE},
        {"vision_tower.embeddings.position_embeddings.weight", EMBLA_ROLE_NONE},
        {"model.vision_model.embed_tokens.weight", EMBLA_ROLE_NONE},
        {"xwte.weight", EMBLA_ROLE_NONE},
        {"model.layers.3.output.weight", EMBLA_ROLE_NONE},
        {"model.head.weight", EMBLA_ROLE_NONE},
        {"word_embedding.weight", EMBLA_ROLE_NONE},
        {"layers.x.embed_tokens.weight", EMBLA_ROLE_NONE},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        /* a second tensor: one alone would be the table for want of another */
        toy_tensor tensors[] = {{cases[i].name, 6, 4, 1}, {"other.thing", 6, 4, 2}};
        toy_safetensors(scratch_path(&place, "model.safetensors"), tensors, 2);
        embla_checkpoint *cp = opened("");
        if (role_of(cp, cases[i].name) != cases[i].role)
            fail_msg("%s is '%s', not '%s'", cases[i].name,
                     embla_role_name(role_of(cp, cases[i].name)), embla_role_name(cases[i].role));
        assert_int_equal(role_of(cp, "other.thing"), EMBLA_ROLE_NONE);
        embla_checkpoint_free(cp);
    }
}

static void phi_1_numbers_its_head_like_a_layer(void **state)
{
    toy_tensor tensors[] = {{"layers.0.wte.weight", 6, 4, 1},
                            {"layers.3.linear.weight", 4, 4, 2},
                            {"layers.25.linear.weight", 6, 4, 3},
                            {"layers.25.linear.bias", 6, 0, 4}};
    (void)state;
    toy_safetensors(scratch_path(&place, "model.safetensors"), tensors, 4);
    embla_checkpoint *cp = opened("");
    assert_int_equal(role_of(cp, "layers.0.wte.weight"), EMBLA_ROLE_TOKENS);
    assert_int_equal(role_of(cp, "layers.3.linear.weight"), EMBLA_ROLE_NONE);
    assert_int_equal(role_of(cp, "layers.25.linear.weight"), EMBLA_ROLE_HEAD);
    assert_int_equal(role_of(cp, "layers.25.linear.bias"), EMBLA_ROLE_HEAD_BIAS);
    embla_checkpoint_free(cp);
}

static void of_t5s_three_tables_the_shared_one_counts(void **state)
{
    toy_tensor tensors[] = {{"decoder.embed_tokens.weight", 6, 4, 1},
                            {"encoder.embed_tokens.weight", 6, 4, 1},
                            {"shared.weight", 6, 4, 1}};
    (void)state;
    for (size_t count = 3; count >= 1; count--) {
        toy_safetensors(scratch_path(&place, "model.safetensors"), tensors, count);
        embla_checkpoint *cp = opened("");
        embla_tensor table;
        assert_ok(embla_checkpoint_role(cp, EMBLA_ROLE_TOKENS, &table, NULL));
        assert_string_equal(table.name, tensors[count - 1].name);
        embla_checkpoint_free(cp);
    }
}

static void several_candidates_are_an_error_that_lists_them(void **state)
{
    toy_tensor tensors[] = {{"wte.weight", 6, 4, 1}, {"model.embed_tokens.weight", 7, 5, 2}};
    embla_tensor table;
    embla_table *rows = NULL;
    (void)state;
    toy_safetensors(scratch_path(&place, "a.safetensors"), tensors, 2);
    embla_checkpoint *cp = opened("a.safetensors");
    assert_status(embla_checkpoint_role(cp, EMBLA_ROLE_TOKENS, &table, NULL), EMBLA_ERR_NOT_FOUND);
    assert_error_has("wte.weight (6 x 4)");
    assert_error_has("model.embed_tokens.weight (7 x 5)");
    assert_status(embla_table_open(cp, NULL, NULL, &rows), EMBLA_ERR_NOT_FOUND);
    embla_checkpoint_free(cp);

    cp = opened("a.safetensors::model.embed_tokens.weight");
    const char *why = NULL;
    assert_ok(embla_checkpoint_role(cp, EMBLA_ROLE_TOKENS, &table, &why));
    assert_string_equal(table.name, "model.embed_tokens.weight");
    assert_string_equal(why, "named by the caller");
    embla_checkpoint_free(cp);

    /* config.json knows how wide the table is */
    toy_text(scratch_path(&place, "config.json"), "{\"hidden_size\": 5}");
    cp = opened("a.safetensors");
    assert_ok(embla_checkpoint_role(cp, EMBLA_ROLE_TOKENS, &table, NULL));
    assert_string_equal(table.name, "model.embed_tokens.weight");
    embla_checkpoint_free(cp);
}

static void a_tensor_that_is_not_there_is_named_with_one_nearly_it(void **state)
{
    toy_tensor tensors[] = {{"model.embed_tokens.weight", 6, 4, 1}};
    embla_checkpoint *cp = NULL;
    (void)state;
    toy_safetensors(scratch_path(&place, "a.safetensors"), tensors, 1);
    assert_status(
        embla_checkpoint_open(scratch_path(&place, "a.safetensors::embed_tokens"), NULL, &cp),
        EMBLA_ERR_NOT_FOUND);
    assert_error_has("did you mean 'model.embed_tokens.weight'");
}

/* ---- tied or not ---- */

typedef enum { TABLE, HEAD, EQUAL, DIFFERENT, NEITHER, SETS } tensor_set;
typedef enum { WHOLE, SHARDED, GGUF, KINDS } container;

static void make_case(container kind, tensor_set set, int flag)
{
    bool gguf = kind == GGUF;
    const char *table = gguf ? "token_embd.weight" : "model.embed_tokens.weight";
    const char *head = gguf ? "output.weight" : "lm_head.weight";
    toy_tensor tensors[3] = {{gguf ? "output_norm.weight" : "model.norm.weight", 4, 0, 9}};
    size_t count = 1;
    if (set != HEAD && set != NEITHER) tensors[count++] = (toy_tensor){table, 6, 4, 1};
    if (set == HEAD || set == EQUAL || set == DIFFERENT)
        tensors[count++] = (toy_tensor){head, 6, 4, set == EQUAL ? 1 : 2};
    if (kind == WHOLE) toy_safetensors(scratch_path(&place, "model.safetensors"), tensors, count);
    if (kind == SHARDED) toy_sharded(&place, tensors, count);
    if (kind == GGUF) toy_gguf(scratch_path(&place, "model.gguf"), "llama", 0, tensors, count);
    if (flag >= 0)
        toy_text(scratch_path(&place, "config.json"),
                 flag ? "{\"tie_word_embeddings\": true}" : "{\"tie_word_embeddings\": false}");
}

static void the_tying_matrix(void **state)
{
    /* [flag][set]: what safetensors, whole or in shards, gives */
    static const struct {
        embla_tie_kind kind;
        const char *rule;
    } wanted[2][SETS] = {{{EMBLA_TIE_HEAD_MISSING, "4"},
                          {EMBLA_TIE_NO_TABLE, "head only"},
                          {EMBLA_TIE_STORED_TWICE, "1"},
                          {EMBLA_TIE_UNTIED, "2"},
                          {EMBLA_TIE_NO_TABLE, "neither"}},
                         {{EMBLA_TIE_TIED, "3"},
                          {EMBLA_TIE_INVERTED, "5"},
                          {EMBLA_TIE_STORED_TWICE, "1"},
                          {EMBLA_TIE_UNTIED, "2c"},
                          {EMBLA_TIE_NO_TABLE, "neither"}}},
      gguf[SETS] = {{EMBLA_TIE_TIED, "6"},
                    {EMBLA_TIE_NO_TABLE, "head only"},
                    {EMBLA_TIE_STORED_TWICE, "1"},
                    {EMBLA_TIE_UNTIED, "2"},
                    {EMBLA_TIE_NO_TABLE, "neither"}};
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        for (int set = 0; set < SETS; set++) {
            for (int flag = 0; flag < 2; flag++) {
                embla_tie tie;
                make_case((container)kind, (tensor_set)set, flag);
                embla_checkpoint *cp = opened("");
                assert_ok(embla_checkpoint_tie(cp, 0, &tie));
                embla_tie_kind want = kind == GGUF ? gguf[set].kind : wanted[flag][set].kind;
                const char *rule = kind == GGUF ? gguf[set].rule : wanted[flag][set].rule;
                if (tie.kind != want || strcmp(tie.rule, rule) != 0)
                    fail_msg("container %d, set %d, flag %d: %s by rule %s, not %s by %s", kind,
                             set, flag, embla_tie_name(tie.kind), tie.rule, embla_tie_name(want),
                             rule);
                embla_tensor table;
                embla_status found = embla_checkpoint_role(cp, EMBLA_ROLE_TOKENS, &table, NULL);
                assert_int_equal(found == EMBLA_OK, tie.kind != EMBLA_TIE_NO_TABLE);
                assert_int_equal(tie.conflict, kind != GGUF && set == DIFFERENT && flag == 1);
                if (set == DIFFERENT) assert_true(tie.difference > 0.1);
                if (set == EQUAL || set == DIFFERENT) assert_int_equal(tie.rows_compared, 6);
                embla_checkpoint_free(cp);
                (void)scratch_each(&place, scratch_remove, NULL);
            }
        }
    }
}

static embla_tie tie_of(const char *config, size_t count, const toy_tensor *tensors)
{
    embla_tie tie;
    toy_safetensors(scratch_path(&place, "model.safetensors"), tensors, count);
    if (config) toy_text(scratch_path(&place, "config.json"), config);
    embla_checkpoint *cp = opened("");
    assert_ok(embla_checkpoint_tie(cp, 0, &tie));
    embla_checkpoint_free(cp);
    (void)scratch_each(&place, scratch_remove, NULL);
    return tie;
}

static void the_flag_is_looked_for_in_its_places(void **state)
{
    const toy_tensor table[] = {{"model.embed_tokens.weight", 6, 4, 1}, {"x", 4, 0, 3}};
    (void)state;
    embla_tie tie = tie_of("{\"text_config\": {\"tie_word_embeddings\": true}}", 2, table);
    assert_int_equal(tie.kind, EMBLA_TIE_TIED);
    assert_string_equal(tie.flag, "text_config.tie_word_embeddings = true");
    tie = tie_of("{\"weight_tying\": true}", 2, table);
    assert_int_equal(tie.kind, EMBLA_TIE_TIED);
    tie = tie_of("{\"tie_word_embeddings\": false, \"text_config\": {\"tie_word_embeddings\": "
                 "true}}",
                 2, table);
    assert_int_equal(tie.kind, EMBLA_TIE_HEAD_MISSING);
}

static void without_a_flag_the_architecture_decides_and_else_nobody(void **state)
{
    const toy_tensor table[] = {{"transformer.wte.weight", 6, 4, 1}, {"x", 4, 0, 3}};
    (void)state;
    assert_int_equal(tie_of("{\"model_type\": \"gpt2\"}", 2, table).kind, EMBLA_TIE_TIED);
    assert_int_equal(tie_of("{\"model_type\": \"llama\"}", 2, table).kind, EMBLA_TIE_HEAD_MISSING);
    assert_int_equal(tie_of("{\"model_type\": \"new\"}", 2, table).kind, EMBLA_TIE_HEAD_MISSING);
    assert_int_equal(tie_of(NULL, 2, table).kind, EMBLA_TIE_HEAD_MISSING);
}

static void an_encoder_has_no_head(void **state)
{
    const toy_tensor mini[] = {{"embeddings.word_embeddings.weight", 6, 4, 1}, {"x", 4, 0, 3}};
    const toy_tensor model2vec[] = {{"embeddings", 6, 4, 1}};
    (void)state;
    embla_tie tie =
        tie_of("{\"model_type\": \"bert\", \"architectures\": [\"BertModel\"]}", 2, mini);
    assert_int_equal(tie.kind, EMBLA_TIE_NO_HEAD);
    tie = tie_of("{\"model_type\": \"bert\", \"architectures\": [\"BertForMaskedLM\"]}", 2, mini);
    assert_int_equal(tie.kind, EMBLA_TIE_TIED);
    assert_int_equal(tie_of(NULL, 1, model2vec).kind, EMBLA_TIE_NO_HEAD);
}

static void a_sample_says_that_it_is_one(void **state)
{
    toy_tensor tensors[] = {{"wte.weight", 1000, 4, 1}, {"lm_head.weight", 1000, 4, 1}};
    embla_tie tie;
    (void)state;
    toy_safetensors(scratch_path(&place, "model.safetensors"), tensors, 2);
    embla_checkpoint *cp = opened("");
    assert_ok(embla_checkpoint_tie(cp, 10, &tie));
    assert_int_equal(tie.kind, EMBLA_TIE_STORED_TWICE);
    assert_true(tie.sampled);
    assert_int_equal(tie.rows_compared, 10);
    assert_ok(embla_checkpoint_tie(cp, 64, &tie)); /* 1000 / 64 leaves a rest */
    assert_in_range(tie.rows_compared, 60, 64);
    assert_ok(embla_checkpoint_tie(cp, 0, &tie));
    assert_false(tie.sampled);
    assert_int_equal(tie.rows_compared, 1000);
    embla_checkpoint_free(cp);
}

static void the_last_row_alone_may_differ(void **state)
{
    toy_tensor tensors[] = {{"wte.weight", 300000, 1, 1}, {"lm_head.weight", 300000, 1, 1}};
    const char *path = scratch_path(&place, "model.safetensors");
    embla_tie tie;
    size_t size = 0;
    (void)state;
    toy_safetensors(path, tensors, 2);
    unsigned char *bytes = scratch_read(path, &size);
    bytes[size - 1] ^= 1;
    scratch_write(path, bytes, size);
    free(bytes);
    embla_checkpoint *cp = opened("");
    assert_ok(embla_checkpoint_tie(cp, 0, &tie));
    assert_int_equal(tie.kind, EMBLA_TIE_UNTIED);
    assert_true(tie.difference > 0);
    embla_checkpoint_free(cp);
}

static void llama2c_says_in_its_header_what_config_does_not(void **state)
{
    (void)state;
    const char *data = getenv("EMBLA_DATA");
    char path[SCRATCH_PATH];
    size_t size = 0;
    embla_tie tie;
    if (!data) {
        print_message("EMBLA_DATA is not set: skipped\n");
        skip();
    }
    (void)snprintf(path, sizeof path, "%s/stories260k/stories260K.bin", data);
    unsigned char *bytes = scratch_read(path, &size);
    assert_non_null(bytes);
    scratch_write(scratch_path(&place, "m.bin"), bytes, size);
    free(bytes);
    toy_text(scratch_path(&place, "config.json"), "{\"model_type\": \"llama\"}");
    embla_checkpoint *cp = opened("m.bin");
    assert_ok(embla_checkpoint_tie(cp, 0, &tie));
    assert_int_equal(tie.kind, EMBLA_TIE_TIED);
    embla_checkpoint_free(cp);
}

/* ---- numbers of config.json and of GGUF keys ---- */

static void lists_and_reals_of_config(void **state)
{
    static const toy_tensor tensors[] = {{"wte.weight", 6, 4, 1}};
    int64_t numbers[4] = {7, 7, 7, 7};
    size_t count = 99;
    double real = 7;
    (void)state;
    toy_safetensors(scratch_path(&place, "model.safetensors"), tensors, 1);
    toy_text(scratch_path(&place, "config.json"),
             "{\"list\": [1, -2, 9223372036854775807], \"none\": [], \"mixed\": [1, 2.5], "
             "\"one\": 5, \"ratio\": 100.567, \"odd\": -0.30000000000000004, \"small\": 1.5e-7, "
             "\"large\": 12E+3, \"huge\": 1e999, \"nan\": NaN, \"whole\": "
             "18446744073709551616, \"text\": \"1.5\", \"in\": {\"list\": [4]}}");
    embla_checkpoint *cp = opened("");
    assert_ok(embla_checkpoint_integers(cp, "list", 4, numbers, &count));
    assert_int_equal(count, 3);
    assert_int_equal(numbers[0], 1);
    assert_int_equal(numbers[1], -2);
    assert_int_equal(numbers[2], INT64_MAX);
    assert_int_equal(numbers[3], 7);
    assert_ok(embla_checkpoint_integers(cp, "in.list", 1, numbers, &count));
    assert_int_equal(numbers[0], 4);
    assert_int_equal(numbers[1], -2);
    assert_ok(embla_checkpoint_integers(cp, "list", 0, NULL, &count));
    assert_int_equal(count, 3);
    assert_ok(embla_checkpoint_integers(cp, "none", 4, numbers, &count));
    assert_int_equal(count, 0);
    static const char *const not_lists[] = {"mixed", "one", "text", "missing", "in"};
    for (size_t i = 0; i < COUNT_OF(not_lists); i++) {
        count = 99;
        assert_status(embla_checkpoint_integers(cp, not_lists[i], 4, numbers, &count),
                      EMBLA_ERR_NOT_FOUND);
        assert_error_has("has no list of integers");
        assert_int_equal(count, 99);
        assert_int_equal(numbers[0], 4);
    }
    assert_status(embla_checkpoint_integers(cp, "list", 1, NULL, &count), EMBLA_ERR_ARGUMENT);
    assert_status(embla_checkpoint_integers(cp, "list", 0, NULL, NULL), EMBLA_ERR_ARGUMENT);
    static const struct {
        const char *key;
        double value;
    } reals[] = {{"ratio", 100.567}, {"odd", -0.30000000000000004},
                 {"small", 1.5e-7},  {"large", 12000},
                 {"one", 5},         {"whole", 0x1p64}};
    for (size_t i = 0; i < COUNT_OF(reals); i++) {
        assert_ok(embla_checkpoint_real(cp, reals[i].key, &real));
        assert_true(real == reals[i].value);
    }
    static const char *const not_reals[] = {"huge", "nan", "text", "list", "missing"};
    for (size_t i = 0; i < COUNT_OF(not_reals); i++)
        assert_status(embla_checkpoint_real(cp, not_reals[i], &real), EMBLA_ERR_NOT_FOUND);
    assert_true(real == 0x1p64);
    assert_status(embla_checkpoint_real(cp, NULL, &real), EMBLA_ERR_ARGUMENT);
    embla_checkpoint_free(cp);
}

static void put_key(toy_bytes *t, const char *key, uint32_t type)
{
    toy_string(t, key);
    toy_number(t, type, 4);
}

static void put_list(toy_bytes *t, const char *key, uint32_t type, int bytes, const int64_t *list,
                     size_t count)
{
    put_key(t, key, 9);
    toy_number(t, type, 4);
    toy_number(t, count, 8);
    for (size_t i = 0; i < count; i++) toy_number(t, (uint64_t)list[i], bytes);
}

static void lists_and_reals_of_gguf(void **state)
{
    static const int64_t list[] = {1, -2, 100}, large[] = {5, -1};
    static const struct {
        const char *key;
        uint32_t type;
        int bytes;
        int64_t second;
    } types[] = {{"u8", 0, 1, 254}, {"i8", 1, 1, -2},  {"u16", 2, 2, 65534},
                 {"i16", 3, 2, -2}, {"i32", 5, 4, -2}, {"u32", 4, 4, 4294967294},
                 {"i64", 11, 8, -2}};
    int64_t got[3] = {7, 7, 7};
    size_t count = 99;
    double real = 0;
    float third = 1.0f / 3.0f;
    double tenth = 0.1;
    toy_bytes t = {0};
    (void)state;
    toy_put(&t, "GGUF", 4);
    toy_number(&t, 3, 4);
    toy_number(&t, 0, 8);
    toy_number(&t, COUNT_OF(types) + 6, 8);
    put_key(&t, "general.architecture", 8);
    toy_string(&t, "llama");
    for (size_t i = 0; i < COUNT_OF(types); i++)
        put_list(&t, types[i].key, types[i].type, types[i].bytes, list, 3);
    put_list(&t, "large", 10, 8, large, 2);
    put_list(&t, "floats", 6, 4, list, 3);
    put_key(&t, "third", 6);
    toy_numbers(&t, &third, 4, 1);
    put_key(&t, "tenth", 12);
    toy_numbers(&t, &tenth, 8, 1);
    put_key(&t, "five", 4);
    toy_number(&t, 5, 4);
    while (t.used % 32 != 0) toy_number(&t, 0, 1);
    scratch_write(scratch_path(&place, "m.gguf"), t.bytes, t.used);
    free(t.bytes);
    embla_checkpoint *cp = opened("m.gguf");
    for (size_t i = 0; i < COUNT_OF(types); i++) {
        assert_ok(embla_checkpoint_integers(cp, types[i].key, 2, got, &count));
        assert_int_equal(count, 3);
        assert_int_equal(got[0], 1);
        assert_int_equal(got[1], types[i].second);
        assert_int_equal(got[2], 7);
    }
    assert_ok(embla_checkpoint_integers(cp, "large", 1, got, &count));
    assert_int_equal(got[0], 5);
    got[0] = 7;
    assert_status(embla_checkpoint_integers(cp, "large", 2, got, &count), EMBLA_ERR_FORMAT);
    assert_int_equal(got[0], 7);
    assert_error_has("element 1 of 'large' is 18446744073709551615");
    assert_status(embla_checkpoint_integers(cp, "floats", 2, got, &count), EMBLA_ERR_NOT_FOUND);
    assert_status(embla_checkpoint_integers(cp, "five", 2, got, &count), EMBLA_ERR_NOT_FOUND);
    assert_ok(embla_checkpoint_real(cp, "third", &real));
    assert_true(real == (double)third);
    assert_ok(embla_checkpoint_real(cp, "tenth", &real));
    assert_true(real == 0.1);
    assert_ok(embla_checkpoint_real(cp, "five", &real));
    assert_true(real == 5);
    assert_status(embla_checkpoint_real(cp, "i8", &real), EMBLA_ERR_FORMAT);
    embla_checkpoint_free(cp);
}

/* ---- folders and files ---- */

static void a_folder_is_its_weights(void **state)
{
    toy_tensor tensors[] = {{"wte.weight", 6, 4, 1}};
    embla_checkpoint *cp = NULL;
    (void)state;
    assert_status(embla_checkpoint_open(place.folder, NULL, &cp), EMBLA_ERR_NOT_FOUND);
    assert_error_has("has no .safetensors");
    toy_gguf(scratch_path(&place, "x.gguf"), "llama", 0, tensors, 1);
    cp = opened("");
    assert_string_equal(embla_checkpoint_format(cp), "gguf");
    embla_checkpoint_free(cp);
    toy_safetensors(scratch_path(&place, "weights.safetensors"), tensors, 1);
    cp = opened("");
    assert_string_equal(embla_checkpoint_format(cp), "safetensors");
    embla_checkpoint_free(cp);
    toy_safetensors(scratch_path(&place, "other.safetensors"), tensors, 1);
    assert_status(embla_checkpoint_open(place.folder, NULL, &cp), EMBLA_ERR_NOT_FOUND);
    assert_error_has("2 model files");
    toy_safetensors(scratch_path(&place, "model.safetensors"), tensors, 1);
    cp = opened("");
    int64_t bytes = 0;
    assert_non_null(strstr(file_at(cp, 0, &bytes), "model.safetensors"));
    assert_null(file_at(cp, 1, NULL));
    embla_checkpoint_free(cp);
}

static void what_is_no_checkpoint_is_said_so(void **state)
{
    embla_checkpoint *cp = NULL;
    (void)state;
    assert_status(embla_checkpoint_open(scratch_path(&place, "none"), NULL, &cp),
                  EMBLA_ERR_NOT_FOUND);
    toy_text(scratch_path(&place, "readme"), "Nothing to see here, only words.\n");
    assert_status(embla_checkpoint_open(scratch_path(&place, "readme"), NULL, &cp),
                  EMBLA_ERR_FORMAT);
    assert_error_has("(C15)");
    toy_text(scratch_path(&place, "empty"), "");
    assert_status(embla_checkpoint_open(scratch_path(&place, "empty"), NULL, &cp),
                  EMBLA_ERR_FORMAT);
    assert_error_has("(C1)");
    assert_status(embla_checkpoint_open(NULL, NULL, &cp), EMBLA_ERR_ARGUMENT);
    assert_status(embla_checkpoint_open("/dev/null", NULL, &cp), EMBLA_ERR_UNSUPPORTED);
}

static void rule_s13_a_shard_that_is_a_link_is_refused(void **state)
{
    toy_tensor tensors[] = {{"wte.weight", 6, 4, 1}};
    char shard[SCRATCH_PATH], real[SCRATCH_PATH];
    embla_checkpoint *cp = NULL;
    (void)state;
    toy_sharded(&place, tensors, 1);
    strcpy(shard, scratch_path(&place, "model-00001-of-00001.safetensors"));
    strcpy(real, scratch_path(&place, "elsewhere"));
    assert_int_equal(rename(shard, real), 0);
    assert_int_equal(symlink("elsewhere", shard), 0);
    assert_status(
        embla_checkpoint_open(scratch_path(&place, "model.safetensors.index.json"), NULL, &cp),
        EMBLA_ERR_IO);
    assert_error_has("symbolic link");
}

static void a_shard_that_a_download_cache_links_to_its_blob_is_read(void **state)
{
    static const char *const folders[] = {"snapshots", "snapshots/main", "blobs"};
    static const char hex[] = "0123456789abcdef0123456789abcdef01234567";
    toy_tensor tensors[] = {{"wte.weight", 6, 4, 1}};
    char blob[128], target[128], shard[SCRATCH_PATH];
    embla_checkpoint *cp = NULL;
    (void)state;
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(mkdir(scratch_path(&place, folders[i]), 0700), 0);
    (void)snprintf(blob, sizeof blob, "blobs/%s", hex);
    (void)snprintf(target, sizeof target, "../../blobs/%s", hex);
    toy_safetensors(scratch_path(&place, blob), tensors, 1);
    strcpy(shard, scratch_path(&place, "snapshots/main/a.safetensors"));
    assert_int_equal(symlink(target, shard), 0);
    toy_text(scratch_path(&place, "snapshots/main/model.safetensors.index.json"),
             "{\"weight_map\": {\"wte.weight\": \"a.safetensors\"}}");
    embla_status status = embla_checkpoint_open(scratch_path(&place, "snapshots/main"), NULL, &cp);
    /* a blob that is itself a link leads anywhere: refused */
    embla_checkpoint *other = NULL;
    strcpy(shard, scratch_path(&place, "elsewhere"));
    assert_int_equal(rename(scratch_path(&place, blob), shard), 0);
    assert_int_equal(symlink("../elsewhere", scratch_path(&place, blob)), 0);
    embla_status again =
        embla_checkpoint_open(scratch_path(&place, "snapshots/main"), NULL, &other);
    scratch_remove(&place, "elsewhere");
    scratch_remove(&place, "snapshots/main/a.safetensors");
    scratch_remove(&place, "snapshots/main/model.safetensors.index.json");
    scratch_remove(&place, blob);
    for (size_t i = 2; i < 3; i--) scratch_remove(&place, folders[i]);
    assert_ok(status);
    embla_checkpoint_free(cp);
    assert_status(again, EMBLA_ERR_IO);
}

static void a_config_that_cannot_be_read_is_a_note(void **state)
{
    toy_tensor tensors[] = {{"wte.weight", 6, 4, 1}};
    (void)state;
    toy_safetensors(scratch_path(&place, "model.safetensors"), tensors, 1);
    toy_text(scratch_path(&place, "config.json"),
             "{\"tie_word_embeddings\": true, \"tie_word_embeddings\": false}");
    embla_checkpoint *cp = opened("");
    assert_non_null(strstr(note_at(cp, 0), "config.json is not used"));
    assert_null(note_at(cp, 1));
    embla_checkpoint_free(cp);
}

/* Root can read every file: there the test goes on as another user for a moment. */
static void a_config_that_may_not_be_read_is_a_note(void **state)
{
    enum { NOBODY = 65534 };
    toy_tensor tensors[] = {{"wte.weight", 6, 4, 1}};
    bool root = geteuid() == 0;
    (void)state;
    toy_safetensors(scratch_path(&place, "model.safetensors"), tensors, 1);
    assert_int_equal(chmod(place.path, 0644) | chmod(place.folder, 0755), 0);
    toy_text(scratch_path(&place, "config.json"), "{\"model_type\": \"gpt2\"}");
    assert_int_equal(chmod(place.path, root ? 0600 : 0), 0);
    if (root) assert_int_equal(seteuid(NOBODY), 0);
    embla_checkpoint *cp = NULL;
    embla_status status = embla_checkpoint_open(place.folder, NULL, &cp);
    if (root) assert_int_equal(seteuid(0), 0);
    assert_ok(status);
    assert_non_null(strstr(note_at(cp, 0), "config.json is not used"));
    assert_non_null(strstr(note_at(cp, 0), "Permission denied"));
    assert_null(note_at(cp, 1));
    embla_checkpoint_free(cp);
    scratch_remove(&place, "config.json");
    assert_int_equal(symlink("config.json", scratch_path(&place, "config.json")), 0);
    cp = opened("");
    assert_non_null(strstr(note_at(cp, 0), "Too many levels of symbolic links"));
    embla_checkpoint_free(cp);
}

static void numbers_and_texts_of_the_config(void **state)
{
    toy_tensor tensors[] = {{"wte.weight", 6, 4, 1}};
    int64_t number = 0;
    (void)state;
    toy_safetensors(scratch_path(&place, "model.safetensors"), tensors, 1);
    toy_text(scratch_path(&place, "config.json"),
             "{\"model_type\": \"gpt2\", \"text_config\": {\"vocab_size\": 6}}");
    embla_checkpoint *cp = opened("");
    assert_ok(embla_checkpoint_integer(cp, "text_config.vocab_size", &number));
    assert_int_equal(number, 6);
    assert_status(embla_checkpoint_integer(cp, "vocab_size", &number), EMBLA_ERR_NOT_FOUND);
    assert_string_equal(embla_checkpoint_text(cp, "model_type"), "gpt2");
    assert_null(embla_checkpoint_text(cp, "vocab_size"));
    embla_checkpoint_free(cp);
}

/* ---- rows ---- */

static void a_table_outlives_its_checkpoint(void **state)
{
    toy_tensor tensors[] = {{"wte.weight", 6, 4, 1}, {"lm_head.weight", 6, 4, 2}};
    embla_table *table = NULL;
    const int32_t tokens[] = {5, 0, 5};
    float rows[12];
    size_t live = embla_mem_live(), open = embla_io_live();
    (void)state;
    toy_sharded(&place, tensors, 2);
    embla_checkpoint *cp = opened("");
    assert_ok(embla_table_open(cp, NULL, NULL, &table));
    assert_int_equal(
        embla_table_placement(table), /* files have the bytes of little-endian machines */
        embla_order_is_big() ? EMBLA_PLACEMENT_RAM : EMBLA_PLACEMENT_MAPPED);
    embla_checkpoint_free(cp);
    assert_ok(embla_lookup(table, tokens, 3, NULL, rows));
    for (size_t i = 0; i < 12; i++)
        assert_true(rows[i] == toy_value(1, (uint64_t)tokens[i / 4] * 4 + i % 4));
    assert_true(embla_order_is_big() || !embla_table_data(table));
    embla_table_free(table);
    assert_int_equal(embla_mem_live(), live);
    assert_int_equal(embla_io_live(), open);
}

static void a_file_that_everyone_may_write_to_is_copied(void **state)
{
    toy_tensor tensors[] = {{"wte.weight", 6, 4, 1}};
    const char *path = scratch_path(&place, "model.safetensors");
    embla_table *table = NULL;
    const int32_t token = 5;
    float row[4];
    (void)state;
    toy_safetensors(path, tensors, 1);
    assert_int_equal(chmod(path, 0666), 0);
    embla_checkpoint *cp = opened("");
    assert_ok(embla_table_open(cp, NULL, NULL, &table));
    assert_int_equal(truncate(scratch_path(&place, "model.safetensors"), 10), 0);
    assert_ok(embla_lookup(table, &token, 1, NULL, row)); /* its rows are in memory */
    assert_true(row[3] == toy_value(1, 23));
    embla_table_free(table);
    embla_checkpoint_free(cp);
}

static void a_tensor_that_is_no_table_says_why(void **state)
{
    toy_tensor tensors[] = {{"wte.weight", 6, 4, 1}, {"norm", 4, 0, 2}, {"none", 0, 4, 3}};
    embla_table *table = NULL;
    float row[4];
    embla_table_options writable = {.writable = true};
    (void)state;
    toy_safetensors(scratch_path(&place, "model.safetensors"), tensors, 3);
    embla_checkpoint *cp = opened("");
    assert_ok(embla_table_open(cp, "norm", NULL, &table)); /* rank 1 is one row */
    assert_int_equal(embla_table_rows(table), 1);
    embla_table_free(table);
    assert_status(embla_table_open(cp, "none", NULL, &table), EMBLA_ERR_SHAPE);
    assert_error_has("(C10)");
    assert_status(embla_table_open(cp, "wte.weight", &writable, &table), EMBLA_ERR_ARGUMENT);
    assert_status(embla_checkpoint_read(cp, "wte.weight", 90, 7, row), EMBLA_ERR_RANGE);
    assert_status(embla_checkpoint_read(cp, "wte.weight", -1, 1, row), EMBLA_ERR_RANGE);
    assert_ok(embla_checkpoint_read(cp, "wte.weight", 80, 16, row));
    embla_order_turn(row, sizeof *row, 4);
    assert_true(row[3] == toy_value(1, 23));
    embla_checkpoint_free(cp);
}

/* ---- words ---- */

static void padded_rows_are_there_and_have_no_word(void **state)
{
    toy_tensor tensors[] = {{"token_embd.weight", 8, 4, 1}};
    embla_vocab *vocab = NULL;
    embla_table *table = NULL;
    int32_t token;
    (void)state;
    toy_gguf(scratch_path(&place, "x.gguf"), "llama", 5, tensors, 1);
    embla_checkpoint *cp = opened("x.gguf");
    assert_ok(embla_vocab_open(cp, &vocab));
    assert_int_equal(embla_vocab_end(vocab), 5);
    assert_ok(embla_vocab_find(vocab, "w4", 2, &token));
    assert_int_equal(token, 4);
    assert_null(embla_vocab_word(vocab, 5, NULL));
    embla_vocab_free(vocab);
    assert_ok(embla_table_open(cp, NULL, NULL, &table));
    assert_int_equal(embla_table_rows(table), 8);
    embla_table_free(table);
    embla_checkpoint_free(cp);
}

static void words_lie_beside_the_file(void **state)
{
    toy_tensor tensors[] = {{"wte.weight", 2, 4, 1}};
    embla_vocab *vocab = NULL;
    size_t length;
    (void)state;
    toy_safetensors(scratch_path(&place, "a.safetensors"), tensors, 1);
    embla_checkpoint *cp = opened("a.safetensors");
    assert_status(embla_vocab_open(cp, &vocab), EMBLA_ERR_NOT_FOUND);
    toy_text(scratch_path(&place, "vocab.txt"), "the\ncat\n");
    assert_ok(embla_vocab_open(cp, &vocab));
    assert_string_equal(embla_vocab_word(vocab, 1, &length), "cat");
    assert_string_equal(embla_vocab_source(vocab), "vocab.txt");
    embla_vocab_free(vocab);
    toy_text(scratch_path(&place, "a.vocab.txt"), "a\ndog\n");
    assert_ok(embla_vocab_open(cp, &vocab));
    assert_string_equal(embla_vocab_word(vocab, 1, &length), "dog");
    embla_vocab_free(vocab);
    embla_checkpoint_free(cp);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(names_of_every_architecture_have_their_roles),
        TEST(phi_1_numbers_its_head_like_a_layer),
        TEST(of_t5s_three_tables_the_shared_one_counts),
        TEST(several_candidates_are_an_error_that_lists_them),
        TEST(a_tensor_that_is_not_there_is_named_with_one_nearly_it),
        TEST(the_tying_matrix),
        TEST(the_flag_is_looked_for_in_its_places),
        TEST(without_a_flag_the_architecture_decides_and_else_nobody),
        TEST(an_encoder_has_no_head),
        TEST(a_sample_says_that_it_is_one),
        TEST(the_last_row_alone_may_differ),
        TEST(llama2c_says_in_its_header_what_config_does_not),
        TEST(lists_and_reals_of_config),
        TEST(lists_and_reals_of_gguf),
        TEST(a_folder_is_its_weights),
        TEST(what_is_no_checkpoint_is_said_so),
        TEST(rule_s13_a_shard_that_is_a_link_is_refused),
        TEST(a_shard_that_a_download_cache_links_to_its_blob_is_read),
        TEST(a_config_that_cannot_be_read_is_a_note),
        TEST(a_config_that_may_not_be_read_is_a_note),
        TEST(numbers_and_texts_of_the_config),
        TEST(a_table_outlives_its_checkpoint),
        TEST(a_file_that_everyone_may_write_to_is_copied),
        TEST(a_tensor_that_is_no_table_says_why),
        TEST(padded_rows_are_there_and_have_no_word),
        TEST(words_lie_beside_the_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
