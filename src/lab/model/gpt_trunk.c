/* SPDX-License-Identifier: Apache-2.0 */
/* Every tensor begins at a border of the block, and so does the one after a table. So a table is
 * taken out of the block by moving the tensors behind it.
 */
#include "model/gpt_trunk.h"

#include <string.h>

#include "base/mem.h"

static bool has_rows(const embla_gpt_part *part)
{
    return part->slot == EMBLA_GPT_WTE || part->slot == EMBLA_GPT_LM_HEAD;
}

/* Where the tensor after this one begins. */
static size_t end_of(const embla_gpt *gpt, size_t part)
{
    return part + 1 < gpt->part_count ? gpt->parts[part + 1].at : gpt->numbers;
}

size_t embla_gpt_trunk_numbers(const embla_gpt *gpt)
{
    size_t numbers = gpt->numbers;
    for (size_t i = 0; i < gpt->part_count; i++)
        if (has_rows(&gpt->parts[i])) numbers -= end_of(gpt, i) - gpt->parts[i].at;
    return numbers;
}

/* Moves the other tensors to the new weights, and takes the tables out of the list. An entry of the
 * list is written only after it was read. */
static void move_parts(embla_gpt *gpt, char *weights)
{
    size_t kept = 0, gone = 0;
    for (size_t i = 0; i < gpt->part_count; i++) {
        embla_gpt_part part = gpt->parts[i];
        size_t numbers = end_of(gpt, i) - part.at, from = part.at;
        gpt->part_of[part.slot] = -1;
        if (has_rows(&part)) {
            gone += numbers;
            continue;
        }
        part.at = from - gone;
        memcpy(weights + part.at * sizeof(float), gpt->weights + from * sizeof(float),
               numbers * sizeof(float));
        gpt->part_of[part.slot] = (int32_t)kept;
        gpt->parts[kept++] = part;
    }
    gpt->part_count = kept;
}

void embla_gpt_drop_rows(embla_gpt *gpt, void *weights, void *gradients)
{
    size_t bytes = gpt->numbers * sizeof(float), numbers = embla_gpt_trunk_numbers(gpt);
    embla_table **views[] = {&gpt->head, &gpt->positions, &gpt->tokens};
    for (size_t i = 0; i < sizeof views / sizeof views[0]; i++) {
        embla_table_free(*views[i]);
        *views[i] = NULL;
    }
    embla_scatter_free(gpt->scatter);
    gpt->scatter = NULL;
    embla_mem_free(gpt->rounded, embla_gpt_bf16_bytes(gpt));
    gpt->rounded = NULL;
    move_parts(gpt, weights);
    embla_mem_free(gpt->gradients, bytes);
    embla_mem_free(gpt->weights, bytes);
    gpt->weights = weights;
    gpt->gradients = gradients;
    gpt->numbers = numbers;
    gpt->trunk = true;
    gpt->ran = false;
}

void embla_gpt_rows_source(embla_gpt *gpt, const embla_gpt_readers *readers)
{
    gpt->readers = *readers;
}

embla_status embla_gpt_check_rows(const embla_gpt *gpt)
{
    if (!gpt->trunk) return EMBLA_OK;
    return embla_fail(EMBLA_ERR_UNSUPPORTED,
                      "the %" PRId64 " token rows of the model are kept by its training; use the "
                      "model that the training saves",
                      gpt->shape.vocab);
}
