/* SPDX-License-Identifier: Apache-2.0 */
/* Words in JSON, rule by rule (T1, T2, T3), and what a vocabulary answers. Other kinds of
 * files and failing systems are in test_vocab_files.c, real files in test_vocab_real.c.
 */
#include "vocab_bytes.h"

#include <stdio.h>

/* ---- T1: the container ---- */

/* A vocab.json of exactly so many bytes. */
static void of_size(size_t size, vocab_bytes *out)
{
    static const char begin[] = "{\"a\":0";
    out->bytes = malloc(size);
    assert_non_null(out->bytes);
    memset(out->bytes, ' ', size);
    memcpy(out->bytes, begin, sizeof begin - 1);
    out->bytes[size - 1] = '}';
    out->used = out->room = size;
}

static void rule_t1_a_file_above_64_mb_is_refused(void **state)
{
    vocab_bytes b = {0};
    (void)state;
    of_size(64000000, &b);
    embla_vocab_free(vocab_of(b.bytes, b.used, EMBLA_VOCAB_MARKED));
    put_end(&b);
    of_size(64000001, &b);
    vocab_refused(b.bytes, b.used, EMBLA_VOCAB_MARKED, EMBLA_ERR_FORMAT,
                  "64000001 bytes; the limit is 64000000", "(T1)");
    put_end(&b);
}

static void rule_t1_brackets_more_than_64_deep_are_refused(void **state)
{
    static const char *const open[] = {"[", "{\"a\":"}, *const close[] = {"]", "}"};
    (void)state;
    for (size_t kind = 0; kind < 2; kind++) {
        for (size_t depth = 63; depth <= 64; depth++) { /* and one more, the outermost */
            vocab_bytes b = {0};
            put_text(&b, "{\"x\":");
            put_times(&b, open[kind], depth);
            put_text(&b, "1");
            put_times(&b, close[kind], depth);
            put_text(&b, ",\"model\":{\"vocab\":{\"a\":0}}}");
            if (depth == 63)
                embla_vocab_free(vocab_of(b.bytes, b.used, EMBLA_VOCAB_MARKED));
            else
                vocab_refused(b.bytes, b.used, EMBLA_VOCAB_MARKED, EMBLA_ERR_FORMAT,
                              "more than 64 deep", "(T1)");
            put_end(&b);
        }
    }
}

static void rule_t1_a_string_above_1_mib_is_refused(void **state)
{
    (void)state;
    for (size_t length = (1 << 20); length <= (1 << 20) + 1; length++) {
        vocab_bytes b = {0};
        put_text(&b, "{\"");
        put_times(&b, "a", length);
        put_text(&b, "\":0}");
        if (length == 1 << 20) {
            embla_vocab *vocab = vocab_of(b.bytes, b.used, EMBLA_VOCAB_MARKED);
            assert_word_bytes(vocab, 0, b.bytes + 2, length);
            embla_vocab_free(vocab);
        } else {
            vocab_refused(b.bytes, b.used, EMBLA_VOCAB_MARKED, EMBLA_ERR_FORMAT,
                          "1048577 bytes; the limit is 1048576", "(T1)");
        }
        put_end(&b);
        put_text(&b, "{\"x\":\""); /* and one that is no word */
        put_times(&b, "a", length);
        put_text(&b, "\",\"model\":{\"vocab\":{\"a\":0}}}");
        if (length == 1 << 20)
            embla_vocab_free(vocab_of(b.bytes, b.used, EMBLA_VOCAB_MARKED));
        else
            vocab_refused(b.bytes, b.used, EMBLA_VOCAB_MARKED, EMBLA_ERR_FORMAT,
                          "the string at byte 6 has 1048577 bytes", "(T1)");
        put_end(&b);
    }
}

static void rule_t1_bytes_that_are_not_utf8_are_refused(void **state)
{
    static const char *const wrong[] = {"\x80",
                                        "\xbf",
                                        "\xc0\x80",
                                        "\xc1\xbf",
                                        "\xc3",
                                        "\xc3\x28",
                                        "\xe0\x9f\xbf",
                                        "\xed\xa0\x80",
                                        "\xed\xbf\xbf",
                                        "\xe2\x82",
                                        "\xe2\x28\xa1",
                                        "\xe2\x82\x28",
                                        "\xf0\x8f\xbf\xbf",
                                        "\xf4\x90\x80\x80",
                                        "\xf5\x80\x80\x80",
                                        "\xff",
                                        "\xf0\x9f\x98",
                                        "\xf0\x28\x8c\xbc",
                                        "\xf8\x88\x80\x80\x80"};
    static const char *const right[] = {"\xc2\x80",         "\xdf\xbf",        "\xe0\xa0\x80",
                                        "\xed\x9f\xbf",     "\xee\x80\x80",    "\xef\xbf\xbf",
                                        "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"};
    char text[80];
    (void)state;
    for (size_t i = 0; i < COUNT_OF(wrong); i++) { /* in a word, and where nothing is looked at */
        (void)snprintf(text, sizeof text, "{\"%s\":0}", wrong[i]);
        refuse(text, "byte 2 of", "(T1)");
        (void)snprintf(text, sizeof text, "{\"x\":\"01234%s\",\"model\":{\"vocab\":{\"a\":0}}}",
                       wrong[i]);
        refuse(text, "not valid UTF-8", "(T1)");
    }
    for (size_t i = 0; i < COUNT_OF(right); i++) {
        (void)snprintf(text, sizeof text, "{\"%s\":0}", right[i]);
        embla_vocab *vocab = vocab_of_text(text);
        assert_word(vocab, 0, right[i]);
        embla_vocab_free(vocab);
    }
}

static void rule_t1_a_key_that_stands_twice_is_refused(void **state)
{
    vocab_bytes b = {0};
    (void)state;
    refuse("{\"a\":0,\"a\":1}", "duplicate key 'a'", "(T1)");
    refuse("{\"a\":0,\"a\":0}", "duplicate key 'a'", "(T1)");
    refuse("{\"a\":0,\"b\":1,\"\\u0061\":2}", "duplicate key 'a'", "(T1)");
    refuse("{\"/\":0,\"\\/\":1}", "duplicate key '/'", "(T1)");
    refuse("{\"x\":\"\",\"model\":{\"vocab\":{\"b\":0,\"b\":1}}}", "duplicate key 'b'", "(T1)");
    refuse("{\"x\":\"\",\"model\":{\"vocab\":{\"b\":0},\"vocab\":{\"c\":1}}}", "key 'vocab'",
           "(T1)");
    refuse("{\"x\":{\"y\":[{\"z\":1,\"z\":1}]},\"model\":{\"vocab\":{\"b\":0}}}", "key 'z'",
           "(T1)");
    put_text(&b, "{");
    for (int i = 0; i < 100; i++) {
        char member[40];
        (void)snprintf(member, sizeof member, "\"w%d\":%d,", i, i);
        put_text(&b, member);
    }
    put_text(&b, "\"w57\":100}"); /* many keys are searched in another way */
    put(&b, "", 1);
    refuse(b.bytes, "duplicate key 'w57'", "(T1)");
    put_end(&b);
    /* The same key in objects beside and inside each other is nothing. */
    embla_vocab_free(vocab_of_text("{\"x\":[{\"x\":{\"x\":1}},{\"x\":2}],\"y\":{\"x\":0},"
                                   "\"model\":{\"vocab\":{\"x\":0}}}"));
}

static void rule_t1_what_is_not_json_is_refused(void **state)
{
    static const char *const wrong[] = {"{\"a\":0",
                                        "{\"a\":0}}",
                                        "{\"a\":0} x",
                                        "{\"a\":0,}",
                                        "{\"a\":0 \"b\":1}",
                                        "{\"a\" 0}",
                                        "{\"a\":}",
                                        "{\"a\":0,,\"b\":1}",
                                        "{\"a\":0]",
                                        "[\"a\"}",
                                        "[\"a\",]",
                                        "[\"a\" \"b\"]",
                                        "[\"a\"",
                                        "[\"a",
                                        "{\"a\":0,b:1}",
                                        "{\"a\":0,'b':1}",
                                        "{\"a\":00}",
                                        "{\"a\":0x1}",
                                        "{\"a\":-}",
                                        "{\"x\":\"\",\"y\":1.}",
                                        "{\"x\":\"\",\"y\":.5}",
                                        "{\"x\":\"\",\"y\":1e}",
                                        "{\"x\":\"\",\"y\":1e+}",
                                        "{\"x\":\"\",\"y\":+1}",
                                        "{\"x\":\"\",\"y\":NaN}",
                                        "{\"x\":\"\",\"y\":Infinity}",
                                        "{\"x\":\"\",\"y\":nul}",
                                        "{\"x\":\"\",\"y\":tru",
                                        "{\"x\":\"\",\"y\":falsey}",
                                        "{\"a\":0/**/}",
                                        "{\"a\":0}//",
                                        "{\"a\n\":0}",
                                        "{\"a\x01\":0}",
                                        "{\"a\":0}\x0c",
                                        "{\"a\":",
                                        "{\"a\"",
                                        "{\"\\a\":0}",
                                        "{\"\\x41\":0}",
                                        "{\"\\u004\":0}",
                                        "{\"\\u00g0\":0}",
                                        "{\"\\ud800\":0}",
                                        "{\"\\udc00\":0}",
                                        "{\"\\ud800\\u0041\":0}",
                                        "{\"\\ud800\\ud800\":0}",
                                        "{\"\\ud83dx\":0}",
                                        "{\"\\ud83d\\n\":0}",
                                        "{\"\\",
                                        "{\"\\u",
                                        "{\"\\ud800\\u"};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(wrong); i++) refuse(wrong[i], "JSON, byte", "(T1)");
}

static void rule_t1_the_value_is_an_object_or_an_array(void **state)
{
    static const char *const others[] = {"5", "\"a\"", "null"};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(others); i++) { /* such text is taken for lines before */
        embla_vocab vocab = {.source = SHOWN};
        embla_map *map = NULL;
        assert_ok(embla_map_bytes(others[i], strlen(others[i]), SHOWN, &map));
        assert_status(embla_vocab_json(map, &vocab), EMBLA_ERR_FORMAT);
        assert_error_has("expected an object or an array (T1)");
        embla_map_free(map);
    }
}

static void escapes_in_words_are_decoded(void **state)
{
    static const char text[] =
        "{\"\\\"\\\\\\/\\b\\f\\n\\r\\t\":0,\"\\u0041\\u00e9\\u2581\\uD83D\\uDE00!\":1,"
        " \"a\\u0000b\" : 2 ,\n\t\"\\u0000\":3,\"\":4,\"\\uffff\":5,\"\\udbff\\udfff\":6}\r\n";
    (void)state;
    embla_vocab *vocab = vocab_of_text(text);
    assert_word(vocab, 0, "\"\\/\b\f\n\r\t");
    assert_word(vocab, 1, "A\xc3\xa9\xe2\x96\x81\xf0\x9f\x98\x80!");
    assert_word_bytes(vocab, 2, "a\0b", 3);
    assert_word_bytes(vocab, 3, "\0", 1);
    assert_word(vocab, 4, "");
    assert_word(vocab, 5, "\xef\xbf\xbf");
    assert_word(vocab, 6, "\xf4\x8f\xbf\xbf");
    embla_vocab_free(vocab);
}

/* ---- T2: ids ---- */

static void rule_t2_an_id_is_a_whole_number_from_0_to_2_31(void **state)
{
    static const char *const wrong[] = {"-1",
                                        "-0",
                                        "0.0",
                                        "1.5",
                                        "1e3",
                                        "1E0",
                                        "2147483648",
                                        "4294967296",
                                        "9223372036854775808",
                                        "18446744073709551616",
                                        "99999999999999999999999999"};
    char text[120];
    (void)state;
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        (void)snprintf(text, sizeof text, "{\"the word\":%s}", wrong[i]);
        refuse(text, "the id of 'the word' is ", "(T2)");
        assert_error_has(wrong[i]);
        (void)snprintf(text, sizeof text, "{\"x\":\"\",\"model\":{\"vocab\":{\"w\":%s}}}",
                       wrong[i]);
        refuse(text, wrong[i], "(T2)");
        (void)snprintf(text, sizeof text, "{\"added_tokens\":[{\"id\":%s,\"content\":\"c\"}]}",
                       wrong[i]);
        refuse(text, wrong[i], "(T2)");
    }
    refuse("{\"a\":0,\"b\":\"1\"}", "the id of 'b' is not a number", "(T2)");
    refuse("{\"a\":0,\"b\":null}", "the id of 'b' is not a number", "(T2)");
    refuse("{\"a\":0,\"b\":[1]}", "the id of 'b' is not a number", "(T2)");
    refuse("{\"added_tokens\":[{\"content\":\"c\",\"id\":\"1\"}]}", "the id of 'c' is not", "(T2)");
}

static void rule_t2_ids_may_have_gaps_and_cost_no_memory(void **state)
{
    (void)state;
    embla_vocab *vocab =
        vocab_of_text("{\"last\":2147483647,\"d\":16777218,\"c\":65536,\"b\":7,\"a\":3,\"z\":0}");
    assert_int_equal(embla_vocab_count(vocab), 6);
    assert_int_equal(embla_vocab_end(vocab), INT64_C(1) << 31);
    assert_word(vocab, 0, "z");
    assert_word(vocab, 3, "a");
    assert_word(vocab, 7, "b");
    assert_word(vocab, 65536, "c");
    assert_word(vocab, 16777218, "d");
    assert_word(vocab, 2147483647, "last");
    const int32_t none[] = {1, 2, 4, 6, 8, 2147483646, -1, INT32_MIN};
    for (size_t i = 0; i < COUNT_OF(none); i++) assert_no_word(vocab, none[i]);
    assert_found(vocab, "last", 2147483647);
    assert_true(embla_vocab_fits(vocab, INT64_C(1) << 31));
    assert_false(embla_vocab_fits(vocab, (INT64_C(1) << 31) - 1)); /* the door's comparison */
    embla_vocab_free(vocab);
    vocab = vocab_of_text("{\"a\":5}");
    assert_int_equal(embla_vocab_end(vocab), 6);
    assert_no_word(vocab, 0);
    assert_no_word(vocab, 4);
    embla_vocab_free(vocab);
}

static void rule_t2_two_words_of_one_token_are_refused(void **state)
{
    (void)state;
    refuse("{\"a\":0,\"b\":1,\"c\":0}", "token 0 has two words, 'a' and 'c'", "(T2)");
    refuse("{\"x\":\"\",\"model\":{\"vocab\":{\"longer\":70000,\"lo\":70000}}}",
           "token 70000 has two words, 'longer' and 'lo'", "(T2)");
    refuse("{\"added_tokens\":[{\"id\":1,\"content\":\"c\"}],\"model\":{\"vocab\":[[\"a\",0],["
           "\"b\",0]]}}",
           "token 1 has two words, 'b' and 'c'", "(T2)");
    refuse("{\"added_tokens\":[{\"id\":1,\"content\":\"c\"},{\"id\":1,\"content\":\"d\"}],"
           "\"model\":{\"vocab\":{\"a\":0}}}",
           "token 1 has two words, 'c' and 'd'", "(T2)");
}

static void rule_t2_there_must_be_words(void **state)
{
    static const char *const none[] = {"[]", "{\"model\":{\"vocab\":{}}}",
                                       "{\"model\":{\"vocab\":[]}}"};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(none); i++) refuse(none[i], "there are no words", "(T2)");
    refuse("{}", "neither model.vocab", "(T2)");
    refuse("{\"model\":{}}", "neither model.vocab", "(T2)");
    refuse("{\"model_type\":\"gpt2\",\"vocab_size\":50257}", "neither model.vocab", "(T2)");
    refuse("{\"x\":\"\",\"model\":[]}", "model is not an object", "(T2)");
    refuse("{\"x\":\"\",\"model\":{\"vocab\":5}}", "model.vocab is neither an object nor an array",
           "(T2)");
    refuse("{\"x\":\"\",\"model\":{\"vocab\":null}}",
           "model.vocab is neither an object nor an array", "(T2)");
}

static void rule_t2_words_in_an_array_are_strings_or_pairs(void **state)
{
    (void)state;
    refuse("[\"a\",[\"b\",1]]", "expected a word", "(T2)");
    refuse("[\"a\",5]", "expected a word", "(T2)");
    refuse("[[\"a\",0],\"b\"]", "a word has no score", "(T2)");
    refuse("[[0,\"a\"]]", "expected a word", "(T2)");
    refuse("[[]]", "expected a word", "(T2)");
    refuse("[[\"a\"]]", "score of a word is not a number", "(T2)");
    refuse("[[\"a\",\"0\"]]", "score of a word is not a number", "(T2)");
    refuse("[[\"a\",true]]", "score of a word is not a number", "(T2)");
    refuse("[[\"a\",[0]]]", "score of a word is not a number", "(T2)");
    refuse("[[\"a\",0,1]]", "expected only a word and its score", "(T2)");
}

static void rule_c5_more_than_2_22_words_are_refused(void **state)
{
    embla_vocab vocab = {.source = SHOWN, .count = EMBLA_WORDS_MOST}; /* as if they were there */
    (void)state;
    assert_status(embla_vocab_add(&vocab, 0, "a", 1), EMBLA_ERR_FORMAT);
    assert_error_has("more than 4194304 words (C5)");
    vocab.count = 0;
    assert_status(embla_vocab_add(&vocab, UINT64_C(1) << 31, "a", 1), EMBLA_ERR_FORMAT);
    assert_error_has("token 2147483648 is too large; it must be below 2^31 (T2)");
}

/* ---- shapes ---- */

static void every_kind_of_model_gives_its_words(void **state)
{
    static const char *const files[] = {
        "{\"version\":\"1.0\",\"added_tokens\":[],\"model\":{\"type\":\"BPE\",\"vocab\":{\"b\":1,"
        "\"a\":0,"
        "\"c\":2},\"merges\":[\"a b\",[\"b\",\"c\"]]}}",
        "{\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"a\",\"vocab\":{\"a\":0,\"b\":1,\"c\":2}"
        "}}",
        "{\"model\":{\"type\":\"WordLevel\",\"vocab\":{\"c\":2,\"b\":1,\"a\":0}},\"added_tokens\":"
        "null}",
        "{\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"a\",0],[\"b\",-1.5e-3],[\"c\","
        "null]]}}",
        "{\"model\":{\"vocab\":[[\"a\",0.0],[\"b\",-2],[\"c\",-3]]}}",
        "{\"padding\":null,\"model\":{\"merges\":[],\"vocab\":{\"a\":0,\"b\":1,\"c\":2}}}",
        "{\"a\":0,\"b\":1,\"c\":2}",
        "{\"c\":2,\"b\":1,\"a\":0}",
        "[[\"a\",0],[\"b\",1],[\"c\",2]]",
        " [ \"a\" , \"b\" , \"c\" ] ",
        "\r\n{\t\"\\u006dodel\":{\"v\\u006fcab\":[\"a\",\"b\",\"c\"]}}"};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        embla_vocab *vocab = vocab_of_text(files[i]);
        assert_string_equal(embla_vocab_source(vocab), SHOWN);
        assert_int_equal(embla_vocab_count(vocab), 3);
        assert_int_equal(embla_vocab_end(vocab), 3);
        size_t count;
        const embla_word *words = embla_vocab_words(vocab, &count);
        assert_int_equal(count, 3);
        for (int32_t token = 0; token < 3; token++) {
            assert_int_equal(words[token].token, token);
            assert_int_equal(words[token].length, 1);
            assert_ptr_equal(words[token].bytes, embla_vocab_word(vocab, token, NULL));
            assert_word(vocab, token, (const char[]){(char)('a' + token), 0});
            assert_found(vocab, (const char[]){(char)('a' + token), 0}, token);
        }
        embla_vocab_free(vocab);
    }
}

static void words_of_a_vocabulary_may_be_called_as_parts_of_a_tokenizer_are(void **state)
{
    (void)state;
    embla_vocab *vocab = vocab_of_text("{\"model\":2746,\"vocab\":1,\"added_tokens\":0}");
    assert_int_equal(embla_vocab_count(vocab), 3);
    assert_found(vocab, "model", 2746);
    embla_vocab_free(vocab);
}

/* ---- T3: added tokens ---- */

static void with_added(size_t count, vocab_bytes *out)
{
    put_text(out, "{\"added_tokens\":[");
    for (size_t i = 0; i < count; i++) {
        char token[80];
        (void)snprintf(token, sizeof token, "%s{\"id\":%zu,\"content\":\"<%zu>\"}", i ? "," : "",
                       i + 1, i);
        put_text(out, token);
    }
    put_text(out, "],\"model\":{\"vocab\":{\"a\":0}}}");
}

static void rule_t3_more_than_65536_added_tokens_are_refused(void **state)
{
    vocab_bytes b = {0};
    (void)state;
    with_added(65536, &b);
    embla_vocab *vocab = vocab_of(b.bytes, b.used, EMBLA_VOCAB_MARKED);
    assert_int_equal(embla_vocab_count(vocab), 65537);
    assert_found(vocab, "<65535>", 65536);
    embla_vocab_free(vocab);
    put_end(&b);
    with_added(65537, &b);
    vocab_refused(b.bytes, b.used, EMBLA_VOCAB_MARKED, EMBLA_ERR_FORMAT, "more than 65536", "(T3)");
    put_end(&b);
}

static void rule_t3_an_added_token_has_an_id_and_a_content(void **state)
{
    (void)state;
    refuse("{\"added_tokens\":{}}", "added_tokens is not an array", "(T3)");
    refuse("{\"added_tokens\":true}", "added_tokens is not an array", "(T3)");
    refuse("{\"added_tokens\":[5]}", "an added token is not an object", "(T3)");
    refuse("{\"added_tokens\":[{}]}", "has no id or no content", "(T3)");
    refuse("{\"added_tokens\":[{\"id\":1}]}", "has no id or no content", "(T3)");
    refuse("{\"added_tokens\":[{\"content\":\"x\"}]}", "has no id or no content", "(T3)");
    refuse("{\"added_tokens\":[{\"id\":1,\"content\":5}]}", "content is not a string", "(T3)");
}

static void added_tokens_join_the_words(void **state)
{
    static const char text[] =
        "{\"added_tokens\":[{\"id\":9,\"special\":true,\"content\":\"<s>\",\"x\":{\"id\":[1]}},"
        "{\"content\":\"a\",\"id\":0},"   /* restated */
        "{\"content\":\"b\",\"id\":4},"   /* known: the model's id counts */
        "{\"content\":\"\",\"id\":0},"    /* empty: none */
        "{\"content\":\"<s>\",\"id\":9}," /* twice the same */
        "{\"content\":\"t\\u0041\",\"id\":5}],"
        "\"model\":{\"vocab\":{\"a\":0,\"b\":1}}}";
    (void)state;
    embla_vocab *vocab = vocab_of_text(text);
    assert_int_equal(embla_vocab_count(vocab), 4);
    assert_int_equal(embla_vocab_end(vocab), 10);
    assert_word(vocab, 0, "a");
    assert_word(vocab, 1, "b");
    assert_no_word(vocab, 4);
    assert_word(vocab, 5, "tA");
    assert_word(vocab, 9, "<s>");
    assert_found(vocab, "b", 1);
    embla_vocab_free(vocab);
}

/* ---- what is asked ---- */

static void a_word_is_found_as_it_is_stored_before_any_other_spelling(void **state)
{
    /* U+2581 and U+0120 for a leading space, in that order, and only there */
    (void)state;
    embla_vocab *vocab =
        vocab_of_text("{\" x\":0,\"\xe2\x96\x81x\":1,\"\xc4\xa0x\":2,\"\xc4\xa0y\":3,"
                      "\"\xe2\x96\x81y\":4,\"\xc4\xa0z\":5,\"x\":6,\"\":7,"
                      "\"\xe2\x96\x81\":8,\"\xc4\xa0 w\":9}");
    assert_found(vocab, " x", 0);
    assert_found(vocab, " y", 4);
    assert_found(vocab, " z", 5);
    assert_found(vocab, "\xc4\xa0x", 2);
    assert_found(vocab, "\xe2\x96\x81x", 1);
    assert_found(vocab, "x", 6);
    assert_found(vocab, "", 7);
    assert_found(vocab, " ", 8);
    assert_found(vocab, "  w", 9);
    assert_not_found(vocab, "y");
    assert_not_found(vocab, "  y");
    assert_not_found(vocab, "y ");
    assert_not_found(vocab, " q");
    assert_error_has(SHOWN " has no token ' q'");
    embla_vocab_free(vocab);
}

static void of_tokens_with_the_same_word_the_lowest_is_found(void **state)
{
    (void)state;
    embla_vocab *vocab = vocab_of_text("[\"a\",\"b\",\"a\",\"b\",\"b\"]");
    assert_int_equal(embla_vocab_count(vocab), 5);
    assert_found(vocab, "a", 0);
    assert_found(vocab, "b", 1);
    assert_word(vocab, 4, "b");
    embla_vocab_free(vocab);
}

static void wrong_calls_are_refused(void **state)
{
    int32_t token = -7;
    embla_vocab *none = NULL;
    (void)state;
    embla_vocab *vocab = vocab_of_text("[\"a\"]");
    assert_status(embla_vocab_find(NULL, "a", 1, &token), EMBLA_ERR_ARGUMENT);
    assert_error_has("vocab is NULL");
    assert_status(embla_vocab_find(vocab, NULL, 1, &token), EMBLA_ERR_ARGUMENT);
    assert_error_has("word is NULL");
    assert_status(embla_vocab_find(vocab, "a", 1, NULL), EMBLA_ERR_ARGUMENT);
    assert_error_has("out is NULL");
    assert_status(embla_vocab_find(vocab, NULL, 0, &token), EMBLA_ERR_NOT_FOUND);
    assert_status(embla_vocab_open_file(NULL, &none), EMBLA_ERR_ARGUMENT);
    assert_status(embla_vocab_open_file("x", NULL), EMBLA_ERR_ARGUMENT);
    assert_int_equal(token, -7);
    assert_string_equal(embla_vocab_word(vocab, 0, NULL), "a");
    embla_vocab_free(vocab);
    embla_vocab_free(NULL);
}

static void names_become_a_vocabulary(void **state)
{
    const embla_name names[] = {
        {"a", 1, 90}, {NULL, 0, 0}, {"b\0c", 3, 0}, {"", 0, 0}, {NULL, 5, 0}};
    embla_vocab *vocab = NULL;
    (void)state;
    assert_ok(embla_vocab_of_names(names, COUNT_OF(names), "the file itself", &vocab));
    assert_string_equal(embla_vocab_source(vocab), "the file itself");
    assert_int_equal(embla_vocab_count(vocab), 3);
    assert_int_equal(embla_vocab_end(vocab), 4);
    assert_word(vocab, 0, "a");
    assert_no_word(vocab, 1);
    assert_word_bytes(vocab, 2, "b\0c", 3);
    assert_word(vocab, 3, "");
    embla_vocab_free(vocab);
    vocab = NULL;
    assert_status(embla_vocab_of_names(names, ((size_t)1 << 31) + 1, "x", &vocab),
                  EMBLA_ERR_UNSUPPORTED);
    assert_status(embla_vocab_of_names(names + 1, 1, "x", &vocab), EMBLA_ERR_FORMAT);
    assert_null(vocab);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rule_t1_a_file_above_64_mb_is_refused),
        cmocka_unit_test(rule_t1_brackets_more_than_64_deep_are_refused),
        cmocka_unit_test(rule_t1_a_string_above_1_mib_is_refused),
        cmocka_unit_test(rule_t1_bytes_that_are_not_utf8_are_refused),
        cmocka_unit_test(rule_t1_a_key_that_stands_twice_is_refused),
        cmocka_unit_test(rule_t1_what_is_not_json_is_refused),
        cmocka_unit_test(rule_t1_the_value_is_an_object_or_an_array),
        cmocka_unit_test(escapes_in_words_are_decoded),
        cmocka_unit_test(rule_t2_an_id_is_a_whole_number_from_0_to_2_31),
        cmocka_unit_test(rule_t2_ids_may_have_gaps_and_cost_no_memory),
        cmocka_unit_test(rule_t2_two_words_of_one_token_are_refused),
        cmocka_unit_test(rule_t2_there_must_be_words),
        cmocka_unit_test(rule_t2_words_in_an_array_are_strings_or_pairs),
        cmocka_unit_test(rule_c5_more_than_2_22_words_are_refused),
        cmocka_unit_test(every_kind_of_model_gives_its_words),
        cmocka_unit_test(words_of_a_vocabulary_may_be_called_as_parts_of_a_tokenizer_are),
        cmocka_unit_test(rule_t3_more_than_65536_added_tokens_are_refused),
        cmocka_unit_test(rule_t3_an_added_token_has_an_id_and_a_content),
        cmocka_unit_test(added_tokens_join_the_words),
        cmocka_unit_test(a_word_is_found_as_it_is_stored_before_any_other_spelling),
        cmocka_unit_test(of_tokens_with_the_same_word_the_lowest_is_found),
        cmocka_unit_test(wrong_calls_are_refused),
        cmocka_unit_test(names_become_a_vocabulary),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
