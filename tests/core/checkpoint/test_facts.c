/* SPDX-License-Identifier: Apache-2.0 */
/* Facts of a checkpoint, and tables whose tokens have their rows from a mapping. */
#include "models.h"
#include "opened.h"

#include <math.h>

#include "checkpoint/checkpoint.h"

/* ---- small checkpoints ---- */

typedef struct {
    const char *name, *type, *shape; /* shape as JSON: "[4,3]" */
    const void *data;
    size_t bytes;
} raw_tensor;

static void write_tensors(const char *path, const raw_tensor *tensors, size_t count)
{
    toy_bytes header = {0}, file = {0};
    char text[256];
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        const raw_tensor *t = &tensors[i];
        int n = snprintf(text, sizeof text,
                         "%s\"%s\":{\"dtype\":\"%s\",\"shape\":%s,\"data_offsets\":[%zu,%zu]}",
                         i > 0 ? "," : "{", t->name, t->type, t->shape, at, at + t->bytes);
        toy_put(&header, text, (size_t)n);
        at += t->bytes;
    }
    toy_put(&header, "}", 1);
    while (header.used % 8 != 0) toy_put(&header, " ", 1);
    toy_number(&file, header.used, 8);
    toy_put(&file, header.bytes, header.used);
    for (size_t i = 0; i < count; i++)
        toy_typed(&file, tensors[i].type, tensors[i].data, tensors[i].bytes);
    scratch_write(path, file.bytes, file.used);
    free(header.bytes);
    free(file.bytes);
}

enum { ROWS = 4, DIM = 2, TOKENS = 6 };
static const float table_values[ROWS * DIM] = {0, 1, 10, 11, 20, 21, 30, 31};
static const int32_t mapping_i32[TOKENS] = {3, 0, 2, 2, 1, 3};
static const int64_t mapping_i64[TOKENS] = {3, 0, 2, 2, 1, 3};
static const double token_weights[TOKENS] = {1, 2, 0.5, 4, 8, 16};

#define TABLE                                                                                      \
    {                                                                                              \
        "embeddings", "F32", "[4,2]", table_values, sizeof table_values                            \
    }
#define WEIGHTS                                                                                    \
    {                                                                                              \
        "weights", "F64", "[6]", token_weights, sizeof token_weights                               \
    }

/* Model2Vec with this mapping. */
static embla_checkpoint *model2vec(const char *type, const char *shape, const void *data,
                                   size_t bytes)
{
    const raw_tensor tensors[] = {TABLE, {"mapping", type, shape, data, bytes}, WEIGHTS};
    write_tensors(scratch_path(&place, "model.safetensors"), tensors, COUNT_OF(tensors));
    return opened("");
}

static embla_checkpoint *good_model2vec(void)
{
    return model2vec("I32", "[6]", mapping_i32, sizeof mapping_i32);
}

/* One tensor and a config.json. */
static embla_facts facts_of_config(const char *tensor, const char *config)
{
    toy_tensor tensors[] = {{tensor, 6, 4, 1}};
    embla_facts facts;
    toy_safetensors(scratch_path(&place, "model.safetensors"), tensors, 1);
    toy_text(scratch_path(&place, "config.json"), config);
    embla_checkpoint *cp = opened("");
    assert_ok(embla_checkpoint_facts(cp, &facts));
    embla_checkpoint_free(cp); /* text that is compared after this is the library's own */
    return facts;
}

/* ---- lookup by token ---- */

static void assert_rows_of_tokens(const embla_table *table)
{
    static const int32_t tokens[] = {5, 0, 1, 3, 4, 4, 2};
    int64_t rows[COUNT_OF(tokens)];
    float x[COUNT_OF(tokens)][DIM], y[COUNT_OF(tokens)][DIM];
    assert_int_equal(embla_table_tokens(table), TOKENS);
    assert_ok(embla_table_find_rows(table, tokens, COUNT_OF(tokens), rows));
    assert_ok(embla_lookup(table, tokens, COUNT_OF(tokens), NULL, x));
    assert_ok(embla_lookup_rows(table, rows, COUNT_OF(tokens), NULL, y));
    for (size_t i = 0; i < COUNT_OF(tokens); i++) {
        assert_int_equal(rows[i], mapping_i64[tokens[i]]);
        for (size_t k = 0; k < DIM; k++) {
            assert_true(x[i][k] == table_values[rows[i] * DIM + (int64_t)k]);
            assert_true(x[i][k] == y[i][k]);
        }
    }
}

static void lookup_goes_through_the_mapping(void **state)
{
    static const struct {
        const char *type;
        const void *data;
        size_t bytes;
    } cases[] = {{"I32", mapping_i32, sizeof mapping_i32},
                 {"I64", mapping_i64, sizeof mapping_i64}};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        embla_checkpoint *cp = model2vec(cases[i].type, "[6]", cases[i].data, cases[i].bytes);
        embla_table *table = NULL, *named = NULL;
        assert_ok(embla_table_open(cp, NULL, NULL, &table));
        assert_ok(embla_table_open(cp, "embeddings", NULL, &named));
        embla_checkpoint_free(cp); /* the tables have copies of the mapping */
        assert_rows_of_tokens(table);
        assert_rows_of_tokens(named);
        embla_table_free(table);
        embla_table_free(named);
    }
}

static void lookup_of_many_tokens_goes_through_the_mapping(void **state)
{
    enum { COUNT = 1000 };
    static int32_t tokens[COUNT];
    static float x[COUNT][DIM];
    embla_checkpoint *cp = good_model2vec();
    embla_table *table = NULL;
    (void)state;
    assert_ok(embla_table_open(cp, NULL, NULL, &table));
    for (int threads = 1; threads <= 2; threads++) {
        const embla_lookup_options options = {.threads = threads};
        for (size_t i = 0; i < COUNT; i++) tokens[i] = (int32_t)(i * 7 % TOKENS);
        assert_ok(embla_lookup(table, tokens, COUNT, &options, x));
        for (size_t i = 0; i < COUNT; i++)
            assert_true(x[i][1] == table_values[mapping_i32[tokens[i]] * DIM + 1]);
    }
    embla_table_free(table);
    embla_checkpoint_free(cp);
}

static void a_token_outside_the_mapping_is_refused(void **state)
{
    static const int32_t tokens[] = {2, TOKENS}, below[] = {-1};
    float x[2][DIM] = {{7, 7}, {7, 7}};
    int64_t rows[2] = {-7, -7};
    embla_checkpoint *cp = good_model2vec();
    embla_table *table = NULL;
    (void)state;
    assert_ok(embla_table_open(cp, NULL, NULL, &table));
    assert_status(embla_lookup(table, tokens, 2, NULL, x), EMBLA_ERR_RANGE);
    assert_error_has("token 6 at ");
    assert_error_has("index 1 is out of range: the mapping has 6 tokens");
    assert_status(embla_table_find_rows(table, tokens, 2, rows), EMBLA_ERR_RANGE);
    assert_error_has("the mapping has 6 tokens");
    assert_status(embla_table_find_rows(table, below, 1, NULL), EMBLA_ERR_RANGE);
    assert_error_has("token -1 at ");
    for (size_t i = 0; i < 2; i++) assert_true(x[i][0] == 7 && rows[i] == -7);
    /* rows are those of the table, whatever tokens there are */
    const int64_t fifth = 4;
    assert_status(embla_lookup_rows(table, &fifth, 1, NULL, x), EMBLA_ERR_RANGE);
    assert_error_has("the table has 4 rows");
    embla_table_free(table);
    embla_checkpoint_free(cp);
}

static void embed_goes_through_the_mapping(void **state)
{
    static const int32_t tokens[] = {0, 4};
    const embla_embed_options options = {.scale = 2};
    float x[2][DIM];
    embla_checkpoint *cp = good_model2vec();
    embla_table *table = NULL;
    (void)state;
    assert_ok(embla_table_open(cp, NULL, NULL, &table));
    assert_ok(embla_embed(table, tokens, 1, 2, &options, x));
    assert_true(x[0][0] == 60 && x[0][1] == 62 && x[1][0] == 20 && x[1][1] == 22);
    embla_table_free(table);
    embla_checkpoint_free(cp);
}

static void by_row_ignores_the_mapping(void **state)
{
    static const int32_t token = 1;
    static const int64_t outside[TOKENS] = {3, 0, 2, 2, 4, 3};
    const embla_table_options options = {.by_row = true};
    float x[DIM];
    embla_checkpoint *cp = model2vec("I64", "[6]", outside, sizeof outside);
    embla_table *table = NULL;
    (void)state;
    assert_ok(embla_table_open(cp, NULL, &options, &table));
    assert_int_equal(embla_table_tokens(table), ROWS);
    assert_ok(embla_lookup(table, &token, 1, NULL, x));
    assert_true(x[0] == 10);
    embla_table_free(table);
    embla_checkpoint_free(cp);
}

/* Another tensor of the same file has no mapping. */
static void the_mapping_belongs_to_one_tensor(void **state)
{
    static const int32_t token = 1;
    static const float other[6] = {5, 6, 7, 8, 9, 10};
    const raw_tensor tensors[] = {
        TABLE,
        {"mapping", "I32", "[6]", mapping_i32, sizeof mapping_i32},
        {"other", "F32", "[3,2]", other, sizeof other},
    };
    float x[DIM];
    embla_table *table = NULL;
    embla_facts facts;
    (void)state;
    write_tensors(scratch_path(&place, "a.safetensors"), tensors, COUNT_OF(tensors));
    embla_checkpoint *cp = opened("a.safetensors::other");
    assert_ok(embla_checkpoint_facts(cp, &facts));
    assert_null(facts.mapping);
    assert_int_equal(facts.tokens, 3);
    assert_int_equal(facts.role, EMBLA_ROLE_NONE);
    assert_ok(embla_table_open(cp, NULL, NULL, &table));
    assert_ok(embla_lookup(table, &token, 1, NULL, x));
    assert_true(x[0] == 7);
    embla_table_free(table);
    embla_checkpoint_free(cp);
}

/* ---- mappings that are refused ---- */

static void refuse_mapping(const char *type, const char *shape, const void *data, size_t bytes,
                           const char *sentence)
{
    embla_checkpoint *cp = model2vec(type, shape, data, bytes);
    embla_table *table = NULL;
    embla_facts facts;
    size_t live = embla_mem_live(), open = embla_io_live();
    assert_status(embla_table_open(cp, NULL, NULL, &table), EMBLA_ERR_FORMAT);
    assert_null(table);
    assert_error_has(sentence);
    assert_int_equal(embla_mem_live(), live);
    assert_int_equal(embla_io_live(), open);
    assert_ok(embla_checkpoint_facts(cp, &facts)); /* `info` and `doctor` can still say it */
    assert_string_equal(facts.mapping, "mapping");
    embla_checkpoint_free(cp);
}

static void rule_m1_a_mapping_is_a_list_of_integers(void **state)
{
    static const float numbers[TOKENS] = {0};
    static const uint32_t unsigned_numbers[TOKENS] = {0};
    (void)state;
    refuse_mapping("F32", "[6]", numbers, sizeof numbers,
                   "tensor 'mapping' is F32; the rows of tokens are I32 or I64 (M1)");
    refuse_mapping("U32", "[6]", unsigned_numbers, sizeof unsigned_numbers, "is U32");
    refuse_mapping("I16", "[12]", numbers, sizeof numbers, "is I16");
    refuse_mapping("I32", "[3,2]", mapping_i32, sizeof mapping_i32,
                   "tensor 'mapping' has 2 dimensions; the rows of tokens have 1 (M1)");
    refuse_mapping("I32", "[]", mapping_i32, 4, "has 0 dimensions");
    refuse_mapping("I32", "[0]", mapping_i32, 0, "has the rows of 0 tokens");
}

static void rule_m2_every_entry_is_a_row(void **state)
{
    int32_t narrow[TOKENS];
    int64_t wide[TOKENS];
    static const int64_t bad[] = {ROWS, -1, INT32_MAX, INT32_MIN};
    static const int64_t worse[] = {INT64_MAX, INT64_MIN, INT64_C(1) << 32};
    (void)state;
    for (size_t at = 0; at < TOKENS; at++) {
        for (size_t i = 0; i < COUNT_OF(bad) + COUNT_OF(worse); i++) {
            int64_t row = i < COUNT_OF(bad) ? bad[i] : worse[i - COUNT_OF(bad)];
            char sentence[128];
            (void)snprintf(sentence, sizeof sentence,
                           "gives token %zu row %" PRId64 ": the table has 4 rows (M2)", at, row);
            memcpy(wide, mapping_i64, sizeof wide);
            wide[at] = row;
            refuse_mapping("I64", "[6]", wide, sizeof wide, sentence);
            if (i >= COUNT_OF(bad)) continue;
            memcpy(narrow, mapping_i32, sizeof narrow);
            narrow[at] = (int32_t)row;
            refuse_mapping("I32", "[6]", narrow, sizeof narrow, sentence);
        }
    }
}

/* The bad entry is in a later block of the file than the first. */
static void rule_m2_holds_to_the_end_of_a_long_mapping(void **state)
{
    enum { MANY = 10000 };
    static int32_t rows[MANY];
    embla_table *table = NULL;
    (void)state;
    for (size_t i = 0; i < MANY; i++) rows[i] = (int32_t)(i % ROWS);
    embla_checkpoint *cp = model2vec("I32", "[10000]", rows, sizeof rows);
    assert_ok(embla_table_open(cp, NULL, NULL, &table));
    const int32_t last = MANY - 1;
    int64_t row;
    assert_ok(embla_table_find_rows(table, &last, 1, &row));
    assert_int_equal(row, (MANY - 1) % ROWS);
    embla_table_free(table);
    embla_checkpoint_free(cp);
    rows[MANY - 1] = ROWS;
    refuse_mapping("I32", "[10000]", rows, sizeof rows, "gives token 9999 row 4");
}

/* ---- tables that are made by hand ---- */

static void a_table_can_be_given_a_mapping(void **state)
{
    int64_t list[TOKENS];
    embla_table_options options = {.token_rows = list, .token_count = TOKENS};
    embla_table *view = NULL, *owned = NULL;
    (void)state;
    memcpy(list, mapping_i64, sizeof list);
    assert_ok(embla_table_view(&(embla_table_layout){.dtype = EMBLA_F32, .rows = ROWS, .dim = DIM},
                               table_values, sizeof table_values, &options, &view));
    assert_ok(embla_table_new(EMBLA_F32, ROWS, DIM, &options, &owned));
    assert_ok(embla_table_write(owned, 0, ROWS, table_values));
    memset(list, 0xff, sizeof list); /* it was copied */
    assert_rows_of_tokens(view);
    assert_rows_of_tokens(owned);
    embla_table_free(view);
    embla_table_free(owned);
}

static void a_mapping_that_is_wrong_makes_no_table(void **state)
{
    static const int64_t outside[] = {0, 1, 4}, below[] = {-1};
    embla_table *table = NULL;
    embla_table_options options = {.token_rows = outside, .token_count = 3};
    size_t live = embla_mem_live();
    (void)state;
    assert_status(embla_table_new(EMBLA_F32, ROWS, DIM, &options, &table), EMBLA_ERR_RANGE);
    assert_error_has("token_rows maps token 2 to row 4, but the table has 4");
    options.token_rows = below;
    options.token_count = 1;
    assert_status(
        embla_table_view(&(embla_table_layout){.dtype = EMBLA_F32, .rows = ROWS, .dim = DIM},
                         table_values, sizeof table_values, &options, &table),
        EMBLA_ERR_RANGE);
    options.token_count = 0;
    assert_status(embla_table_new(EMBLA_F32, ROWS, DIM, &options, &table), EMBLA_ERR_ARGUMENT);
    assert_error_has("token_count is 0");
    options = (embla_table_options){.token_count = 3};
    assert_status(embla_table_new(EMBLA_F32, ROWS, DIM, &options, &table), EMBLA_ERR_ARGUMENT);
    assert_error_has("token_rows is NULL");
    options = (embla_table_options){.token_rows = outside, .token_count = 2};
    embla_checkpoint *cp = good_model2vec();
    size_t with_checkpoint = embla_mem_live();
    assert_status(embla_table_open(cp, NULL, &options, &table), EMBLA_ERR_ARGUMENT);
    assert_int_equal(embla_mem_live(), with_checkpoint);
    embla_checkpoint_free(cp);
    assert_null(table);
    assert_int_equal(embla_mem_live(), live);
}

static void rows_and_tokens_can_be_checked(void **state)
{
    static const int64_t rows[] = {0, 3, 4};
    static const int32_t tokens[] = {0, 3, 4};
    embla_table *table = NULL;
    int64_t out[3] = {-7, -7, -7};
    (void)state;
    assert_ok(embla_table_view(&(embla_table_layout){.dtype = EMBLA_F32, .rows = ROWS, .dim = DIM},
                               table_values, sizeof table_values, NULL, &table));
    assert_int_equal(embla_table_tokens(table), ROWS);
    assert_ok(embla_table_check_rows(table, rows, 2));
    assert_status(embla_table_check_rows(table, rows, 3), EMBLA_ERR_RANGE);
    assert_error_has("row 4 at ");
    assert_error_has("index 2 is out of range: the table has 4 rows");
    assert_status(embla_table_find_rows(table, tokens, 3, out), EMBLA_ERR_RANGE);
    assert_error_has("token 4 at ");
    assert_int_equal(out[0], -7);
    assert_ok(embla_table_find_rows(table, tokens, 2, out));
    assert_true(out[0] == 0 && out[1] == 3);
    assert_ok(embla_table_find_rows(table, NULL, 0, NULL));
    assert_ok(embla_table_check_rows(table, NULL, 0));
    assert_status(embla_table_find_rows(table, NULL, 1, NULL), EMBLA_ERR_ARGUMENT);
    assert_status(embla_table_check_rows(table, NULL, 1), EMBLA_ERR_ARGUMENT);
    assert_status(embla_table_find_rows(NULL, tokens, 1, NULL), EMBLA_ERR_ARGUMENT);
    assert_status(embla_table_check_rows(NULL, rows, 1), EMBLA_ERR_ARGUMENT);
    embla_table_free(table);
}

/* ---- facts ---- */

static void facts_of_model2vec(void **state)
{
    embla_facts facts;
    embla_table *weights = NULL;
    const int64_t first = 0;
    float numbers[TOKENS];
    embla_checkpoint *cp = good_model2vec();
    (void)state;
    assert_ok(embla_checkpoint_facts(cp, &facts));
    assert_string_equal(facts.mapping, "mapping");
    assert_string_equal(facts.weights, "weights");
    assert_int_equal(facts.tokens, TOKENS);
    assert_string_equal(facts.tokens_why, "the length of the tensor 'mapping'");
    assert_int_equal(facts.role, EMBLA_ROLE_TOKENS);
    assert_null(facts.architecture);
    assert_true(facts.scale == 1 && !facts.scale_why);
    /* what the header says about weights */
    assert_ok(embla_table_open(cp, facts.weights, NULL, &weights));
    assert_ok(embla_lookup_rows(weights, &first, 1, NULL, numbers));
    for (size_t i = 0; i < TOKENS; i++) assert_true(numbers[i] == (float)token_weights[i]);
    embla_table_free(weights);
    embla_checkpoint_free(cp);
}

static void facts_of_a_plain_table(void **state)
{
    embla_facts facts = facts_of_config("wte.weight", "{}");
    (void)state;
    assert_null(facts.mapping);
    assert_null(facts.weights);
    assert_int_equal(facts.tokens, 6);
    assert_string_equal(facts.tokens_why, "the rows of the table");
    assert_int_equal(facts.first_position, 0);
    assert_null(facts.first_position_why);
    assert_true(facts.scale == 1);
    assert_null(facts.scale_why);
    assert_null(facts.architecture);
}

static void facts_of_a_checkpoint_without_a_table(void **state)
{
    embla_facts facts =
        facts_of_config("model.layers.0.up.weight.of.nothing", "{\"model_type\":\"gemma\"}");
    toy_tensor tensors[] = {{"a", 6, 4, 1}, {"b", 6, 4, 2}};
    (void)state;
    assert_int_equal(facts.tokens, 6); /* the only tensor is the table */
    toy_safetensors(scratch_path(&place, "model.safetensors"), tensors, 2);
    embla_checkpoint *cp = opened("");
    assert_ok(embla_checkpoint_facts(cp, &facts));
    assert_string_equal(facts.architecture, "gemma");
    assert_string_equal(facts.architecture_why, "model_type");
    assert_int_equal(facts.role, EMBLA_ROLE_NONE);
    assert_int_equal(facts.tokens, 0);
    assert_true(facts.scale == 1);
    assert_status(embla_checkpoint_facts(NULL, &facts), EMBLA_ERR_ARGUMENT);
    assert_status(embla_checkpoint_facts(cp, NULL), EMBLA_ERR_ARGUMENT);
    embla_checkpoint_free(cp);
}

static void positions_begin_where_the_architecture_says(void **state)
{
    static const struct {
        const char *config;
        int64_t first;
    } cases[] = {
        {"{\"model_type\":\"gpt2\"}", 0},
        {"{\"model_type\":\"opt\"}", 2},
        {"{\"model_type\":\"opt\",\"pad_token_id\":7}", 2},
        {"{\"model_type\":\"bart\"}", 2},
        {"{\"model_type\":\"mbart\"}", 2},
        {"{\"model_type\":\"mpnet\",\"pad_token_id\":5}", 2},
        {"{\"model_type\":\"roberta\"}", 2},
        {"{\"model_type\":\"roberta\",\"pad_token_id\":1}", 2},
        {"{\"model_type\":\"xlm-roberta\",\"pad_token_id\":0}", 1},
        {"{\"model_type\":\"camembert\",\"pad_token_id\":5}", 6},
        {"{\"model_type\":\"roberta\",\"pad_token_id\":-1}", 2},
        {"{\"model_type\":\"roberta\",\"pad_token_id\":1e300}", 2},
        {"{\"model_type\":\"roberta\",\"pad_token_id\":1.5}", 2},
        {"{\"model_type\":\"roberta\",\"pad_token_id\":\"x\"}", 2},
        {"{\"model_type\":\"blip-2\",\"text_config\":{\"model_type\":\"opt\"}}", 2},
        {"{\"text_config\":{\"model_type\":\"roberta\",\"pad_token_id\":3}}", 4},
        {"{\"model_type\":\"bert\",\"pad_token_id\":3}", 0},
        {"{\"model_type\":7}", 0},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        embla_facts facts = facts_of_config("wte.weight", cases[i].config);
        if (facts.first_position != cases[i].first)
            fail_msg("%s: position 0 is row %" PRId64, cases[i].config, facts.first_position);
        assert_int_equal(facts.first_position > 0, facts.first_position_why != NULL);
    }
}

static void rows_are_scaled_as_the_architecture_says(void **state)
{
    static const struct {
        const char *config;
        double scale; /* the table has dim 4 */
    } cases[] = {
        {"{\"model_type\":\"gemma\"}", 2},
        {"{\"model_type\":\"gemma2\"}", 2},
        {"{\"model_type\":\"gemma3\"}", 2},
        {"{\"model_type\":\"gemma3_text\"}", 2},
        {"{\"model_type\":\"gemma3n\"}", 2},
        {"{\"model_type\":\"paligemma\",\"text_config\":{\"model_type\":\"gemma\"}}", 2},
        {"{\"model_type\":\"llama\"}", 1},
        {"{\"model_type\":\"t5\"}", 1},
        {"{\"model_type\":\"bart\"}", 1},
        {"{\"model_type\":\"bart\",\"scale_embedding\":false}", 1},
        {"{\"model_type\":\"bart\",\"scale_embedding\":true}", 2},
        {"{\"model_type\":\"bart\",\"scale_embedding\":\"true\"}", 1},
        {"{\"model_type\":\"granite\"}", 1},
        {"{\"model_type\":\"granite\",\"embedding_multiplier\":12.5}", 12.5},
        {"{\"model_type\":\"granite\",\"embedding_multiplier\":12}", 12},
        {"{\"text_config\":{\"model_type\":\"granite\",\"embedding_multiplier\":3}}", 3},
        {"{\"model_type\":\"granite\",\"embedding_multiplier\":0}", 1},
        {"{\"model_type\":\"granite\",\"embedding_multiplier\":-2}", 1},
        {"{\"model_type\":\"granite\",\"embedding_multiplier\":\"12\"}", 1},
        {"{\"model_type\":\"minicpm\",\"scale_emb\":12}", 12},
        {"{\"model_type\":\"cohere\",\"logit_scale\":0.0625}", 1},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        embla_facts facts = facts_of_config("embed_tokens.weight", cases[i].config);
        if (facts.scale != cases[i].scale) fail_msg("%s: %g", cases[i].config, facts.scale);
        if (facts.scale != 1) assert_non_null(facts.scale_why);
    }
}

/* ---- GGUF ---- */

static void put_number(FILE *file, uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) assert_true(fputc((int)(value >> 8 * i & 255), file) != EOF);
}

static void put_text(FILE *file, const char *text)
{
    put_number(file, strlen(text), 8);
    assert_true(fputs(text, file) != EOF);
}

/* A GGUF with a token table of 2 x 4; scale_key NULL: without that key. */
static embla_facts facts_of_gguf(const char *architecture, const char *scale_key, float scale)
{
    enum { F32 = 6, STRING = 8 };
    FILE *file = fopen(scratch_path(&place, "m.gguf"), "wb");
    embla_facts facts;
    uint32_t bits;
    assert_non_null(file);
    memcpy(&bits, &scale, sizeof bits);
    assert_true(fputs("GGUF", file) != EOF);
    put_number(file, 3, 4);
    put_number(file, 1, 8);
    put_number(file, scale_key ? 2 : 1, 8);
    put_text(file, "general.architecture");
    put_number(file, STRING, 4);
    put_text(file, architecture);
    if (scale_key) {
        put_text(file, scale_key);
        put_number(file, F32, 4);
        put_number(file, bits, 4);
    }
    put_text(file, "token_embd.weight");
    put_number(file, 2, 4);
    put_number(file, 4, 8);
    put_number(file, 2, 8);
    put_number(file, 0, 4);
    put_number(file, 0, 8);
    while (ftell(file) % 32 != 0) put_number(file, 0, 1);
    put_number(file, 0, 8), put_number(file, 0, 8), put_number(file, 0, 8), put_number(file, 0, 8);
    assert_int_equal(fclose(file), 0);
    embla_checkpoint *cp = opened("m.gguf");
    assert_ok(embla_checkpoint_facts(cp, &facts));
    assert_int_equal(facts.tokens, 2);
    assert_string_equal(facts.architecture, architecture);
    facts.architecture = architecture;
    embla_checkpoint_free(cp);
    return facts;
}

static void rows_of_a_gguf_are_scaled_as_its_keys_say(void **state)
{
    static const struct {
        const char *architecture, *key;
        float value;
        double scale;
    } cases[] = {
        {"llama", NULL, 0, 1},
        {"granite", "granite.embedding_scale", 12, 12},
        {"granite", "llama.embedding_scale", 12, 1}, /* the key of another architecture */
        {"minicpm", "minicpm.embedding_scale", 1.5f, 1.5},
        {"granite", "granite.embedding_scale", 0, 1},
        {"granite", "granite.embedding_scale", NAN, 1},
        {"gemma3", NULL, 0, 2},
        {"gemma-embedding", NULL, 0, 2},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        embla_facts facts = facts_of_gguf(cases[i].architecture, cases[i].key, cases[i].value);
        if (facts.scale != cases[i].scale)
            fail_msg("%s, %s %g: %g", cases[i].architecture, cases[i].key ? cases[i].key : "no key",
                     (double)cases[i].value, facts.scale);
    }
}

/* What a model does to a row of its token table it does not do to other tables. */
static void a_tensor_that_was_chosen_has_its_own_facts(void **state)
{
    static const char config[] = "{\"model_type\":\"gemma3n\",\"text_config\":"
                                 "{\"hidden_size_per_layer_input\":9}}";
    toy_tensor tensors[] = {{"model.embed_tokens.weight", 6, 4, 1},
                            {"model.embed_tokens_per_layer.weight", 5, 18, 2},
                            {"lm_head.weight", 7, 4, 3}};
    static const struct {
        const char *name;
        embla_role role;
        int64_t tokens;
        double scale;
    } cases[] = {
        {"m.safetensors", EMBLA_ROLE_TOKENS, 6, 2},
        {"m.safetensors::model.embed_tokens.weight", EMBLA_ROLE_TOKENS, 6, 2},
        {"m.safetensors::model.embed_tokens_per_layer.weight", EMBLA_ROLE_PER_LAYER, 5, 3},
        {"m.safetensors::lm_head.weight", EMBLA_ROLE_HEAD, 7, 1},
    };
    (void)state;
    toy_safetensors(scratch_path(&place, "m.safetensors"), tensors, 3);
    toy_text(scratch_path(&place, "config.json"), config);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        embla_checkpoint *cp = opened(cases[i].name);
        embla_facts facts;
        assert_ok(embla_checkpoint_facts(cp, &facts));
        assert_int_equal(facts.role, cases[i].role);
        assert_int_equal(facts.named, i > 0);
        assert_int_equal(facts.tokens, cases[i].tokens);
        if (facts.scale != cases[i].scale) fail_msg("%s: %g", cases[i].name, facts.scale);
        embla_checkpoint_free(cp);
    }
}

/* ---- failures ---- */

/* Opens the model, takes its facts and its table, and looks a token up. */
static embla_status use_model(const char *path)
{
    static const int32_t token = 4;
    embla_checkpoint *cp = NULL;
    embla_table *table = NULL;
    embla_facts facts;
    float x[DIM];
    embla_status status = embla_checkpoint_open(path, NULL, &cp);
    if (status == EMBLA_OK) status = embla_checkpoint_facts(cp, &facts);
    if (status == EMBLA_OK) status = embla_table_open(cp, NULL, NULL, &table);
    if (status == EMBLA_OK) status = embla_lookup(table, &token, 1, NULL, x);
    if (status == EMBLA_OK) assert_true(x[0] == 10);
    embla_table_free(table);
    embla_checkpoint_free(cp);
    return status;
}

static void every_failure_is_survived(void **state)
{
    static const char config[] = "{\"model_type\":\"roberta\",\"pad_token_id\":1}";
    char path[SCRATCH_PATH];
    (void)state;
    embla_checkpoint_free(good_model2vec());
    toy_text(scratch_path(&place, "config.json"), config);
    (void)snprintf(path, sizeof path, "%s", place.folder);
    assert_ok(use_model(path));
    for (int kind = 0; kind < 4; kind++) {
        bool memory = kind < 2, forever = kind % 2 == 1;
        for (size_t n = 1, failed = 1; failed > 0 && n < 1000; n++) {
            size_t live = embla_mem_live(), open = embla_io_live();
            if (memory)
                embla_mem_fail(n, forever);
            else
                embla_io_fail(n, forever, EMBLA_SYSTEM_OTHER);
            embla_status status = use_model(path);
            failed = memory ? status != EMBLA_OK : n < 40; /* some calls may fail without harm */
            embla_mem_fail(0, false);
            embla_io_fail(0, false, 0);
            assert_int_equal(embla_mem_live(), live);
            assert_int_equal(embla_io_live(), open);
            if (status != EMBLA_OK) assert_status(status, memory ? EMBLA_ERR_MEMORY : EMBLA_ERR_IO);
        }
    }
}

static void failures_of_a_table_made_by_hand_are_survived(void **state)
{
    const embla_table_options options = {.token_rows = mapping_i64, .token_count = TOKENS};
    embla_table *table = NULL;
    size_t live = embla_mem_live();
    (void)state;
    for (size_t n = 1; n <= 3; n++) {
        embla_mem_fail(n, false);
        assert_status(embla_table_new(EMBLA_F32, ROWS, DIM, &options, &table), EMBLA_ERR_MEMORY);
        embla_mem_fail(0, false);
        assert_null(table);
        assert_int_equal(embla_mem_live(), live);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(lookup_goes_through_the_mapping),
        TEST(lookup_of_many_tokens_goes_through_the_mapping),
        TEST(a_token_outside_the_mapping_is_refused),
        TEST(embed_goes_through_the_mapping),
        TEST(by_row_ignores_the_mapping),
        TEST(the_mapping_belongs_to_one_tensor),
        TEST(rule_m1_a_mapping_is_a_list_of_integers),
        TEST(rule_m2_every_entry_is_a_row),
        TEST(rule_m2_holds_to_the_end_of_a_long_mapping),
        TEST(a_table_can_be_given_a_mapping),
        TEST(a_mapping_that_is_wrong_makes_no_table),
        TEST(rows_and_tokens_can_be_checked),
        TEST(facts_of_model2vec),
        TEST(facts_of_a_plain_table),
        TEST(facts_of_a_checkpoint_without_a_table),
        TEST(positions_begin_where_the_architecture_says),
        TEST(rows_are_scaled_as_the_architecture_says),
        TEST(rows_of_a_gguf_are_scaled_as_its_keys_say),
        TEST(a_tensor_that_was_chosen_has_its_own_facts),
        TEST(every_failure_is_survived),
        TEST(failures_of_a_table_made_by_hand_are_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
