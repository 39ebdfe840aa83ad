/* SPDX-License-Identifier: Apache-2.0 */
/* Tokenizers: small ones, each written for a rule, with the tokens that Hugging Face's library
 * gives. The real ones of EMBLA_DATA are compared by tests/peers/tokens_golden.py and
 * tokens_live.py.
 */
#include <errno.h>
#include <pthread.h>

#include "base/mem.h"
#include "embla_text.h"
#include "files/io.h"
#include "scratch.h"
#include "tokenizer/tokenizer.h"

#define FILE_OF(added, normalizer, pre, post, decoder, model)                                      \
    "{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,\"added_tokens\":" added            \
    ",\"normalizer\":" normalizer ",\"pre_tokenizer\":" pre ",\"post_processor\":" post            \
    ",\"decoder\":" decoder ",\"model\":" model "}"

#define BERT_ADDED                                                                                 \
    "[{\"id\":1,\"content\":\"[CLS]\",\"special\":true,\"normalized\":false},"                     \
    "{\"id\":2,\"content\":\"[SEP]\",\"special\":true,\"normalized\":false}]"
#define BERT_POST                                                                                  \
    "{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"[CLS]\"}},"          \
    "{\"Sequence\":{\"id\":\"A\"}},{\"SpecialToken\":{\"id\":\"[SEP]\"}}],\"special_tokens\":"     \
    "{\"[CLS]\":{\"ids\":[1]},\"[SEP]\":{\"ids\":[2]}}}"
#define BERT_MODEL                                                                                 \
    "{\"type\":\"WordPiece\",\"unk_token\":\"[UNK]\",\"continuing_subword_prefix\":\"##\","        \
    "\"max_input_chars_per_word\":10,\"vocab\":{\"[UNK]\":0,\"[CLS]\":1,\"[SEP]\":2,\"un\":3,"     \
    "\"##aff\":4,\"##able\":5,\"##a\":6,\"cafe\":7,\"!\":8,\"a\":9}}"
static const char bert[] =
    FILE_OF(BERT_ADDED,
            "{\"type\":\"BertNormalizer\",\"clean_text\":true,"
            "\"handle_chinese_chars\":true,\"strip_accents\":null,\"lowercase\":true}",
            "{\"type\":\"BertPreTokenizer\"}", BERT_POST,
            "{\"type\":\"WordPiece\",\"prefix\":\"##\",\"cleanup\":true}", BERT_MODEL);

/* Byte-level BPE: the bytes a, b, c, space, E3, 81, and merges. */
#define LEVEL                                                                                      \
    "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":true,\"use_regex\":true}"
#define PREFIXED                                                                                   \
    "{\"type\":\"ByteLevel\",\"add_prefix_space\":true,\"trim_offsets\":true,\"use_regex\":true}"
static const char bytes_bpe[] =
    FILE_OF("[]", "null", LEVEL, LEVEL, LEVEL,
            "{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"c\":2,\"\\u0120\":3,\"\\u00e3\":4,"
            "\"\\u0123\":5,\"ab\":6,\"abc\":7,\"\\u0120a\":8,\"bc\":9,\"\\u00ef\":10,"
            "\"\\u00bf\":11,\"\\u00bd\":12},"
            "\"merges\":[\"b c\",[\"a\",\"b\"],\"ab c\",\"\\u0120 a\"]}");

/* SentencePiece's form: a mark in front of words, no pre-tokenizer, bytes for what is unknown. */
static const char marks_bpe[] = FILE_OF(
    "[]",
    "{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"Prepend\",\"prepend\":\"\\u2581\"},"
    "{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"\\u2581\"}]}",
    "null", "null",
    "{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"Replace\",\"pattern\":{\"String\":"
    "\"\\u2581\"},\"content\":\" \"},{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"},"
    "{\"type\":\"Strip\",\"content\":\" \",\"start\":1,\"stop\":0}]}",
    "{\"type\":\"BPE\",\"unk_token\":\"<unk>\",\"byte_fallback\":true,\"fuse_unk\":true,"
    "\"vocab\":{\"<unk>\":0,\"<0xC3>\":1,\"<0xA9>\":2,\"\\u2581\":3,\"a\":4,\"b\":5,"
    "\"\\u2581a\":6,\"ab\":7,\"\\u2581ab\":8},"
    "\"merges\":[\"\\u2581 a\",\"\\u2581a b\"]}");

static const char unigram[] =
    FILE_OF("[]", "null",
            "{\"type\":\"Metaspace\",\"replacement\":\"\\u2581\",\"prepend_scheme\":\"always\"}",
            "null", "{\"type\":\"Metaspace\",\"replacement\":\"\\u2581\"}",
            "{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"<unk>\",0],[\"\\u2581\",-2],"
            "[\"a\",-1],[\"b\",-1],[\"ab\",-2],[\"\\u2581ab\",-3],[\"bb\",-1.5]]}");

/* ---- helpers ---- */

typedef struct {
    embla_tokenizer *tokenizer;
    embla_tokenized *tokenized;
} opened;

static opened open_text(const char *json)
{
    opened o = {0};
    assert_ok(embla_tokenizer_open_bytes(json, strlen(json), "test", &o.tokenizer));
    assert_ok(embla_tokenized_new(o.tokenizer, &o.tokenized));
    return o;
}

static void close_opened(opened *o)
{
    embla_tokenized_free(o->tokenized);
    embla_tokenizer_free(o->tokenizer);
}

static void assert_tokens(const embla_tokenized *e, const int32_t *wanted, size_t count)
{
    assert_int_equal(embla_tokenized_count(e), count);
    assert_memory_equal(embla_tokenized_tokens(e), wanted, count * sizeof *wanted);
}

#define assert_encodes(o, text, options, ...)                                                      \
    do {                                                                                           \
        const int32_t wanted_tokens[] = {__VA_ARGS__};                                             \
        assert_ok(embla_tokenize((o).tokenized, text, strlen(text), options));                     \
        assert_tokens((o).tokenized, wanted_tokens, COUNT_OF(wanted_tokens));                      \
    } while (0)

static void assert_decodes(const opened *o, const int32_t *tokens, size_t count, const char *wanted)
{
    const char *text = NULL;
    size_t length = 0;
    assert_ok(embla_detokenize(o->tokenized, tokens, count, true, &text, &length));
    assert_string_equal(text, wanted);
    assert_int_equal(length, strlen(wanted));
}

static void assert_refused(const char *json, embla_status status, const char *sentence)
{
    embla_tokenizer *t = NULL;
    size_t live = embla_mem_live();
    assert_status(embla_tokenizer_open_bytes(json, strlen(json), "test", &t), status);
    assert_error_has(sentence);
    assert_null(t);
    assert_int_equal(embla_mem_live(), live);
}

/* ---- models ---- */

static void wordpiece_takes_the_longest_string_and_fails_as_a_whole(void **state)
{
    (void)state;
    opened o = open_text(bert);
    assert_encodes(o, "unaffable", NULL, 3, 4, 5);
    assert_encodes(o, "UNAFFABLE!", NULL, 3, 4, 5, 8);
    assert_encodes(o, "unaffx caf\xc3\xa9", NULL, 0, 7);
    assert_encodes(o, "aaaaaaaaaa aaaaaaaaaaa", NULL, 9, 6, 6, 6, 6, 6, 6, 6, 6, 6, 0);
    close_opened(&o);
}

static void bpe_merges_the_lowest_rank_first(void **state)
{
    (void)state;
    opened o = open_text(bytes_bpe);
    assert_encodes(o, "abc", NULL, 0, 9);
    assert_encodes(o, "ab", NULL, 6);
    assert_encodes(o, "abc a  b", NULL, 0, 9, 8, 3, 3, 1);
    close_opened(&o);
}

static void long_words_are_merged_as_short_ones_are(void **state)
{
    (void)state;
    char text[301];
    opened o = open_text(bytes_bpe);
    for (size_t i = 0; i < 300; i++) text[i] = "abc"[i % 3];
    text[300] = '\0';
    assert_ok(embla_tokenize(o.tokenized, text, 300, NULL));
    assert_int_equal(embla_tokenized_count(o.tokenized), 200);
    for (size_t i = 0; i < 200; i++)
        assert_int_equal(embla_tokenized_tokens(o.tokenized)[i], i % 2 ? 9 : 0);
    close_opened(&o);
}

static void characters_without_a_token_become_bytes_or_unknown(void **state)
{
    (void)state;
    opened o = open_text(marks_bpe);
    assert_encodes(o,
                   "ab \xc3\xa9"
                   "a",
                   NULL, 8, 3, 1, 2, 4);
    assert_encodes(o, "axya", NULL, 6, 0, 4);
    close_opened(&o);
}

static void unigram_keeps_the_first_of_two_equal_paths(void **state)
{
    (void)state;
    opened o = open_text(unigram);
    assert_encodes(o, "ab", NULL, 5);
    assert_encodes(o, "abb", NULL, 5, 3);
    assert_encodes(o, "aab", NULL, 1, 2, 4);
    assert_encodes(o, "xxa", NULL, 1, 0, 2);
    close_opened(&o);
}

/* ---- options ---- */

static void special_tokens_are_added_and_marked(void **state)
{
    (void)state;
    opened o = open_text(bert);
    const embla_tokenize_options add = {.add_special = true}, plain = {.plain = true};
    assert_encodes(o, "a!", &add, 1, 9, 8, 2);
    const uint8_t *special = embla_tokenized_special(o.tokenized);
    assert_true(special[0] == 1 && special[1] == 0 && special[2] == 0 && special[3] == 1);
    assert_encodes(o, "[CLS]a", NULL, 1, 9);
    assert_encodes(o, "[CLS]a", &plain, 0, 0, 0, 9);
    close_opened(&o);
}

static void truncation_is_reported(void **state)
{
    (void)state;
    opened o = open_text(bert);
    const embla_tokenize_options two = {.max_tokens = 2};
    const embla_tokenize_options three = {.max_tokens = 3, .add_special = true};
    const embla_tokenize_options one = {.max_tokens = 1, .add_special = true};
    assert_encodes(o, "a ! a !", &two, 9, 8);
    assert_int_equal(embla_tokenized_cut(o.tokenized), 2);
    assert_encodes(o, "a ! a !", &three, 1, 9, 2);
    assert_int_equal(embla_tokenized_cut(o.tokenized), 3);
    assert_encodes(o, "a", NULL, 9);
    assert_int_equal(embla_tokenized_cut(o.tokenized), 0);
    /* counts of threads that only an earlier batch used are not added */
    static const char *texts[1 << 14];
    static size_t lengths[COUNT_OF(texts)];
    const size_t batches[] = {COUNT_OF(texts), 1};
    for (size_t i = 0; i < COUNT_OF(texts); i++) texts[i] = "a ! a !";
    for (size_t i = 0; i < COUNT_OF(texts); i++) lengths[i] = strlen(texts[i]);
    for (size_t i = 0; i < COUNT_OF(batches); i++) {
        const embla_tokenize_options some = {.max_tokens = 2, .threads = i == 0 ? 8 : 1};
        const embla_texts all = {.texts = texts, .lengths = lengths, .count = batches[i]};
        assert_ok(embla_tokenize_batch(o.tokenized, &all, &some));
        assert_int_equal(embla_tokenized_cut(o.tokenized), 2 * batches[i]);
    }
    assert_status(embla_tokenize(o.tokenized, "a", 1, &one), EMBLA_ERR_SHAPE);
    assert_int_equal(embla_tokenized_count(o.tokenized), 0);
    close_opened(&o);
}

static void text_that_is_not_utf8_is_replaced_or_refused(void **state)
{
    (void)state;
    opened o = open_text(bytes_bpe);
    const embla_tokenize_options strict = {.strict = true};
    /* E3 81 is cut off: one U+FFFD, then b */
    assert_ok(embla_tokenize(o.tokenized,
                             "a\xe3\x81"
                             "b",
                             4, NULL));
    const int32_t wanted[] = {0, 10, 11, 12, 1};
    assert_tokens(o.tokenized, wanted, 5);
    assert_status(embla_tokenize(o.tokenized,
                                 "a\xe3\x81"
                                 "b",
                                 4, &strict),
                  EMBLA_ERR_FORMAT);
    assert_error_has("byte 1 of 4");
    close_opened(&o);
}

/* ---- offsets ---- */

static void offsets_point_into_the_bytes_that_were_given(void **state)
{
    (void)state;
    opened o = open_text(bert);
    const embla_tokenize_options options = {.offsets = true, .add_special = true};
    const char text[] = " CAF\xc3\x89\x01 unaffable!";
    assert_encodes(o, text, &options, 1, 7, 3, 4, 5, 8, 2);
    const embla_text_span wanted[] = {{0, 0},   {1, 6},   {8, 10}, {10, 13},
                                      {13, 17}, {17, 18}, {0, 0}};
    assert_memory_equal(embla_tokenized_offsets(o.tokenized), wanted, sizeof wanted);
    assert_encodes(o, "a", NULL, 9);
    assert_null(embla_tokenized_offsets(o.tokenized));
    close_opened(&o);
}

static void a_part_of_a_character_has_the_span_of_all_of_it(void **state)
{
    (void)state;
    opened o = open_text(bytes_bpe);
    const embla_tokenize_options options = {.offsets = true};
    assert_ok(embla_tokenize(o.tokenized,
                             "a\xff"
                             "b a",
                             5, &options));
    const int32_t tokens[] = {0, 10, 11, 12, 1, 8};
    const embla_text_span wanted[] = {{0, 1}, {1, 2}, {1, 2}, {1, 2}, {2, 3}, {4, 5}};
    assert_tokens(o.tokenized, tokens, 6);
    assert_memory_equal(embla_tokenized_offsets(o.tokenized), wanted, sizeof wanted);
    close_opened(&o);
}

/* RoBERTa's <mask>: the library trims by the text that the token matched, spaces included. */
static void white_space_that_an_added_token_takes_is_not_in_its_span(void **state)
{
    (void)state;
    static const char json[] =
        FILE_OF("[{\"id\":4,\"content\":\"<m>\",\"lstrip\":true,\"rstrip\":true,\"special\":true,"
                "\"normalized\":false}]",
                "null", LEVEL, PREFIXED, LEVEL,
                "{\"type\":\"BPE\",\"vocab\":{\"a\":0,\"b\":1,\"\\u0120\":2,\"\\u0120a\":3,"
                "\"<m>\":4},\"merges\":[\"\\u0120 a\"]}");
    const embla_tokenize_options options = {.offsets = true};
    opened o = open_text(json);
    assert_encodes(o, "a  <m> \xe3\x80\x80 a<m>", &options, 0, 4, 0, 4);
    const embla_text_span wanted[] = {{0, 1}, {3, 6}, {11, 12}, {12, 15}};
    assert_memory_equal(embla_tokenized_offsets(o.tokenized), wanted, sizeof wanted);
    /* one space in front of the first token may be that of add_prefix_space: it stays */
    assert_encodes(o, " <m> a", &options, 4, 0);
    const embla_text_span one[] = {{0, 4}, {5, 6}};
    assert_memory_equal(embla_tokenized_offsets(o.tokenized), one, sizeof one);
    assert_encodes(o, "  <m>", &options, 4);
    assert_int_equal(embla_tokenized_offsets(o.tokenized)[0].begin, 2);
    close_opened(&o);
}

/* The string of a token has a space that was put in front of a character of two bytes. */
static void spans_are_trimmed_by_characters(void **state)
{
    (void)state;
    static const char json[] =
        FILE_OF("[{\"id\":3,\"content\":\"<m>\",\"special\":true,\"normalized\":false}]", "null",
                PREFIXED, PREFIXED, LEVEL,
                "{\"type\":\"BPE\",\"vocab\":{\"\\u0120\":0,\"\\u00c3\":1,\"\\u00a9\":2,"
                "\"<m>\":3},\"merges\":[]}");
    const embla_tokenize_options options = {.offsets = true};
    opened o = open_text(json);
    assert_encodes(o, "<m>\xc3\xa9", &options, 3, 0, 1, 2);
    const embla_text_span wanted[] = {{0, 3}, {5, 5}, {3, 5}, {3, 5}};
    assert_memory_equal(embla_tokenized_offsets(o.tokenized), wanted, sizeof wanted);
    close_opened(&o);
}

/* Memory that has grown without offsets has no room for them yet. */
static void offsets_may_be_asked_for_after_a_text_without_them(void **state)
{
    (void)state;
    enum { TIMES = 2000 };
    static char text[TIMES * 6 + 1];
    const embla_tokenize_options options = {.offsets = true};
    opened o = open_text(bert);
    for (size_t i = 0; i < TIMES; i++) memcpy(text + i * 6, "CAF\xc3\x89 ", 6);
    assert_ok(embla_tokenize(o.tokenized, text, TIMES * 6, NULL));
    assert_ok(embla_tokenize(o.tokenized, text, TIMES * 6, &options));
    assert_int_equal(embla_tokenized_count(o.tokenized), TIMES);
    for (size_t i = 0; i < TIMES; i++) {
        assert_int_equal(embla_tokenized_offsets(o.tokenized)[i].begin, i * 6);
        assert_int_equal(embla_tokenized_offsets(o.tokenized)[i].end, i * 6 + 5);
    }
    close_opened(&o);
}

/* ---- back to text ---- */

static void tokens_become_text_again(void **state)
{
    (void)state;
    const int32_t words[] = {1, 3, 4, 5, 8, 2}, bytes[] = {0, 9, 8, 99, 4},
                  marks[] = {8, 3, 1, 2, 6};
    opened o = open_text(bert);
    assert_decodes(&o, words, 6, "unaffable!");
    close_opened(&o);
    o = open_text(bytes_bpe);
    assert_decodes(&o, bytes, 5, "abc a\xef\xbf\xbd");
    close_opened(&o);
    o = open_text(marks_bpe);
    assert_decodes(&o, marks, 5, "ab \xc3\xa9 a");
    close_opened(&o);
    o = open_text(unigram);
    assert_decodes(&o, (const int32_t[]){5, 1, 2}, 3, "ab a");
    close_opened(&o);
}

static void tokens_have_strings_and_strings_tokens(void **state)
{
    (void)state;
    opened o = open_text(bert);
    embla_tokenizer_info info;
    size_t length = 0;
    assert_string_equal(embla_tokenizer_text(o.tokenizer, 4, &length), "##aff");
    assert_int_equal(length, 5);
    assert_null(embla_tokenizer_text(o.tokenizer, 10, NULL));
    assert_null(embla_tokenizer_text(o.tokenizer, -1, NULL));
    assert_int_equal(embla_tokenizer_token(o.tokenizer, "##aff", 5), 4);
    assert_int_equal(embla_tokenizer_token(o.tokenizer, "[SEP]", 5), 2);
    assert_int_equal(embla_tokenizer_token(o.tokenizer, "nothing", 7), -1);
    assert_true(o.tokenizer->special[1]);
    assert_false(o.tokenizer->special[3]);
    assert_ok(embla_tokenizer_describe(o.tokenizer, &info));
    assert_string_equal(info.kind_name, "WordPiece");
    assert_string_equal(info.source, "tokenizer.json");
    assert_string_equal(info.pipeline, "BertNormalizer, BertPreTokenizer, WordPiece, "
                                       "TemplateProcessing, WordPiece");
    assert_true(info.vocab == 10 && info.added == 2 && info.tokens == 10 && info.unknown == 0);
    close_opened(&o);
}

/* ---- batches, threads, memory ---- */

static void a_batch_gives_the_tokens_of_each_text_for_any_number_of_threads(void **state)
{
    (void)state;
    enum { TEXTS = 3000 };
    static const char *const samples[] = {"unaffable a!", "", "a", "caf\xc3\xa9 \xff unaffx"};
    static const char *texts[TEXTS];
    static size_t lengths[TEXTS];
    opened o = open_text(bert), single = open_text(bert);
    uint64_t seed = 3;
    for (size_t i = 0; i < TEXTS; i++) {
        texts[i] = samples[check_below(&seed, 4)];
        lengths[i] = strlen(texts[i]);
    }
    for (int threads = 1; threads <= 4; threads++) {
        const embla_tokenize_options options = {.threads = threads, .offsets = true};
        const embla_texts all = {.texts = texts, .lengths = lengths, .count = TEXTS};
        assert_ok(embla_tokenize_batch(o.tokenized, &all, &options));
        const size_t *starts = embla_tokenized_starts(o.tokenized);
        for (size_t i = 0; i < TEXTS; i++) {
            assert_ok(embla_tokenize(single.tokenized, texts[i], lengths[i], &options));
            size_t count = embla_tokenized_count(single.tokenized);
            assert_int_equal(starts[i + 1] - starts[i], count);
            if (count == 0) continue;
            assert_memory_equal(embla_tokenized_tokens(o.tokenized) + starts[i],
                                embla_tokenized_tokens(single.tokenized), count * 4);
            assert_memory_equal(embla_tokenized_offsets(o.tokenized) + starts[i],
                                embla_tokenized_offsets(single.tokenized), count * 8);
        }
    }
    close_opened(&o);
    close_opened(&single);
}

static const char *const every_kind[] = {bert, bytes_bpe, marks_bpe, unigram};

static void nothing_is_allocated_after_the_first_text(void **state)
{
    (void)state;
    static const char text[] =
        "unaffable caf\xc3\xa9 aabb abc\xff \xe4\xb8\xad abcabcabcabcabcabcabcabc"
        "abcabcabcabcabc [CLS]";
    const embla_tokenize_options options = {.offsets = true, .add_special = true};
    for (size_t i = 0; i < COUNT_OF(every_kind); i++) {
        opened o = open_text(every_kind[i]);
        assert_ok(embla_tokenize(o.tokenized, text, strlen(text), &options));
        embla_mem_fail(1, true);
        embla_status status = embla_tokenize(o.tokenized, text, strlen(text), &options);
        embla_mem_fail(0, false);
        assert_ok(status);
        close_opened(&o);
    }
}

/* Opens a file and uses it in every way. */
static embla_status use(const char *path, const char *json)
{
    static const char *const texts[] = {"unaffable caf\xc3\xa9", "aabb\xff"};
    static const size_t lengths[] = {15, 5};
    const embla_texts both = {.texts = texts, .lengths = lengths, .count = 2};
    const embla_tokenize_options options = {.offsets = true, .threads = 1};
    embla_tokenizer *t = NULL;
    embla_tokenized *e = NULL;
    const char *text = NULL;
    size_t length = 0;
    embla_status status = path ? embla_tokenizer_open_file(path, &t)
                               : embla_tokenizer_open_bytes(json, strlen(json), "test", &t);
    if (status == EMBLA_OK) status = embla_tokenized_new(t, &e);
    if (status == EMBLA_OK) status = embla_tokenize(e, texts[0], lengths[0], &options);
    if (status == EMBLA_OK) status = embla_tokenize_batch(e, &both, &options);
    if (status == EMBLA_OK)
        status = embla_detokenize(e, embla_tokenized_tokens(e), embla_tokenized_count(e), false,
                                  &text, &length);
    embla_tokenized_free(e);
    embla_tokenizer_free(t);
    return status;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(every_kind); i++) {
        embla_status status = EMBLA_ERR_MEMORY;
        for (size_t n = 1; status != EMBLA_OK; n++) {
            size_t live = embla_mem_live();
            embla_mem_fail(n, false);
            status = use(NULL, every_kind[i]);
            embla_mem_fail(0, false);
            if (status != EMBLA_OK) assert_status(status, EMBLA_ERR_MEMORY);
            assert_int_equal(embla_mem_live(), live);
            assert_true(n < 1000);
        }
    }
}

static void every_call_of_the_system_may_fail(void **state)
{
    (void)state;
    scratch s;
    scratch_new(&s);
    scratch_write(scratch_path(&s, "tokenizer.json"), bert, strlen(bert));
    embla_status status = EMBLA_ERR_IO;
    for (size_t n = 1; status != EMBLA_OK; n++) {
        size_t live = embla_mem_live();
        embla_io_fail(n, false, EMBLA_SYSTEM_OTHER);
        status = use(s.path, NULL);
        embla_io_fail(0, false, 0);
        assert_int_equal(embla_mem_live(), live);
        assert_true(n < 100);
    }
    scratch_free(&s);
}

static void a_folder_is_opened_by_its_tokenizer_json(void **state)
{
    (void)state;
    scratch s;
    embla_tokenizer *t = NULL;
    scratch_new(&s);
    scratch_write(scratch_path(&s, "tokenizer.json"), bert, strlen(bert));
    assert_ok(embla_tokenizer_open_file(s.folder, &t));
    embla_tokenizer_free(t);
    t = NULL;
    scratch_write(scratch_path(&s, "tokenizer.json"), "{}", 2);
    assert_status(embla_tokenizer_open_file(s.folder, &t), EMBLA_ERR_FORMAT);
    assert_error_has("no \"model\"");
    scratch_free(&s);
}

static void *encode_in_a_thread(void *shared)
{
    const embla_tokenizer *t = shared;
    embla_tokenized *e = NULL;
    if (embla_tokenized_new(t, &e) != EMBLA_OK) return NULL;
    bool good = true;
    for (int i = 0; i < 2000; i++)
        good = good && embla_tokenize(e, "unaffable!", 10, NULL) == EMBLA_OK &&
               embla_tokenized_count(e) == 4 && embla_tokenized_tokens(e)[2] == 5;
    embla_tokenized_free(e);
    return good ? shared : NULL;
}

static void threads_share_a_tokenizer(void **state)
{
    (void)state;
    opened o = open_text(bert);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, encode_in_a_thread, o.tokenizer), 0);
    for (int i = 0; i < 4; i++) {
        void *result = NULL;
        assert_int_equal(pthread_join(threads[i], &result), 0);
        assert_non_null(result);
    }
    close_opened(&o);
}

/* ---- files that are wrong ---- */

#define MODEL_ONLY(model) "{\"model\":" model "}"

static void files_that_are_wrong_are_refused(void **state)
{
    (void)state;
    assert_refused("{}", EMBLA_ERR_FORMAT, "no \"model\"");
    assert_refused("{\"model\":{\"type\":\"BPE\"", EMBLA_ERR_FORMAT, "JSON");
    assert_refused("{\"model\":{\"vocab\":{\"a\":0}}} x", EMBLA_ERR_FORMAT, "after the value");
    assert_refused(MODEL_ONLY("{\"type\":\"Nope\",\"vocab\":{}}"), EMBLA_ERR_UNSUPPORTED, "'Nope'");
    assert_refused(MODEL_ONLY("{\"type\":\"BPE\",\"vocab\":[[\"a\",1]],\"merges\":[]}"),
                   EMBLA_ERR_FORMAT, "an array in Unigram");
    assert_refused(MODEL_ONLY("{\"vocab\":{\"a\":2147483648}}"), EMBLA_ERR_FORMAT, "2^31-1");
    assert_refused(MODEL_ONLY("{\"vocab\":{\"a\":2147483647}}"), EMBLA_ERR_UNSUPPORTED,
                   "highest token is 2147483647");
    assert_refused(MODEL_ONLY("{\"vocab\":{\"a\":0},\"merges\":[\"a b\"]}"), EMBLA_ERR_FORMAT,
                   "needs 'b'");
    assert_refused(MODEL_ONLY("{\"vocab\":{\"a\":0,\"b\":1},\"merges\":[\"a b\"]}"),
                   EMBLA_ERR_FORMAT, "needs 'ab'");
    assert_refused(MODEL_ONLY("{\"vocab\":{\"a\":0},\"merges\":[\"a a a\"]}"), EMBLA_ERR_FORMAT,
                   "more than two parts");
    assert_refused(MODEL_ONLY("{\"vocab\":[[\"a\",-1]],\"unk_id\":1}"), EMBLA_ERR_FORMAT,
                   "unk_id is 1");
    assert_refused(MODEL_ONLY("{\"vocab\":[[\"a\",1e999]]}"), EMBLA_ERR_FORMAT, "finite");
    assert_refused(MODEL_ONLY("{\"vocab\":{\"a\":0},\"dropout\":0.1}"), EMBLA_ERR_FORMAT,
                   "dropout");
    assert_refused("{\"normalizer\":{\"type\":\"Nope\"},\"model\":{\"vocab\":{\"a\":0}}}",
                   EMBLA_ERR_UNSUPPORTED, "the normalizer 'Nope'");
    assert_refused("{\"normalizer\":{\"type\":\"Precompiled\",\"precompiled_charsmap\":\"A*\"},"
                   "\"model\":{\"vocab\":{\"a\":0}}}",
                   EMBLA_ERR_FORMAT, "base64");
    assert_refused("{\"normalizer\":{\"type\":\"Precompiled\",\"precompiled_charsmap\":"
                   "\"/////wAAAAA=\"},\"model\":{\"vocab\":{\"a\":0}}}",
                   EMBLA_ERR_FORMAT, "4294967295");
    assert_refused("{\"pre_tokenizer\":{\"type\":\"Split\",\"pattern\":{\"String\":\"a\"},"
                   "\"behavior\":\"Nope\"},\"model\":{\"vocab\":{\"a\":0}}}",
                   EMBLA_ERR_FORMAT, "behavior");
}

/* A vocabulary in which every string is one longer than the one before is the deepest trie. */
static void strings_of_every_length_are_read_in_bounded_time(void **state)
{
    (void)state;
    enum { DEEP = 2000 };
    size_t room = DEEP * (DEEP + 16) + 100, used = 0;
    char *json = malloc(room), *text = malloc(DEEP + 1);
    assert_true(json && text);
    memset(text, 'a', DEEP);
    used += (size_t)sprintf(json, "{\"model\":{\"vocab\":{");
    for (int i = 1; i <= DEEP; i++)
        used += (size_t)sprintf(json + used, "%s\"%.*s\":%d", i > 1 ? "," : "", i, text, i);
    used += (size_t)sprintf(json + used, "}}}");
    embla_tokenizer *t = NULL;
    embla_tokenized *e = NULL;
    assert_ok(embla_tokenizer_open_bytes(json, used, "test", &t));
    assert_ok(embla_tokenized_new(t, &e));
    assert_ok(embla_tokenize(e, text, DEEP, NULL));
    assert_int_equal(embla_tokenized_tokens(e)[0], DEEP);
    embla_tokenized_free(e);
    embla_tokenizer_free(t);
    free(json);
    free(text);
}

static void arguments_are_checked(void **state)
{
    (void)state;
    opened o = open_text(bert);
    embla_tokenizer *t = NULL;
    embla_tokenize_options options = {.reserved = {0, 1}};
    assert_status(embla_tokenize(o.tokenized, "a", 1, &options), EMBLA_ERR_UNSUPPORTED);
    assert_status(embla_tokenize(NULL, "a", 1, NULL), EMBLA_ERR_ARGUMENT);
    assert_status(embla_tokenize(o.tokenized, NULL, 1, NULL), EMBLA_ERR_ARGUMENT);
    assert_ok(embla_tokenize(o.tokenized, NULL, 0, NULL));
    assert_int_equal(embla_tokenized_count(o.tokenized), 0);
    assert_status(embla_tokenizer_open_file(NULL, &t), EMBLA_ERR_ARGUMENT);
    assert_status(embla_tokenizer_open_file("/nothing/there", &t), EMBLA_ERR_NOT_FOUND);
    options = (embla_tokenize_options){.threads = -1};
    assert_status(embla_tokenize_batch(o.tokenized, &(embla_texts){0}, &options),
                  EMBLA_ERR_ARGUMENT);
    assert_status(embla_tokenize_batch(o.tokenized, NULL, NULL), EMBLA_ERR_ARGUMENT);
    assert_error_has("embla_tokenize_batch: texts is NULL");
    embla_tokenizer_free(NULL);
    embla_tokenized_free(NULL);
    close_opened(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wordpiece_takes_the_longest_string_and_fails_as_a_whole),
        cmocka_unit_test(bpe_merges_the_lowest_rank_first),
        cmocka_unit_test(long_words_are_merged_as_short_ones_are),
        cmocka_unit_test(characters_without_a_token_become_bytes_or_unknown),
        cmocka_unit_test(unigram_keeps_the_first_of_two_equal_paths),
        cmocka_unit_test(special_tokens_are_added_and_marked),
        cmocka_unit_test(truncation_is_reported),
        cmocka_unit_test(text_that_is_not_utf8_is_replaced_or_refused),
        cmocka_unit_test(offsets_point_into_the_bytes_that_were_given),
        cmocka_unit_test(a_part_of_a_character_has_the_span_of_all_of_it),
        cmocka_unit_test(white_space_that_an_added_token_takes_is_not_in_its_span),
        cmocka_unit_test(spans_are_trimmed_by_characters),
        cmocka_unit_test(offsets_may_be_asked_for_after_a_text_without_them),
        cmocka_unit_test(tokens_become_text_again),
        cmocka_unit_test(tokens_have_strings_and_strings_tokens),
        cmocka_unit_test(a_batch_gives_the_tokens_of_each_text_for_any_number_of_threads),
        cmocka_unit_test(nothing_is_allocated_after_the_first_text),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(every_call_of_the_system_may_fail),
        cmocka_unit_test(a_folder_is_opened_by_its_tokenizer_json),
        cmocka_unit_test(threads_share_a_tokenizer),
        cmocka_unit_test(files_that_are_wrong_are_refused),
        cmocka_unit_test(strings_of_every_length_are_read_in_bounded_time),
        cmocka_unit_test(arguments_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
