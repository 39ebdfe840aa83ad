/* SPDX-License-Identifier: Apache-2.0 */
/* The struct behind embla_wordvec: a text, its words, and their rows. */
#ifndef EMBLA_WORDVEC_WORDVEC_H
#define EMBLA_WORDVEC_WORDVEC_H

#include "wordvec/merge.h"
#include "wordvec/phrases.h"

struct embla_wordvec {
    embla_wordvec_options options;
    embla_arena arena;
    embla_reading reading;
    embla_text_counts counts; /* its words are NULL after the lexicon is made */
    embla_lexicon lexicon;
    embla_lexicon phrases;
    embla_grams grams;
    embla_vocab *vocab;
    /* Rows of words as inputs and as outputs, of n-grams, and of words with their n-grams; the last
     * two are NULL without n-grams. */
    embla_table *input, *output, *gram_rows, *means;
    embla_step_context context;
    embla_step_part *parts;
    size_t part_count;
    embla_merge merge;
    int64_t per_step;       /* blocks */
    int64_t steps_of_epoch; /* steps */
    int64_t step;           /* the next one */
    int64_t means_of;       /* the step after which means were computed; -1 means never */
    bool torn;              /* a load or a step failed halfway */
};

/* The number of steps in all. */
static inline int64_t embla_wordvec_steps(const embla_wordvec *w)
{
    return w->steps_of_epoch * (int64_t)w->options.epochs;
}

#endif
