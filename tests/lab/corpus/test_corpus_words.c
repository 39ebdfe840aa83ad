/* SPDX-License-Identifier: Apache-2.0 */
/* Texts as words: how a text is cut, which words get tokens and in which order, what is unknown,
 * and texts that are meant to break it. The cuts are written down by hand; tokens are held against
 * a second count, by comparing each word with all others.
 */
#include "corpus/corpus.h"

#include "base/mem.h"
#include "name_corpus.h"
#include "unicode/cut.h"

static embla_corpus *open_words(const char *text, int64_t words, bool documents)
{
    const embla_corpus_options options = {.kind = EMBLA_CORPUS_WORDS,
                                          .max_words = words,
                                          .documents = documents,
                                          .validation = -1,
                                          .in_order = true};
    return open_text(&options, text, strlen(text));
}

/* ---- the rule ---- */

/* The words of a text, each in brackets. */
static const char *cut(const char *text, size_t length)
{
    static char out[1024];
    const char *end = text + length, *word;
    size_t used, at = 0;
    out[0] = '\0';
    for (; (used = embla_next_word(text, (size_t)(end - text), &word)) > 0; text = word + used)
        at += (size_t)snprintf(out + at, sizeof out - at, "[%.*s]", (int)used, word);
    return out;
}

#define CUT(text, wanted) assert_string_equal(cut(text, sizeof text - 1), wanted)

static void words_are_cut_by_the_stated_rule(void **state)
{
    (void)state;
    CUT("", "");
    CUT(" \t\r\f\v", "");
    CUT("To be, or not", "[To][be][,][or][not]");
    CUT("don't o'er 'tis th' ''", "[don't][o'er]['][tis][th][']['][']");
    CUT("a''b a'-b", "[a]['][']"
                     "[b][a]['][-][b]");
    CUT("one\ntwo\r\n\n", "[one][\n][two][\n][\n]");
    CUT("3.14 x2", "[3][.][14][x2]");
    CUT("na\xc3\xafve caf\xc3\xa9", "[na\xc3\xafve][caf\xc3\xa9]");
    CUT("l\xe2\x80\x99\xc3\xa9t\xc3\xa9", "[l\xe2\x80\x99\xc3\xa9t\xc3\xa9]"); /* U+2019 */
    CUT("2\xc3\x97"
        "3\xc3\xb7",
        "[2][\xc3\x97][3][\xc3\xb7]");
    CUT("a\xc2\xa0"
        "b\xe3\x80\x80"
        "c\xe2\x80\xa8"
        "d",
        "[a][b][c][d]"); /* U+00A0, U+3000, U+2028 */
    CUT("\xe4\xb8\xad\xe6\x96\x87\xe3\x80\x82", "[\xe4\xb8\xad\xe6\x96\x87][\xe3\x80\x82]");
    CUT("hi\xf0\x9f\x98\x80!", "[hi][\xf0\x9f\x98\x80][!]"); /* an emoji */
    CUT("a\0b\x7f"
        "c",
        "[a][b][c]");
    CUT("a\xff"
        "b",
        "[a][\xff][b]"); /* not UTF-8 */
    CUT("a'\xe2\x80", "[a]['][\xe2][\x80]");
}

/* ---- tokens ---- */

static void the_most_frequent_words_come_first_and_ties_in_order_of_bytes(void **state)
{
    embla_corpus *c = open_words("b a c b c Z b\na", 4, false);
    const char *const wanted[] = {"b", "a", "c", "\n"}; /* 3, 2, 2, and of "\n" and Z the first */
    int64_t unknown = 0;
    int32_t a[16], b[16];
    const int32_t tokens[] = {0, 1, 2, 0, 2, 4, 0, 3, 1};
    (void)state;
    assert_int_equal(embla_corpus_vocab(c), 5);
    assert_int_equal(embla_corpus_tokens(c), 9);
    assert_int_equal(embla_corpus_bos(c), -1);
    for (int i = 0; i < 4; i++) {
        size_t length = 0;
        assert_string_equal(embla_corpus_word(c, i, &length), wanted[i]);
        assert_int_equal(length, strlen(wanted[i]));
    }
    assert_null(embla_corpus_word(c, 4, NULL));
    assert_string_equal(embla_corpus_name(c, 4), "<unk>");
    assert_null(embla_corpus_word(c, -1, NULL));
    assert_int_equal(embla_corpus_unknown(c, &unknown), 4);
    assert_int_equal(unknown, 1);
    assert_ok(embla_corpus_batch(c, &(embla_corpus_request){.step = 0, .batch = 1, .length = 8}, a,
                                 b, NULL));
    assert_memory_equal(a, tokens, 8 * sizeof *a);
    assert_memory_equal(b, tokens + 1, 8 * sizeof *b);
    embla_corpus_free(c);
}

static void fewer_words_than_asked_are_all_of_them(void **state)
{
    (void)state;
    for (int64_t words = 0; words < 2; words++) { /* 0: all */
        embla_corpus *c = open_words("one two two", words * 100, false);
        int64_t unknown = -1;
        assert_int_equal(embla_corpus_vocab(c), 3);
        assert_int_equal(embla_corpus_unknown(c, &unknown), 2);
        assert_int_equal(unknown, 0);
        embla_corpus_free(c);
    }
}

static void lines_of_words_are_documents(void **state)
{
    embla_corpus *c = open_words("to be\r\n \n\t\nnot to\n", 2, true);
    int32_t a[4], b[4];
    const int32_t first[] = {3, 0, 1}, second[] = {3, 2, 0}; /* to, be; unknown 2, BOS 3 */
    (void)state;
    assert_int_equal(embla_corpus_documents(c), 2);
    assert_int_equal(embla_corpus_vocab(c), 4);
    assert_int_equal(embla_corpus_bos(c), 3);
    assert_int_equal(embla_corpus_tokens(c), 6);
    assert_ok(embla_corpus_batch(c, &(embla_corpus_request){.step = 0, .batch = 1, .length = 3}, a,
                                 b, NULL));
    assert_memory_equal(a, first, sizeof first);
    assert_int_equal(b[2], 3);
    assert_ok(embla_corpus_batch(c, &(embla_corpus_request){.step = 1, .batch = 1, .length = 3}, a,
                                 b, NULL));
    assert_memory_equal(a, second, sizeof second);
    embla_corpus_free(c);
}

static void a_text_is_encoded_as_the_corpus_was(void **state)
{
    embla_corpus *c = open_words("b a c b c Z b\na", 4, false);
    int32_t tokens[4] = {9, 9, 9, 9};
    size_t count = 0;
    (void)state;
    assert_ok(embla_corpus_tokenize(c, "c zebra\nb, b", 12, 3, tokens, &count));
    assert_int_equal(count, 6);
    assert_true(tokens[0] == 2 && tokens[1] == 4 && tokens[2] == 3 && tokens[3] == 9);
    assert_ok(embla_corpus_tokenize(c, NULL, 0, 0, NULL, &count));
    assert_int_equal(count, 0);
    embla_corpus_free(c);
}

/* More words than the table holds at first, against a plain count. */
static void many_words_are_counted_right(void **state)
{
    enum { WORDS = 20000, KINDS = 6000, MOST = 500 };
    static char text[WORDS * 8];
    static int counts[KINDS];
    uint64_t seed = 5;
    size_t at = 0;
    int64_t unknown = 0, outside = 0;
    (void)state;
    for (int i = 0; i < WORDS; i++) {
        int kind = (int)check_below(&seed, 1 + check_below(&seed, KINDS));
        counts[kind]++;
        at += (size_t)snprintf(text + at, sizeof text - at, "w%d ", kind);
    }
    embla_corpus *c = open_words(text, MOST, false);
    assert_int_equal(embla_corpus_vocab(c), MOST + 1);
    assert_int_equal(c->width, 2);
    int last = WORDS;
    char before[16] = "";
    for (int i = 0; i < MOST; i++) {
        const char *word = embla_corpus_word(c, i, NULL);
        int kind = atoi(word + 1);
        assert_true(counts[kind] < last || (counts[kind] == last && strcmp(word, before) > 0));
        last = counts[kind];
        (void)snprintf(before, sizeof before, "%s", word);
        counts[kind] = 0;
    }
    for (int kind = 0; kind < KINDS; kind++) {
        assert_true(counts[kind] <= last); /* none that is left out is more frequent */
        outside += counts[kind];
    }
    (void)embla_corpus_unknown(c, &unknown);
    assert_int_equal(unknown, outside);
    embla_corpus_free(c);
}

/* ---- what is refused, and what must not break it ---- */

static void refused(const char *text, size_t size, const embla_corpus_options *options,
                    embla_status wanted, const char *sentence)
{
    embla_corpus *c = NULL;
    scratch s;
    scratch_new(&s);
    scratch_write(scratch_path(&s, "text"), text, size);
    assert_status(embla_corpus_open(s.path, options, &c), wanted);
    assert_error_has(sentence);
    assert_null(c);
    scratch_free(&s);
}

static void texts_without_words_are_refused(void **state)
{
    const embla_corpus_options words = {.kind = EMBLA_CORPUS_WORDS, .validation = -1};
    const embla_corpus_options wrong = {.kind = EMBLA_CORPUS_WORDS, .max_words = -1};
    const embla_corpus_options more = {.kind = EMBLA_CORPUS_WORDS, .max_words = (1 << 22) + 1};
    const embla_corpus_options no_words = {.max_words = 5};
    (void)state;
    refused(" \t ", 3, &words, EMBLA_ERR_FORMAT, "lines without words");
    refused("one\xff", 4, &words, EMBLA_ERR_FORMAT, "byte 3 is 0xff");
    refused("one", 3, &words, EMBLA_ERR_SHAPE, "too short");
    refused("one two", 7, &wrong, EMBLA_ERR_ARGUMENT, "words is -1");
    refused("one two", 7, &more, EMBLA_ERR_ARGUMENT, "words is 4194305");
    refused("one two", 7, &no_words, EMBLA_ERR_ARGUMENT, "words is 5");
}

static void a_word_that_is_too_long_is_unknown(void **state)
{
    enum { LONG = 3000000 };
    char *text = malloc(LONG + 8);
    int64_t unknown = 0;
    (void)state;
    assert_non_null(text);
    memset(text, 'a', LONG);
    memcpy(text + LONG, " b b", 5);
    embla_corpus *c = open_words(text, 10, false);
    assert_int_equal(embla_corpus_vocab(c), 2);
    (void)embla_corpus_unknown(c, &unknown);
    assert_int_equal(unknown, 1);
    embla_corpus_free(c);
    const embla_corpus_options words = {.kind = EMBLA_CORPUS_WORDS, .validation = -1};
    refused(text, LONG, &words, EMBLA_ERR_FORMAT, "has no word of at most 255 bytes");
    text[255] = text[511] = ' ';
    text[767] = '\0';
    c = open_words(text, 10, false);
    assert_int_equal(embla_corpus_vocab(c), 2); /* 255 bytes are not too long */
    embla_corpus_free(c);
    free(text);
}

static void every_allocation_may_fail(void **state)
{
    char text[40000];
    size_t at = 0, live = embla_mem_live(), failed = 0;
    scratch s;
    const embla_corpus_options options = {.kind = EMBLA_CORPUS_WORDS, .max_words = 50};
    (void)state;
    for (int i = 0; i < 5000; i++) at += (size_t)snprintf(text + at, sizeof text - at, "w%d ", i);
    scratch_new(&s);
    scratch_write(scratch_path(&s, "text"), text, at);
    for (size_t n = 1;; n++, failed++) {
        embla_corpus *c = NULL;
        embla_mem_fail(n, false);
        embla_status status = embla_corpus_open(s.path, &options, &c);
        embla_mem_fail(0, false);
        if (status == EMBLA_OK) {
            embla_corpus_free(c);
            break;
        }
        assert_status(status, EMBLA_ERR_MEMORY);
        assert_null(c);
        assert_int_equal(embla_mem_live(), live);
    }
    assert_true(failed >= 8);
    assert_int_equal(embla_mem_live(), live);
    scratch_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_cut_by_the_stated_rule),
        cmocka_unit_test(the_most_frequent_words_come_first_and_ties_in_order_of_bytes),
        cmocka_unit_test(fewer_words_than_asked_are_all_of_them),
        cmocka_unit_test(lines_of_words_are_documents),
        cmocka_unit_test(a_text_is_encoded_as_the_corpus_was),
        cmocka_unit_test(many_words_are_counted_right),
        cmocka_unit_test(texts_without_words_are_refused),
        cmocka_unit_test(a_word_that_is_too_long_is_unknown),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
