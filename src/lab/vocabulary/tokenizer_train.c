/* SPDX-License-Identifier: Apache-2.0 */
/* Trains a tokenizer on a text and writes it as tokenizer.json.
 *
 *   BPE        bytes, cut by GPT-2's pattern; every text can be encoded
 *   WordPiece  BERT's normalizer and pre-tokenizer; learned like BPE, with "##" inside words
 *   WordLevel  runs of letters and digits, and runs of other characters; the most frequent ones
 *   Unigram    words with a "▁" for the space before them; the most probable pieces of words
 *
 * The stages are stated as JSON once: they cut the text that is learned from, and they are written
 * to the file.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_text.h"
#include "base/options.h"
#include "base/threads.h"
#include "files/json_out.h"
#include "files/packed.h"
#include "tokenizer/grow.h"
#include "vocabulary/train_pieces.h"

enum { SIZE_USUAL = 32000, SIZE_MOST = 1 << 22, SPECIAL_BYTES = 1024 };

#define BYTE_LEVEL                                                                                 \
    "{\"type\": \"ByteLevel\", \"add_prefix_space\": false, \"trim_offsets\": true, "              \
    "\"use_regex\": true}"
#define BERT(lowercase)                                                                            \
    "{\"type\": \"BertNormalizer\", \"clean_text\": true, \"handle_chinese_chars\": true, "        \
    "\"strip_accents\": null, \"lowercase\": " lowercase "}"
#define LOWERCASE "{\"type\": \"Lowercase\"}"
#define METASPACE                                                                                  \
    "{\"type\": \"Metaspace\", \"replacement\": \"\xe2\x96\x81\", \"prepend_scheme\": "            \
    "\"always\", \"split\": true}"
/* As Hugging Face's SentencePieceUnigramTokenizer has them. */
#define SENTENCEPIECE(more)                                                                        \
    "{\"type\": \"Sequence\", \"normalizers\": [{\"type\": \"Nmt\"}, {\"type\": \"NFKC\"}, "       \
    "{\"type\": \"Replace\", \"pattern\": {\"Regex\": \" {2,}\"}, \"content\": \" \"}" more "]}"

/* What a kind of tokenizer is made of, as JSON. */
typedef struct {
    const char *normalizer, *lowercase; /* without and with lowercase */
    const char *pre_tokenizer, *decoder;
    const char *model;   /* the members before "vocab" */
    const char *unknown; /* a token that it needs; NULL means none */
} recipe;

static const recipe recipes[] = {
    [EMBLA_TOKENIZER_WORDPIECE] = {BERT("false"), BERT("true"), "{\"type\": \"BertPreTokenizer\"}",
                                   "{\"type\": \"WordPiece\", \"prefix\": \"##\", \"cleanup\": "
                                   "true}",
                                   "\"type\": \"WordPiece\", \"unk_token\": \"[UNK]\", "
                                   "\"continuing_subword_prefix\": \"##\", "
                                   "\"max_input_chars_per_word\": 100",
                                   "[UNK]"},
    [EMBLA_TOKENIZER_WORDLEVEL] = {"null", LOWERCASE, "{\"type\": \"Whitespace\"}", "null",
                                   "\"type\": \"WordLevel\", \"unk_token\": \"[UNK]\"", "[UNK]"},
    [EMBLA_TOKENIZER_BPE] = {"null", LOWERCASE, BYTE_LEVEL, BYTE_LEVEL,
                             "\"type\": \"BPE\", \"dropout\": null, \"unk_token\": null, "
                             "\"continuing_subword_prefix\": null, \"end_of_word_suffix\": null, "
                             "\"fuse_unk\": false, \"byte_fallback\": false, \"ignore_merges\": "
                             "false",
                             NULL},
    [EMBLA_TOKENIZER_UNIGRAM] = {SENTENCEPIECE(""), SENTENCEPIECE(", " LOWERCASE), METASPACE,
                                 METASPACE, "\"type\": \"Unigram\", \"byte_fallback\": false",
                                 "<unk>"}};

typedef struct {
    embla_tokenizer_train_options options;
    const recipe *recipe;
    const char *path; /* of the text */
    embla_tokenizer *stages;
    embla_word_list *pieces;
    embla_learned learned;
    size_t special; /* the first tokens of learned */
} training;

/* ---- what is learned ---- */

embla_status embla_learned_add(embla_learned *learned, const char *bytes, size_t length)
{
    const char *copy = NULL;
    EMBLA_TRY(embla_grow(&learned->tokens, &learned->room, learned->count, learned->count + 1,
                         sizeof *learned->tokens, "tokens"));
    EMBLA_TRY(embla_arena_text(&learned->arena, bytes, length, &copy));
    learned->tokens[learned->count] =
        (embla_name){copy, (uint32_t)length, (uint32_t)learned->count};
    learned->count++;
    return EMBLA_OK;
}

static int by_count(const void *left, const void *right)
{
    const embla_counted_word *a = left, *b = right;
    if (a->count != b->count) return a->count > b->count ? -1 : 1;
    int order = memcmp(a->at, b->at, a->length < b->length ? a->length : b->length);
    if (order != 0) return order;
    return a->length < b->length ? -1 : a->length > b->length;
}

static bool is_special(const training *t, const embla_counted_word *word)
{
    for (size_t i = 0; i < t->special; i++)
        if (t->learned.tokens[i].length == word->length &&
            memcmp(t->learned.tokens[i].bytes, word->at, word->length) == 0)
            return true;
    return false;
}

/* The most frequent words, of equally frequent ones the first in the order of their bytes. */
static embla_status learn_words(training *t)
{
    size_t count = 0;
    embla_counted_word *words = embla_word_list_words(t->pieces, &count);
    if (count > 1)
        qsort(words, count, sizeof *words, by_count); /* the list is not searched again */
    for (size_t i = 0; i < count && t->learned.count < (size_t)t->options.max_tokens; i++) {
        if ((int64_t)words[i].count < t->options.min_count) break;
        if (!is_special(t, &words[i]))
            EMBLA_TRY(embla_learned_add(&t->learned, words[i].at, words[i].length));
    }
    return EMBLA_OK;
}

static embla_status learn(training *t)
{
    switch (t->options.kind) {
    case EMBLA_TOKENIZER_WORDPIECE:
        return embla_bpe_learn(t->pieces, false, "##", &t->options, &t->learned);
    case EMBLA_TOKENIZER_WORDLEVEL:
        return learn_words(t);
    case EMBLA_TOKENIZER_UNIGRAM:
        return embla_unigram_learn(t->pieces, &t->options, &t->learned);
    default:
        return embla_bpe_learn(t->pieces, true, "", &t->options, &t->learned);
    }
}

/* ---- the text ---- */

static embla_status check_parts(const char *text, const embla_corpus_part *parts, size_t count)
{
    size_t from = 0;
    for (size_t i = 0; i < count; from = parts[i++].end) {
        const char *part = text + from;
        size_t length = parts[i].end - from;
        EMBLA_TRY(embla_packed_check(parts[i].name, (const uint8_t *)part, length, true));
        size_t valid = length > 0 ? embla_utf8_valid(part, length) : 0;
        if (valid < length)
            return embla_fail(EMBLA_ERR_FORMAT, "%.256s is not valid UTF-8: byte %zu is 0x%02x",
                              parts[i].name, valid, (unsigned)(uint8_t)part[valid]);
    }
    return EMBLA_OK;
}

static embla_status count_parts(training *t, const char *text, size_t size,
                                const embla_corpus_part *parts, size_t count)
{
    size_t pieces = 0;
    EMBLA_TRY(check_parts(text, parts, count));
    EMBLA_TRY(embla_pieces_count(t->stages, text, size, &t->options, &t->pieces));
    (void)embla_word_list_words(t->pieces, &pieces);
    if (pieces == 0)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.256s has no words: all its %zu bytes are white space", t->path, size);
    return learn(t);
}

/* The pieces point into the text, so everything is learned while it is in memory. */
static embla_status use_text(void *context, void *bytes, size_t size,
                             const embla_corpus_part *parts, size_t count)
{
    static const char none[1];
    embla_status status =
        count_parts(context, bytes ? bytes : none, bytes ? size : 0, parts, count);
    embla_mem_free(bytes, size);
    return status;
}

/* ---- options ---- */

static embla_status add_special(training *t, const char *text)
{
    size_t length = text ? strlen(text) : 0;
    if (length == 0 || length > SPECIAL_BYTES || embla_utf8_valid(text, length) != length)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "special token %zu has %zu bytes%s; it must have 1 to %d bytes of UTF-8",
                          t->learned.count, length,
                          length > 0 && length <= SPECIAL_BYTES ? ", not all valid" : "",
                          SPECIAL_BYTES);
    for (size_t i = 0; i < t->learned.count; i++)
        if (embla_name_is(&t->learned.tokens[i], text))
            return embla_fail(EMBLA_ERR_ARGUMENT,
                              "special tokens %zu and %zu are both '%.64s'; each must be different",
                              i, t->learned.count, text);
    return embla_learned_add(&t->learned, text, length);
}

/* The special tokens of the caller, and that for unknown words if it is not among them. */
static embla_status add_specials(training *t)
{
    const embla_tokenizer_train_options *o = &t->options;
    const char *unknown = t->recipe->unknown;
    for (size_t i = 0; unknown && i < o->special_count; i++)
        if (o->special[i] && strcmp(o->special[i], unknown) == 0) unknown = NULL;
    if (unknown) EMBLA_TRY(add_special(t, unknown));
    for (size_t i = 0; i < o->special_count; i++) EMBLA_TRY(add_special(t, o->special[i]));
    t->special = t->learned.count;
    if (t->special > (size_t)o->max_tokens)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "a vocabulary of %" PRId64
                          " tokens is too small: there are %zu special tokens",
                          o->max_tokens, t->special);
    return EMBLA_OK;
}

static const char *normalizer_of(const training *t)
{
    return t->options.lowercase ? t->recipe->lowercase : t->recipe->normalizer;
}

static embla_status make_stages(training *t)
{
    char json[1024];
    (void)snprintf(json, sizeof json, "{\"normalizer\": %s, \"pre_tokenizer\": %s}",
                   normalizer_of(t), t->recipe->pre_tokenizer);
    EMBLA_TRY(embla_tokenizer_begin(t->path, "training", &t->stages));
    return embla_tokenizer_stages(t->stages, json);
}

static embla_status check_options(const embla_tokenizer_train_options *o)
{
    EMBLA_TRY(embla_threads_check(o->threads));
    if ((unsigned)o->kind > EMBLA_TOKENIZER_UNIGRAM || o->kind == 0)
        return embla_fail(EMBLA_ERR_ARGUMENT, "kind is %d; it must be 1 to %d", (int)o->kind,
                          (int)EMBLA_TOKENIZER_UNIGRAM);
    if (o->max_tokens < 1 || o->max_tokens > SIZE_MOST)
        return embla_fail(EMBLA_ERR_ARGUMENT, "max_tokens is %" PRId64 "; it must be 1 to %d",
                          o->max_tokens, SIZE_MOST);
    if (o->min_count < 0)
        return embla_fail(EMBLA_ERR_ARGUMENT, "min_count is %" PRId64 "; it must be 0 or greater",
                          o->min_count);
    if (o->special_count > 0 && !o->special)
        return embla_fail(EMBLA_ERR_ARGUMENT, "special is NULL, but special_count is %zu",
                          o->special_count);
    return EMBLA_OK;
}

/* ---- the file ---- */

static void write_member(embla_json_out *out, const char *key, const char *json)
{
    embla_json_say_key(out, key);
    embla_json_put(out, json, strlen(json));
}

static void write_added(const training *t, embla_json_out *out)
{
    embla_json_say(out, ",\n  \"added_tokens\": [");
    for (size_t i = 0; i < t->special; i++) {
        embla_json_say(out, "%s\n    {\"id\": %zu, \"content\": ", i > 0 ? "," : "", i);
        embla_json_say_string(out, t->learned.tokens[i].bytes, t->learned.tokens[i].length);
        embla_json_say(out, ", \"single_word\": false, \"lstrip\": false, \"rstrip\": false, "
                            "\"normalized\": false, \"special\": true}");
    }
    embla_json_say(out, "%s]", t->special > 0 ? "\n  " : "");
}

static void write_merges(const embla_learned *learned, embla_json_out *out)
{
    embla_json_say(out, ",\n    \"merges\": [");
    for (size_t i = 0; i < learned->merge_count; i++) {
        const embla_name *a = &learned->tokens[learned->merges[i][0]];
        const embla_name *b = &learned->tokens[learned->merges[i][1]];
        embla_json_say(out, "%s\n      [", i > 0 ? "," : "");
        embla_json_say_string(out, a->bytes, a->length);
        embla_json_say(out, ", ");
        embla_json_say_string(out, b->bytes, b->length);
        embla_json_say(out, "]");
    }
    embla_json_say(out, "%s]", learned->merge_count > 0 ? "\n    " : "");
}

/* The vocabulary of Unigram is a list of strings with their scores. */
static void write_scores(const training *t, embla_json_out *out)
{
    char digits[EMBLA_JSON_DIGITS];
    size_t unknown = 0;
    while (!embla_name_is(&t->learned.tokens[unknown], t->recipe->unknown)) unknown++;
    embla_json_say(out, ",\n    \"unk_id\": %zu,\n    \"vocab\": [", unknown);
    for (size_t i = 0; i < t->learned.count; i++) {
        embla_json_say(out, "%s\n      [", i > 0 ? "," : "");
        embla_json_say_string(out, t->learned.tokens[i].bytes, t->learned.tokens[i].length);
        embla_json_digits(t->learned.scores[i], 17, digits);
        embla_json_say(out, ", %s]", digits);
    }
    embla_json_say(out, "\n    ]");
}

static void write_vocab(const training *t, embla_json_out *out)
{
    embla_json_say(out, ",\n    \"vocab\": {");
    for (size_t i = 0; i < t->learned.count; i++) {
        embla_json_say(out, "%s\n      ", i > 0 ? "," : "");
        embla_json_say_string(out, t->learned.tokens[i].bytes, t->learned.tokens[i].length);
        embla_json_say(out, ": %zu", i);
    }
    embla_json_say(out, "\n    }");
}

static embla_status write_json(const training *t, embla_durable *file)
{
    embla_json_out out = {.out = file};
    embla_json_say(&out,
                   "{\n  \"version\": \"1.0\",\n  \"truncation\": null,\n  \"padding\": null");
    write_added(t, &out);
    write_member(&out, "normalizer", normalizer_of(t));
    write_member(&out, "pre_tokenizer", t->recipe->pre_tokenizer);
    write_member(&out, "post_processor", "null");
    write_member(&out, "decoder", t->recipe->decoder);
    embla_json_say_key(&out, "model");
    embla_json_say(&out, "{\n    ");
    embla_json_put(&out, t->recipe->model, strlen(t->recipe->model));
    if (t->options.kind == EMBLA_TOKENIZER_UNIGRAM)
        write_scores(t, &out);
    else
        write_vocab(t, &out);
    if (t->options.kind == EMBLA_TOKENIZER_BPE) write_merges(&t->learned, &out);
    embla_json_say(&out, "\n  }\n}\n");
    return out.status;
}

/* Reads the new file back before it gets its name. */
static embla_status write_file(const training *t, const char *path)
{
    embla_durable *file = NULL;
    embla_tokenizer *back = NULL;
    const char *temporary = NULL;
    EMBLA_TRY(embla_durable_open(path, &file));
    embla_status status = write_json(t, file);
    if (status == EMBLA_OK) status = embla_durable_sync(file, &temporary);
    if (status == EMBLA_OK) status = embla_tokenizer_open_file(temporary, &back);
    embla_tokenizer_free(back);
    if (status == EMBLA_OK) return embla_durable_commit(file);
    embla_durable_abandon(file);
    return status;
}

/* ---- all of it ---- */

static embla_status train(training *t, const char *out, embla_tokenizer_trained *trained)
{
    EMBLA_TRY(add_specials(t));
    EMBLA_TRY(make_stages(t));
    EMBLA_TRY(embla_text_read(t->path, use_text, t));
    EMBLA_TRY(write_file(t, out));
    if (!trained) return EMBLA_OK;
    size_t pieces = 0;
    (void)embla_word_list_words(t->pieces, &pieces);
    *trained = (embla_tokenizer_trained){.tokens = (int64_t)t->learned.count,
                                         .special = (int64_t)t->special,
                                         .merges = (int64_t)t->learned.merge_count,
                                         .pieces = (int64_t)pieces};
    return EMBLA_OK;
}

embla_status embla_tokenizer_train(const char *text, const char *path,
                                   const embla_tokenizer_train_options *options,
                                   embla_tokenizer_trained *trained)
{
    training t = {.path = text};
    EMBLA_TRY(embla_options_check(options));
    EMBLA_NEED(text);
    EMBLA_NEED(path);
    if (options) t.options = *options;
    if (t.options.kind == 0) t.options.kind = EMBLA_TOKENIZER_BPE;
    if (t.options.max_tokens == 0) t.options.max_tokens = SIZE_USUAL;
    EMBLA_TRY(check_options(&t.options));
    t.recipe = &recipes[t.options.kind];
    embla_status status = train(&t, path, trained);
    embla_word_list_free(t.pieces);
    embla_tokenizer_free(t.stages);
    embla_mem_free(t.learned.tokens, t.learned.room * sizeof *t.learned.tokens);
    embla_mem_free(t.learned.merges, t.learned.merge_room * sizeof *t.learned.merges);
    embla_mem_free(t.learned.scores, t.learned.score_room * sizeof *t.learned.scores);
    embla_arena_free(&t.learned.arena);
    return status;
}
