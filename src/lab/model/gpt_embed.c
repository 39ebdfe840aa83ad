/* SPDX-License-Identifier: Apache-2.0 */
/* The embedding of a pass: rows of tokens plus positions, and a norm if the model begins with one.
 * If other processes have the token rows, the pass is given its rows and returns their gradients.
 */
#include <string.h>

#include "base/parallel.h"
#include "base/threads.h"
#include "learn/scatter_sum.h"
#include "model/gpt_pass.h"

static void embed_wide(const embla_gpt_pass *p, double *out)
{
    const embla_gpt *gpt = p->gpt;
    size_t dim = p->shape->dim;
    const double *wte = embla_gpt_weight(gpt, EMBLA_GPT_WTE);
    const double *wpe = embla_gpt_weight(gpt, EMBLA_GPT_WPE);
    for (size_t i = 0; i < p->n; i++) {
        size_t row = (size_t)p->tokens[i] * dim, position = i % p->length * dim;
        for (size_t c = 0; c < dim; c++) {
            double x = wte[row + c];
            if (wpe) x += wpe[position + c];
            if (gpt->sines) x += (double)gpt->sines[position + c];
            out[i * dim + c] = x;
        }
    }
}

/* Adds positions to rows that are given. */
static embla_status embed_rows(void *job, size_t first, size_t end, size_t slot)
{
    const embla_gpt_pass *p = job;
    const float *learned = embla_gpt_weight(p->gpt, EMBLA_GPT_WPE);
    const float *positions = learned ? learned : p->gpt->sines;
    float *out = (float *)(void *)embla_pass_array(p, p->gpt->at.embedded);
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
    if (gpt->precision == EMBLA_GPT_F64)
        embed_wide(p, (double *)(void *)embla_pass_array(p, at->embedded));
    else if (p->rows)
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
    const void *dx;
    void *dwpe;
} positions_job;

/* The gradient of a position is summed over sequences in order, in double, and rounded once. */
static void add_position(const positions_job *j, size_t t)
{
    const embla_gpt_pass *p = j->pass;
    size_t dim = p->shape->dim;
    bool wide = p->way.precision == EMBLA_GPT_F64;
    for (size_t c = 0; c < dim; c++) {
        double sum = 0;
        for (size_t b = 0; b < p->batch; b++) {
            size_t i = (b * p->length + t) * dim + c;
            sum += wide ? ((const double *)j->dx)[i] : (double)((const float *)j->dx)[i];
        }
        if (wide) {
            ((double *)j->dwpe)[t * dim + c] += sum;
        } else {
            float *to = (float *)j->dwpe + t * dim + c;
            *to = (float)((double)*to + sum);
        }
    }
}

static embla_status add_positions(void *job, size_t first, size_t end, size_t slot)
{
    (void)slot;
    for (size_t t = first; t < end; t++) add_position(job, t);
    return EMBLA_OK;
}

static embla_status add_rows(const embla_gpt_pass *p, const void *dx)
{
    size_t dim = p->shape->dim;
    void *dwte = embla_pass_gradient(p, EMBLA_GPT_WTE);
    const embla_scatter_options options = {.threads = p->way.threads};
    if (p->gpt->precision == EMBLA_GPT_F32) {
        EMBLA_TRY(embla_scatter_plan(p->gpt->scatter, p->tokens, p->n, &options));
        return embla_scatter_add(p->gpt->scatter, dx, dim, dwte);
    }
    for (size_t i = 0; i < p->n; i++) {
        double *row = (double *)dwte + (size_t)p->tokens[i] * dim;
        for (size_t c = 0; c < dim; c++) row[c] += ((const double *)dx)[i * dim + c];
    }
    return EMBLA_OK;
}

embla_status embla_gpt_embed_backward(const embla_gpt_pass *p)
{
    const embla_gpt *gpt = p->gpt;
    const embla_gpt_places *at = &gpt->at;
    char *dx = embla_pass_array(p, at->dx);
    void *dwpe = embla_pass_gradient(p, EMBLA_GPT_WPE);
    if (p->shape->norm_first) {
        char *dy = dx;
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
