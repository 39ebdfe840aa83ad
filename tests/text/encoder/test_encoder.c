/* SPDX-License-Identifier: Apache-2.0 */
/* Texts to vectors: small static models in every layout, each rule of the libraries that they come
 * from, and the fixtures of Model2Vec in EMBLA_DATA. tests/peers/encode_model2vec.py compares with
 * the library itself.
 */
#include <errno.h>
#include <math.h>

#include "base/mem.h"
#include "embla_text.h"
#include "files/cursor.h"
#include "files/io.h"
#include "scratch.h"

#define TOKENIZER(truncation, padding)                                                             \
    "{\"version\":\"1.0\",\"truncation\":" truncation ",\"padding\":" padding                      \
    ",\"added_tokens\":[{\"id\":1,\"content\":\"[CLS]\",\"special\":true,\"normalized\":false}],"  \
    "\"normalizer\":{\"type\":\"BertNormalizer\",\"clean_text\":true,"                             \
    "\"handle_chinese_chars\":true,\"strip_accents\":null,\"lowercase\":true},"                    \
    "\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"},\"post_processor\":null,\"decoder\":null,"  \
    "\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"[UNK]\","                                   \
    "\"continuing_subword_prefix\":\"##\",\"max_input_chars_per_word\":100,"                       \
    "\"vocab\":{\"[UNK]\":0,\"[CLS]\":1,\"a\":2,\"b\":3,\"c\":4,\"##d\":5}}}"
enum { TOKENS = 6, DIM = 3 };

static const char plain[] = TOKENIZER("null", "null");
static const char limited[] =
    TOKENIZER("{\"direction\":\"Right\",\"max_length\":2,\"strategy\":\"LongestFirst\","
              "\"stride\":0}",
              "{\"strategy\":{\"Fixed\":4},\"direction\":\"Right\",\"pad_to_multiple_of\":null,"
              "\"pad_id\":5,\"pad_type_id\":0,\"pad_token\":\"##d\"}");

/* Row i is (i, 10 i, -i). */
static float number(size_t row, size_t column)
{
    const float factors[DIM] = {1.0f, 10.0f, -1.0f};
    return (float)row * factors[column];
}

/* ---- folders ---- */

typedef struct {
    scratch s;
    char inner[SCRATCH_PATH]; /* a subfolder; "" if there is none */
} folder;

static void put(folder *f, const char *name, const char *text)
{
    scratch_write(scratch_path(&f->s, name), text, strlen(text));
}

/* A file of `rows` rows under this name, and with a mapping and weights if given. */
static void put_table(folder *f, const char *file, const char *tensor, size_t rows,
                      const int32_t *mapping, const double *weights)
{
    uint8_t bytes[4096] = {0};
    size_t at = rows * DIM * 4;
    char *header = (char *)bytes + 8;
    int used = snprintf(header, 1000,
                        "{\"%s\":{\"dtype\":\"F32\",\"shape\":[%zu,3],\"data_offsets\":[0,%zu]}",
                        tensor, rows, at);
    if (mapping) {
        used += snprintf(header + used, 1000,
                         ",\"mapping\":{\"dtype\":\"I32\",\"shape\":[6],"
                         "\"data_offsets\":[%zu,%zu]}",
                         at, at + TOKENS * 4);
        at += TOKENS * 4;
    }
    if (weights)
        used += snprintf(header + used, 1000,
                         ",\"weights\":{\"dtype\":\"F64\",\"shape\":[6],"
                         "\"data_offsets\":[%zu,%zu]}",
                         at, at + TOKENS * 8);
    used += snprintf(header + used, 1000, "}");
    while (used % 8 > 0) header[used++] = ' ';
    embla_put_le64((uint64_t)used, bytes);
    at = 8 + (size_t)used;
    for (size_t i = 0; i < rows * DIM; i++, at += 4)
        memcpy(bytes + at, &(float){number(i / DIM, i % DIM)}, 4);
    if (mapping) memcpy(bytes + at, mapping, TOKENS * 4);
    at += mapping ? TOKENS * 4 : 0;
    if (weights) memcpy(bytes + at, weights, TOKENS * 8);
    at += weights ? TOKENS * 8 : 0;
    scratch_write(scratch_path(&f->s, file), bytes, at);
}

/* Model2Vec's folder. */
static folder model2vec(const char *config, const char *tokenizer)
{
    folder f = {0};
    scratch_new(&f.s);
    put_table(&f, "model.safetensors", "embeddings", TOKENS, NULL, NULL);
    put(&f, "config.json", config);
    put(&f, "tokenizer.json", tokenizer);
    return f;
}

static void make_inner(folder *f)
{
    (void)snprintf(f->inner, sizeof f->inner, "%s", scratch_path(&f->s, "0_StaticEmbedding"));
    assert_int_equal(mkdir(f->inner, 0700), 0);
}

static void drop(folder *f)
{
    if (f->inner[0]) {
        scratch_remove(&f->s, "0_StaticEmbedding/model.safetensors");
        scratch_remove(&f->s, "0_StaticEmbedding/tokenizer.json");
    }
    scratch_free(&f->s);
}

/* ---- encoders ---- */

typedef struct {
    embla_encoder *encoder;
    embla_encoder_info info;
} opened;

static opened open_as(const char *path, embla_compat compat)
{
    opened o = {0};
    assert_ok(embla_encoder_open(path, &(embla_encoder_options){.compat = compat}, &o.encoder));
    assert_ok(embla_encoder_describe(o.encoder, &o.info));
    return o;
}

static void shut(opened *o)
{
    embla_encoder_free(o->encoder);
}

static embla_status try(const opened *o, const char *text, const embla_encode_options *options,
                        float *out, embla_encoded *detail)
{
    const size_t length = strlen(text);
    const embla_texts one = {.texts = &text, .lengths = &length, .count = 1};
    return embla_encoder_encode(o->encoder, &one, options, out, detail);
}

/* The vector of a text is factor times (1, 10, -1). */
static void assert_vector(const opened *o, const char *text, const embla_encode_options *options,
                          double factor)
{
    float out[DIM];
    assert_ok(try(o, text, options, out, NULL));
    for (size_t i = 0; i < DIM; i++)
        assert_near(out[i], factor * (double)number(1, i), 1e-6 * (1 + fabs(factor)));
}

/* Opens, encodes one text as asked and frees everything. */
static void assert_opened(const char *path, embla_compat compat, embla_compat found,
                          const char *text, double factor)
{
    opened o = open_as(path, compat);
    assert_int_equal(o.info.compat, found);
    assert_vector(&o, text, NULL, factor);
    shut(&o);
}

static const double unit = 0.09901475429766744; /* 1 / sqrt(102) */

/* ---- tests ---- */

static void the_vector_of_a_text_is_the_mean_of_its_rows(void **state)
{
    folder f = model2vec("{\"normalize\":false}", plain);
    opened o = open_as(f.s.folder, EMBLA_COMPAT_AUTO);
    embla_encoded detail;
    float out[DIM];
    (void)state;
    assert_int_equal(o.info.compat, EMBLA_COMPAT_MODEL2VEC);
    assert_int_equal(o.info.rows, TOKENS);
    assert_int_equal(o.info.dim, DIM);
    assert_int_equal(o.info.tokens, TOKENS);
    assert_false(o.info.normalize || o.info.mapping || o.info.weights);
    assert_vector(&o, "a b", NULL, 2.5);
    assert_vector(&o, "ad", NULL, 3.5); /* a ##d */
    assert_vector(&o, "c c a", NULL, 10.0 / 3);
    assert_vector(&o, "[CLS] c", NULL, 2.5);
    assert_vector(&o, "", NULL, 0);
    assert_ok(try(&o, "a b zz", NULL, out, &detail));
    assert_int_equal(detail.tokens, 2);
    assert_int_equal(detail.unknown, 1);
    assert_false(detail.truncated);
    shut(&o);
    drop(&f);
}

static void unknown_tokens_are_left_out_or_kept(void **state)
{
    folder f = model2vec("{}", plain);
    (void)state;
    assert_opened(f.s.folder, EMBLA_COMPAT_MODEL2VEC, EMBLA_COMPAT_MODEL2VEC, "a zz", 2);
    assert_opened(f.s.folder, EMBLA_COMPAT_ST, EMBLA_COMPAT_ST, "a zz", 1);
    assert_opened(f.s.folder, EMBLA_COMPAT_WORDLLAMA, EMBLA_COMPAT_WORDLLAMA, "a zz", 1);
    assert_opened(f.s.folder, EMBLA_COMPAT_TABLE, EMBLA_COMPAT_TABLE, "a zz", 1);
    assert_opened(f.s.folder, EMBLA_COMPAT_MODEL2VEC, EMBLA_COMPAT_MODEL2VEC, "zz zz", 0);
    drop(&f);
}

static void vectors_are_normalised_if_the_model_or_the_caller_says_so(void **state)
{
    folder said = model2vec("{\"normalize\":true}", plain), silent = model2vec("{}", plain);
    const embla_encode_options yes = {.normalize = EMBLA_NORMALIZE_YES},
                               no = {.normalize = EMBLA_NORMALIZE_NO}, two = {.dim = 1};
    float out[DIM];
    (void)state;
    assert_opened(said.s.folder, EMBLA_COMPAT_AUTO, EMBLA_COMPAT_MODEL2VEC, "a b", unit);
    assert_opened(silent.s.folder, EMBLA_COMPAT_AUTO, EMBLA_COMPAT_MODEL2VEC, "a b", 2.5);
    assert_opened(silent.s.folder, EMBLA_COMPAT_MODEL2VEC_RS, EMBLA_COMPAT_MODEL2VEC_RS, "a b",
                  unit);
    opened o = open_as(said.s.folder, EMBLA_COMPAT_AUTO);
    assert_true(o.info.normalize);
    assert_vector(&o, "a b", &yes, unit);
    assert_vector(&o, "a b", &no, 2.5);
    assert_vector(&o, "", NULL, 0);
    assert_ok(try(&o, "a b", &two, out, NULL));
    assert_true(out[0] == 1.0f); /* cut to one number, then normalised */
    shut(&o);
    o = open_as(silent.s.folder, EMBLA_COMPAT_AUTO);
    assert_vector(&o, "a b", &yes, unit);
    shut(&o);
    for (embla_compat compat = EMBLA_COMPAT_ST; compat <= EMBLA_COMPAT_TABLE; compat++) {
        o = open_as(silent.s.folder, compat);
        assert_vector(&o, "zz", &yes, 0); /* a row of zeros has no direction */
        shut(&o);
    }
    drop(&said);
    drop(&silent);
}

static void a_mapping_and_weights_are_used_where_the_library_does(void **state)
{
    const int32_t mapping[TOKENS] = {0, 0, 1, 2, 1, 0};
    const double weights[TOKENS] = {1, 1, 0.5, 2, 3, 1};
    folder f = model2vec("{}", plain);
    embla_encoder *encoder = NULL;
    (void)state;
    put_table(&f, "model.safetensors", "embeddings", 3, mapping, weights);
    opened o = open_as(f.s.folder, EMBLA_COMPAT_AUTO);
    assert_true(o.info.mapping && o.info.weights);
    assert_vector(&o, "a b", NULL, (1 * 0.5 + 2 * 2) / 2);
    assert_vector(&o, "c", NULL, 3);
    shut(&o);
    assert_opened(f.s.folder, EMBLA_COMPAT_ST, EMBLA_COMPAT_ST, "a b", (1 * 0.5 + 2 * 2) / 2);
    assert_status(embla_encoder_open(
                      f.s.folder, &(embla_encoder_options){.compat = EMBLA_COMPAT_ST5}, &encoder),
                  EMBLA_ERR_SHAPE);
    assert_error_has("tokens up to 5, but the table has rows for 3 tokens");
    put_table(&f, "model.safetensors", "embeddings", TOKENS, NULL, weights);
    assert_opened(f.s.folder, EMBLA_COMPAT_MODEL2VEC, EMBLA_COMPAT_MODEL2VEC, "b", 6);
    assert_opened(f.s.folder, EMBLA_COMPAT_ST, EMBLA_COMPAT_ST, "b", 6);
    assert_opened(f.s.folder, EMBLA_COMPAT_ST5, EMBLA_COMPAT_ST5, "b", 3);
    scratch_remove(&f.s, "config.json");
    put(&f, "config_sentence_transformers.json", "{}");
    assert_opened(f.s.folder, EMBLA_COMPAT_AUTO, EMBLA_COMPAT_ST, "b", 6);
    /* sentence-transformers' own tensor has a row for each token, and nothing beside it is used */
    put_table(&f, "model.safetensors", "embedding.weight", TOKENS, NULL, weights);
    assert_opened(f.s.folder, EMBLA_COMPAT_AUTO, EMBLA_COMPAT_ST, "b", 3);
    assert_null(encoder);
    drop(&f);
}

static void no_text_is_truncated_silently(void **state)
{
    folder f = model2vec("{}", plain);
    opened o = open_as(f.s.folder, EMBLA_COMPAT_AUTO);
    const embla_encode_options refuse = {.max_tokens = 2},
                               cut = {.max_tokens = 2, .truncate = true};
    char text[4001];
    float out[DIM];
    embla_encoded detail;
    (void)state;
    assert_vector(&o, "a b", &refuse, 2.5);
    assert_status(try(&o, "a zz b", &refuse, out, NULL), EMBLA_ERR_RANGE); /* zz counts */
    assert_vector(&o, "a zz b", &cut, 2);
    assert_status(try(&o, "a b c", &refuse, out, NULL), EMBLA_ERR_RANGE);
    assert_error_has("text 0 has 3 tokens; the limit is 2");
    assert_vector(&o, "          b c", &cut, 3.5); /* not cut by characters */
    assert_ok(try(&o, "a b c", &cut, out, &detail));
    assert_near(out[0], 2.5, 0);
    assert_true(detail.truncated && detail.tokens == 2);
    for (size_t i = 0; i < 4000; i++) text[i] = i % 2 == 0 ? 'a' : ' ';
    text[4000] = '\0';
    assert_ok(try(&o, text, NULL, out, &detail));
    assert_true(detail.tokens == 2000 && !detail.truncated);
    shut(&o);
    /* strings have 5 5 1 1 1 3 characters, median 2; 512 x 2 characters are 512 tokens */
    o = open_as(f.s.folder, EMBLA_COMPAT_MODEL2VEC);
    assert_ok(try(&o, text, NULL, out, &detail));
    assert_true(detail.tokens == 512 && detail.truncated);
    assert_ok(try(&o, text, &(embla_encode_options){.max_tokens = 3000}, out, &detail));
    assert_true(detail.tokens == 2000 && !detail.truncated);
    memset(text, ' ', 1024);
    memcpy(text + 1024, "b", 2);
    assert_ok(try(&o, text, NULL, out, &detail)); /* cut by characters: nothing is left */
    assert_true(detail.tokens == 0 && detail.truncated && out[0] == 0.0f);
    shut(&o);
    put(&f, "config.json", "{\"max_length\":1}");
    assert_opened(f.s.folder, EMBLA_COMPAT_MODEL2VEC, EMBLA_COMPAT_MODEL2VEC, "b c", 3);
    assert_opened(f.s.folder, EMBLA_COMPAT_AUTO, EMBLA_COMPAT_MODEL2VEC, "b c", 3.5);
    put(&f, "config.json", "{\"max_length\":null}");
    assert_opened(f.s.folder, EMBLA_COMPAT_MODEL2VEC, EMBLA_COMPAT_MODEL2VEC, text, 3);
    put(&f, "config.json", "{}");
    /* in Rust the upper median, 3, of the bytes */
    o = open_as(f.s.folder, EMBLA_COMPAT_MODEL2VEC_RS);
    assert_ok(try(&o, text, NULL, out, &detail));
    assert_true(detail.tokens == 1 && !detail.truncated);
    assert_vector(&o, "a zz b", &(embla_encode_options){.max_tokens = 2}, unit); /* zz does not */
    shut(&o);
    drop(&f);
}

static void truncation_and_padding_of_the_tokenizer_are_applied_as_the_library_does(void **state)
{
    folder f = model2vec("{}", limited);
    (void)state;
    assert_opened(f.s.folder, EMBLA_COMPAT_MODEL2VEC, EMBLA_COMPAT_MODEL2VEC, "a b c", 3);
    assert_opened(f.s.folder, EMBLA_COMPAT_AUTO, EMBLA_COMPAT_MODEL2VEC, "a b c", 3);
    put(&f, "config.json", "{\"normalize\":false}");
    /* padded with two ##d, which are rows 5 */
    assert_opened(f.s.folder, EMBLA_COMPAT_MODEL2VEC_RS, EMBLA_COMPAT_MODEL2VEC_RS, "a b c",
                  (2 + 3 + 5 + 5) / 4.0);
    assert_opened(f.s.folder, EMBLA_COMPAT_ST, EMBLA_COMPAT_ST, "a b c", 2.5);
    assert_opened(f.s.folder, EMBLA_COMPAT_WORDLLAMA, EMBLA_COMPAT_WORDLLAMA, "a b c", 3);
    drop(&f);
}

static void every_layout_is_found(void **state)
{
    static const char modules[] =
        "[{\"idx\":0,\"path\":\"\",\"type\":\"sentence_transformers.models.StaticEmbedding\"},"
        "{\"idx\":1,\"path\":\"1_Normalize\",\"type\":\"sentence_transformers.models.Normalize\"}]";
    folder f = {0};
    embla_encoder *encoder = NULL;
    (void)state;
    scratch_new(&f.s);
    make_inner(&f);
    put_table(&f, "0_StaticEmbedding/model.safetensors", "embedding.weight", TOKENS, NULL, NULL);
    put(&f, "0_StaticEmbedding/tokenizer.json", plain);
    put(&f, "config_sentence_transformers.json", "{\"prompts\":{},\"default_prompt_name\":null}");
    put(&f, "modules.json", modules);
    assert_opened(f.s.folder, EMBLA_COMPAT_AUTO, EMBLA_COMPAT_ST, "a zz", unit);
    assert_opened(f.inner, EMBLA_COMPAT_AUTO, EMBLA_COMPAT_ST, "a zz", unit);
    assert_opened(f.s.folder, EMBLA_COMPAT_MODEL2VEC, EMBLA_COMPAT_MODEL2VEC, "a zz", unit);
    put(&f, "modules.json", "[{\"type\":\"a.StaticEmbedding\"}]");
    assert_opened(f.s.folder, EMBLA_COMPAT_AUTO, EMBLA_COMPAT_ST, "a zz", 1);
    put(&f, "0_StaticEmbedding/tokenizer.json", limited); /* truncates to two */
    assert_opened(f.s.folder, EMBLA_COMPAT_AUTO, EMBLA_COMPAT_ST, "a b c", 3);
    assert_opened(f.s.folder, EMBLA_COMPAT_ST, EMBLA_COMPAT_ST, "a b c", 2.5);
    put(&f, "0_StaticEmbedding/tokenizer.json", plain);
    put(&f, "modules.json", "[{\"type\":\"a.StaticEmbedding\"},{\"type\":\"b.Dense\"}]");
    assert_status(embla_encoder_open(f.s.folder, NULL, &encoder), EMBLA_ERR_UNSUPPORTED);
    assert_error_has("module 1 of 2 is Dense");
    put(&f, "config_sentence_transformers.json",
        "{\"prompts\":{\"q\":\"query: \"},\"default_prompt_name\":\"q\"}");
    assert_status(embla_encoder_open(f.s.folder, NULL, &encoder), EMBLA_ERR_UNSUPPORTED);
    assert_error_has("the prompt 'q'");
    /* without both files it is a file of WordLlama */
    scratch_remove(&f.s, "modules.json");
    scratch_remove(&f.s, "config_sentence_transformers.json");
    assert_opened(f.s.folder, EMBLA_COMPAT_AUTO, EMBLA_COMPAT_WORDLLAMA, "a zz", 1);
    drop(&f);
}

static void wordllama_clips_tokens_and_others_refuse_them(void **state)
{
    folder f = {0};
    embla_encoder *encoder = NULL;
    (void)state;
    scratch_new(&f.s);
    put_table(&f, "l2_3.safetensors", "embedding.weight", 5, NULL, NULL);
    put(&f, "its_tokenizer.json", plain);
    char tokenizer[SCRATCH_PATH];
    (void)snprintf(tokenizer, sizeof tokenizer, "%s", scratch_path(&f.s, "its_tokenizer.json"));
    const char *path = scratch_path(&f.s, "l2_3.safetensors");
    embla_encoder_options options = {.tokenizer = tokenizer};
    assert_status(embla_encoder_open(path, NULL, &encoder), EMBLA_ERR_NOT_FOUND);
    assert_ok(embla_encoder_open(path, &options, &encoder));
    opened o = {.encoder = encoder};
    assert_vector(&o, "ad", NULL, 3); /* ##d is token 5, clipped to row 4 */
    shut(&o);
    options.compat = EMBLA_COMPAT_MODEL2VEC;
    assert_status(embla_encoder_open(path, &options, &encoder), EMBLA_ERR_SHAPE);
    drop(&f);
}

static void a_token_table_serves_as_a_stand_in(void **state)
{
    folder f = model2vec("{\"model_type\":\"gemma\",\"hidden_size\":3}", plain);
    (void)state;
    put_table(&f, "model.safetensors", "model.embed_tokens.weight", TOKENS, NULL, NULL);
    assert_opened(f.s.folder, EMBLA_COMPAT_AUTO, EMBLA_COMPAT_TABLE, "a b zz", 5.0 / 3 * sqrt(3.0));
    put(&f, "config.json", "{\"model_type\":\"llama\"}");
    assert_opened(f.s.folder, EMBLA_COMPAT_AUTO, EMBLA_COMPAT_TABLE, "a b zz", 5.0 / 3);
    drop(&f);
}

enum { MANY = 400 };

static void any_number_of_threads_gives_the_same_bits_and_allocates_once(void **state)
{
    static char memory[MANY][64];
    static float one[MANY * DIM], more[MANY * DIM];
    static embla_encoded details[MANY];
    const char *texts[MANY];
    size_t lengths[MANY];
    const embla_texts all = {.texts = texts, .lengths = lengths, .count = MANY};
    uint64_t seed = 4;
    folder f = model2vec("{\"normalize\":true}", plain);
    opened o = open_as(f.s.folder, EMBLA_COMPAT_AUTO);
    (void)state;
    for (size_t i = 0; i < MANY; i++) {
        lengths[i] = check_below(&seed, 60);
        for (size_t k = 0; k < lengths[i]; k++) memory[i][k] = "ab cd"[check_below(&seed, 5)];
        texts[i] = memory[i];
    }
    for (int threads = 1; threads <= 4; threads++) {
        const embla_encode_options options = {.threads = threads};
        assert_ok(
            embla_encoder_encode(o.encoder, &all, &options, threads == 1 ? one : more, details));
        if (threads > 1) assert_memory_equal(one, more, sizeof one);
    }
    const embla_encode_options options = {.threads = 1};
    embla_mem_fail(1, true);
    embla_status status = embla_encoder_encode(o.encoder, &all, &options, more, details);
    embla_mem_fail(0, false);
    assert_ok(status);
    assert_memory_equal(one, more, sizeof one);
    shut(&o);
    drop(&f);
}

/* Opens a folder and encodes a text. */
static embla_status use(const char *path)
{
    embla_encoder *encoder = NULL;
    const char *text = "a b zz";
    const size_t length = 6;
    const embla_texts one = {.texts = &text, .lengths = &length, .count = 1};
    float out[DIM];
    embla_status status = embla_encoder_open(path, NULL, &encoder);
    if (status == EMBLA_OK) status = embla_encoder_encode(encoder, &one, NULL, out, NULL);
    embla_encoder_free(encoder);
    return status;
}

static void every_allocation_and_every_call_of_the_system_may_fail(void **state)
{
    const int32_t mapping[TOKENS] = {0, 0, 1, 2, 1, 0};
    const double weights[TOKENS] = {1, 1, 0.5, 2, 3, 1};
    folder f = model2vec("{}", plain);
    size_t live = embla_mem_live(), files = embla_io_live();
    embla_status status = EMBLA_ERR_MEMORY;
    (void)state;
    put_table(&f, "model.safetensors", "embeddings", 3, mapping, weights);
    for (size_t n = 1; status != EMBLA_OK; n++) {
        embla_mem_fail(n, false);
        status = use(f.s.folder);
        embla_mem_fail(0, false);
        if (status != EMBLA_OK) assert_status(status, EMBLA_ERR_MEMORY);
        assert_int_equal(embla_mem_live(), live);
        assert_int_equal(embla_io_live(), files);
        assert_true(n < 1000);
    }
    for (size_t n = 1; n < 60; n++) {
        embla_io_fail(n, false, EMBLA_SYSTEM_OTHER);
        status = use(f.s.folder);
        embla_io_fail(0, false, 0);
        if (status != EMBLA_OK) assert_status(status, EMBLA_ERR_IO);
        assert_int_equal(embla_mem_live(), live);
        assert_int_equal(embla_io_live(), files);
    }
    drop(&f);
}

static void arguments_are_checked(void **state)
{
    folder f = model2vec("{}", plain);
    opened o = open_as(f.s.folder, EMBLA_COMPAT_AUTO);
    const char *text = NULL;
    const size_t length = 1;
    const embla_texts one = {.texts = &text, .lengths = &length, .count = 1}, none = {0};
    float out[DIM] = {7};
    embla_encoder *encoder = NULL;
    (void)state;
    assert_status(embla_encoder_open(NULL, NULL, &encoder), EMBLA_ERR_ARGUMENT);
    assert_status(embla_encoder_open(f.s.folder, NULL, NULL), EMBLA_ERR_ARGUMENT);
    assert_status(embla_encoder_open(f.s.folder,
                                     &(embla_encoder_options){.compat = (embla_compat)8}, &encoder),
                  EMBLA_ERR_ARGUMENT);
    assert_status(
        embla_encoder_open(f.s.folder, &(embla_encoder_options){.reserved = {1}}, &encoder),
        EMBLA_ERR_UNSUPPORTED);
    assert_status(embla_encoder_encode(NULL, &one, NULL, out, NULL), EMBLA_ERR_ARGUMENT);
    assert_error_has("embla_encoder_encode: encoder is NULL");
    assert_status(embla_encoder_encode(o.encoder, NULL, NULL, out, NULL), EMBLA_ERR_ARGUMENT);
    assert_error_has("embla_encoder_encode: texts is NULL");
    assert_status(embla_encoder_encode(o.encoder, &one, NULL, out, NULL), EMBLA_ERR_ARGUMENT);
    assert_error_has("text 0 of 1 is NULL");
    assert_status(embla_encoder_encode(o.encoder, &one, NULL, NULL, NULL), EMBLA_ERR_ARGUMENT);
    assert_error_has("1 texts to encode, but out is NULL");
    assert_status(embla_encoder_encode(o.encoder, &(embla_texts){.texts = &text, .count = 1}, NULL,
                                       out, NULL),
                  EMBLA_ERR_ARGUMENT);
    assert_error_has("there are 1 texts, but texts->lengths is NULL");
    assert_ok(embla_encoder_encode(o.encoder, &none, NULL, NULL, NULL));
    assert_status(try(&o, "a", &(embla_encode_options){.dim = 4}, out, NULL), EMBLA_ERR_SHAPE);
    assert_error_has("a dim of 4 was asked for; the model has 3");
    assert_status(try(&o, "a", &(embla_encode_options){.threads = -1}, out, NULL),
                  EMBLA_ERR_ARGUMENT);
    assert_status(
        try(&o, "a", &(embla_encode_options){.normalize = (embla_normalize_kind)3}, out, NULL),
        EMBLA_ERR_ARGUMENT);
    assert_status(try(&o, "a", &(embla_encode_options){.reserved = {0, 1}}, out, NULL),
                  EMBLA_ERR_UNSUPPORTED);
    assert_status(try(&o, "a\xff", &(embla_encode_options){.strict = true}, out, NULL),
                  EMBLA_ERR_FORMAT);
    assert_true(out[0] == 7.0f);
    assert_string_equal(embla_compat_name(EMBLA_COMPAT_ST), "st");
    assert_null(embla_compat_name((embla_compat)8));
    embla_encoder_free(NULL);
    shut(&o);
    drop(&f);
}

/* ---- the fixtures of Model2Vec ---- */

/* Compares the vector of a text with the numbers of a JSON file. Returns the largest difference. */
static double compare_fixture(const char *data, const char *model, const char *text,
                              const char *expected)
{
    char path[SCRATCH_PATH];
    float out[256];
    size_t bytes = 0;
    double worst = 0;
    (void)snprintf(path, sizeof path, "%s/model2vec-mini/%s", data, model);
    opened o = open_as(path, EMBLA_COMPAT_MODEL2VEC);
    assert_ok(try(&o, text, NULL, out, NULL));
    (void)snprintf(path, sizeof path, "%s/model2vec-mini/%s", data, expected);
    char *json = (char *)scratch_read(path, &bytes);
    assert_non_null(json);
    char *at = json + strspn(json, "[ ");
    for (size_t i = 0; i < o.info.dim; i++) {
        worst = fmax(worst, fabs(strtod(at, &at) - (double)out[i]));
        at += strspn(at, ", ");
    }
    assert_int_equal(*at, ']');
    free(json);
    shut(&o);
    return worst;
}

static void the_fixtures_of_model2vec_are_met(void **state)
{
    static char text[6000];
    const char *data = getenv("EMBLA_DATA");
    (void)state;
    if (!data) {
        print_message("EMBLA_DATA is not set: skipped\n");
        skip();
    }
    for (size_t i = 0; i < 1000; i++) memcpy(text + 6 * i, "hello ", 6);
    text[5999] = '\0';
    assert_near(compare_fixture(data, "float32", "hello world", "embeddings_short.json"), 0, 1e-6);
    assert_near(compare_fixture(data, "float32", text, "embeddings_long.json"), 0, 1e-6);
    assert_near(compare_fixture(data, "vocab-quantized", text, "embeddings_vocab_quantized.json"),
                0, 1e-6);
    assert_near(compare_fixture(data, "float16", "hello world", "embeddings_short.json"), 0, 1e-3);
    assert_near(compare_fixture(data, "int8", "hello world", "embeddings_short.json"), 0, 1e-2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_vector_of_a_text_is_the_mean_of_its_rows),
        cmocka_unit_test(unknown_tokens_are_left_out_or_kept),
        cmocka_unit_test(vectors_are_normalised_if_the_model_or_the_caller_says_so),
        cmocka_unit_test(a_mapping_and_weights_are_used_where_the_library_does),
        cmocka_unit_test(no_text_is_truncated_silently),
        cmocka_unit_test(truncation_and_padding_of_the_tokenizer_are_applied_as_the_library_does),
        cmocka_unit_test(every_layout_is_found),
        cmocka_unit_test(wordllama_clips_tokens_and_others_refuse_them),
        cmocka_unit_test(a_token_table_serves_as_a_stand_in),
        cmocka_unit_test(any_number_of_threads_gives_the_same_bits_and_allocates_once),
        cmocka_unit_test(every_allocation_and_every_call_of_the_system_may_fail),
        cmocka_unit_test(arguments_are_checked),
        cmocka_unit_test(the_fixtures_of_model2vec_are_met),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
