/* SPDX-License-Identifier: Apache-2.0 */
/* Two words that occur together more often than by chance are read as one: "new york" as "new_york"
 * (Mikolov et al., "Distributed Representations of Words and Phrases and their Compositionality",
 * 2013; word2phrase).
 *
 * A pair is counted as a word: the first, a byte 0, the second. No word contains that byte.
 */
#ifndef EMBLA_WORDVEC_PHRASES_H
#define EMBLA_WORDVEC_PHRASES_H

#include "wordvec/lexicon.h"

/* Counts the words and the pairs of a text, and keeps pairs whose score is above options->phrases:
 * (count of the pair - options->min_count) x words of the text / (count of the first x of the
 * second). reading then reads them as one word. Free *out when it is no longer used. */
EMBLA_CHECKED embla_status embla_phrases_find(embla_reading *reading, size_t most,
                                              const embla_wordvec_options *options,
                                              embla_lexicon *out);

/* For embla_reader_next. The next pair of neighbours that are both known. */
bool embla_phrase_pair(embla_word_reader *reader);
/* The next word or phrase. */
bool embla_phrase_word(embla_word_reader *reader);

#endif
