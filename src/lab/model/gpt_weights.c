/* SPDX-License-Identifier: Apache-2.0 */
/* Initial weights of a decoder: normal random numbers. They depend only on the seed, the purpose of
 * a tensor and the index in it, not on which other tensors there are. */
#include <math.h>

#include "base/dtype.h"
#include "base/hash.h"
#include "base/kernels.h"
#include "model/gpt.h"

#define SPREAD_MOST 1e6

/* A seed for each slot, unrelated to those of other slots and to the seed of a table with the same
 * `seed`. */
static uint64_t seed_of(uint64_t seed, uint64_t slot)
{
    return embla_splitmix64(seed + slot * EMBLA_GOLDEN);
}

/* The slot within a layer, or SIZE_MAX for a slot of the model. */
static size_t in_layer(const embla_gpt *gpt, size_t slot)
{
    if (slot < EMBLA_GPT_LAYERS || slot >= embla_gpt_ngram_slot(&gpt->shape, 0)) return SIZE_MAX;
    return (slot - EMBLA_GPT_LAYERS) % EMBLA_GPT_LAYER_SLOTS;
}

/* Slots of n-grams come last, but their seeds must not depend on the number of layers. */
static uint64_t seed_of_slot(const embla_gpt *gpt, uint64_t seed, size_t slot)
{
    size_t first = embla_gpt_ngram_slot(&gpt->shape, 0);
    return seed_of(seed, slot < first ? slot : UINT64_MAX - EMBLA_GPT_NGRAM_SLOTS + (slot - first));
}

static double spread_of(const embla_gpt *gpt, size_t slot, double spread)
{
    size_t kind = in_layer(gpt, slot), grams = embla_gpt_ngram_slot(&gpt->shape, 0);
    if (slot >= grams) /* larger for n-gram values: rows start at 0, so this speeds up training;
                          found by experiment */
        return (slot > grams ? 4 : 1) / sqrt((double)embla_gpt_ngram_width(&gpt->shape));
    if (kind == SIZE_MAX) return spread > 0 ? spread : 1 / sqrt((double)gpt->shape.dim);
    if (spread == 0) spread = 0.02;
    if (kind == EMBLA_GPT_O || kind == EMBLA_GPT_DOWN)
        spread /= sqrt(2 * (double)gpt->shape.layers);
    return spread;
}

static embla_status fill_random(embla_gpt *gpt, const embla_gpt_part *part, uint64_t seed,
                                float spread)
{
    float *values = embla_gpt_weight(gpt, part->slot);
    const embla_table_options writable = {.writable = true};
    embla_init_options init = {.seed = seed, .spread = spread};
    embla_table *table;
    EMBLA_TRY(embla_table_view(
        &(embla_table_layout){.dtype = EMBLA_F32, .rows = part->rows, .dim = part->dim}, values,
        (size_t)part->rows * part->dim * sizeof(float), &writable, &table));
    embla_status status = embla_table_init(table, &init);
    embla_table_free(table);
    return status;
}

static bool is_gain(const embla_gpt *gpt, size_t slot)
{
    size_t kind = in_layer(gpt, slot);
    return slot == EMBLA_GPT_NORM_GAIN || slot == EMBLA_GPT_NORM_FIRST_GAIN ||
           kind == EMBLA_GPT_NORM1_GAIN || kind == EMBLA_GPT_NORM2_GAIN;
}

static void fill_ones(embla_gpt *gpt, const embla_gpt_part *part)
{
    float *values = embla_gpt_weight(gpt, part->slot);
    for (size_t i = 0; i < part->dim; i++) values[i] = 1;
}

embla_status embla_gpt_new(const embla_gpt_shape *shape, uint64_t seed, double spread,
                           embla_gpt **out)
{
    embla_gpt *gpt;
    embla_status status = EMBLA_OK;
    EMBLA_NEED(out);
    if (!(spread >= 0 && spread <= SPREAD_MOST))
        return embla_fail(EMBLA_ERR_ARGUMENT, "spread is %g; it must be from 0 to %g", spread,
                          SPREAD_MOST);
    EMBLA_TRY(embla_gpt_blank(shape, &gpt));
    for (size_t i = 0; i < gpt->part_count && status == EMBLA_OK; i++) {
        const embla_gpt_part *part = &gpt->parts[i];
        if (part->decays)
            status = fill_random(gpt, part, seed_of_slot(gpt, seed, part->slot),
                                 (float)spread_of(gpt, part->slot, spread));
        else if (is_gain(gpt, part->slot))
            fill_ones(gpt, part);
    }
    if (status != EMBLA_OK) {
        embla_gpt_free(gpt);
        return status;
    }
    *out = gpt;
    return EMBLA_OK;
}
