/* SPDX-License-Identifier: Apache-2.0 */
/* Reads each row with one pread. Single-threaded, simple and slow: the reference for all other
 * placements. */
#include "store/store.h"

static embla_status read_each(const void *store, const embla_read_job *job)
{
    for (size_t i = 0; i < job->count; i++)
        EMBLA_TRY(
            embla_extents_read(store, job->rows[i], job->part, job->out + i * job->out_stride));
    return EMBLA_OK;
}

/* Nothing to prepare: the files are already open. */
static embla_status open_read(embla_store *store)
{
    (void)store;
    return EMBLA_OK;
}

const embla_placement_ops embla_placement_read = {.name = "read",
                                                  .open = open_read,
                                                  .warm = embla_extents_warm,
                                                  .kind = {.read = read_each,
                                                           .check = embla_sources_check,
                                                           .reread = embla_extents_read,
                                                           .locate = embla_extents_locate,
                                                           .unit = 4096,
                                                           .at_once = 32,
                                                           .distinct = true}};
