/* SPDX-License-Identifier: Apache-2.0 */
/* What has gone wrong in other readers of vocabularies, each with a file of our own making
 * that does the same. Numbers are the rows of the list in docs/formats.md; the id says where
 * it was told.
 */
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>

#include "../vocab_bytes.h"

static double seconds(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void put_u64(vocab_bytes *b, uint64_t value)
{
    put_i32(b, (int64_t)(value & UINT32_MAX));
    put_i32(b, (int64_t)(value >> 32));
}

static void refuse_bytes(const vocab_bytes *b, const char *text, const char *rule)
{
    vocab_refused(b->bytes, b->used, EMBLA_VOCAB_MARKED, EMBLA_ERR_FORMAT, text, rule);
}

/* A word whose length becomes small, or negative, where it is put into 32 bits. */
static void row_15_cve_2025_49847_the_size_of_a_word_does_not_wrap(void **state)
{
    static const char key[] = "tokenizer.ggml.tokens";
    const uint64_t sizes[] = {UINT64_C(0x100000001), UINT64_C(0x80000000), UINT64_C(0xffffffff),
                              UINT64_C(0x7fffffffffffffff), UINT64_MAX};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        vocab_bytes b = {0};
        put_text(&b, "GGUF");
        put_i32(&b, 3);
        put_u64(&b, 0);
        put_u64(&b, 1);
        put_u64(&b, sizeof key - 1);
        put_text(&b, key);
        put_i32(&b, 9);
        put_i32(&b, 8);
        put_u64(&b, 1);
        put_u64(&b, sizes[i]);
        put_times(&b, "a", 64);
        refuse_bytes(&b, "", ")");
        put_end(&b);
        put_i32(&b, 5); /* llama2.c: a good word first, so that it is taken for one */
        put_i32(&b, 0);
        put_i32(&b, 1);
        put_text(&b, "a");
        put_i32(&b, 0);
        put_i32(&b, 1);
        put_text(&b, "b");
        put_i32(&b, 0);
        put_i32(&b, i == 0 ? INT32_MIN + 1 : (int64_t)(sizes[i] & UINT32_MAX));
        put_text(&b, "ab");
        refuse_bytes(&b, "token 2 has", "(L3)");
        put_end(&b);
    }
    vocab_bytes b = {0}; /* SentencePiece: a length of 2^32 + 1 in a message of 12 bytes */
    put_text(&b, "\x0a\x08\x0a\x01x\x15"
                 "abcd");
    put_text(&b, "\x0a\x0c\x0a\x81\x80\x80\x80\x10x\x15"
                 "abcd");
    refuse_bytes(&b, "has no piece", "(C2)");
    put_end(&b);
}

/* A length that is the right one where its upper half is lost. A token has no such half. */
static void row_16_ghsa_7rxv_5jhh_j6xx_lengths_are_not_cut_to_32_bits(void **state)
{
    const size_t length = ((size_t)1 << 32) + 3;
    const int32_t tokens[] = {-1, INT32_MIN, INT32_MAX};
    int32_t found = -7;
    (void)state;
    embla_vocab *vocab = vocab_of_text("[\"a\",\"the\",\"\xc4\xa0the\"]");
    char *word = mmap(NULL, length, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (word != MAP_FAILED) {
        memcpy(word, "the", 3);
        assert_status(embla_vocab_find(vocab, word, length, &found), EMBLA_ERR_NOT_FOUND);
        assert_int_equal(munmap(word, length), 0);
    }
    for (size_t i = 0; i < COUNT_OF(tokens); i++) assert_no_word(vocab, tokens[i]);
    assert_int_equal(found, -7);
    embla_vocab_free(vocab);
}

/* "<0x-1>" became an index of -1. Here such words are text, and nothing is made of them. */
static void row_17_llama_cpp_25969_byte_tokens_are_words_like_any_other(void **state)
{
    static const char *const words[] = {"<0x-1>", "<0x100>", "<0x>", "<0x0", "<0xFF>", "<0x+1>"};
    (void)state;
    embla_vocab *vocab =
        vocab_of_text("[\"<0x-1>\",\"<0x100>\",\"<0x>\",\"<0x0\",\"<0xFF>\",\"<0x+1>\"]");
    for (size_t i = 0; i < COUNT_OF(words); i++) {
        assert_word(vocab, (int32_t)i, words[i]);
        assert_found(vocab, words[i], (int32_t)i);
    }
    assert_not_found(vocab, "\xff");
    embla_vocab_free(vocab);
}

/* A pattern that takes for ever, in each place that can hold one: it is never run. */
static void row_39_cve_2025_1194_no_pattern_of_a_file_is_run(void **state)
{
    vocab_bytes b = {0};
    (void)state;
    put_text(&b,
             "{\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"(a+)+$\"},\"content\":"
             "\"\"},"
             "\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"Regex\":\"^(([a-z])+.)+[A-Z]([a-"
             "z])+$\"},"
             "\"behavior\":\"Isolated\",\"invert\":false},"
             "\"post_processor\":{\"type\":\"os.system\"},\"decoder\":{\"type\":\"__import__\"},"
             "\"auto_map\":{\"AutoTokenizer\":\"evil.Evil\"},"
             "\"added_tokens\":[{\"id\":2,\"content\":\"(a+)+$\"}],"
             "\"model\":{\"type\":\"WordLevel\",\"vocab\":{\"");
    put_times(&b, "a", 4000);
    put_text(&b, "!\":0,\"b\":1}}}");
    double begin = seconds();
    embla_vocab *vocab = vocab_of(b.bytes, b.used, EMBLA_VOCAB_MARKED);
    assert_true(seconds() - begin < 1);
    assert_word(vocab, 2, "(a+)+$");
    embla_vocab_free(vocab);
    put_end(&b);
}

/* A million brackets in a string are a string; a word a byte at a time uses no stack. */
static void row_40_cve_2026_29076_long_strings_use_no_stack(void **state)
{
    vocab_bytes b = {0};
    (void)state;
    put_text(&b, "{\"pre_tokenizer\":{\"pattern\":{\"Regex\":\"");
    put_times(&b, "((((((((([{[{[{[{", 50000);
    put_text(&b, "\"}},\"model\":{\"vocab\":{\"");
    put_times(&b, "\\ud83d\\ude00", 80000);
    put_text(&b, "\":0}}}");
    embla_vocab *vocab = vocab_of(b.bytes, b.used, EMBLA_VOCAB_MARKED);
    size_t length = 0;
    assert_non_null(embla_vocab_word(vocab, 0, &length));
    assert_int_equal(length, 320000);
    embla_vocab_free(vocab);
    put_end(&b);
}

static void row_41_cve_2016_4425_deep_json_is_refused_without_recursion(void **state)
{
    static const char *const opens[] = {"[", "{\"a\":", "[{\"b\":"};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(opens); i++) {
        vocab_bytes b = {0};
        put_times(&b, opens[i], 1000000);
        embla_vocab *vocab = NULL;
        assert_status(vocab_read(b.bytes, b.used, EMBLA_VOCAB_MARKED, &vocab), EMBLA_ERR_FORMAT);
        put_end(&b);
        put_text(&b, "{\"x\":");
        put_times(&b, opens[i], 1000000);
        refuse_bytes(&b, "more than 64 deep", "(T1)");
        put_end(&b);
    }
}

/* Many keys that a weak hash would put in one place: alike in front, behind, in length. */
static void row_41_cve_2013_6401_a_flood_of_keys_costs_no_more_than_sorting(void **state)
{
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        vocab_bytes b = {0};
        put_text(&b, "{");
        for (int n = 0; n < 100000; n++) {
            char member[80];
            switch (i) {
            case 0:
                (void)snprintf(member, sizeof member, "%s\"the same beginning, %06d\":%d",
                               n ? "," : "", n * 7919 % 100000, n);
                break;
            case 1:
                (void)snprintf(member, sizeof member, "%s\"%06d, the same end\":%d", n ? "," : "",
                               99999 - n, n);
                break;
            default:
                (void)snprintf(member, sizeof member, "%s\"\\u0000\\u0000\\u0000%06d\":%d",
                               n ? "," : "", n, 99999 - n);
            }
            put_text(&b, member);
        }
        put_text(&b, "}");
        double begin = seconds();
        embla_vocab *vocab = vocab_of(b.bytes, b.used, EMBLA_VOCAB_MARKED);
        assert_true(seconds() - begin < 5); /* 0.1 s where each is not compared with each */
        assert_int_equal(embla_vocab_count(vocab), 100000);
        embla_vocab_free(vocab);
        put_end(&b);
    }
}

static void row_41_cve_2023_26819_a_long_number_is_no_id_and_no_harm(void **state)
{
    vocab_bytes b = {0};
    (void)state;
    put_text(&b, "{\"a\":");
    put_times(&b, "1234567890", 100000);
    put_text(&b, "}");
    refuse_bytes(&b, "the id of 'a' is 12345678901234567890123456789012", "(T2)");
    put_end(&b);
    put_text(&b, "[[\"a\",-");
    put_times(&b, "1234567890", 100000);
    put_text(&b, ".5e-");
    put_times(&b, "9", 100000);
    put_text(&b, "]]"); /* a score, which is not looked at */
    embla_vocab_free(vocab_of(b.bytes, b.used, EMBLA_VOCAB_MARKED));
    put_end(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(row_15_cve_2025_49847_the_size_of_a_word_does_not_wrap),
        cmocka_unit_test(row_16_ghsa_7rxv_5jhh_j6xx_lengths_are_not_cut_to_32_bits),
        cmocka_unit_test(row_17_llama_cpp_25969_byte_tokens_are_words_like_any_other),
        cmocka_unit_test(row_39_cve_2025_1194_no_pattern_of_a_file_is_run),
        cmocka_unit_test(row_40_cve_2026_29076_long_strings_use_no_stack),
        cmocka_unit_test(row_41_cve_2016_4425_deep_json_is_refused_without_recursion),
        cmocka_unit_test(row_41_cve_2013_6401_a_flood_of_keys_costs_no_more_than_sorting),
        cmocka_unit_test(row_41_cve_2023_26819_a_long_number_is_no_id_and_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
