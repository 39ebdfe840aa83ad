/* SPDX-License-Identifier: Apache-2.0 */
/* Tokenizers of files other than tokenizer.json, made by hand. Real ones are compared by
 * tests/peers/tokens_sources.py. */
#include <math.h>

#include "base/mem.h"
#include "embla_text.h"
#include "gguf_bytes.h"
#include "scratch.h"

static const char words[] = "[PAD]\n[UNK]\n[CLS]\n[SEP]\nun\r\n##aff\n##able\n!";
/* a, b, c, "ab", "bc", "abc": bc has the lower rank. */
static const char ranks[] = "YQ== 0\nYg== 1\nYw== 2\nYmM= 3\nYWI= 4\nYWJj 5\n";

/* A SentencePiece model: each piece is its string, score and type. */
typedef struct {
    const char *text;
    float score;
    uint8_t type;
} piece;

static size_t make_model(uint8_t *out, const piece *pieces, size_t count, uint8_t kind)
{
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(pieces[i].text);
        const uint8_t head[] = {0x0a, (uint8_t)(length + 9), 0x0a, (uint8_t)length};
        memcpy(out + used, head, 4);
        memcpy(out + used + 4, pieces[i].text, length);
        used += 4 + length;
        out[used++] = 0x15;
        memcpy(out + used, &pieces[i].score, 4);
        used += 4;
        out[used++] = 0x18;
        out[used++] = pieces[i].type;
    }
    const uint8_t spec[] = {0x12, 2, 0x18, kind}; /* trainer_spec: model_type */
    memcpy(out + used, spec, sizeof spec);
    return used + sizeof spec;
}

#define MARK "\xe2\x96\x81"
static const piece pieces[] = {{"<unk>", 0, 2},   {"<s>", 0, 3},      {MARK, -2, 1},
                               {"a", -1, 1},      {"b", -1.5f, 1},    {MARK "a", -2.5f, 1},
                               {"ab", -2.25f, 1}, {MARK "ab", -4, 1}, {"ba", -3, 1}};

static void check(const void *bytes, size_t count, const char *source, const char *text,
                  const int32_t *wanted, size_t number)
{
    embla_tokenizer *t = NULL;
    embla_tokenized *e = NULL;
    embla_tokenizer_info info;
    assert_ok(embla_tokenizer_open_bytes(bytes, count, "test", &t));
    assert_ok(embla_tokenizer_describe(t, &info));
    assert_string_equal(info.source, source);
    assert_ok(embla_tokenized_new(t, &e));
    assert_ok(embla_tokenize(e, text, strlen(text), NULL));
    assert_int_equal(embla_tokenized_count(e), number);
    assert_memory_equal(embla_tokenized_tokens(e), wanted, number * sizeof *wanted);
    embla_tokenized_free(e);
    embla_tokenizer_free(t);
}

#define assert_gives(bytes, count, source, text, ...)                                              \
    do {                                                                                           \
        const int32_t wanted_tokens[] = {__VA_ARGS__};                                             \
        check(bytes, count, source, text, wanted_tokens, COUNT_OF(wanted_tokens));                 \
    } while (0)

static void a_vocab_txt_is_wordpiece(void **state)
{
    (void)state;
    assert_gives(words, strlen(words), "vocab.txt", "UnAffable! x [SEP]", 4, 5, 6, 7, 1, 3);
    static const char cased[] = "[UNK]\nUn\nun";
    assert_gives(cased, strlen(cased), "vocab.txt", "Un un UN", 1, 2, 0);
}

static void ranks_merge_any_two_tokens_that_make_a_third(void **state)
{
    (void)state;
    assert_gives(ranks, strlen(ranks), "tiktoken", "abc", 5); /* a whole token comes first */
    assert_gives(ranks, strlen(ranks), "tiktoken", "abca", 5, 0);
    assert_gives(ranks, strlen(ranks), "tiktoken", "aabb", 0, 4, 1);
}

static void a_sentencepiece_model_is_unigram_or_bpe(void **state)
{
    (void)state;
    uint8_t model[1024];
    size_t count = make_model(model, pieces, COUNT_OF(pieces), 1);
    assert_gives(model, count, "SentencePiece", " a  ab ", 5, 7);
    assert_gives(model, count, "SentencePiece", "bx<s>", 2, 4, 0);
    count = make_model(model, pieces, COUNT_OF(pieces), 2);
    assert_gives(model, count, "SentencePiece", "ab", 7);
    assert_gives(model, count, "SentencePiece", "aab", 5, 6);
    assert_gives(model, count, "SentencePiece", "bab", 2, 4, 6); /* ab has a higher score than ba */
    assert_gives(model, count, "SentencePiece", "aa", 5, 3);
}

/* A GGUF file without tensors, with a Unigram model in its keys. flag is the value of
 * add_space_prefix, map that of precompiled_charsmap (NULL means no such key). */
static void make_t5(gguf_bytes *g, const piece *list, size_t count, uint8_t flag,
                    const uint8_t *map, size_t map_bytes)
{
    add_head(g, 3, 0, map ? 6 : 5);
    add_key_text(g, "tokenizer.ggml.model", "t5");
    add_array(g, "tokenizer.ggml.tokens", EMBLA_GGUF_STRING, count);
    for (size_t i = 0; i < count; i++) add_text(g, list[i].text);
    add_array(g, "tokenizer.ggml.scores", EMBLA_GGUF_F32, count);
    for (size_t i = 0; i < count; i++) add(g, &list[i].score, 4);
    add_array(g, "tokenizer.ggml.token_type", EMBLA_GGUF_I32, count);
    for (size_t i = 0; i < count; i++) add_number(g, list[i].type, 4);
    add_key(g, "tokenizer.ggml.add_space_prefix", EMBLA_GGUF_BOOL);
    add(g, &flag, 1);
    if (map) add_array(g, "tokenizer.ggml.precompiled_charsmap", EMBLA_GGUF_U8, map_bytes);
    if (map) add(g, map, map_bytes);
    add_padding(g, 32);
}

static void gguf_t5_is_the_unigram_model_of_sentencepiece(void **state)
{
    gguf_bytes g = {0}, plain = {0};
    (void)state;
    make_t5(&g, pieces, COUNT_OF(pieces), 1, NULL, 0);
    assert_gives(g.bytes, g.used, "GGUF", "ab", 7);
    assert_gives(g.bytes, g.used, "GGUF", "aab", 5, 6);
    assert_gives(g.bytes, g.used, "GGUF", "  a  ab ", 5, 7); /* extra spaces are removed */
    assert_gives(g.bytes, g.used, "GGUF", "xa", 2, 0, 3);
    assert_gives(g.bytes, g.used, "GGUF", "<s>ab", 1, 7); /* control tokens are cut out */
    make_t5(&plain, pieces, COUNT_OF(pieces), 0, NULL, 0);
    assert_gives(plain.bytes, plain.used, "GGUF", "ab", 6); /* no space in front */
    free(g.bytes);
    free(plain.bytes);
}

/* A map whose only rule removes the byte C3, the first of two of a letter. Such a rule is not used:
 * the letter would lose its first byte, and the text would be no UTF-8 any more. */
static void half_a_character_is_not_replaced(void **state)
{
    uint8_t map[4 + 4 * 0xc4 + 1] = {0xc4 * 4 & 0xff, 0xc4 * 4 >> 8};
    const uint8_t rule[] = {0xc3, 0x05}; /* label C3, has a value, which is at C3 ^ 1 */
    gguf_bytes g = {0};
    (void)state;
    memcpy(map + 4 + 4 * 0xc3, rule, sizeof rule);
    make_t5(&g, pieces, COUNT_OF(pieces), 1, map, sizeof map);
    assert_gives(g.bytes, g.used, "GGUF", "\xc3\xa9 ", 2, 0);
    assert_gives(g.bytes, g.used, "GGUF", "a\xc3\xa9", 5, 0);
    free(g.bytes);
}

static void a_wrong_gguf_t5_is_refused(void **state)
{
    static const uint8_t map[] = {9, 0, 0, 0, 1};
    piece list[COUNT_OF(pieces)];
    const struct {
        float score;
        uint8_t type;
        const uint8_t *map;
        const char *sentence;
    } cases[] = {{NAN, 1, NULL, "token 3 has the score"},
                 {0, 9, NULL, "and the type 0"},
                 {0, 1, map, "map of characters has 5 bytes"}};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        gguf_bytes g = {0};
        embla_tokenizer *t = NULL;
        size_t live = embla_mem_live();
        memcpy(list, pieces, sizeof list);
        list[3].score = cases[i].score;
        list[3].type = cases[i].type;
        make_t5(&g, list, COUNT_OF(list), 1, cases[i].map, sizeof map);
        assert_status(embla_tokenizer_open_bytes(g.bytes, g.used, "test", &t), EMBLA_ERR_FORMAT);
        assert_error_has(cases[i].sentence);
        assert_int_equal(embla_mem_live(), live);
        free(g.bytes);
    }
}

static void wrong_files_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        embla_status status;
        const char *sentence;
    } cases[] = {
        {"", EMBLA_ERR_FORMAT, "[UNK]"},
        {"the\nof\n", EMBLA_ERR_FORMAT, "[UNK]"},
        {"YQ== 0\nYg== 1\nYg== x\n", EMBLA_ERR_FORMAT, "[UNK]"},
        {"YQ== 0\nYg== 1\nYw== 2\n? 3\n", EMBLA_ERR_FORMAT, "base64"},
        {"YQ== 0\nYg== 1\nYw== 999999999\n", EMBLA_ERR_UNSUPPORTED, "highest token"},
        {"GGUF", EMBLA_ERR_FORMAT, "test"},
        {"[UNK]\n\xff", EMBLA_ERR_FORMAT, "UTF-8"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        embla_tokenizer *t = NULL;
        size_t live = embla_mem_live();
        assert_status(
            embla_tokenizer_open_bytes(cases[i].bytes, strlen(cases[i].bytes), "test", &t),
            cases[i].status);
        assert_error_has(cases[i].sentence);
        assert_int_equal(embla_mem_live(), live);
    }
}

/* Every prefix of a model, and every change of one byte, ends in a status. */
static void damaged_models_end_in_a_status(void **state)
{
    (void)state;
    uint8_t model[1024], other[1024];
    size_t count = make_model(model, pieces, COUNT_OF(pieces), 1);
    for (size_t i = 0; i < 2 * count; i++) {
        embla_tokenizer *t = NULL;
        size_t live = embla_mem_live();
        memcpy(other, model, count);
        if (i >= count) other[i - count] ^= 0xff;
        if (embla_tokenizer_open_bytes(other, i < count ? i : count, "test", &t) == EMBLA_OK)
            embla_tokenizer_free(t);
        assert_int_equal(embla_mem_live(), live);
    }
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    uint8_t models[2][1024];
    gguf_bytes g = {0};
    make_t5(&g, pieces, COUNT_OF(pieces), 1, NULL, 0);
    const size_t counts[] = {make_model(models[0], pieces, COUNT_OF(pieces), 1),
                             make_model(models[1], pieces, COUNT_OF(pieces), 2), strlen(words),
                             strlen(ranks), g.used};
    const void *const all[] = {models[0], models[1], words, ranks, g.bytes};
    for (size_t i = 0; i < 5; i++) {
        embla_status status = EMBLA_ERR_MEMORY;
        for (size_t n = 1; status != EMBLA_OK; n++) {
            embla_tokenizer *t = NULL;
            size_t live = embla_mem_live();
            embla_mem_fail(n, false);
            status = embla_tokenizer_open_bytes(all[i], counts[i], "test", &t);
            embla_mem_fail(0, false);
            if (status == EMBLA_OK)
                embla_tokenizer_free(t);
            else
                assert_status(status, EMBLA_ERR_MEMORY);
            assert_int_equal(embla_mem_live(), live);
        }
    }
    free(g.bytes);
}

static void folders_are_searched_in_an_order(void **state)
{
    (void)state;
    scratch s;
    embla_tokenizer *t = NULL;
    embla_tokenizer_info info;
    uint8_t model[1024];
    scratch_new(&s);
    assert_status(embla_tokenizer_open_file(s.folder, &t), EMBLA_ERR_NOT_FOUND);
    assert_error_has("no tokenizer.json");
    scratch_write(scratch_path(&s, "vocab.txt"), words, strlen(words));
    assert_ok(embla_tokenizer_open_file(s.folder, &t));
    embla_tokenizer_free(t);
    size_t count = make_model(model, pieces, COUNT_OF(pieces), 1);
    scratch_write(scratch_path(&s, "tokenizer.model"), model, count);
    assert_ok(embla_tokenizer_open_file(s.folder, &t));
    assert_ok(embla_tokenizer_describe(t, &info));
    assert_string_equal(info.source, "SentencePiece");
    embla_tokenizer_free(t);
    scratch_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_vocab_txt_is_wordpiece),
        cmocka_unit_test(ranks_merge_any_two_tokens_that_make_a_third),
        cmocka_unit_test(a_sentencepiece_model_is_unigram_or_bpe),
        cmocka_unit_test(gguf_t5_is_the_unigram_model_of_sentencepiece),
        cmocka_unit_test(half_a_character_is_not_replaced),
        cmocka_unit_test(a_wrong_gguf_t5_is_refused),
        cmocka_unit_test(wrong_files_are_refused),
        cmocka_unit_test(damaged_models_end_in_a_status),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(folders_are_searched_in_an_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
