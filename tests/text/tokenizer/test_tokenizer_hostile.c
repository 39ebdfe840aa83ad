/* SPDX-License-Identifier: Apache-2.0 */
/* Files and texts that are made to be slow or wrong: each is refused, or opened in time and memory
 * that are bounded by its size. No test measures time; one that is not bounded never ends. */
#include "base/mem.h"
#include "embla_text.h"
#include "scratch.h"

typedef struct {
    char *bytes;
    size_t count, room;
} text;

static void put(text *t, const char *more)
{
    size_t length = strlen(more);
    if (t->count + length + 1 > t->room) {
        t->room = 2 * (t->room + length) + 4096;
        t->bytes = realloc(t->bytes, t->room);
        assert_non_null(t->bytes);
    }
    memcpy(t->bytes + t->count, more, length + 1);
    t->count += length;
}

static void repeat(text *t, const char *more, size_t times)
{
    for (size_t i = 0; i < times; i++) put(t, more);
}

static embla_status parse(const text *t, embla_tokenizer **out)
{
    return embla_tokenizer_open_bytes(t->bytes, t->count, "test", out);
}

static void assert_refused(text *t, embla_status status, const char *sentence)
{
    embla_tokenizer *tokenizer = NULL;
    const size_t live = embla_mem_live();
    assert_status(parse(t, &tokenizer), status);
    assert_error_has(sentence);
    assert_null(tokenizer);
    assert_int_equal(embla_mem_live(), live);
    free(t->bytes);
    *t = (text){0};
}

static embla_tokenizer *open_and_free(text *t)
{
    embla_tokenizer *tokenizer = NULL;
    assert_ok(parse(t, &tokenizer));
    free(t->bytes);
    *t = (text){0};
    return tokenizer;
}

static void assert_count(const embla_tokenizer *t, const char *bytes, size_t length, size_t count)
{
    embla_tokenized *e = NULL;
    assert_ok(embla_tokenized_new(t, &e));
    assert_ok(embla_tokenize(e, bytes, length, NULL));
    assert_int_equal(embla_tokenized_count(e), count);
    embla_tokenized_free(e);
}

/* ---- merges ---- */

static void a_million_merges_are_read_once_each(void **state)
{
    (void)state;
    text t = {0};
    put(&t,
        "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2},\"merges\":[\"a b\"");
    repeat(&t, ",\"a b\"", 1000000);
    put(&t, "]}}");
    embla_tokenizer *tokenizer = open_and_free(&t);
    assert_count(tokenizer, "abab", 4, 2);
    embla_tokenizer_free(tokenizer);
    put(&t,
        "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"ab\":2},\"merges\":[\"a b\"");
    repeat(&t, ",\"a c\"", 1000000);
    put(&t, "]}}");
    assert_refused(&t, EMBLA_ERR_FORMAT, "merge 1 needs 'c', which is not in the vocabulary of 3");
}

/* A merge may make what it began with; each takes a symbol away, so it ends. */
static void merges_in_a_circle_end(void **state)
{
    (void)state;
    text t = {0};
    put(&t, "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":1,\"aa\":2,\"##\":3,\"##a\":4},"
            "\"continuing_subword_prefix\":\"##\",\"merges\":[[\"a\",\"##\"],[\"a\",\"##a\"]]}}");
    embla_tokenizer *tokenizer = open_and_free(&t);
    assert_count(tokenizer, "aaaa", 4, 3);
    embla_tokenizer_free(tokenizer);
    put(&t, "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"\":0,\"a\":1},\"merges\":[[\"\",\"a\"]]}}");
    assert_refused(&t, EMBLA_ERR_FORMAT, "merge 0 needs ''");
}

/* Every pair merges, so that a word of n characters has n merges. */
static void a_word_of_a_million_characters_is_merged_in_bounded_time(void **state)
{
    (void)state;
    enum { MANY = 1 << 20 };
    text t = {0};
    put(&t, "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"aa\":1,\"aaaa\":2,\"aaaaaaaa\":3},"
            "\"merges\":[\"a a\",\"aa aa\",\"aaaa aaaa\"]}}");
    embla_tokenizer *tokenizer = open_and_free(&t);
    char *many = malloc(MANY);
    assert_non_null(many);
    memset(many, 'a', MANY);
    assert_count(tokenizer, many, MANY, MANY / 8);
    free(many);
    embla_tokenizer_free(tokenizer);
}

/* ---- nesting, numbers, lengths ---- */

static void deep_nesting_is_refused(void **state)
{
    (void)state;
    static const char *const parts[] = {"normalizer", "pre_tokenizer", "decoder", "added_tokens",
                                        "other"};
    for (size_t i = 0; i < COUNT_OF(parts); i++) {
        text t = {0};
        put(&t, "{\"model\":{\"vocab\":{\"a\":0}},\"");
        put(&t, parts[i]);
        put(&t, "\":");
        repeat(&t, "[", 1000000);
        repeat(&t, "]", 1000000);
        put(&t, "}");
        assert_refused(&t, EMBLA_ERR_FORMAT, "test: ");
    }
}

static void sequences_in_sequences_are_refused(void **state)
{
    (void)state;
    text t = {0};
    put(&t, "{\"model\":{\"vocab\":{\"a\":0}},\"normalizer\":");
    repeat(&t, "{\"type\":\"Sequence\",\"normalizers\":[", 1000);
    put(&t, "{\"type\":\"NFC\"}");
    repeat(&t, "]}", 1000);
    put(&t, "}");
    assert_refused(&t, EMBLA_ERR_FORMAT, "test: ");
}

static void numbers_without_a_place_are_refused(void **state)
{
    (void)state;
    static const char *const files[] = {
        "{\"model\":{\"vocab\":{\"a\":2147483648}}}",
        "{\"model\":{\"vocab\":{\"a\":18446744073709551616}}}",
        "{\"model\":{\"vocab\":{\"a\":-1}}}",
        "{\"model\":{\"vocab\":{\"a\":1e3}}}",
        "{\"model\":{\"type\":\"Unigram\",\"unk_id\":7,\"vocab\":[[\"a\",-1]]}}",
        "{\"model\":{\"type\":\"Unigram\",\"vocab\":[[\"a\",-1e999]]}}"};
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        text t = {0};
        put(&t, files[i]);
        assert_refused(&t, EMBLA_ERR_FORMAT, "test: ");
    }
    text t = {0};
    put(&t, "{\"model\":{\"vocab\":{\"a\":2147483647}}}");
    assert_refused(&t, EMBLA_ERR_UNSUPPORTED, "its highest token is 2147483647");
}

/* Padding to two billion tokens would take gigabytes for each text. */
static void lengths_of_gigabytes_are_refused(void **state)
{
    (void)state;
    static const char *const files[] = {
        "\"padding\":{\"strategy\":{\"Fixed\":2147483647},\"pad_id\":0}",
        "\"padding\":{\"strategy\":\"BatchLongest\",\"pad_to_multiple_of\":1048577,\"pad_id\":0}"};
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        text t = {0};
        put(&t, "{\"model\":{\"vocab\":{\"a\":0}},");
        put(&t, files[i]);
        put(&t, "}");
        assert_refused(&t, EMBLA_ERR_FORMAT, "the limit is 1048576");
    }
}

/* ---- the cache of words ---- */

/* The letters a to z are tokens 0 to 25; eight and sixteen q are 27 and 28. What a
 * word becomes is known. A text is one word. */
static embla_tokenizer *open_letters(void)
{
    text t = {0};
    put(&t, "{\"model\":{\"type\":\"BPE\",\"vocab\":{\"qqqqqqqq\":27,"
            "\"qqqqqqqqqqqqqqqq\":28,\"qq\":29,\"qqqq\":30");
    for (int i = 0; i < 26; i++) {
        char entry[16];
        (void)snprintf(entry, sizeof entry, ",\"%c\":%d", 'a' + i, i);
        put(&t, entry);
    }
    put(&t, "},\"merges\":[\"q q\",\"qq qq\",\"qqqq qqqq\",\"qqqqqqqq qqqqqqqq\"]}}");
    return open_and_free(&t);
}

/* Encodes a word of `same` letters q and others after them. At most eight tokens are cached. */
static void assert_letters(embla_tokenized *e, const char *word, size_t same, size_t length)
{
    const size_t first = same > 0;
    assert_ok(embla_tokenize(e, word, length, NULL));
    assert_int_equal(embla_tokenized_count(e), first + length - same);
    const int32_t *tokens = embla_tokenized_tokens(e);
    if (same > 0) assert_int_equal(tokens[0], same == 8 ? 27 : 28);
    for (size_t i = same; i < length; i++)
        assert_int_equal(tokens[first + i - same], word[i] - 'a');
}

/* The cache has 65,536 places, so of 200,000 words many share one. These have the same first bytes,
 * so that only later bytes tell them apart. */
static void words_that_share_a_place_in_the_cache_are_told_apart(void **state)
{
    (void)state;
    enum { WORDS = 200000, REST = 6 };
    embla_tokenizer *t = open_letters();
    embla_tokenized *e = NULL;
    assert_ok(embla_tokenized_new(t, &e));
    for (size_t same = 0; same <= 16; same += 8)
        for (unsigned i = 0; i < WORDS; i++) {
            char word[24];
            memset(word, 'q', same);
            for (unsigned k = 0, rest = i; k < REST; k++, rest /= 16)
                word[same + k] = (char)('a' + rest % 16);
            assert_letters(e, word, same, same + REST);
        }
    embla_tokenized_free(e);
    embla_tokenizer_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_million_merges_are_read_once_each),
        cmocka_unit_test(merges_in_a_circle_end),
        cmocka_unit_test(a_word_of_a_million_characters_is_merged_in_bounded_time),
        cmocka_unit_test(deep_nesting_is_refused),
        cmocka_unit_test(sequences_in_sequences_are_refused),
        cmocka_unit_test(numbers_without_a_place_are_refused),
        cmocka_unit_test(lengths_of_gigabytes_are_refused),
        cmocka_unit_test(words_that_share_a_place_in_the_cache_are_told_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
