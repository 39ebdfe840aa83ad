/* SPDX-License-Identifier: Apache-2.0 */
/* De-duplicated batches over any source of rows. */
#ifndef EMBLA_LOOKUP_BATCH_H
#define EMBLA_LOOKUP_BATCH_H

#include "embla_store.h"
#include "lookup/lookup.h"

/* The call that the public options ask for. options may be NULL. */
embla_lookup_call embla_batch_call(const embla_row_source *source, const int64_t *rows,
                                   size_t count, const embla_store_lookup_options *options,
                                   void *out);
/* A batch of at most `most` row numbers over a source, which is copied; its owner must outlive
 * the batch. */
EMBLA_CHECKED embla_status embla_batch_over(const embla_row_source *source, size_t most,
                                            embla_batch **out);

#endif
