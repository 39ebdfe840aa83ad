/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays of which each rank of a team has a slice: rank r the numbers from r * slice on. */
#ifndef EMBLA_CLUSTER_TEAM_SLICES_H
#define EMBLA_CLUSTER_TEAM_SLICES_H

#include "embla_cluster.h"

/* A zeroed struct is empty. */
typedef struct {
    const embla_comm *comm;
    size_t slice;             /* numbers of a slice; the last ones may have fewer */
    size_t sent;              /* bytes that each rank sends at once */
    char *sending, *received; /* `sent` bytes for each rank; from each rank */
    size_t bytes;             /* of this memory */
} embla_team_slices;

/* For arrays of `count` floats. */
EMBLA_CHECKED embla_status embla_team_slices_new(const embla_comm *comm, size_t count,
                                                 embla_team_slices *out);
void embla_team_slices_free(embla_team_slices *slices);
/* Gives all slices of an array of `bytes` bytes, of which a slice has `slice`, to every rank, or to
 * rank 0 alone. Collective. */
EMBLA_CHECKED embla_status embla_team_slices_gather(const embla_team_slices *slices, void *values,
                                                    size_t bytes, size_t slice, bool everyone);
/* Sums floats in the order of ranks: those of this rank's slice. Others become 0. Collective. */
EMBLA_CHECKED embla_status embla_team_slices_sum(const embla_team_slices *slices, float *values,
                                                 size_t count);

#endif
