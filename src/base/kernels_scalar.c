/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels in plain C: what every other set has to agree with, and what runs on
 * CPUs that have no set of their own. */
#include "base/kernels_body.h"

EMBLA_PLAIN_KERNELS()

static void copy_rows(const embla_copy_job *job)
{
    for (size_t i = 0; i < job->count; i++)
        memcpy(job->out + i * job->out_stride, job->data + (size_t)job->rows[i] * job->row_stride,
               job->row_bytes);
}

static void stream(void *out, const void *in, size_t bytes)
{
    memcpy(out, in, bytes);
}

static void fence(void)
{
}

const embla_kernels embla_kernels_scalar = {
    .name = "scalar",
    .isa = EMBLA_ISA_SCALAR,
    .tokens_below = tokens_below,
    .rows_below = rows_below,
    .widen = widen,
    .copy_rows = copy_rows,
    .stream = stream,
    .fence = fence,
    .scale_add = scale_add,
    .scale = scale,
    .dot = dot,
    .accumulate = accumulate,
    .maximum = maximum,
    .turn = turn,
    .uniform = uniform,
    .normal = normal,
};
