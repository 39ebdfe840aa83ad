/* SPDX-License-Identifier: Apache-2.0 */
/* Words in JSON and in text: the input is the file, read as its contents suggest and again as
 * lines. Accepted JSON is also accepted by jansson, with the same words. The words, written in our
 * own text format, read back the same.
 *
 * The mutator inserts meaningful pieces: braces, keys of tokenizer.json, escapes, ids at the ends
 * of their range.
 */
#include <jansson.h>

#include "vocab.h"

/* ---- comparison with jansson ---- */

static void check_word(const embla_vocab *vocab, int64_t token, const char *word, size_t length)
{
    size_t have = 0;
    const char *label = embla_vocab_word(vocab, (int32_t)token, &have);
    PROMISE(label && have == length && memcmp(label, word, length) == 0);
}

static void check_words(const embla_vocab *vocab, json_t *words, size_t added)
{
    const char *key;
    size_t length, i,
        count = json_is_object(words) ? json_object_size(words) : json_array_size(words);
    json_t *value;
    if (json_is_object(words)) {
        json_object_keylen_foreach(words, key, length, value)
        {
            PROMISE(json_is_integer(value));
            check_word(vocab, json_integer_value(value), key, length);
        }
    } else {
        json_array_foreach(words, i, value)
        {
            json_t *word = json_is_array(value) ? json_array_get(value, 0) : value;
            PROMISE(json_is_string(word));
            check_word(vocab, (int64_t)i, json_string_value(word), json_string_length(word));
        }
    }
    PROMISE(vocab->count >= count && vocab->count <= count + added);
}

static void check_json(const embla_vocab *vocab, const uint8_t *data, size_t size)
{
    json_error_t error;
    json_t *tree =
        json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
    if (!tree) { /* a score too large for a double, or a 0 in a key: limits of jansson */
        PROMISE(json_error_code(&error) == json_error_numeric_overflow ||
                json_error_code(&error) == json_error_null_byte_in_key);
        return;
    }
    json_t *model = json_object_get(tree, "model");
    if (json_is_object(model))
        check_words(vocab, json_object_get(model, "vocab"),
                    json_array_size(json_object_get(tree, "added_tokens")));
    else
        check_words(vocab, tree, 0);
    json_decref(tree);
}

/* ---- written and read again ---- */

typedef struct {
    char *bytes;
    size_t size, room;
} text;

static embla_status to_memory(void *context, const void *bytes, size_t count)
{
    text *t = context;
    if (count > t->room - t->size) {
        t->room = 2 * (t->size + count);
        t->bytes = realloc(t->bytes, t->room);
        if (!t->bytes) exit(1);
    }
    memcpy(t->bytes + t->size, bytes, count);
    t->size += count;
    return EMBLA_OK;
}

static void check_again(const embla_vocab *vocab)
{
    enum { ROWS = 40 };
    embla_name labels[ROWS] = {{0}};
    text t = {0};
    size_t used = 0;
    for (; used < vocab->count && vocab->words[used].number < ROWS; used++)
        labels[vocab->words[used].number] = vocab->words[used];
    if (used == 0) return;
    size_t rows = vocab->words[used - 1].number + 1;
    if (rows < ROWS) rows += used & 1; /* with one that has no word, or not */
    PROMISE(embla_vocab_write_to(to_memory, &t, labels, rows) == EMBLA_OK);
    for (size_t i = 0; i < t.size; i++)
        PROMISE(t.bytes[i] == '\n' || (unsigned char)t.bytes[i] >= 0x20);
    embla_vocab *again = read_vocab(t.bytes, t.size, EMBLA_VOCAB_MARKED);
    PROMISE(again && again->count == used);
    for (size_t i = 0; i < used; i++)
        check_word(again, vocab->words[i].number, vocab->words[i].bytes, vocab->words[i].length);
    embla_vocab_free(again);
    free(t.bytes);
}

/* True if it is detected as JSON and not as a binary file, which is tried first. */
static bool is_json(const uint8_t *data, size_t size)
{
    return embla_vocab_json_sniff(data, size) && !embla_vocab_llama2c_sniff(data, size) &&
           !embla_sentencepiece_sniff(data, size);
}

/* Thousands of lines would be slow and find nothing more. */
static bool few_lines(const uint8_t *data, size_t size)
{
    const uint8_t *at = data, *end = data + size;
    size_t lines = 0;
    for (; lines < 40 && at < end && (at = memchr(at, '\n', (size_t)(end - at))); at++) lines++;
    return lines < 40;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    embla_vocab *vocab = read_vocab(data, size, EMBLA_VOCAB_MARKED);
    if (vocab && is_json(data, size)) check_json(vocab, data, size);
    if (!vocab && few_lines(data, size)) vocab = read_vocab(data, size, EMBLA_VOCAB_LINES);
    if (vocab) check_again(vocab);
    embla_vocab_free(vocab);
    return 0;
}

/* ---- the mutator ---- */

static const char *const pieces[] = {"{",
                                     "}",
                                     "[",
                                     "]",
                                     ",",
                                     ":",
                                     "\"",
                                     "\\",
                                     "\n",
                                     "\r\n",
                                     " ",
                                     "null",
                                     "true",
                                     "0",
                                     "1",
                                     "7",
                                     "-1",
                                     "1.5",
                                     "1e3",
                                     "2147483647",
                                     "2147483648",
                                     "18446744073709551616",
                                     "\"a\"",
                                     "\"b\":",
                                     "\"id\":",
                                     "\"content\":",
                                     "\"vocab\":",
                                     "\"model\":",
                                     "\"added_tokens\":",
                                     "\"type\":\"BPE\"",
                                     "\"merges\":[\"a b\"]",
                                     "{\"id\":3,\"content\":\"c\"}",
                                     "[\"x\",-1.5]",
                                     "\"x\":5,",
                                     "[[",
                                     "]]",
                                     "\\u0041",
                                     "\\u0000",
                                     "\\ud83d\\ude00",
                                     "\\ud800",
                                     "\\n",
                                     "\\r",
                                     "\\\\",
                                     "\\xff",
                                     "\\x00",
                                     "\\-\n",
                                     "#embla-vocab 1\n",
                                     "\xe2\x96\x81",
                                     "\xc4\xa0",
                                     "\xf4\x90\x80\x80",
                                     "\xff"};

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed)
{
    if (choose(&seed, 2) == 0) return LLVMFuzzerMutate(data, size, most);
    for (size_t times = 1 + choose(&seed, 3); times > 0; times--) {
        const char *piece = pieces[choose(&seed, sizeof pieces / sizeof pieces[0])];
        size_t at = choose(&seed, size + 1), gone = choose(&seed, 3) == 0 ? choose(&seed, 6) : 0;
        if (gone > size - at) gone = size - at;
        memmove(data + at, data + at + gone, size - at - gone);
        size = insert(data, size - gone, most, at, piece, strlen(piece));
    }
    return size > 0 ? size : LLVMFuzzerMutate(data, size, most);
}
