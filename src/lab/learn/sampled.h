/* SPDX-License-Identifier: Apache-2.0 */
/* The sampling of a sampled loss, so that a test can draw the same tokens. */
#ifndef EMBLA_LEARN_SAMPLED_H
#define EMBLA_LEARN_SAMPLED_H

#include "base/status.h"
#include "embla_learn.h"

/* Writes the sampled tokens, each 0 .. rows-1, to out in the order of drawing. Token i is a
 * function of (seed, step, i) and rows alone. Tokens are drawn with replacement, so one may occur
 * twice. */
void embla_sampled_draw(const embla_negatives *negatives, int64_t rows, int64_t *out);
/* The natural logarithm of the probability that token is among them: 1 - (1 - P(token))^negatives.
 */
double embla_sampled_log_chance(const embla_negatives *negatives, int64_t rows, int64_t token);

#endif
