/* SPDX-License-Identifier: Apache-2.0 */
/* CPUs are counted once: to read the quotas of a container takes longer than a lookup. */
#include "base/cpus.h"

#include "base/lock.h"
#include "system/system_threads.h"

static int cpus;
static embla_once counted;

static void count(void)
{
    cpus = embla_system_cpus();
}

int embla_cpus(void)
{
    embla_once_run(&counted, count);
    return cpus;
}
