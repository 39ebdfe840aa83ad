/* SPDX-License-Identifier: Apache-2.0 */
/* Finds words that are spelled nearly like the one that was typed.
 *
 * The distance is counted in eighths of a letter. A changed, added or missing letter counts 8; two
 * swapped letters or a missing double letter 6; a difference in case 2; a leading space more or
 * less 1. A different first letter counts 1 more, because people rarely mistype it. A word that
 * continues the typed one counts 8 plus its additional letters, so that 'qu' finds 'queen'. The
 * limit depends on the length of the typed word. All words are compared, but not much further than
 * the typed one is long, so a word of a megabyte costs no more than a short one. Nothing is
 * allocated.
 */
#include <string.h>

#include "base/utf8.h"
#include "checkpoint/vocab.h"
#include "embla_lab.h"
#include "unicode/unicode.h"

enum {
    LONGEST = 56, /* maximum letters of the typed word; longer words have no suggestions */
    TAIL = 8,     /* letters read beyond the length of the typed word */
    LETTERS = LONGEST + TAIL,
    MOST = 64, /* maximum answers */
    EDIT = 8,
    SLIP = 6,
    CASE = 2,
    SPACE = 1,
    FIRST = 1,
    FAR = 1000
};

/* A word prepared for comparison. */
typedef struct {
    uint32_t letters[LETTERS]; /* in lower case */
    size_t count;
    uint64_t large; /* bit i is set if letter i was a capital */
    uint64_t set;   /* bit l % 64 is set for each letter l */
    bool spaced;    /* a leading space, or a sign for one, was removed */
    bool more;      /* the word has more letters */
} spelled;

/* The letter in lower case, or a space for a sign of one. */
static uint32_t small_of(uint32_t code)
{
    return code == 0x2581 || code == 0x120 ? (uint32_t)' ' : embla_char_lower_in_place(code);
}

/* Decodes the letter at p and its length; a byte that is not UTF-8 is a letter of its own. */
static uint32_t letter_at(const uint8_t *p, size_t left, size_t *bytes)
{
    if (p[0] < 0x80) {
        *bytes = 1;
        return p[0];
    }
    size_t length = embla_utf8_length(p, left);
    *bytes = length > 0 ? length : 1;
    return length > 0 ? embla_utf8_code(p, length) : 0x110000u + p[0];
}

/* Reads at most `most` letters. */
static void read_word(const char *word, size_t length, size_t most, spelled *out)
{
    const uint8_t *p = (const uint8_t *)word;
    size_t bytes;
    out->count = 0;
    out->large = out->set = 0;
    out->spaced = length > 0 && small_of(letter_at(p, length, &bytes)) == ' ';
    if (out->spaced) {
        p += bytes;
        length -= bytes;
    }
    while (length > 0 && out->count < most) {
        uint32_t code = letter_at(p, length, &bytes), letter = small_of(code);
        if (letter != code && letter != ' ') out->large |= UINT64_C(1) << out->count;
        out->set |= UINT64_C(1) << letter % 64;
        out->letters[out->count++] = letter;
        p += bytes;
        length -= bytes;
    }
    out->more = length > 0;
}

static unsigned least_of(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/* The cost of letter n (from 1) when the other word lacks it. */
static unsigned missing_cost(const spelled *word, size_t n)
{
    return n > 1 && word->letters[n - 1] == word->letters[n - 2] ? SLIP : EDIT;
}

/* The edit distance of a and b in eighths, or any number above limit if it exceeds limit. Only
 * cells that few insertions or deletions can reach are computed, and rows only until a whole row
 * exceeds the limit. A swap is cheaper than an edit, so one more row may still come below it. */
static unsigned distance(const spelled *a, const spelled *b, unsigned limit)
{
    unsigned rows[3][LETTERS + 2];
    size_t m = a->count, n = b->count, band = limit / SLIP, edits = limit / EDIT;
    if (m + band < n || n + band < m)
        return FAR; /* also for words longer than what was read: TAIL > band */
    /* An edit adds or removes at most one letter, a swap none. */
    if ((size_t)__builtin_popcountll(a->set & ~b->set) > edits ||
        (size_t)__builtin_popcountll(b->set & ~a->set) > edits)
        return FAR;
    for (size_t j = 0; j <= n && j <= band + 1; j++) rows[0][j] = (unsigned)j * EDIT;
    for (size_t i = 1; i <= m; i++) {
        unsigned *now = rows[i % 3], *last = rows[(i - 1) % 3], *before = rows[(i + 1) % 3];
        size_t from = i > band ? i - band : 1, to = i + band < n ? i + band : n;
        unsigned least = now[from - 1] = (unsigned)i * EDIT; /* outside the band: too far */
        for (size_t j = from; j <= to; j++) {
            bool same = a->letters[i - 1] == b->letters[j - 1];
            unsigned less = (j < i + band ? last[j] : FAR) + missing_cost(a, i),
                     more = now[j - 1] + missing_cost(b, j);
            now[j] = least_of(last[j - 1] + (same ? 0 : EDIT), least_of(less, more));
            if (i > 1 && j > 1 && a->letters[i - 1] == b->letters[j - 2] &&
                a->letters[i - 2] == b->letters[j - 1])
                now[j] = least_of(now[j], before[j - 2] + SLIP);
            least = least_of(least, now[j]);
        }
        if (least > limit + EDIT - SLIP) return FAR;
    }
    return rows[m % 3][n];
}

/* Whether word begins with typed and continues. */
static bool continues(const spelled *typed, const spelled *word)
{
    return typed->count > 1 && word->count > typed->count &&
           memcmp(word->letters, typed->letters, typed->count * sizeof typed->letters[0]) == 0;
}

/* The distance of word from typed, if it is at most limit. */
static unsigned cost_of(const spelled *typed, const spelled *word, unsigned limit)
{
    uint64_t large = word->large;
    unsigned far = distance(typed, word, limit);
    if (continues(typed, word)) {
        far = least_of(far, EDIT + least_of((unsigned)(word->count - typed->count), EDIT - 1));
        large &= (UINT64_C(1) << typed->count) - 1;
    } else if (far > limit) {
        return FAR;
    }
    if (word->count > 0 && word->letters[0] != typed->letters[0]) far += FIRST;
    if (large != typed->large) far += CASE;
    if (word->spaced != typed->spaced) far += SPACE;
    return far;
}

/* The best words so far, nearest first. */
typedef struct {
    unsigned costs[MOST];
    int32_t *tokens;
    size_t count, most;
} ranking;

/* Adds a word. Words come in the order of their tokens, so of two equal distances the first stays
 * first. */
static void add_word(ranking *best, unsigned cost, int32_t token)
{
    size_t at = best->count < best->most ? best->count++ : best->most - 1;
    for (; at > 0 && best->costs[at - 1] > cost; at--) {
        best->costs[at] = best->costs[at - 1];
        best->tokens[at] = best->tokens[at - 1];
    }
    best->costs[at] = cost;
    best->tokens[at] = token;
}

size_t embla_vocab_suggest(const embla_vocab *vocab, const char *word, size_t length, size_t k,
                           int32_t *out)
{
    spelled typed, other;
    ranking best = {.tokens = out, .most = k < MOST ? k : MOST};
    if (!vocab || !word || !out || k == 0) return 0;
    read_word(word, length, LONGEST, &typed);
    if (typed.count == 0 || typed.more) return 0;
    size_t edits = typed.count == 1 ? 0 : 1 + typed.count / 5;
    unsigned limit = EDIT * (unsigned)(edits < 4 ? edits : 4);
    for (size_t i = 0; i < vocab->count; i++) {
        const embla_name *name = &vocab->words[i];
        read_word(name->bytes, name->length, typed.count + TAIL, &other);
        unsigned worst = best.count < best.most ? FAR : best.costs[best.most - 1];
        unsigned cost = cost_of(&typed, &other, least_of(limit, worst));
        if (cost < worst) add_word(&best, cost, (int32_t)name->number);
    }
    /* Words that are a whole letter further away than the best are noise. */
    while (best.count > 1 && best.costs[best.count - 1] >= best.costs[0] + EDIT) best.count--;
    return best.count;
}
