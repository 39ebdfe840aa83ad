/* SPDX-License-Identifier: Apache-2.0 */
/* The hasher of a known model, of a config.json and of GGUF keys: the same rows by every way,
 * the file's constants before derived ones, and a sentence for each thing that cannot be.
 */
#include <errno.h>

#include "opened.h"

#include "base/mem.h"
#include "files/io.h"
#include "ngram/ngram.h"

/* ---- helpers ---- */

static embla_ngram_info info_of(const embla_ngram *g)
{
    embla_ngram_info info;
    assert_ok(embla_ngram_describe(g, &info));
    return info;
}

/* Both give the same rows for tokens of all sizes. */
static void same_hasher(const embla_ngram *a, const embla_ngram *b)
{
    enum { N = 300 };
    embla_ngram_info x = info_of(a), y = info_of(b);
    int32_t tokens[N];
    int64_t *rows = malloc(2 * N * x.rows_per_token * sizeof *rows);
    uint64_t seed = 1;
    assert_non_null(rows);
    assert_int_equal(x.rows_per_token, y.rows_per_token);
    assert_int_equal(x.rows, y.rows);
    assert_int_equal(x.layer, y.layer);
    assert_int_equal(x.tokens, y.tokens);
    for (size_t i = 0; i < N; i++) {
        tokens[i] = (int32_t)check_below(&seed, (uint64_t)x.tokens);
        if (i % 7 == 3 && x.eos >= 0) tokens[i] = x.eos;
    }
    assert_ok(embla_ngram_rows(a, tokens, 1, N, NULL, rows));
    assert_ok(embla_ngram_rows(b, tokens, 1, N, NULL, rows + N * x.rows_per_token));
    assert_memory_equal(rows, rows + N * x.rows_per_token, N * x.rows_per_token * sizeof *rows);
    free(rows);
}

static embla_checkpoint *with_config(const char *config)
{
    static const toy_tensor tensors[] = {{"model.norm.weight", 4, 0, 1}};
    toy_safetensors(scratch_path(&place, "model.safetensors"), tensors, 1);
    toy_text(scratch_path(&place, "config.json"), config);
    return opened("");
}

static embla_ngram *open_ok(const embla_checkpoint *cp, int32_t layer)
{
    embla_ngram *g = NULL;
    assert_ok(embla_ngram_open(cp, layer, NULL, &g));
    return g;
}

/* This config is refused with this status and a sentence that has this. */
static void refuses(const char *config, embla_status status, const char *sentence)
{
    embla_ngram *g = NULL;
    embla_checkpoint *cp = with_config(config);
    size_t live = embla_mem_live();
    embla_status got = embla_ngram_open(cp, -1, NULL, &g);
    if (got != status)
        fail_msg("%s: %s: %s", sentence, embla_status_name(got),
                 got == EMBLA_OK ? "" : embla_error());
    assert_error_has(sentence);
    assert_null(g);
    assert_int_equal(embla_mem_live(), live);
    embla_checkpoint_free(cp);
}

static void same_as_model(const embla_checkpoint *cp, const char *model, int32_t layer)
{
    embla_ngram *known = NULL, *found = open_ok(cp, layer);
    assert_ok(embla_ngram_new_model(model, layer, NULL, &known));
    same_hasher(found, known);
    embla_ngram_free(found);
    embla_ngram_free(known);
}

/* ---- known models ---- */

static void every_known_model_is_made(void **state)
{
    static const struct {
        const char *name;
        int64_t rows, tokens;
        size_t columns, history;
        int32_t layer;
    } known[] = {{"deepseek-v4.1-flash", 384006168, 99092, 24, 3, 1},
                 {"qwen3.8-flash-next", 320001536, 248320, 16, 2, 1},
                 {"longcat-flash-lite", 122683536, 131072, 12, 3, -1},
                 {"gemma-4-e2b", 262144, 262144, 1, 0, -1},
                 {"gemma-4-e4b", 262144, 262144, 1, 0, -1},
                 {"gemma-3n", 262144, 262144, 1, 0, -1}};
    size_t names = 0;
    (void)state;
    for (size_t i = 0; i < COUNT_OF(known); i++) {
        embla_ngram *g = NULL;
        assert_ok(embla_ngram_new_model(known[i].name, -1, NULL, &g));
        embla_ngram_info info = info_of(g);
        assert_int_equal(info.rows, known[i].rows);
        assert_int_equal(info.tokens, known[i].tokens);
        assert_int_equal(info.rows_per_token, known[i].columns);
        assert_int_equal(info.history, known[i].history);
        assert_int_equal(info.layer, known[i].layer);
        embla_ngram_free(g);
    }
    while (embla_ngram_model_name(names)) names++;
    assert_int_equal(names, COUNT_OF(known) + 1); /* the demo takes a fold */
    assert_null(embla_ngram_model_name(names + 5));
}

static void the_demo_takes_its_vocabulary_from_the_fold(void **state)
{
    static const int32_t folded[] = {0, 1, 1, 2, 3, 0};
    embla_fold *fold = NULL;
    embla_ngram *g = NULL;
    int64_t derived[3];
    (void)state;
    assert_status(embla_ngram_new_model("engram-demo", -1, NULL, &g), EMBLA_ERR_ARGUMENT);
    assert_error_has("pass a fold");
    assert_ok(embla_fold_new(folded, 6, &fold));
    assert_ok(embla_ngram_new_model("engram-demo", 15, fold, &g));
    embla_ngram_info info = info_of(g);
    embla_ngram_engram_multipliers(4, 10007 * 15, 3, derived);
    assert_memory_equal(info.multipliers, derived, sizeof derived);
    assert_int_equal(info.rows, 10348242);
    assert_int_equal(info.tokens, 6);
    assert_int_equal(info.vocab, 4);
    assert_int_equal(info.pad, 1); /* what token 2 counts as */
    embla_ngram_free(g);
    assert_ok(embla_ngram_new_model("engram-demo", 1, fold, &g));
    assert_int_equal(info_of(g).rows, 10344164);
    embla_ngram_free(g);
    g = NULL;
    assert_status(embla_ngram_new_model("deepseek-v4.1-flash", 1, fold, &g), EMBLA_ERR_ARGUMENT);
    assert_error_has("the fold has 4 different numbers, but vocab is 99092");
    assert_status(embla_ngram_new_model("gemma-3n", -1, fold, &g), EMBLA_ERR_ARGUMENT);
    embla_fold_free(fold);
    assert_ok(embla_fold_new(folded, 2, &fold));
    assert_status(embla_ngram_new_model("engram-demo", 1, fold, &g), EMBLA_ERR_ARGUMENT);
    assert_error_has("the pad token is 2, but the fold has only 2");
    assert_null(g);
    embla_fold_free(fold);
}

static void unknown_names_and_layers_are_listed(void **state)
{
    embla_ngram *g = NULL;
    (void)state;
    assert_status(embla_ngram_new_model("gpt2", -1, NULL, &g), EMBLA_ERR_NOT_FOUND);
    assert_error_has("deepseek-v4.1-flash, engram-demo, qwen3.8-flash-next");
    assert_error_has("gemma-3n");
    assert_status(embla_ngram_new_model("deepseek-v4.1-flash", 2, NULL, &g), EMBLA_ERR_NOT_FOUND);
    assert_error_has("layers with a table, counted from 0: 1, 14");
    assert_status(embla_ngram_new_model("qwen3.8-flash-next", 0, NULL, &g), EMBLA_ERR_NOT_FOUND);
    assert_status(embla_ngram_new_model("longcat-flash-lite", 0, NULL, &g), EMBLA_ERR_NOT_FOUND);
    assert_error_has("has one table for all layers");
    assert_status(embla_ngram_new_model(NULL, -1, NULL, &g), EMBLA_ERR_ARGUMENT);
    assert_status(embla_ngram_new_model("gemma-3n", -1, NULL, NULL), EMBLA_ERR_ARGUMENT);
    assert_status(embla_ngram_open(NULL, -1, NULL, &g), EMBLA_ERR_ARGUMENT);
    assert_null(g);
}

/* ---- config.json ---- */

#define V41(more)                                                                                  \
    "{\"text_config\": {\"engram_layer_ids\": [1, 14], \"engram_max_ngram_size\": 4, "             \
    "\"engram_vocab_size\": 16000000, \"engram_n_heads\": 8, \"engram_head_dim\": 256, "           \
    "\"engram_pad_token_id\": 2" more "}}"

static void deepseek_config(void **state)
{
    embla_ngram *g = NULL;
    (void)state;
    embla_checkpoint *cp = with_config(V41(", \"engram_compressed_vocab_size\": 99092, "
                                           "\"engram_num_embeddings\": [384006168, 384016682]"));
    same_as_model(cp, "deepseek-v4.1-flash", -1);
    same_as_model(cp, "deepseek-v4.1-flash", 14);
    assert_status(embla_ngram_open(cp, 3, NULL, &g), EMBLA_ERR_NOT_FOUND);
    assert_error_has("1, 14");
    embla_checkpoint_free(cp);
    refuses(
        V41(", \"engram_compressed_vocab_size\": 99092, \"engram_num_embeddings\": [384006169, 1]"),
        EMBLA_ERR_FORMAT,
        "its table has 384006169 rows; computed from its parameters it would have 384006168");
    refuses(
        V41(", \"engram_compressed_vocab_size\": 99092, \"engram_num_embeddings\": [384006168]"),
        EMBLA_ERR_FORMAT, "it has 1 numbers of rows; 2 tables need 1 each");
    refuses(V41(""), EMBLA_ERR_FORMAT, "pass a fold");
    refuses(V41(", \"engram_compressed_vocab_size\": 1"), EMBLA_ERR_FORMAT,
            "pad is 2, which is not a token of the vocabulary of 1");
    refuses("{\"engram_vocab_size\": 100}", EMBLA_ERR_FORMAT, "'engram_max_ngram_size' is missing");
    refuses("{\"engram_vocab_size\": 100, \"engram_max_ngram_size\": 9, \"engram_num_heads\": 8}",
            EMBLA_ERR_FORMAT, "it has orders up to 9 with 8 rows each");
    refuses("{\"engram_vocab_size\": -5, \"engram_max_ngram_size\": 3}", EMBLA_ERR_FORMAT,
            "'engram_vocab_size' is -5");
    refuses("{\"engram_vocab_size\": 99, \"engram_max_ngram_size\": 3, \"engram_n_heads\": 2}",
            EMBLA_ERR_FORMAT, "'engram_layer_ids' is missing");
    refuses("{\"engram_vocab_size\": 99, \"engram_max_ngram_size\": 3, \"engram_n_heads\": 2, "
            "\"engram_layer_ids\": [-1]}",
            EMBLA_ERR_FORMAT, "the number of a layer is out of range");
}

static void deepseek_config_with_a_fold(void **state)
{
    static const int32_t folded[] = {0, 1, 1, 2, 0}, other[] = {0, 0, 0};
    embla_fold *fold = NULL, *few = NULL;
    embla_ngram *g = NULL;
    (void)state;
    assert_ok(embla_fold_new(folded, 5, &fold));
    assert_ok(embla_fold_new(other, 3, &few));
    embla_checkpoint *cp = with_config(
        "{\"engram_vocab_size\": 99, \"engram_max_ngram_size\": 3, \"engram_num_heads\": 2, "
        "\"engram_layer_ids\": [4], \"engram_compressed_vocab_size\": 3, \"engram_pad_id\": 3}");
    assert_ok(embla_ngram_open(cp, -1, fold, &g));
    assert_int_equal(info_of(g).pad, 2);
    assert_int_equal(info_of(g).tokens, 5);
    assert_int_equal(info_of(g).layer, 4);
    embla_ngram_free(g);
    g = NULL;
    assert_status(embla_ngram_open(cp, -1, few, &g), EMBLA_ERR_ARGUMENT);
    assert_error_has("its folded vocabulary has 3 tokens, but the fold has 1");
    assert_null(g);
    embla_checkpoint_free(cp);
    embla_fold_free(few);
    embla_fold_free(fold);
}

#define QWEN(more)                                                                                 \
    "{\"model_type\": \"qwen4_exp\", \"text_config\": {\"ngram_size\": 3, \"heads_per_ngram\": "   \
    "8, "                                                                                          \
    "\"ple_layer_ids\": [2], \"make_ngram_vocab_size_divisible_by\": 128, \"vocab_size\": "        \
    "248320" more "}}"

static void qwen_config(void **state)
{
    (void)state;
    embla_checkpoint *cp =
        with_config(QWEN(", \"ngram_vocab_size_base\": 20000000, \"eos_token_id\": 248044"));
    same_as_model(cp, "qwen3.8-flash-next", -1);
    same_as_model(cp, "qwen3.8-flash-next", 1);
    embla_checkpoint_free(cp);
    cp = with_config(QWEN(", \"ngram_vocab_size_base\": 20000000, \"eos_token_id\": [248044, -5]"));
    same_as_model(cp, "qwen3.8-flash-next", -1);
    embla_checkpoint_free(cp);
    refuses(QWEN(", \"ngram_vocab_size_base\": 20000000"), EMBLA_ERR_FORMAT,
            "'eos_token_id' is missing");
    refuses(QWEN(", \"ngram_vocab_size_base\": 20000000, \"eos_token_id\": [-5]"), EMBLA_ERR_FORMAT,
            "its EOS is not a token");
    refuses(QWEN(", \"eos_token_id\": 248044"), EMBLA_ERR_FORMAT,
            "the sizes of its hashes are missing");
    refuses(QWEN(", \"ngram_vocab_size_base\": 20000000, \"eos_token_id\": 248320"),
            EMBLA_ERR_FORMAT, "eos is 248320, which is not a token of the vocabulary of");
}

/* I64 tensors of these names, each a list. */
typedef struct {
    const char *name;
    const int64_t *numbers;
    size_t count;
} constants;

static void write_constants(const constants *lists, size_t count, const char *type)
{
    toy_bytes header = {0}, file = {0};
    size_t at = 0, size = strcmp(type, "I64") == 0 ? 8 : 4;
    char text[300];
    for (size_t i = 0; i < count; i++) {
        int n = snprintf(text, sizeof text,
                         "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[%zu],\"data_offsets\":[%zu,%zu]}",
                         i > 0 ? "," : "{", lists[i].name, type, lists[i].count, at,
                         at + size * lists[i].count);
        toy_put(&header, text, (size_t)n);
        at += size * lists[i].count;
    }
    toy_put(&header, "}", 1);
    while (header.used % 8 != 0) toy_put(&header, " ", 1);
    toy_number(&file, header.used, 8);
    toy_put(&file, header.bytes, header.used);
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < lists[i].count; k++)
            toy_number(&file, (uint64_t)lists[i].numbers[k], (int)size);
    scratch_write(scratch_path(&place, "model.safetensors"), file.bytes, file.used);
    free(header.bytes);
    free(file.bytes);
}

#define PLE "model.language_model.layers.1.ple.ple_embedding."

static const char qwen_eos[] = QWEN(", \"eos_token_id\": 248044");
static const char qwen_base[] =
    QWEN(", \"eos_token_id\": 248044, \"ngram_vocab_size_base\": 20000000, \"seed\": 0");

static void qwen_tensors_win(void **state)
{
    static int64_t sizes[16], offsets[16], multipliers[3];
    static const int64_t wrong_sizes[16] = {9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9};
    embla_ngram *known = NULL, *g = NULL;
    constants lists[] = {{PLE "layer_multipliers", multipliers, 3},
                         {"layers.12.ple.ngram_heads_vocab_sizes", wrong_sizes, 16},
                         {PLE "ngram_heads_vocab_sizes", sizes, 16},
                         {PLE "ngram_heads_offsets", offsets, 16}};
    (void)state;
    assert_ok(embla_ngram_new_model("qwen3.8-flash-next", -1, NULL, &known));
    embla_ngram_info info = info_of(known);
    memcpy(sizes, info.sizes, sizeof sizes);
    memcpy(offsets, info.offsets, sizeof offsets);
    memcpy(multipliers, info.multipliers, sizeof multipliers);
    embla_ngram_free(known);
    const char *const configs[] = {qwen_eos, qwen_base};
    for (size_t i = 0; i < 2; i++) {
        write_constants(lists, 4, "I64");
        toy_text(scratch_path(&place, "config.json"), configs[i]);
        embla_checkpoint *cp = opened("");
        same_as_model(cp, "qwen3.8-flash-next", -1);
        embla_checkpoint_free(cp);
    }
    sizes[3] += 2; /* without a base nothing contradicts it; with one the rules do */
    offsets[15] += 100;
    write_constants(lists, 4, "I64");
    toy_text(scratch_path(&place, "config.json"), qwen_eos);
    embla_checkpoint *cp = opened("");
    g = open_ok(cp, 1);
    assert_int_equal(info_of(g).sizes[3], 20000049);
    assert_int_equal(info_of(g).used, 320001546);
    embla_ngram_free(g);
    g = NULL;
    embla_checkpoint_free(cp);
    toy_text(scratch_path(&place, "config.json"), qwen_base);
    cp = opened("");
    assert_status(embla_ngram_open(cp, -1, NULL, &g), EMBLA_ERR_FORMAT);
    assert_error_has(
        "the size of hash 3 is 20000049; computed from its parameters it would be 20000047");
    embla_checkpoint_free(cp);
    sizes[3] -= 2;
    multipliers[1] += 2;
    write_constants(lists, 4, "I64");
    toy_text(scratch_path(&place, "config.json"), qwen_eos);
    cp = opened("");
    assert_status(embla_ngram_open(cp, -1, NULL, &g), EMBLA_ERR_FORMAT);
    assert_error_has(
        "multiplier 1 is 20109073645367; computed from its parameters it would be 20109073645365");
    embla_checkpoint_free(cp);
    lists[0].count = 2;
    write_constants(lists, 4, "I64");
    cp = opened("");
    assert_status(embla_ngram_open(cp, -1, NULL, &g), EMBLA_ERR_FORMAT);
    assert_error_has("it has 2 multipliers; expected: 3");
    embla_checkpoint_free(cp);
    write_constants(lists, 4, "I32");
    cp = opened("");
    assert_status(embla_ngram_open(cp, -1, NULL, &g), EMBLA_ERR_FORMAT);
    assert_error_has("expected one dimension of I64");
    assert_null(g);
    embla_checkpoint_free(cp);
}

/* Constants made with the seed that config.json has are taken, too. */
static void qwen_may_have_a_seed_of_its_own(void **state)
{
    int64_t multipliers[3];
    constants list = {PLE "layer_multipliers", multipliers, 3};
    embla_ngram *g = NULL;
    (void)state;
    embla_ngram_qwen_multipliers(248320, 77, 3, multipliers);
    write_constants(&list, 1, "I64");
    toy_text(scratch_path(&place, "config.json"),
             QWEN(", \"eos_token_id\": 248044, \"ngram_vocab_size_base\": 1000, \"seed\": 77"));
    embla_checkpoint *cp = opened("");
    g = open_ok(cp, -1);
    assert_memory_equal(info_of(g).multipliers, multipliers, sizeof multipliers);
    embla_ngram_free(g);
    embla_checkpoint_free(cp);
}

static void longcat_config(void **state)
{
    (void)state;
    embla_checkpoint *cp = with_config(
        "{\"model_type\": \"longcat_flash_ngram\", \"emb_neighbor_num\": 4, \"emb_split_num\": 4, "
        "\"ngram_vocab_size_ratio\": 78, \"vocab_size\": 131072, \"eos_token_id\": 2}");
    same_as_model(cp, "longcat-flash-lite", -1);
    embla_checkpoint_free(cp);
    cp = with_config("{\"oe_neighbor_num\": 5, \"oe_split_num\": 4, \"oe_vocab_size_ratio\": "
                     "100.567, \"ngram_vocab_size_ratio\": null, \"vocab_size\": 163840, "
                     "\"eos_token_id\": [2, 3]}");
    embla_ngram *g = open_ok(cp, -1);
    assert_int_equal(info_of(g).sizes[0], 16476898);
    assert_int_equal(info_of(g).rows_per_token, 16);
    assert_int_equal(info_of(g).eos, 2);
    embla_ngram_free(g);
    g = NULL;
    assert_status(embla_ngram_open(cp, 3, NULL, &g), EMBLA_ERR_NOT_FOUND);
    assert_null(g);
    embla_checkpoint_free(cp);
    refuses("{\"model_type\": \"nanbeige\", \"ngram_vocab_size_ratio\": 7, \"vocab_size\": 9}",
            EMBLA_ERR_UNSUPPORTED,
            "the n-gram hash of 'nanbeige' is not supported; only LongCat's is");
    refuses("{\"ngram_vocab_size_ratio\": 7.5, \"emb_neighbor_num\": 3}", EMBLA_ERR_FORMAT,
            "'emb_split_num' is missing");
    refuses("{\"ngram_vocab_size_ratio\": -7.5, \"emb_neighbor_num\": 3, \"emb_split_num\": 2, "
            "\"vocab_size\": 10, \"eos_token_id\": 2}",
            EMBLA_ERR_FORMAT, "ratio -7.5 times a vocabulary of 10");
}

static void gemma_config_and_nothing_at_all(void **state)
{
    static const int32_t folded[] = {0};
    embla_fold *fold = NULL;
    embla_ngram *g = NULL;
    (void)state;
    embla_checkpoint *cp = with_config("{\"text_config\": {\"hidden_size_per_layer_input\": 256, "
                                       "\"vocab_size_per_layer_input\": 262144}}");
    same_as_model(cp, "gemma-4-e2b", -1);
    assert_ok(embla_fold_new(folded, 1, &fold));
    assert_status(embla_ngram_open(cp, -1, fold, &g), EMBLA_ERR_ARGUMENT);
    assert_error_has("only engram has a fold");
    embla_fold_free(fold);
    embla_checkpoint_free(cp);
    refuses("{\"vocab_size\": 50257}", EMBLA_ERR_NOT_FOUND, "has no n-gram table");
}

/* ---- GGUF ---- */

typedef struct {
    toy_bytes keys;
    size_t count;
} gguf_keys;

static void key(gguf_keys *k, const char *name, uint32_t type)
{
    toy_string(&k->keys, name);
    toy_number(&k->keys, type, 4);
    k->count++;
}

static void key_text(gguf_keys *k, const char *name, const char *text)
{
    key(k, name, 8);
    toy_string(&k->keys, text);
}

static void key_u32(gguf_keys *k, const char *name, uint32_t value)
{
    key(k, name, 4);
    toy_number(&k->keys, value, 4);
}

static void key_list(gguf_keys *k, const char *name, uint32_t type, const int64_t *numbers,
                     size_t count)
{
    key(k, name, 9);
    toy_number(&k->keys, type, 4);
    toy_number(&k->keys, count, 8);
    for (size_t i = 0; i < count; i++)
        toy_number(&k->keys, (uint64_t)numbers[i], type == 10 || type == 11 ? 8 : 4);
}

/* Writes the file with these tensors (F32) and opens it. The keys are gone. */
static embla_checkpoint *gguf(gguf_keys *k, const toy_tensor *tensors, size_t count)
{
    toy_bytes t = {0};
    uint64_t offset = 0;
    toy_put(&t, "GGUF", 4);
    toy_number(&t, 3, 4);
    toy_number(&t, count, 8);
    toy_number(&t, k->count, 8);
    toy_put(&t, k->keys.bytes, k->keys.used);
    for (size_t i = 0; i < count; i++) {
        toy_string(&t, tensors[i].name);
        toy_number(&t, 2, 4);
        toy_number(&t, tensors[i].dim, 8);
        toy_number(&t, tensors[i].rows, 8);
        toy_number(&t, 0, 4);
        toy_number(&t, offset, 8);
        offset += (4 * toy_size(&tensors[i]) + 31) / 32 * 32;
    }
    for (size_t i = 0; i < count; i++) {
        while (t.used % 32 != 0) toy_number(&t, 0, 1);
        toy_data(&t, &tensors[i]);
    }
    while (t.used % 32 != 0) toy_number(&t, 0, 1);
    scratch_write(scratch_path(&place, "model.gguf"), t.bytes, t.used);
    free(t.bytes);
    free(k->keys.bytes);
    *k = (gguf_keys){0};
    return opened("model.gguf");
}

static void qwen_keys(gguf_keys *k, uint32_t vocab)
{
    embla_ngram *g = NULL;
    static const int64_t layers[] = {1};
    assert_ok(embla_ngram_new_model("qwen3.8-flash-next", -1, NULL, &g));
    embla_ngram_info info = info_of(g);
    key_text(k, "general.architecture", "qwen4exp");
    key_u32(k, "qwen4exp.ple.ngram_size", 3);
    key_u32(k, "qwen4exp.ple.heads_per_ngram", 8);
    key_u32(k, "qwen4exp.ple.eos_token_id", 248044);
    if (vocab > 0) key_u32(k, "qwen4exp.vocab_size", vocab);
    key_list(k, "qwen4exp.ple.layers", 5, layers, 1);
    key_list(k, "qwen4exp.ple.layer_multipliers", 10, info.multipliers, 3);
    key_list(k, "qwen4exp.ple.head_offsets", 10, info.offsets, 16);
    key_list(k, "qwen4exp.ple.head_vocab_sizes", 10, info.sizes, 16);
    embla_ngram_free(g);
}

static void qwen_gguf(void **state)
{
    gguf_keys k = {0};
    embla_ngram *g = NULL;
    toy_tensor tensors[] = {{"token_embd.weight", 248320, 1, 1},
                            {"per_layer_token_embd.weight", 9, 4, 2}};
    (void)state;
    qwen_keys(&k, 248320);
    embla_checkpoint *cp = gguf(&k, NULL, 0);
    same_as_model(cp, "qwen3.8-flash-next", -1);
    same_as_model(cp, "qwen3.8-flash-next", 1);
    embla_checkpoint_free(cp);
    qwen_keys(&k, 0); /* the vocabulary is that of the token table */
    cp = gguf(&k, tensors, 1);
    same_as_model(cp, "qwen3.8-flash-next", 1);
    embla_checkpoint_free(cp);
    qwen_keys(&k, 250000); /* other multipliers would be due */
    cp = gguf(&k, NULL, 0);
    assert_status(embla_ngram_open(cp, -1, NULL, &g), EMBLA_ERR_FORMAT);
    assert_error_has("multiplier 0 is 23703573157769; computed from its parameters it would be");
    embla_checkpoint_free(cp);
    qwen_keys(&k, 248320);
    cp = gguf(&k, tensors, 2);
    assert_status(embla_ngram_open(cp, -1, NULL, &g), EMBLA_ERR_FORMAT);
    assert_error_has("its table has 9 rows; computed from its parameters it would have 320001446");
    embla_checkpoint_free(cp);
    key_text(&k, "general.architecture", "qwen4exp");
    key_u32(&k, "qwen4exp.ple.ngram_size", 3);
    cp = gguf(&k, NULL, 0);
    assert_status(embla_ngram_open(cp, -1, NULL, &g), EMBLA_ERR_FORMAT);
    assert_error_has("'heads_per_ngram' is missing");
    assert_null(g);
    embla_checkpoint_free(cp);
}

/* Two tables of 2 heads of orders 2, 3; a fold of 6 tokens to 4 numbers. */
static const int64_t small_layers[] = {2, 5}, small_map[] = {0, 1, 0, 2, 1, 3};
static const int64_t small_sizes[] = {11, 13, 17, 19, 23, 29, 31, 37};
static const int64_t small_offsets[] = {0, 11, 24, 41, 0, 23, 52, 83};

static void engram_keys(gguf_keys *k, const int64_t *multipliers, bool map)
{
    key_text(k, "general.architecture", "deepseek41");
    key_u32(k, "deepseek41.engram.max_ngram_size", 3);
    key_u32(k, "deepseek41.engram.head_count", 2);
    key_list(k, "deepseek41.engram.layer_ids", 4, small_layers, 2);
    key_list(k, "deepseek41.engram.multipliers", 10, multipliers, 6);
    key_list(k, "deepseek41.engram.primes", 10, small_sizes, 8);
    key_list(k, "deepseek41.engram.offsets", 10, small_offsets, 8);
    key_u32(k, "deepseek41.engram.pad_id", 2);
    if (map) key_list(k, "deepseek41.engram.token_map", 5, small_map, 6);
}

static void engram_gguf(void **state)
{
    static const int32_t folded[] = {0, 1, 0, 2, 1, 3}, other[] = {0, 1, 0, 2, 1, 3, 0};
    static const int32_t tokens[] = {5, 4, 3, 2, 1, 0};
    int64_t multipliers[6], got[24], want[24];
    gguf_keys k = {0};
    embla_fold *fold = NULL, *longer = NULL;
    embla_ngram *g = NULL, *again = NULL, *plain = NULL;
    (void)state;
    embla_ngram_engram_multipliers(4, 20014, 3, multipliers);
    embla_ngram_engram_multipliers(4, 50035, 3, multipliers + 3);
    engram_keys(&k, multipliers, true);
    embla_checkpoint *cp = gguf(&k, NULL, 0);
    g = open_ok(cp, 5);
    assert_int_equal(info_of(g).tokens, 6);
    assert_int_equal(info_of(g).vocab, 4);
    assert_int_equal(info_of(g).layer, 5);
    assert_int_equal(info_of(g).pad, 2);
    assert_int_equal(info_of(g).rows, 120);
    const embla_ngram_parameters p = {.kind = EMBLA_NGRAM_ENGRAM,
                                      .vocab = 4,
                                      .orders = 3,
                                      .rows_per_ngram = 2,
                                      .layer = 5,
                                      .pad = 2,
                                      .multipliers = multipliers + 3,
                                      .sizes = small_sizes + 4};
    assert_ok(embla_fold_new(folded, 6, &fold));
    embla_ngram_parameters with = p;
    with.fold = fold;
    assert_ok(embla_ngram_new(&with, &plain));
    assert_ok(embla_ngram_rows(plain, tokens, 1, 6, NULL, want));
    assert_ok(embla_ngram_open(cp, 5, fold, &again)); /* the caller's fold is the same */
    embla_checkpoint_free(cp); /* the file's own fold stays with the hasher */
    assert_ok(embla_ngram_rows(g, tokens, 1, 6, NULL, got));
    assert_memory_equal(got, want, sizeof got);
    assert_ok(embla_ngram_rows(again, tokens, 1, 6, NULL, got));
    assert_memory_equal(got, want, sizeof got);
    embla_ngram_free(g);
    embla_ngram_free(again);
    embla_ngram_free(plain);
    g = NULL;
    assert_ok(embla_fold_new(other, 7, &longer));
    engram_keys(&k, multipliers, true);
    cp = gguf(&k, NULL, 0);
    assert_status(embla_ngram_open(cp, 5, longer, &g), EMBLA_ERR_FORMAT);
    assert_error_has("token 6 is folded to -1, but the given fold has 0");
    assert_status(embla_ngram_open(cp, 1, NULL, &g), EMBLA_ERR_NOT_FOUND);
    assert_error_has("2, 5");
    embla_checkpoint_free(cp);
    engram_keys(&k, multipliers, false);
    cp = gguf(&k, NULL, 0);
    assert_status(embla_ngram_open(cp, -1, NULL, &g), EMBLA_ERR_FORMAT);
    assert_error_has("pass a fold");
    assert_ok(embla_ngram_open(cp, -1, fold, &g));
    assert_int_equal(info_of(g).rows, 60);
    embla_ngram_free(g);
    g = NULL;
    embla_checkpoint_free(cp);
    multipliers[4] += 2;
    engram_keys(&k, multipliers, true);
    cp = gguf(&k, NULL, 0);
    assert_status(embla_ngram_open(cp, 5, NULL, &g), EMBLA_ERR_FORMAT);
    assert_error_has("multiplier 1 is");
    assert_null(g);
    embla_checkpoint_free(cp);
    embla_fold_free(longer);
    embla_fold_free(fold);
}

static void gemma_gguf_and_others(void **state)
{
    static const toy_tensor tensors[] = {{"per_layer_token_embd.weight", 40, 8, 2}};
    gguf_keys k = {0};
    embla_ngram *g = NULL;
    (void)state;
    key_text(&k, "general.architecture", "gemma4");
    key_u32(&k, "gemma4.embedding_length_per_layer_input", 4);
    embla_checkpoint *cp = gguf(&k, tensors, 1);
    g = open_ok(cp, -1);
    assert_int_equal(info_of(g).rows, 40);
    assert_int_equal(info_of(g).tokens, 40);
    assert_int_equal(info_of(g).kind, EMBLA_NGRAM_IDENTITY);
    embla_ngram_free(g);
    g = NULL;
    embla_checkpoint_free(cp);
    key_text(&k, "general.architecture", "llama");
    cp = gguf(&k, tensors, 1);
    assert_status(embla_ngram_open(cp, -1, NULL, &g), EMBLA_ERR_NOT_FOUND);
    assert_null(g);
    embla_checkpoint_free(cp);
}

/* ---- failures ---- */

static void every_failure_is_a_status(void **state)
{
    int64_t multipliers[6];
    gguf_keys k = {0};
    embla_ngram *g = NULL;
    size_t failures = 0;
    (void)state;
    embla_ngram_engram_multipliers(4, 20014, 3, multipliers);
    embla_ngram_engram_multipliers(4, 50035, 3, multipliers + 3);
    engram_keys(&k, multipliers, true);
    embla_checkpoint *cp = gguf(&k, NULL, 0);
    size_t live = embla_mem_live();
    for (size_t n = 1; !g; n++) {
        embla_mem_fail(n, false);
        embla_status status = embla_ngram_open(cp, 5, NULL, &g);
        embla_mem_fail(0, false);
        if (status != EMBLA_OK) {
            assert_status(status, EMBLA_ERR_MEMORY);
            assert_null(g);
            assert_int_equal(embla_mem_live(), live);
            failures++;
        }
    }
    assert_true(failures >= 3); /* lists, fold, hasher */
    embla_ngram_free(g);
    g = NULL;
    for (size_t n = 1; !g; n++) {
        embla_io_fail(n, false, EMBLA_SYSTEM_OTHER);
        embla_status status = embla_ngram_open(cp, 5, NULL, &g);
        embla_io_fail(0, false, 0);
        if (status == EMBLA_OK) continue;
        assert_null(g);
        assert_int_equal(embla_mem_live(), live);
    }
    embla_ngram_free(g);
    assert_int_equal(embla_mem_live(), live);
    embla_checkpoint_free(cp);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_known_model_is_made),
        TEST(the_demo_takes_its_vocabulary_from_the_fold),
        TEST(unknown_names_and_layers_are_listed),
        TEST(deepseek_config),
        TEST(deepseek_config_with_a_fold),
        TEST(qwen_config),
        TEST(qwen_tensors_win),
        TEST(qwen_may_have_a_seed_of_its_own),
        TEST(longcat_config),
        TEST(gemma_config_and_nothing_at_all),
        TEST(qwen_gguf),
        TEST(engram_gguf),
        TEST(gemma_gguf_and_others),
        TEST(every_failure_is_a_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
