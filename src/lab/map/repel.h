/* SPDX-License-Identifier: Apache-2.0 */
/* How all points of a plane repel each other: the field of 1 / (1 + distance^2) of all points, and
 * its slope, at every point. The time grows with the points and with the area that they cover, not
 * with the square of their number.
 */
#ifndef EMBLA_MAP_REPEL_H
#define EMBLA_MAP_REPEL_H

#include "base/arena.h"
#include "base/status.h"

typedef struct embla_repel embla_repel;

/* For count points, at least 1. Memory for the grid follows as the points spread. */
EMBLA_CHECKED embla_status embla_repel_new(int32_t count, int threads, embla_repel **out);
void embla_repel_free(embla_repel *repel);

/* Writes to field[i] the sum over all other points j of 1 / (1 + d^2), where d is the
 * distance of points i and j in xy (count x 2, finite), and to force (count x 2) the sum of (i - j)
 * / (1 + d^2)^2. The error is below 0.05 for
 * each point within a distance of 1, and less for others. The bits are the same for any number
 * of threads and any instruction set. */
EMBLA_CHECKED embla_status embla_repel_run(embla_repel *repel, const float *xy, float *field,
                                           float *force);

#endif
