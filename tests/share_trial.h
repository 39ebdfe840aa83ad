/* SPDX-License-Identifier: Apache-2.0 */
/* A loop that checks how it is shared: each index once, and a slot for each body that runs. */
#ifndef EMBLA_TESTS_SHARE_TRIAL_H
#define EMBLA_TESTS_SHARE_TRIAL_H

#include <stdatomic.h>
#include <time.h>

#include "base/parallel.h"
#include "check.h"

enum { PARTS_MOST = 32, COUNT_MOST = 5000 };

typedef struct {
    size_t parts;
    atomic_uint seen[COUNT_MOST];
    atomic_uint running[PARTS_MOST]; /* bodies with this slot */
    atomic_size_t bad, helped;
    size_t fail_from; /* indices from here that are odd fail */
    bool slow;
} trial;

static inline void wait_us(long us)
{
    const struct timespec time = {0, us * 1000};
    (void)nanosleep(&time, NULL);
}

static inline embla_status try_range(void *job, size_t first, size_t end, size_t slot)
{
    trial *t = job;
    bool bad = first >= end || slot >= t->parts || atomic_fetch_add(&t->running[slot], 1) != 0;
    if (bad) atomic_fetch_add(&t->bad, 1);
    if (!embla_share_is_caller()) atomic_fetch_add(&t->helped, 1);
    embla_status status = EMBLA_OK;
    for (size_t i = first; i < end && status == EMBLA_OK; i++) {
        atomic_fetch_add(&t->seen[i], 1);
        if (t->slow) wait_us(100);
        if (i >= t->fail_from && i % 2 == 1)
            status = embla_fail(EMBLA_ERR_RANGE, "index %zu fails", i);
    }
    atomic_fetch_sub(&t->running[slot], 1);
    return status;
}

static inline void trial_new(trial *t, size_t parts)
{
    memset(t, 0, sizeof *t);
    t->parts = parts;
    t->fail_from = SIZE_MAX;
}

static inline bool each_once(trial *t, size_t count)
{
    bool once = atomic_load(&t->bad) == 0;
    for (size_t i = 0; i < count; i++) once = once && atomic_load(&t->seen[i]) == 1;
    return once;
}

/* Whether a loop does all that it has to. For processes and threads that cannot use assert_. */
static inline bool share_is_right(trial *t, int parts, size_t count, size_t grain)
{
    trial_new(t, parts > 1 ? (size_t)parts : 1);
    return embla_share(parts, count, grain, try_range, t) == EMBLA_OK && each_once(t, count);
}

static trial shared_trial; /* too large for a stack */

#endif
