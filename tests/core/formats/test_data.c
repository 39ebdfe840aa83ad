/* SPDX-License-Identifier: Apache-2.0 */
/* Real models, opened through the door and held against what is known of them. They are not
 * part of the project: EMBLA_DATA names the folder they are in, and without it these tests
 * are skipped, and say so.
 */
#include <math.h>

#include "embla_checkpoint.h"
#include "table/geometry.h"
#include "toy.h"

static const char *data;

/* Opens a file of EMBLA_DATA; skips the test where there is none. */
static embla_checkpoint *real(const char *name)
{
    char path[SCRATCH_PATH];
    embla_checkpoint *cp = NULL;
    if (!data) {
        print_message("EMBLA_DATA is not set: skipped\n");
        skip();
    }
    (void)snprintf(path, sizeof path, "%s/%s", data, name);
    assert_ok(embla_checkpoint_open(path, NULL, &cp));
    return cp;
}

typedef struct {
    embla_checkpoint *cp;
    embla_table *table;
    embla_vocab *vocab;
    size_t dim;
} model;

static model read_model(embla_checkpoint *cp)
{
    model m = {.cp = cp};
    assert_ok(embla_table_open(cp, NULL, NULL, &m.table));
    assert_ok(embla_vocab_open(cp, &m.vocab));
    m.dim = embla_table_dim(m.table);
    return m;
}

static void free_model(model *m)
{
    embla_vocab_free(m->vocab);
    embla_table_free(m->table);
    embla_checkpoint_free(m->cp);
}

static void assert_shape(const model *m, const char *format, int64_t rows, size_t dim,
                         embla_dtype dtype, int64_t words)
{
    assert_string_equal(embla_checkpoint_format(m->cp), format);
    assert_int_equal(embla_table_rows(m->table), rows);
    assert_int_equal(m->dim, dim);
    assert_int_equal(embla_table_dtype(m->table), dtype);
    assert_int_equal(embla_vocab_count(m->vocab), words);
}

static int32_t token_of(const model *m, const char *word)
{
    int32_t token = -1;
    assert_ok(embla_vocab_find(m->vocab, word, strlen(word), &token));
    return token;
}

static void row_of(const model *m, const char *word, float *out)
{
    int32_t token = token_of(m, word);
    assert_ok(embla_lookup(m->table, &token, 1, NULL, out));
}

/* The row most alike x, the tokens in not (ended by -1) left out; *cosine is how alike. */
static int64_t nearest(const model *m, const float *x, const int32_t * not, double *cosine)
{
    float row[512];
    int64_t best = -1;
    *cosine = -2;
    for (int64_t r = 0; r < embla_table_rows(m->table); r++) {
        bool out = false;
        for (const int32_t *n = not ; *n >= 0; n++) out = out || *n == r;
        if (out) continue;
        assert_ok(embla_lookup_rows(m->table, &r, 1, NULL, row));
        double c = embla_cosine(x, row, m->dim);
        if (c > *cosine) {
            *cosine = c;
            best = r;
        }
    }
    return best;
}

static void assert_nearest(const model *m, const char *word, const char *other, double cosine)
{
    float row[512];
    double found;
    const int32_t not [] = {token_of(m, word), -1};
    row_of(m, word, row);
    int64_t best = nearest(m, row, not, &found);
    assert_int_equal(best, token_of(m, other));
    assert_near(found, cosine, 0.005);
}

static void glove_50k(void **state)
{
    scratch place;
    embla_checkpoint *cp = NULL;
    (void)state;
    assert_ok(embla_checkpoint_open(scratch_glove(&place), NULL, &cp));
    model m = read_model(cp);
    assert_shape(&m, "glove", 50000, 100, EMBLA_F32, 50000);
    assert_int_equal(token_of(&m, "the"), 0);
    float x[100], man[100], woman[100];
    row_of(&m, "the", x);
    assert_true(x[0] == -0.038194f && x[1] == -0.24487f);
    row_of(&m, "king", x);
    row_of(&m, "man", man);
    row_of(&m, "woman", woman);
    embla_normalize(x, 100); /* as gensim: each word counts the same */
    embla_normalize(man, 100);
    embla_normalize(woman, 100);
    for (size_t i = 0; i < 100; i++) x[i] += woman[i] - man[i];
    const int32_t asked[] = {token_of(&m, "king"), token_of(&m, "man"), token_of(&m, "woman"), -1};
    double cosine;
    assert_int_equal(nearest(&m, x, asked, &cosine), token_of(&m, "queen"));
    assert_near(cosine, 0.770, 0.001);
    free_model(&m);
    scratch_free(&place);
}

static void use_lite_8k(void **state)
{
    (void)state;
    model m = read_model(real("use-lite-8k/model.safetensors"));
    assert_shape(&m, "safetensors", 8002, 256, EMBLA_F32, 8000);
    assert_nearest(&m,
                   "\xe2\x96\x81"
                   "dog",
                   "\xe2\x96\x81"
                   "Dog",
                   0.66);
    assert_nearest(&m, " Monday", " Thursday", 0.82);
    free_model(&m);
}

static void stories260k(void **state)
{
    embla_tie tie;
    int64_t alike = 0;
    float first[64], row[64];
    (void)state;
    model m = read_model(real("stories260k/stories260K.bin"));
    assert_shape(&m, "llama2.c", 512, 64, EMBLA_F32, 512);
    assert_ok(embla_checkpoint_tie(m.cp, 0, &tie));
    assert_int_equal(tie.kind, EMBLA_TIE_TIED);
    assert_nearest(&m, " he", " she", 0.58);
    /* 169 rows that training never met share one direction */
    const int64_t zero = 0;
    assert_ok(embla_lookup_rows(m.table, &zero, 1, NULL, first));
    for (int64_t r = 0; r < 512; r++) {
        assert_ok(embla_lookup_rows(m.table, &r, 1, NULL, row));
        alike += embla_cosine(first, row, 64) > 0.999999;
    }
    assert_int_equal(alike, 169);
    assert_near(embla_norm(first, 64), 2.773, 0.001);
    free_model(&m);
}

/* The sentence "hello world" as the model's own tools embed it. */
static void model2vec_mini(void **state)
{
    static const struct {
        const char *name;
        embla_dtype dtype;
        double tolerance;
    } cases[] = {{"model2vec-mini/float32", EMBLA_F32, 4.6e-6},
                 {"model2vec-mini/float16", EMBLA_F16, 1.3e-4},
                 {"model2vec-mini/int8", EMBLA_I8, 8.3e-3}};
    double wanted[2];
    char path[SCRATCH_PATH];
    size_t size;
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        model m = read_model(real(cases[i].name));
        assert_shape(&m, "safetensors", 29528, 2, cases[i].dtype, 29528);
        (void)snprintf(path, sizeof path, "%s/model2vec-mini/embeddings_short.json", data);
        unsigned char *text = scratch_read(path, &size);
        assert_int_equal(sscanf((char *)text, "[[%lf,%lf]]", &wanted[0], &wanted[1]), 2);
        free(text);
        const int32_t tokens[] = {token_of(&m, "hello"), token_of(&m, "world")};
        embla_pool_options pool = {.normalize = true};
        float rows[4], mean[2];
        assert_ok(embla_lookup(m.table, tokens, 2, NULL, rows));
        assert_ok(embla_pool(rows, 1, 2, 2, &pool, mean));
        assert_near(mean[0], wanted[0], cases[i].tolerance);
        assert_near(mean[1], wanted[1], cases[i].tolerance);
        free_model(&m);
    }
}

static void model2vec_mini_vocabulary_quantised(void **state)
{
    char path[SCRATCH_PATH];
    size_t size;
    int32_t row;
    double weight, norm = 0;
    float x[64], y[64];
    (void)state;
    model m = read_model(real("model2vec-mini/vocab-quantized"));
    assert_shape(&m, "safetensors", 128, 64, EMBLA_F32, 29524);
    embla_tensor tensor;
    assert_ok(embla_checkpoint_role(m.cp, EMBLA_ROLE_MAPPING, &tensor, NULL));
    assert_int_equal(tensor.shape[0], 29524);
    assert_ok(embla_checkpoint_role(m.cp, EMBLA_ROLE_WEIGHTS, &tensor, NULL));
    assert_string_equal(tensor.type, "F64");
    /* "hello" a thousand times is "hello" once, of unit length */
    int32_t token = token_of(&m, " hello");
    assert_ok(embla_checkpoint_read(m.cp, "mapping", 4 * (int64_t)token, 4, &row));
    assert_ok(embla_checkpoint_read(m.cp, "weights", 8 * (int64_t)token, 8, &weight));
    assert_ok(embla_lookup(m.table, &token, 1, NULL, x));
    assert_ok(embla_lookup_rows(m.table, &(int64_t){row}, 1, NULL, y));
    assert_memory_equal(x, y, sizeof x);
    assert_true(weight > 0);
    embla_facts facts;
    assert_ok(embla_checkpoint_facts(m.cp, &facts));
    assert_int_equal(facts.tokens, 29524);
    assert_int_equal(embla_table_tokens(m.table), 29524);
    assert_string_equal(facts.mapping, "mapping");
    assert_string_equal(facts.weights, "weights");
    for (size_t i = 0; i < 64; i++) norm += (double)x[i] * (double)x[i];
    (void)snprintf(path, sizeof path, "%s/model2vec-mini/embeddings_vocab_quantized.json", data);
    unsigned char *text = scratch_read(path, &size);
    char *at = (char *)text + strspn((char *)text, "[ \n");
    for (size_t i = 0; i < 64; i++) {
        double wanted = strtod(at, &at);
        assert_near((double)x[i] / sqrt(norm), wanted, 1e-7);
        at += strspn(at, ", \n");
    }
    free(text);
    free_model(&m);
}

static void vocabularies_have_their_words(void **state)
{
    static const struct {
        const char *name;
        int64_t count;
        int32_t token;
        const char *word;
    } cases[] = {
        {"gguf-vocab/ggml-vocab-gpt-2.gguf", 50257, 50256, "<|endoftext|>"},
        {"gguf-vocab/ggml-vocab-bert-bge.gguf", 30522, 101, "[CLS]"},
        {"gguf-vocab/ggml-vocab-phi-3.gguf", 32064, 32000, "<|endoftext|>"},
        {"tokenizers/gpt2/vocab.json", 50257, 50256, "<|endoftext|>"},
        {"tokenizers/gpt2/tokenizer.json", 50257, 50256, "<|endoftext|>"},
        {"tokenizers/bert-base-uncased/vocab.txt", 30522, 2088, "world"},
        {"tokenizers/bert-base-uncased/tokenizer.json", 30522, 2088, "world"},
        {"tokenizers/qwen2.5/tokenizer.json", 151665, 151643, "<|endoftext|>"},
        {"stories260k/tok512.bin", 512, 0, "<unk>"},
        {"tokenizers/sentencepiece/spiece.model", 30000, 0, "<pad>"},
    };
    char path[SCRATCH_PATH];
    (void)state;
    if (!data) {
        print_message("EMBLA_DATA is not set: skipped\n");
        skip();
    }
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        embla_vocab *vocab = NULL;
        int32_t token = -1;
        (void)snprintf(path, sizeof path, "%s/%s", data, cases[i].name);
        assert_ok(embla_vocab_open_file(path, &vocab));
        if (embla_vocab_count(vocab) != cases[i].count)
            fail_msg("%s: %" PRId64 " words", cases[i].name, embla_vocab_count(vocab));
        assert_ok(embla_vocab_find(vocab, cases[i].word, strlen(cases[i].word), &token));
        assert_int_equal(token, cases[i].token);
        assert_string_equal(embla_vocab_word(vocab, token, NULL), cases[i].word);
        embla_vocab_free(vocab);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(glove_50k),
        cmocka_unit_test(use_lite_8k),
        cmocka_unit_test(stories260k),
        cmocka_unit_test(model2vec_mini),
        cmocka_unit_test(model2vec_mini_vocabulary_quantised),
        cmocka_unit_test(vocabularies_have_their_words),
    };
    data = getenv("EMBLA_DATA");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
