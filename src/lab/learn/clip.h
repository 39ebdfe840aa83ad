/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of squares whose leaves are computed in different places, with the bits of embla_clip. */
#ifndef EMBLA_LEARN_CLIP_H
#define EMBLA_LEARN_CLIP_H

#include "base/status.h"
#include "embla_learn.h"

enum { EMBLA_SQUARES_LEAF = 4096 }; /* numbers of a leaf; the last leaf of a span may have fewer */

/* The sum of the squares of a leaf. */
EMBLA_PRIVATE double embla_squares_leaf(const float *values, size_t count);
/* The sum of a span whose leaves have these sums. */
EMBLA_PRIVATE double embla_squares_join(const double *leaves, size_t count);

#endif
