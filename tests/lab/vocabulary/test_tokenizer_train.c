/* SPDX-License-Identifier: Apache-2.0 */
/* Tokenizers that are trained: what is learned from small texts can be counted by hand. Merges of
 * real texts are compared with Hugging Face's library by tests/peers/tokens_train.py. */
#include <errno.h>

#include "base/mem.h"
#include "comma_locale.h"
#include "embla_train.h"
#include "files/io.h"
#include "scratch.h"
#include "tokenizer/tokenizer.h"

typedef struct {
    scratch s;
    char text[SCRATCH_PATH], out[SCRATCH_PATH];
    embla_tokenizer *t;
    embla_tokenized *e;
} trained;

static trained set_up(const char *text)
{
    trained w = {.t = NULL};
    scratch_new(&w.s);
    (void)snprintf(w.text, sizeof w.text, "%s", scratch_path(&w.s, "text.txt"));
    (void)snprintf(w.out, sizeof w.out, "%s", scratch_path(&w.s, "tokenizer.json"));
    scratch_write(w.text, text, strlen(text));
    return w;
}

static trained train(const char *text, const embla_tokenizer_train_options *options)
{
    trained w = set_up(text);
    assert_ok(embla_tokenizer_train(w.text, w.out, options, NULL));
    assert_ok(embla_tokenizer_open_file(w.out, &w.t));
    assert_ok(embla_tokenized_new(w.t, &w.e));
    return w;
}

static void drop(trained *w)
{
    embla_tokenized_free(w->e);
    embla_tokenizer_free(w->t);
    scratch_free(&w->s);
}

static const char *name(const trained *w, int32_t token)
{
    const char *text = embla_tokenizer_text(w->t, token, NULL);
    return text ? text : "(none)";
}

static void assert_pieces(const trained *w, const char *text, const char *const *wanted,
                          size_t count)
{
    assert_ok(embla_tokenize(w->e, text, strlen(text), NULL));
    assert_int_equal(embla_tokenized_count(w->e), count);
    for (size_t i = 0; i < count; i++)
        assert_string_equal(name(w, embla_tokenized_tokens(w->e)[i]), wanted[i]);
}

/* ---- BPE ---- */

static void the_most_frequent_pair_is_merged_first(void **state)
{
    /* in lines of one word: "lo" 5 times, "ow" 5, then "low" */
    trained w =
        train("low\nlow\nlow\nlower\nlower\n", &(embla_tokenizer_train_options){.max_tokens = 259});
    const char *const pieces[] = {"low", "er"};
    (void)state;
    assert_string_equal(name(&w, 256), "lo"); /* of equal counts the lowest tokens */
    assert_string_equal(name(&w, 257), "low");
    assert_string_equal(name(&w, 258), "er"); /* twice, as are "we" and others: e comes first */
    assert_pieces(&w, "lower", pieces, 2);
    drop(&w);
}

static void every_byte_is_a_token(void **state)
{
    trained w = train("a b\n", &(embla_tokenizer_train_options){.max_tokens = 256});
    const char *decoded = NULL;
    size_t length = 0;
    static const char text[] = "\xc3\xa9\xf0\x9f\x98\x80 x";
    (void)state;
    assert_ok(embla_tokenize(w.e, text, sizeof text - 1, NULL));
    assert_int_equal(embla_tokenized_count(w.e), sizeof text - 1);
    assert_ok(embla_detokenize(w.e, embla_tokenized_tokens(w.e), embla_tokenized_count(w.e), false,
                               &decoded, &length));
    assert_string_equal(decoded, text);
    drop(&w);
}

static void a_run_of_one_letter_is_counted_as_the_reference_does(void **state)
{
    /* "aaaa": three pairs, but two merges fit; then "aa" "aa" */
    trained w = train("aaaa\naaaa\n", &(embla_tokenizer_train_options){.max_tokens = 258});
    const char *const pieces[] = {"aaaa", "a"};
    (void)state;
    assert_string_equal(name(&w, 256), "aa");
    assert_string_equal(name(&w, 257), "aaaa");
    assert_pieces(&w, "aaaaa", pieces, 2);
    drop(&w);
}

static void pairs_below_the_minimum_make_no_token(void **state)
{
    embla_tokenizer_trained made;
    trained w = set_up("ab ab ab cd\n");
    const embla_tokenizer_train_options options = {.max_tokens = 300, .min_count = 2};
    (void)state;
    assert_ok(embla_tokenizer_train(w.text, w.out, &options, &made));
    assert_int_equal(made.tokens, 258); /* "ab" and, with the space, "\u0120ab" */
    assert_int_equal(made.merges, 2);
    assert_int_equal(made.pieces, 4); /* "ab", " ab", " cd" and the line end */
    drop(&w);
}

static void special_tokens_come_first(void **state)
{
    static const char *const special[] = {"<|endoftext|>", "<pad>"};
    trained w = train("ab ab\n", &(embla_tokenizer_train_options){
                                     .max_tokens = 259, .special = special, .special_count = 2});
    (void)state;
    assert_string_equal(name(&w, 0), "<|endoftext|>");
    assert_string_equal(name(&w, 1), "<pad>");
    assert_true(w.t->special[1]);
    assert_ok(embla_tokenize(w.e, "<pad>ab", 7, NULL));
    assert_int_equal(embla_tokenized_count(w.e), 2);
    assert_int_equal(embla_tokenized_tokens(w.e)[0], 1);
    drop(&w);
}

/* ---- other kinds ---- */

static void wordpiece_marks_what_continues_a_word(void **state)
{
    trained w = train("hug hug hug pug pug HUG\n",
                      &(embla_tokenizer_train_options){
                          .kind = EMBLA_TOKENIZER_WORDPIECE, .max_tokens = 9, .lowercase = true});
    const char *const pieces[] = {"hug", "p", "##ug", "[UNK]"};
    (void)state;
    assert_string_equal(name(&w, 0), "[UNK]");
    assert_string_equal(name(&w, 1), "g");
    assert_string_equal(name(&w, 5), "##g");
    assert_string_equal(name(&w, 7), "##ug");
    assert_string_equal(name(&w, 8), "hug");
    assert_pieces(&w, "Hug pug x", pieces, 4);
    drop(&w);
}

static void words_are_ordered_by_frequency_then_bytes(void **state)
{
    trained w =
        train("b a, c a! b a\n",
              &(embla_tokenizer_train_options){.kind = EMBLA_TOKENIZER_WORDLEVEL, .max_tokens = 5});
    const char *const wanted[] = {"[UNK]", "a", "b", "!", ","};
    (void)state;
    for (int32_t i = 0; i < 5; i++) assert_string_equal(name(&w, i), wanted[i]);
    drop(&w);
}

/* ---- Unigram ---- */

static void unigram_learns_the_strings_that_pieces_share(void **state)
{
    /* the size is no limit here: what occurs often enough is a token */
    trained w = train("hug hug hug pug pug mug hugs\n",
                      &(embla_tokenizer_train_options){.kind = EMBLA_TOKENIZER_UNIGRAM});
    const char *const pieces[] = {"\xe2\x96\x81hug", "\xe2\x96\x81", "<unk>", "ug"};
    (void)state;
    assert_string_equal(name(&w, 0), "<unk>");
    assert_true(w.t->special[0]);
    assert_pieces(&w, "hug xug", pieces, 4);
    drop(&w);
}

static void unigram_keeps_every_character_and_at_most_the_size(void **state)
{
    static const char *const special[] = {"<pad>", "<unk>"};
    embla_tokenizer_trained made;
    trained w = set_up("the cat sat on the mat; the hat\nthat cat chats at the mat\n"
                       "the hats sat at the cats\n");
    const embla_tokenizer_train_options options = {
        .kind = EMBLA_TOKENIZER_UNIGRAM, .max_tokens = 16, .special = special, .special_count = 2};
    (void)state;
    assert_ok(embla_tokenizer_train(w.text, w.out, &options, &made));
    assert_int_equal(made.tokens, 16); /* 2 special ones, 11 characters with "▁", 3 strings */
    assert_int_equal(made.special, 2);
    assert_ok(embla_tokenizer_open_file(w.out, &w.t));
    assert_string_equal(name(&w, 1), "<unk>");
    for (const char *c = "thecasonm;"; *c; c++) assert_true(embla_tokenizer_token(w.t, c, 1) >= 0);
    embla_tokenizer_info info;
    assert_ok(embla_tokenizer_describe(w.t, &info));
    assert_int_equal(info.unknown, 1);
    drop(&w);
}

/* A piece of 8,000 characters: its probability is far below the smallest double. Counts that come
 * from sums of 0 would make single characters the best tokens. */
static void unigram_learns_from_a_long_piece(void **state)
{
    char text[8200];
    uint64_t seed = 5;
    size_t used = 0;
    (void)state;
    while (used < 8000) {
        bool often = check_below(&seed, 10) > 0;
        memcpy(text + used, often ? "abc" : "d", often ? 3 : 1);
        used += often ? 3 : 1;
    }
    memcpy(text + used, "\n", 2);
    trained w = train(
        text, &(embla_tokenizer_train_options){.kind = EMBLA_TOKENIZER_UNIGRAM, .max_tokens = 12});
    assert_true(strlen(name(&w, 1)) >= 3);
    assert_ok(embla_tokenize(w.e, text, used, NULL));
    assert_true(embla_tokenized_count(w.e) < used / 2);
    drop(&w);
}

/* What is encoded with the file that was written is decoded to the same text. */
static void every_kind_is_read_back(void **state)
{
    static const char text[] = "low lower lowest new newer";
    (void)state;
    for (int kind = EMBLA_TOKENIZER_WORDPIECE; kind <= EMBLA_TOKENIZER_UNIGRAM; kind++) {
        const char *decoded = NULL;
        size_t length = 0;
        trained w = train("low lower lowest\nnew newer low\n",
                          &(embla_tokenizer_train_options){.kind = (embla_tokenizer_kind)kind,
                                                           .max_tokens = 280});
        assert_ok(embla_tokenize(w.e, text, sizeof text - 1, NULL));
        assert_ok(embla_detokenize(w.e, embla_tokenized_tokens(w.e), embla_tokenized_count(w.e),
                                   false, &decoded, &length));
        assert_string_equal(decoded, text);
        drop(&w);
    }
}

/* Scores have a decimal point in every locale. */
static void a_locale_changes_nothing(void **state)
{
    const embla_tokenizer_train_options unigram = {.kind = EMBLA_TOKENIZER_UNIGRAM,
                                                   .max_tokens = 40};
    static const char text[] = "low lower lowest\nnew newer low\n";
    size_t counts[2];
    (void)state;
    trained w = train(text, &unigram);
    unsigned char *here = scratch_read(w.out, &counts[0]);
    drop(&w);
    comma_locale_begin();
    w = train(text, &unigram);
    comma_locale_end();
    unsigned char *there = scratch_read(w.out, &counts[1]);
    assert_int_equal(counts[0], counts[1]);
    assert_memory_equal(here, there, counts[0]);
    free(here);
    free(there);
    drop(&w);
}

/* ---- threads ---- */

/* Many lines of words that differ, so that blocks of several threads begin within lines. */
static char *make_lines(size_t bytes)
{
    char *text = malloc(bytes + 64);
    uint64_t seed = 3;
    size_t used = 0;
    assert_non_null(text);
    while (used < bytes) {
        size_t letters = 1 + (size_t)check_below(&seed, 9);
        for (size_t i = 0; i < letters; i++) text[used++] = (char)('a' + check_below(&seed, 6));
        text[used++] = check_below(&seed, 12) == 0 ? '\n' : ' ';
    }
    text[used] = '\0';
    return text;
}

static void the_number_of_threads_changes_nothing(void **state)
{
    char *text = make_lines(600000); /* three blocks */
    (void)state;
    for (int kind = EMBLA_TOKENIZER_WORDPIECE; kind <= EMBLA_TOKENIZER_UNIGRAM; kind++) {
        trained w = set_up(text);
        unsigned char *first = NULL;
        size_t length = 0;
        for (int threads = 1; threads <= 3; threads += 2) {
            const embla_tokenizer_train_options options = {.kind = (embla_tokenizer_kind)kind,
                                                           .max_tokens = 700,
                                                           .lowercase = true,
                                                           .threads = threads};
            size_t count = 0;
            assert_ok(embla_tokenizer_train(w.text, w.out, &options, NULL));
            unsigned char *bytes = scratch_read(w.out, &count);
            if (first) assert_int_equal(count, length);
            if (first) assert_memory_equal(bytes, first, length);
            if (first) free(bytes);
            if (!first) length = count;
            if (!first) first = bytes;
        }
        free(first);
        drop(&w);
    }
    free(text);
}

/* ---- failures ---- */

static void assert_refused(const char *text, size_t length,
                           const embla_tokenizer_train_options *options, embla_status status,
                           const char *message)
{
    trained w = set_up("");
    scratch_write(w.text, text, length);
    scratch_write(w.out, "old", 3);
    assert_status(embla_tokenizer_train(w.text, w.out, options, NULL), status);
    assert_error_has(message);
    size_t count = 0;
    unsigned char *left = scratch_read(w.out, &count);
    assert_int_equal(count, 3);
    free(left);
    assert_int_equal(scratch_count(&w.s, NULL), 2);
    drop(&w);
}

#define REFUSED(text, status, message, ...)                                                        \
    assert_refused(text, sizeof(text) - 1, &(embla_tokenizer_train_options){__VA_ARGS__}, status,  \
                   message)

static void what_cannot_be_trained_is_refused_and_the_old_file_stays(void **state)
{
    static const char *const twice[] = {"a", "a"}, *const empty[] = {""};
    (void)state;
    REFUSED("a", EMBLA_ERR_ARGUMENT, "a vocabulary of 255 tokens is too small", .max_tokens = 255);
    REFUSED("a", EMBLA_ERR_ARGUMENT, "max_tokens is -1", .max_tokens = -1);
    REFUSED("a", EMBLA_ERR_ARGUMENT, "min_count is -1", .min_count = -1);
    REFUSED("a", EMBLA_ERR_ARGUMENT, "kind is 9", .kind = (embla_tokenizer_kind)9);
    REFUSED("abc", EMBLA_ERR_ARGUMENT, "are 5", .kind = EMBLA_TOKENIZER_UNIGRAM, .max_tokens = 4);
    REFUSED("a", EMBLA_ERR_ARGUMENT, "both 'a'", .special = twice, .special_count = 2);
    REFUSED("a", EMBLA_ERR_ARGUMENT, "0 bytes", .special = empty, .special_count = 1);
    REFUSED("a", EMBLA_ERR_ARGUMENT, "NULL", .special_count = 1);
    REFUSED("ab\xff", EMBLA_ERR_FORMAT, "byte 2 is 0xff", .max_tokens = 300);
    REFUSED("", EMBLA_ERR_FORMAT, "0 bytes", .max_tokens = 300);
    REFUSED(" \n \n", EMBLA_ERR_FORMAT, "has no words", .kind = EMBLA_TOKENIZER_WORDLEVEL);
}

static bool stop(void *context, const char *what, int64_t done, int64_t total)
{
    assert_true(done <= total && *what);
    return --*(int *)context > 0;
}

static void a_caller_may_stop_it(void **state)
{
    (void)state;
    for (int calls = 1; calls < 4; calls++) {
        int left = calls;
        REFUSED("ab ab cd\n", EMBLA_ERR_STOPPED, "stopped", .max_tokens = 300, .progress = stop,
                .context = &left);
    }
}

static void every_allocation_and_every_call_of_the_system_may_fail(void **state)
{
    (void)state;
    for (int kind = EMBLA_TOKENIZER_WORDPIECE; kind <= EMBLA_TOKENIZER_UNIGRAM; kind++) {
        trained w = set_up("low Low lower\nnewest\n");
        const embla_tokenizer_train_options options = {
            .kind = (embla_tokenizer_kind)kind, .max_tokens = 270, .lowercase = true, .threads = 1};
        size_t live = embla_mem_live(), files = embla_io_live();
        embla_status status = EMBLA_ERR_MEMORY;
        for (size_t n = 1; status != EMBLA_OK; n++) {
            embla_mem_fail(n, false);
            status = embla_tokenizer_train(w.text, w.out, &options, NULL);
            embla_mem_fail(0, false);
            if (status != EMBLA_OK) assert_status(status, EMBLA_ERR_MEMORY);
            assert_int_equal(embla_mem_live(), live);
            assert_int_equal(embla_io_live(), files);
            assert_true(n < 2000);
        }
        for (size_t n = 1; n < 40; n++) {
            embla_io_fail(n, false, EMBLA_SYSTEM_OTHER);
            status = embla_tokenizer_train(w.text, w.out, &options, NULL);
            embla_io_fail(0, false, 0);
            assert_true(status == EMBLA_OK || status == EMBLA_ERR_IO);
            assert_int_equal(embla_mem_live(), live);
            assert_int_equal(embla_io_live(), files);
        }
        drop(&w);
    }
}

/* ---- words alone, and a corpus ---- */

static void a_corpus_has_the_tokens_of_a_tokenizer(void **state)
{
    static const char *const special[] = {"<|endoftext|>"};
    trained w =
        train("low lower\nlow\n", &(embla_tokenizer_train_options){
                                      .max_tokens = 260, .special = special, .special_count = 1});
    embla_corpus_options options = {
        .kind = EMBLA_CORPUS_TOKENIZER, .tokenizer = w.t, .validation = -1, .in_order = true};
    int32_t tokens[8], targets[8];
    embla_corpus *c = NULL;
    size_t used = 0;
    (void)state;
    assert_ok(embla_corpus_open(w.text, &options, &c));
    assert_int_equal(embla_corpus_vocab(c), 260);
    assert_ok(embla_tokenize(w.e, "low lower\nlow\n", 14, NULL));
    assert_int_equal(embla_corpus_tokens(c), embla_tokenized_count(w.e));
    assert_ok(embla_corpus_batch(c, &(embla_corpus_request){.step = 0, .batch = 1, .length = 2},
                                 tokens, targets, NULL));
    assert_int_equal(tokens[1], embla_tokenized_tokens(w.e)[1]);
    assert_int_equal(targets[0], tokens[1]);
    assert_status(embla_corpus_tokenize(c, "a", 1, 8, tokens, &used), EMBLA_ERR_UNSUPPORTED);
    embla_corpus_free(c);
    options.documents = true;
    assert_ok(embla_corpus_open(w.text, &options, &c));
    assert_int_equal(embla_corpus_documents(c), 2);
    assert_int_equal(embla_corpus_bos(c), 0);
    embla_corpus_free(c);
    options.tokenizer = NULL;
    assert_status(embla_corpus_open(w.text, &options, &c), EMBLA_ERR_ARGUMENT);
    drop(&w);
}

static void a_copy_is_the_same_and_other_formats_are_refused(void **state)
{
    trained w = train("ab ab\n", &(embla_tokenizer_train_options){.max_tokens = 257});
    const char *copy = scratch_path(&w.s, "copy.json");
    size_t count = 0, again = 0;
    (void)state;
    assert_ok(embla_tokenizer_copy(w.out, copy));
    unsigned char *first = scratch_read(w.out, &count), *second = scratch_read(copy, &again);
    assert_int_equal(count, again);
    assert_memory_equal(first, second, count);
    assert_status(embla_tokenizer_copy(w.text, copy), EMBLA_ERR_UNSUPPORTED);
    free(first);
    free(second);
    drop(&w);
}

static void tokens_are_words(void **state)
{
    trained w = train("ab ab\n", &(embla_tokenizer_train_options){.max_tokens = 257});
    embla_vocab *words = NULL;
    embla_tokenizer *again = NULL;
    int32_t token = 0;
    (void)state;
    assert_ok(embla_tokenizer_words(w.t, &words));
    assert_int_equal(embla_vocab_count(words), 257);
    assert_ok(embla_vocab_find(words, "ab", 2, &token));
    assert_int_equal(token, 256);
    assert_ok(embla_tokenizer_new_words(words, &again)); /* merges by the lowest token */
    assert_int_equal(embla_tokenizer_token(again, "ab", 2), 256);
    embla_tokenizer_free(again);
    embla_vocab_free(words);
    drop(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_most_frequent_pair_is_merged_first),
        cmocka_unit_test(every_byte_is_a_token),
        cmocka_unit_test(a_run_of_one_letter_is_counted_as_the_reference_does),
        cmocka_unit_test(pairs_below_the_minimum_make_no_token),
        cmocka_unit_test(special_tokens_come_first),
        cmocka_unit_test(wordpiece_marks_what_continues_a_word),
        cmocka_unit_test(words_are_ordered_by_frequency_then_bytes),
        cmocka_unit_test(unigram_learns_the_strings_that_pieces_share),
        cmocka_unit_test(unigram_keeps_every_character_and_at_most_the_size),
        cmocka_unit_test(unigram_learns_from_a_long_piece),
        cmocka_unit_test(every_kind_is_read_back),
        cmocka_unit_test(a_locale_changes_nothing),
        cmocka_unit_test(the_number_of_threads_changes_nothing),
        cmocka_unit_test(what_cannot_be_trained_is_refused_and_the_old_file_stays),
        cmocka_unit_test(a_caller_may_stop_it),
        cmocka_unit_test(every_allocation_and_every_call_of_the_system_may_fail),
        cmocka_unit_test(a_corpus_has_the_tokens_of_a_tokenizer),
        cmocka_unit_test(a_copy_is_the_same_and_other_formats_are_refused),
        cmocka_unit_test(tokens_are_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
