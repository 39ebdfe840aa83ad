/* SPDX-License-Identifier: Apache-2.0 */
/* Products of a chunk of tokens with many rows, forward and backward: for the sampled loss.
 *
 * Rows are cut into at most eight lanes, by their number alone. One thread at a time works on a
 * lane: on its columns of the logits, the gradients of its rows, and its own part of the gradient
 * of hidden. The parts are added in the order of lanes, so no bit depends on threads.
 */
#ifndef EMBLA_LEARN_LANES_H
#define EMBLA_LEARN_LANES_H

#include <stddef.h>

#include "base/status.h"

typedef struct {
    const float *rows; /* n x dim, stride numbers apart */
    size_t n, dim, stride;
    float *gradient; /* n x dim, added to; NULL means not wanted */
    float *logits;   /* chunk x n */
    float *parts;    /* embla_lanes_of(n) x chunk x dim; NULL means no gradient of hidden */
    int threads;
} embla_lanes;

size_t embla_lanes_of(size_t n);
/* How many tokens to process at a time: logits and parts are then at most 16 MiB, or those of one
 * token. */
size_t embla_lanes_chunk(size_t n, size_t dim);
/* logits (count x n) = x (count x dim) times rows transposed; count is at most a chunk. */
EMBLA_CHECKED embla_status embla_lanes_forward(const embla_lanes *lanes, const float *x,
                                               size_t count);
/* With gradients in place of the logits: adds to the gradient of rows, and writes the gradient of x
 * to dx (count x dim; unused without parts). */
EMBLA_CHECKED embla_status embla_lanes_backward(const embla_lanes *lanes, const float *x,
                                                size_t count, float *dx);

#endif
