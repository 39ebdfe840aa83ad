/* SPDX-License-Identifier: Apache-2.0 */
/* JSON as the readers see it (files/json): what is refused before and by the parser, and
 * what the few calls give back. And values as they are written (base/json_text.h).
 */
#include "check.h"

#include "base/json_text.h"
#include "base/mem.h"
#include "files/json.h"

enum { FEW = 4, USUAL = 64 }; /* brackets inside each other */

static embla_status parse(const char *text, size_t most_depth, embla_json_value **out)
{
    return embla_json_read(text, strlen(text), "j", most_depth, "S4", out);
}

static void refused(const char *text, size_t most_depth, const char *sentence)
{
    embla_json_value *value = NULL;
    assert_status(parse(text, most_depth, &value), EMBLA_ERR_FORMAT);
    assert_error_has("j: JSON, ");
    assert_error_has(sentence);
    assert_null(value);
}

static void taken(const char *text, size_t most_depth)
{
    embla_json_value *value = NULL;
    assert_ok(parse(text, most_depth, &value));
    assert_non_null(value);
    embla_json_free(value);
}

static void json_nesting_stops_at_its_limit(void **state)
{
    char deep[4100];
    (void)state;
    taken("{\"a\":{\"b\":[[1]]}}", FEW);
    refused("{\"a\":{\"b\":[[[1]]]}}", FEW, "nested more than 4 deep (S4)");
    taken("[[[[]]],[[[]]],\"[[[[[[\"]", FEW); /* beside each other; in a string */
    taken("[\"a\\\"[[[[[[\"]", FEW);
    memset(deep, '[', 2000);
    memset(deep + 2000, ']', 2000);
    deep[4000] = '\0';
    refused(deep, USUAL, "nested more than 64 deep (S4)");
    memset(deep, ']', 2000); /* closed more often than opened */
    deep[2000] = '\0';
    refused(deep, USUAL, "(S4)");
    memset(deep, '[', 64);
    memset(deep + 64, ']', 64);
    deep[128] = '\0';
    taken(deep, USUAL);
}

static void rule_s5_a_key_that_occurs_twice_is_refused_at_any_level(void **state)
{
    (void)state;
    refused("{\"a\":1,\"a\":2}", FEW, "duplicate key 'a' (S4)");
    refused("{\"a\":1,\"\\u0061\":2}", FEW, "duplicate key 'a' (S4)");
    refused("{\"x\":{\"a\":1,\"b\":2,\"a\":3}}", FEW, "duplicate key 'a' (S4)");
    refused("{\"x\":{\"\\u00e9\":1,\"\xc3\xa9\":3}}", FEW, "duplicate key '\xc3\xa9' (S4)");
    refused("{\"x\":[{\"a\":1,\"a\":1}]}", FEW, "duplicate key 'a' (S4)");
    taken("{\"x\":{\"a\":1},\"y\":{\"a\":1},\"a\":1,\"A\":2}", FEW);
    embla_json_value *value = NULL;
    assert_status(embla_json_read("{\"a\":1,\"a\":2}", 13, "j", USUAL, "T1", &value),
                  EMBLA_ERR_FORMAT);
    assert_error_has("duplicate key 'a' (T1)");
}

static void json_numbers_are_whole_or_real(void **state)
{
    static const char *const bad[] = {
        "[01]", "[00]", "[0x10]", "[+1]", "[.5]", "[1.]", "[1_000]", "[-]", "[1e]",
    };
    embla_json_value *value = NULL;
    int64_t number = 0;
    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++) refused(bad[i], USUAL, "(S4)");
    taken("[NaN,Infinity,-Infinity,99999999999999999999999,-9223372036854775809]", USUAL);
    taken("[-1,1.5,1e3,-2.5E-7]", USUAL);
    assert_ok(parse("[0,9223372036854775807,1.5,-9223372036854775808]", USUAL, &value));
    assert_true(embla_json_integer(embla_json_item(value, 0), &number) && number == 0);
    assert_true(embla_json_integer(embla_json_item(value, 1), &number) && number == INT64_MAX);
    assert_false(embla_json_integer(embla_json_item(value, 2), &number));
    assert_true(embla_json_integer(embla_json_item(value, 3), &number) && number == INT64_MIN);
    assert_null(embla_json_item(value, 4));
    embla_json_free(value);
    /* one further on either side is no integer any more */
    assert_ok(parse("[-7,9223372036854775808,-9223372036854775809]", USUAL, &value));
    assert_true(embla_json_integer(embla_json_item(value, 0), &number) && number == -7);
    assert_int_equal(embla_json_what(embla_json_item(value, 1)), EMBLA_JSON_REAL);
    assert_int_equal(embla_json_what(embla_json_item(value, 2)), EMBLA_JSON_REAL);
    embla_json_free(value);
}

static void json_that_is_not_json_is_refused(void **state)
{
    static const char *const bad[] = {"",
                                      " ",
                                      "{",
                                      "[1",
                                      "{\"a\"}",
                                      "{\"a\":}",
                                      "{\"a\":1,}",
                                      "[1,]",
                                      "{a:1}",
                                      "{'a':1}",
                                      "[nan]",
                                      "[tru]",
                                      "/* */[]",
                                      "[] []",
                                      "[]x",
                                      "{}{}",
                                      "[1] 2",
                                      "\"text\"",
                                      "1",
                                      "null",
                                      "[\"a]",
                                      "[\"\n\"]",
                                      "[\"\\x\"]",
                                      "[\"\\u12g4\"]",
                                      "[\"\\",
                                      "[\"\xff\"]",
                                      "[\"\xc0\x80\"]",
                                      "[\"\xed\xa0\x80\"]",
                                      "[\"\xf4\x90\x80\x80\"]",
                                      "[\"\\ud800\"]",
                                      "[\"\\udc00\"]",
                                      "[\"\\ud800x\"]",
                                      "[\"\\ud800\\ud800\"]",
                                      "[\"\\u0000\"]",
                                      "{\"\\u0000\":1}",
                                      "\xef\xbb\xbf[]"};
    embla_json_value *value = NULL;
    size_t length = 0;
    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++) refused(bad[i], USUAL, "(S4)");
    assert_status(embla_json_read("[]\0", 3, "j", USUAL, "S4", &value), EMBLA_ERR_FORMAT);
    assert_status(embla_json_read("[\"a\0b\"]", 7, "j", USUAL, "S4", &value), EMBLA_ERR_FORMAT);
    assert_ok(parse(" [\"\\ud83d\\ude00\\u00e9\"] \r\n\t", USUAL, &value));
    assert_string_equal(embla_json_string(embla_json_item(value, 0), &length),
                        "\xf0\x9f\x98\x80\xc3\xa9");
    assert_int_equal(length, 6);
    embla_json_free(value);
}

static void json_members_come_in_the_order_of_the_file(void **state)
{
    static const char *const keys[] = {"z", "a", "m", "", "b", "\xc3\xa9"};
    static const embla_json_kind kinds[] = {EMBLA_JSON_INTEGER, EMBLA_JSON_STRING, EMBLA_JSON_ARRAY,
                                            EMBLA_JSON_OBJECT,  EMBLA_JSON_NULL,   EMBLA_JSON_TRUE};
    embla_json_value *value = NULL;
    const embla_json_value *member = NULL;
    const char *key = NULL;
    size_t n = 0, length = 0;
    int64_t number = 7;
    (void)state;
    assert_ok(parse("{\"z\":1,\"a\":\"x\",\"m\":[false,1.5],\"\":{},\"b\":null,\"\\u00e9\":true}",
                    USUAL, &value));
    while (embla_json_next(value, &member, &key, &length)) {
        assert_true(n < COUNT_OF(keys));
        assert_string_equal(key, keys[n]);
        assert_int_equal(length, strlen(keys[n]));
        assert_int_equal(embla_json_what(member), kinds[n]);
        assert_ptr_equal(member, embla_json_get(value, key));
        n++;
    }
    assert_int_equal(n, COUNT_OF(keys));
    assert_int_equal(embla_json_count(value), 6);
    assert_int_equal(embla_json_count(embla_json_get(value, "m")), 2);
    assert_int_equal(embla_json_what(embla_json_item(embla_json_get(value, "m"), 0)),
                     EMBLA_JSON_FALSE);
    assert_int_equal(embla_json_what(embla_json_item(embla_json_get(value, "m"), 1)),
                     EMBLA_JSON_REAL);
    /* What is not there, or is something else, is nothing. */
    assert_null(embla_json_get(value, "none"));
    assert_null(embla_json_get(NULL, "a"));
    assert_null(embla_json_get(embla_json_get(value, "m"), "a"));
    assert_null(embla_json_item(value, 0));
    assert_int_equal(embla_json_what(NULL), EMBLA_JSON_NONE);
    assert_int_equal(embla_json_count(NULL), 0);
    assert_null(embla_json_string(NULL, &length));
    assert_null(embla_json_string(value, NULL));
    assert_false(embla_json_integer(NULL, &number));
    assert_int_equal(number, 7);
    member = NULL;
    assert_false(embla_json_next(embla_json_get(value, "m"), &member, &key, &length));
    embla_json_free(value);
    embla_json_free(NULL);
}

static void json_of_a_million_zeros_is_refused(void **state)
{
    enum { MANY = 200000 };
    char *text = malloc(2 * MANY + 2);
    (void)state;
    assert_non_null(text);
    for (size_t i = 0; i < MANY; i++) memcpy(text + 1 + 2 * i, "0,", 2);
    text[0] = '[';
    text[2 * MANY] = ']';
    text[2 * MANY + 1] = '\0';
    refused(text, USUAL, "more than 115536 values (S4)");
    /* 65,536 and one for each 8 bytes: 87,381 of 174,763, and not one more of 174,765 */
    text[2 * 87382] = ']';
    text[2 * 87382 + 1] = '\0';
    refused(text, USUAL, "more than 87381 values (S4)");
    text[2 * 87381] = ']';
    text[2 * 87381 + 1] = '\0';
    taken(text, USUAL);
    free(text);
}

/* Every allocation fails once, and from then on: a status, and nothing is left behind. */
static void json_without_memory_is_a_status(void **state)
{
    static const char text[] = "{\"a\":[1,\"\\u00e9\",{\"b\":null}],\"c\":{\"d\":true}}";
    embla_json_value *value = NULL;
    size_t live = embla_mem_live();
    (void)state;
    for (int forever = 0; forever < 2; forever++) {
        embla_status status = EMBLA_ERR_MEMORY;
        for (size_t n = 1; status != EMBLA_OK; n++) {
            assert_true(n < 100);
            embla_mem_fail(n, forever);
            status = parse(text, USUAL, &value);
            embla_mem_fail(0, false);
            if (status != EMBLA_OK) assert_status(status, EMBLA_ERR_MEMORY);
            if (status == EMBLA_OK) embla_json_free(value);
            assert_int_equal(embla_mem_live(), live);
        }
    }
}

/* ---- written ---- */

static void append(void *to, const char *bytes, size_t length)
{
    char *end = (char *)to + strlen(to);
    memcpy(end, bytes, length);
    end[length] = '\0';
}

static void assert_string(const char *text, bool escape_delete, const char *json, bool valid)
{
    char out[64] = "";
    const embla_json_sink sink = {.write = append, .to = out};
    assert_true(embla_json_write_string(&sink, text, strlen(text), escape_delete) == valid);
    assert_string_equal(out, json);
}

static void json_strings_are_escaped(void **state)
{
    (void)state;
    assert_string("", true, "\"\"", true);
    assert_string("a\"b\\c", false, "\"a\\\"b\\\\c\"", true);
    assert_string("\n\x01\x7f", false, "\"\\u000a\\u0001\x7f\"", true);
    assert_string("\x7f", true, "\"\\u007f\"", true);
    assert_string("\xc3\xa9\xf0\x9f\x98\x80", true, "\"\xc3\xa9\xf0\x9f\x98\x80\"", true);
    assert_string("a\xff\xc3", true, "\"a\\ufffd\\ufffd\"", false);
}

static void json_numbers_have_the_digits_asked_for(void **state)
{
    char out[EMBLA_JSON_DIGITS];
    (void)state;
    embla_json_digits(0.1, 0, out);
    assert_string_equal(out, "0.1");
    embla_json_digits(1.0 / 3, 9, out);
    assert_string_equal(out, "0.333333333");
    embla_json_digits(1.0 / 3, 0, out);
    assert_string_equal(out, "0.3333333333333333");
    embla_json_digits(-1e300, 0, out);
    assert_string_equal(out, "-1e+300");
    embla_json_digits((double)NAN, 9, out);
    assert_string_equal(out, "null");
}

static void utf8_is_decoded_and_encoded(void **state)
{
    static const uint32_t codes[] = {0,      'a',    0x7f,   0x80,    0x7ff,   0x800,
                                     0xd7ff, 0xe000, 0xffff, 0x10000, 0x10ffff};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(codes); i++) {
        char text[4];
        size_t length = embla_utf8_encode(codes[i], text);
        assert_true(embla_utf8_length(text, length) == length);
        assert_true(embla_utf8_length(text, length - 1) == 0);
        assert_true(embla_utf8_code(text, length) == codes[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_nesting_stops_at_its_limit),
        cmocka_unit_test(rule_s5_a_key_that_occurs_twice_is_refused_at_any_level),
        cmocka_unit_test(json_numbers_are_whole_or_real),
        cmocka_unit_test(json_that_is_not_json_is_refused),
        cmocka_unit_test(json_members_come_in_the_order_of_the_file),
        cmocka_unit_test(json_of_a_million_zeros_is_refused),
        cmocka_unit_test(json_without_memory_is_a_status),
        cmocka_unit_test(json_strings_are_escaped),
        cmocka_unit_test(json_numbers_have_the_digits_asked_for),
        cmocka_unit_test(utf8_is_decoded_and_encoded),
    };
    return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
