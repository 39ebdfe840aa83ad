/* SPDX-License-Identifier: Apache-2.0 */
/* Makes vocabularies and answers queries about them. The format of a file is detected from its
 * first bytes, by one list of readers. A name that ends with ".txt" always means lines of words,
 * because such a list may begin with anything, even with what looks like JSON.
 */
#include "checkpoint/vocab.h"

#include <string.h>

#include "base/mem.h"
#include "formats/gguf.h"

/* ---- making one ---- */

static embla_status begin(const char *source, embla_vocab **out)
{
    void *memory = NULL;
    EMBLA_TRY(embla_mem_new(sizeof(embla_vocab), "a vocabulary", &memory));
    embla_vocab *vocab = memory;
    embla_status status = embla_arena_text(&vocab->arena, source, strlen(source), &vocab->source);
    if (status == EMBLA_OK)
        *out = vocab;
    else
        embla_vocab_free(vocab);
    return status;
}

/* Appends space for a word of length bytes and a 0 after it. */
static embla_status append(embla_vocab *vocab, uint32_t token, size_t length, char **room)
{
    void *list = vocab->words, *bytes = NULL;
    EMBLA_TRY(embla_arena_grow(&vocab->arena, sizeof *vocab->words, vocab->count, "words", &list,
                               &vocab->room));
    vocab->words = list;
    EMBLA_TRY(embla_arena_take(&vocab->arena, length + 1, "a word", &bytes));
    vocab->words[vocab->count++] = (embla_name){bytes, (uint32_t)length, token};
    *room = bytes;
    return EMBLA_OK;
}

static embla_status check_length(const embla_vocab *vocab, uint64_t token, size_t length)
{
    if (length <= EMBLA_WORD_BYTES) return EMBLA_OK;
    return embla_fail(EMBLA_ERR_FORMAT,
                      "%.256s: the word of token %" PRIu64 " has %zu bytes; the limit is %d (T1)",
                      vocab->source, token, length, EMBLA_WORD_BYTES);
}

embla_status embla_vocab_room(embla_vocab *vocab, uint64_t token, size_t length, char **room)
{
    if (token > INT32_MAX)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.256s: token %" PRIu64 " is too large; it must be below 2^31 (T2)",
                          vocab->source, token);
    EMBLA_TRY(check_length(vocab, token, length));
    if (vocab->count >= EMBLA_WORDS_MOST)
        return embla_fail(EMBLA_ERR_FORMAT, "%.256s: there are more than %d words (C5)",
                          vocab->source, EMBLA_WORDS_MOST);
    return append(vocab, (uint32_t)token, length, room);
}

embla_status embla_vocab_add(embla_vocab *vocab, uint64_t token, const void *bytes, size_t length)
{
    char *room = NULL;
    EMBLA_TRY(embla_vocab_room(vocab, token, length, &room));
    if (length > 0) memcpy(room, bytes, length);
    return EMBLA_OK;
}

/* A stable radix sort by token, one byte at a time. spare has space for as many words. */
static void sort_by_token(embla_name *words, embla_name *spare, size_t count)
{
    for (unsigned shift = 0; shift < 32; shift += 8) { /* after four passes they are in words */
        size_t starts[256] = {0}, next = 0;
        for (size_t i = 0; i < count; i++) starts[words[i].number >> shift & 255]++;
        for (size_t i = 0; i < 256; i++) {
            size_t here = starts[i];
            starts[i] = next;
            next += here;
        }
        for (size_t i = 0; i < count; i++)
            spare[starts[words[i].number >> shift & 255]++] = words[i];
        embla_name *swap = words;
        words = spare;
        spare = swap;
    }
}

static embla_status sort_words(embla_vocab *vocab)
{
    size_t at = 1, bytes = vocab->count * sizeof(embla_name);
    void *spare = NULL;
    while (at < vocab->count && vocab->words[at - 1].number < vocab->words[at].number) at++;
    if (at >= vocab->count) return EMBLA_OK;
    EMBLA_TRY(embla_mem_new(bytes, "sorting words", &spare));
    sort_by_token(vocab->words, spare, vocab->count);
    embla_mem_free(spare, bytes);
    return EMBLA_OK;
}

static int shown(size_t length)
{
    return length < 128 ? (int)length : 128;
}

/* Sorts the words and checks that each token has one word. The same word twice is accepted, two
 * different words are not. */
static embla_status finish(embla_vocab *vocab)
{
    size_t kept = 0;
    if (vocab->count == 0)
        return embla_fail(EMBLA_ERR_FORMAT, "%.256s: there are no words (T2)", vocab->source);
    EMBLA_TRY(sort_words(vocab));
    for (size_t i = 0; i < vocab->count; i++) {
        const embla_name *word = &vocab->words[i],
                         *last = kept > 0 ? &vocab->words[kept - 1] : NULL;
        if (!last || last->number != word->number)
            vocab->words[kept++] = *word;
        else if (last->length != word->length ||
                 memcmp(last->bytes, word->bytes, word->length) != 0)
            return embla_fail(EMBLA_ERR_FORMAT,
                              "%.256s: token %" PRIu32 " has two words, '%.*s' and '%.*s' (T2)",
                              vocab->source, word->number, shown(last->length), last->bytes,
                              shown(word->length), word->bytes);
    }
    vocab->count = kept;
    vocab->end = (int64_t)vocab->words[kept - 1].number + 1;
    return embla_names_sort(&vocab->arena, vocab->words, vocab->count, &vocab->index);
}

static embla_status finish_or_free(embla_status status, embla_vocab *vocab, embla_vocab **out)
{
    if (status == EMBLA_OK) status = finish(vocab);
    if (status == EMBLA_OK)
        *out = vocab;
    else
        embla_vocab_free(vocab);
    return status;
}

static embla_status copy_names(embla_vocab *vocab, const embla_name *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char *room = NULL;
        if (!names[i].bytes) continue;
        EMBLA_TRY(append(vocab, (uint32_t)i, names[i].length, &room));
        if (names[i].length > 0) memcpy(room, names[i].bytes, names[i].length);
    }
    return EMBLA_OK;
}

embla_status embla_vocab_of_names(const embla_name *names, size_t count, const char *source,
                                  embla_vocab **out)
{
    embla_vocab *vocab = NULL;
    if (count > (size_t)INT32_MAX + 1)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "%.256s: there are %zu words, but tokens are numbers below 2^31 (T2)",
                          source, count);
    EMBLA_TRY(begin(source, &vocab));
    return finish_or_free(copy_names(vocab, names, count), vocab, out);
}

/* ---- reading a file ---- */

static bool gguf_sniff(const uint8_t *head, size_t have)
{
    return embla_format_gguf.sniff(head, have, have);
}

/* Copies the strings once, directly into the vocabulary's arena. */
static embla_status copy_gguf(const embla_map *map, const embla_directory *directory,
                              embla_vocab *vocab)
{
    uint64_t tokens = embla_gguf_tokens(directory);
    if (tokens > EMBLA_WORDS_MOST)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.256s: there are %" PRIu64 " words; the limit is %d (C5)",
                          vocab->source, tokens, EMBLA_WORDS_MOST);
    EMBLA_TRY(embla_gguf_strings(directory, map, "tokenizer.ggml.tokens", &vocab->arena,
                                 &vocab->words, &vocab->count));
    for (size_t i = 0; i < vocab->count; i++)
        EMBLA_TRY(check_length(vocab, i, vocab->words[i].length));
    return EMBLA_OK;
}

embla_status embla_vocab_of_gguf(const embla_map *map, const embla_directory *directory,
                                 const char *source, embla_vocab **out)
{
    embla_vocab *vocab = NULL;
    EMBLA_TRY(begin(source, &vocab));
    return finish_or_free(copy_gguf(map, directory, vocab), vocab, out);
}

/* Reads the tokens of a GGUF file after its reader has checked the whole file. */
static embla_status read_gguf(embla_map *map, embla_vocab *vocab)
{
    embla_directory directory = {0};
    embla_open_options options = {0};
    embla_status status = embla_gguf_read(map, &options, &directory);
    if (status == EMBLA_OK) status = copy_gguf(map, &directory, vocab);
    embla_directory_free(&directory);
    return status;
}

typedef struct {
    bool (*sniff)(const uint8_t *head, size_t have);
    embla_status (*read)(embla_map *map, embla_vocab *vocab);
} reader;

/* In the order in which they are tried; formats with a magic number come first. */
static const reader readers[] = {
    {embla_vocab_text_sniff, embla_vocab_text},
    {gguf_sniff, read_gguf},
    {embla_vocab_llmc_sniff, embla_vocab_llmc},
    {embla_sentencepiece_sniff, embla_vocab_sentencepiece},
    {embla_vocab_llama2c_sniff, embla_vocab_llama2c},
    {embla_vocab_json_sniff, embla_vocab_json},
};
enum { READERS = sizeof readers / sizeof readers[0], HEAD = 4096 };

static embla_status find_reader(const embla_map *map, embla_vocab_hint hint, const reader **out)
{
    static const reader lines = {NULL, embla_vocab_text};
    uint8_t head[HEAD];
    size_t have = map->size < HEAD ? (size_t)map->size : HEAD;
    EMBLA_TRY(embla_map_read(map, 0, have, head));
    *out = NULL;
    for (size_t i = 0; hint != EMBLA_VOCAB_LINES && !*out && i < READERS; i++)
        if (readers[i].sniff(head, have)) *out = &readers[i];
    if (!*out && hint != EMBLA_VOCAB_MARKED) *out = &lines;
    if (!*out)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.256s: its %" PRIu64 " bytes are not a vocabulary of a supported "
                          "format (C15)",
                          map->name, map->size);
    return EMBLA_OK;
}

embla_status embla_vocab_read(embla_map *map, const char *source, embla_vocab_hint hint,
                              embla_vocab **out)
{
    const reader *chosen = NULL;
    embla_vocab *vocab = NULL;
    EMBLA_TRY(find_reader(map, hint, &chosen));
    EMBLA_TRY(begin(source, &vocab));
    return finish_or_free(chosen->read(map, vocab), vocab, out);
}

embla_vocab_hint embla_vocab_hint_of(const char *name)
{
    size_t length = strlen(name);
    bool text = length >= 4 && strcmp(name + length - 4, ".txt") == 0;
    return text ? EMBLA_VOCAB_LINES : EMBLA_VOCAB_ANY;
}

embla_status embla_vocab_open_file(const char *path, embla_vocab **out)
{
    embla_map *map = NULL;
    EMBLA_NEED(path);
    EMBLA_NEED(out);
    EMBLA_TRY(embla_map_open(EMBLA_HERE, path, path, true, &map));
    embla_status status = embla_map_check_text(map);
    if (status == EMBLA_OK) status = embla_vocab_read(map, path, embla_vocab_hint_of(path), out);
    embla_map_free(map);
    return status;
}

/* ---- queries ---- */

void embla_vocab_free(embla_vocab *vocab)
{
    if (!vocab) return;
    embla_arena_free(&vocab->arena);
    embla_mem_free(vocab, sizeof *vocab);
}

const char *embla_vocab_source(const embla_vocab *vocab)
{
    return vocab ? vocab->source : NULL;
}

int64_t embla_vocab_count(const embla_vocab *vocab)
{
    return vocab ? (int64_t)vocab->count : 0;
}

int64_t embla_vocab_end(const embla_vocab *vocab)
{
    return vocab ? vocab->end : 0;
}

bool embla_vocab_fits(const embla_vocab *vocab, int64_t rows)
{
    return vocab->end <= rows;
}

/* Finds the word of a token below vocab->end; NULL if it has none. */
static const embla_name *find_token(const embla_vocab *vocab, uint32_t token)
{
    size_t first = 0, end = vocab->count; /* the word, if there is one, is in first .. end-1 */
    if (vocab->end == (int64_t)vocab->count) return &vocab->words[token];
    while (end - first > 1) {
        size_t middle = first + (end - first) / 2;
        if (vocab->words[middle].number <= token)
            first = middle;
        else
            end = middle;
    }
    return vocab->words[first].number == token ? &vocab->words[first] : NULL;
}

const char *embla_vocab_word(const embla_vocab *vocab, int32_t token, size_t *length)
{
    if (!vocab || token < 0 || token >= vocab->end) return NULL;
    const embla_name *word = find_token(vocab, (uint32_t)token);
    if (!word) return NULL;
    if (length) *length = word->length;
    return word->bytes;
}

/* A word is stored as callers see it: a token's number is below 2^31. */
_Static_assert(sizeof(embla_word) == sizeof(embla_name) &&
                   offsetof(embla_word, bytes) == offsetof(embla_name, bytes) &&
                   offsetof(embla_word, length) == offsetof(embla_name, length) &&
                   offsetof(embla_word, token) == offsetof(embla_name, number),
               "an embla_name is an embla_word");

const embla_word *embla_vocab_words(const embla_vocab *vocab, size_t *count)
{
    *count = vocab ? vocab->count : 0;
    return vocab ? (const embla_word *)(const void *)vocab->words : NULL;
}

/* Looks for the word with its leading space written as space is. */
static embla_status find_spaced(const embla_vocab *vocab, const char *word, size_t length,
                                const char *space, const embla_name **out)
{
    size_t more = strlen(space), bytes = length - 1 + more;
    void *memory = NULL;
    EMBLA_TRY(embla_mem_new(bytes, "a word to be found", &memory));
    memcpy(memory, space, more);
    memcpy((char *)memory + more, word + 1, length - 1);
    *out = embla_names_find(&vocab->index, memory, bytes);
    embla_mem_free(memory, bytes);
    return EMBLA_OK;
}

embla_status embla_vocab_find(const embla_vocab *vocab, const char *word, size_t length,
                              int32_t *out)
{
    static const char *const spaces[] = {"\xe2\x96\x81", "\xc4\xa0"}; /* U+2581, U+0120 */
    if (!vocab || (!word && length > 0) || !out)
        return embla_fail(EMBLA_ERR_ARGUMENT, "embla_vocab_find: %s is NULL",
                          !vocab ? "vocab"
                          : !out ? "out"
                                 : "word");
    const embla_name *found = embla_names_find(&vocab->index, word, length);
    for (size_t i = 0; !found && length > 0 && word[0] == ' ' && i < 2; i++)
        EMBLA_TRY(find_spaced(vocab, word, length, spaces[i], &found));
    if (!found)
        return embla_fail(EMBLA_ERR_NOT_FOUND, "%.256s has no token '%.*s'", vocab->source,
                          shown(length), word ? word : "");
    *out = (int32_t)found->number;
    return EMBLA_OK;
}
