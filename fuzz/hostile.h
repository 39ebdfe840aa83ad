/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a tokenizer's file and a text from the bytes of an input. Strings are runs of few letters,
 * up to thousands long, so that near misses and growth, which make a tokenizer slow, are common. */
#ifndef EMBLA_FUZZ_HOSTILE_H
#define EMBLA_FUZZ_HOSTILE_H

#include "input.h"

typedef struct {
    char *bytes;
    size_t count, room;
} made;

static inline void put_bytes(made *m, const void *bytes, size_t count)
{
    if (m->count + count + 1 > m->room) {
        m->room = 2 * (m->count + count) + 1024;
        m->bytes = realloc(m->bytes, m->room);
        if (!m->bytes) exit(1);
    }
    if (count > 0) memcpy(m->bytes + m->count, bytes, count);
    m->count += count;
    m->bytes[m->count] = 0;
}

static inline void put(made *m, const char *text)
{
    put_bytes(m, text, strlen(text));
}

/* One of several strings. */
#define PICK(in, list) ((list)[take_below((in), sizeof(list) / sizeof(list)[0])])

/* ---- strings ---- */

/* Runs of letters, at most 6 of them. */
static inline void put_runs(made *m, input *in)
{
    static const char *const letters[] = {"a",
                                          "b",
                                          " ",
                                          "\n",
                                          "\xe2\x96\x81",
                                          "\xc3\xa9",
                                          "\xef\xb7\xba",
                                          "\xe4\xb8\xad",
                                          "\xcc\x81",
                                          "A",
                                          "1",
                                          "'",
                                          "c",
                                          "\xe1\x84\x80",
                                          ".",
                                          "<"};
    static const size_t times[] = {1, 2, 3, 8, 40, 200, 1000, 3000};
    const size_t runs = take_below(in, 7);
    for (size_t i = 0; i < runs; i++) {
        const char *letter = PICK(in, letters);
        for (size_t n = PICK(in, times); n > 0; n--) put(m, letter);
    }
}

/* A string of JSON. */
static inline void put_quoted(made *m, const char *text)
{
    put(m, "\"");
    for (; *text; text++) {
        if (*text == '"' || *text == '\\') put(m, "\\");
        if (*text == '\n')
            put(m, "\\n");
        else
            put_bytes(m, text, 1);
    }
    put(m, "\"");
}

static inline void put_string(made *m, input *in)
{
    made runs = {0};
    put_runs(&runs, in);
    put_quoted(m, runs.bytes ? runs.bytes : "");
    free(runs.bytes);
}

static inline void put_flag(made *m, input *in, const char *key)
{
    put(m, ",\"");
    put(m, key);
    put(m, take_byte(in) & 1 ? "\":true" : "\":false");
}

/* ---- expressions ---- */

/* NOLINTNEXTLINE(misc-no-recursion): groups in groups, 3 deep */
static inline void put_regex(made *m, input *in, int depth)
{
    static const char *const atoms[] = {"a", "b",   ".",   "\\s", "\\p{L}", "[^a]", "[a-c1]", "(?:",
                                        "(", "(?=", "(?!", "(?>", "(?<=",   "\\1",  "|",      "$"};
    static const char *const repeats[] = {"", "", "", "*", "+", "?", "*?", "++", "{2,30}", "{3,}"};
    const size_t parts = 1 + take_below(in, 4);
    for (size_t i = 0; i < parts; i++) {
        const char *atom = PICK(in, atoms);
        const bool group = atom[0] == '(';
        if (group && depth == 0) continue;
        put(m, atom);
        if (group) put_regex(m, in, depth - 1);
        if (group) put(m, ")");
        if (atom[0] != '|') put(m, PICK(in, repeats));
    }
}

static inline void put_pattern(made *m, input *in)
{
    static const char *const known[] = {"\\s+", " {2,}", "[0-9]+", "\\p{N}{1,3}"};
    const uint8_t kind = take_byte(in);
    made regex = {0};
    put(m, "\"pattern\":{");
    if (kind % 4 == 0) {
        put(m, "\"String\":");
        put_string(m, in);
    } else {
        put(m, "\"Regex\":");
        if (kind % 4 == 1)
            put(&regex, PICK(in, known));
        else
            put_regex(&regex, in, 3);
        put_quoted(m, regex.bytes);
    }
    put(m, "}");
    free(regex.bytes);
}

/* ---- maps of characters ---- */

/* A double array of 512 units, a few of which are set, and a pool of strings. */
static inline void put_map(made *m, input *in)
{
    uint32_t units[512] = {0};
    uint32_t size = sizeof units;
    made pool = {0};
    units[0] = 0; /* the node of byte c is unit c */
    for (size_t i = take_below(in, 8); i > 0; i--) {
        const size_t at = take_below(in, 512);
        const uint32_t to = (uint32_t)take_below(in, 512), leaf = take_byte(in) & 1;
        units[at] = (uint32_t)((at ^ to) << 10) | leaf << 8 | (uint32_t)(at & 255);
        if (leaf) units[to] = UINT32_C(0x80000000) | (uint32_t)take_below(in, 300);
    }
    put_runs(&pool, in);
    put_bytes(&pool, "", 1);
    put_bytes(m, &size, sizeof size); /* both are little-endian */
    put_bytes(m, units, sizeof units);
    put_bytes(m, pool.bytes, pool.count);
    free(pool.bytes);
}

static inline void put_base64(made *m, const made *from)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const uint8_t *b = (const uint8_t *)from->bytes;
    for (size_t i = 0; i < from->count; i += 3) {
        const size_t left = from->count - i;
        const uint32_t bits = (uint32_t)b[i] << 16 | (left > 1 ? (uint32_t)b[i + 1] << 8 : 0) |
                              (left > 2 ? b[i + 2] : 0);
        const char four[] = {digits[bits >> 18], digits[bits >> 12 & 63],
                             left > 1 ? digits[bits >> 6 & 63] : '=',
                             left > 2 ? digits[bits & 63] : '='};
        put_bytes(m, four, 4);
    }
}

/* ---- stages ---- */

static inline void put_normal(made *m, input *in)
{
    static const char *const kinds[] = {"Replace", "Prepend", "Precompiled",  "Lowercase",
                                        "NFC",     "NFKD",    "Strip",        "BertNormalizer",
                                        "Nmt",     "NFKC",    "StripAccents", "ByteLevel"};
    const char *kind = PICK(in, kinds);
    made map = {0};
    put(m, "{\"type\":");
    put_quoted(m, kind);
    if (strcmp(kind, "Replace") == 0) {
        put(m, ",");
        put_pattern(m, in);
        put(m, ",\"content\":");
        put_string(m, in);
    } else if (strcmp(kind, "Prepend") == 0) {
        put(m, ",\"prepend\":");
        put_string(m, in);
    } else if (strcmp(kind, "Precompiled") == 0) {
        put_map(&map, in);
        put(m, ",\"precompiled_charsmap\":\"");
        put_base64(m, &map);
        put(m, "\"");
        free(map.bytes);
    }
    put(m, "}");
}

static inline void put_pre(made *m, input *in)
{
    static const char *const kinds[] = {"Split",
                                        "Split",
                                        "Metaspace",
                                        "ByteLevel",
                                        "Whitespace",
                                        "Digits",
                                        "Punctuation",
                                        "FixedLength",
                                        "BertPreTokenizer",
                                        "UnicodeScripts",
                                        "CharDelimiterSplit"};
    static const char *const behaviors[] = {"Removed", "Isolated", "MergedWithPrevious",
                                            "MergedWithNext", "Contiguous"};
    static const char *const marks[] = {"\xe2\x96\x81", "x", "a"};
    const char *kind = PICK(in, kinds);
    put(m, "{\"type\":");
    put_quoted(m, kind);
    if (strcmp(kind, "Split") == 0) {
        put(m, ",");
        put_pattern(m, in);
        put(m, ",\"behavior\":");
        put_quoted(m, PICK(in, behaviors));
        put_flag(m, in, "invert");
    } else if (strcmp(kind, "Metaspace") == 0) {
        put(m, ",\"replacement\":");
        put_quoted(m, PICK(in, marks));
        put_flag(m, in, "split");
    } else if (strcmp(kind, "ByteLevel") == 0) {
        put_flag(m, in, "trim_offsets");
        put_flag(m, in, "use_regex");
    } else if (strcmp(kind, "CharDelimiterSplit") == 0) {
        put(m, ",\"delimiter\":");
        put_string(m, in);
    }
    put(m, "}");
}

static inline void put_decoder(made *m, input *in)
{
    static const char *const kinds[] = {"Replace", "ByteLevel",  "WordPiece", "Metaspace",   "CTC",
                                        "Strip",   "BPEDecoder", "Fuse",      "ByteFallback"};
    const char *kind = PICK(in, kinds);
    put(m, "{\"type\":");
    put_quoted(m, kind);
    if (strcmp(kind, "Replace") == 0) {
        put(m, ",");
        put_pattern(m, in);
    }
    put(m, ",\"start\":7,\"stop\":1000,\"content\":");
    put_string(m, in);
    put(m, ",\"pad_token\":");
    put_string(m, in);
    put(m, ",\"word_delimiter_token\":\"|\",\"prefix\":\"##\",\"suffix\":\"a\",\"replacement\":"
           "\"\xe2\x96\x81\"}");
}

/* A Sequence, in which a stage may occur up to 30 times. */
static inline void put_stages(made *m, input *in, const char *part, const char *list,
                              void stage(made *m, input *in))
{
    static const size_t times[] = {1, 1, 2, 30};
    const size_t count = take_below(in, 4);
    put(m, ",\"");
    put(m, part);
    put(m, "\":{\"type\":\"Sequence\",\"");
    put(m, list);
    put(m, "\":[");
    for (size_t i = 0; i < count; i++) {
        made one = {0};
        stage(&one, in);
        for (size_t n = PICK(in, times); n > 0; n--) {
            if (m->bytes[m->count - 1] != '[') put(m, ",");
            put_bytes(m, one.bytes, one.count);
        }
        free(one.bytes);
    }
    put(m, "]}");
}

/* ---- models ---- */

enum { UNIGRAM = 1 };

static inline void put_entry(made *m, const char *text, size_t number, size_t kind)
{
    char digits[32];
    if (number > 0) put(m, ",");
    if (kind == UNIGRAM) put(m, "[");
    put_quoted(m, text);
    (void)snprintf(digits, sizeof digits, kind == UNIGRAM ? ",-%zu]" : ":%zu", number + 1);
    put(m, digits);
}

/* Few short strings, then up to 5 that the input chooses. */
static inline void put_vocab(made *m, input *in, size_t kind)
{
    static const char *const usual[] = {"u", "a", "b", " ", "aa", "aaaa", "ab", "##a", "##b", "1"};
    const size_t few = sizeof usual / sizeof usual[0], count = take_below(in, 6);
    made chosen[5] = {{0}};
    put(m, kind == UNIGRAM ? "\"vocab\":[" : "\"vocab\":{");
    for (size_t i = 0; i < few; i++) put_entry(m, usual[i], i, kind);
    for (size_t i = 0; i < count; i++) {
        bool same = false;
        put_runs(&chosen[i], in);
        put(&chosen[i], "");
        for (size_t j = 0; j < i; j++) same = same || strcmp(chosen[i].bytes, chosen[j].bytes) == 0;
        for (size_t j = 0; j < few; j++) same = same || strcmp(chosen[i].bytes, usual[j]) == 0;
        if (!same) put_entry(m, chosen[i].bytes, few + i, kind);
    }
    for (size_t i = 0; kind != UNIGRAM && i < 256; i++) {
        char byte[16];
        (void)snprintf(byte, sizeof byte, "<0x%02X>", (unsigned)i);
        put_entry(m, byte, few + count + i, kind);
    }
    put(m, kind == UNIGRAM ? "]" : "}");
    for (size_t i = 0; i < count; i++) free(chosen[i].bytes);
}

static inline void put_model(made *m, input *in)
{
    static const char *const kinds[] = {"BPE", "Unigram", "WordPiece", "WordLevel"};
    const size_t kind = take_below(in, 4);
    put(m, "{\"model\":{\"type\":");
    put_quoted(m, kinds[kind]);
    put(m, ",");
    put_vocab(m, in, kind);
    put(m, kind == UNIGRAM ? ",\"unk_id\":0" : ",\"unk_token\":\"u\"");
    put_flag(m, in, "byte_fallback");
    if (kind == 0) put_flag(m, in, "fuse_unk");
    if (kind == 0) put_flag(m, in, "ignore_merges");
    if (kind == 2) put(m, ",\"max_input_chars_per_word\":2000000000");
    if (take_byte(in) & 1) {
        put(m, ",\"end_of_word_suffix\":");
        put_string(m, in);
    }
    if (take_byte(in) & 1) {
        put(m, ",\"merges\":[],\"continuing_subword_prefix\":");
        put_string(m, in);
    } else if (kind == 0) {
        put(m, ",\"merges\":[[\"a\",\"a\"],[\"aa\",\"aa\"],[\"a\",\"b\"]]");
    }
    put(m, "}");
}

static inline void put_added(made *m, input *in)
{
    put(m, "{\"content\":");
    put_string(m, in);
    put_flag(m, in, "normalized");
    put_flag(m, in, "special");
    put_flag(m, in, "single_word");
    put_flag(m, in, "lstrip");
    put_flag(m, in, "rstrip");
    put(m, "}");
}

/* ---- files ---- */

static inline void put_json(made *m, input *in)
{
    put_model(m, in);
    put(m, ",\"added_tokens\":[");
    for (size_t i = 0, count = take_below(in, 4); i < count; i++) {
        if (i > 0) put(m, ",");
        put_added(m, in);
    }
    put(m, "]");
    put_stages(m, in, "normalizer", "normalizers", put_normal);
    put_stages(m, in, "pre_tokenizer", "pretokenizers", put_pre);
    put_stages(m, in, "decoder", "decoders", put_decoder);
    put(m, "}");
}

/* A field of a message: its number, and bytes. */
static inline void put_field(made *m, uint8_t number, const made *value)
{
    const uint8_t tag = (uint8_t)(number << 3 | 2);
    size_t left = value->count;
    put_bytes(m, &tag, 1);
    for (; left > 127; left >>= 7) {
        const uint8_t more = (uint8_t)(left & 127) | 128;
        put_bytes(m, &more, 1);
    }
    const uint8_t last = (uint8_t)left;
    put_bytes(m, &last, 1);
    put_bytes(m, value->bytes, value->count);
}

/* A SentencePiece model: pieces, its type (1 or 2), and a map of characters. */
static inline void put_sentencepiece(made *m, input *in)
{
    for (size_t i = 0, count = 3 + take_below(in, 6); i < count; i++) {
        made text = {0}, piece = {0};
        if (i < 3)
            put(&text, i == 0 ? "<unk>" : i == 1 ? "a" : "b");
        else
            put_runs(&text, in);
        put_field(&piece, 1, &text);
        put_bytes(&piece, "\x15\0\0\x80\xbf\x18", 6); /* the score -1, and a type */
        put_bytes(&piece, i == 0 ? "\2" : "\1", 1);
        put_field(m, 1, &piece);
        free(text.bytes);
        free(piece.bytes);
    }
    made trainer = {0}, map = {0}, normalizer = {0};
    put_bytes(&trainer, "\x18", 1);
    put_bytes(&trainer, take_byte(in) & 1 ? "\2" : "\1", 1);
    put_field(m, 2, &trainer);
    put_map(&map, in);
    put_field(&normalizer, 2, &map);
    put_field(m, 3, &normalizer);
    free(trainer.bytes);
    free(map.bytes);
    free(normalizer.bytes);
}

#endif
