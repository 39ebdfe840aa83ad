/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels in plain C: the reference for every other set, and the set for other CPUs. */
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

static void dots(const float *const rows[EMBLA_DOTS], const float *y, size_t n, double *out,
                 double *squares)
{
    embla_body_dots(rows, y, n, out, squares);
}

static size_t reach(const float *x, float scale_by, float add, const float *limits, size_t n,
                    uint32_t *at)
{
    return embla_body_reach(x, scale_by, add, limits, n, at);
}

EMBLA_KERNEL_SET(scalar, EMBLA_ISA_SCALAR);
