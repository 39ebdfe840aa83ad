/* SPDX-License-Identifier: Apache-2.0 */
/* Makes an array of tokens from a text.
 *
 * The text is scanned twice. The first scan checks each character and marks it in an array of all
 * code points of Unicode. The marked ones are then numbered in order of their code points. The
 * second scan writes tokens, in as few bytes as the highest number needs. The array cannot be
 * filled with collisions, as a hash table could. Text that is not UTF-8 is refused: a replacement
 * character would be one that the text does not contain.
 *
 * Tokens of words are made by the same two scans: the first counts words (corpus_words.c), the
 * second writes their numbers.
 */
#include <string.h>

#include "base/checked.h"
#include "base/checksum.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "corpus/corpus.h"
#include "files/packed.h"
#include "unicode/cut.h"

enum {
    CODES = 0x110000, /* code points of Unicode */
    PAGE = 256        /* code points that are skipped together if none occurs */
};

/* ---- characters ---- */

/* All code points. */
typedef struct {
    uint32_t marks[CODES];       /* 1 if it occurs; later its token, from 0 */
    uint8_t pages[CODES / PAGE]; /* 1 if any code point of this page occurs */
} codes;

/* Numbers the marked code points and makes their characters. */
static embla_status number_codes(embla_corpus *c, codes *all)
{
    embla_corpus_character *characters = NULL;
    uint32_t *list = NULL;
    size_t count = 0;
    for (size_t page = 0; page < CODES / PAGE; page++)
        for (size_t i = 0; all->pages[page] && i < PAGE; i++) count += all->marks[page * PAGE + i];
    EMBLA_TRY(embla_arena_many(&c->arena, count, sizeof *characters, "characters", &characters));
    EMBLA_TRY(embla_arena_many(&c->arena, count, sizeof *list, "characters", &list));
    for (uint32_t code = 0; code < CODES; code++) {
        if (!all->pages[code / PAGE]) code += PAGE - 1; /* skip to the last of the page */
        if (!all->marks[code]) continue;
        size_t n = c->character_count++;
        characters[n].length = (uint8_t)embla_utf8_encode(code, characters[n].text);
        list[n] = code;
        all->marks[code] = (uint32_t)n;
    }
    c->characters = characters;
    c->codes = list;
    return EMBLA_OK;
}

/* Makes 256 characters of one byte each. */
static embla_status number_bytes(embla_corpus *c)
{
    embla_corpus_character *characters = NULL;
    EMBLA_TRY(embla_arena_many(&c->arena, 256, sizeof *characters, "bytes", &characters));
    for (int i = 0; i < 256; i++) characters[i] = (embla_corpus_character){{(char)i}, 1};
    c->characters = characters;
    c->character_count = 256;
    return EMBLA_OK;
}

/* ---- text to tokens ---- */

/* The state of a scan. */
typedef struct {
    embla_corpus *corpus;
    void *memory; /* the bytes, from embla_mem_new(room); NULL after the corpus owns them */
    size_t room;
    const uint8_t *bytes;
    const embla_corpus_part *parts;
    size_t part_count;
    codes *codes;           /* for characters; NULL otherwise */
    embla_word_list *words; /* for words; NULL otherwise */
    uint64_t lines, documents, characters;
    uint64_t *starts;
    uint64_t next; /* index of the next token to write */
} text;

typedef struct {
    const uint8_t *at;
    size_t length;
} span;

/* Finds the next document of a part, or the rest of a stream. False at its end. */
static bool next_span(const text *t, const uint8_t **at, const uint8_t *end, span *out)
{
    const uint8_t *from = *at, *stop = end;
    if (from == end) return false;
    *at = end;
    if (t->corpus->options.documents) {
        const uint8_t *newline = memchr(from, '\n', (size_t)(end - from));
        if (newline) *at = (stop = newline) + 1;
        if (stop > from && stop[-1] == '\r') stop--;
    }
    *out = (span){from, (size_t)(stop - from)};
    return true;
}

static embla_status fail_not_utf8(const char *name, const uint8_t *part, const uint8_t *at)
{
    return embla_fail(EMBLA_ERR_FORMAT,
                      "%.256s is not valid UTF-8: byte %td is 0x%02x; open it as bytes, not as "
                      "characters or words",
                      name, at - part, *at);
}

/* Checks and counts the words of a span. */
static embla_status count_words(text *t, const char *name, const uint8_t *part, span s)
{
    size_t valid = embla_utf8_valid(s.at, s.length);
    if (valid < s.length) return fail_not_utf8(name, part, s.at + valid);
    return embla_word_list_count(t->words, (const char *)s.at, s.length, &t->characters);
}

/* Checks and marks the characters of a span, and counts them. */
static embla_status mark(text *t, const char *name, const uint8_t *part, span s)
{
    const uint8_t *p = s.at, *end = s.at + s.length;
    uint64_t count = 0;
    if (t->words) return count_words(t, name, part, s);
    if (!t->codes) {
        t->characters += s.length;
        return EMBLA_OK;
    }
    t->codes->pages[0] = 1;
    for (; p < end; count++) {
        if (*p < 0x80) {
            t->codes->marks[*p++] = 1;
            continue;
        }
        size_t length = embla_utf8_length(p, (size_t)(end - p));
        if (length == 0) return fail_not_utf8(name, part, p);
        uint32_t code = embla_utf8_code(p, length);
        t->codes->marks[code] = 1;
        t->codes->pages[code / PAGE] = 1;
        p += length;
    }
    t->characters += count;
    return EMBLA_OK;
}

/* Writes the tokens of a span to out, which has space, and returns their number. width is a
 * constant for the compiler. */
static inline __attribute__((always_inline)) size_t write_span(const uint32_t *marks, span s,
                                                               unsigned width, uint8_t *out)
{
    const uint8_t *p = s.at, *end = s.at + s.length;
    size_t count = 0;
    for (; p < end; count++) {
        size_t length = !marks || *p < 0x80 ? 1 : embla_utf8_length(p, (size_t)(end - p));
        uint32_t token = marks ? marks[embla_utf8_code(p, length)] : *p;
        for (unsigned b = 0; b < width; b++) out[count * width + b] = (uint8_t)(token >> (8 * b));
        p += length;
    }
    return count;
}

static void write_token(text *t, uint64_t token)
{
    unsigned width = t->corpus->width;
    uint8_t *out = (uint8_t *)t->corpus->held + t->next++ * width;
    for (unsigned b = 0; b < width; b++) out[b] = (uint8_t)(token >> (8 * b));
}

static void write_words(text *t, span s)
{
    embla_corpus *c = t->corpus;
    const char *at = (const char *)s.at, *end = at + s.length, *word;
    for (size_t used; (used = embla_next_word(at, (size_t)(end - at), &word)) > 0;
         at = word + used) {
        uint32_t token = embla_word_list_token(t->words, word, used, (uint32_t)c->word_count);
        c->unknown += token == c->word_count;
        write_token(t, token);
    }
}

static void write_document(text *t, span s)
{
    embla_corpus *c = t->corpus;
    const uint32_t *marks = t->codes ? t->codes->marks : NULL;
    uint8_t *out = (uint8_t *)c->held + t->next * c->width;
    if (t->starts) t->starts[t->documents] = t->next - 1; /* the BOS before it */
    t->documents++;
    if (t->words)
        write_words(t, s);
    else
        t->next += c->width == 1   ? write_span(marks, s, 1, out)
                   : c->width == 2 ? write_span(marks, s, 2, out)
                                   : write_span(marks, s, 4, out);
    if (t->starts) write_token(t, (uint64_t)c->bos);
}

/* Whether a span has no token: no bytes, or no word. */
static bool is_empty(const text *t, span s)
{
    const char *word;
    return s.length == 0 || (t->words && embla_next_word((const char *)s.at, s.length, &word) == 0);
}

/* Scans all documents once. If write is true their tokens are written, otherwise counted. */
static embla_status scan_documents(text *t, bool write)
{
    const uint8_t *at = t->bytes;
    t->documents = 0;
    for (size_t i = 0; i < t->part_count; i++) {
        const embla_corpus_part *part = &t->parts[i];
        const uint8_t *from = at, *end = t->bytes + part->end;
        span s = {0};
        if (!write) EMBLA_TRY(embla_packed_check(part->name, from, (size_t)(end - from), true));
        if ((t->codes || t->words) && end - from >= 3 && memcmp(from, "\xef\xbb\xbf", 3) == 0)
            at += 3; /* a byte order mark is not part of the text */
        while (next_span(t, &at, end, &s)) {
            t->lines += !write;
            if (is_empty(t, s)) continue;
            if (write) {
                write_document(t, s);
            } else {
                t->documents++;
                EMBLA_TRY(mark(t, part->name, from, s));
            }
        }
    }
    return EMBLA_OK;
}

/* Allocates memory for the counted tokens and for the starts of documents. */
static embla_status allocate_tokens(text *t)
{
    embla_corpus *c = t->corpus;
    uint64_t bytes;
    c->vocab = (int64_t)(t->words ? c->word_count + 1 : c->character_count);
    c->count = t->characters;
    if (c->options.documents) {
        c->bos = (int32_t)c->vocab++;
        c->count += t->documents + 1;
        c->documents = t->documents;
        EMBLA_TRY(embla_arena_many(&c->arena, t->documents + 1, sizeof *t->starts,
                                   "starts of documents", &t->starts));
        c->starts = t->starts;
    }
    if (!t->codes && !t->words && !t->starts) { /* bytes are tokens already */
        c->held = t->memory;
        c->held_bytes = t->room;
        c->at = t->bytes;
        t->memory = NULL;
        return EMBLA_OK;
    }
    c->width = c->vocab <= 1 << 8 ? 1 : c->vocab <= 1 << 16 ? 2 : 4;
    if (!embla_mul_ok(c->count, c->width, &bytes) || !embla_size_ok(bytes, &c->held_bytes))
        return embla_fail(EMBLA_ERR_MEMORY, "out of memory for %" PRIu64 " tokens", c->count);
    EMBLA_TRY(embla_mem_new(c->held_bytes, "tokens of a text", &c->held));
    c->at = c->held;
    return EMBLA_OK;
}

static embla_status number_tokens(text *t, const char *name)
{
    if (t->words) return embla_word_list_number(t->words, name, t->corpus);
    return t->codes ? number_codes(t->corpus, t->codes) : number_bytes(t->corpus);
}

static embla_status text_to_tokens(text *t)
{
    embla_corpus *c = t->corpus;
    const char *name = t->part_count > 0 ? t->parts[0].name : "a text";
    EMBLA_TRY(scan_documents(t, false));
    if (t->characters == 0)
        return embla_fail(EMBLA_ERR_FORMAT, "%.256s has no text: %" PRIu64 " lines without %s",
                          name, t->lines,
                          t->codes   ? "characters"
                          : t->words ? "words"
                                     : "bytes");
    EMBLA_TRY(number_tokens(t, name));
    EMBLA_TRY(allocate_tokens(t));
    if (t->starts) write_token(t, (uint64_t)c->bos);
    if (t->memory) EMBLA_TRY(scan_documents(t, true));
    if (t->starts) t->starts[t->documents] = t->next - 1;
    return embla_corpus_split(c, name);
}

embla_status embla_corpus_of_text(void *bytes, size_t room, const embla_corpus_part *parts,
                                  size_t count, const embla_corpus_options *options,
                                  embla_corpus **out)
{
    static const uint8_t none; /* an address for 0 bytes: arithmetic on NULL is undefined */
    text t = {.memory = bytes, .room = room, .parts = parts, .part_count = count};
    t.bytes = bytes ? bytes : &none;
    void *memory = NULL;
    embla_status status = embla_corpus_new(options, &t.corpus);
    if (status == EMBLA_OK && options->kind == EMBLA_CORPUS_CHARACTERS)
        status = embla_mem_new(sizeof(codes), "the code points of Unicode", &memory);
    t.codes = memory;
    if (status == EMBLA_OK && options->kind == EMBLA_CORPUS_WORDS)
        status = embla_word_list_new(embla_checksum_of(t.bytes, bytes ? room : 0).low, &t.words);
    if (status == EMBLA_OK) status = text_to_tokens(&t);
    embla_word_list_free(t.words);
    embla_mem_free(memory, sizeof(codes));
    embla_mem_free(t.memory, room);
    if (status != EMBLA_OK) {
        embla_corpus_free(t.corpus);
        return status;
    }
    *out = t.corpus;
    return EMBLA_OK;
}
