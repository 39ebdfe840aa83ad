/* SPDX-License-Identifier: Apache-2.0 */
/* The words that get rows: the most frequent first. Word i is token i and row i. */
#ifndef EMBLA_WORDVEC_LEXICON_H
#define EMBLA_WORDVEC_LEXICON_H

#include "files/names.h"
#include "wordvec/count.h"

typedef struct embla_lexicon {
    embla_name *names; /* the text of each word */
    int64_t *counts;
    int64_t count;          /* words */
    int64_t tokens;         /* the sum of counts */
    double kept;            /* words of the text that are kept, on average */
    uint32_t *keep;         /* a word is kept if a random number of 32 bits is not above this */
    uint64_t *draw;         /* sums of count^0.75, scaled so that the last is 2^63 */
    embla_word_list *index; /* the same words in the same order, to find a token */
    embla_arena arena;
} embla_lexicon;

/* Takes the words that occur at least `least` times, at most `most` of them. Equally frequent words
 * are ordered by their bytes. sample is the share of the text above which a word is left out at
 * random; 0 means never. */
EMBLA_CHECKED embla_status embla_lexicon_make(const embla_word_list *words, int64_t least,
                                              int64_t most, double sample, embla_lexicon *out);
void embla_lexicon_free(embla_lexicon *lexicon);
/* The token of a word, or -1. */
int32_t embla_lexicon_find(const embla_lexicon *lexicon, const uint8_t *word, size_t length);
/* The word that a random number draws: each as often as its count^0.75. */
int32_t embla_lexicon_draw(const embla_lexicon *lexicon, uint64_t random);

#endif
