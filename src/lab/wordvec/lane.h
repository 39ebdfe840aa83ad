/* SPDX-License-Identifier: Apache-2.0 */
/* A lane trains on one block of text at a time, on copies of the rows that the block needs. All
 * lanes of a step start from the same rows. Afterwards the changes of each row are added up in the
 * order of lanes (merge.c). The number of lanes is fixed, so the result does not depend on how many
 * threads work on them.
 */
#ifndef EMBLA_WORDVEC_LANE_H
#define EMBLA_WORDVEC_LANE_H

#include "wordvec/grams.h"
#include "wordvec/lexicon.h"

enum { EMBLA_LANES = 8 };

/* The rows of one table that a lane has copied. */
typedef struct {
    float *rows;      /* room x stride */
    float *starts;    /* with n-grams: the copies as they were; else NULL */
    int32_t *tokens;  /* of each copy */
    int32_t *copy_of; /* for each token: its copy plus 1, or 0 */
    size_t count, room;
} embla_copies;

/* What all lanes share: it does not change while they work. */
typedef struct {
    const embla_wordvec_options *options;
    const embla_reading *reading;
    const embla_lexicon *lexicon;
    const embla_grams *grams; /* NULL if words are the only rows */
    float *input, *output;    /* words x stride; lanes write to them only with hogwild */
    size_t stride;
    uint64_t block; /* bytes of text */
    size_t pool;    /* negatives drawn for a block */
    size_t usual;   /* words of a block that are kept, on average */
} embla_shop;

typedef struct {
    embla_copies input, output;
    int32_t *words; /* the words of the block that are kept; -1 ends a line */
    float **pool;   /* rows of its negatives */
    size_t room;    /* of words */
    size_t stride;  /* of the copies */
    int64_t tokens; /* words of the block, also those that were left out */
    double loss, pairs;
} embla_lane;

/* The most words that a block can have. */
size_t embla_lane_words(const embla_shop *shop);
/* The bytes that a lane usually needs. */
uint64_t embla_lane_bytes(const embla_shop *shop);
EMBLA_CHECKED embla_status embla_lane_make(const embla_shop *shop, embla_arena *arena,
                                           embla_lane *out);
/* Frees the copies; the rest belongs to the arena. */
void embla_lane_free(embla_lane *lane);

/* Trains on block number `block` of an epoch. */
void embla_lane_train(const embla_shop *shop, embla_lane *lane, uint64_t epoch, uint64_t block,
                      float rate);
/* Forgets the copies. */
void embla_copies_clear(embla_copies *copies);

#endif
