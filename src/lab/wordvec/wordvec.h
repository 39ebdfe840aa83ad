/* SPDX-License-Identifier: Apache-2.0 */
/* The struct behind embla_wordvec: a text, its words, and their rows. */
#ifndef EMBLA_WORDVEC_WORDVEC_H
#define EMBLA_WORDVEC_WORDVEC_H

#include "base/checksum.h"
#include "wordvec/merge.h"
#include "wordvec/phrases.h"

/* Processes that make the steps of a training together: cluster/words_team.c fills it in. */
typedef struct {
    void *owner;       /* passed to each function; NULL without a team */
    size_t first, end; /* the lanes of this process; others train the rest */
    /* Merges the lanes of all processes, of which a step has `count`. Lanes of others get their
     * sums of tokens and losses. status: whether this process has trained its own. Collective. */
    embla_status (*merge)(void *owner, embla_wordvec *words, embla_status status, size_t count);
    void (*leave)(void *owner); /* frees the owner */
} embla_wordvec_ranks;

struct embla_wordvec {
    embla_wordvec_options options;
    embla_arena arena;
    embla_reading reading;
    embla_text_counts counts; /* its table of words is empty after the lexicon is made */
    embla_lexicon lexicon;
    embla_lexicon phrases;
    embla_grams grams;
    embla_vocab *vocab;
    /* Rows of words as inputs and as outputs, of n-grams, and of words with their n-grams; the last
     * two are NULL without n-grams. */
    embla_table *input, *output, *gram_rows, *means;
    embla_shop shop;
    embla_lane *lanes;
    size_t lane_count;
    embla_merge merge;
    int64_t per_step;       /* blocks */
    int64_t steps_of_epoch; /* steps */
    int64_t step;           /* the next one */
    int64_t means_of;       /* the step after which means were computed; -1 means never */
    bool torn;              /* a load or a step failed halfway */
    embla_wordvec_ranks team;
};

/* The number of steps in all. */
static inline int64_t embla_wordvec_steps(const embla_wordvec *w)
{
    return w->steps_of_epoch * (int64_t)w->options.epochs;
}

/* A checksum of everything that must be equal to train together: text, words, options and step. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_wordvec_sum(const embla_wordvec *words,
                                                           embla_checksum *out);

#endif
