/* SPDX-License-Identifier: Apache-2.0 */
/* A gate for the values of an n-gram table: a value is added to the residual stream as far as its
 * key is similar to the stream. Tokens are independent; a token has one gate.
 *
 * Key and stream are normalized (root mean square 1) before they are compared, so the gate does not
 * depend on the size of rows. The argument of the sigmoid is between -sqrt(dim) and sqrt(dim).
 */
#include <math.h>

#include "base/parallel.h"
#include "base/threads.h"
#include "model/layers.h"
#include "model/real.h"

typedef struct {
    double epsilon;
    size_t dim, stride;
    const void *x, *key, *value;
    void *y, *stats, *dkey, *dvalue; /* backward: y is dx */
} gate_job;

/* 1 / (1 + e^-x), with the same bits on every instruction set. */
EMBLA_BODY float sigmoid_f32(float x)
{
    return 1.0f / (1.0f + embla_exp_near(embla_exp_clamp(-x)));
}

EMBLA_BODY double sigmoid_f64(double x)
{
    return 1.0 / (1.0 + exp(-x));
}

#define EMBLA_REAL 32
#include "model/layers_gate_body.h"
#undef EMBLA_REAL
#define EMBLA_REAL 64
#include "model/layers_gate_body.h"
#undef EMBLA_REAL

typedef void gate_fn(const gate_job *job, size_t first, size_t n);

typedef struct {
    gate_fn *f;
    const gate_job *job;
} tokens_job;

static embla_status gate_tokens(void *job, size_t first, size_t end, size_t slot)
{
    const tokens_job *t = job;
    (void)slot;
    t->f(t->job, first, end - first);
    return EMBLA_OK;
}

static embla_status each_token(const embla_layer_way *way, gate_fn *f, const gate_job *job,
                               size_t n)
{
    int threads =
        embla_threads_for(way->threads, 4 * n * job->dim * embla_real_bytes(way->precision));
    return embla_share(threads, n, 0, gate_tokens, &(tokens_job){f, job});
}

embla_status embla_gate_forward(const embla_layer_way *way, double epsilon, const void *x,
                                const void *key, const void *value, size_t stride, size_t n,
                                size_t dim, void *y, void *stats)
{
    gate_job job = {.epsilon = epsilon,
                    .dim = dim,
                    .stride = stride,
                    .x = x,
                    .key = key,
                    .value = value,
                    .y = y,
                    .stats = stats};
    return each_token(
        way, EMBLA_PICK(way->precision == EMBLA_GPT_F64 ? gate_rows_f64 : gate_rows_f32), &job, n);
}

embla_status embla_gate_backward(const embla_layer_way *way, const void *x, const void *key,
                                 const void *value, size_t stride, const void *stats, size_t n,
                                 size_t dim, void *dx, void *dkey, void *dvalue)
{
    gate_job job = {.dim = dim,
                    .stride = stride,
                    .x = x,
                    .key = key,
                    .value = value,
                    .y = dx,
                    .stats = (void *)(uintptr_t)stats,
                    .dkey = dkey,
                    .dvalue = dvalue};
    return each_token(
        way, EMBLA_PICK(way->precision == EMBLA_GPT_F64 ? gate_back_f64 : gate_back_f32), &job, n);
}
