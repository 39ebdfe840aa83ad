/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the words of a text in one pass, in bounded memory. */
#ifndef EMBLA_WORDVEC_COUNT_H
#define EMBLA_WORDVEC_COUNT_H

#include "base/arena.h"
#include "files/names.h"
#include "wordvec/reading.h"

/* A different word and how often it occurs. text has a byte with the length, then the word. Half a
 * cache line: a word of up to 8 bytes is compared without reading its text. */
typedef struct {
    uint64_t first;  /* its first 8 bytes; a shorter word is followed by zeros */
    uint32_t tag;    /* the high half of its hash */
    uint32_t length; /* bytes of the word */
    int64_t count;   /* 0 means that the slot is free */
    const uint8_t *text;
} embla_word_slot;

/* A hash table of words. Its seed differs from process to process, so that no text can be made of
 * words that collide. Nothing that is computed depends on the order of its slots. */
typedef struct {
    embla_word_slot *slots;
    size_t room, used; /* room is a power of two */
    uint64_t seed;
    embla_arena arena; /* of the texts */
    uint8_t *space;    /* what is left of the arena's last piece */
    size_t left;
} embla_counter;

typedef struct {
    embla_counter words;
    int64_t tokens;   /* words of the text, each time they occur */
    int64_t too_long; /* words that were skipped, see EMBLA_WORD_LONGEST */
    int64_t dropped;  /* different words that were dropped to bound memory */
    int64_t floor;    /* they had occurred at most so many times by then; 0 if none */
    uint64_t sum[2];  /* a checksum of the text */
} embla_text_counts;

/* Counts the words of a text, section by section. When there are more than `most` different words,
 * those that have occurred least are dropped; which ones depends on the text alone. */
EMBLA_CHECKED embla_status embla_count_words(const embla_reading *reading, size_t most,
                                             const embla_wordvec_options *options,
                                             embla_text_counts *out);
void embla_counter_free(embla_counter *counter);

/* The hash of a word. */
uint64_t embla_word_hash(const uint8_t *word, size_t length, uint64_t seed);
/* A seed of this process. */
uint64_t embla_word_seed(void);

#endif
