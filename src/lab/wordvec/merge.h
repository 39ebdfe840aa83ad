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

/* Adds the changes of `count` lanes to the rows, and empties the lanes. Each row gets the changes
 * of its lanes in their order, from one thread. */
void embla_merge_rows(const embla_shop *shop, embla_lane *lanes, size_t count, embla_merge *merge);

#endif
