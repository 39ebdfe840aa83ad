/* SPDX-License-Identifier: Apache-2.0 */
/* What the losses for tables of very many rows share: products of a chunk of tokens with many
 * rows, forward and backward.
 *
 * Rows are cut into at most eight lanes, by their number alone. A lane belongs to one thread at
 * a time: its columns of the logits, its rows' gradients, and a part of its own of the gradient
 * of hidden; the parts are added in the order of lanes. So no bit depends on threads.
 */
#ifndef EMBLA_LEARN_LANES_H
#define EMBLA_LEARN_LANES_H

#include <stddef.h>

#include "base/status.h"

typedef struct {
    const float *rows; /* n x dim, stride numbers from one to the next */
    size_t n, dim, stride;
    float *gradient; /* n x dim, added to; NULL: not wanted */
    float *logits;   /* chunk x n */
    float *parts;    /* embla_lanes_of(n) x chunk x dim: space; NULL: no gradient of hidden */
    int threads;
} embla_lanes;

size_t embla_lanes_of(size_t n);
/* How many tokens to take at a time: logits and parts then are 16 MiB at most, or those of one
 * token. */
size_t embla_lanes_chunk(size_t n, size_t dim);
/* logits (count x n) = x (count x dim) times rows turned; count is at most a chunk. */
EMBLA_CHECKED embla_status embla_lanes_forward(const embla_lanes *lanes, const float *x,
                                               size_t count);
/* With gradients where the logits were: adds to the rows' gradient what x gives, and the
 * gradient of x goes to dx (count x dim; not looked at without parts). */
EMBLA_CHECKED embla_status embla_lanes_backward(const embla_lanes *lanes, const float *x,
                                                size_t count, float *dx);

#endif
