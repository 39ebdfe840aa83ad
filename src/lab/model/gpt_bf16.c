/* SPDX-License-Identifier: Apache-2.0 */
/* Weights rounded to bf16: once for each pass, because the caller may change weights between two
 * passes. Only the matrices of products are rounded. The copy has the layout of the weights, and is
 * allocated by the first pass that computes in bf16.
 */
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

embla_status embla_gpt_bf16_round(embla_gpt *gpt, int threads, embla_layer_bf16 *out)
{
    void *memory = NULL;
    if (!gpt->rounded) {
        EMBLA_TRY(embla_mem_new(gpt->numbers * sizeof *gpt->rounded, "weights in bf16", &memory));
        gpt->rounded = memory;
    }
    const float *weights = (const float *)(const void *)gpt->weights;
    for (size_t i = 0; i < gpt->part_count; i++) {
        const embla_gpt_part *part = &gpt->parts[i];
        if (is_factor(gpt, part))
            EMBLA_TRY(embla_layer_round(threads, weights + part->at, (size_t)part->rows * part->dim,
                                        false, gpt->rounded + part->at));
    }
    *out = (embla_layer_bf16){.weights = weights, .rounded = gpt->rounded, .count = gpt->numbers};
    return EMBLA_OK;
}
