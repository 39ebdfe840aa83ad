/* SPDX-License-Identifier: Apache-2.0 */
/* What the losses for tables of very many rows share: the checks of options and targets, and the
 * report. Also the sampling of a sampled loss, so that a test can draw the same tokens.
 */
#ifndef EMBLA_LEARN_SAMPLED_H
#define EMBLA_LEARN_SAMPLED_H

#include "base/status.h"
#include "embla_learn.h"

/* Checks options (NULL means defaults) and fills in the weight. name is the name of the caller, for
 * messages. */
EMBLA_CHECKED embla_status embla_rare_options(const char *name, const embla_loss_options *options,
                                              embla_loss_options *out);
/* Writes the positions of counted targets, in order, to at (room for count); *counted is how many.
 * Returns EMBLA_ERR_RANGE for a target that is neither a token below rows nor ignored. */
EMBLA_CHECKED embla_status embla_rare_targets(const int32_t *targets, size_t count, int64_t rows,
                                              const embla_loss_options *options, size_t *at,
                                              size_t *counted);
/* Writes losses and right (one for each counted target) to each (count) and *report. */
void embla_rare_report(const embla_loss_options *options, const double *losses,
                       const uint8_t *right, const size_t *at, size_t counted, size_t count,
                       float *each, embla_loss_report *report);

/* Writes the sampled tokens, each 0 .. rows-1, to out in the order of drawing. Token i is a
 * function of (seed, step, i) and rows alone. Tokens are drawn with replacement, so one may occur
 * twice. */
void embla_sampled_draw(const embla_negatives *negatives, int64_t rows, int64_t *out);
/* The natural logarithm of the probability that token is among them: 1 - (1 - P(token))^negatives.
 */
double embla_sampled_log_chance(const embla_negatives *negatives, int64_t rows, int64_t token);

#endif
