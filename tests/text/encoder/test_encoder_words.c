/* SPDX-License-Identifier: Apache-2.0 */
/* Word vectors as static models: how a text is cut into the words of a table, and vectors of
 * words that only have n-grams. */
#include "base/mem.h"
#include "encoder/encoder.h"
#include "files/io.h"
#include "models.h"
#include "safetensors_file.h"
#include "scratch.h"

enum { DIM = 2 };

/* ---- models ---- */

/* A GloVe file in which word i has the row (i, 10 i). */
static void put_words(scratch *s, const char *const *words, size_t count)
{
    char text[4096];
    int used = 0;
    for (size_t i = 0; i < count; i++)
        used +=
            snprintf(text + used, sizeof text - (size_t)used, "%s %zu %zu\n", words[i], i, 10 * i);
    scratch_write(scratch_path(s, "words.txt"), text, (size_t)used);
}

typedef struct {
    scratch s;
    embla_encoder *encoder;
    embla_tokenized *tokenized;
} opened;

static opened open_words(const char *const *words, size_t count)
{
    opened o = {0};
    scratch_new(&o.s);
    put_words(&o.s, words, count);
    assert_ok(embla_encoder_open(scratch_path(&o.s, "words.txt"), NULL, &o.encoder));
    assert_ok(embla_tokenized_new(embla_encoder_tokenizer(o.encoder), &o.tokenized));
    return o;
}

static void shut(opened *o)
{
    embla_tokenized_free(o->tokenized);
    embla_encoder_free(o->encoder);
    scratch_free(&o->s);
}

/* The words of a text, separated by |; ? for unknown ones. */
static const char *cut(opened *o, const char *text)
{
    static char out[512];
    size_t used = 0;
    assert_ok(embla_tokenize(o->tokenized, text, strlen(text), NULL));
    const int32_t *tokens = embla_tokenized_tokens(o->tokenized);
    out[0] = '\0';
    for (size_t i = 0; i < embla_tokenized_count(o->tokenized); i++) {
        const char *word =
            embla_tokenizer_text(embla_encoder_tokenizer(o->encoder), tokens[i], NULL);
        used += (size_t)snprintf(out + used, sizeof out - used, "%s%s", i > 0 ? "|" : "",
                                 word ? word : "?");
    }
    return out;
}

static embla_encoded encode(const opened *o, const char *text, const embla_encode_options *options,
                            float *out)
{
    const size_t length = strlen(text);
    const embla_texts one = {.texts = &text, .lengths = &length, .count = 1};
    embla_encoded detail;
    assert_ok(embla_encoder_encode(o->encoder, &one, options, out, &detail));
    return detail;
}

/* ---- cutting ---- */

static void the_vocabulary_decides_how_a_text_is_cut(void **state)
{
    static const char *const words[] = {"the", "u.s.", "dog",   "'s",  ",", "\xc3\xa9t\xc3\xa9",
                                        "do",  "n't",  "x-ray", "ray", "x"};
    opened o = open_words(words, COUNT_OF(words));
    (void)state;
    assert_string_equal(cut(&o, "The U.S. dog's, \xc3\x89T\xc3\x89"),
                        "the|u.s.|dog|'s|,|\xc3\xa9t\xc3\xa9");
    assert_string_equal(cut(&o, "Don't x-ray x ray"), "do|n't|x-ray|x|ray");
    assert_string_equal(cut(&o, "dogs dog;the;"), "?|dog|?|the|?");
    assert_string_equal(cut(&o, "don'tx isn't"), "?|?|?|?|?|?");
    assert_string_equal(cut(&o, " \t\n"), "");
    shut(&o);
}

static void a_vocabulary_with_capitals_keeps_the_case_and_tries_lower_case(void **state)
{
    static const char *const words[] = {"Apple", "apple", "pie", "NASA", "Rome"};
    opened o = open_words(words, COUNT_OF(words));
    (void)state;
    assert_string_equal(cut(&o, "Apple apple APPLE Pie NASA nasa rome"),
                        "Apple|apple|apple|pie|NASA|?|?");
    shut(&o);
}

static void the_first_of_equal_words_has_the_vector(void **state)
{
    static const char *const words[] = {"a", "b", "a"};
    opened o = open_words(words, COUNT_OF(words));
    float out[DIM];
    (void)state;
    assert_int_equal(encode(&o, "a", NULL, out).tokens, 1);
    assert_near(out[1], 0, 0);
    shut(&o);
}

static void the_vector_is_the_mean_of_the_words_that_have_a_row(void **state)
{
    static const char *const words[] = {"zero", "one", "two", "three"};
    opened o = open_words(words, COUNT_OF(words));
    embla_encoder_info info;
    float out[DIM];
    (void)state;
    assert_ok(embla_encoder_describe(o.encoder, &info));
    assert_int_equal(info.compat, EMBLA_COMPAT_WORDS);
    assert_false(info.normalize || info.subwords || info.counts);
    embla_encoded detail = encode(&o, "One, unheard, THREE", NULL, out);
    assert_int_equal(detail.tokens, 2);
    assert_int_equal(detail.unknown, 3);
    assert_near(out[0], 2, 0);
    assert_near(out[1], 20, 0);
    assert_int_equal(encode(&o, "unheard", NULL, out).tokens, 0);
    assert_near(out[1], 0, 0);
    detail = encode(&o, "one two three", &(embla_encode_options){.max_tokens = 2, .truncate = true},
                    out);
    assert_true(detail.truncated);
    assert_near(out[0], 1.5, 0);
    shut(&o);
}

static void a_file_without_words_is_refused(void **state)
{
    scratch s;
    embla_encoder *encoder = NULL;
    (void)state;
    scratch_new(&s);
    put_words(&s, (const char *const[]){"a", "b"}, 2);
    const embla_encoder_options both = {.tokenizer = "tokenizer.json",
                                        .compat = EMBLA_COMPAT_WORDS};
    assert_status(embla_encoder_open(scratch_path(&s, "words.txt"), &both, &encoder),
                  EMBLA_ERR_ARGUMENT);
    char npy[132] = "\x93NUMPY\x01\0\x76"; /* a header of 118 bytes, then one number */
    int used = snprintf(npy + 10, sizeof npy - 10,
                        "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1), }");
    memset(npy + 10 + used, ' ', 118 - (size_t)used);
    npy[127] = '\n';
    scratch_write(scratch_path(&s, "rows.npy"), npy, sizeof npy);
    assert_status(embla_encoder_open(scratch_path(&s, "rows.npy"), NULL, &encoder),
                  EMBLA_ERR_NOT_FOUND);
    scratch_free(&s);
}

/* ---- n-grams ---- */

static void put_fasttext(scratch *s)
{
    fasttext_model m = fasttext_plain();
    model_file f = fasttext_file(&m);
    scratch_new(s);
    scratch_write(scratch_path(s, "model.bin"), f.bytes, f.size);
}

static void fasttext_words_are_means_of_their_row_and_their_n_grams(void **state)
{
    opened o = {0};
    embla_checkpoint *cp = NULL;
    embla_subwords *sub = NULL;
    embla_encoder_info info;
    float grams[3], word[3], both[3];
    size_t count = 0;
    (void)state;
    put_fasttext(&o.s);
    assert_ok(embla_encoder_open(scratch_path(&o.s, "model.bin"), NULL, &o.encoder));
    assert_ok(embla_tokenized_new(embla_encoder_tokenizer(o.encoder), &o.tokenized));
    assert_ok(embla_encoder_describe(o.encoder, &info));
    assert_true(info.subwords && info.counts);
    assert_int_equal(o.encoder->counts[0], 9);
    assert_int_equal(o.encoder->counts[2], 3);
    assert_ok(embla_checkpoint_open(o.s.path, NULL, &cp));
    assert_ok(embla_subwords_open(cp, &sub));
    /* "the" is row 1; the rows of the file are 0.5, 1.5, 2.5, .. */
    assert_ok(embla_subwords_vector(sub, "the", 3, grams, &count));
    assert_int_equal(encode(&o, "The", NULL, word).tokens, 1);
    for (size_t k = 0; k < 3; k++)
        assert_near(word[k],
                    ((double)grams[k] * (double)count + 3.5 + (double)k) / (double)(count + 1),
                    1e-6);
    /* a word that the file does not have, in lower case; a mark is no word */
    assert_ok(embla_subwords_vector(sub, "\xc3\xa9toile", 7, grams, NULL));
    embla_encoded detail = encode(&o, "\xc3\x89TOILE!", NULL, both);
    assert_int_equal(detail.tokens, 1);
    assert_int_equal(detail.unknown, 1);
    assert_memory_equal(both, grams, sizeof grams);
    detail = encode(&o, "the \xc3\x89toile", NULL, both);
    assert_int_equal(detail.tokens, 2);
    for (size_t k = 0; k < 3; k++)
        assert_near(both[k], ((double)word[k] + (double)grams[k]) / 2, 1e-6);
    embla_subwords_free(sub);
    embla_checkpoint_free(cp);
    shut(&o);
}

/* A table of words with n-grams, as embla_wordvec_write makes it: n-grams of 2 letters in 4
 * buckets, with rows of `wide` numbers. */
static void put_own(scratch *s, size_t wide)
{
    char header[512];
    int length = snprintf(
        header, sizeof header,
        "{\"__metadata__\":{\"minn\":\"2\",\"maxn\":\"2\",\"bucket\":\"4\"},"
        "\"subword_buckets\":{\"dtype\":\"I32\",\"shape\":[4],\"data_offsets\":[0,16]},"
        "\"embedding.weight\":{\"dtype\":\"F32\",\"shape\":[3,%d],\"data_offsets\":[16,40]},"
        "\"subwords\":{\"dtype\":\"F32\",\"shape\":[4,%zu],\"data_offsets\":[40,%zu]}}",
        DIM, wide, 40 + 16 * wide);
    st_file f = st_make((uint64_t)length, header, (size_t)length, 40 + 16 * wide);
    scratch_new(s);
    scratch_write(scratch_path(s, "own.vocab.txt"), "one\ntwo\nthree\n", 14);
    scratch_write(scratch_path(s, "own.safetensors"), f.bytes, f.size);
    free(f.bytes);
}

static void rows_of_n_grams_are_as_long_as_those_of_words(void **state)
{
    static const size_t wides[] = {1, 16};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(wides); i++) {
        scratch s;
        embla_encoder *encoder = NULL;
        const size_t live = embla_mem_live();
        put_own(&s, wides[i]);
        assert_status(embla_encoder_open(s.path, NULL, &encoder), EMBLA_ERR_SHAPE);
        assert_error_has(i == 0 ? "rows of words have 2 numbers, rows of their n-grams 1;"
                                : "rows of words have 2 numbers, rows of their n-grams 16;");
        assert_int_equal(embla_mem_live(), live);
        scratch_free(&s);
    }
    opened o = {0};
    embla_encoder_info info;
    put_own(&o.s, DIM);
    assert_ok(embla_encoder_open(o.s.path, NULL, &o.encoder));
    assert_ok(embla_encoder_describe(o.encoder, &info));
    assert_true(info.subwords);
    shut(&o);
}

/* ---- failures ---- */

static embla_status use(const char *path)
{
    embla_encoder *encoder = NULL;
    const char *text = "the caf\xc3\xa9s";
    const size_t length = strlen(text);
    const embla_texts one = {.texts = &text, .lengths = &length, .count = 1};
    float out[3];
    embla_status status = embla_encoder_open(path, NULL, &encoder);
    if (status == EMBLA_OK) status = embla_encoder_encode(encoder, &one, NULL, out, NULL);
    embla_encoder_free(encoder);
    return status;
}

static void every_allocation_and_every_call_of_the_system_may_fail(void **state)
{
    scratch s;
    embla_status status = EMBLA_ERR_MEMORY;
    (void)state;
    put_fasttext(&s);
    (void)scratch_path(&s, "model.bin");
    size_t live = embla_mem_live(), files = embla_io_live();
    for (size_t n = 1; status != EMBLA_OK; n++) {
        embla_mem_fail(n, false);
        status = use(s.path);
        embla_mem_fail(0, false);
        if (status != EMBLA_OK) assert_status(status, EMBLA_ERR_MEMORY);
        assert_int_equal(embla_mem_live(), live);
        assert_int_equal(embla_io_live(), files);
        assert_true(n < 1000);
    }
    for (size_t n = 1; n < 60; n++) {
        embla_io_fail(n, false, EMBLA_SYSTEM_OTHER);
        status = use(s.path);
        embla_io_fail(0, false, 0);
        if (status != EMBLA_OK) assert_status(status, EMBLA_ERR_IO);
        assert_int_equal(embla_mem_live(), live);
        assert_int_equal(embla_io_live(), files);
    }
    scratch_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_vocabulary_decides_how_a_text_is_cut),
        cmocka_unit_test(a_vocabulary_with_capitals_keeps_the_case_and_tries_lower_case),
        cmocka_unit_test(the_first_of_equal_words_has_the_vector),
        cmocka_unit_test(the_vector_is_the_mean_of_the_words_that_have_a_row),
        cmocka_unit_test(a_file_without_words_is_refused),
        cmocka_unit_test(fasttext_words_are_means_of_their_row_and_their_n_grams),
        cmocka_unit_test(rows_of_n_grams_are_as_long_as_those_of_words),
        cmocka_unit_test(every_allocation_and_every_call_of_the_system_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
