/* SPDX-License-Identifier: Apache-2.0 */
/* The embedding of a pass: rows of tokens plus positions, and a norm if the model begins with one.
 * If other processes have the token rows, the pass is given its rows and returns their gradients.
 */
#include <string.h>

#include "base/parallel.h"
#include "base/threads.h"
#include "learn/scatter_sum.h"
#include "model/gpt_pass.h"

/* Adds positions to rows that are given. */
static embla_status embed_rows(void *job, size_t first, size_t end, size_t slot)
{
    const embla_gpt_pass *p = job;
    const float *learned = embla_gpt_weight(p->gpt, EMBLA_GPT_WPE);
    const float *positions = learned ? learned : p->gpt->sines;
    float *out = embla_pass_array(p, p->gpt->at.embedded);
    size_t dim = p->shape->dim;
    (void)slot;
    for (size_t i = first; i < end; i++) {
        const float *row = p->rows + i * dim, *position = NULL;
        float *to = out + i * dim;
        if (positions) position = positions + i % p->length * dim;
        for (size_t c = 0; c < dim; c++) to[c] = position ? row[c] + position[c] : row[c];
    }
    return EMBLA_OK;
}

embla_status embla_gpt_embed_forward(const embla_gpt_pass *p)
{
    const embla_gpt *gpt = p->gpt;
    const embla_gpt_places *at = &gpt->at;
    const embla_embed_options options = {.position_table = gpt->positions,
                                         .threads = p->way.threads};
    int threads = embla_threads_for(p->way.threads, embla_pass_bytes(p));
    if (p->rows)
        EMBLA_TRY(embla_share(threads, p->n, 0, embed_rows, p));
    else
        EMBLA_TRY(embla_embed(gpt->tokens, p->tokens, p->batch, p->length, &options,
                              embla_pass_array(p, at->embedded)));
    if (!p->shape->norm_first) return EMBLA_OK;
    return embla_norm_forward(&p->way, p->shape->norm, p->shape->norm_epsilon,
                              embla_pass_array(p, at->embedded), p->n, p->shape->dim,
                              embla_gpt_weight(gpt, EMBLA_GPT_NORM_FIRST_GAIN),
                              embla_gpt_weight(gpt, EMBLA_GPT_NORM_FIRST_BIAS),
                              embla_pass_array(p, at->first), embla_pass_array(p, at->first_stats));
}

typedef struct {
    const embla_gpt_pass *pass;
    const float *dx;
    float *dwpe;
} positions_job;

/* The gradient of a position is summed over sequences in order, in double, and rounded once. */
static void add_position(const positions_job *j, size_t t)
{
    const embla_gpt_pass *p = j->pass;
    size_t dim = p->shape->dim;
    for (size_t c = 0; c < dim; c++) {
        float *to = j->dwpe + t * dim + c;
        double sum = 0;
        for (size_t b = 0; b < p->batch; b++) sum += (double)j->dx[(b * p->length + t) * dim + c];
        *to = (float)((double)*to + sum);
    }
}

static embla_status add_positions(void *job, size_t first, size_t end, size_t slot)
{
    (void)slot;
    for (size_t t = first; t < end; t++) add_position(job, t);
    return EMBLA_OK;
}

static embla_status add_rows(const embla_gpt_pass *p, const float *dx)
{
    const embla_scatter_options options = {.threads = p->way.threads};
    EMBLA_TRY(embla_scatter_plan(p->gpt->scatter, p->tokens, p->n, &options));
    return embla_scatter_add(p->gpt->scatter, dx, p->shape->dim,
                             embla_pass_gradient(p, EMBLA_GPT_WTE));
}

embla_status embla_gpt_embed_backward(const embla_gpt_pass *p)
{
    const embla_gpt *gpt = p->gpt;
    const embla_gpt_places *at = &gpt->at;
    float *dx = embla_pass_array(p, at->dx);
    float *dwpe = embla_pass_gradient(p, EMBLA_GPT_WPE);
    if (p->shape->norm_first) {
        float *dy = dx;
        dx = embla_pass_array(p, at->dy);
        memset(dx, 0, embla_pass_bytes(p));
        EMBLA_TRY(embla_norm_backward(&p->way, p->shape->norm, embla_pass_array(p, at->embedded),
                                      embla_pass_array(p, at->first_stats), p->n, p->shape->dim,
                                      embla_gpt_weight(gpt, EMBLA_GPT_NORM_FIRST_GAIN), dy, dx,
                                      embla_pass_gradient(p, EMBLA_GPT_NORM_FIRST_GAIN),
                                      embla_pass_gradient(p, EMBLA_GPT_NORM_FIRST_BIAS)));
    }
    if (dwpe)
        EMBLA_TRY(embla_share(embla_threads_for(p->way.threads, embla_pass_bytes(p)), p->length, 0,
                              add_positions, &(positions_job){p, dx, dwpe}));
    if (!p->rows) return add_rows(p, dx);
    memcpy(p->drows, dx, embla_pass_bytes(p));
    return EMBLA_OK;
}
