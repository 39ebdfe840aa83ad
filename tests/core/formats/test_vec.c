/* SPDX-License-Identifier: Apache-2.0 */
/* Files of words and vectors: one test for each clause of rules W1 to W7, in word2vec's text,
 * GloVe's text and word2vec's binary, and telling the three from each other and from other
 * text. Rows, writing, failures and real vectors: test_vec_rows.c.
 */
#include <math.h>
#include <stdio.h>

#include "vec_bytes.h"

static void check_kind(const char *seed, const char *bytes, size_t size, embla_vec_kind kind)
{
    one_seed("vec", seed, bytes, size);
    size_t have = size < 4096 ? size : 4096;
    uint8_t *exact = malloc(have > 0 ? have : 1);
    assert_non_null(exact);
    memcpy(exact, bytes, have);
    assert_int_equal(embla_vec_kind_of(exact, have, size), kind);
    free(exact);
}

#define KIND(seed, bytes, kind) check_kind(seed, bytes, sizeof(bytes) - 1, kind)

/* ---- W1 ---- */

static void rule_w1_the_header_is_two_numbers_and_a_space(void **state)
{
    one_file f;
    embla_vec_header header;
    (void)state;
    ACCEPTS(TEXT, "ok_text", "2 2\nthe 1 -2\nof 3 4\n", &f);
    one_shape(&f, 2, 2);
    one_label(&f, 0, "the");
    one_label(&f, 1, "of");
    one_two(&f, 0);
    assert_string_equal(f.directory.entries[0].name, "vectors");
    assert_string_equal(f.directory.entries[0].element->name, "F32");
    assert_true(f.directory.entries[0].made);
    one_close(&f);
    ACCEPTS(TEXT, "ok_text_crlf", "2 2\r\nthe 1 -2\r\nof 3 4\r\n", &f);
    one_label(&f, 1, "of");
    one_two(&f, 0);
    one_close(&f);
    assert_true(embla_vec_header_of((const uint8_t *)"4294967296 300\n", 15, &header));
    assert_int_equal(header.rows, UINT64_C(4294967296));
    assert_int_equal(header.dim, 300);
    assert_int_equal(header.length, 15);
}

static void rule_w1_what_is_no_header_is_refused(void **state)
{
    (void)state;
    REFUSES(TEXT, "w1_no_dim", "2\nthe 1 -2\n", "W1");
    REFUSES(TEXT, "w1_two_spaces", "2  2\nthe 1 -2\n", "W1");
    REFUSES(TEXT, "w1_space_first", " 2 2\nthe 1 -2\n", "W1");
    REFUSES(TEXT, "w1_space_last", "2 2 \nthe 1 -2\n", "W1");
    REFUSES(TEXT, "w1_tab", "2\t2\nthe 1 -2\n", "W1");
    REFUSES(TEXT, "w1_sign", "+2 2\nthe 1 -2\n", "W1");
    REFUSES(TEXT, "w1_three_numbers", "2 2 2\nthe 1 -2\n", "W1");
    REFUSES(TEXT, "w1_11_digits", "00000000002 2\nthe 1 -2\n", "W1");
    REFUSES(TEXT, "w1_7_digits", "2 0000002\nthe 1 -2\n", "W1");
    REFUSES(TEXT, "w1_no_newline", "2 2", "W1");
    REFUSES(TEXT, "w1_half", "2 ", "W1");
    REFUSES(TEXT, "w1_digits", "22", "W1");
    REFUSES(TEXT, "w1_carriage_return", "2 2\rthe 1 2", "W1");
    REFUSES(BINARY, "w1_no_header", "two 2\nthe " ONE_TWO, "W1");
}

static void rule_w1_rows_and_dim_have_limits(void **state)
{
    (void)state;
    REFUSES_EVEN_LENIENT(TEXT, "w1_no_rows", "0 2\n", "W1");
    REFUSES_EVEN_LENIENT(TEXT, "w1_dim_0", "1 0\nthe\n", "W1");
    REFUSES_EVEN_LENIENT(TEXT, "w1_dim_65537", "1 65537\nthe 1\n", "W1");
    REFUSES_EVEN_LENIENT(TEXT, "w1_rows_2_31", "2147483648 2\nthe 1 2\n", "W1");
    assert_error_has(
        "2147483648 rows of 2 numbers; supported are 1 to 2147483647 rows of 1 to 65536");
    REFUSES_EVEN_LENIENT(BINARY, "w1_dim_0", "1 0\nthe ", "W1");
    REFUSES(TEXT, "w5_many_rows", "2147483647 65536\nthe 1\n", "W3");
}

static void rule_w1_binary_rows_must_fit_the_file(void **state)
{
    (void)state;
    REFUSES(BINARY, "w1_rows_do_not_fit", "3 2\nthe " ONE_TWO "\nof " ONE_TWO "\n", "W1");
    assert_error_has("3 rows, each of at least 10 bytes, but only 25 bytes are left");
    REFUSES(BINARY, "w1_giant", "2147483647 65536\na ", "W1");
}

static void rule_w1_glove_has_no_header_but_three_fields(void **state)
{
    one_file f;
    (void)state;
    ACCEPTS(GLOVE, "ok_glove", "the 1 -2\nof 3 4\n", &f);
    one_shape(&f, 2, 2);
    one_label(&f, 0, "the");
    one_two(&f, 0);
    one_close(&f);
    REFUSES(GLOVE, "w1_glove_2_fields", "the 1\nof 2\n", "W1");
    REFUSES(GLOVE, "w1_glove_1_field", "the\nof\n", "W1");
    REFUSES(GLOVE, NULL, "\n", "W1");
}

static void rule_w1_glove_rows_have_65536_numbers_at_most(void **state)
{
    const size_t dim = 65537;
    char *text = malloc(2 * dim + 2);
    one_file f;
    (void)state;
    assert_non_null(text);
    text[0] = 'a';
    for (size_t i = 0; i < dim; i++) memcpy(text + 1 + 2 * i, " 1", 2);
    one_refuses(GLOVE, "vec", NULL, text, 1 + 2 * dim, false, EMBLA_ERR_FORMAT, "W1");
    one_accepts(GLOVE, "vec", NULL, text, 1 + 2 * (dim - 1), NULL, &f);
    one_shape(&f, 1, dim - 1);
    one_close(&f);
    free(text);
}

static void a_file_is_told_by_its_bytes(void **state)
{
    (void)state;
    KIND("kind_text", "2 2\nthe 1 -2\nof 3 4\n", EMBLA_VEC_TEXT);
    KIND("kind_text_one", "1 1\nthe 1", EMBLA_VEC_TEXT);
    KIND("kind_text_dots", "1 2\n. . . 0.5 0.25\n", EMBLA_VEC_TEXT);
    KIND("kind_text_at", "1 2\nat name@domain.com 0.5 0.25\n", EMBLA_VEC_TEXT);
    KIND("kind_text_utf8", "2 2\n\xc3\xa9 1 -2\n", EMBLA_VEC_TEXT);
    KIND("kind_binary", "2 2\nthe " ONE_TWO "\n", EMBLA_VEC_BINARY);
    KIND("kind_binary_newline", "2 2\n\nthe " ONE_TWO, EMBLA_VEC_BINARY);
    KIND("kind_binary_newline_word", "2 2\n\n " ONE_TWO, EMBLA_VEC_BINARY);
    KIND("kind_binary_high", "2 2\nthe \t\r\n\xbe 12", EMBLA_VEC_BINARY);
    KIND("kind_binary_by_size", "1 2\nthe abcdefgh", EMBLA_VEC_BINARY); /* floats, by the size */
    KIND("kind_glove", "the 1 -2\nof 3 4\n", EMBLA_VEC_GLOVE);
    KIND("kind_glove_one", "the 1 -2", EMBLA_VEC_GLOVE);
    KIND("kind_glove_empty_line", "the 1 -2\n\n", EMBLA_VEC_GLOVE);
    KIND("kind_glove_dots", "the 1 -2\n. . 3 4\n", EMBLA_VEC_GLOVE);
    KIND("kind_glove_tabs", "the\t1\t-2\t\r\n", EMBLA_VEC_GLOVE);
    /* damaged, but told: its reader says what is wrong */
    KIND("kind_text_damaged", "3 2\nthe 1 x\nof 1 2\nto 1 2\n", EMBLA_VEC_TEXT);
    KIND("kind_text_damaged_too", "3 2\nthe  x 1\n", EMBLA_VEC_TEXT);
    KIND("kind_text_nothing", "3 2\n", EMBLA_VEC_TEXT);
    KIND("kind_text_no_rows", "0 2\nwhatever", EMBLA_VEC_TEXT);
    KIND("kind_text_dim_0", "3 0\nwhatever", EMBLA_VEC_TEXT);
}

static void other_text_is_not_taken(void **state)
{
    (void)state;
    KIND("kind_empty", "", EMBLA_VEC_NONE);
    KIND("kind_newline", "\n", EMBLA_VEC_NONE);
    KIND("kind_title", "# A title\n\nSome words, and 3 numbers.\n", EMBLA_VEC_NONE);
    KIND("kind_word", "word\n", EMBLA_VEC_NONE);
    KIND("kind_word_number", "word 1\n", EMBLA_VEC_NONE);
    KIND("kind_no_word", " 1 2 3\n", EMBLA_VEC_NONE); /* no word */
    KIND("kind_glove_then_words", "the 1 2\nend of file\n", EMBLA_VEC_NONE);
    KIND("kind_glove_then_more", "the 1 2\n\nmore\n", EMBLA_VEC_NONE);
    KIND("kind_glove_then_few", "the 1 2\nof 1\n", EMBLA_VEC_GLOVE); /* refused: W3 */
    KIND("kind_glove_then_more_numbers", "the 1 2\nof 1 2 3\n", EMBLA_VEC_GLOVE);
    KIND("kind_glove_word_last", "the 1 2 three\nof 1 2 3\n", EMBLA_VEC_NONE);
    KIND("kind_commas", "1,2,3\n4,5,6\n", EMBLA_VEC_NONE);
    KIND("kind_json", "{\"a\": 1, \"b\": 2}\n", EMBLA_VEC_NONE);
    KIND("kind_months", "12 5\nnames of months and days\n", EMBLA_VEC_NONE);
    KIND("kind_header_newline", "12 5\n\n", EMBLA_VEC_NONE);
    KIND("kind_no_space", "12 5\nword", EMBLA_VEC_NONE);
    KIND("kind_merges", "#version: 0.2\n\xc4\xa0 t\n\xc4\xa0 a\n", EMBLA_VEC_NONE);
}

/* Of a row that is longer than the first 4096 bytes only these are seen. */
static void a_long_first_row_is_told_by_its_beginning(void **state)
{
    static char bytes[5000];
    const char *first = "2 3000\n. at name ";
    (void)state;
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = "0.12 -3.4e-5 "[i % 13];
    check_kind("kind_long_glove", bytes, sizeof bytes, EMBLA_VEC_GLOVE);
    memcpy(bytes, "the 1 2\n", 8);
    check_kind("kind_long_second_row", bytes, sizeof bytes, EMBLA_VEC_GLOVE);
    bytes[8] = '\n';
    check_kind("kind_long_empty_row", bytes, sizeof bytes, EMBLA_VEC_NONE);
    memcpy(bytes, first, strlen(first));
    check_kind("kind_long_text", bytes, sizeof bytes, EMBLA_VEC_TEXT);
    memset(bytes + strlen(first), 'x', sizeof bytes - strlen(first));
    check_kind("kind_long_no_number", bytes, sizeof bytes, EMBLA_VEC_NONE);
    assert_int_equal(embla_vec_kind_of((uint8_t *)bytes, 4096, 100000), EMBLA_VEC_BINARY);
    memcpy(bytes, "2 3000\nwordxxxxxxxxxxxx", 23);
    assert_int_equal(embla_vec_kind_of((uint8_t *)bytes, 4096, 100000), EMBLA_VEC_NONE);
    check_kind("kind_long_word", bytes, sizeof bytes, EMBLA_VEC_NONE);
    memcpy(bytes, "word 0.25 ", 10);
    check_kind("kind_long_glove_word", bytes, sizeof bytes, EMBLA_VEC_NONE);
}

/* ---- W2 ---- */

static void rule_w2_both_dialects_of_binary(void **state)
{
    one_file f;
    (void)state;
    ACCEPTS(BINARY, "ok_newlines", "2 2\nthe " ONE_TWO "\nof " ONE_TWO "\n", &f);
    one_shape(&f, 2, 2);
    one_label(&f, 0, "the");
    one_label(&f, 1, "of");
    one_two(&f, 0);
    one_two(&f, 1);
    one_close(&f);
    ACCEPTS(BINARY, "ok_no_newlines", "2 2\nthe " ONE_TWO "of " ONE_TWO, &f);
    one_label(&f, 1, "of");
    one_two(&f, 1);
    one_close(&f);
    ACCEPTS(BINARY, "ok_newline_first", "2 2\n\nthe " ONE_TWO "\nof " ONE_TWO, &f);
    one_label(&f, 0, "the");
    one_label(&f, 1, "of");
    one_close(&f);
    ACCEPTS(BINARY, "ok_crlf_header", "1 2\r\nthe " ONE_TWO, &f);
    one_two(&f, 0);
    one_close(&f);
    ACCEPTS(BINARY, "ok_no_newlines_but_the_last", "2 2\nthe " ONE_TWO "of " ONE_TWO "\n", &f);
    one_close(&f);
}

static void rule_w2_a_newline_may_be_a_word(void **state)
{
    one_file f;
    (void)state;
    ACCEPTS(BINARY, "ok_newline_words", "3 2\n\n " ONE_TWO "\n " ONE_TWO "a\nb " ONE_TWO, &f);
    one_label(&f, 0, "\n");
    one_label(&f, 1, "\n");
    one_label(&f, 2, "a\nb");
    one_two(&f, 1);
    one_close(&f);
    ACCEPTS(BINARY, NULL, "3 2\na " ONE_TWO "\nb " ONE_TWO "\n\n " ONE_TWO, &f);
    one_label(&f, 2, "\n");
    one_close(&f);
}

static void rule_w2_a_missing_newline_is_refused(void **state)
{
    (void)state;
    REFUSES_EVEN_LENIENT(BINARY, "w2_newline_missing",
                         "3 2\na " ONE_TWO "\nb " ONE_TWO "c " ONE_TWO, "W2");
    assert_error_has("row 2 at byte 25 begins with 0x63");
}

static void binary_word(size_t length, const char *seed, one_file *out, embla_status wanted)
{
    char bytes[2000] = "1 2\n";
    memset(bytes + 4, 'w', length);
    memcpy(bytes + 4 + length, " " ONE_TWO, 9);
    if (wanted == EMBLA_OK)
        one_accepts(BINARY, "vec_bin", seed, bytes, 4 + length + 9, NULL, out);
    else
        one_refuses(BINARY, "vec_bin", seed, bytes, 4 + length + 9, false, wanted, "W2");
}

static void rule_w2_words_have_1_to_1024_bytes(void **state)
{
    one_file f;
    (void)state;
    binary_word(1, NULL, &f, EMBLA_OK);
    one_close(&f);
    binary_word(1024, "ok_word_1024", &f, EMBLA_OK);
    assert_int_equal(f.directory.labels[0].length, 1024);
    one_two(&f, 0);
    one_close(&f);
    binary_word(1025, "w2_word_1025", &f, EMBLA_ERR_FORMAT);
    assert_error_has("too long");
    REFUSES_EVEN_LENIENT(BINARY, "w2_empty_word", "1 2\n " ONE_TWO "more", "W2");
    assert_error_has("empty word");
}

static void rule_w2_the_end_inside_a_row_is_refused_with_its_number(void **state)
{
    (void)state;
    REFUSES_EVEN_LENIENT(BINARY, "w2_end_in_numbers", "2 2\nthe-long-word " ONE_TWO "\nof \0\0\0\0",
                         "W2");
    assert_error_has("row 1 needs 8 bytes of numbers, but only 4 are left");
    REFUSES_EVEN_LENIENT(BINARY, "w2_end_in_word", "2 2\nthe-long-word " ONE_TWO "\nof", "W2");
    assert_error_has("row 1");
    assert_error_has("inside its word");
}

/* ---- W3 ---- */

static void rule_w3_numbers_are_counted_from_the_right(void **state)
{
    one_file f;
    (void)state;
    ACCEPTS(TEXT, "ok_words_with_spaces",
            "4 2\n. . . 1 -2\nat name@domain.com 1 -2\n1 2 3 1 -2\n  x 1 -2\n", &f);
    one_label(&f, 0, ". . .");
    one_label(&f, 1, "at name@domain.com");
    one_label(&f, 2, "1 2 3");
    one_label(&f, 3, "  x");
    for (uint64_t row = 0; row < 4; row++) one_two(&f, row);
    one_close(&f);
    ACCEPTS(GLOVE, "ok_glove_words_with_spaces", "the 1 -2\n. . 1 -2\n", &f);
    one_label(&f, 1, ". .");
    one_close(&f);
}

static void rule_w3_only_space_and_tab_separate(void **state)
{
    one_file f;
    (void)state;
    /* no-break space, ideographic space, vertical tab, form feed, 0x85, a lone \r */
    ACCEPTS(TEXT, "ok_unicode_spaces",
            "5 2\na\xc2\xa0"
            "b 1 -2\n\xe3\x80\x80\t1\t-2\n\v 1 -2\n\x85 1 \t -2\na\rb 1 -2\n",
            &f);
    one_label(&f, 0,
              "a\xc2\xa0"
              "b");
    one_label(&f, 1, "\xe3\x80\x80");
    one_label(&f, 2, "\v");
    one_label(&f, 3, "\x85");
    one_label(&f, 4, "a\rb");
    for (uint64_t row = 0; row < 5; row++) one_two(&f, row);
    one_close(&f);
}

static void rule_w3_a_line_with_too_few_fields_is_refused(void **state)
{
    (void)state;
    REFUSES_EVEN_LENIENT(TEXT, "w3_few_fields", "2 3\nthe 1 2 3\nof 1 2\n", "W3");
    assert_error_has("line 3 has 3 fields; it must have a word and 3 numbers");
    REFUSES_EVEN_LENIENT(GLOVE, "w3_glove_second", "the 1 2 3\nof 1 2\nto 1 2 3\n", "W3");
    assert_error_has("line 2 has 3 fields; it must have a word and 3 numbers");
    REFUSES_EVEN_LENIENT(GLOVE, "w3_glove_third", "the 1 2 3\nto 1 2 3\nof 1\n", "W3");
    assert_error_has("line 3 has 2 fields");
    REFUSES_EVEN_LENIENT(GLOVE, "w3_glove_first", "the 1 2\nof 1 2 3\nto 1 2 3\n", "W3");
    assert_error_has("line 1 has a word and 2 numbers, but line 2 a word and 3 numbers");
    REFUSES_EVEN_LENIENT(TEXT, "w3_no_word", "1 2\n 1 2\n", "W3");
    REFUSES_EVEN_LENIENT(GLOVE, "w3_glove_few_fields", "the 1 2\nof 1\n", "W3");
    assert_error_has("line 2 has 2 fields");
}

static void rule_w3_what_ends_a_line(void **state)
{
    one_file f;
    (void)state;
    ACCEPTS(TEXT, "ok_trailing_spaces", "3 2\nthe 1 -2 \nof 1 -2\t \r\nto 1 -2", &f);
    for (uint64_t row = 0; row < 3; row++) one_two(&f, row);
    one_close(&f);
    ACCEPTS(TEXT, "ok_empty_last_line", "1 2\nthe 1 -2\n\n", &f);
    one_two(&f, 0);
    one_close(&f);
    ACCEPTS(GLOVE, "ok_glove_last_line_of_spaces", "the 1 -2\n  ", &f);
    one_shape(&f, 1, 2);
    one_two(&f, 0);
    one_close(&f);
    REFUSES_EVEN_LENIENT(TEXT, "w3_empty_line", "2 2\nthe 1 2\n\nof 1 2\n", "W3");
    assert_error_has("line 3 has 0 fields");
    REFUSES_EVEN_LENIENT(TEXT, "w3_two_empty_lines", "2 2\nthe 1 2\n\n\n", "W3");
}

static void long_line(size_t word, const char *seed, one_file *out, embla_status wanted)
{
    char bytes[2000] = "1 2\n";
    memset(bytes + 4, 'w', word);
    memcpy(bytes + 4 + word, " 1 -2 \n", 7);
    if (wanted == EMBLA_OK)
        one_accepts(TEXT, "vec", seed, bytes, 4 + word + 7, NULL, out);
    else
        one_refuses(TEXT, "vec", seed, bytes, 4 + word + 7, true, wanted, "W3");
}

static void rule_w3_a_line_has_1024_bytes_and_40_for_each_number(void **state)
{
    one_file f;
    (void)state;
    long_line(1024 + 80 - 6, "ok_long_line", &f, EMBLA_OK);
    assert_int_equal(f.directory.labels[0].length, 1024 + 80 - 6);
    one_two(&f, 0);
    one_close(&f);
    long_line(1024 + 80 - 5, "w3_long_line", &f, EMBLA_ERR_FORMAT);
    assert_error_has("the limit is 1104");
    long_line(1024 + 80, "w3_longer_line", &f, EMBLA_ERR_FORMAT);
}

/* A line without an end is refused after one window, not after the whole file. */
static void rule_w3_a_line_without_an_end_is_refused(void **state)
{
    const size_t size = (size_t)3 << 20;
    char *bytes = malloc(size);
    (void)state;
    assert_non_null(bytes);
    memset(bytes, 'w', size);
    memcpy(bytes, "9 2\nthe 1 2\n", 12);
    one_refuses(TEXT, "vec", NULL, bytes, size, false, EMBLA_ERR_FORMAT, "W3");
    assert_error_has("line 3 has at least 262144 bytes");
    memcpy(bytes, "the 1 2 \n", 9);
    one_refuses(GLOVE, "vec", NULL, bytes, size, false, EMBLA_ERR_FORMAT, "W3");
    memset(bytes, 'w', 20);
    one_refuses(GLOVE, "vec", NULL, bytes, size, false, EMBLA_ERR_FORMAT, "W1");
    free(bytes);
}

/* ---- W4 (numbers themselves: test_decimal.c) ---- */

#define NUMBER(number) "2 3\nthe 1 -2 3\nof 0.5 " number " 7\n"

static void number_is_refused(const char *bytes, size_t size, const char *shown)
{
    one_file f;
    float values[6];
    one_accepts(TEXT, "vec", NULL, bytes, size, NULL, &f);
    assert_ok(one_make(&f, 0, 1, values));
    assert_status(one_make(&f, 0, 2, values), EMBLA_ERR_FORMAT);
    one_sentence("W4");
    assert_error_has("row 1, column 1: ");
    assert_error_has(shown);
    one_close(&f);
}

static void rule_w4_what_is_no_number_is_refused_with_row_and_column(void **state)
{
    (void)state;
    number_is_refused(NUMBER("x"), sizeof NUMBER("x") - 1, "'x'");
    number_is_refused(NUMBER("0x10"), sizeof NUMBER("0x10") - 1, "'0x10'");
    number_is_refused(NUMBER("1,5"), sizeof NUMBER("1,5") - 1, "'1,5'");
    number_is_refused(NUMBER("1.5e"), sizeof NUMBER("1.5e") - 1, "'1.5e'");
    number_is_refused(NUMBER("nanx"), sizeof NUMBER("nanx") - 1, "'nanx'");
    number_is_refused(NUMBER(".5"), sizeof NUMBER(".5") - 1, "'.5'");
    number_is_refused(NUMBER("1\0002"), sizeof NUMBER("1\0002") - 1, "'1'");
    one_file f;
    ACCEPTS(TEXT, "w4_no_number", NUMBER("x"), &f);
    one_close(&f);
#define TEN "xxxxxxxxxx"
    ACCEPTS(TEXT, "w4_no_number_of_70_letters", NUMBER(TEN TEN TEN TEN TEN TEN TEN), &f);
    float values[6];
    assert_status(one_make(&f, 0, 2, values), EMBLA_ERR_FORMAT);
    assert_error_has(": '" TEN TEN TEN TEN TEN TEN "xxxx' is not a number"); /* 64 are shown */
#undef TEN
    one_close(&f);
    ACCEPTS(TEXT, "ok_numbers_of_7_digits", "1 2\na 1234567 7654321\n", &f);
    one_close(&f);
    ACCEPTS(TEXT, "w4_hex", NUMBER("0x10"), &f);
    one_close(&f);
}

/* Numbers that are hard to read, in a file: their bits are those of strtof. */
static void rule_w4_numbers_of_a_file_are_those_of_strtof(void **state)
{
    static const char *const numbers[] = {
        "16777217",
        "16777219.0",
        "1.00000005960464477539062500000000000001",
        "1e-40",
        "1.5E+38",
        "3.5e38",
        "7.1e-46",
        "0.00000000000000000000000000001234567890123",
        "12345678.12345678",
        "99999999999999999999",
        "1.17549428e-38",
        "0.1234567890123456789",
        "123456789e-9",
        "1e-99999999999",
        "1e99999999999",
        "0e5",
        "000000000000000000000000",
        "-0.0",
        "+7",
        "1.00000005960464477539062500000000000000000000000000000000000000000000000000000000000000"
        "000000000000000000000000000000000000000000000000000000000000000000000011",
        "8388608.5",
        "9.9999999e9",
        "1.234567e-12",
        "0.00012345678",
        "1e22",
        "1e23",
        "-1e-5",
        "0.50000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
        "00000000000000000000000000000000000000000000000000000000000000000001",
        "0.5000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
        "0000000000000000000000000000000000000000000000000000000000000000000000"};
    char bytes[1400];
    float values[COUNT_OF(numbers)];
    one_file f;
    size_t used = (size_t)snprintf(bytes, sizeof bytes, "1 %zu\nword", COUNT_OF(numbers));
    (void)state;
    for (size_t i = 0; i < COUNT_OF(numbers); i++)
        used += (size_t)snprintf(bytes + used, sizeof bytes - used, " %s", numbers[i]);
    one_accepts(TEXT, "vec", "ok_numbers", bytes, used, NULL, &f);
    assert_ok(one_make(&f, 0, 1, values));
    embla_order_turn(values, sizeof *values, COUNT_OF(numbers));
    for (size_t i = 0; i < COUNT_OF(numbers); i++)
        assert_int_equal(check_bits_of(values[i]), check_bits_of(strtof(numbers[i], NULL)));
    one_close(&f);
    one_seed("vec", "w4_no_numbers", "1 9\na 1. 1.e5 1e 1e+ 1e+x . .12345678 1.x2345678 12x\n", 53);
}

static void rule_w4_nan_and_infinity_are_numbers(void **state)
{
    one_file f;
    float values[6];
    (void)state;
    ACCEPTS(TEXT, "ok_nan_inf", "2 3\nthe -nan -Inf +infinity\nof 1e99 -1E+99 1e-99\n", &f);
    assert_ok(one_make(&f, 0, 2, values));
    embla_order_turn(values, sizeof *values, 6);
    assert_true(isnan(values[0]));
    assert_true(isinf(values[1]) && values[1] < 0);
    assert_true(isinf(values[2]) && values[2] > 0);
    assert_true(isinf(values[3]) && values[3] > 0); /* too large */
    assert_true(isinf(values[4]) && values[4] < 0);
    assert_true(values[5] == 0.0f);
    one_close(&f);
}

/* ---- W5 ---- */

static void rule_w5_fewer_rows_than_the_header_says(void **state)
{
    one_file f;
    (void)state;
    REFUSES(TEXT, "w5_fewer", "3 2\nthe 1 -2\nof 3 4\n", "W5");
    assert_error_has("counts 3 rows, but there are 2");
    LENIENT(TEXT, "3 2\nthe 1 -2\nof 3 4\n", &f);
    one_shape(&f, 2, 2);
    one_note(&f, "counts 3 rows, but there are 2 (W5)");
    one_close(&f);
    LENIENT(BINARY, "3 2\nthe " ONE_TWO "\nof " ONE_TWO "\n", &f);
    one_shape(&f, 2, 2);
    one_note(&f, "(W5)");
    one_close(&f);
    LENIENT(BINARY, "3 2\nthe " ONE_TWO "of " ONE_TWO, &f);
    one_shape(&f, 2, 2);
    one_close(&f);
    /* words so long that the file could hold more rows than it does */
    REFUSES(BINARY, "w5_fewer", "2 2\nthe-long-word " ONE_TWO "\n", "W5");
    REFUSES(BINARY, NULL, "2 2\nthe-long-word " ONE_TWO, "W5");
    one_refuses(TEXT, "vec", "w5_none", "3 2\n", 4, true, EMBLA_ERR_FORMAT, "W1");
    one_refuses(BINARY, "vec_bin", "w5_none", "3 2\n", 4, true, EMBLA_ERR_FORMAT, "W1");
}

static void rule_w5_more_rows_than_the_header_says(void **state)
{
    (void)state;
    REFUSES_EVEN_LENIENT(TEXT, "w5_more", "1 2\nthe 1 -2\nof 3 4\n", "W5");
    assert_error_has("line 3 is one more than the 1 rows");
    REFUSES_EVEN_LENIENT(BINARY, "w5_more", "1 2\nthe " ONE_TWO "\nof " ONE_TWO "\n", "W5");
    assert_error_has("13 bytes follow the 1 rows");
    REFUSES_EVEN_LENIENT(BINARY, "w5_tail", "1 2\nthe " ONE_TWO "x", "W5");
    REFUSES_EVEN_LENIENT(BINARY, "w5_two_newlines", "1 2\nthe " ONE_TWO "\n\n", "W5");
}

/* ---- W6 ---- */

static void rule_w6_words_that_come_again_are_counted_and_kept(void **state)
{
    one_file f;
    (void)state;
    ACCEPTS(TEXT, "ok_twice", "4 1\nthe 1\nof 2\nthe 3\nthe 4\n", &f);
    one_shape(&f, 4, 1);
    one_label(&f, 2, "the");
    one_note(&f, "2 of 4 words are duplicates; the first row is used (W6)");
    one_close(&f);
    ACCEPTS(TEXT, NULL, "2 1\nthe 1\nof 2\n", &f);
    assert_int_equal(f.directory.note_count, 0);
    one_close(&f);
    ACCEPTS(BINARY, "ok_twice", "2 2\nthe " ONE_TWO "the " ONE_TWO, &f);
    one_note(&f, "1 of 2 words");
    one_close(&f);
}

static void rule_w6_words_are_bytes(void **state)
{
    one_file f;
    (void)state;
    ACCEPTS(TEXT, "ok_bytes", "2 2\n\xff\xfe\x80 1 -2\n\xc3 1 -2\n", &f);
    one_label(&f, 0, "\xff\xfe\x80");
    one_label(&f, 1, "\xc3");
    one_close(&f);
    ACCEPTS(BINARY, "ok_bytes", "1 2\n\xff\0\x80 " ONE_TWO, &f);
    assert_int_equal(f.directory.labels[0].length, 3);
    assert_memory_equal(f.directory.labels[0].bytes, "\xff\0\x80", 3);
    one_close(&f);
}

/* ---- W7 ---- */

/* No reader of words has a fixed room for them: those that break others are only long. */
static void rule_w7_no_word_is_too_long_for_its_room(void **state)
{
    one_file f;
    (void)state;
    for (size_t length = 40; length < 1024; length += 41) {
        binary_word(length, NULL, &f, EMBLA_OK);
        assert_int_equal(f.directory.labels[0].length, length);
        one_close(&f);
        long_line(length, NULL, &f, EMBLA_OK);
        assert_int_equal(f.directory.labels[0].length, length);
        one_close(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rule_w1_the_header_is_two_numbers_and_a_space),
        cmocka_unit_test(rule_w1_what_is_no_header_is_refused),
        cmocka_unit_test(rule_w1_rows_and_dim_have_limits),
        cmocka_unit_test(rule_w1_binary_rows_must_fit_the_file),
        cmocka_unit_test(rule_w1_glove_has_no_header_but_three_fields),
        cmocka_unit_test(rule_w1_glove_rows_have_65536_numbers_at_most),
        cmocka_unit_test(a_file_is_told_by_its_bytes),
        cmocka_unit_test(other_text_is_not_taken),
        cmocka_unit_test(a_long_first_row_is_told_by_its_beginning),
        cmocka_unit_test(rule_w2_both_dialects_of_binary),
        cmocka_unit_test(rule_w2_a_newline_may_be_a_word),
        cmocka_unit_test(rule_w2_a_missing_newline_is_refused),
        cmocka_unit_test(rule_w2_words_have_1_to_1024_bytes),
        cmocka_unit_test(rule_w2_the_end_inside_a_row_is_refused_with_its_number),
        cmocka_unit_test(rule_w3_numbers_are_counted_from_the_right),
        cmocka_unit_test(rule_w3_only_space_and_tab_separate),
        cmocka_unit_test(rule_w3_a_line_with_too_few_fields_is_refused),
        cmocka_unit_test(rule_w3_what_ends_a_line),
        cmocka_unit_test(rule_w3_a_line_has_1024_bytes_and_40_for_each_number),
        cmocka_unit_test(rule_w3_a_line_without_an_end_is_refused),
        cmocka_unit_test(rule_w4_what_is_no_number_is_refused_with_row_and_column),
        cmocka_unit_test(rule_w4_numbers_of_a_file_are_those_of_strtof),
        cmocka_unit_test(rule_w4_nan_and_infinity_are_numbers),
        cmocka_unit_test(rule_w5_fewer_rows_than_the_header_says),
        cmocka_unit_test(rule_w5_more_rows_than_the_header_says),
        cmocka_unit_test(rule_w6_words_that_come_again_are_counted_and_kept),
        cmocka_unit_test(rule_w6_words_are_bytes),
        cmocka_unit_test(rule_w7_no_word_is_too_long_for_its_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
