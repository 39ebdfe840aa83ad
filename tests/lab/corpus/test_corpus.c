/* SPDX-License-Identifier: Apache-2.0 */
/* Text to tokens and batches (learn/corpus, learn/corpus_batch). Small texts are written to a
 * folder of the test and held against what is plain to see; order and split against their
 * definition: each document once an epoch, each token of validation once. Real texts
 * (names, tinyshakespeare) are in EMBLA_DATA; without it their tests are skipped.
 */
#include "corpus/corpus.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <sys/syscall.h>

#include "base/mem.h"
#include "files/io.h"
#include "scratch.h"

static const char *to_be_cut; /* a file that becomes 1 byte long at the next read of any */

/* Instead of the C library's. */
ssize_t pread(int fd, void *out, size_t bytes, off_t offset)
{
    if (to_be_cut) assert_int_equal(truncate(to_be_cut, 1), 0);
    to_be_cut = NULL;
    return (ssize_t)syscall(SYS_pread64, fd, out, bytes, offset);
}

static const embla_corpus_options as_stream = {.validation = -1};
static const embla_corpus_options as_lines = {.documents = true, .in_order = true};
static const embla_corpus_options as_bytes = {.kind = EMBLA_CORPUS_BYTES, .validation = -1};
static const embla_corpus_options as_tokens = {
    .kind = EMBLA_CORPUS_TOKENS, .validation = -1, .in_order = true};

/* A corpus of these bytes, by a file that is gone when it is open. */
static embla_status open_bytes(const void *bytes, size_t size, const embla_corpus_options *options,
                               embla_corpus **out)
{
    scratch s;
    scratch_new(&s);
    scratch_write(scratch_path(&s, "text"), bytes, size);
    embla_status status = embla_corpus_open(s.path, options, out);
    scratch_free(&s);
    return status;
}

static embla_corpus *open_string(const char *string, const embla_corpus_options *options)
{
    embla_corpus *c = NULL;
    assert_ok(open_bytes(string, strlen(string), options, &c));
    return c;
}

static void refused(const void *bytes, size_t size, const embla_corpus_options *options,
                    embla_status wanted, const char *sentence)
{
    embla_corpus *c = NULL;
    assert_status(open_bytes(bytes, size, options, &c), wanted);
    assert_error_has(sentence);
    assert_null(c);
}

/* Tokens as their words, "|" for BOS, "_" where the target is none. */
static const char *spelled(const embla_corpus *c, const int32_t *tokens, size_t count)
{
    static char out[4096];
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        const char *word =
            tokens[i] == EMBLA_TARGET_IGNORE ? "_" : embla_corpus_word(c, tokens[i], NULL);
        if (!word) assert_int_equal(tokens[i], embla_corpus_bos(c));
        at += (size_t)snprintf(out + at, sizeof out - at, "%s", word ? word : "|");
    }
    return out;
}

static void assert_batch(const embla_corpus *c, int64_t step, size_t length, const char *tokens,
                         const char *targets)
{
    int32_t a[64], b[64];
    assert_ok(embla_corpus_batch(
        c, &(embla_corpus_request){.step = step, .batch = 1, .length = length}, a, b, NULL));
    assert_string_equal(spelled(c, a, length), tokens);
    assert_string_equal(spelled(c, b, length), targets);
}

/* ---- documents ---- */

static void lines_are_documents_between_two_bos(void **state)
{
    embla_corpus *c = open_string("emma\nava\r\n\n\r\nmo", &as_lines);
    (void)state;
    assert_int_equal(embla_corpus_documents(c), 3);
    assert_int_equal(embla_corpus_vocab(c), 6); /* a e m o v, BOS */
    assert_int_equal(embla_corpus_bos(c), 5);
    assert_int_equal(embla_corpus_tokens(c), 4 + 3 + 2 + 3);
    assert_batch(c, 0, 6, "|emmaa", "emma|_"); /* token 0 fills up */
    assert_batch(c, 1, 6, "|avaaa", "ava|__");
    assert_batch(c, 2, 3, "|mo", "mo|");
    assert_batch(c, 3, 3, "|em", "emm"); /* shortened, and over again */
    assert_batch(c, 5, 1, "|", "m");
    assert_null(embla_corpus_word(c, 5, NULL));
    assert_null(embla_corpus_word(c, -1, NULL));
    assert_null(embla_corpus_word(c, 6, NULL));
    assert_string_equal(embla_corpus_name(c, 0), embla_corpus_word(c, 0, NULL));
    assert_string_equal(embla_corpus_name(c, embla_corpus_bos(c)), "<bos>");
    assert_null(embla_corpus_name(c, -1));
    assert_null(embla_corpus_name(c, 6));
    assert_null(embla_corpus_name(NULL, 0));
    embla_corpus_free(c);
    embla_corpus_free(NULL);
}

static void used_makes_a_batch_as_long_as_its_longest_sequence(void **state)
{
    int32_t a[64], b[64];
    size_t used = 0;
    embla_corpus *c = open_string("emma\nava\nmo\n", &as_lines);
    (void)state;
    for (size_t i = 0; i < 64; i++) a[i] = b[i] = 77;
    assert_ok(embla_corpus_batch(c, &(embla_corpus_request){.step = 0, .batch = 1, .length = 16}, a,
                                 b, &used));
    assert_int_equal(used, 5);
    assert_string_equal(spelled(c, b, 5), "emma|");
    assert_int_equal(a[5], 77);
    assert_ok(embla_corpus_batch(c, &(embla_corpus_request){.step = 1, .batch = 2, .length = 16}, a,
                                 b, &used)); /* mo, emma */
    assert_int_equal(used, 5);
    assert_string_equal(spelled(c, a, 10), "|moaa|emma");
    assert_string_equal(spelled(c, b, 10), "mo|__emma|");
    assert_ok(embla_corpus_batch(c, &(embla_corpus_request){.step = 0, .batch = 3, .length = 4}, a,
                                 b, &used));
    assert_int_equal(used, 4);
    assert_string_equal(spelled(c, b, 12), "emmaava|mo|_");
    assert_int_equal(b[12], 77);
    embla_corpus_free(c);
    c = open_string("abcdefgh", &as_stream);
    assert_ok(embla_corpus_batch(c, &(embla_corpus_request){.step = 0, .batch = 2, .length = 3}, a,
                                 b, &used));
    assert_int_equal(used, 3);
    embla_corpus_free(c);
}

/* names of three letters, all different: which one a sequence is can be read off. */
enum { MANY = 1000 };
static embla_corpus *numbered(uint64_t seed, double validation, bool in_order)
{
    char text[MANY * 4 + 1];
    for (int i = 0; i < MANY; i++) (void)snprintf(text + 4 * i, 5, "%03d\n", i);
    return open_string(
        text, &(embla_corpus_options){
                  .documents = true, .seed = seed, .validation = validation, .in_order = in_order});
}

static int number_in(const int32_t *tokens)
{
    assert_int_equal(tokens[0], 10);
    return tokens[1] * 100 + tokens[2] * 10 + tokens[3];
}

static void each_document_comes_once_an_epoch(void **state)
{
    enum { B = 7, EPOCHS = 7 };
    static int32_t a[B * 4], b[B * 4];
    static int seen[MANY], order[EPOCHS * MANY];
    embla_corpus *c = numbered(42, 0, false);
    (void)state;
    for (int s = 0; s < EPOCHS * MANY / B; s++) {
        assert_ok(embla_corpus_batch(c, &(embla_corpus_request){.step = s, .batch = B, .length = 4},
                                     a, b, NULL));
        for (int i = 0; i < B; i++) {
            assert_int_equal(b[4 * i + 3], 10);
            order[s * B + i] = number_in(a + 4 * i);
            seen[order[s * B + i]]++;
        }
        if ((s + 1) * B % MANY == 0)
            for (int i = 0; i < MANY; i++) assert_int_equal(seen[i], (s + 1) * B / MANY);
    }
    int same = 0, in_place = 0;
    for (int i = 0; i < MANY; i++) {
        same += order[i] == order[MANY + i];
        in_place += order[i] == i;
    }
    assert_true(same < 10 && in_place < 10); /* 1 each is to be expected */
    assert_ok(embla_corpus_batch(c, &(embla_corpus_request){.step = 3, .batch = 1, .length = 4}, a,
                                 b, NULL)); /* another batch size, same order */
    assert_int_equal(number_in(a), order[3]);
    assert_ok(embla_corpus_batch(c, &(embla_corpus_request){.step = 1, .batch = 3, .length = 4}, a,
                                 b, NULL));
    assert_int_equal(number_in(a + 8), order[5]);
    embla_corpus_free(c);
    c = numbered(43, 0, false);
    for (int i = same = 0; i < MANY; i++) {
        assert_ok(embla_corpus_batch(c, &(embla_corpus_request){.step = i, .batch = 1, .length = 4},
                                     a, b, NULL));
        same += number_in(a) == order[i];
    }
    assert_true(same < 10);
    embla_corpus_free(c);
}

static void the_order_is_a_permutation_of_any_number(void **state)
{
    static const uint64_t sizes[] = {1, 2, 3, 4, 5, 15, 16, 17, 63, 64, 65, 256, 257, 4097};
    static uint8_t seen[4097];
    (void)state;
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
        for (uint64_t epoch = 0; epoch < 5; epoch++) {
            memset(seen, 0, sizeof seen);
            for (uint64_t i = 0; i < sizes[k]; i++) {
                uint64_t at = embla_corpus_order(k, epoch, sizes[k], i);
                assert_true(at < sizes[k] && !seen[at]);
                seen[at] = 1;
            }
        }
    assert_true(embla_corpus_order(1, 2, INT64_MAX, 3) < INT64_MAX);
}

/* Of 3 things all 6 orders come alike; of 50 each comes to each place alike. */
static void the_order_favours_nothing(void **state)
{
    static int places[50][50];
    int orders[27] = {0}, odd = 0;
    (void)state;
    for (uint64_t epoch = 0; epoch < 6000; epoch++) {
        uint64_t code = 0;
        for (uint64_t i = 0; i < 3; i++) code = 3 * code + embla_corpus_order(9, epoch, 3, i);
        orders[code]++;
    }
    for (int i = 0; i < 27; i++) {
        if (orders[i] > 0) odd++;
        if (orders[i] > 0) assert_in_range(orders[i], 850, 1150); /* 5 spreads of 29 */
    }
    assert_int_equal(odd, 6);
    for (uint64_t epoch = 0; epoch < 5000; epoch++)
        for (uint64_t i = 0; i < 50; i++) places[i][embla_corpus_order(9, epoch, 50, i)]++;
    for (int i = 0; i < 50; i++)
        for (int k = 0; k < 50; k++) assert_in_range(places[i][k], 50, 150); /* 100, spread 10 */
}

/* What these are must not change: a training goes on with them. */
static void draws_are_the_same_for_ever(void **state)
{
    static const uint64_t order[] = {4916, 10964, 21922, 9482, 23859, 25105, 11566, 2683};
    static const char *const drawn = "cdrsfgop";
    int32_t a[8], b[8];
    embla_corpus *c = open_string("abcdefghijklmnopqrstuvwxyz", &(embla_corpus_options){.seed = 5});
    (void)state;
    for (uint64_t i = 0; i < 8; i++)
        assert_int_equal(embla_corpus_order(42, i, 32033, i), order[i]);
    assert_ok(embla_corpus_batch(c, &(embla_corpus_request){.step = 3, .batch = 4, .length = 2}, a,
                                 b, NULL));
    assert_string_equal(spelled(c, a, 8), drawn);
    embla_corpus_free(c);
}

/* ---- streams ---- */

static void a_stream_is_drawn_from_everywhere(void **state)
{
    enum { B = 20, T = 3 };
    int32_t a[B * T], b[B * T];
    int met[7] = {0};
    embla_corpus *c = open_string("jihgfedcba", &as_stream); /* tokens 9 .. 0 */
    (void)state;
    assert_int_equal(embla_corpus_tokens(c), 10);
    assert_int_equal(embla_corpus_vocab(c), 10);
    assert_int_equal(embla_corpus_documents(c), 1);
    assert_int_equal(embla_corpus_bos(c), -1);
    for (int64_t step = 0; step < 350; step++) {
        assert_ok(embla_corpus_batch(
            c, &(embla_corpus_request){.step = step, .batch = B, .length = T}, a, b, NULL));
        for (int i = 0; i < B * T; i++) assert_int_equal(b[i], a[i] - 1);
        for (int i = 0; i < B; i++) {
            assert_int_equal(a[i * T + 2], a[i * T] - 2);
            met[9 - a[i * T]]++;
        }
    }
    for (int i = 0; i < 7; i++) assert_in_range(met[i], 850, 1150); /* 1000, spread 29 */
    assert_ok(embla_corpus_batch(c, &(embla_corpus_request){.step = 0, .batch = 1, .length = 9}, a,
                                 b, NULL));
    assert_string_equal(spelled(c, b, 9), "ihgfedcba");
    assert_status(embla_corpus_batch(
                      c, &(embla_corpus_request){.step = 0, .batch = 1, .length = 10}, a, b, NULL),
                  EMBLA_ERR_SHAPE);
    assert_error_has("sequences of 10 tokens and a target need more than the 10");
    embla_corpus_free(c);
}

static void a_batch_depends_on_nothing_that_came_before(void **state)
{
    enum { B = 37, T = 5, N = B * T };
    int32_t a[2][N], b[2][N], few[4 * T], fewer[4 * T];
    char text[2000];
    (void)state;
    for (size_t i = 0; i < sizeof text - 1; i++) text[i] = (char)('a' + i * i / 7 % 26);
    text[sizeof text - 1] = 0;
    embla_corpus *c = open_string(text, &(embla_corpus_options){.seed = 1});
    embla_corpus *d = open_string(text, &(embla_corpus_options){.seed = 2});
    assert_ok(embla_corpus_batch(c, &(embla_corpus_request){.step = 11, .batch = B, .length = T},
                                 a[0], b[0], NULL));
    assert_ok(embla_corpus_batch(c, &(embla_corpus_request){.step = 12, .batch = B, .length = T},
                                 a[1], b[1], NULL));
    assert_memory_not_equal(a[0], a[1], sizeof a[0]);
    for (int from = 16; from < B; from += 16) /* 16 are drawn at a time */
        assert_memory_not_equal(a[0] + from * T, a[0] + (from - 16) * T, 5 * T * sizeof a[0][0]);
    assert_ok(embla_corpus_batch(c, &(embla_corpus_request){.step = 11, .batch = B, .length = T},
                                 a[1], b[1], NULL));
    assert_memory_equal(a[0], a[1], sizeof a[0]);
    assert_memory_equal(b[0], b[1], sizeof b[0]);
    assert_ok(embla_corpus_batch(c, &(embla_corpus_request){.step = 11, .batch = 4, .length = T},
                                 few, fewer, NULL)); /* a part of the same */
    assert_memory_equal(few, a[0], sizeof few);
    assert_ok(embla_corpus_batch(d, &(embla_corpus_request){.step = 11, .batch = B, .length = T},
                                 a[1], b[1], NULL));
    assert_memory_not_equal(a[0], a[1], sizeof a[0]);
    assert_ok(embla_corpus_batch(
        c, &(embla_corpus_request){.step = INT64_MAX / B - 1, .batch = B, .length = T}, a[1], b[1],
        NULL));
    embla_corpus_free(c);
    embla_corpus_free(d);
}

static void a_stream_in_order_is_cut_into_pieces(void **state)
{
    embla_corpus_options options = {.validation = -1, .in_order = true};
    embla_corpus *c = open_string("abcdefghij", &options);
    (void)state;
    assert_batch(c, 0, 4, "abcd", "bcde");
    assert_batch(c, 1, 4, "efgh", "fghi");
    assert_batch(c, 2, 4, "abcd", "bcde"); /* ij is no whole piece */
    assert_batch(c, 2, 3, "ghi", "hij");
    assert_batch(c, 3, 3, "abc", "bcd");
    assert_batch(c, 1, 5, "abcde", "bcdef"); /* nothing comes after j */
    embla_corpus_free(c);
}

/* ---- validation ---- */

static void of_a_stream_the_last_part_is_for_validation(void **state)
{
    int32_t a[6], b[6];
    size_t used = 0;
    embla_corpus *c =
        open_string("abcdefghijklmnopqrst", &(embla_corpus_options){.validation = .4});
    (void)state;
    for (int64_t step = 0; step < 100; step++) {
        assert_ok(embla_corpus_batch(
            c, &(embla_corpus_request){.step = step, .batch = 1, .length = 3}, a, b, NULL));
        assert_true(b[2] < 12);
    }
    assert_ok(embla_corpus_batch(
        c, &(embla_corpus_request){.step = 0, .batch = 2, .length = 3, .validation = true}, a, b,
        NULL)); /* mnopqrst: 7 targets */
    assert_string_equal(spelled(c, a, 6), "mnopqr");
    assert_string_equal(spelled(c, b, 6), "nopqrs");
    assert_ok(embla_corpus_batch(
        c, &(embla_corpus_request){.step = 1, .batch = 2, .length = 3, .validation = true}, a, b,
        NULL));
    assert_string_equal(spelled(c, a, 6), "saaaaa");
    assert_string_equal(spelled(c, b, 6), "t_____");
    assert_ok(embla_corpus_batch(
        c, &(embla_corpus_request){.step = 1, .batch = 2, .length = 3, .validation = true}, a, b,
        &used));
    assert_int_equal(used, 1);
    assert_string_equal(spelled(c, b, 2), "t_");
    assert_status(
        embla_corpus_batch(
            c, &(embla_corpus_request){.step = 2, .batch = 2, .length = 3, .validation = true}, a,
            b, NULL),
        EMBLA_ERR_RANGE);
    assert_error_has("validation batch 2 is out of range: there are 2 batches (8 tokens are");
    assert_ok(embla_corpus_batch(
        c, &(embla_corpus_request){.step = 6, .batch = 1, .length = 1, .validation = true}, a, b,
        NULL));
    assert_status(
        embla_corpus_batch(
            c, &(embla_corpus_request){.step = 7, .batch = 1, .length = 1, .validation = true}, a,
            b, NULL),
        EMBLA_ERR_RANGE);
    assert_ok(embla_corpus_batch(
        c, &(embla_corpus_request){.step = 0, .batch = 1, .length = 6, .validation = true}, a, b,
        &used));
    assert_status(
        embla_corpus_batch(
            c,
            &(embla_corpus_request){.step = INT64_MAX, .batch = 1, .length = 1, .validation = true},
            a, b, NULL),
        EMBLA_ERR_ARGUMENT);
    embla_corpus_free(c);
    c = open_string("abcdefghij", NULL); /* 0.1: one token, and nothing comes after it */
    assert_status(
        embla_corpus_batch(
            c, &(embla_corpus_request){.step = 0, .batch = 1, .length = 1, .validation = true}, a,
            b, NULL),
        EMBLA_ERR_RANGE);
    assert_error_has("there are 0 batches (1 tokens are");
    assert_status(
        embla_corpus_batch(
            c, &(embla_corpus_request){.step = 0, .batch = 1, .length = 2, .validation = true}, a,
            b, NULL),
        EMBLA_ERR_RANGE);
    embla_corpus_free(c);
    c = open_string("abcdefghij", &as_stream);
    assert_status(
        embla_corpus_batch(
            c, &(embla_corpus_request){.step = 0, .batch = 1, .length = 1, .validation = true}, a,
            b, NULL),
        EMBLA_ERR_RANGE);
    assert_error_has("there are 0 batches (0 tokens are");
    embla_corpus_free(c);
}

/* All documents are met, those for training once an epoch, those for validation only there. */
static void split_of(uint64_t seed, bool in_order, int *kept)
{
    enum { TRAIN = 900, B = 9 };
    int32_t a[B * 5], b[B * 5];
    int seen[MANY] = {0};
    size_t used = 0;
    int64_t n = 0;
    embla_corpus *c = numbered(seed, 0.1, in_order);
    for (int s = 0; s < TRAIN; s++) {
        assert_ok(embla_corpus_batch(c, &(embla_corpus_request){.step = s, .batch = 1, .length = 5},
                                     a, b, NULL));
        seen[number_in(a)]++;
    }
    for (; embla_corpus_batch(
               c, &(embla_corpus_request){.step = n, .batch = B, .length = 5, .validation = true},
               a, b, &used) == EMBLA_OK;
         n++) {
        assert_int_equal(used, 4);
        for (int i = 0; i < B && n * B + i < MANY - TRAIN; i++) {
            kept[n * B + i] = number_in(a + i * 4);
            assert_int_equal(b[i * 4 + 3], 10);
            seen[number_in(a + i * 4)]++;
        }
    }
    assert_int_equal(n, 12); /* 100 by 9 */
    assert_int_equal(b[4 * 1], EMBLA_TARGET_IGNORE);
    for (int i = 0; i < MANY; i++) assert_int_equal(seen[i], 1);
    embla_corpus_free(c);
}

static void documents_for_validation_are_drawn_and_the_same_for_all_seeds(void **state)
{
    int one[100], two[100], last = 0;
    (void)state;
    split_of(1, false, one);
    split_of(2, false, two);
    assert_memory_equal(one, two, sizeof one);
    for (int i = 0; i < 100; i++) last += one[i] >= 900;
    assert_in_range(last, 1, 30); /* 10 are to be expected */
    split_of(1, true, one);
    for (int i = 0; i < 100; i++) assert_int_equal(one[i], 900 + i);
    embla_corpus *c = numbered(1, 0, false);
    assert_status(
        embla_corpus_batch(
            c, &(embla_corpus_request){.step = 0, .batch = 1, .length = 4, .validation = true}, one,
            two, NULL),
        EMBLA_ERR_RANGE);
    assert_error_has("0 documents are for validation");
    embla_corpus_free(c);
}

/* ---- characters, bytes ---- */

static void characters_are_numbered_in_order_of_code(void **state)
{
    static const char *const words[] = {
        "\n", "a", "z", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80"};
    size_t length = 0, count = 0;
    int32_t tokens[8] = {7, 7, 7, 7, 7, 7, 7, 7};
    embla_corpus *c = open_string("\xef\xbb\xbfz\xf0\x9f\x98\x80\xc3\xa9z\n\xe2\x82\xac"
                                  "a",
                                  &as_stream);
    (void)state;
    assert_int_equal(embla_corpus_vocab(c), 6);
    assert_int_equal(embla_corpus_tokens(c), 7);
    for (int i = 0; i < 6; i++) {
        assert_string_equal(embla_corpus_word(c, i, &length), words[i]);
        assert_int_equal(length, strlen(words[i]));
    }
    assert_batch(c, 0, 6, "z\xf0\x9f\x98\x80\xc3\xa9z\n\xe2\x82\xac",
                 "\xf0\x9f\x98\x80\xc3\xa9z\n\xe2\x82\xac"
                 "a");
    assert_ok(embla_corpus_tokenize(c, "a\xf0\x9f\x98\x80z\xc3\xa9", 8, 3, tokens, &count));
    assert_int_equal(count, 4);
    assert_int_equal(tokens[0], 1);
    assert_int_equal(tokens[1], 5);
    assert_int_equal(tokens[2], 2);
    assert_int_equal(tokens[3], 7);
    assert_ok(embla_corpus_tokenize(c, NULL, 0, 0, NULL, &count));
    assert_int_equal(count, 0);
    assert_ok(embla_corpus_tokenize(c, "za", 2, 0, NULL, &count));
    assert_int_equal(count, 2);
    assert_ok(embla_corpus_tokenize(c, "\n", 1, 8, tokens, &count));
    assert_int_equal(count, 1);
    assert_int_equal(tokens[0], 0);
    assert_int_equal(tokens[1], 5);
    embla_corpus_free(c);
}

static void encode_names_what_it_cannot(void **state)
{
    size_t count = 99;
    int32_t tokens[4] = {7, 7, 7, 7};
    embla_corpus *c = open_string("abc\n", &as_lines);
    (void)state;
    assert_status(embla_corpus_tokenize(c, "ab\xc3\xa9", 4, 4, tokens, &count),
                  EMBLA_ERR_NOT_FOUND);
    assert_error_has("U+00E9 '\xc3\xa9' at byte 2 is not among the 3 characters");
    assert_status(embla_corpus_tokenize(c, "a\n", 2, 4, tokens, &count), EMBLA_ERR_NOT_FOUND);
    assert_error_has("U+000A '' at byte 1");
    assert_status(embla_corpus_tokenize(c, "d", 1, 0, NULL, &count), EMBLA_ERR_NOT_FOUND);
    assert_status(embla_corpus_tokenize(c, "A", 1, 0, NULL, &count), EMBLA_ERR_NOT_FOUND);
    assert_status(embla_corpus_tokenize(c, "ab\xc3", 3, 4, tokens, &count), EMBLA_ERR_FORMAT);
    assert_error_has("not valid UTF-8: byte 2 of 3 is 0xc3");
    assert_status(embla_corpus_tokenize(NULL, "a", 1, 4, tokens, &count), EMBLA_ERR_ARGUMENT);
    assert_status(embla_corpus_tokenize(c, NULL, 1, 0, NULL, &count), EMBLA_ERR_ARGUMENT);
    assert_error_has("embla_corpus_tokenize: text is NULL");
    assert_status(embla_corpus_tokenize(c, "a", 1, 4, NULL, &count), EMBLA_ERR_ARGUMENT);
    assert_error_has("embla_corpus_tokenize: tokens is NULL");
    assert_status(embla_corpus_tokenize(c, "a", 1, 4, tokens, NULL), EMBLA_ERR_ARGUMENT);
    assert_error_has("embla_corpus_tokenize: count is NULL");
    assert_int_equal(count, 99);
    for (int i = 0; i < 4; i++) assert_int_equal(tokens[i], 7);
    embla_corpus_free(c);
}

static void bytes_are_256_tokens_and_a_bos_with_documents(void **state)
{
    static const char text[] = "a\xff\r\n\n\x80"
                               "b\0c";
    embla_corpus_options lines = as_bytes;
    embla_corpus *c = NULL;
    int32_t a[8], b[8];
    size_t length = 0, count = 0;
    (void)state;
    assert_ok(open_bytes(text, 9, &as_bytes, &c));
    assert_int_equal(embla_corpus_vocab(c), 256);
    assert_int_equal(embla_corpus_tokens(c), 9);
    assert_int_equal(embla_corpus_bos(c), -1);
    assert_ok(embla_corpus_batch(c, &(embla_corpus_request){.step = 0, .batch = 1, .length = 8}, a,
                                 b, NULL));
    for (int i = 0; i < 8; i++) {
        assert_int_equal(a[i], (unsigned char)text[i]);
        assert_int_equal(b[i], (unsigned char)text[i + 1]);
    }
    assert_ok(embla_corpus_tokenize(c, text, 3, 8, a, &count));
    assert_int_equal(count, 3);
    assert_int_equal(a[1], 255);
    assert_int_equal(embla_corpus_word(c, 255, &length)[0], '\xff');
    assert_int_equal(length, 1);
    assert_non_null(embla_corpus_word(c, 0, &length));
    assert_int_equal(length, 1);
    assert_null(embla_corpus_word(c, 256, NULL));
    embla_corpus_free(c);
    lines.documents = lines.in_order = true;
    assert_ok(open_bytes(text, 9, &lines, &c));
    assert_int_equal(embla_corpus_vocab(c), 257);
    assert_int_equal(embla_corpus_bos(c), 256);
    assert_int_equal(embla_corpus_documents(c), 2);
    assert_int_equal(embla_corpus_tokens(c), 2 + 4 + 2);
    assert_ok(embla_corpus_batch(c, &(embla_corpus_request){.step = 0, .batch = 1, .length = 3}, a,
                                 b, NULL));
    assert_int_equal(a[0], 256);
    assert_int_equal(a[2], 255);
    assert_int_equal(b[2], 256);
    assert_ok(embla_corpus_batch(c, &(embla_corpus_request){.step = 1, .batch = 1, .length = 5}, a,
                                 b, NULL));
    assert_int_equal(a[1], 128);
    assert_int_equal(a[3], 0);
    assert_int_equal(b[4], 256);
    embla_corpus_free(c);
}

/* Every character from U+0021 on, n of them: tokens take 1, 2, 4 bytes. */
static void many_characters_take_wider_tokens(void **state)
{
    static const struct {
        size_t n;
        bool documents;
        unsigned width;
    } cases[] = {{255, true, 1},   {256, true, 2},    {256, false, 1},  {257, false, 2},
                 {65535, true, 2}, {65536, false, 2}, {65537, false, 4}};
    static char text[70000 * 4];
    static int32_t a[70000], b[70000];
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        size_t n = cases[k].n, size = 0;
        uint32_t code = 0x21;
        embla_corpus *c = NULL;
        embla_corpus_options o = {
            .documents = cases[k].documents, .validation = -1, .in_order = true};
        for (size_t i = 0; i < n; i++, code++) {
            if (code == 0xd800) code = 0xe000;
            unsigned char *p = (unsigned char *)text + size;
            size_t length = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
            uint32_t rest = code;
            for (size_t j = length; j-- > 1; rest >>= 6) p[j] = (unsigned char)(0x80 | (rest & 63));
            static const unsigned char heads[] = {0, 0, 0xc0, 0xe0, 0xf0};
            p[0] = (unsigned char)(heads[length] | rest);
            size += length;
        }
        assert_ok(open_bytes(text, size, &o, &c));
        assert_int_equal(c->width, cases[k].width);
        assert_int_equal(embla_corpus_vocab(c), n + cases[k].documents);
        size_t first = cases[k].documents;
        assert_ok(embla_corpus_batch(
            c, &(embla_corpus_request){.step = 0, .batch = 1, .length = n - 1 + 2 * first}, a, b,
            NULL));
        for (size_t i = 0; i + 1 < n; i++) {
            assert_int_equal(a[first + i], i);
            assert_int_equal(b[first + i], i + 1);
        }
        if (first) assert_int_equal(a[0], n);
        if (first) assert_int_equal(b[n], n);
        embla_corpus_free(c);
    }
}

static void what_is_no_text_is_refused(void **state)
{
    embla_corpus_options half = {.documents = true, .validation = 0.5};
    (void)state;
    refused("", 0, &as_stream, EMBLA_ERR_FORMAT, "is empty: it has 0 bytes");
    refused("\n\r\n\n", 4, &as_lines, EMBLA_ERR_FORMAT, " has no text: 3 lines without characters");
    refused("\xef\xbb\xbf", 3, &as_stream, EMBLA_ERR_FORMAT,
            "has no text: 0 lines without characters");
    refused("ab\xff", 3, &as_stream, EMBLA_ERR_FORMAT, "text is not valid UTF-8: byte 2 is 0xff");
    assert_error_has("open it as bytes");
    refused("a\nb\n\xed\xa0\x80", 7, &as_lines, EMBLA_ERR_FORMAT,
            "byte 4 is 0xed; open it as bytes");
    refused("a\xc3\nb", 4, &as_lines, EMBLA_ERR_FORMAT, "byte 1 is 0xc3"); /* cut by a line's end */
    refused("\xc0\x80", 2, &as_stream, EMBLA_ERR_FORMAT, "byte 0 is 0xc0");
    refused("\xfd"
            "7zXZ\0rest",
            10, &as_bytes, EMBLA_ERR_UNSUPPORTED,
            "is compressed with xz; unpack it with unxz first");
    refused("\x1f\x8b\x08\0", 4, &as_bytes, EMBLA_ERR_UNSUPPORTED, "compressed with gzip");
    refused("PK\x03\x04", 4, &as_stream, EMBLA_ERR_UNSUPPORTED, "compressed with zip");
    embla_corpus *c = NULL; /* two of gzip's three bytes are a text of bytes */
    assert_ok(open_bytes("\x1f\x8b\x09\0", 4, &as_bytes, &c));
    embla_corpus_free(c);
    refused("\x28\xb5\x2f\xfd", 4, &as_tokens, EMBLA_ERR_UNSUPPORTED, "compressed with zstd");
    refused("a", 1, &as_stream, EMBLA_ERR_SHAPE, "of its 1 tokens, 1 are left for training");
    refused("ab", 2, NULL, EMBLA_ERR_SHAPE,
            "of its 2 tokens, 1 are left for training after 0.1 are set aside");
    refused("ab\n", 3, &half, EMBLA_ERR_SHAPE,
            "of its 1 documents, 0 are left for training after 0.5 are");
}

/* ---- folders ---- */

static void put_file(scratch *s, const char *name, const char *text)
{
    scratch_write(scratch_path(s, name), text, strlen(text));
}

static void a_folder_is_its_files_in_the_order_of_their_names(void **state)
{
    scratch s;
    embla_corpus *c = NULL;
    embla_corpus_options stream = {.validation = -1, .in_order = true};
    (void)state;
    scratch_new(&s);
    put_file(&s, "b.txt",
             "\xef\xbb\xbf"
             "cd\n");
    put_file(&s, "a.txt", "ab");
    put_file(&s, "c", "");
    put_file(&s, "d", "e\r");
    put_file(&s, "d2", "\n"); /* an empty line after a CR */
    put_file(&s, ".hidden", "\xff\xff");
    assert_ok(embla_corpus_open(s.folder, &stream, &c));
    assert_batch(c, 0, 5, "abcd\n", "bcd\ne");
    embla_corpus_free(c);
    assert_ok(embla_corpus_open(s.folder, &as_lines, &c));
    assert_int_equal(embla_corpus_documents(c), 3); /* a file's end ends its last line */
    assert_batch(c, 0, 3, "|ab", "ab|");
    assert_batch(c, 1, 3, "|cd", "cd|");
    assert_batch(c, 2, 2, "|e", "e|");
    embla_corpus_free(c);
    c = NULL;
    put_file(&s, "e", "x\xc3");
    put_file(&s, "f", "\xa9");
    assert_status(embla_corpus_open(s.folder, &stream, &c), EMBLA_ERR_FORMAT);
    assert_error_has(
        "e is not valid UTF-8: byte 1 is 0xc3"); /* no character lies across two files */
    assert_error_has(s.folder);
    assert_ok(embla_corpus_open(s.folder, &as_bytes, &c));
    assert_int_equal(embla_corpus_tokens(c), 2 + 6 + 2 + 1 + 2 + 1);
    embla_corpus_free(c);
    scratch_free(&s);
}

static void a_folder_with_anything_else_is_refused(void **state)
{
    scratch s;
    embla_corpus *c = NULL;
    (void)state;
    scratch_new(&s);
    assert_status(embla_corpus_open(s.folder, &as_stream, &c), EMBLA_ERR_FORMAT);
    assert_error_has("is a folder without files");
    put_file(&s, "a", "");
    assert_status(embla_corpus_open(s.folder, &as_stream, &c), EMBLA_ERR_FORMAT);
    assert_error_has("has no text: 0 lines without characters");
    put_file(&s, "a", "abc");
    assert_int_equal(symlink("a", scratch_path(&s, "link")), 0);
    assert_status(embla_corpus_open(s.folder, &as_stream, &c), EMBLA_ERR_IO);
    assert_error_has("link is a symbolic link");
    assert_error_has(s.folder);
    assert_ok(embla_corpus_open(scratch_path(&s, "link"), &as_stream, &c)); /* typed: followed */
    embla_corpus_free(c);
    c = NULL;
    scratch_remove(&s, "link");
    assert_int_equal(mkdir(scratch_path(&s, "sub"), 0700), 0);
    assert_status(embla_corpus_open(s.folder, &as_stream, &c), EMBLA_ERR_UNSUPPORTED);
    assert_error_has("sub is a folder, not a file of text");
    assert_status(embla_corpus_open(s.folder, &as_tokens, &c), EMBLA_ERR_UNSUPPORTED);
    scratch_remove(&s, "sub");
    assert_int_equal(mkfifo(scratch_path(&s, "pipe"), 0600), 0);
    assert_status(embla_corpus_open(s.path, &as_stream, &c), EMBLA_ERR_UNSUPPORTED);
    assert_error_has("pipe is a pipe, not a file");
    assert_status(embla_corpus_open(s.folder, &as_stream, &c), EMBLA_ERR_UNSUPPORTED);
    scratch_free(&s);
    assert_status(embla_corpus_open(s.folder, &as_stream, &c), EMBLA_ERR_NOT_FOUND);
    assert_status(embla_corpus_open("/dev/null", &as_stream, &c), EMBLA_ERR_UNSUPPORTED);
    assert_error_has("a device or socket");
    assert_null(c);
}

static void a_text_that_changes_while_it_is_read_is_refused(void **state)
{
    scratch s;
    embla_corpus *c = NULL;
    (void)state;
    scratch_new(&s);
    put_file(&s, "a", "abcdef");
    put_file(&s, "b", "ghijk");
    to_be_cut = scratch_path(&s, "b");
    assert_status(embla_corpus_open(s.folder, &as_stream, &c), EMBLA_ERR_IO);
    assert_error_has("b was changed while it was read: it had 5 bytes and now has 1");
    assert_null(to_be_cut);
    to_be_cut = scratch_path(&s, "a");
    assert_status(embla_corpus_open(s.path, &as_stream, &c), EMBLA_ERR_IO);
    assert_error_has("a was truncated while it was read: it had 6 bytes and now has 1");
    assert_null(c);
    scratch_free(&s);
}

/* ---- files of tokens ---- */

enum { HEAD = 1024 };

static size_t llmc_file(uint32_t magic, uint32_t version, uint32_t said, size_t count, size_t width,
                        unsigned char *out)
{
    uint32_t head[3] = {magic, version, said};
    memset(out, 0, HEAD);
    memcpy(out, head, sizeof head);
    for (size_t i = 0; i < count; i++) {
        uint32_t token = (uint32_t)(i * i * (width == 2 ? 7 : 7777));
        memcpy(out + HEAD + i * width, &token, width);
    }
    return HEAD + count * width;
}

static void tokens_of_llmc_are_read(void **state)
{
    unsigned char file[2048];
    int32_t a[64], b[64];
    size_t count = 0;
    (void)state;
    for (size_t width = 2; width <= 4; width += 2) {
        embla_corpus *c = NULL;
        size_t size =
            llmc_file(width == 2 ? 20240520 : 20240801, width == 2 ? 1 : 7, 60, 60, width, file);
        int32_t by = width == 2 ? 7 : 7777;
        assert_ok(open_bytes(file, size, &as_tokens, &c));
        assert_int_equal(embla_corpus_tokens(c), 60);
        assert_int_equal(embla_corpus_vocab(c), 59 * 59 * by + 1);
        assert_int_equal(embla_corpus_bos(c), -1);
        assert_null(embla_corpus_word(c, 0, NULL));
        assert_status(embla_corpus_tokenize(c, "a", 1, 64, a, &count), EMBLA_ERR_UNSUPPORTED);
        assert_error_has("is a file of tokens");
        assert_ok(embla_corpus_batch(
            c, &(embla_corpus_request){.step = 0, .batch = 1, .length = 59}, a, b, NULL));
        for (int i = 0; i < 59; i++) {
            assert_int_equal(a[i], i * i * by);
            assert_int_equal(b[i], (i + 1) * (i + 1) * by);
        }
        embla_corpus_free(c);
    }
}

static void the_highest_of_many_tokens_may_come_last(void **state)
{
    enum { N = 600000 }; /* more than are looked at at a time */
    unsigned char *file = calloc(1, HEAD + 2 * N);
    embla_corpus *c = NULL;
    (void)state;
    assert_non_null(file);
    (void)llmc_file(20240520, 1, N, 3, 2, file);
    memcpy(file + HEAD + 2 * (N - 1), "\x34\x12", 2);
    assert_ok(open_bytes(file, HEAD + 2 * N, &as_tokens, &c));
    assert_int_equal(embla_corpus_tokens(c), N);
    assert_int_equal(embla_corpus_vocab(c), 0x1235);
    embla_corpus_free(c);
    free(file);
}

static void tokens_of_llmc_that_do_not_fit_are_refused(void **state)
{
    unsigned char f[2048];
    embla_corpus_options lines = as_tokens;
    (void)state;
    refused(f, llmc_file(20240520, 2, 9, 9, 2, f), &as_tokens, EMBLA_ERR_UNSUPPORTED,
            "version 2 of llm.c's tokens is not supported; 1 is");
    refused(f, llmc_file(20240801, 1, 9, 9, 4, f), &as_tokens, EMBLA_ERR_UNSUPPORTED,
            "not supported; 7 is");
    refused(f, llmc_file(20240520, 1, 10, 9, 2, f), &as_tokens, EMBLA_ERR_FORMAT,
            "the header counts 10 tokens of 2 bytes, but 18 bytes follow it");
    refused(f, llmc_file(20240520, 1, 8, 9, 2, f), &as_tokens, EMBLA_ERR_FORMAT,
            "the header counts 8");
    refused(f, llmc_file(20240520, 1, 9, 9, 2, f) + 1, &as_tokens, EMBLA_ERR_FORMAT, "19 bytes");
    refused(f, llmc_file(20240520, 1, UINT32_MAX, 9, 2, f), &as_tokens, EMBLA_ERR_FORMAT,
            "the header counts 4294967295");
    refused(f, llmc_file(20240520, 1, 0, 0, 2, f), &as_tokens, EMBLA_ERR_SHAPE,
            "of its 0 tokens, 0 are left");
    refused(f, llmc_file(20240326, 3, 9, 9, 2, f), &as_tokens, EMBLA_ERR_FORMAT,
            "beginning with 20240326) is a model of llm.c");
    refused(f, llmc_file(20240520, 1, 9, 9, 2, f) - 19, &as_tokens, EMBLA_ERR_FORMAT,
            "1023 bytes, beginning with 20240520) is neither");
    refused("text", 4, &as_tokens, EMBLA_ERR_FORMAT, "open a text as characters or bytes");
    refused("te", 2, &as_tokens, EMBLA_ERR_FORMAT, "2 bytes, beginning with 0");
    (void)llmc_file(20240801, 7, 9, 9, 4, f);
    memcpy(f + HEAD + 8, "\xff\xff\xff\x7f", 4);
    refused(f, HEAD + 36, &as_tokens, EMBLA_ERR_FORMAT,
            "token 2 is 0x7fffffff; tokens must be 0 to 2147483646");
    enum { N = 600000 }; /* more than are looked at at a time: the number is that of the file */
    unsigned char *large = calloc(1, HEAD + 4 * N);
    assert_non_null(large);
    (void)llmc_file(20240801, 7, N, 0, 4, large);
    memcpy(large + HEAD + 4 * 555555, "\0\0\0\x80", 4);
    refused(large, HEAD + 4 * N, &as_tokens, EMBLA_ERR_FORMAT, "token 555555 is 0x80000000;");
    free(large);
    lines.documents = true;
    refused("text", 4, &lines, EMBLA_ERR_ARGUMENT,
            "a file of tokens cannot be split into documents");
}

static size_t npy_file(const char *descr, const char *shape, const void *numbers, size_t bytes,
                       char *out)
{
    int n = snprintf(out + 10, 118, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }", descr,
                     shape);
    memcpy(out, "\x93NUMPY\x01\0\x76\0", 10);
    memset(out + 10 + n, ' ', (size_t)(118 - n));
    out[127] = '\n';
    memcpy(out + 128, numbers, bytes);
    return 128 + bytes;
}

static void tokens_of_npy_are_read(void **state)
{
    static const uint16_t two[] = {1, 65535, 3, 4};
    static const int32_t four[] = {1, 70000, 3, 4}, less[] = {1, -1, 3, 4};
    char f[512];
    int32_t a[4], b[4];
    embla_corpus *c = NULL;
    (void)state;
    assert_ok(open_bytes(f, npy_file("<u2", "(4,)", two, 8, f), &as_tokens, &c));
    assert_int_equal(embla_corpus_vocab(c), 65536);
    assert_ok(embla_corpus_batch(c, &(embla_corpus_request){.step = 0, .batch = 1, .length = 3}, a,
                                 b, NULL));
    assert_int_equal(a[1], 65535);
    assert_int_equal(b[2], 4);
    embla_corpus_free(c);
    for (int i = 0; i < 2; i++) {
        assert_ok(open_bytes(f, npy_file(i ? "<u4" : "<i4", "(4,)", four, 16, f), &as_tokens, &c));
        assert_int_equal(embla_corpus_vocab(c), 70001);
        assert_ok(embla_corpus_batch(c, &(embla_corpus_request){.step = 0, .batch = 1, .length = 3},
                                     a, b, NULL));
        assert_memory_equal(a, four, 12);
        assert_memory_equal(b, four + 1, 12);
        embla_corpus_free(c);
    }
    refused(f, npy_file("<i4", "(4,)", less, 16, f), &as_tokens, EMBLA_ERR_FORMAT,
            "token 1 is 0xffffffff");
    refused(f, npy_file(">i4", "(4,)", four, 16, f), &as_tokens, EMBLA_ERR_UNSUPPORTED,
            "I32 with 1 dimensions, big-endian");
    refused(f, npy_file("<i4", "(2, 2)", four, 16, f), &as_tokens, EMBLA_ERR_UNSUPPORTED,
            "I32 with 2 dimensions; tokens must be");
    refused(f, npy_file("<f4", "(4,)", four, 16, f), &as_tokens, EMBLA_ERR_UNSUPPORTED, "F32");
    refused(f, npy_file("<i8", "(2,)", four, 16, f), &as_tokens, EMBLA_ERR_UNSUPPORTED, "I64");
    refused(f, npy_file("<i4", "(5,)", four, 16, f), &as_tokens, EMBLA_ERR_FORMAT, "(N");
}

static void a_file_of_tokens_that_changes_is_noticed(void **state)
{
    unsigned char file[2048];
    int32_t a[64], b[64];
    size_t used = 77, size = llmc_file(20240520, 1, 60, 60, 2, file);
    embla_corpus *c = NULL;
    scratch s;
    (void)state;
    scratch_new(&s);
    scratch_write(scratch_path(&s, "t.bin"), file, size);
    assert_ok(embla_corpus_open(s.path, &as_tokens, &c));
    int fd = open(s.path, O_RDWR);
    assert_int_equal(pwrite(fd, "\xff\xff", 2, HEAD + 20), 2); /* token 10: above all that were */
    assert_ok(embla_corpus_batch(c, &(embla_corpus_request){.step = 0, .batch = 1, .length = 9}, a,
                                 b, &used));
    assert_int_equal(used, 9);
    assert_status(embla_corpus_batch(
                      c, &(embla_corpus_request){.step = 0, .batch = 1, .length = 10}, a, b, &used),
                  EMBLA_ERR_IO);
    assert_error_has(
        "was changed while it was open: it has token 65535, but the highest was 24367");
    assert_int_equal(used, 9);
    assert_int_equal(ftruncate(fd, HEAD + 100), 0);
    assert_status(embla_corpus_batch(c, &(embla_corpus_request){.step = 0, .batch = 1, .length = 9},
                                     a, b, &used),
                  EMBLA_ERR_IO);
    assert_error_has("was truncated while it was open");
    embla_corpus_free(c);
    assert_int_equal(close(fd), 0);
    scratch_free(&s);
}

/* ---- arguments ---- */

static void arguments_that_cannot_be_are_refused(void **state)
{
    embla_corpus *c = NULL, *open = open_string("abcdef", &as_stream);
    embla_corpus_options o = {0};
    int32_t a[4] = {7, 7, 7, 7}, b[4] = {7, 7, 7, 7};
    size_t used = 77;
    (void)state;
    assert_status(embla_corpus_open(NULL, &o, &c), EMBLA_ERR_ARGUMENT);
    assert_error_has("embla_corpus_open: path is NULL");
    assert_status(embla_corpus_open("x", &o, NULL), EMBLA_ERR_ARGUMENT);
    assert_error_has("embla_corpus_open: out is NULL");
    o.kind = (embla_corpus_kind)5;
    assert_status(embla_corpus_open("x", &o, &c), EMBLA_ERR_ARGUMENT);
    assert_error_has("kind is 5; it must be 0 to 4");
    o = (embla_corpus_options){.validation = 1};
    assert_status(embla_corpus_open("x", &o, &c), EMBLA_ERR_ARGUMENT);
    assert_error_has("it must be below 1");
    o.validation = NAN;
    assert_status(embla_corpus_open("x", &o, &c), EMBLA_ERR_ARGUMENT);
    for (int call = 0; call < 2; call++) {
        assert_status(
            embla_corpus_batch(
                NULL,
                &(embla_corpus_request){.step = 0, .batch = 1, .length = 1, .validation = call}, a,
                b, &used),
            EMBLA_ERR_ARGUMENT);
        assert_error_has("embla_corpus_batch: corpus is NULL");
        assert_status(
            embla_corpus_batch(
                open,
                &(embla_corpus_request){.step = 0, .batch = 1, .length = 1, .validation = call},
                NULL, b, &used),
            EMBLA_ERR_ARGUMENT);
        assert_status(
            embla_corpus_batch(
                open,
                &(embla_corpus_request){.step = 0, .batch = 1, .length = 1, .validation = call}, a,
                NULL, &used),
            EMBLA_ERR_ARGUMENT);
        assert_status(
            embla_corpus_batch(
                open,
                &(embla_corpus_request){.step = -1, .batch = 1, .length = 1, .validation = call}, a,
                b, &used),
            EMBLA_ERR_ARGUMENT);
        assert_error_has(call ? "the validation batch is -1; it must be 0 or greater"
                              : "step is -1; it must be 0 or greater");
        assert_status(
            embla_corpus_batch(
                open,
                &(embla_corpus_request){.step = 0, .batch = 0, .length = 1, .validation = call}, a,
                b, &used),
            EMBLA_ERR_ARGUMENT);
        assert_error_has("a batch of 0 sequences of 1 tokens");
        assert_status(
            embla_corpus_batch(
                open,
                &(embla_corpus_request){.step = 0, .batch = 1, .length = 0, .validation = call}, a,
                b, &used),
            EMBLA_ERR_ARGUMENT);
        assert_status(embla_corpus_batch(
                          open,
                          &(embla_corpus_request){
                              .step = 0, .batch = (size_t)1 << 31, .length = 1, .validation = call},
                          a, b, &used),
                      EMBLA_ERR_ARGUMENT);
        assert_status(embla_corpus_batch(
                          open,
                          &(embla_corpus_request){
                              .step = 0, .batch = 1 << 30, .length = SIZE_MAX, .validation = call},
                          a, b, &used),
                      EMBLA_ERR_ARGUMENT);
        assert_status(embla_corpus_batch(
                          open,
                          &(embla_corpus_request){
                              .step = 0, .batch = 2, .length = (size_t)1 << 61, .validation = call},
                          a, b, &used),
                      EMBLA_ERR_ARGUMENT);
        assert_status(
            embla_corpus_batch(open,
                               &(embla_corpus_request){
                                   .step = INT64_MAX, .batch = 2, .length = 1, .validation = call},
                               a, b, &used),
            EMBLA_ERR_ARGUMENT);
        assert_error_has("9223372036854775807 with 2 sequences each");
        assert_status(
            embla_corpus_batch(open,
                               &(embla_corpus_request){
                                   .step = INT64_MAX, .batch = 1, .length = 1, .validation = call},
                               a, b, &used),
            EMBLA_ERR_ARGUMENT);
    }
    assert_status(embla_corpus_batch(open,
                                     &(embla_corpus_request){.step = 0, .batch = 1, .length = 6}, a,
                                     b, &used),
                  EMBLA_ERR_SHAPE);
    for (int i = 0; i < 4; i++) assert_int_equal(a[i] + b[i], 14);
    assert_int_equal(used, 77);
    assert_null(c);
    embla_corpus_free(open);
}

/* ---- failures ---- */

/* Opens what s has in it: a folder of two files, or one of tokens. */
static embla_status open_and_ask(const char *path, const embla_corpus_options *options)
{
    int32_t a[4], b[4];
    embla_corpus *c = NULL;
    embla_status status = embla_corpus_open(path, options, &c);
    if (status != EMBLA_OK) assert_null(c);
    if (status == EMBLA_OK)
        status = embla_corpus_batch(c, &(embla_corpus_request){.step = 0, .batch = 2, .length = 2},
                                    a, b, NULL);
    embla_corpus_free(c);
    return status;
}

static void fail_each(const char *path, const embla_corpus_options *options, bool memory,
                      size_t least)
{
    size_t live = embla_mem_live(), descriptors = embla_io_live();
    for (int forever = 0; forever < 2; forever++) {
        size_t failures = 0;
        for (size_t at = 1;; at++) {
            if (memory) embla_mem_fail(at, forever == 1);
            if (!memory) embla_io_fail(at, forever == 1, EMBLA_SYSTEM_OTHER);
            embla_status status = open_and_ask(path, options);
            embla_mem_fail(0, false);
            embla_io_fail(0, false, 0);
            assert_int_equal(embla_mem_live(), live);
            assert_int_equal(embla_io_live(), descriptors);
            if (status == EMBLA_OK) break;
            assert_status(status, memory ? EMBLA_ERR_MEMORY : EMBLA_ERR_IO);
            failures++;
        }
        assert_true(failures >= least);
    }
}

static void every_allocation_and_every_call_can_fail(void **state)
{
    scratch s;
    unsigned char file[2048];
    char other[512];
    static const int32_t four[] = {1, 2, 3, 4};
    (void)state;
    scratch_new(&s);
    put_file(&s, "a", "abc\nd\xc3\xa9\n");
    put_file(&s, "b", "efgh");
    const embla_corpus_options *texts[] = {&as_stream, &as_lines, &as_bytes};
    for (int i = 0; i < 3; i++) {
        fail_each(s.folder, texts[i], true, 5);
        fail_each(s.folder, texts[i], false, 19);
        fail_each(scratch_path(&s, "a"), texts[i], true, 4);
        fail_each(s.path, texts[i], false, 3);
    }
    scratch_write(scratch_path(&s, "t"), file, llmc_file(20240520, 1, 60, 60, 2, file));
    fail_each(s.path, &as_tokens, true, 4);
    fail_each(s.path, &as_tokens, false, 7);
    scratch_write(scratch_path(&s, "n"), other, npy_file("<i4", "(4,)", four, 16, other));
    fail_each(s.path, &as_tokens, true, 6);
    embla_io_short(3); /* reads that come in pieces are no failure */
    assert_ok(open_and_ask(s.folder, &as_bytes));
    embla_io_short(0);
    scratch_free(&s);
}

/* ---- threads ---- */

typedef struct {
    const embla_corpus *corpus;
    int32_t a[50][8], b[50][8];
    int first;
    bool failed;
} asker;

static void *ask(void *context)
{
    asker *k = context;
    for (int i = 0; i < 50; i++) {
        int step = (k->first + i * 7) % 50;
        if (embla_corpus_batch(k->corpus,
                               &(embla_corpus_request){.step = step, .batch = 2, .length = 4},
                               k->a[step], k->b[step], NULL) != EMBLA_OK)
            k->failed = true;
    }
    return NULL;
}

static void any_thread_gets_the_same(void **state)
{
    static asker askers[4];
    pthread_t threads[4];
    embla_corpus *c = numbered(3, 0.2, false);
    (void)state;
    for (int i = 0; i < 4; i++) {
        askers[i].corpus = c;
        askers[i].first = 13 * i;
        assert_int_equal(pthread_create(&threads[i], NULL, ask, &askers[i]), 0);
    }
    for (int i = 0; i < 4; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (int i = 0; i < 4; i++) {
        assert_false(askers[i].failed);
        assert_memory_equal(askers[i].a, askers[0].a, sizeof askers[0].a);
        assert_memory_equal(askers[i].b, askers[0].b, sizeof askers[0].b);
    }
    embla_corpus_free(c);
}

/* ---- real texts ---- */

static embla_corpus *real(const char *name, const embla_corpus_options *options)
{
    const char *data = getenv("EMBLA_DATA");
    char path[SCRATCH_PATH];
    embla_corpus *c = NULL;
    if (!data) {
        print_message("EMBLA_DATA is not set: skipped\n");
        skip();
    }
    (void)snprintf(path, sizeof path, "%s/%s", data, name);
    assert_ok(embla_corpus_open(path, options, &c));
    return c;
}

static void names_have_27_tokens(void **state)
{
    embla_corpus *c = real("names/names.txt", &as_lines);
    int32_t a[16], b[16];
    size_t used = 0, all = 0, longest = 0;
    (void)state;
    assert_int_equal(embla_corpus_documents(c), 32033);
    assert_int_equal(embla_corpus_vocab(c), 27);
    assert_int_equal(embla_corpus_bos(c), 26);
    assert_int_equal(embla_corpus_tokens(c), 228145 - 32032 + 32033);
    for (int i = 0; i < 26; i++) assert_int_equal(embla_corpus_word(c, i, NULL)[0], 'a' + i);
    assert_batch(c, 0, 16, "|emmaaaaaaaaaaaa", "emma|___________");
    for (int64_t step = 0; step < 32033; step++) {
        assert_ok(embla_corpus_batch(
            c, &(embla_corpus_request){.step = step, .batch = 1, .length = 16}, a, b, &used));
        assert_int_equal(b[used - 1], 26);
        all += used;
        if (used > longest) longest = used;
    }
    assert_int_equal(all, 228146);
    assert_int_equal(longest, 16);
    embla_corpus_free(c);
}

static void tinyshakespeare_has_65_characters(void **state)
{
    embla_corpus *c = real("tinyshakespeare/input.txt", NULL);
    static int32_t a[12 * 64], b[12 * 64];
    int64_t n = 0;
    size_t targets = 0;
    (void)state;
    assert_int_equal(embla_corpus_tokens(c), 1115394);
    assert_int_equal(embla_corpus_vocab(c), 65);
    assert_int_equal(c->train, 1003854); /* nanoGPT's split: 111,540 for validation */
    for (; embla_corpus_batch(
               c, &(embla_corpus_request){.step = n, .batch = 12, .length = 64, .validation = true},
               a, b, NULL) == EMBLA_OK;
         n++) {
        if (n == 0) assert_string_equal(spelled(c, a, 10), "?\n\nGREMIO:");
        for (int i = 0; i < 12 * 64; i++) targets += b[i] != EMBLA_TARGET_IGNORE;
    }
    assert_int_equal(targets, 111539);
    assert_int_equal(n, (111539 + 12 * 64 - 1) / (12 * 64));
    embla_corpus_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_documents_between_two_bos),
        cmocka_unit_test(used_makes_a_batch_as_long_as_its_longest_sequence),
        cmocka_unit_test(each_document_comes_once_an_epoch),
        cmocka_unit_test(the_order_is_a_permutation_of_any_number),
        cmocka_unit_test(the_order_favours_nothing),
        cmocka_unit_test(draws_are_the_same_for_ever),
        cmocka_unit_test(a_stream_is_drawn_from_everywhere),
        cmocka_unit_test(a_batch_depends_on_nothing_that_came_before),
        cmocka_unit_test(a_stream_in_order_is_cut_into_pieces),
        cmocka_unit_test(of_a_stream_the_last_part_is_for_validation),
        cmocka_unit_test(documents_for_validation_are_drawn_and_the_same_for_all_seeds),
        cmocka_unit_test(characters_are_numbered_in_order_of_code),
        cmocka_unit_test(encode_names_what_it_cannot),
        cmocka_unit_test(bytes_are_256_tokens_and_a_bos_with_documents),
        cmocka_unit_test(many_characters_take_wider_tokens),
        cmocka_unit_test(what_is_no_text_is_refused),
        cmocka_unit_test(a_folder_is_its_files_in_the_order_of_their_names),
        cmocka_unit_test(a_folder_with_anything_else_is_refused),
        cmocka_unit_test(a_text_that_changes_while_it_is_read_is_refused),
        cmocka_unit_test(tokens_of_llmc_are_read),
        cmocka_unit_test(the_highest_of_many_tokens_may_come_last),
        cmocka_unit_test(tokens_of_llmc_that_do_not_fit_are_refused),
        cmocka_unit_test(tokens_of_npy_are_read),
        cmocka_unit_test(a_file_of_tokens_that_changes_is_noticed),
        cmocka_unit_test(arguments_that_cannot_be_are_refused),
        cmocka_unit_test(every_allocation_and_every_call_can_fail),
        cmocka_unit_test(any_thread_gets_the_same),
        cmocka_unit_test(names_have_27_tokens),
        cmocka_unit_test(tinyshakespeare_has_65_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
