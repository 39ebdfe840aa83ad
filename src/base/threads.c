/* SPDX-License-Identifier: Apache-2.0 */
/* Waking a thread that spins takes about a microsecond, one that sleeps ten or more;
 * a thread moves some 10 KB in one microsecond. Hence the share below which another
 * thread does not pay.
 */
#include "base/threads.h"

#include "base/status.h"

#ifdef _OPENMP
#include <omp.h>
#endif

enum { SHARE = 128 << 10 }; /* bytes for each thread at least */

/* More than the CPUs can pay: someone else may hold them. But OpenMP ends the process when
 * the system refuses it a thread, so no call may ask for thousands. */
int embla_threads_most(void)
{
    enum { FOR_EACH_CPU = 4, LEAST = 16 };
#ifdef _OPENMP
    int most = FOR_EACH_CPU * omp_get_num_procs();
    return most < LEAST ? LEAST : most;
#else
    return 1;
#endif
}

embla_status embla_threads_check(int asked)
{
    if (asked < 0)
        return embla_fail(EMBLA_ERR_ARGUMENT, "%d threads: the number must be 0 or more", asked);
    return EMBLA_OK;
}

int embla_threads_for(int asked, size_t bytes)
{
    size_t worth = bytes / SHARE;
    if (worth <= 1) return 1;
#ifdef _OPENMP
    int threads = asked > 0 ? asked : omp_get_max_threads();
#else
    int threads = 1;
    (void)asked;
#endif
    if (threads > embla_threads_most()) threads = embla_threads_most();
    return worth < (size_t)threads ? (int)worth : threads;
}
