/* SPDX-License-Identifier: Apache-2.0 */
/* How the work of a loss is cut. It depends on sizes alone, never on threads, so bits do not depend
 * on threads. Tests cut it differently.
 */
#ifndef EMBLA_LEARN_LOSS_H
#define EMBLA_LEARN_LOSS_H

#include "base/scratch.h"
#include "embla_learn.h"

/* Whether a target is counted: every loss leaves out the others. */
static inline bool embla_loss_counts(const embla_loss_options *options, int32_t target)
{
    return target != EMBLA_TARGET_IGNORE && !(options->has_ignore && target == options->ignore);
}

static inline size_t embla_loss_least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static inline size_t embla_loss_round_up(size_t n, size_t unit)
{
    return (n + unit - 1) / unit * unit;
}

/* Floats of a cache line: rows of a tile begin on lines. */
enum { EMBLA_LOSS_LINE = 16 };

typedef struct {
    size_t chunk;  /* counted tokens whose logits are held at once */
    size_t block;  /* rows of the table in one product; a block belongs to one thread */
    size_t part;   /* rows of a block that are decoded at a time, if needed */
    size_t groups; /* groups of blocks: each has its own sum of the gradient of hidden, added in
                      order */
    bool again;    /* logits are not held, but computed once more for the gradient */
    bool rounds;   /* in bf16, a table that is not bf16 is rounded once for the call */
} embla_loss_shape;

EMBLA_CHECKED embla_status embla_loss_check_options(const embla_loss_options *options);

/* For a head of `rows` tokens, at least 1. bf16: products are computed in bf16. */
embla_loss_shape embla_loss_shape_of(size_t rows, size_t dim, bool bf16);

/* embla_head_loss with this shape (NULL: that of embla_loss_shape_of; each number in it is at least
 * 1) and with memory that the caller keeps (NULL: none). */
EMBLA_CHECKED embla_status embla_loss_run(const embla_head *head, const float *hidden,
                                          const int32_t *targets, size_t count,
                                          const embla_loss_options *options,
                                          const embla_loss_gradients *gradients, float *each,
                                          embla_loss_report *report, const embla_loss_shape *shape,
                                          embla_scratch *scratch);

#endif
