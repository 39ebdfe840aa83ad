/* SPDX-License-Identifier: Apache-2.0 */
/* De-duplicated batches over any source of rows. */
#ifndef EMBLA_LOOKUP_BATCH_H
#define EMBLA_LOOKUP_BATCH_H

#include "embla_store.h"
#include "lookup/lookup.h"

/* Creates the lookup call for the public options, which may be NULL. */
embla_lookup_call embla_batch_call(const embla_row_source *source, const int64_t *rows,
                                   size_t count, const embla_store_lookup_options *options,
                                   void *out);
/* Creates a batch of at most `most` row numbers. The source is copied; its owner must outlive the
 * batch. */
EMBLA_CHECKED embla_status embla_batch_over(const embla_row_source *source, size_t most,
                                            embla_batch **out);

#endif
