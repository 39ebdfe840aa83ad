/* SPDX-License-Identifier: Apache-2.0 */
/* Waking a spinning thread takes about a microsecond, a sleeping one ten or more; a thread moves
 * about 10 KB in a microsecond. SHARE follows from this: with less work, another thread does not
 * pay. */
#include "base/threads.h"

#include <pthread.h>

#include "base/cpus.h"
#include "base/origin.h"
#include "base/parallel.h"
#include "base/status.h"

#ifdef _OPENMP
#include <omp.h>
#include <stdatomic.h>

/* OpenMP's threads do not survive a fork, and libgomp's next parallel region would wait for them
 * forever. So in a forked child every loop stays on the calling thread. */
static embla_origin first;
static pthread_once_t watched = PTHREAD_ONCE_INIT;

static void watch_forks(void)
{
    first = embla_origin_here();
}

/* libgomp ends the process if the system refuses a thread: too many processes, or no address space
 * for its stack. So before OpenMP gets that many, as many threads of our own are tried. */
enum { TRIED_MOST = 1024 };
static pthread_mutex_t trying = PTHREAD_MUTEX_INITIALIZER;
static atomic_int tried = 1, granted = 1; /* the most that were tried, and how many there were */

static void *wait_for_end(void *gate)
{
    (void)pthread_mutex_lock(gate);
    (void)pthread_mutex_unlock(gate);
    return NULL;
}

/* How many threads can exist at once, the calling one included, up to `wanted`. */
static int try_threads(int wanted)
{
    pthread_t threads[TRIED_MOST];
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    int count = 0;
    (void)pthread_mutex_lock(&gate);
    while (count + 1 < wanted && count < TRIED_MOST &&
           pthread_create(&threads[count], NULL, wait_for_end, &gate) == 0)
        count++;
    (void)pthread_mutex_unlock(&gate);
    for (int i = 0; i < count; i++) (void)pthread_join(threads[i], NULL);
    (void)pthread_mutex_destroy(&gate);
    return count + 1;
}

static int grant_threads(int wanted)
{
    if (wanted > atomic_load_explicit(&tried, memory_order_acquire)) {
        (void)pthread_mutex_lock(&trying);
        if (wanted > atomic_load(&tried)) {
            atomic_store(&granted, try_threads(wanted));
            atomic_store_explicit(&tried, wanted, memory_order_release);
        }
        (void)pthread_mutex_unlock(&trying);
    }
    int most = atomic_load_explicit(&granted, memory_order_relaxed);
    return wanted < most ? wanted : most;
}
#endif

enum { SHARE = 128 << 10 }; /* minimum bytes for each thread */

/* Counted once: the quota of a control group is read from files. */
static int cpus;
static pthread_once_t counted = PTHREAD_ONCE_INIT;

static void count_cpus(void)
{
    cpus = embla_cpus();
}

/* More threads than CPUs can be useful on a shared machine. But no call may ask for
 * thousands: each has a stack. */
int embla_max_threads(void)
{
    enum { FOR_EACH_CPU = 4, LEAST = 16 };
    (void)pthread_once(&counted, count_cpus);
    return cpus > LEAST / FOR_EACH_CPU ? FOR_EACH_CPU * cpus : LEAST;
}

embla_status embla_threads_check(int asked)
{
    if (asked < 0)
        return embla_fail(EMBLA_ERR_ARGUMENT, "threads is %d; it must be 0 or greater", asked);
    return EMBLA_OK;
}

/* Inside a loop that is shared already, by us or by OpenMP, there is one thread: all CPUs have
 * work. */
int embla_threads_for(int asked, size_t bytes)
{
    size_t worth = bytes / SHARE;
    if (worth <= 1 || embla_share_width() > 1) return 1;
#ifdef _OPENMP
    (void)pthread_once(&watched, watch_forks);
    if (!embla_origin_is_here(&first) || omp_in_parallel()) return 1;
#endif
    int threads = asked > 0 ? asked : embla_share_threads();
    if (threads > embla_max_threads()) threads = embla_max_threads();
    if (worth < (size_t)threads) threads = (int)worth;
#ifdef _OPENMP
    threads = grant_threads(threads);
#endif
    return threads;
}

int embla_threads_mine(void)
{
#ifdef _OPENMP
    return omp_get_thread_num();
#else
    return 0;
#endif
}

size_t embla_threads_team(void)
{
#ifdef _OPENMP
    return (size_t)omp_get_num_threads();
#else
    return 1;
#endif
}
