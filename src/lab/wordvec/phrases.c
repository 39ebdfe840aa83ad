/* SPDX-License-Identifier: Apache-2.0 */
#include "wordvec/phrases.h"

#include <string.h>

enum { BETWEEN = '_' }; /* in a phrase */

/* ---- reading ---- */

/* Writes a, a byte and b to reader->both. False if that is longer than a word can be. */
static bool join(embla_word_reader *w, const uint8_t *a, size_t a_length, uint8_t between,
                 const uint8_t *b, size_t b_length)
{
    if (a_length + 1 + b_length > EMBLA_WORD_LONGEST) return false;
    memcpy(w->both, a, a_length);
    w->both[a_length] = between;
    memcpy(w->both + a_length + 1, b, b_length);
    return true;
}

static void keep_other(embla_word_reader *w)
{
    memcpy(w->other, w->word, w->length);
    w->other_length = w->length;
    w->other_new_line = w->new_line;
    w->has_other = true;
}

bool embla_phrase_pair(embla_word_reader *w)
{
    const embla_lexicon *known = w->reading->known;
    while (embla_reader_single(w)) {
        bool pair = w->has_other && !w->new_line &&
                    join(w, w->other, w->other_length, 0, w->word, w->length);
        size_t both = w->other_length + 1 + w->length;
        w->has_other = false;
        if (embla_lexicon_find(known, w->word, w->length) < 0) continue;
        keep_other(w);
        if (!pair) continue;
        w->word = w->both;
        w->length = both;
        w->inside = true;
        return true;
    }
    return false;
}

bool embla_phrase_word(embla_word_reader *w)
{
    uint8_t first[EMBLA_WORD_LONGEST + 1];
    if (!w->has_other) {
        if (!embla_reader_single(w)) return false;
        keep_other(w);
    }
    size_t length = w->other_length;
    bool new_line = w->other_new_line;
    memcpy(first, w->other, length);
    w->has_other = false;
    w->inside = true;
    if (embla_reader_single(w)) {
        size_t both = length + 1 + w->length;
        if (!w->new_line && join(w, first, length, 0, w->word, w->length) &&
            embla_lexicon_find(w->reading->phrases, w->both, both) >= 0) {
            w->both[length] = BETWEEN;
            length = both;
        } else {
            keep_other(w);
            memcpy(w->both, first, length);
        }
    } else {
        memcpy(w->both, first, length);
    }
    w->inside = true;
    w->word = w->both;
    w->length = length;
    w->new_line = new_line;
    return true;
}

/* ---- finding ---- */

/* Whether a pair is a phrase. */
static bool is_phrase(const embla_counted_word *pair, const embla_lexicon *words, int64_t tokens,
                      const embla_wordvec_options *o)
{
    const uint8_t *a = (const uint8_t *)pair->at, *end = a + pair->length,
                  *gap = memchr(a, 0, pair->length);
    int32_t first = embla_lexicon_find(words, a, (size_t)(gap - a));
    int32_t second = embla_lexicon_find(words, gap + 1, (size_t)(end - gap - 1));
    if (first < 0 || second < 0) return false;
    double chance = (double)words->counts[first] * (double)words->counts[second];
    return (double)((int64_t)pair->count - o->min_count) * (double)tokens / chance > o->phrases;
}

/* Keeps the pairs that are phrases: all others get the count 1, which is too few. */
static embla_status choose(embla_text_counts *pairs, const embla_lexicon *words, int64_t tokens,
                           const embla_wordvec_options *o, embla_lexicon *out)
{
    for (size_t i = 0; i < pairs->words->count; i++) {
        embla_counted_word *pair = &pairs->words->words[i];
        if (pair->count > 1 && !is_phrase(pair, words, tokens, o)) pair->count = 1;
    }
    return embla_lexicon_make(pairs->words, 2, INT64_MAX, 0, out);
}

static embla_status find_in(embla_reading *r, size_t most, const embla_wordvec_options *o,
                            const embla_lexicon *words, int64_t tokens, embla_lexicon *out)
{
    embla_text_counts pairs;
    r->known = words;
    embla_status status = embla_count_words(r, most, o, &pairs);
    r->known = NULL;
    EMBLA_TRY(status);
    status = choose(&pairs, words, tokens, o, out);
    embla_word_list_free(pairs.words);
    return status;
}

embla_status embla_phrases_find(embla_reading *r, size_t most, const embla_wordvec_options *o,
                                embla_lexicon *out)
{
    embla_text_counts counts;
    embla_lexicon words;
    EMBLA_TRY(embla_count_words(r, most, o, &counts));
    embla_status status = embla_lexicon_make(counts.words, o->min_count, INT64_MAX, 0, &words);
    embla_word_list_free(counts.words);
    EMBLA_TRY(status);
    if (words.count > 0) status = find_in(r, most, o, &words, counts.tokens, out);
    embla_lexicon_free(&words);
    if (status == EMBLA_OK && out->count > 0) r->phrases = out;
    return status;
}
