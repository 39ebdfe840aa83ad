/* SPDX-License-Identifier: Apache-2.0 */
/* The tensors that say which row a token has (Model2Vec). embla_checkpoint_facts is public. */
#ifndef EMBLA_CHECKPOINT_FACTS_H
#define EMBLA_CHECKPOINT_FACTS_H

#include "checkpoint/checkpoint.h"

/* The tensor with the row of each token of `table`. NULL means that token i is row i. */
const embla_entry *embla_facts_mapping(const embla_checkpoint *checkpoint,
                                       const embla_entry *table);
/* How many tokens a mapping has. EMBLA_ERR_FORMAT unless it is a list of I32 or I64 (M1). */
EMBLA_CHECKED embla_status embla_facts_mapping_count(const embla_checkpoint *checkpoint,
                                                     const embla_entry *mapping, int64_t *out);
/* Reads the row of each token to out, which has room for all of them. EMBLA_ERR_FORMAT unless each
 * is below rows (M2). */
EMBLA_CHECKED embla_status embla_facts_mapping_read(const embla_checkpoint *checkpoint,
                                                    const embla_entry *mapping, int64_t rows,
                                                    int64_t *out);

#endif
