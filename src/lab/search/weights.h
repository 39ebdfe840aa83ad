/* SPDX-License-Identifier: Apache-2.0 */
/* Weights of words by their frequency. */
#ifndef EMBLA_SEARCH_WEIGHTS_H
#define EMBLA_SEARCH_WEIGHTS_H

#include "embla_search.h"

/* Writes a / (a + p) for each of `count` tokens, rounded to float, times the weight that the model
 * has for it. p is the share of the token: from a file of counts, from the counts of the model, or
 * from its rank; *why says from which. */
EMBLA_CHECKED embla_status embla_sif_weights(const embla_encoder *encoder, double a,
                                             const char *counts, size_t count, float *out,
                                             const char **why);

#endif
