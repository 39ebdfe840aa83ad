/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the words of a text in one pass, in bounded memory. */
#ifndef EMBLA_WORDVEC_COUNT_H
#define EMBLA_WORDVEC_COUNT_H

#include "corpus/word_list.h"
#include "wordvec/reading.h"

typedef struct {
    embla_word_list *words;
    int64_t tokens;   /* words of the text, each time they occur */
    int64_t too_long; /* words that were skipped, see EMBLA_WORD_LONGEST */
    int64_t dropped;  /* different words that were dropped to bound memory */
    int64_t floor;    /* they had occurred at most so many times by then; 0 if none */
    uint64_t sum[2];  /* a checksum of the text */
} embla_text_counts;

/* Counts the words of a text, section by section. When there are more than `most` different words,
 * those that have occurred least are dropped; which ones depends on the text alone. The caller
 * frees out->words. */
EMBLA_CHECKED embla_status embla_count_words(const embla_reading *reading, size_t most,
                                             const embla_wordvec_options *options,
                                             embla_text_counts *out);

#endif
