/* SPDX-License-Identifier: Apache-2.0 */
/* embla_near and embla_analogy with k as an argument: the tests give many. */
#ifndef EMBLA_TESTS_NEAREST_H
#define EMBLA_TESTS_NEAREST_H

#include "embla_lab.h"

static inline embla_near_options nearest_options(const embla_near_options *options, size_t k)
{
    embla_near_options made = options ? *options : (embla_near_options){0};
    made.k = k;
    return made;
}

static inline embla_status nearest(const embla_table *table, const float *queries, size_t count,
                                   size_t k, const embla_near_options *options,
                                   embla_neighbour *out, embla_near_report *report)
{
    const embla_near_options asked = nearest_options(options, k);
    return embla_near(table, queries, count, &asked, out, report);
}

#endif
