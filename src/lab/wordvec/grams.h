/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of the character n-grams of a vocabulary (encoder/subwords.h). Only buckets that a word uses
 * have a row.
 */
#ifndef EMBLA_WORDVEC_GRAMS_H
#define EMBLA_WORDVEC_GRAMS_H

#include "base/arena.h"
#include "encoder/subwords.h"
#include "files/names.h"

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
