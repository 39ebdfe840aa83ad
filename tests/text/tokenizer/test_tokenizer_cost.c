/* SPDX-License-Identifier: Apache-2.0 */
/* Tokenizers that are made to cost time or memory out of proportion. Each is opened and used with
 * sizes n, 2n and 4n; what is compared with the bound is work that was counted, never seconds. */
#include "embla_text.h"
#include "scratch.h"
#include "tokenizer/tokenize.h"

typedef struct {
    char *bytes;
    size_t count, room;
} text;

static void put_bytes(text *t, const void *bytes, size_t count)
{
    if (t->count + count + 1 > t->room) {
        t->room = 2 * (t->room + count) + 4096;
        t->bytes = realloc(t->bytes, t->room);
        assert_non_null(t->bytes);
    }
    memcpy(t->bytes + t->count, bytes, count);
    t->count += count;
    t->bytes[t->count] = 0;
}

static void put(text *t, const char *more)
{
    put_bytes(t, more, strlen(more));
}

static void repeat(text *t, const char *more, size_t times)
{
    for (size_t i = 0; i < times; i++) put(t, more);
}

/* A BPE model of two letters, which a file needs. */
static void put_letters(text *t)
{
    put(t, "\"model\":{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1},\"merges\":[]}}");
}

/* ---- maps of characters ---- */

/* A SentencePiece model of "a" and "b" with a map: the node of "a" has `unit`, and the string at
 * unit 256 is `size` letters b. */
static void put_sentencepiece(text *t, uint32_t unit, size_t size)
{
    static const char pieces[] =
        "\x0a\x0e\x0a\x05<unk>\x15\0\0\0\0\x18\x02\x0a\x0a\x0a\x01\x61\x15\0\0\x80\xbf\x18\x01"
        "\x0a\x0a\x0a\x01\x62\x15\0\0\x80\xbf\x18\x01\x12\x02\x18\x01";
    uint8_t units[4 + 512 * 4] = {0x00, 0x08}, head[] = {0x1a, 0, 0, 0, 0x12, 0, 0, 0};
    const size_t map = sizeof units + size + 1;
    for (size_t i = 0; i < 4; i++) units[4 + 4 * 0x61 + i] = (uint8_t)(unit >> 8 * i);
    units[4 + 4 * 256 + 3] = 0x80;
    for (size_t i = 0; i < 2; i++) { /* two lengths, in 3 bytes each */
        const size_t length = map + (i == 0 ? 4 : 0);
        for (size_t j = 0; j < 3; j++)
            head[4 * i + 1 + j] = (uint8_t)((length >> 7 * j & 127) | (j < 2 ? 128 : 0));
    }
    put_bytes(t, pieces, sizeof pieces - 1);
    put_bytes(t, head, sizeof head);
    put_bytes(t, units, sizeof units);
    repeat(t, "b", size);
    put_bytes(t, "", 1);
}

static void map_in_a_circle(text *t, size_t n)
{
    (void)n;
    put_sentencepiece(t, 0x61u << 10 | 0x61, 1);
}

static void map_of_a_to_many(text *t, size_t n)
{
    put_sentencepiece(t, (0x61u ^ 256u) << 10 | 1u << 8 | 0x61, n);
}

/* ---- the other shapes ---- */

static void replace_25_times(text *t, size_t n)
{
    (void)n;
    put(t, "{\"normalizer\":{\"type\":\"Sequence\",\"normalizers\":[");
    for (size_t i = 0; i < 25; i++) {
        if (i > 0) put(t, ",");
        put(t, "{\"type\":\"Replace\",\"pattern\":{\"String\":\"a\"},\"content\":\"aa\"}");
    }
    put(t, "]},");
    put_letters(t);
}

static void replace_while_opening(text *t, size_t n)
{
    put(t, "{\"added_tokens\":[{\"content\":\"");
    repeat(t, "a", n);
    put(t, "\",\"normalized\":true}],");
    text rest = {0};
    replace_25_times(&rest, n);
    put(t, rest.bytes + 1);
    free(rest.bytes);
}

static void put_split(text *t, const char *regex)
{
    put(t, "{\"pre_tokenizer\":{\"type\":\"Split\",\"behavior\":\"Isolated\",\"pattern\":{");
    put(t, "\"Regex\":\"");
    put(t, regex);
    put(t, "\"}},");
    put_letters(t);
}

static void cubic_split(text *t, size_t n)
{
    (void)n;
    put_split(t, "a*a*[^a]");
}

static void split_that_never_goes_back(text *t, size_t n)
{
    (void)n;
    put_split(t, "(?>a*)[^a]");
}

static void back_reference(text *t, size_t n)
{
    (void)n;
    put_split(t, "(a+)\\\\1+[^a]");
}

static void long_added_token(text *t, size_t n)
{
    put(t, "{\"added_tokens\":[{\"content\":\"");
    repeat(t, "a", n);
    put(t, "b\"}],");
    put_letters(t);
}

static void long_unigram_piece(text *t, size_t n)
{
    put(t, "{\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"a\",-1],[\"");
    repeat(t, "a", n);
    put(t, "b\",-2]]}}");
}

static void long_wordpiece(text *t, size_t n)
{
    put(t, "{\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"u\",\"max_input_chars_per_word\":"
           "2000000000,\"vocab\":{\"u\":0,\"a\":1,\"##a\":2,\"##");
    repeat(t, "a", n);
    put(t, "b\":3}}}");
}

static void long_prefix(text *t, size_t n)
{
    text prefix = {0};
    repeat(&prefix, "p", n);
    put(t, "{\"model\":{\"type\":\"BPE\",\"merges\":[],\"vocab\":{\"a\":0,\"");
    put(t, prefix.bytes);
    put(t, "a\":1},\"continuing_subword_prefix\":\"");
    put(t, prefix.bytes);
    put(t, "\"}}");
    free(prefix.bytes);
}

static void long_prefix_in_bytes(text *t, size_t n)
{
    put(t, "{\"model\":{\"type\":\"BPE\",\"merges\":[],\"byte_fallback\":true,\"vocab\":{");
    put(t, "\"<0x61>\":0,\"<0x70>\":1},\"continuing_subword_prefix\":\"");
    repeat(t, "p", n);
    put(t, "\"}}");
}

/* ---- the bound ---- */

typedef struct {
    void (*make)(text *t, size_t n);
    size_t n;
    const char *stage;   /* that the message names; NULL: the shape stays within the bound */
    const char *opening; /* what is wrong with opening it; NULL if it is opened */
} shape;

static const shape shapes[] = {
    {replace_25_times, 4096, "the normalizer Replace makes", NULL},
    {replace_while_opening, 4096, NULL, "the normalizer Replace makes"},
    {cubic_split, 1024, "the pre-tokenizer Split needs", NULL},
    {split_that_never_goes_back, 4096, "the pre-tokenizer Split needs", NULL},
    {back_reference, 1024, NULL, "'(a+)\\1+[^a]' is a back-reference"},
    {long_added_token, 4096, "the search for added tokens needs", NULL},
    {long_unigram_piece, 4096, "the model needs", NULL},
    {long_wordpiece, 4096, "the model needs", NULL},
    {long_prefix, 4096, NULL, NULL},
    {long_prefix_in_bytes, 4096, "the model makes", NULL},
    {map_in_a_circle, 4096, "the map of characters needs", NULL},
    {map_of_a_to_many, 4096, "the map of characters makes", NULL},
};

/* Encodes n letters a. What was counted is at most what one last step may add to the bound. */
static void encode(const embla_tokenizer *t, const shape *s, size_t n)
{
    embla_tokenized *e = NULL;
    text many = {0};
    repeat(&many, "a", n);
    assert_ok(embla_tokenized_new(t, &e));
    const embla_status status = embla_tokenize(e, many.bytes, n, NULL);
    const uint64_t steps = 256 * (uint64_t)n + 65536, bytes = 32 * (uint64_t)n + 65536;
    assert_int_equal(e->bound.most_steps, steps);
    assert_int_equal(e->bound.most_bytes, bytes);
    assert_in_range(e->bound.steps, n, steps + 4 * (n + 1));
    assert_in_range(e->strands[0].room + e->strands[1].room, 0, 4 * bytes);
    assert_in_range(e->symbol_room, 0, 2 * bytes);
    assert_status(status, s->stage ? EMBLA_ERR_UNSUPPORTED : EMBLA_OK);
    assert_int_equal(embla_tokenized_count(e), s->stage ? 0 : n);
    if (s->stage) assert_error_has("test.json: ");
    if (s->stage) assert_error_has(s->stage);
    embla_tokenized_free(e);
    free(many.bytes);
}

static void work_is_bounded_by_the_text(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(shapes); i++)
        for (size_t n = shapes[i].n; n <= 4 * shapes[i].n; n *= 2) {
            embla_tokenizer *t = NULL;
            text file = {0};
            shapes[i].make(&file, n);
            embla_status status =
                embla_tokenizer_open_bytes(file.bytes, file.count, "test.json", &t);
            assert_status(status, shapes[i].opening ? EMBLA_ERR_UNSUPPORTED : EMBLA_OK);
            if (shapes[i].opening) assert_error_has("test.json: ");
            if (shapes[i].opening) assert_error_has(shapes[i].opening);
            if (!shapes[i].opening) encode(t, &shapes[i], n);
            embla_tokenizer_free(t);
            free(file.bytes);
        }
}

/* A text that is larger than the one before has left larger strands. */
static void the_bound_does_not_depend_on_earlier_texts(void **state)
{
    (void)state;
    embla_tokenizer *t = NULL;
    embla_tokenized *e = NULL;
    text file = {0}, large = {0};
    replace_25_times(&file, 0);
    repeat(&large, "b", 1 << 20);
    assert_ok(embla_tokenizer_open_bytes(file.bytes, file.count, "test.json", &t));
    assert_ok(embla_tokenized_new(t, &e));
    assert_ok(embla_tokenize(e, large.bytes, large.count, NULL));
    assert_status(embla_tokenize(e, "aaaa", 4, NULL), EMBLA_ERR_UNSUPPORTED);
    assert_error_has("Replace needs more than 66560 steps for a text of 4 bytes");
    assert_int_equal(embla_tokenized_count(e), 0);
    assert_ok(embla_tokenize(e, "bbbb", 4, NULL));
    assert_int_equal(embla_tokenized_count(e), 4);
    embla_tokenized_free(e);
    embla_tokenizer_free(t);
    free(file.bytes);
    free(large.bytes);
}

static void decoding_is_bounded_too(void **state)
{
    (void)state;
    const int32_t tokens[] = {0, 0, 0, 0};
    embla_tokenizer *t = NULL;
    embla_tokenized *e = NULL;
    const char *decoded = NULL;
    size_t length = 0;
    text file = {0};
    put(&file, "{\"decoder\":{\"type\":\"Sequence\",\"decoders\":[");
    for (size_t i = 0; i < 25; i++) {
        if (i > 0) put(&file, ",");
        put(&file, "{\"type\":\"Replace\",\"pattern\":{\"String\":\"a\"},\"content\":\"aa\"}");
    }
    put(&file, "]},");
    put_letters(&file);
    assert_ok(embla_tokenizer_open_bytes(file.bytes, file.count, "test.json", &t));
    assert_ok(embla_tokenized_new(t, &e));
    assert_status(embla_detokenize(e, tokens, 4, false, &decoded, &length), EMBLA_ERR_UNSUPPORTED);
    assert_error_has("test.json: the decoder Replace needs more than 67584 steps");
    embla_tokenized_free(e);
    embla_tokenizer_free(t);
    free(file.bytes);
}

/* ---- expressions that count ---- */

static void assert_counted(const char *regex, const char *counted)
{
    embla_arena arena = {0};
    const char *out = NULL;
    size_t length = 0;
    assert_ok(embla_regex_counted(regex, strlen(regex), "test.json", &arena, &out, &length));
    char made[512], *to = made;
    for (size_t i = 0; i < length; i++) { /* # for a callout */
        const bool callout = length - i >= 8 && memcmp(out + i, "(*EMBLA)", 8) == 0;
        *to++ = callout ? '#' : out[i];
        if (callout) i += 7;
    }
    *to = 0;
    assert_string_equal(made, counted);
    embla_arena_free(&arena);
}

static void expressions_call_at_alternatives_and_repeats(void **state)
{
    (void)state;
    assert_counted("", "#");
    assert_counted("ab", "#ab");
    assert_counted("a*a*[^a]", "#(?:a#)*(?:a#)*[^a]");
    assert_counted("\\s+(?!\\S)|\\s+", "#(?:\\s#)+(?!#\\S)|#(?:\\s#)+");
    assert_counted("\\p{N}{1,3}", "#(?:\\p{N}#){1,3}");
    assert_counted(" ?[^(\\s|[.,])]+", "#(?: #)?(?:[^(\\s|[.,])]#)+");
    assert_counted("(?:a|b)*+", "#(?:(?:#a|#b)#)*+");
    assert_counted("(?i:'s|'t)", "#(?i:#'s|#'t)");
    assert_counted("(?<=a|b)c??", "#(?<=a|b)(?:c#)??");
    assert_counted("a{2}{3}", "#(?:(?:a#){2}#){3}");
    assert_counted("a{,}b{x}", "#a{,}b{x}");
    assert_counted("\xc3\xa9+\\x{e9}*\\*", "#(?:\xc3\xa9#)+(?:\\x{e9}#)*\\*");
    assert_counted("[\\]]+", "#(?:[\\]]#)+");
}

static void parts_without_a_bound_are_refused(void **state)
{
    (void)state;
    static const char *const regexes[] = {
        "(a)\\1",         "\\k<a>",  "(?<a>b)\\g<a>", "(?~a)",   "(?(1)a)",
        "(?{a})",         "(*FAIL)", "(?<=a*)b",      "a{1001}", "a{2,99999999999999999999}",
        "(?x) a",         "\\X",     "\\xe3\\x81",    "[]a]",    "*a",
        "(?<=(?:a|b+))c",
    };
    for (size_t i = 0; i < COUNT_OF(regexes); i++) {
        embla_arena arena = {0};
        const char *out = NULL;
        size_t length = 0;
        assert_status(
            embla_regex_counted(regexes[i], strlen(regexes[i]), "test.json", &arena, &out, &length),
            EMBLA_ERR_UNSUPPORTED);
        assert_error_has("because its time has no bound");
        embla_arena_free(&arena);
    }
    text many = {0};
    repeat(&many, "(", 65);
    embla_arena arena = {0};
    const char *out = NULL;
    size_t length = 0;
    assert_status(embla_regex_counted(many.bytes, 65, "test.json", &arena, &out, &length),
                  EMBLA_ERR_UNSUPPORTED);
    assert_error_has("opens a group in 64 others");
    repeat(&many, "a", 8192);
    assert_status(embla_regex_counted(many.bytes, many.count, "test.json", &arena, &out, &length),
                  EMBLA_ERR_UNSUPPORTED);
    assert_error_has("a regular expression has 8257 bytes; the limit is 8192");
    embla_arena_free(&arena);
    free(many.bytes);
}

/* ---- brothers ---- */

/* One list of tokens that a template names again and again is counted each time. */
static void templates_are_short(void **state)
{
    (void)state;
    for (size_t parts = 256; parts <= 257; parts++) {
        embla_tokenizer *t = NULL;
        text file = {0};
        put(&file, "{\"post_processor\":{\"type\":\"TemplateProcessing\",\"pair\":[],\"single\":[");
        for (size_t i = 0; i < parts; i++) {
            if (i > 0) put(&file, ",");
            put(&file, "{\"SpecialToken\":{\"id\":\"s\",\"type_id\":0}}");
        }
        put(&file, "],\"special_tokens\":{\"s\":{\"id\":\"s\",\"ids\":[0");
        put(&file, parts == 256 ? "]" : ",0]");
        put(&file, ",\"tokens\":[\"a\"]}}},");
        put_letters(&file);
        embla_status status = embla_tokenizer_open_bytes(file.bytes, file.count, "test.json", &t);
        assert_status(status, parts == 256 ? EMBLA_OK : EMBLA_ERR_FORMAT);
        if (parts > 256) assert_error_has("it has more than 256 parts");
        embla_tokenizer_free(t);
        free(file.bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(work_is_bounded_by_the_text),
        cmocka_unit_test(the_bound_does_not_depend_on_earlier_texts),
        cmocka_unit_test(decoding_is_bounded_too),
        cmocka_unit_test(expressions_call_at_alternatives_and_repeats),
        cmocka_unit_test(parts_without_a_bound_are_refused),
        cmocka_unit_test(templates_are_short),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
