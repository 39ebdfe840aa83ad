/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

#include "system/system.h"

int64_t embla_clock_ns(void)
{
    return embla_system_clock();
}
