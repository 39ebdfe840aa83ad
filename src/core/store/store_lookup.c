/* SPDX-License-Identifier: Apache-2.0 */
/* Lookups in a store: passes the store to lookup/ as a source of rows. */
#include "lookup/batch.h"

#include "base/options.h"
#include "store/store.h"

embla_row_source embla_store_source(const embla_store *store)
{
    return (embla_row_source){.row = &store->row,
                              .rows = store->rows,
                              .data = store->data,
                              .stride = store->stride,
                              .first = store->first,
                              .held = store->held < store->rows ? store->held : 0,
                              .zeros = store->engine.zeros,
                              .kind = &store->placement->kind,
                              .owner = store};
}

embla_status embla_store_lookup(const embla_store *store, const int64_t *rows, size_t count,
                                const embla_store_lookup_options *options, void *out)
{
    EMBLA_TRY(embla_options_check(options));
    EMBLA_NEED(store);
    const embla_row_source source = embla_store_source(store);
    embla_lookup_call call = embla_batch_call(&source, rows, count, options, out);
    return embla_lookup_perform(&call);
}

embla_status embla_batch_new(const embla_store *store, size_t most, embla_batch **out)
{
    EMBLA_NEED(store);
    EMBLA_NEED(out);
    const embla_row_source source = embla_store_source(store);
    return embla_batch_over(&source, most, out);
}
