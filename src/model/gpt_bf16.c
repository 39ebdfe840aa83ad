/* SPDX-License-Identifier: Apache-2.0 */
/* Weights rounded to bf16: once for each pass, because the caller may change weights between two
 * passes. Only the matrices of products are rounded. The copy has the layout of the weights, and is
 * allocated by the first pass that computes in bf16.
 */
#include "base/dtype.h"
#include "base/kernels.h"
#include "base/threads.h"
#include "model/gpt.h"

size_t embla_gpt_bf16_bytes(const embla_gpt *gpt)
{
    return gpt->rounded ? gpt->numbers * sizeof *gpt->rounded : 0;
}

/* Whether a product reads this tensor: matrices do, but not rows that are only looked up. */
static bool is_factor(const embla_gpt *gpt, const embla_gpt_part *part)
{
    if (part->rows == 1 || part->slot == EMBLA_GPT_WPE) return false;
    return part->slot != EMBLA_GPT_WTE || !gpt->shape.untied;
}

static void round_part(const embla_gpt *gpt, const embla_gpt_part *part, int threads)
{
    enum { PIECE = 1 << 14 };
    size_t count = (size_t)part->rows * part->dim;
    const float *from = (const float *)(const void *)gpt->weights + part->at;
    uint16_t *to = gpt->rounded + part->at;
    embla_encode_fn *encode = embla_dtype_encoder(EMBLA_BF16, embla_kernels_get()->isa);
    int team = embla_threads_for(threads, count * sizeof *from);
    (void)team;
#pragma omp parallel for num_threads(team) schedule(static) if (team > 1)
    for (size_t i = 0; i < count; i += PIECE)
        encode(from + i, count - i < PIECE ? count - i : PIECE, 1.0f, to + i);
}

embla_status embla_gpt_bf16_round(embla_gpt *gpt, int threads, embla_layer_bf16 *out)
{
    void *memory = NULL;
    if (!gpt->rounded) {
        EMBLA_TRY(embla_mem_new(gpt->numbers * sizeof *gpt->rounded, "weights in bf16", &memory));
        gpt->rounded = memory;
    }
    for (size_t i = 0; i < gpt->part_count; i++)
        if (is_factor(gpt, &gpt->parts[i])) round_part(gpt, &gpt->parts[i], threads);
    *out = (embla_layer_bf16){.weights = (const float *)(const void *)gpt->weights,
                              .rounded = gpt->rounded,
                              .count = gpt->numbers};
    return EMBLA_OK;
}
