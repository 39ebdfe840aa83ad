/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the words of a model as tokenizer.json. The words decide its kind: 256 bytes are a
 * byte-level BPE without merges; all others are a WordLevel that splits text at every character, by
 * the rule of embla_next_word, or at spaces.
 */
#include "model/gpt_tokenizer.h"

#include <stdio.h>
#include <string.h>

#include "base/byte_text.h"
#include "base/utf8.h"
#include "embla_text.h"
#include "files/json_out.h"
#include "unicode/cut.h"

/* ---- words ---- */

#define UNKNOWN "<unk>" /* the token of all words that are not in the vocabulary */
enum { BYTES = 256 };

/* True if each of the first 256 words is the byte with its number. Word 0 cannot be checked: a
 * string cannot contain byte 0. */
static bool are_bytes(const char *const *words, int64_t count)
{
    bool all = count >= BYTES && (!words[0] || !*words[0]);
    for (int i = 1; all && i < BYTES; i++)
        all = words[i] && (unsigned char)words[i][0] == i && words[i][1] == '\0';
    return all;
}

/* True for names of special tokens, such as "<bos>" or "<|endoftext|>". */
static bool is_special(const char *word, size_t length)
{
    return length >= 3 && word[0] == '<' && word[length - 1] == '>';
}

static embla_status add_word(embla_arena *arena, embla_gpt_words *w, const char *word,
                             int64_t token)
{
    bool bytes = w->bytes;
    char name[32];
    size_t length = word ? strlen(word) : 0;
    if (bytes && token < BYTES) {
        length = embla_utf8_encode(embla_byte_code((uint8_t)token), name);
        word = name;
    } else if (length == 0) {
        length = (size_t)snprintf(name, sizeof name, "<|%" PRId64 "|>", token);
        word = name;
    } else if (embla_utf8_valid(word, length) != length) {
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "the text of token %" PRId64 " (%zu bytes) is not valid UTF-8", token,
                          length);
    }
    if (length > UINT32_MAX)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "the text of token %" PRId64 " is too long: %zu bytes", token, length);
    w->special[token] = is_special(word, length) && !(bytes && token < BYTES);
    w->words[token].length = (uint32_t)length;
    w->words[token].number = (uint32_t)token;
    return embla_arena_text(arena, word, length, &w->words[token].bytes);
}

/* All words must differ, because a tokenizer finds a token by its word. */
static embla_status check_different(embla_arena *arena, const embla_gpt_words *w)
{
    embla_names sorted;
    EMBLA_TRY(embla_names_sort(arena, w->words, (size_t)w->count, &sorted));
    for (size_t i = 1; i < sorted.count; i++) {
        const embla_name *a = sorted.sorted[i - 1], *b = sorted.sorted[i];
        if (a->length == b->length && memcmp(a->bytes, b->bytes, a->length) == 0)
            return embla_fail(EMBLA_ERR_ARGUMENT,
                              "tokens %" PRIu32 " and %" PRIu32 " have the same text, '%.64s'",
                              a->number, b->number, a->bytes);
    }
    return EMBLA_OK;
}

static bool is_unknown(const embla_name *word)
{
    return word->length == sizeof UNKNOWN - 1 && memcmp(word->bytes, UNKNOWN, word->length) == 0;
}

embla_status embla_gpt_words_check(embla_arena *arena, const char *const *words, int64_t count,
                                   embla_gpt_words *out)
{
    embla_gpt_words w = {.count = count, .bos = -1, .bytes = are_bytes(words, count)};
    size_t specials = 0;
    EMBLA_TRY(embla_arena_many(arena, (uint64_t)count, sizeof *w.words, "words", &w.words));
    EMBLA_TRY(embla_arena_many(arena, (uint64_t)count, 1, "words", &w.special));
    for (int64_t i = 0; i < count; i++) {
        EMBLA_TRY(add_word(arena, &w, words[i], i));
        if (w.special[i] && !is_unknown(&w.words[i])) w.bos = specials++ == 0 ? i : -1;
    }
    EMBLA_TRY(check_different(arena, &w));
    *out = w;
    return EMBLA_OK;
}

/* ---- the file ---- */

static void write_vocab(embla_json_out *t, const embla_gpt_words *w)
{
    embla_json_say(t, "\"vocab\": {");
    for (int64_t i = 0; i < w->count; i++) {
        embla_json_say(t, "%s\n      ", i > 0 ? "," : "");
        embla_json_say_string(t, w->words[i].bytes, w->words[i].length);
        embla_json_say(t, ": %" PRId64, i);
    }
    embla_json_say(t, "\n    }");
}

static void write_added_tokens(embla_json_out *t, const embla_gpt_words *w)
{
    bool any = false;
    embla_json_say(t, ",\n  \"added_tokens\": [");
    for (int64_t i = 0; i < w->count; i++) {
        if (!w->special[i]) continue;
        embla_json_say(t, "%s\n    {\"id\": %" PRId64 ", \"content\": ", any ? "," : "", i);
        embla_json_say_string(t, w->words[i].bytes, w->words[i].length);
        embla_json_say(t, ", \"single_word\": false, \"lstrip\": false, \"rstrip\": false, "
                          "\"normalized\": false, \"special\": true}");
        any = true;
    }
    embla_json_say(t, "%s]", any ? "\n  " : "");
}

/* True if each word that is text is one character. A vocabulary of words may be such a list too,
 * but it has a token for unknown words. */
static bool are_characters(const embla_gpt_words *w)
{
    for (int64_t i = 0; i < w->count; i++) {
        const embla_name *word = &w->words[i];
        if (w->special[i] ? is_unknown(word)
                          : embla_utf8_length(word->bytes, word->length) != word->length)
            return false;
    }
    return true;
}

/* True if embla_next_word leaves each word that is text whole. */
static bool are_words(const embla_gpt_words *w)
{
    for (int64_t i = 0; i < w->count; i++) {
        const embla_name *word = &w->words[i];
        const char *at;
        if (!w->special[i] &&
            (embla_next_word(word->bytes, word->length, &at) != word->length || at != word->bytes))
            return false;
    }
    return true;
}

/* The rule of embla_next_word as a regular expression in JSON: line ends, words, and single
 * characters that are no separators. */
#define LETTERS                                                                                    \
    "0-9A-Za-z\\u00c0-\\u00d6\\u00d8-\\u00f6\\u00f8-\\u1fff\\u2c00-\\u2fff\\u3040-\\ufe0f"         \
    "\\ufe70-\\ufeff\\uff10-\\ud83b\\udfff\\ud83e\\udf00-\\udbff\\udfff"
#define SEPARATORS                                                                                 \
    "\\\\x00-\\\\x20\\u007f-\\u00a0\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000"
#define WORD_PATTERN "\\n|[" LETTERS "]+(?:['\\u2019][" LETTERS "]+)*|[^" LETTERS SEPARATORS "]"

/* Writes how text is split and joined: bytes as in GPT-2, characters, words by our rule, or words
 * between spaces. */
static void write_splitting(embla_json_out *t, const embla_gpt_words *w)
{
    static const char pattern[] = WORD_PATTERN;
    bool bytes = w->bytes, characters = are_characters(w);
    const char *level = "{\"type\": \"ByteLevel\", \"add_prefix_space\": false, "
                        "\"trim_offsets\": true, \"use_regex\": false}";
    embla_json_say_key(t, "normalizer");
    embla_json_say(t, "null");
    embla_json_say_key(t, "pre_tokenizer");
    if (bytes)
        embla_json_say(t, "%s", level);
    else if (characters)
        embla_json_say(t, "{\"type\": \"Split\", \"pattern\": {\"Regex\": \"[\\\\s\\\\S]\"}, "
                          "\"behavior\": \"Isolated\", \"invert\": false}");
    else if (!are_words(w))
        embla_json_say(t, "{\"type\": \"WhitespaceSplit\"}");
    else { /* what matches is kept, and what lies between is removed */
        embla_json_say(t, "{\"type\": \"Split\", \"pattern\": {\"Regex\": \"");
        embla_json_put(t, pattern, sizeof pattern - 1);
        embla_json_say(t, "\"}, \"behavior\": \"Removed\", \"invert\": true}");
    }
    embla_json_say_key(t, "post_processor");
    embla_json_say(t, "null");
    embla_json_say_key(t, "decoder");
    embla_json_say(t, "%s", bytes ? level : characters ? "{\"type\": \"Fuse\"}" : "null");
}

embla_status embla_gpt_tokenizer_write(const embla_gpt_words *w, embla_durable *file)
{
    embla_json_out t = {.out = file};
    bool bytes = w->bytes;
    embla_json_say(&t, "{\n  \"version\": \"1.0\",\n  \"truncation\": null,\n  \"padding\": null");
    write_added_tokens(&t, w);
    write_splitting(&t, w);
    embla_json_say_key(&t, "model");
    if (bytes)
        embla_json_say(&t, "{\n    \"type\": \"BPE\", \"dropout\": null, \"unk_token\": null, "
                           "\"continuing_subword_prefix\": null, \"end_of_word_suffix\": null, "
                           "\"fuse_unk\": false, \"byte_fallback\": false,\n    ");
    else
        embla_json_say(&t, "{\n    \"type\": \"WordLevel\",\n    ");
    write_vocab(&t, w);
    /* WordLevel needs a name for unknown words; if no word has it, unknown words are an error */
    embla_json_say(&t, "%s\n  }\n}\n",
                   bytes ? ",\n    \"merges\": []" : ",\n    \"unk_token\": \"" UNKNOWN "\"");
    return t.status;
}
