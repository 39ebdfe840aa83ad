/* SPDX-License-Identifier: Apache-2.0 */
/* The cost of one step of one rank, from the numbers of rows that it moves. A plan knows the
 * expected numbers, a simulation those of the busiest ranks; both use the same formulas.
 */
#ifndef EMBLA_CLUSTER_CLUSTER_PLAN_H
#define EMBLA_CLUSTER_CLUSTER_PLAN_H

#include "base/status.h"
#include "cluster/buckets.h"
#include "cluster/zipf.h"
#include "embla_cluster.h"

/* The rows of one rank in one step. */
typedef struct {
    double asked;   /* row numbers */
    double unique;  /* different ones */
    double far;     /* of these: on other hosts, or on other ranks if rows are always sent */
    double served;  /* rows that this rank sends to others */
    double sent;    /* sums of gradients for rows of other ranks */
    double touched; /* rows of this rank that are updated */
} embla_plan_load;

/* The sizes that a plan is made of: options with all defaults, and bytes of a row. */
typedef struct {
    embla_plan_options o;
    size_t row_bytes;   /* with scales */
    size_t state_bytes; /* of the optimizer, for one row */
    double asked;       /* row numbers of a rank and step */
} embla_plan_sizes;

/* Checks options and fills in the defaults. */
EMBLA_CHECKED embla_status embla_plan_prepare(const embla_plan_options *options,
                                              embla_plan_sizes *out);
/* The number of buckets for so many ranks. */
size_t embla_plan_buckets(const embla_plan_sizes *sizes, int64_t ranks);
/* Of `among` ranks that exchange rows, those that need not send them: this one, and those of the
 * same host unless rows are always sent. */
int64_t embla_plan_near(const embla_plan_sizes *sizes, int64_t among);
/* The size of a group of ranks. EMBLA_ERR_ARGUMENT if the one in the options does not divide
 * them. */
EMBLA_CHECKED embla_status embla_plan_group(const embla_plan_sizes *sizes, int64_t ranks,
                                            int64_t *out);
/* Rows that one of `owners` owners updates: the different rows of `ranks` ranks, each with a share
 * `unique` of different ones. zipf NULL: nothing says which rows they have in common, so none. */
double embla_plan_touched(const embla_plan_sizes *sizes, const embla_zipf *zipf, double unique,
                          int64_t ranks, int64_t owners);
/* The times of a rank with this load. `among` ranks exchange rows: all of them, or a group. */
void embla_plan_time(const embla_plan_sizes *sizes, embla_plan_exchange exchange, int64_t ranks,
                     int64_t among, const embla_plan_load *load, embla_plan_times *out);

#endif
