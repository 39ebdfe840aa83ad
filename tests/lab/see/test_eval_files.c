/* SPDX-License-Identifier: Apache-2.0 */
/* Files of analogies and pairs: every form they come in, and every line that is refused.
 */
#include "check.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdio.h>

#include "base/mem.h"
#include "checkpoint/vocab.h"
#include "embla_lab.h"
#include "files/io.h"
#include "scratch.h"
#include "see/eval.h"

/* ---- helpers ---- */

static embla_status read_bytes(const char *text, size_t size, embla_eval_kind kind,
                               embla_eval_file *out)
{
    embla_map *map = NULL;
    assert_ok(embla_map_bytes(text, size, "input", &map));
    embla_status status = embla_eval_read(map, kind, out);
    embla_map_free(map);
    return status;
}

static embla_eval_file reads(const char *text, embla_eval_kind kind)
{
    embla_eval_file file = {0};
    assert_ok(read_bytes(text, strlen(text), kind, &file));
    return file;
}

/* Refused, with this in the sentence; nothing is written to out, and nothing is left. */
static void refuses(const char *text, embla_eval_kind kind, embla_status status, const char *says)
{
    embla_eval_file file = {.count = 77};
    size_t live = embla_mem_live();
    if (read_bytes(text, strlen(text), kind, &file) != status)
        fail_msg("'%s': not %s", text, embla_status_name(status));
    assert_error_has(says);
    assert_int_equal(strncmp(embla_error(), "input", 5), 0);
    assert_int_equal(file.count, 77);
    assert_int_equal(embla_mem_live(), live);
}

/* The words of question q, with spaces between them. */
static void assert_words(const embla_eval_file *f, size_t q, const char *words)
{
    char text[512];
    size_t used = 0;
    for (size_t i = 0; i < (size_t)f->kind; i++) {
        const embla_name *word = &f->words[f->items[q * (size_t)f->kind + i]];
        assert_int_equal(strlen(word->bytes), word->length);
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", i > 0 ? "|" : "",
                                 word->bytes);
    }
    assert_string_equal(text, words);
}

/* ---- analogies ---- */

static void questions_are_read_by_section(void **state)
{
    (void)state;
    embla_eval_file f = reads("# questions\n"
                              ": capital-world\n"
                              "Athens Greece Oslo Norway\n"
                              "\n"
                              "Oslo\tNorway \t Athens Greece  \r\n"
                              ":none\n"
                              ":   gram1 plural \r\n"
                              "a b a,b #d",
                              EMBLA_EVAL_ANALOGIES);
    assert_int_equal(f.kind, EMBLA_EVAL_ANALOGIES);
    assert_int_equal(f.count, 3);
    assert_words(&f, 0, "Athens|Greece|Oslo|Norway");
    assert_words(&f, 1, "Oslo|Norway|Athens|Greece");
    assert_words(&f, 2, "a|b|a,b|#d");
    assert_int_equal(f.section_count, 3);
    assert_string_equal(f.sections[0].name, "capital-world");
    assert_string_equal(f.sections[1].name, "none");
    assert_string_equal(f.sections[2].name, "gram1 plural");
    assert_int_equal(f.sections[0].first, 0);
    assert_int_equal(f.sections[0].count, 2);
    assert_int_equal(f.sections[1].first, 2);
    assert_int_equal(f.sections[1].count, 0);
    assert_int_equal(f.sections[2].first, 2);
    assert_int_equal(f.sections[2].count, 1);
    assert_int_equal(f.word_count, 8);
    assert_string_equal(f.words[0].bytes, "Athens"); /* as they are met, and how often */
    assert_int_equal(f.words[0].number, 2);
    assert_string_equal(f.words[7].bytes, "#d");
    assert_int_equal(f.words[7].number, 1);
    embla_eval_file_free(&f);
    f = reads("\xef\xbb\xbf"
              "a b c d\r\na b c 1\r\n",
              EMBLA_EVAL_ANALOGIES);
    assert_int_equal(f.count, 2);
    assert_int_equal(f.section_count, 1);
    assert_string_equal(f.sections[0].name, "questions");
    embla_eval_file_free(&f);
}

static void words_are_told_apart_as_by_a_search_from_front_to_back(void **state)
{
    enum { QUESTIONS = 300 };
    char text[QUESTIONS * 64], words[QUESTIONS * 4][16];
    size_t used = 0, distinct = 0;
    uint64_t seed = 5;
    (void)state;
    for (size_t i = 0; i < COUNT_OF(words); i++) {
        uint64_t n = check_below(&seed, 200);
        (void)snprintf(words[i], sizeof words[i], "%s%" PRIu64, n % 3 ? "w" : "", n * n);
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%c", words[i],
                                 i % 4 == 3 ? '\n' : ' ');
    }
    text[0] = 'x'; /* of "w0", say: so that the first line is no pair */
    words[0][0] = 'x';
    embla_eval_file f = reads(text, EMBLA_EVAL_ANALOGIES);
    for (size_t i = 0; i < COUNT_OF(words); i++) {
        size_t first = 0, times = 0;
        while (strcmp(words[first], words[i]) != 0) first++;
        for (size_t k = 0; k < COUNT_OF(words); k++) times += strcmp(words[k], words[i]) == 0;
        assert_string_equal(f.words[f.items[i]].bytes, words[i]);
        assert_int_equal(f.words[f.items[i]].number, times);
        assert_int_equal(f.items[i], first < i ? f.items[first] : distinct);
        distinct += first == i;
    }
    assert_int_equal(f.word_count, distinct);
    embla_eval_file_free(&f);
}

/* ---- pairs ---- */

static void assert_pair(const embla_eval_file *f, size_t q, const char *words, double score)
{
    assert_words(f, q, words);
    assert_true(f->scores[q] == score);
}

static void pairs_are_read_in_every_form_they_come_in(void **state)
{
    static const char *const forms[] = {
        "tiger cat 7.35\nking  queen 8.5\n",
        "tiger\tcat\t7.35\nking\tqueen\t8.5",
        "tiger,cat,7.35\r\nking , queen,8.5\r\n",
        "\xef\xbb\xbftiger cat,7.35\n king\tqueen 8.5 \n",
        "# WordSim\n\nWord 1,Word 2,Human (mean)\ntiger,cat,7.35\n#x\nking,queen,8.5\n\n",
        "word1\tword2\tscore\ntiger\tcat\t7.35\t\n\tking\tqueen\t8.5\n",
        "word1 word2\ntiger cat +7.35\nking queen .85e1\n",
        "pairs\ntiger cat 735e-2\nking queen 850E-2\n",
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(forms); i++) {
        embla_eval_file f = reads(forms[i], EMBLA_EVAL_PAIRS);
        assert_int_equal(f.count, 2);
        assert_int_equal(f.section_count, 0);
        assert_pair(&f, 0, "tiger|cat", 7.35);
        assert_pair(&f, 1, "king|queen", 8.5);
        embla_eval_file_free(&f);
    }
    embla_eval_file f = reads("a b 1\n\xef\xbb\xbf"
                              "a b 2\n",
                              EMBLA_EVAL_PAIRS);
    assert_words(&f, 1,
                 "\xef\xbb\xbf"
                 "a|b"); /* a mark stands at the front of a file only */
    embla_eval_file_free(&f);
    f = reads("New York\tbig city\t8\nnaïve,x y,-0.5\nа\tб\t0\n", EMBLA_EVAL_PAIRS);
    assert_pair(&f, 0, "New York|big city", 8);
    assert_pair(&f, 1, "naïve|x y", -0.5);
    assert_pair(&f, 2, "а|б", 0);
    embla_eval_file_free(&f);
}

static void scores_are_the_numbers_that_strtod_reads(void **state)
{
    static const char *const texts[] = {"0",
                                        "-0",
                                        "3.791666667",
                                        "10.00",
                                        "1e22",
                                        "1e-22",
                                        "5.",
                                        ".5",
                                        "-.5e1",
                                        "00012.50",
                                        "123456789012345",
                                        "0.000001",
                                        "1E+2",
                                        "9007199254740991e-3"};
    uint64_t seed = 9;
    char text[128], number[96];
    (void)state;
    for (size_t i = 0; i < COUNT_OF(texts) + 2000; i++) {
        if (i < COUNT_OF(texts))
            (void)snprintf(number, sizeof number, "%s", texts[i]);
        else
            (void)snprintf(number, sizeof number, "%.*f", (int)check_below(&seed, 10),
                           (double)check_unit(&seed) * 1e4);
        (void)snprintf(text, sizeof text, "a b %s", number);
        embla_eval_file f = reads(text, EMBLA_EVAL_PAIRS);
        assert_pair(&f, 0, "a|b", strtod(number, NULL));
        embla_eval_file_free(&f);
    }
    /* Beyond what is exact: within a few units of the last place. */
    static const char *const far[] = {"12345678901234567890123",
                                      "98765432109876543210987",
                                      "1e300",
                                      "2.5e-300",
                                      "0.00000000000000000000000000012345678901234567890",
                                      "1e-400"};
    for (size_t i = 0; i < COUNT_OF(far); i++) {
        double wanted = strtod(far[i], NULL);
        (void)snprintf(text, sizeof text, "a b %s", far[i]);
        embla_eval_file f = reads(text, EMBLA_EVAL_PAIRS);
        assert_near(f.scores[0], wanted, 32 * DBL_EPSILON * wanted);
        embla_eval_file_free(&f);
    }
    static const char *const no_numbers[] = {
        "1e",   "e5",   "1e+", "--1",   "1.2.3",
        "0x10", "nan",  "inf", "1e999", ".",
        "-",    "1e5x", "12a", "+-1",   "1e99999999999999999999"};
    for (size_t i = 0; i < COUNT_OF(no_numbers); i++) {
        (void)snprintf(text, sizeof text, "a b 1\na b %s", no_numbers[i]);
        (void)snprintf(number, sizeof number, "line 2: the third field '%s' is not a number",
                       no_numbers[i]);
        refuses(text, EMBLA_EVAL_PAIRS, EMBLA_ERR_FORMAT, number);
    }
}

/* ---- refused ---- */

static void lines_that_are_not_what_they_should_be_are_named(void **state)
{
    static const struct {
        const char *text;
        embla_eval_kind kind;
        const char *says;
    } cases[] = {
        {": a\nx y z\n", EMBLA_EVAL_ANALOGIES, "line 2 has 3 words; a question has 4"},
        {"a b c d\n\n#\nx y z u v w\n", EMBLA_EVAL_ANALOGIES, "line 4 has 6 words"},
        {": a\n:\n", EMBLA_EVAL_ANALOGIES, "line 2 begins a section without a name"},
        {":", EMBLA_EVAL_ANALOGIES, "line 1 begins a section"},
        {": a\n: b\n", EMBLA_EVAL_ANALOGIES, "2 lines, but no questions"},
        {": a\nx y z \xff\n", EMBLA_EVAL_ANALOGIES, "line 2, byte 7 of 7: not UTF-8"},
        {": a\nx\x01y z u\n", EMBLA_EVAL_ANALOGIES, "line 2, byte 2 of 7 is 0x01: not text"},
        {": a\nx\x1fy z u\n", EMBLA_EVAL_ANALOGIES, "is 0x1f: not text"},
        {": a\nx\ry z u\n", EMBLA_EVAL_ANALOGIES, "is 0x0d: not text"},
        {"a b 1\na b\n", EMBLA_EVAL_PAIRS, "line 2 has 2 fields; a pair has 3"},
        {"a b 1\na b c 1\n", EMBLA_EVAL_PAIRS, "line 2 has 4 fields"},
        {"a b 1\na\n", EMBLA_EVAL_PAIRS, "line 2 has 1 fields"},
        {"a b 1\na,,1\n", EMBLA_EVAL_PAIRS, "line 2: an empty field '' is not a word"},
        {"a b 1\n,b,1\n", EMBLA_EVAL_PAIRS, "line 2: an empty field"},
        {"a,b,\nc,d,\n", EMBLA_EVAL_PAIRS, "line 2: the third field '' is not a number"},
        {"a b c\nx y z\n", EMBLA_EVAL_PAIRS, "line 2: the third field 'z' is not a number"},
        {"the 0.1 0.2 0.3\n", EMBLA_EVAL_PAIRS, "line 1 has 4 fields"},
        {"a b c d e f g\n", EMBLA_EVAL_PAIRS, "line 1 has 7 fields"},
        {"hello\n", EMBLA_EVAL_PAIRS, "1 lines, but no pairs"},
        {"# nothing\n\n \t\n", EMBLA_EVAL_PAIRS, "3 lines, but no pairs"},
        {"", EMBLA_EVAL_PAIRS, "0 lines"},
        {"", EMBLA_EVAL_ANALOGIES, "0 lines"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        refuses(cases[i].text, cases[i].kind, EMBLA_ERR_FORMAT, cases[i].says);
    embla_eval_file f = {0};
    assert_status(read_bytes("a b\0 c d\n", 9, EMBLA_EVAL_ANALOGIES, &f), EMBLA_ERR_FORMAT);
    assert_error_has("line 1, byte 4 of 8 is 0x00");
}

static void each_function_refuses_the_other_kind(void **state)
{
    (void)state;
    refuses("a b 1\n", EMBLA_EVAL_ANALOGIES, EMBLA_ERR_UNSUPPORTED, "line 1 looks like");
    refuses("\n#\na,b,1\n", EMBLA_EVAL_ANALOGIES, EMBLA_ERR_UNSUPPORTED, "line 3");
    refuses("Word 1,Word 2,Human (mean)\n", EMBLA_EVAL_ANALOGIES, EMBLA_ERR_UNSUPPORTED, "line 1");
    refuses("a b c 1.5\n", EMBLA_EVAL_ANALOGIES, EMBLA_ERR_UNSUPPORTED, "line 1");
    refuses("a b c d e\n", EMBLA_EVAL_ANALOGIES, EMBLA_ERR_UNSUPPORTED, "line 1");
    refuses("\n: a\n", EMBLA_EVAL_PAIRS, EMBLA_ERR_UNSUPPORTED,
            "4 words (line 2), not pairs of 2 words");
    refuses("a b c d\n", EMBLA_EVAL_PAIRS, EMBLA_ERR_UNSUPPORTED, "4 words (line 1)");
    refuses("a\tb\tc\td\n", EMBLA_EVAL_PAIRS, EMBLA_ERR_UNSUPPORTED, "4 words");
}

static void lines_have_64_kib_at_most(void **state)
{
    enum { MOST = EMBLA_EVAL_LINE_BYTES, ROOM = 3 * MOST };
    static const char *const ends[] = {"", "\n", "\r\n", "\r", "\nx y 2\n"};
    char *text = malloc(ROOM);
    char says[128];
    embla_eval_file f = {0};
    (void)state;
    assert_non_null(text);
    for (size_t i = 0; i < COUNT_OF(ends); i++)
        for (size_t length = MOST - 1; length <= MOST + 2; length++) {
            memset(text, 'w', length);
            memcpy(text, "a ", 2);
            memcpy(text + length - 2, " 1", 2);
            strcpy(text + length, ends[i]);
            size_t size = length + strlen(ends[i]);
            if (length <= MOST) {
                assert_ok(read_bytes(text, size, EMBLA_EVAL_PAIRS, &f));
                assert_int_equal(f.words[1].length, length - 4);
                assert_int_equal(f.count, i == 4 ? 2 : 1);
                embla_eval_file_free(&f);
                continue;
            }
            assert_status(read_bytes(text, size, EMBLA_EVAL_PAIRS, &f), EMBLA_ERR_FORMAT);
            (void)snprintf(says, sizeof says, "line 1 has %zu bytes; at most %d are allowed",
                           length, MOST);
            assert_error_has(says);
        }
    memset(text, 'w', ROOM);
    assert_status(read_bytes(text, ROOM, EMBLA_EVAL_PAIRS, &f), EMBLA_ERR_FORMAT);
    assert_error_has("line 1 has 131072 bytes and more");
    free(text);
}

static void files_have_2_to_the_22_lines_at_most(void **state)
{
    size_t most = EMBLA_EVAL_LINES;
    char *text = malloc(most + 8);
    embla_eval_file f = {0};
    (void)state;
    assert_non_null(text);
    memset(text, '\n', most);
    memcpy(text + most - 1, "a b 1\n", 7); /* the last of them */
    assert_ok(read_bytes(text, most + 5, EMBLA_EVAL_PAIRS, &f));
    assert_int_equal(f.count, 1);
    embla_eval_file_free(&f);
    text[most + 5] = '\n';
    assert_status(read_bytes(text, most + 6, EMBLA_EVAL_PAIRS, &f), EMBLA_ERR_FORMAT);
    assert_error_has("line 4194305 at byte 4194309: the file has more than 4194304 lines");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(questions_are_read_by_section),
        cmocka_unit_test(words_are_told_apart_as_by_a_search_from_front_to_back),
        cmocka_unit_test(pairs_are_read_in_every_form_they_come_in),
        cmocka_unit_test(scores_are_the_numbers_that_strtod_reads),
        cmocka_unit_test(lines_that_are_not_what_they_should_be_are_named),
        cmocka_unit_test(each_function_refuses_the_other_kind),
        cmocka_unit_test(lines_have_64_kib_at_most),
        cmocka_unit_test(files_have_2_to_the_22_lines_at_most),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
