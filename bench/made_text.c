/* SPDX-License-Identifier: Apache-2.0 */
/* A word is one to three syllables of two letters, the more frequent the fewer, and an ending. A
 * syllable is a consonant and a vowel, and no ending is one, so no two words are equal. Word k has
 * probability proportional to 1 / (k + 1). */
#include "bench/made_text.h"

#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/cases.h"

enum { SYLLABLES = 100, WORD_MOST = 16, PIECES_MOST = 8 };

static const char consonants[] = "bcdfghjklmnpqrstvwxz", vowels[] = "aeiou";
static const char *const endings[] = {"", "n", "s", "ng", "r", "tion", "ly", "ed"};

/* ---- strings that grow ---- */

static void put_bytes(bench_string *s, const char *bytes, size_t count)
{
    if (s->count + count > s->room) {
        size_t room = 2 * (s->room + count) + 4096;
        char *grown = realloc(s->bytes, room);
        s->failed = s->failed || !grown;
        if (!grown) return;
        s->bytes = grown;
        s->room = room;
    }
    if (count > 0 && s->bytes) memcpy(s->bytes + s->count, bytes, count);
    s->count += count;
}

static void put(bench_string *s, const char *text)
{
    put_bytes(s, text, strlen(text));
}

__attribute__((format(printf, 2, 3))) static void putf(bench_string *s, const char *format, ...)
{
    char text[256];
    va_list list;
    va_start(list, format);
    (void)vsnprintf(text, sizeof text, format, list);
    va_end(list);
    put(s, text);
}

void bench_string_free(bench_string *s)
{
    free(s->bytes);
    *s = (bench_string){0};
}

/* ---- words ---- */

/* The syllables of word k, then the letters of its ending. The syllable "ti" of "tion" is one. */
static size_t list_pieces(int k, char pieces[PIECES_MOST][3])
{
    size_t count = 0;
    const char *ending = endings[(unsigned)k * 2654435761u >> 29];
    int syllables = k < SYLLABLES ? 1 : k < SYLLABLES + SYLLABLES * SYLLABLES ? 2 : 3;
    for (int rest = k, i = 0; i < syllables; i++, rest /= SYLLABLES) {
        const int syllable = rest % SYLLABLES;
        (void)snprintf(pieces[count++], 3, "%c%c", consonants[syllable / 5], vowels[syllable % 5]);
    }
    if (strcmp(ending, "tion") == 0) {
        (void)snprintf(pieces[count++], 3, "ti");
        ending += 2;
    }
    for (; *ending; ending++) (void)snprintf(pieces[count++], 3, "%c", *ending);
    return count;
}

static void spell(int k, char out[WORD_MOST])
{
    char pieces[PIECES_MOST][3];
    size_t count = list_pieces(k, pieces), at = 0;
    for (size_t i = 0; i < count; i++)
        at += (size_t)snprintf(out + at, WORD_MOST - at, "%s", pieces[i]);
}

/* A word of a text: i is its place in it. Some are capitalised, some are numbers. */
static void put_word(bench_string *s, int k, size_t i)
{
    char word[WORD_MOST] = "";
    const unsigned dice = (unsigned)i * 2654435761u >> 8;
    spell(k, word);
    if (dice % 10 == 0) word[0] = (char)(word[0] - 'a' + 'A');
    if (dice % 41 == 0) (void)snprintf(word, sizeof word, "%u", dice % 3000);
    put(s, word);
    if (dice % 101 == 0) put(s, "\xc3\xa9");
    if (dice % 13 == 0) put(s, ",");
    if (dice % 17 == 0) put(s, ".");
}

bench_string bench_made_text(size_t bytes, bool lines)
{
    bench_string s = {0};
    const size_t words = bytes / 4 + 1;
    int32_t *list = malloc(words * sizeof *list);
    s.failed = !list || !bench_tokens(true, BENCH_WORDS, words, list);
    for (size_t i = 0; i < words && s.count < bytes && !s.failed; i++) {
        put_word(&s, list[i], i);
        put(&s, lines && i % 20 == 19 ? "\n" : " ");
    }
    free(list);
    return s;
}

/* ---- tokenizers ---- */

static void put_wordpiece(bench_string *s)
{
    static const char *const signs[] = {",", ".", "\xc3\xa9"};
    char word[WORD_MOST];
    int token = 1;
    put(s, "{\"normalizer\":{\"type\":\"BertNormalizer\",\"clean_text\":true,"
           "\"handle_chinese_chars\":true,\"strip_accents\":null,\"lowercase\":true},"
           "\"pre_tokenizer\":{\"type\":\"BertPreTokenizer\"},"
           "\"decoder\":{\"type\":\"WordPiece\",\"prefix\":\"##\",\"cleanup\":true},"
           "\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"[UNK]\","
           "\"continuing_subword_prefix\":\"##\",\"max_input_chars_per_word\":100,"
           "\"vocab\":{\"[UNK]\":0");
    for (int i = 0; i < 36; i++, token += 2) {
        char c = (char)(i < 26 ? 'a' + i : '0' + i - 26);
        putf(s, ",\"%c\":%d,\"##%c\":%d", c, token, c, token + 1);
    }
    for (int i = 0; i < 3; i++) putf(s, ",\"%s\":%d", signs[i], token++);
    for (int i = 0; i < SYLLABLES; i++)
        putf(s, ",\"##%c%c\":%d", consonants[i / 5], vowels[i % 5], token++);
    for (int i = 0; i < BENCH_KNOWN_WORDS; i++) {
        spell(i, word);
        putf(s, ",\"%s\":%d", word, token++);
    }
    put(s, "}}}");
}

/* The character that byte-level vocabularies write for a byte (GPT-2). */
static unsigned byte_code(unsigned byte)
{
    unsigned code = 256;
    if ((byte >= 33 && byte <= 126) || (byte >= 161 && byte != 173)) return byte;
    for (unsigned b = 0; b < byte; b++) code += !((b >= 33 && b <= 126) || (b >= 161 && b != 173));
    return code;
}

/* A set of strings, by their hashes: whether this one is new. */
enum { SET_SLOTS = 1 << 18 };
static bool is_new(uint64_t *set, const char *text)
{
    uint64_t hash = 14695981039346656037u;
    for (; *text; text++) hash = (hash ^ (unsigned char)*text) * 1099511628211u;
    hash |= 1;
    size_t at = hash >> 32 & (SET_SLOTS - 1);
    for (; set[at]; at = (at + 1) & (SET_SLOTS - 1))
        if (set[at] == hash) return false;
    set[at] = hash;
    return true;
}

/* Merges: syllables first, then each word from the left, behind its space. */
static void put_merges(bench_string *vocab, bench_string *merges, uint64_t *set)
{
    int token = 256;
    for (int i = 0; i < SYLLABLES; i++) {
        char c = consonants[i / 5], v = vowels[i % 5];
        putf(vocab, ",\"%c%c\":%d", c, v, token++);
        putf(merges, "%s\"%c %c\"", i > 0 ? "," : "", c, v);
    }
    for (int k = 0; k < BENCH_KNOWN_WORDS; k++) {
        char pieces[PIECES_MOST][3], left[WORD_MOST + 8] = "\\u0120";
        size_t count = list_pieces(k, pieces);
        for (size_t i = 0; i < count; i++) {
            char whole[sizeof left + 3];
            (void)snprintf(whole, sizeof whole, "%s%s", left, pieces[i]);
            if (is_new(set, whole)) {
                putf(vocab, ",\"%s\":%d", whole, token++);
                putf(merges, ",\"%s %s\"", left, pieces[i]);
            }
            (void)snprintf(left, sizeof left, "%.*s", (int)sizeof left - 1, whole);
        }
    }
}

static void put_bpe(bench_string *s)
{
    bench_string merges = {0};
    uint64_t *set = calloc(SET_SLOTS, sizeof *set);
    put(s, "{\"pre_tokenizer\":{\"type\":\"ByteLevel\",\"add_prefix_space\":false,"
           "\"trim_offsets\":true,\"use_regex\":true},\"decoder\":{\"type\":\"ByteLevel\","
           "\"add_prefix_space\":true,\"trim_offsets\":true,\"use_regex\":true},"
           "\"model\":{\"type\":\"BPE\",\"vocab\":{");
    for (unsigned byte = 0; byte < 256; byte++)
        putf(s, "%s\"\\u%04x\":%u", byte > 0 ? "," : "", byte_code(byte), byte);
    if (set) put_merges(s, &merges, set);
    put(s, "},\"merges\":[");
    if (merges.bytes) put_bytes(s, merges.bytes, merges.count);
    put(s, "]}}");
    s->failed = s->failed || !set || merges.failed;
    free(set);
    bench_string_free(&merges);
}

static void put_unigram(bench_string *s)
{
    static const char *const signs[] = {",", ".", "\xc3\xa9"};
    char word[WORD_MOST];
    put(s,
        "{\"normalizer\":{\"type\":\"NFKC\"},\"pre_tokenizer\":{\"type\":\"Metaspace\","
        "\"replacement\":\"\\u2581\",\"prepend_scheme\":\"always\",\"split\":true},"
        "\"decoder\":{\"type\":\"Metaspace\",\"replacement\":\"\\u2581\","
        "\"prepend_scheme\":\"always\",\"split\":true},"
        "\"model\":{\"type\":\"Unigram\",\"unk_id\":0,\"vocab\":[[\"<unk>\",0],[\"\\u2581\",-4]");
    for (int i = 0; i < 62; i++) {
        char c = (char)(i < 26 ? 'a' + i : i < 52 ? 'A' + i - 26 : '0' + i - 52);
        putf(s, ",[\"%c\",-9.%d]", c, i);
    }
    for (int i = 0; i < 3; i++) putf(s, ",[\"%s\",-5.%d]", signs[i], i);
    for (int i = 0; i < SYLLABLES; i++)
        putf(s, ",[\"%c%c\",-7.%02d]", consonants[i / 5], vowels[i % 5], i);
    for (int i = 0; i < BENCH_KNOWN_WORDS; i++) {
        spell(i, word);
        putf(s, ",[\"\\u2581%s\",%.6f]", word, -2.5 - log(i + 1.0));
    }
    put(s, "]}}");
}

bench_string bench_made_tokenizer(bench_tokenizer_kind kind)
{
    bench_string s = {0};
    if (kind == BENCH_WORDPIECE)
        put_wordpiece(&s);
    else if (kind == BENCH_BPE)
        put_bpe(&s);
    else
        put_unigram(&s);
    return s;
}
