/* SPDX-License-Identifier: Apache-2.0 */
/* Scanners for the regular expressions of known tokenizers. The text of each expression is in the
 * table at the end. An alternation takes the first alternative that matches, not the longest one,
 * and so do the scanners. Their sets are those of Oniguruma (unicode.h).
 *
 * ASCII is decided by a table of 128 entries. Everything else is looked up by code point.
 */
#include <string.h>

#include "tokenizer/pattern.h"
#include "unicode/cut.h"

enum { LETTER = 1, NUMBER = 2, SPACE = 4, OTHER = 8, UPPER = 16, LOWER = 32 };

#define S1     SPACE
#define O1     OTHER
#define N1     NUMBER
#define U1     (LETTER | UPPER)
#define L1     (LETTER | LOWER)
#define TEN(x) x, x, x, x, x, x, x, x, x, x
static const uint8_t ascii[128] = {
    O1,      O1,      O1, O1, O1, O1, O1, O1, O1, S1, S1, S1, S1, S1, O1, O1, /* 00 */
    O1,      O1,      O1, O1, O1, O1, O1, O1, O1, O1, O1, O1, O1, O1, O1, O1, /* 10 */
    S1,      TEN(O1), O1, O1, O1, O1, O1,                                     /* 20 */
    TEN(N1), O1,      O1, O1, O1, O1, O1,                                     /* 30 */
    O1,      TEN(U1), U1, U1, U1, U1, U1,                                     /* 40 */
    TEN(U1), U1,      O1, O1, O1, O1, O1,                                     /* 50 */
    O1,      TEN(L1), L1, L1, L1, L1, L1,                                     /* 60 */
    TEN(L1), L1,      O1, O1, O1, O1, O1                                      /* 70 */
};

/* The class of a character that is not ASCII, or of a mapped byte. */
static unsigned slow_class(const embla_piece *p, size_t at, size_t *length)
{
    uint32_t bits = embla_piece_bits(p, at, length);
    unsigned kind = bits & EMBLA_CHAR_LETTER   ? LETTER
                    : bits & EMBLA_CHAR_NUMBER ? NUMBER
                    : bits & EMBLA_CHAR_SPACE  ? SPACE
                                               : OTHER;
    return kind | (bits & EMBLA_CHAR_UPPER ? UPPER : 0) | (bits & EMBLA_CHAR_LOWER ? LOWER : 0);
}

static inline unsigned class_at(const embla_piece *p, size_t at, size_t *length)
{
    uint8_t b = (uint8_t)p->bytes[at];
    if (b >= 0x80 || p->mapped) return slow_class(p, at, length);
    *length = 1;
    return ascii[b];
}

/* The end of the run of characters with one of these classes. */
static inline size_t run(const embla_piece *p, size_t at, unsigned classes)
{
    while (at < p->end) {
        size_t length = 0;
        if (!(class_at(p, at, &length) & classes)) return at;
        at += length;
    }
    return at;
}

static size_t run_at_most(const embla_piece *p, size_t at, unsigned classes, size_t most)
{
    for (; most > 0 && at < p->end; most--) {
        size_t length = 0;
        if (!(class_at(p, at, &length) & classes)) return at;
        at += length;
    }
    return at;
}

/* Where the last character before `at` begins. */
static size_t step_back(const embla_piece *p, size_t at)
{
    at--;
    while (!p->mapped && ((uint8_t)p->bytes[at] & 0xc0) == 0x80) at--;
    return at;
}

static bool is_newline(const embla_piece *p, size_t at)
{
    return !p->mapped && (p->bytes[at] == '\n' || p->bytes[at] == '\r');
}

static bool is_space(const embla_piece *p, size_t at)
{
    return !p->mapped && p->bytes[at] == ' ';
}

/* \s+(?!\S)|\s+ : white space without its last character, or all of it at the end of the piece or
 * if it is one character. */
static size_t scan_space(const embla_piece *p, size_t at)
{
    size_t end = run(p, at, SPACE);
    if (end == p->end || end == at) return end;
    size_t last = step_back(p, end);
    return last == at ? end : last;
}

/* \s*[\r\n]+ : white space up to its last line end. */
static size_t scan_lines(const embla_piece *p, size_t at)
{
    size_t end = run(p, at, SPACE);
    while (end > at && !is_newline(p, end - 1)) end--;
    return end;
}

/* One letter of a contraction; U+017F counts as s where case is ignored. Returns its length. */
static size_t fold_letter(const embla_piece *p, size_t at, char letter, bool fold)
{
    if (at >= p->end) return 0;
    char c = p->bytes[at];
    if (c == letter || (fold && c == letter - 'a' + 'A')) return 1;
    if (fold && letter == 's' && !p->mapped && p->end - at >= 2 &&
        memcmp(p->bytes + at, "\xc5\xbf", 2) == 0)
        return 2;
    return 0;
}

/* 's|'t|'re|'ve|'m|'ll|'d */
static size_t scan_contraction(const embla_piece *p, size_t at, bool fold)
{
    static const char endings[7][3] = {"s", "t", "re", "ve", "m", "ll", "d"};
    if (at >= p->end || p->bytes[at] != '\'') return at;
    for (size_t i = 0; i < 7; i++) {
        size_t first = fold_letter(p, at + 1, endings[i][0], fold);
        if (first == 0) continue;
        if (!endings[i][1]) return at + 1 + first;
        size_t second = fold_letter(p, at + 1 + first, endings[i][1], fold);
        if (second > 0) return at + 1 + first + second;
    }
    return at;
}

/* ` ?[^\s\p{L}\p{N}]+`, and then any of the characters of tail. */
static size_t scan_other(const embla_piece *p, size_t at, bool slash)
{
    size_t begin = at + (is_space(p, at) ? 1 : 0), end = run(p, begin, OTHER);
    if (end == begin) return at;
    while (end < p->end && (is_newline(p, end) || (slash && p->bytes[end] == '/'))) end++;
    return end;
}

size_t embla_scan_gpt2(const embla_piece *p, size_t at)
{
    size_t length = 0, end = 0;
    unsigned kind = class_at(p, at, &length);
    if (p->bytes[at] == '\'' && (end = scan_contraction(p, at, false)) > at) return end;
    if (is_space(p, at) && at + 1 < p->end) {
        unsigned next = class_at(p, at + 1, &end);
        if (!(next & SPACE)) return run(p, at + 1 + end, next & (LETTER | NUMBER | OTHER));
    }
    if (kind & SPACE) return scan_space(p, at);
    return run(p, at + length, kind & (LETTER | NUMBER | OTHER));
}

/* cl100k, and with most = 1 Qwen's. */
static size_t scan_cl100k(const embla_piece *p, size_t at, size_t most)
{
    size_t length = 0, end = 0;
    unsigned kind = class_at(p, at, &length);
    if (p->bytes[at] == '\'' && (end = scan_contraction(p, at, true)) > at) return end;
    if (kind & LETTER) return run(p, at + length, LETTER);
    if (kind & NUMBER) return run_at_most(p, at, NUMBER, most);
    if (!is_newline(p, at)) {
        end = run(p, at + length, LETTER);
        if (end > at + length) return end;
    }
    if ((end = scan_other(p, at, false)) > at) return end;
    if ((end = scan_lines(p, at)) > at) return end;
    return scan_space(p, at);
}

static size_t scan_cl100k_3(const embla_piece *p, size_t at)
{
    return scan_cl100k(p, at, 3);
}

static size_t scan_qwen(const embla_piece *p, size_t at)
{
    return scan_cl100k(p, at, 1);
}

/* The two kinds of words of o200k: capitals as many as possible, then small letters; at least one
 * small letter, or at least one capital. Letters without case are both. */
static size_t scan_cased(const embla_piece *p, size_t at, bool need_small)
{
    size_t capitals = run(p, at, UPPER), end = run(p, capitals, LOWER), length = 0;
    if (need_small) {
        for (; end == capitals && capitals > at; end = capitals) { /* give back capitals */
            size_t last = step_back(p, capitals);
            if (class_at(p, last, &length) & LOWER) break;
            capitals = last;
        }
        if (end == capitals && capitals == at) return at;
    } else if (capitals == at) {
        return at;
    }
    return scan_contraction(p, end, true);
}

static size_t scan_o200k(const embla_piece *p, size_t at)
{
    size_t length = 0, end = 0;
    unsigned kind = class_at(p, at, &length);
    bool prefix = !(kind & (LETTER | NUMBER)) && !is_newline(p, at);
    for (int small = 1; small >= 0; small--) {
        if (prefix && (end = scan_cased(p, at + length, small)) > at + length) return end;
        if ((end = scan_cased(p, at, small)) > at) return end;
    }
    if (kind & NUMBER) return run_at_most(p, at, NUMBER, 3);
    if ((end = scan_other(p, at, true)) > at) return end;
    if ((end = scan_lines(p, at)) > at) return end;
    return scan_space(p, at);
}

static size_t scan_literal(const embla_piece *p, size_t at, const char *text)
{
    size_t length = strlen(text);
    bool equal = p->end - at >= length && memcmp(p->bytes + at, text, length) == 0;
    return equal ? at + length : at;
}

static size_t scan_clip(const embla_piece *p, size_t at)
{
    size_t length = 0, end = 0;
    unsigned kind = class_at(p, at, &length);
    if ((end = scan_literal(p, at, "<|startoftext|>")) > at) return end;
    if ((end = scan_literal(p, at, "<|endoftext|>")) > at) return end;
    if ((end = scan_contraction(p, at, false)) > at) return end;
    if (kind & LETTER) return run(p, at, LETTER);
    if (kind & NUMBER) return at + length;
    return run(p, at, OTHER);
}

/* ---- DeepSeek ---- */

static size_t run_bits(const embla_piece *p, size_t at, uint32_t bits)
{
    while (at < p->end) {
        size_t length = 0;
        if (!(embla_piece_bits(p, at, &length) & bits)) return at;
        at += length;
    }
    return at;
}

static bool is_ascii_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static size_t scan_deepseek(const embla_piece *p, size_t at)
{
    const uint32_t word = EMBLA_CHAR_LETTER | EMBLA_CHAR_MARK;
    size_t length = 0, end = at + 1;
    uint32_t bits = embla_piece_bits(p, at, &length);
    uint8_t c = (uint8_t)p->bytes[at];
    if (c > 0x20 && c < 0x7f && (ascii[c] & OTHER)) {
        while (end < p->end && is_ascii_letter(p->bytes[end])) end++;
        if (end > at + 1) return end;
    }
    if (!(bits & (EMBLA_CHAR_LETTER | EMBLA_CHAR_SYMBOL)) && !is_newline(p, at)) {
        end = run_bits(p, at + length, word);
        if (end > at + length) return end;
    }
    if ((end = run_bits(p, at, word)) > at) return end;
    size_t begin = at + (is_space(p, at) ? 1 : 0);
    end = run_bits(p, begin, EMBLA_CHAR_SYMBOL);
    if (end > begin) {
        while (end < p->end && is_newline(p, end)) end++;
        return end;
    }
    if ((end = scan_lines(p, at)) > at) return end;
    return scan_space(p, at);
}

static size_t scan_kana_and_han(const embla_piece *p, size_t at)
{
    while (at < p->end && !p->mapped) {
        size_t length = 0;
        uint32_t code = embla_char_at(p->bytes + at, &length);
        bool in = (code >= 0x4e00 && code <= 0x9fa5) || (code >= 0x3040 && code <= 0x30ff);
        if (!in) return at;
        at += length;
    }
    return at;
}

/* ---- short expressions ---- */

static size_t scan_spaces(const embla_piece *p, size_t at)
{
    return run(p, at, SPACE);
}

static size_t scan_two_blanks(const embla_piece *p, size_t at)
{
    size_t end = at;
    while (end < p->end && is_space(p, end)) end++;
    return end - at >= 2 ? end : at;
}

static size_t count_digits(const embla_piece *p, size_t at, size_t most)
{
    size_t end = at;
    while (end < p->end && end - at < most && p->bytes[end] >= '0' && p->bytes[end] <= '9') end++;
    return end - at;
}

static size_t scan_digits(const embla_piece *p, size_t at)
{
    return at + count_digits(p, at, SIZE_MAX);
}

static size_t scan_digit(const embla_piece *p, size_t at)
{
    return at + count_digits(p, at, 1);
}

static size_t scan_three_digits(const embla_piece *p, size_t at)
{
    return count_digits(p, at, 3) == 3 ? at + 3 : at;
}

static size_t scan_three_numbers(const embla_piece *p, size_t at)
{
    return run_at_most(p, at, NUMBER, 3);
}

static size_t scan_number(const embla_piece *p, size_t at)
{
    return run_at_most(p, at, NUMBER, 1);
}

/* \w+|[^\w\s]+ with the sets of Rust's regular expressions: the pre-tokenizer Whitespace. */
size_t embla_scan_words(const embla_piece *p, size_t at)
{
    const uint32_t both = EMBLA_CHAR_WORD | EMBLA_CHAR_WHITE;
    size_t length = 0;
    uint32_t bits = embla_piece_bits(p, at, &length);
    if (bits & EMBLA_CHAR_WORD) return run_bits(p, at + length, EMBLA_CHAR_WORD);
    if (bits & EMBLA_CHAR_WHITE) return at;
    while (at < p->end && !(embla_piece_bits(p, at, &length) & both)) at += length;
    return at;
}

static size_t scan_any(const embla_piece *p, size_t at)
{
    size_t length = 1;
    if (!p->mapped) (void)embla_char_at(p->bytes + at, &length);
    return at + length;
}

/* The rule of embla_next_word, which tokenizers that Embla writes state as an expression. */
size_t embla_scan_next_word(const embla_piece *p, size_t at)
{
    const char *word = NULL;
    size_t first = 1;
    if (p->mapped) return at;
    (void)embla_char_at(p->bytes + at, &first);
    if (embla_next_word(p->bytes + at, first, &word) == 0) return at; /* not the words after it */
    size_t length = embla_next_word(p->bytes + at, p->end - at, &word);
    return length > 0 && word == p->bytes + at ? at + length : at;
}

/* ---- the table ---- */

#define ENDINGS  "'s|'t|'re|'ve|'m|'ll|'d"
#define FOLDED   "(?i:" ENDINGS ")"
#define REST     "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define CAPITALS "[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]"
#define SMALL    "[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]"
#define BEFORE   "[^\\r\\n\\p{L}\\p{N}]?"

#define OURS                                                                                       \
    "0-9A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u1fff\u2c00-\u2fff\u3040-\ufe0f"                   \
    "\ufe70-\ufeff\uff10-\U0001efff\U0001fb00-\U0010ffff"
#define BETWEEN "\\x00-\\x20\x7f-\u00a0\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"

static const struct {
    const char *text;
    embla_scanner *scan;
} known[] = {
    {ENDINGS "| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+", embla_scan_gpt2},
    {FOLDED "|" BEFORE "\\p{L}+|\\p{N}{1,3}" REST, scan_cl100k_3},
    {FOLDED "|" BEFORE "\\p{L}+|\\p{N}" REST, scan_qwen},
    {BEFORE CAPITALS "*" SMALL "+" FOLDED "?|" BEFORE CAPITALS "+" SMALL "*" FOLDED
                     "?|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
     scan_o200k},
    {"<\\|startoftext\\|>|<\\|endoftext\\|>|" ENDINGS "|[\\p{L}]+|[\\p{N}]|[^\\s\\p{L}\\p{N}]+",
     scan_clip},
    {"[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}"
     "]+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+",
     scan_deepseek},
    {"[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+", scan_kana_and_han},
    {"\\p{N}{1,3}", scan_three_numbers},
    {"\\p{N}", scan_number},
    {"\\s+", scan_spaces},
    {" {2,}", scan_two_blanks},
    {"[0-9]+", scan_digits},
    {"[0-9]", scan_digit},
    {"[0-9][0-9][0-9]", scan_three_digits},
    {"[\\s\\S]", scan_any},
    {"\n|[" OURS "]+(?:['\u2019][" OURS "]+)*|[^" OURS BETWEEN "]", embla_scan_next_word},
};

embla_scanner *embla_scanner_of(const char *text, size_t length, int *first)
{
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strlen(known[i].text) == length && memcmp(known[i].text, text, length) == 0) {
            *first = known[i].scan == scan_two_blanks ? ' ' : -1;
            return known[i].scan;
        }
    return NULL;
}
