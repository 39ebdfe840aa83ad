/* SPDX-License-Identifier: Apache-2.0 */
/* After a step: the changes that lanes made to their copies go to the rows. */
#ifndef EMBLA_WORDVEC_MERGE_H
#define EMBLA_WORDVEC_MERGE_H

#include "wordvec/lane.h"

/* Memory for the changes of words with n-grams. */
typedef struct {
    float *changes;   /* room x stride */
    int32_t *tokens;  /* the words that changed, each once */
    int32_t *changed; /* for each row of n-grams: how many words change it; 0 between steps */
    size_t room;
} embla_merge;

/* One of `count` processes merges the tokens whose number modulo count is `index`, and every input
 * row of words with n-grams. A process alone is {0, 1}. */
typedef struct {
    size_t index, count;
} embla_merge_part;

/* How many copies of rows the lanes have, and of how many rows: of inputs, then of outputs. */
typedef struct {
    int64_t copies[2], rows[2];
} embla_merge_overlap;

/* Whether this part has the input row, or the output row, of a token. */
static inline bool embla_merge_owns(const embla_shop *shop, embla_merge_part part, bool output,
                                    int32_t token)
{
    return (shop->grams && !output) || (size_t)token % part.count == part.index;
}

/* Counts the copies of the rows of a part. Only CBOW needs it: 0 for skip-gram. */
EMBLA_PRIVATE void embla_merge_count(const embla_shop *shop, embla_lane *lanes, size_t count,
                                     embla_merge_part part, embla_merge_overlap *out);
/* Adds the changes of `count` lanes to the rows of a part. Each row gets the changes of its lanes
 * in their order, from one thread. overlap is that of all parts. */
EMBLA_PRIVATE void embla_merge_rows(const embla_shop *shop, embla_lane *lanes, size_t count,
                                    embla_merge_part part, const embla_merge_overlap *overlap,
                                    embla_merge *merge);
/* Lists the tokens whose rows another process needs: for an input row the token, for an output row
 * -1 - token. Inputs of words with n-grams are not listed: every process has merged them. */
EMBLA_PRIVATE size_t embla_merge_list(const embla_shop *shop, embla_lane *lanes, size_t count,
                                      embla_merge_part part, int32_t *out);
/* Empties the lanes. */
EMBLA_PRIVATE void embla_merge_clear(embla_lane *lanes, size_t count);

#endif
