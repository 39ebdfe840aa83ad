/* SPDX-License-Identifier: Apache-2.0 */
/* After a step: the changes that parts made to their copies go to the rows. */
#ifndef EMBLA_WORDVEC_MERGE_H
#define EMBLA_WORDVEC_MERGE_H

#include "wordvec/step_part.h"

/* Memory for the changes of words with n-grams. */
typedef struct {
    float *changes;   /* room x stride */
    int32_t *tokens;  /* the words that changed, each once */
    int32_t *changed; /* for each row of n-grams: how many words change it; 0 between steps */
    size_t room;
} embla_merge;

/* Adds the changes of `count` parts to the rows, and empties the parts. Each row gets the changes
 * of its parts in their order, from one thread. */
EMBLA_CHECKED embla_status embla_merge_rows(const embla_step_context *context,
                                            embla_step_part *parts, size_t count,
                                            embla_merge *merge);

#endif
