/* SPDX-License-Identifier: Apache-2.0 */
/* A gate for the values of an n-gram table: a value is added to the residual stream as far as its
 * key is similar to the stream. Tokens are independent; a token has one gate.
 *
 * Key and stream are normalized (root mean square 1) before they are compared, so the gate does not
 * depend on the size of rows. The argument of the sigmoid is between -sqrt(dim) and sqrt(dim).
 *
 * Sums over a token are in double: number i goes to one of 16 partial sums, i mod 16, which are
 * added as a tree.
 */
#include <math.h>

#include "base/parallel.h"
#include "base/threads.h"
#include "model/layers.h"
#include "model/layers_vec.h"

typedef struct {
    double epsilon;
    size_t dim, stride;
    const float *x, *key, *value;
    float *y, *stats, *dkey, *dvalue; /* backward: y is dx */
} gate_job;

/* 1 / (1 + e^-x), with the same bits on every instruction set. */
EMBLA_BODY float sigmoid(float x)
{
    return 1.0f / (1.0f + embla_exp_near(embla_exp_clamp(-x)));
}

/* a . b, products exact or rounded once, in double. */
EMBLA_BODY double dot(const float *a, const float *b, size_t dim)
{
    embla_vec_f64 low = {0}, high = {0};
    double sums[EMBLA_SUMS];
    size_t i = 0;
    for (; i + EMBLA_SUMS <= dim; i += EMBLA_SUMS) {
        low += EMBLA_WIDEN(a + i) * EMBLA_WIDEN(b + i);
        high += EMBLA_WIDEN(a + i + 8) * EMBLA_WIDEN(b + i + 8);
    }
    *(embla_vec_f64 *)sums = low;
    *(embla_vec_f64 *)(sums + 8) = high;
    for (size_t j = 0; i + j < dim; j++) sums[j] += (double)a[i + j] * (double)b[i + j];
    return embla_add_tree(sums);
}

/* Tokens first .. first+n-1. */
EMBLA_BODY void gate_rows_body(const gate_job *job, size_t first, size_t n)
{
    size_t dim = job->dim;
    double root = sqrt((double)dim);
    for (size_t t = first; t < first + n; t++) {
        const float *x = job->x + t * dim;
        const float *key = job->key + t * job->stride;
        const float *value = job->value + t * job->stride;
        float *y = job->y + t * dim, *stats = job->stats + EMBLA_GATE_STATS * t;
        double a = 1.0 / sqrt(dot(x, x, dim) / (double)dim + job->epsilon);
        double b = 1.0 / sqrt(dot(key, key, dim) / (double)dim + job->epsilon);
        double likeness = dot(x, key, dim) * a * b / (double)dim;
        float gate = sigmoid((float)(likeness * root));
        stats[0] = (float)a;
        stats[1] = (float)b;
        stats[2] = (float)likeness;
        stats[3] = gate;
        for (size_t i = 0; i < dim; i++) y[i] = x[i] + gate * value[i];
    }
}

/* With h = x a, k = key b and m their likeness (k . h / dim): the gate's argument m sqrt(dim) has
 * the derivative a (k - h m) / sqrt(dim) by x, b (h - k m) / sqrt(dim) by the key. */
EMBLA_BODY void gate_back_body(const gate_job *job, size_t first, size_t n)
{
    size_t dim = job->dim;
    const float one = 1;
    double root = sqrt((double)dim);
    for (size_t t = first; t < first + n; t++) {
        const float *x = job->x + t * dim;
        const float *key = job->key + t * job->stride;
        const float *value = job->value + t * job->stride;
        const float *stats = job->stats + EMBLA_GATE_STATS * t;
        float *restrict dx = job->y + t * dim;
        float *restrict dkey = job->dkey + t * job->stride;
        float *restrict dvalue = job->dvalue + t * job->stride;
        float a = stats[0], b = stats[1], m = stats[2], gate = stats[3];
        float along = (float)dot(dx, value, dim);
        float slope = (float)((double)(along * (gate * (one - gate))) / root);
        float of_x = slope * a, of_key = slope * b;
        for (size_t i = 0; i < dim; i++) {
            float h = x[i] * a, k = key[i] * b;
            dvalue[i] = gate * dx[i];
            dkey[i] = of_key * (h - k * m);
            dx[i] += of_x * (k - h * m);
        }
    }
}

EMBLA_ISA_FUNCTION(void, gate_rows, (const gate_job *job, size_t first, size_t n),
                   gate_rows_body(job, first, n);)
EMBLA_ISA_FUNCTION(void, gate_back, (const gate_job *job, size_t first, size_t n),
                   gate_back_body(job, first, n);)

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
    int threads = embla_threads_for(way->threads, 4 * n * job->dim * sizeof(float));
    return embla_share(threads, n, 0, gate_tokens, &(tokens_job){f, job});
}

embla_status embla_gate_forward(const embla_layer_way *way, double epsilon, const float *x,
                                const float *key, const float *value, size_t stride, size_t n,
                                size_t dim, float *y, float *stats)
{
    gate_job job = {.epsilon = epsilon,
                    .dim = dim,
                    .stride = stride,
                    .x = x,
                    .key = key,
                    .value = value,
                    .y = y,
                    .stats = stats};
    return each_token(way, EMBLA_PICK(gate_rows), &job, n);
}

embla_status embla_gate_backward(const embla_layer_way *way, const float *x, const float *key,
                                 const float *value, size_t stride, const float *stats, size_t n,
                                 size_t dim, float *dx, float *dkey, float *dvalue)
{
    gate_job job = {.dim = dim,
                    .stride = stride,
                    .x = x,
                    .key = key,
                    .value = value,
                    .y = dx,
                    .stats = (float *)(uintptr_t)stats,
                    .dkey = dkey,
                    .dvalue = dvalue};
    return each_token(way, EMBLA_PICK(gate_back), &job, n);
}
