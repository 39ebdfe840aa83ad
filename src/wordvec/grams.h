/* SPDX-License-Identifier: Apache-2.0 */
/* Character n-grams of words, as in fastText (Bojanowski, Grave, Joulin and Mikolov, "Enriching
 * Word Vectors with Subword Information", 2017).
 *
 * An n-gram of "<word>" has n characters of UTF-8. A hash gives its bucket, which n-grams may
 * share. Only buckets that a word of the vocabulary uses have a row.
 */
#ifndef EMBLA_WORDVEC_GRAMS_H
#define EMBLA_WORDVEC_GRAMS_H

#include "base/arena.h"
#include "files/names.h"

enum {
    EMBLA_GRAM_LONGEST = 16,                    /* characters */
    EMBLA_GRAMS_MOST = 257 * EMBLA_GRAM_LONGEST /* n-grams of a word of 255 bytes */
};

/* Which n-grams, and how many buckets. */
typedef struct {
    size_t least, most; /* characters */
    int64_t buckets;
} embla_gram_rule;

/* Writes the buckets of a word's n-grams, in fastText's order, and returns their number. length is
 * at most 255. */
size_t embla_grams_of(const embla_gram_rule *rule, const char *word, size_t length,
                      int32_t out[EMBLA_GRAMS_MOST]);

typedef struct {
    embla_gram_rule rule;
    uint64_t *first;  /* words + 1: where the list of each word begins in `rows` */
    int32_t *rows;    /* of each n-gram of each word */
    int32_t *buckets; /* of each row, ascending */
    int64_t count;    /* rows */
    float *values;    /* count x stride; the caller's */
} embla_grams;

/* Lists the n-grams of words. */
EMBLA_CHECKED embla_status embla_grams_make(const embla_gram_rule *rule, const embla_name *words,
                                            size_t count, embla_arena *arena, embla_grams *out);
/* The mean of a word's own row and of its n-grams' rows. */
void embla_grams_mean(const embla_grams *grams, int32_t word, const float *own, size_t stride,
                      float *out);

#endif
