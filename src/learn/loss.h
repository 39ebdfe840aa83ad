/* SPDX-License-Identifier: Apache-2.0 */
/* How the work of a loss is cut: sizes decide, never threads, so that bits do not depend on
 * these. Tests cut it otherwise.
 */
#ifndef EMBLA_LEARN_LOSS_H
#define EMBLA_LEARN_LOSS_H

#include "embla_learn.h"

/* Whether a target is counted: what every loss leaves out. */
static inline bool embla_loss_counts(const embla_loss_options *options, int32_t target)
{
    return target != EMBLA_TARGET_IGNORE && !(options->has_ignore && target == options->ignore);
}

typedef struct {
    size_t chunk;  /* counted tokens whose logits are held at once */
    size_t block;  /* rows of the table in one product; a block belongs to one thread */
    size_t part;   /* rows of a block that are decoded at a time, where they must be */
    size_t groups; /* of blocks: each has its own sum of hidden's gradient, added in order */
} embla_loss_shape;

/* For a head that has been checked. */
embla_loss_shape embla_loss_shape_of(const embla_head *head);

/* embla_head_loss, cut as shape says; each number in it is 1 at least. */
EMBLA_CHECKED embla_status embla_loss_run(const embla_head *head, const float *hidden,
                                          const int32_t *targets, size_t count,
                                          const embla_loss_options *options,
                                          const embla_loss_gradients *gradients, float *each,
                                          embla_loss_report *report, const embla_loss_shape *shape);

#endif
