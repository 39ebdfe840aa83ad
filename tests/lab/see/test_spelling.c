/* SPDX-License-Identifier: Apache-2.0 */
/* Words that are nearly the one asked for: compared with a whole matrix of distances and a
 * sort; then what people mistype, words of any bytes and any length, and the real vocabularies
 * that it has to be quick on.
 */
#include <stdio.h>
#include <time.h>

#include "embla_lab.h"
#include "vocab_bytes.h"

/* ---- a slow reference ---- */

enum { LETTERS = 200, NOT_NEAR = 100000 };

typedef struct {
    int letters[LETTERS], raw[LETTERS];
    int count;
    bool spaced;
} slow_word;

/* Of these tests alone: ASCII, and the signs for a space. */
static slow_word slow_read(const char *word, size_t length)
{
    slow_word w = {0};
    for (size_t i = 0; i < length && w.count < LETTERS;) {
        bool low = length - i >= 3 && memcmp(word + i, "\xe2\x96\x81", 3) == 0;
        bool high = length - i >= 2 && memcmp(word + i, "\xc4\xa0", 2) == 0;
        int raw = low || high ? ' ' : (unsigned char)word[i];
        if (raw == ' ' && i == 0) {
            w.spaced = true;
        } else {
            w.raw[w.count] = raw;
            w.letters[w.count++] = raw >= 'A' && raw <= 'Z' ? raw + 32 : raw;
        }
        i += low ? 3 : high ? 2 : 1;
    }
    return w;
}

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

static int slow_distance(const slow_word *a, const slow_word *b)
{
    static int d[LETTERS + 1][LETTERS + 1];
    for (int i = 0; i <= a->count; i++) {
        for (int j = 0; j <= b->count; j++) {
            int less = i > 1 && a->letters[i - 1] == a->letters[i - 2] ? 6 : 8;
            int more = j > 1 && b->letters[j - 1] == b->letters[j - 2] ? 6 : 8;
            d[i][j] = i == 0 || j == 0 ? 8 * (i + j) : NOT_NEAR;
            if (i == 0 || j == 0) continue;
            d[i][j] = smaller(smaller(d[i - 1][j] + less, d[i][j - 1] + more),
                              d[i - 1][j - 1] + 8 * (a->letters[i - 1] != b->letters[j - 1]));
            if (i > 1 && j > 1 && a->letters[i - 1] == b->letters[j - 2] &&
                a->letters[i - 2] == b->letters[j - 1])
                d[i][j] = smaller(d[i][j], d[i - 2][j - 2] + 6);
        }
    }
    return d[a->count][b->count];
}

static int slow_cost(const slow_word *typed, const slow_word *word)
{
    int m = typed->count, limit = m < 2 ? 0 : 8 * smaller(1 + m / 5, 4), letters = smaller(m, 1);
    int far = slow_distance(typed, word), compared = smaller(word->count, m);
    bool begins = m > 1 && word->count > m, other_case = false;
    if (far > limit) far = NOT_NEAR;
    for (int i = 0; i < m && begins; i++) begins = typed->letters[i] == word->letters[i];
    if (begins) far = smaller(far, 8 + smaller(word->count - m, 7));
    if (far == NOT_NEAR) return NOT_NEAR;
    for (int i = 0; i < compared; i++)
        other_case = other_case ||
                     (typed->letters[i] != typed->raw[i]) != (word->letters[i] != word->raw[i]);
    for (int i = compared; i < m; i++)
        other_case = other_case || typed->letters[i] != typed->raw[i];
    for (int i = compared; i < word->count && !begins; i++)
        other_case = other_case || word->letters[i] != word->raw[i];
    if (word->count > 0 && letters > 0 && word->letters[0] != typed->letters[0]) far += 1;
    return far + 2 * other_case + (typed->spaced != word->spaced);
}

/* By a search for the least cost again and again. */
static size_t slow_nearly(const embla_vocab *vocab, const char *word, size_t k, int32_t *out)
{
    static int costs[4096];
    slow_word typed = slow_read(word, strlen(word));
    size_t found = 0, count = (size_t)embla_vocab_end(vocab);
    int best = NOT_NEAR;
    assert_true(count <= COUNT_OF(costs));
    for (size_t i = 0; i < count; i++) {
        size_t length;
        const char *bytes = embla_vocab_word(vocab, (int32_t)i, &length);
        slow_word other = bytes ? slow_read(bytes, length) : (slow_word){0};
        costs[i] = bytes && typed.count > 0 ? slow_cost(&typed, &other) : NOT_NEAR;
        best = smaller(best, costs[i]);
    }
    while (found < k) {
        size_t least = 0;
        for (size_t i = 1; i < count; i++)
            if (costs[i] < costs[least]) least = i;
        if (costs[least] == NOT_NEAR || costs[least] >= best + 8) break;
        out[found++] = (int32_t)least;
        costs[least] = NOT_NEAR;
    }
    return found;
}

static void random_word(uint64_t *seed, size_t longest, char *out)
{
    static const char *const pieces[] = {"a", "b", "c",        "d",           "A",
                                         "B", " ", "\xc4\xa0", "\xe2\x96\x81"};
    size_t length = 1 + check_below(seed, longest);
    out[0] = '\0';
    for (size_t i = 0; i < length; i++) {
        bool sign = check_below(seed, 8) == 0;
        strcat(out, pieces[sign ? check_below(seed, COUNT_OF(pieces)) : check_below(seed, 4)]);
    }
}

static void answers_are_those_of_a_whole_matrix_and_a_sort(void **state)
{
    static char words[400][256];
    embla_name names[400];
    uint64_t seed = 11;
    size_t near = 0;
    (void)state;
    for (size_t round = 0; round < 150; round++) {
        size_t count = 1 + check_below(&seed, COUNT_OF(words)), k = 1 + check_below(&seed, 64);
        size_t longest = 2 + check_below(&seed, round % 3 == 0 ? 30 : 6);
        embla_vocab *vocab = NULL;
        char typed[256];
        for (size_t i = 0; i < count; i++) {
            random_word(&seed, longest, words[i]);
            names[i] = (embla_name){words[i], (uint32_t)strlen(words[i]), (uint32_t)i};
            if (i > 0 && check_below(&seed, 20) == 0) names[i].bytes = NULL; /* a gap */
        }
        assert_ok(embla_vocab_of_names(names, count, "words", &vocab));
        for (size_t i = 0; i < 20; i++) {
            int32_t got[64], want[64];
            random_word(&seed, longest, typed);
            size_t found = embla_vocab_suggest(vocab, typed, strlen(typed), k, got);
            size_t wanted = slow_nearly(vocab, typed, k, want);
            if (found != wanted) fail_msg("'%s': %zu found, %zu expected", typed, found, wanted);
            for (size_t n = 0; n < found; n++)
                if (got[n] != want[n])
                    fail_msg("'%s': place %zu is '%s', not '%s'", typed, n, words[got[n]],
                             words[want[n]]);
            near += found;
        }
        embla_vocab_free(vocab);
    }
    assert_true(near > 10000); /* it was no comparison of nothing with nothing */
}

/* ---- what people mistype ---- */

static void assert_nearly(const embla_vocab *vocab, const char *word, const char *want)
{
    char text[512] = "";
    int32_t tokens[8];
    size_t found = embla_vocab_suggest(vocab, word, strlen(word), 3, tokens), length;
    for (size_t i = 0; i < found; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", i > 0 ? "|" : "",
                 embla_vocab_word(vocab, tokens[i], &length));
    if (strcmp(text, want) != 0) fail_msg("'%s' gives '%s', not '%s'", word, text, want);
}

static void mistakes_find_the_word_that_was_meant(void **state)
{
    embla_vocab *vocab =
        vocab_of_text("the\nqueen\nQueens\n\xe2\x96\x81"
                      "cat\nLondon\n\xc4\xa0Paris\nEU\nseen\nembedding\nembeddings\n"
                      "Stra\xc3\x9f"
                      "e\n\xc3\x89t\xc3\xa9\n\xd0\x9c\xd0\xbe\xd1\x81\xd0\xba\xd0\xb2\xd0\xb0\n"
                      "\xce\xa9m\nx y\nnew york\n");
    (void)state;
    assert_nearly(vocab, "the", "the");
    assert_nearly(vocab, "teh", "the");
    assert_nearly(vocab, "hte", "the");
    assert_nearly(vocab, "The", "the");
    assert_nearly(vocab, " THE", "the");
    assert_nearly(vocab, "qeen", "queen|seen");
    assert_nearly(vocab, "que", "queen|Queens");
    assert_nearly(vocab, "queens", "Queens|queen");
    assert_nearly(vocab, "cat",
                  "\xe2\x96\x81"
                  "cat");
    assert_nearly(vocab, "Cat",
                  "\xe2\x96\x81"
                  "cat");
    assert_nearly(vocab, "paris", "\xc4\xa0Paris");
    assert_nearly(vocab, "lodnon", "London");
    assert_nearly(vocab, "eu", "EU");
    assert_nearly(vocab, "embeding", "embedding");
    assert_nearly(vocab, "London", "London");
    assert_nearly(vocab, "Londdon", "London");
    assert_nearly(vocab, "strasse",
                  "Stra\xc3\x9f"
                  "e");
    assert_nearly(vocab, "\xc3\xa9t\xc3\xa9", "\xc3\x89t\xc3\xa9"); /* small letters of.. */
    assert_nearly(vocab, "\xd0\xbc\xd0\xbe\xd1\x81\xd0\xba\xd0\xb2\xd0\xb0",
                  "\xd0\x9c\xd0\xbe\xd1\x81\xd0\xba\xd0\xb2\xd0\xb0"); /* ..other alphabets */
    assert_nearly(vocab, "\xcf\x89m", "\xce\xa9m");
    assert_nearly(vocab, "new\xe2\x96\x81york", "new york");
    assert_nearly(vocab, "", "");
    assert_nearly(vocab, " ", "");
    assert_nearly(vocab, "x", ""); /* one letter is near nothing but itself */
    assert_nearly(vocab, "zzzzzz", "");
    embla_vocab_free(vocab);
}

/* One letter is near itself in another case, and nothing else. */
static void assert_case(const char *large, const char *small, bool same)
{
    embla_vocab *vocab = NULL;
    embla_name name = {large, (uint32_t)strlen(large), 0};
    int32_t token;
    assert_ok(embla_vocab_of_names(&name, 1, "a letter", &vocab));
    if (embla_vocab_suggest(vocab, small, strlen(small), 1, &token) != same)
        fail_msg("'%s' and '%s'", large, small);
    embla_vocab_free(vocab);
}

static void capitals_of_several_alphabets_are_known(void **state)
{
    (void)state;
    assert_case("A", "a", true);
    assert_case("Z", "z", true);
    assert_case("@", "`", false);
    assert_case("[", "{", false);
    assert_case("\xc3\x80", "\xc3\xa0", true);  /* U+00C0 */
    assert_case("\xc3\x9e", "\xc3\xbe", true);  /* U+00DE */
    assert_case("\xc3\x97", "\xc3\xb7", false); /* times and divided */
    assert_case("\xc3\x9f", "\xc3\xbf", false); /* sharp s */
    assert_case("\xce\x91", "\xce\xb1", true);  /* alpha */
    assert_case("\xce\xa9", "\xcf\x89", true);  /* omega */
    assert_case("\xce\xaa", "\xcf\x8a", true);  /* iota with two dots */
    assert_case("\xd0\x90", "\xd0\xb0", true);  /* Cyrillic a */
    assert_case("\xd0\xaf", "\xd1\x8f", true);  /* ya */
    assert_case("\xd0\x8f", "\xd0\xaf", false);
    assert_case("\xff", "\xff", true);
    assert_case("\xff", "\xfe", false); /* bytes that are no text differ */
    assert_case("\xff", "\xc3\xbf", false);
}

static void at_most_four_letters_may_be_wrong(void **state)
{
    embla_vocab *vocab = vocab_of_text("abcdefghijklmnopqrstuvwxyz\n");
    int32_t token;
    (void)state;
    assert_int_equal(embla_vocab_suggest(vocab, "a1c2e3g4ijklmnopqrstuvwxyz", 26, 1, &token), 1);
    assert_int_equal(embla_vocab_suggest(vocab, "a1c2e3g4i5klmnopqrstuvwxyz", 26, 1, &token), 0);
    assert_int_equal(embla_vocab_suggest(vocab, "abc1ef2hijklmn", 14, 1, &token), 0);
    embla_vocab_free(vocab);
}

/* Once there are as many as were asked for, only a nearer one counts: two letters that changed
 * places are nearer than the first of them alone seems. */
static void a_later_word_that_is_nearer_takes_the_place(void **state)
{
    embla_vocab *vocab = vocab_of_text("\xc4\xa0the\nthe\n");
    int32_t token = -1;
    (void)state;
    assert_int_equal(embla_vocab_suggest(vocab, "teh", 3, 1, &token), 1);
    assert_int_equal(token, 1);
    embla_vocab_free(vocab);
    vocab = vocab_of_text("\xc4\xa0"
                          "ba\nba\n");
    assert_int_equal(embla_vocab_suggest(vocab, "ab", 2, 1, &token), 1);
    assert_int_equal(token, 1);
    embla_vocab_free(vocab);
}

static void of_words_as_near_as_each_other_the_first_come_first(void **state)
{
    int32_t tokens[80];
    vocab_bytes b = {0};
    (void)state;
    for (int i = 0; i < 100; i++) {
        char line[16];
        snprintf(line, sizeof line, "wor%02d\n", i);
        put_text(&b, line);
    }
    embla_vocab *vocab = vocab_of(b.bytes, b.used, EMBLA_VOCAB_ANY);
    put_end(&b);
    for (size_t k = 0; k < 80; k++) {
        memset(tokens, 0x7f, sizeof tokens);
        size_t wanted = k < 64 ? k : 64; /* more are never given */
        assert_int_equal(embla_vocab_suggest(vocab, "wor", 3, k, tokens), wanted);
        for (size_t i = 0; i < wanted; i++) assert_int_equal(tokens[i], i);
        for (size_t i = wanted; i < 80; i++) assert_int_equal(tokens[i], 0x7f7f7f7f);
    }
    embla_vocab_free(vocab);
}

static void nothing_is_near_to_nothing(void **state)
{
    int32_t tokens[2] = {7, 7};
    embla_vocab *vocab = vocab_of_text("the\n");
    (void)state;
    assert_int_equal(embla_vocab_suggest(NULL, "the", 3, 2, tokens), 0);
    assert_int_equal(embla_vocab_suggest(vocab, NULL, 0, 2, tokens), 0);
    assert_int_equal(embla_vocab_suggest(vocab, NULL, 3, 2, tokens), 0);
    assert_int_equal(embla_vocab_suggest(vocab, "the", 3, 2, NULL), 0);
    assert_int_equal(embla_vocab_suggest(vocab, "the", 3, 0, tokens), 0);
    assert_int_equal(embla_vocab_suggest(vocab, "the", 0, 2, tokens), 0);
    assert_int_equal(tokens[0], 7);
    embla_vocab_free(vocab);
}

/* ---- words of any bytes ---- */

/* Of this thread: others may be using the machine. */
static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void a_word_of_a_megabyte_costs_no_more_than_a_short_one(void **state)
{
    enum { LONG = EMBLA_WORD_BYTES, TIMES = 20000 };
    char *bytes = malloc(LONG);
    embla_name *names = malloc(64 * sizeof *names);
    embla_vocab *vocab = NULL;
    int32_t tokens[3];
    (void)state;
    assert_true(bytes && names);
    memset(bytes, 'a', LONG);
    for (uint32_t i = 0; i < 64; i++) names[i] = (embla_name){bytes, LONG, i};
    assert_ok(embla_vocab_of_names(names, 64, "long", &vocab));
    double start = seconds();
    for (int i = 0; i < TIMES / 64; i++) {
        assert_int_equal(embla_vocab_suggest(vocab, "aaaa", 4, 3, tokens), 3); /* they go on */
        assert_int_equal(embla_vocab_suggest(vocab, "baab", 4, 3, tokens), 0);
    }
    assert_true(seconds() - start < 5); /* letter by letter it would be minutes */
    /* typed so long it is near nothing, not even itself */
    assert_int_equal(embla_vocab_suggest(vocab, bytes, LONG, 3, tokens), 0);
    assert_int_equal(embla_vocab_suggest(vocab, bytes, 57, 3, tokens), 0);
    assert_int_equal(embla_vocab_suggest(vocab, bytes, 56, 3, tokens), 3);
    embla_vocab_free(vocab);
    free(names);
    free(bytes);
}

static void bytes_that_are_no_text_are_letters_of_their_own(void **state)
{
    uint64_t seed = 3;
    int32_t tokens[5];
    static char bytes[300][80];
    embla_name names[300];
    embla_vocab *vocab = NULL;
    (void)state;
    for (uint32_t i = 0; i < COUNT_OF(names); i++) {
        names[i] = (embla_name){bytes[i], (uint32_t)check_below(&seed, 80), i};
        check_fill_bytes(seed + i, names[i].length, bytes[i]);
        if (i % 3 == 0) memset(bytes[i], "\xe2\xc4\xf4"[i % 9 / 3], names[i].length);
    }
    assert_ok(embla_vocab_of_names(names, COUNT_OF(names), "bytes", &vocab));
    for (uint32_t i = 0; i < COUNT_OF(names); i++) {
        size_t length = names[i].length < 40 ? names[i].length : 40;
        char *exact = malloc(length > 0 ? length : 1); /* a sanitizer sees one byte too far */
        assert_non_null(exact);
        memcpy(exact, bytes[i], length);
        assert_true(embla_vocab_suggest(vocab, exact, length, 5, tokens) <= 5);
        free(exact);
    }
    embla_vocab_free(vocab);
    names[0] = (embla_name){"\xff\xfe\xfd", 3, 0};
    assert_ok(embla_vocab_of_names(names, 1, "bytes", &vocab));
    assert_int_equal(embla_vocab_suggest(vocab, "\xff\xfd", 2, 5, tokens), 1);
    assert_int_equal(tokens[0], 0);
    embla_vocab_free(vocab);
}

static void tokens_far_apart_take_no_longer(void **state)
{
    int32_t tokens[3];
    embla_vocab *vocab = NULL;
    (void)state;
    vocab = vocab_of_text("{\"queen\":5,\"quern\":2147483647,\"the\":70000}");
    assert_int_equal(embla_vocab_suggest(vocab, "quen", 4, 3, tokens), 2);
    assert_int_equal(tokens[0], 5);
    assert_int_equal(tokens[1], 2147483647);
    embla_vocab_free(vocab);
}

static void real_words_are_found_in_time(void **state)
{
    static const char *const typed[] = {"quenn",   "embeding", "internationl", "x",
                                        "Lodnon",  "th",       "zzzzzzzzzzzz", " beautifull",
                                        "pyhton3", "der"};
    const char *data = getenv("EMBLA_DATA");
    char path[1024];
    int32_t tokens[3];
    embla_vocab *vocab = NULL;
    (void)state;
    if (!data) {
        print_message("skipped: EMBLA_DATA names no folder\n");
        skip();
    }
    snprintf(path, sizeof path, "%s/tokenizers/qwen2.5/tokenizer.json", data);
    assert_ok(embla_vocab_open_file(path, &vocab));
    double most = 0;
    for (size_t i = 0; i < COUNT_OF(typed); i++) {
        double least = 1e9;
        for (int turn = 0; turn < 5; turn++) {
            double start = seconds();
            (void)embla_vocab_suggest(vocab, typed[i], strlen(typed[i]), 3, tokens);
            double took = seconds() - start;
            least = took < least ? took : least;
        }
        most = least > most ? least : most;
    }
    most *= 262144.0 / (double)embla_vocab_count(vocab);
    print_message("%.1f ms for 262,144 words\n", most * 1e3);
    assert_true(most < 0.5); /* whatever the build; an optimised one needs a tenth */
    embla_vocab_free(vocab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_are_those_of_a_whole_matrix_and_a_sort),
        cmocka_unit_test(mistakes_find_the_word_that_was_meant),
        cmocka_unit_test(capitals_of_several_alphabets_are_known),
        cmocka_unit_test(at_most_four_letters_may_be_wrong),
        cmocka_unit_test(a_later_word_that_is_nearer_takes_the_place),
        cmocka_unit_test(of_words_as_near_as_each_other_the_first_come_first),
        cmocka_unit_test(nothing_is_near_to_nothing),
        cmocka_unit_test(a_word_of_a_megabyte_costs_no_more_than_a_short_one),
        cmocka_unit_test(bytes_that_are_no_text_are_letters_of_their_own),
        cmocka_unit_test(tokens_far_apart_take_no_longer),
        cmocka_unit_test(real_words_are_found_in_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
