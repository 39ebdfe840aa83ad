/* SPDX-License-Identifier: Apache-2.0 */
/* A model without its token rows: those of the token table, and those of a separate head. Its user
 * keeps them, with their gradients. Passes are given the rows of their tokens (model/gpt_pass.h),
 * and a file of the model reads all rows from their keeper.
 */
#ifndef EMBLA_MODEL_GPT_TRUNK_H
#define EMBLA_MODEL_GPT_TRUNK_H

#include "model/gpt.h"

/* The numbers of the weights without the token rows. */
EMBLA_PRIVATE size_t embla_gpt_trunk_numbers(const embla_gpt *gpt);
/* From now on the model has no token rows. weights and gradients are zeroed memory for
 * embla_gpt_trunk_numbers, which the model takes. It has tensors of f32. */
EMBLA_PRIVATE void embla_gpt_drop_rows(embla_gpt *gpt, void *weights, void *gradients);
/* Where files of the model read rows. */
EMBLA_PRIVATE void embla_gpt_rows_source(embla_gpt *gpt, const embla_gpt_readers *readers);
/* EMBLA_ERR_UNSUPPORTED if the model has no token rows. */
EMBLA_CHECKED embla_status embla_gpt_check_rows(const embla_gpt *gpt);

#endif
