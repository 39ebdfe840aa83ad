/* SPDX-License-Identifier: Apache-2.0 */
/* Waking a spinning thread takes about a microsecond, a sleeping one ten or more; a thread moves
 * about 10 KB in a microsecond. SHARE follows from this: with less work, another thread does not
 * pay. */
#include "base/threads.h"

#include "base/cpus.h"
#include "base/parallel.h"
#include "base/status.h"

enum { SHARE = 128 << 10 }; /* minimum bytes for each thread */

/* More threads than CPUs can be useful on a shared machine. But no call may ask for
 * thousands: each has a stack. */
int embla_max_threads(void)
{
    enum { FOR_EACH_CPU = 4, LEAST = 16 };
    int cpus = embla_cpus();
    return cpus > LEAST / FOR_EACH_CPU ? FOR_EACH_CPU * cpus : LEAST;
}

embla_status embla_threads_check(int asked)
{
    if (asked < 0)
        return embla_fail(EMBLA_ERR_ARGUMENT, "threads is %d; it must be 0 or greater", asked);
    return EMBLA_OK;
}

/* Inside a loop that is shared already there is one thread: all CPUs have work. */
int embla_threads_for(int asked, size_t bytes)
{
    size_t worth = bytes / SHARE;
    if (worth <= 1 || embla_share_width() > 1) return 1;
    int threads = asked > 0 ? asked : embla_default_threads();
    if (threads > embla_max_threads()) threads = embla_max_threads();
    return worth < (size_t)threads ? (int)worth : threads;
}
