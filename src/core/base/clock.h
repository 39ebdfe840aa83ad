/* SPDX-License-Identifier: Apache-2.0 */
/* A clock that only goes forward. */
#ifndef EMBLA_BASE_CLOCK_H
#define EMBLA_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline int64_t embla_clock_ns(void)
{
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static inline double embla_clock_seconds(void)
{
    return 1e-9 * (double)embla_clock_ns();
}

#endif
