/* SPDX-License-Identifier: Apache-2.0 */
/* Waking a spinning thread takes about a microsecond, a sleeping one ten or more; a thread moves
 * about 10 KB in a microsecond. SHARE follows from this: with less work, another thread does not
 * pay. */
#include "base/threads.h"

#include "base/status.h"

#ifdef _OPENMP
#include <omp.h>
#include <pthread.h>
#include <stdatomic.h>

/* OpenMP's threads do not survive a fork, and libgomp's next parallel region would wait for them
 * forever. So in a forked child every loop stays on the calling thread. */
static atomic_bool forked;
static pthread_once_t watched = PTHREAD_ONCE_INIT;

static void in_child(void)
{
    atomic_store_explicit(&forked, true, memory_order_relaxed);
}

static void watch_forks(void)
{
    (void)pthread_atfork(NULL, NULL, in_child);
}
#endif

enum { SHARE = 128 << 10 }; /* minimum bytes for each thread */

/* More threads than CPUs can be useful on a shared machine. But OpenMP ends the process if the
 * system refuses a thread, so no call may ask for thousands. */
int embla_threads_max(void)
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
        return embla_fail(EMBLA_ERR_ARGUMENT, "threads is %d; it must be 0 or greater", asked);
    return EMBLA_OK;
}

int embla_threads_for(int asked, size_t bytes)
{
    size_t worth = bytes / SHARE;
    if (worth <= 1) return 1;
#ifdef _OPENMP
    (void)pthread_once(&watched, watch_forks);
    if (atomic_load_explicit(&forked, memory_order_relaxed)) return 1;
    int threads = asked > 0 ? asked : omp_get_max_threads();
#else
    int threads = 1;
    (void)asked;
#endif
    if (threads > embla_threads_max()) threads = embla_threads_max();
    return worth < (size_t)threads ? (int)worth : threads;
}

int embla_threads_mine(void)
{
#ifdef _OPENMP
    return omp_get_thread_num();
#else
    return 0;
#endif
}
