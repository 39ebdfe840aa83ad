/* SPDX-License-Identifier: Apache-2.0 */
/* Rows stay in their files. A lookup reads the pages that it needs past the page cache, many at
 * once (store/reader.h). Memory is the buffers of these reads and nothing else, however large the
 * table is. embla_store_lookup waits for its rows; tickets (store/tickets.c) need not. */
#include "files/io.h"
#include "store/reader.h"

enum { AT_ONCE = 1024 }; /* rows of one gather; their pieces are on the stack */

embla_reader *embla_direct_reader(const embla_store *store)
{
    return store->placement == &embla_placement_direct ? store->state : NULL;
}

static embla_status open_direct(embla_store *store)
{
    embla_reader *reader = NULL;
    EMBLA_TRY(embla_reader_open(store, &reader));
    store->state = reader;
    embla_status status = embla_sources_check(store);
    if (status != EMBLA_OK) embla_reader_close(reader);
    return status;
}

static embla_status read_some(const embla_store *store, const embla_read_job *job, size_t from,
                              size_t count)
{
    embla_row_piece pieces[EMBLA_PLANES * AT_ONCE];
    embla_gather gather;
    size_t step = embla_gather_step(store);
    embla_gather_init(&gather, store, job->rows + from, job->part,
                      job->out + from * job->out_stride, job->out_stride, pieces);
    for (size_t i = 0; i < count; i += step)
        embla_gather_add(&gather, i, count - i < step ? count - i : step, 0);
    EMBLA_TRY(embla_reader_start(store->state, &gather));
    embla_reader_wait(store->state, &gather);
    return embla_failure_say(&gather.failure);
}

static embla_status read_direct(const void *owner, const embla_read_job *job)
{
    for (size_t i = 0; i < job->count; i += AT_ONCE)
        EMBLA_TRY(read_some(owner, job, i, job->count - i < AT_ONCE ? job->count - i : AT_ONCE));
    return EMBLA_OK;
}

static embla_status describe_direct(const embla_store *store, embla_store_info *out)
{
    embla_reader_describe(store->state, out);
    return EMBLA_OK;
}

static void close_direct(embla_store *store)
{
    embla_reader_close(store->state);
}

const embla_placement_ops embla_placement_direct = {.name = "direct",
                                                    .open = open_direct,
                                                    .describe = describe_direct,
                                                    .close = close_direct,
                                                    .kind = {.read = read_direct,
                                                             .check = embla_sources_check,
                                                             .reread = embla_extents_read,
                                                             .locate = embla_extents_locate,
                                                             .unit = EMBLA_DIRECT,
                                                             .at_once = AT_ONCE,
                                                             .distinct = true}};
