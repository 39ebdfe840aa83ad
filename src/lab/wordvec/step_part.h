/* SPDX-License-Identifier: Apache-2.0 */
/* A part trains on one block of text at a time, on copies of the rows that the block needs. All
 * parts of a step start from the same rows. Afterwards the changes of each row are added up in the
 * order of parts (merge.c). The number of parts is fixed, so the result does not depend on how many
 * threads work on them.
 */
#ifndef EMBLA_WORDVEC_STEP_PART_H
#define EMBLA_WORDVEC_STEP_PART_H

#include "wordvec/grams.h"
#include "wordvec/lexicon.h"

enum { EMBLA_STEP_PARTS = 8 };

/* The rows of one table that a part has copied. */
typedef struct {
    float *rows;      /* room x stride */
    float *starts;    /* with n-grams: the copies as they were; else NULL */
    int32_t *tokens;  /* of each copy */
    int32_t *copy_of; /* for each token: its copy plus 1, or 0 */
    size_t count, room;
} embla_copies;

/* What all parts share: it does not change while they work. */
typedef struct {
    const embla_wordvec_options *options;
    const embla_reading *reading;
    const embla_lexicon *lexicon;
    const embla_grams *grams; /* NULL if words are the only rows */
    float *input, *output;    /* words x stride; parts write to them only with hogwild */
    size_t stride;
    uint64_t block; /* bytes of text */
    size_t pool;    /* negatives drawn for a block */
    size_t usual;   /* words of a block that are kept, on average */
} embla_step_context;

typedef struct {
    embla_copies input, output;
    int32_t *words; /* the words of the block that are kept; -1 ends a line */
    float **pool;   /* rows of its negatives */
    size_t room;    /* of words */
    size_t stride;  /* of the copies */
    int64_t tokens; /* words of the block, also those that were left out */
    double loss, pairs;
} embla_step_part;

/* The most words that a block can have. */
size_t embla_step_part_words(const embla_step_context *context);
/* The bytes that a part usually needs. */
uint64_t embla_step_part_bytes(const embla_step_context *context);
EMBLA_CHECKED embla_status embla_step_part_make(const embla_step_context *context,
                                                embla_arena *arena, embla_step_part *out);
/* Frees the copies; the rest belongs to the arena. */
void embla_step_part_free(embla_step_part *part);

/* Trains on block number `block` of an epoch. */
void embla_step_part_train(const embla_step_context *context, embla_step_part *part, uint64_t epoch,
                           uint64_t block, float rate);
/* Forgets the copies. */
void embla_copies_clear(embla_copies *copies);

#endif
