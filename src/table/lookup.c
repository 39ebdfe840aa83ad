/* SPDX-License-Identifier: Apache-2.0 */
/* Token or row number in, row out. */
#include "table/gather.h"

static embla_status lookup(embla_gather_job job, const embla_lookup_options *options)
{
    if (options) {
        job.out_stride = options->out_stride;
        job.threads = options->threads;
        job.raw = options->raw;
        job.out_dtype = options->out_dtype;
    }
    return embla_gather(&job);
}

embla_status embla_lookup(const embla_table *table, const int32_t *tokens, size_t count,
                          const embla_lookup_options *options, void *out)
{
    embla_gather_job job = {.table = table, .tokens = tokens, .count = count, .out = out};
    return lookup(job, options);
}

embla_status embla_lookup_rows(const embla_table *table, const int64_t *rows, size_t count,
                               const embla_lookup_options *options, void *out)
{
    embla_gather_job job = {.table = table, .rows = rows, .count = count, .out = out};
    return lookup(job, options);
}
