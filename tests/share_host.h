/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of a host for embla_set_parallel: on the calling thread, or on threads that it starts,
 * in any order, with any rounding. */
#ifndef EMBLA_TESTS_SHARE_HOST_H
#define EMBLA_TESTS_SHARE_HOST_H

#include <fenv.h>
#include <pthread.h>
#include <stdatomic.h>

#include "check.h"

enum { HOST_PARTS = 32 }; /* most parts, and threads */

typedef struct {
    embla_parallel_part part;
    void *job;
    size_t first, end, step; /* the parts that a thread calls */
    int rounding;
    unsigned flush; /* bits to set in MXCSR */
    bool restored;
} helper;

static inline unsigned control(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_stmxcsr() & ~0x3fu;
#else
    return 0;
#endif
}

static inline void *call_parts(void *argument)
{
    helper *h = argument;
    (void)fesetround(h->rounding);
#if defined(__x86_64__)
    __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | h->flush);
#endif
    unsigned before = control();
    for (size_t i = h->first; i < h->end; i += h->step) h->part(h->job, i);
    h->restored = control() == before && fegetround() == h->rounding;
    return NULL;
}

/* What a runner does, beside its name. */
typedef struct {
    int threads; /* that it starts; 0 means the calling thread, 1 for all parts, -1 one for each */
    int rounding;
    unsigned flush;
    atomic_bool wrong;
    size_t most; /* parts that it may get */
    bool reversed;
    size_t drop, twice; /* a part; SIZE_MAX means none */
} host;

static inline void run_on_host(void *context, size_t count, embla_parallel_part part, void *job)
{
    host *h = context;
    pthread_t threads[HOST_PARTS];
    helper helpers[HOST_PARTS];
    size_t n = h->threads < 0 ? count : (size_t)h->threads;
    if (count < 1 || count > h->most) atomic_store(&h->wrong, true);
    for (size_t i = 0; h->threads == 0 && i < count; i++) {
        size_t index = h->reversed ? count - 1 - i : i;
        if (index != h->drop) part(job, index);
        if (index == h->twice) part(job, index);
    }
    if (h->threads == 0) return;
    for (size_t i = 0; i < n; i++) {
        helpers[i] = (helper){part, job, i, count, n, h->rounding, h->flush, false};
        if (pthread_create(&threads[i], NULL, call_parts, &helpers[i]) != 0) {
            (void)call_parts(&helpers[i]);
            threads[i] = pthread_self();
        }
    }
    for (size_t i = 0; i < n; i++) {
        if (!pthread_equal(threads[i], pthread_self())) (void)pthread_join(threads[i], NULL);
        if (!helpers[i].restored) atomic_store(&h->wrong, true);
    }
}

static inline host plain_host(int threads)
{
    return (host){.threads = threads,
                  .rounding = FE_TONEAREST,
                  .most = HOST_PARTS,
                  .drop = SIZE_MAX,
                  .twice = SIZE_MAX};
}

#endif
