/* SPDX-License-Identifier: Apache-2.0 */
/* Stages that few files have. What they must give was printed by Hugging Face's library. */
#include "embla_text.h"
#include "scratch.h"
#include "unicode/unicode.h"

/* WordLevel: a piece that is in the list is its index, any other is 0. */
#define WORDS_OF(pre, vocab)                                                                       \
    "{\"pre_tokenizer\":" pre ",\"model\":{\"type\":\"WordLevel\",\"unk_token\":\"?\","            \
    "\"vocab\":{\"?\":0," vocab "}}}"

static embla_tokenized *open_text(const char *json, embla_tokenizer **t)
{
    embla_tokenized *e = NULL;
    assert_ok(embla_tokenizer_open_bytes(json, strlen(json), "test", t));
    assert_ok(embla_tokenized_new(*t, &e));
    return e;
}

static void assert_encodes(embla_tokenized *e, const char *text, const int32_t *wanted,
                           size_t count)
{
    assert_ok(embla_tokenize(e, text, strlen(text), NULL));
    assert_int_equal(embla_tokenized_count(e), count);
    if (count > 0) assert_memory_equal(embla_tokenized_tokens(e), wanted, count * sizeof *wanted);
}

/* ---- UnicodeScripts ---- */

static void a_text_is_cut_where_its_script_changes(void **state)
{
    (void)state;
    embla_tokenizer *t = NULL;
    embla_tokenized *e =
        open_text(WORDS_OF("{\"type\":\"UnicodeScripts\"}",
                           "\"Hello \":1,\"\xd0\xbc\xd0\xb8\xd1\x80 \":2,\"123\":3,\"ab\":4,"
                           "\"\xe3\x81\xa9\xe7\x94\x9f\":5,\"\xe3\x80\x82\":6,\"Yes\":7,"
                           "\"\xe3\x82\xab\xe3\x83\xbc\":8,\"a\":9,\"\xcc\x81\":10,\"b\":11"),
                  &t);
    assert_encodes(e, "Hello \xd0\xbc\xd0\xb8\xd1\x80 123", (int32_t[]){1, 2, 3}, 3);
    assert_encodes(e, " ab", (int32_t[]){4}, 1); /* a space in front is lost */
    assert_encodes(e, "  ", NULL, 0);
    assert_encodes(e, "", NULL, 0);
    /* Hiragana and Katakana are Han, and so is the mark of a long vowel. */
    assert_encodes(e, "\xe3\x81\xa9\xe7\x94\x9f\xe3\x80\x82Yes", (int32_t[]){5, 6, 7}, 3);
    assert_encodes(e,
                   "\xe3\x82\xab\xe3\x83\xbc"
                   "a",
                   (int32_t[]){8, 9}, 2);
    assert_encodes(e,
                   "a\xcc\x81"
                   "b",
                   (int32_t[]){9, 10, 11}, 3);
    embla_tokenized_free(e);
    embla_tokenizer_free(t);
}

static void every_code_point_has_a_script(void **state)
{
    (void)state;
    assert_int_equal(embla_char_script(' '), 0);
    assert_int_equal(embla_char_script('a'), embla_char_script('Z'));
    assert_int_not_equal(embla_char_script('a'), embla_char_script('1'));
    assert_int_equal(embla_char_script(0x3042), embla_char_script(0x4e00));
    assert_int_equal(embla_char_script(0x10ffff), 0);
    for (size_t i = 0; i < embla_script_count; i++) { /* the first and last of each range */
        const uint32_t first = embla_script_starts[i];
        const uint32_t end = i + 1 < embla_script_count ? embla_script_starts[i + 1] : 0x110000;
        assert_true(end > first);
        assert_int_equal(embla_char_script(first), embla_script_numbers[i]);
        assert_int_equal(embla_char_script(end - 1), embla_script_numbers[i]);
    }
}

/* ---- CTC ---- */

#define CTC_STAGE(cleanup)                                                                         \
    "{\"type\":\"CTC\",\"pad_token\":\"<pad>\",\"word_delimiter_token\":\"|\","                    \
    "\"cleanup\":" cleanup "}"
#define CTC_MODEL                                                                                  \
    "{\"type\":\"WordLevel\",\"unk_token\":\"<pad>\",\"vocab\":{\"<pad>\":0,\"h\":1,\"e\":2,"      \
    "\"l\":3,\"o\":4,\"|\":5,\"a\":6,\" .\":7,\"<pad>x\":8}}"
#define CTC_OF(decoder) "{\"decoder\":" decoder ",\"model\":" CTC_MODEL "}"

static void assert_decodes(const char *json, const char *wanted)
{
    static const int32_t tokens[] = {0, 1, 1, 0, 2, 3, 3, 0, 3, 4, 5, 5, 6, 7, 8};
    embla_tokenizer *t = NULL;
    embla_tokenized *e = open_text(json, &t);
    const char *text = NULL;
    size_t length = 0;
    assert_ok(embla_detokenize(e, tokens, COUNT_OF(tokens), false, &text, &length));
    assert_string_equal(text, wanted);
    assert_ok(embla_detokenize(e, tokens, 1, false, &text, &length)); /* nothing but padding */
    assert_int_equal(length, 0);
    assert_ok(embla_detokenize(e, tokens, 0, false, &text, &length));
    assert_int_equal(length, 0);
    embla_tokenized_free(e);
    embla_tokenizer_free(t);
}

static void ctc_drops_repetitions_and_padding(void **state)
{
    (void)state;
    assert_decodes(CTC_OF(CTC_STAGE("true")), "hello a.x");
    assert_decodes(CTC_OF(CTC_STAGE("false")), "hello|a .x");
    /* What is empty does not reach the next decoder, which puts spaces between strings. */
    assert_decodes(CTC_OF("{\"type\":\"Sequence\",\"decoders\":[" CTC_STAGE(
                       "true") ",{\"type\":\"WordPiece\",\"prefix\":\"##\",\"cleanup\":false}]}"),
                   "h e l l o   a . x");
}

static void ctc_needs_its_strings(void **state)
{
    (void)state;
    static const char *const files[] = {
        "{\"decoder\":{\"type\":\"CTC\"},\"model\":{\"vocab\":{\"a\":0}}}",
        "{\"decoder\":{\"type\":\"CTC\",\"pad_token\":\"x\"},\"model\":{\"vocab\":{\"a\":0}}}",
        ("{\"decoder\":{\"type\":\"CTC\",\"pad_token\":\"x\",\"word_delimiter_token\":\"\"},"
         "\"model\":{\"vocab\":{\"a\":0}}}")};
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        embla_tokenizer *t = NULL;
        assert_status(embla_tokenizer_open_bytes(files[i], strlen(files[i]), "test", &t),
                      EMBLA_ERR_FORMAT);
        assert_error_has("CTC");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_text_is_cut_where_its_script_changes),
        cmocka_unit_test(every_code_point_has_a_script),
        cmocka_unit_test(ctc_drops_repetitions_and_padding),
        cmocka_unit_test(ctc_needs_its_strings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
