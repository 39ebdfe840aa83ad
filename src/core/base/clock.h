/* SPDX-License-Identifier: Apache-2.0 */
/* A clock that only goes forward. */
#ifndef EMBLA_BASE_CLOCK_H
#define EMBLA_BASE_CLOCK_H

#include <stdint.h>

#include "base/status.h"

EMBLA_PRIVATE int64_t embla_clock_ns(void);

static inline double embla_clock_seconds(void)
{
    return 1e-9 * (double)embla_clock_ns();
}

#endif
