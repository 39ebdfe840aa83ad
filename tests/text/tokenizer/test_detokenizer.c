/* SPDX-License-Identifier: Apache-2.0 */
/* Text of tokens that arrive one by one: for each kind of decoder, the texts of all calls together
 * are the text of embla_detokenize. */
#include <stdio.h>

#include "base/byte_text.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "check.h"
#include "embla_text.h"

#define REPLACED "\xef\xbf\xbd"
#define MARK     "\\u2581"
#define EMOJI    "\xf0\x9f\x98\x80"

enum { JSON_BYTES = 1 << 16, TEXT_BYTES = 1 << 14, TOKENS = 512 };

static const char *const texts[] = {
    "",
    "the cat",
    "Hello, the  world! it 's here .",
    " a space in front, and one behind ",
    "na\xc3\xafve caf\xc3\xa9 \xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e",
    EMOJI "the" EMOJI EMOJI " \xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x91\xa7",
    "a\xff\xfe\xfd\xfc\xfb b\xe3\x81 c\xf0\x9f",
    REPLACED REPLACED REPLACED REPLACED "a" REPLACED,
    "<s>the<s> cat <s><s>",
};

/* ---- tokenizers, by the decoder ---- */

#define FILE_OF(normalizer, pre, decoder, model)                                                   \
    "{\"added_tokens\":[{\"id\":0,\"content\":\"<s>\",\"special\":true,\"normalized\":false}],"    \
    "\"normalizer\":" normalizer ",\"pre_tokenizer\":" pre ",\"post_processor\":null,"             \
    "\"decoder\":" decoder ",\"model\":" model "}"
#define LETTERS                                                                                    \
    "\"<s>\":0,\"?\":1,\"the\":2,\"cat\":3,\"a\":4,\"b\":5,\"c\":6,\"##a\":7,\"##b\":8,\"h\":9,"   \
    "\".\":10,\",\":11,\"'s\":12,\"it\":13,\"t\":14,\"e\":15"
#define LEVEL "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":true}"
#define SPACES                                                                                     \
    "{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Prepend\",\"prepend\":\"" MARK "\"},"     \
    "{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"" MARK "\"}]}"
#define LLAMA                                                                                      \
    "{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Replace\",\"pattern\":{\"String\":"          \
    "\"" MARK "\"},\"content\":\" \"},{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"},"            \
    "{\"type\":\"Strip\",\"content\":\" \",\"start\":1,\"stop\":0}]}"

/* %s is the list of the 256 byte tokens, from token 16 on. */
static const char level_bpe[] =
    FILE_OF("null", LEVEL, LEVEL,
            "{\"type\":\"BPE\",\"vocab\":{\"<s>\":0,\"th\":1,\"the\":2,\"\\u0120c\":3,%s},"
            "\"merges\":[\"t h\",\"th e\",\"\\u0120 c\"]}");
static const char llama_bpe[] =
    FILE_OF(SPACES, "null", LLAMA,
            "{\"type\":\"BPE\",\"unk_token\":\"?\",\"byte_fallback\":true,\"fuse_unk\":true,"
            "\"vocab\":{\"<s>\":0,\"?\":1,\"" MARK "\":2,\"t\":3,\"h\":4,\"e\":5,\"a\":6,\"th\":7,"
            "\"the\":8,\"" MARK "the\":9,\"" MARK "a\":10,%s},"
            "\"merges\":[\"t h\",\"th e\",\"" MARK " the\",\"" MARK " a\"]}");
static const char unigram[] =
    FILE_OF("null", "{\"type\":\"Metaspace\",\"replacement\":\"" MARK "\"}",
            "{\"type\":\"Metaspace\",\"replacement\":\"" MARK "\"}",
            "{\"type\":\"Unigram\",\"unk_id\":1,\"vocab\":[[\"<s>\",0],[\"?\",0],[\"" MARK
            "\",-2],[\"a\",-1],[\"b\",-1],[\"" MARK "the\",-3],[\"e\",-1.5]]}");
static const char wordpiece[] =
    FILE_OF("null", "{\"type\":\"BertPreTokenizer\"}",
            "{\"type\":\"WordPiece\",\"prefix\":\"##\",\"cleanup\":true}",
            "{\"type\":\"WordPiece\",\"unk_token\":\"?\",\"continuing_subword_prefix\":\"##\","
            "\"max_input_chars_per_word\":100,\"vocab\":{" LETTERS "}}");
#define WORDS_OF(decoder)                                                                          \
    FILE_OF("null", "{\"type\":\"WhitespaceSplit\"}", decoder,                                     \
            "{\"type\":\"WordLevel\",\"unk_token\":\"?\",\"vocab\":{" LETTERS "}}")
static const char words[] = WORDS_OF("null"), fused[] = WORDS_OF("{\"type\":\"Fuse\"}");
static const char ctc[] = WORDS_OF("{\"type\":\"CTC\",\"pad_token\":\"?\","
                                   "\"word_delimiter_token\":\"h\",\"cleanup\":true}");
static const char suffixes[] = FILE_OF(
    "null", "{\"type\":\"WhitespaceSplit\"}", "{\"type\":\"BPEDecoder\",\"suffix\":\"</w>\"}",
    "{\"type\":\"BPE\",\"unk_token\":\"?\",\"end_of_word_suffix\":\"</w>\",\"vocab\":{"
    "\"<s>\":0,\"?\":1,\"t\":2,\"h\":3,\"e</w>\":4,\"a</w>\":5,\"th\":6,\"the</w>\":7},"
    "\"merges\":[\"t h\",\"th e</w>\"]}");

static const struct {
    const char *json;
    int bytes;   /* 1: byte level, 2: <0x00> */
    int32_t end; /* tokens */
} kinds[] = {
    {level_bpe, 1, 272}, {llama_bpe, 2, 272}, {unigram, 0, 7}, {wordpiece, 0, 16},
    {words, 0, 16},      {fused, 0, 16},      {ctc, 0, 16},    {suffixes, 0, 8},
};
enum { LEVEL_KIND, LLAMA_KIND, FIRST_BYTE = 16 };

static embla_tokenizer *open_kind(size_t k)
{
    static char json[JSON_BYTES], list[JSON_BYTES / 2];
    embla_tokenizer *t = NULL;
    size_t used = 0;
    for (unsigned b = 0; b < 256; b++) {
        char text[16];
        const unsigned code = (unsigned)embla_byte_code((uint8_t)b);
        (void)snprintf(text, sizeof text, kinds[k].bytes == 1 ? "\\u%04x" : "<0x%02X>",
                       kinds[k].bytes == 1 ? code : b);
        used += (size_t)snprintf(list + used, sizeof list - used, "%s\"%s\":%u", b ? "," : "", text,
                                 FIRST_BYTE + b);
    }
    const char *place = strstr(kinds[k].json, "%s");
    const size_t front = place ? (size_t)(place - kinds[k].json) : strlen(kinds[k].json);
    (void)snprintf(json, sizeof json, "%.*s%s%s", (int)front, kinds[k].json, place ? list : "",
                   place ? place + 2 : "");
    assert_ok(embla_tokenizer_open_bytes(json, strlen(json), "test", &t));
    return t;
}

/* ---- a stream ---- */

typedef struct {
    char bytes[TEXT_BYTES];
    size_t count;
} collected;

static void collect(collected *all, const char *text, size_t length)
{
    assert_true(length < sizeof all->bytes - all->count);
    assert_int_equal(text[length], 0);
    assert_int_equal(embla_utf8_valid(text, length), length);
    memcpy(all->bytes + all->count, text, length);
    all->count += length;
}

static void add(embla_detokenizer *d, const int32_t *tokens, size_t count, collected *all)
{
    const char *text = NULL;
    size_t length = 0;
    assert_ok(embla_detokenizer_add(d, tokens, count, &text, &length));
    collect(all, text, length);
}

static void end(embla_detokenizer *d, collected *all)
{
    const char *text = NULL;
    size_t length = 0;
    assert_ok(embla_detokenizer_end(d, &text, &length));
    collect(all, text, length);
}

static void assert_said(collected *all, const char *wanted)
{
    assert_int_equal(all->count, strlen(wanted));
    assert_memory_equal(all->bytes, wanted, all->count);
    all->count = 0;
}

typedef struct {
    size_t kind;
    embla_tokenized *whole;
    embla_detokenizer *stream;
    bool skip;
    bool valid; /* <0x..> tokens are valid UTF-8; if not, their text may differ */
} pair;

/* Streams tokens one at a time, all at once and in random groups. */
static void assert_streams(const pair *p, const int32_t *tokens, size_t count)
{
    static collected all;
    embla_detokenizer *d = p->stream;
    const char *text = NULL;
    size_t length = 0;
    uint64_t seed = count;
    assert_ok(embla_detokenize(p->whole, tokens, count, p->skip, &text, &length));
    const bool same = p->valid || kinds[p->kind].bytes != 2 || !strstr(text, REPLACED);
    for (size_t way = 0; way < 6; way++) {
        all.count = 0;
        embla_detokenizer_begin(d);
        for (size_t i = 0, group = 0; i < count; i += group) {
            group = way == 0 ? 1 : way == 1 ? count : check_below(&seed, 6);
            if (group > count - i) group = count - i;
            add(d, tokens + i, group, &all);
        }
        end(d, &all);
        if (!same) continue;
        all.bytes[all.count] = 0;
        if (all.count != length || memcmp(all.bytes, text, length) != 0)
            fail_msg("tokenizer %zu, way %zu: '%s' instead of '%s'", p->kind, way, all.bytes, text);
    }
}

static embla_detokenizer *open_stream(const embla_tokenizer *t, bool skip)
{
    embla_detokenizer *d = NULL;
    assert_ok(embla_detokenizer_new(t, &(embla_detokenizer_options){.skip_special = skip}, &d));
    return d;
}

/* ---- tests ---- */

static void streams_of_texts_are_decoded_as_a_whole_is(void **state)
{
    (void)state;
    for (size_t k = 0; k < COUNT_OF(kinds); k++) {
        embla_tokenizer *t = open_kind(k);
        embla_tokenized *e = NULL;
        assert_ok(embla_tokenized_new(t, &e));
        for (int skip = 0; skip < 2; skip++) {
            embla_detokenizer *d = open_stream(t, skip);
            for (size_t i = 0; i < COUNT_OF(texts); i++) {
                int32_t tokens[TOKENS];
                assert_ok(embla_tokenize(e, texts[i], strlen(texts[i]), NULL));
                const size_t count = embla_tokenized_count(e);
                assert_true(count <= TOKENS);
                if (count > 0) memcpy(tokens, embla_tokenized_tokens(e), count * sizeof *tokens);
                assert_streams(&(pair){k, e, d, skip, true}, tokens, count);
            }
            embla_detokenizer_free(d);
        }
        embla_tokenized_free(e);
        embla_tokenizer_free(t);
    }
}

static void streams_of_any_tokens_are_decoded_as_a_whole_is(void **state)
{
    uint64_t seed = 1;
    (void)state;
    for (size_t k = 0; k < COUNT_OF(kinds); k++) {
        embla_tokenizer *t = open_kind(k);
        embla_tokenized *e = NULL;
        embla_detokenizer *streams[2] = {open_stream(t, false), open_stream(t, true)};
        assert_ok(embla_tokenized_new(t, &e));
        for (int round = 0; round < 300; round++) {
            int32_t tokens[40];
            const size_t count = check_below(&seed, COUNT_OF(tokens) + 1);
            /* from all tokens, or from those of a few bytes; some do not exist */
            const bool high = kinds[k].bytes && check_below(&seed, 2);
            for (size_t i = 0; i < count; i++)
                tokens[i] = high ? FIRST_BYTE + (int32_t)(0x80 + check_below(&seed, 128))
                                 : (int32_t)check_below(&seed, (uint64_t)kinds[k].end + 2) - 1;
            assert_streams(&(pair){k, e, streams[round % 2], round % 2, false}, tokens, count);
        }
        embla_detokenizer_free(streams[0]);
        embla_detokenizer_free(streams[1]);
        embla_tokenized_free(e);
        embla_tokenizer_free(t);
    }
}

static void a_character_waits_until_it_is_complete(void **state)
{
    static const uint8_t emoji[] = {0xf0, 0x9f, 0x98, 0x80};
    static collected all;
    (void)state;
    for (size_t k = LEVEL_KIND; k <= LLAMA_KIND; k++) {
        embla_tokenizer *t = open_kind(k);
        embla_detokenizer *d = open_stream(t, false);
        for (int times = 0; times < 3; times++) {
            for (size_t i = 0; i < 4; i++) {
                assert_int_equal(all.count, 0);
                add(d, &(int32_t){FIRST_BYTE + emoji[i]}, 1, &all);
            }
            assert_said(&all, EMOJI);
        }
        /* a U+FFFD of the text does not wait, nor does a byte that begins no character */
        add(d, (int32_t[]){FIRST_BYTE + 0xef, FIRST_BYTE + 0xbf, FIRST_BYTE + 0xbd}, 3, &all);
        assert_said(&all, REPLACED);
        embla_detokenizer_begin(d);
        add(d, (int32_t[]){FIRST_BYTE + 0xff}, 1, &all);
        assert_said(&all, REPLACED);
        embla_detokenizer_free(d);
        embla_tokenizer_free(t);
    }
}

static void the_end_gives_what_was_held_back(void **state)
{
    static collected all;
    (void)state;
    for (size_t k = LEVEL_KIND; k <= LLAMA_KIND; k++) {
        embla_tokenizer *t = open_kind(k);
        embla_detokenizer *d = open_stream(t, false);
        const int32_t first = FIRST_BYTE + 0xe3, letter = k == LEVEL_KIND ? FIRST_BYTE + 'a' : 6;
        end(d, &all);
        assert_said(&all, "");
        add(d, (int32_t[]){letter, first}, 2, &all);
        assert_said(&all, "a");
        end(d, &all);
        assert_said(&all, REPLACED);
        end(d, &all);
        assert_said(&all, "");
        add(d, &letter, 1, &all); /* the text goes on */
        assert_said(&all, "a");
        embla_detokenizer_free(d);
        embla_tokenizer_free(t);
    }
}

static void begin_forgets_all_tokens(void **state)
{
    static collected all;
    embla_tokenizer *t = open_kind(LLAMA_KIND);
    embla_detokenizer *d = open_stream(t, false);
    const int32_t the = 9, first = FIRST_BYTE + 0xe3;
    (void)state;
    add(d, (int32_t[]){the, the, first}, 3, &all);
    assert_said(&all, "the the");
    embla_detokenizer_begin(d);
    add(d, &the, 1, &all); /* at the beginning of a text there is no space */
    end(d, &all);
    assert_said(&all, "the");
    embla_detokenizer_free(d);
    embla_tokenizer_free(t);
}

/* A token that is left out is no context: the space after it stays. */
static void special_tokens_are_left_out_or_kept(void **state)
{
    static collected all;
    embla_tokenizer *t = open_kind(LLAMA_KIND);
    (void)state;
    for (int skip = 0; skip < 2; skip++) {
        embla_detokenizer *d = open_stream(t, skip);
        for (size_t i = 0; i < 5; i++) add(d, &(int32_t[]){0, 9, 0, 9, 0}[i], 1, &all);
        assert_said(&all, skip ? "the the" : "<s> the<s> the<s>");
        embla_detokenizer_free(d);
    }
    embla_tokenizer_free(t);
}

static void null_and_reserved_words_are_refused(void **state)
{
    embla_tokenizer *t = open_kind(LLAMA_KIND);
    embla_detokenizer *d = NULL;
    const char *text = NULL;
    size_t length = 0;
    const int32_t token = 9;
    (void)state;
    assert_status(embla_detokenizer_new(NULL, NULL, &d), EMBLA_ERR_ARGUMENT);
    assert_error_has("embla_detokenizer_new: tokenizer is NULL");
    assert_status(embla_detokenizer_new(t, NULL, NULL), EMBLA_ERR_ARGUMENT);
    for (size_t i = 0; i < 4; i++) {
        embla_detokenizer_options options = {0};
        options.reserved[i] = 1;
        assert_status(embla_detokenizer_new(t, &options, &d), EMBLA_ERR_UNSUPPORTED);
    }
    assert_null(d);
    assert_ok(embla_detokenizer_new(t, NULL, &d));
    assert_status(embla_detokenizer_add(NULL, &token, 1, &text, &length), EMBLA_ERR_ARGUMENT);
    assert_error_has("embla_detokenizer_add: detokenizer is NULL");
    assert_status(embla_detokenizer_add(d, NULL, 1, &text, &length), EMBLA_ERR_ARGUMENT);
    assert_status(embla_detokenizer_add(d, &token, 1, NULL, &length), EMBLA_ERR_ARGUMENT);
    assert_status(embla_detokenizer_add(d, &token, 1, &text, NULL), EMBLA_ERR_ARGUMENT);
    assert_status(embla_detokenizer_add(d, &token, SIZE_MAX, &text, &length), EMBLA_ERR_MEMORY);
    assert_status(embla_detokenizer_end(NULL, &text, &length), EMBLA_ERR_ARGUMENT);
    assert_status(embla_detokenizer_end(d, NULL, &length), EMBLA_ERR_ARGUMENT);
    assert_status(embla_detokenizer_end(d, &text, NULL), EMBLA_ERR_ARGUMENT);
    assert_null(text);
    assert_ok(embla_detokenizer_add(d, NULL, 0, &text, &length));
    assert_string_equal(text, "");
    embla_detokenizer_begin(NULL);
    embla_detokenizer_free(NULL);
    embla_detokenizer_free(d);
    embla_tokenizer_free(t);
}

static void every_allocation_may_fail_and_the_call_may_be_repeated(void **state)
{
    static collected all;
    enum { MANY = 200 };
    static int32_t tokens[MANY];
    embla_tokenizer *t = open_kind(LEVEL_KIND);
    size_t failed = 0, n = 1;
    (void)state;
    for (size_t i = 0; i < MANY; i++) tokens[i] = 2; /* "the" */
    for (bool done = false; !done; n++) {
        embla_detokenizer *d = NULL;
        const char *text = NULL;
        size_t length = 0, live = embla_mem_live();
        embla_mem_fail(n, false);
        embla_status status = embla_detokenizer_new(t, NULL, &d);
        embla_mem_fail(0, false);
        done = status == EMBLA_OK;
        if (status != EMBLA_OK) assert_status(status, EMBLA_ERR_MEMORY);
        if (status != EMBLA_OK) assert_null(d);
        embla_detokenizer_free(d);
        assert_int_equal(embla_mem_live(), live);

        d = open_stream(t, false);
        add(d, (int32_t[]){FIRST_BYTE + 'a', FIRST_BYTE + 0xc3}, 2, &all);
        assert_said(&all, "a");
        tokens[0] = FIRST_BYTE + 0xa9;
        embla_mem_fail(n, false);
        status = embla_detokenizer_add(d, tokens, MANY, &text, &length);
        embla_mem_fail(0, false);
        if (status != EMBLA_OK) {
            assert_status(status, EMBLA_ERR_MEMORY);
            assert_null(text);
            failed++;
            done = false;
            assert_ok(embla_detokenizer_add(d, tokens, MANY, &text, &length));
        }
        assert_int_equal(length, 2 + 3 * (MANY - 1));
        assert_memory_equal(text, "\xc3\xa9the", 5);
        embla_detokenizer_free(d);
        assert_int_equal(embla_mem_live(), live);
        assert_true(n < 100);
    }
    assert_true(failed > 0);
    embla_tokenizer_free(t);
}

static void after_the_first_tokens_nothing_is_allocated(void **state)
{
    static collected all;
    (void)state;
    for (size_t k = 0; k < COUNT_OF(kinds); k++) {
        embla_tokenizer *t = open_kind(k);
        embla_detokenizer *d = open_stream(t, false);
        for (int32_t token = 0; token < kinds[k].end; token++) add(d, &token, 1, &all);
        end(d, &all);
        embla_mem_fail(1, true);
        for (int32_t token = 0; token < kinds[k].end; token++) add(d, &token, 1, &all);
        end(d, &all);
        embla_mem_fail(0, false);
        all.count = 0;
        embla_detokenizer_free(d);
        embla_tokenizer_free(t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_of_texts_are_decoded_as_a_whole_is),
        cmocka_unit_test(streams_of_any_tokens_are_decoded_as_a_whole_is),
        cmocka_unit_test(a_character_waits_until_it_is_complete),
        cmocka_unit_test(the_end_gives_what_was_held_back),
        cmocka_unit_test(begin_forgets_all_tokens),
        cmocka_unit_test(special_tokens_are_left_out_or_kept),
        cmocka_unit_test(null_and_reserved_words_are_refused),
        cmocka_unit_test(every_allocation_may_fail_and_the_call_may_be_repeated),
        cmocka_unit_test(after_the_first_tokens_nothing_is_allocated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
