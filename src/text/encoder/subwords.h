/* SPDX-License-Identifier: Apache-2.0 */
/* Character n-grams of words, as in fastText (Bojanowski, Grave, Joulin and Mikolov, "Enriching
 * Word Vectors with Subword Information", 2017), and the table that has their rows.
 *
 * An n-gram of "<word>" has n characters of UTF-8. A hash gives its bucket, which n-grams may
 * share.
 */
#ifndef EMBLA_ENCODER_SUBWORDS_H
#define EMBLA_ENCODER_SUBWORDS_H

#include "base/arena.h"
#include "embla_text.h"

enum {
    EMBLA_WORD_LONGEST = 255,                   /* bytes; longer words are skipped */
    EMBLA_GRAM_LONGEST = 16,                    /* characters */
    EMBLA_GRAMS_MOST = 257 * EMBLA_GRAM_LONGEST /* n-grams of a word of 255 bytes */
};

/* Which n-grams, and how many buckets. */
typedef struct {
    size_t least, most; /* characters */
    int64_t buckets;
} embla_gram_rule;

/* Writes the buckets of a word's n-grams, in fastText's order, and returns their number. length is
 * at most EMBLA_WORD_LONGEST. */
EMBLA_PRIVATE size_t embla_grams_of(const embla_gram_rule *rule, const char *word, size_t length,
                                    int32_t out[EMBLA_GRAMS_MOST]);

struct embla_subwords {
    embla_arena arena;
    const char *name;
    embla_table *table;
    embla_gram_rule rule;
    int64_t first;          /* the row of bucket 0, if all buckets have one (fastText) */
    const int32_t *buckets; /* of each row, ascending; NULL if all buckets have one */
    int64_t count;          /* rows of n-grams */
    /* fastText: the rows before `first` are those of words alone. The vector of a word is the mean
     * of its row and of its n-grams' rows. Embla's own file has these means. */
    bool with_words;
};

/* Writes the rows of a word's n-grams in the table, without those that have none, and returns their
 * number. length is at most EMBLA_WORD_LONGEST. */
size_t embla_subwords_rows(const embla_subwords *subwords, const char *word, size_t length,
                           int32_t rows[EMBLA_GRAMS_MOST]);

#endif
