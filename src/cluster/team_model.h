/* SPDX-License-Identifier: Apache-2.0 */
/* The model of a team that has divided tables, as a folder that other programs open. */
#ifndef EMBLA_CLUSTER_TEAM_MODEL_H
#define EMBLA_CLUSTER_TEAM_MODEL_H

#include "cluster/team_grams.h"
#include "cluster/team_tokens.h"

/* embla_gpt_save on rank 0, with the rows of all ranks. grams or tokens may be NULL: the model has
 * these rows itself. Collective. */
EMBLA_CHECKED embla_status embla_team_model_save(const embla_team_grams *grams,
                                                 const embla_team_tokens *tokens, embla_gpt *gpt,
                                                 const char *folder, const char *const *words);

#endif
