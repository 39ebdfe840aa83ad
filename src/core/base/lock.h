/* SPDX-License-Identifier: Apache-2.0 */
/* A lock, a condition and a thing that is done once, for all systems. Zeros are a free lock, so
 * none needs to be made or freed. A lock that is free is taken without a call of the system.
 *
 * The state of a lock is 0 (free), TAKEN, or AWAITED: taken, and a thread may sleep. Taking it
 * acquires and giving it back releases, so what was written under the lock is seen under it.
 *
 * A condition counts its signals. A thread that waits adds itself to `waiting`, reads the count,
 * gives the lock back and sleeps while the count is what it read. Who signals adds to the count,
 * then reads `waiting`. Both are sequentially consistent, so either the thread sees the new count,
 * or it is seen and woken.
 */
#ifndef EMBLA_BASE_LOCK_H
#define EMBLA_BASE_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/status.h"

typedef struct {
    atomic_uint state;
} embla_lock;

/* The rest of taking and giving back, where threads sleep. */
EMBLA_PRIVATE void embla_lock_wait(embla_lock *lock);
EMBLA_PRIVATE void embla_lock_wake(embla_lock *lock);

enum { EMBLA_LOCK_FREE, EMBLA_LOCK_TAKEN, EMBLA_LOCK_AWAITED };

static inline bool embla_lock_try(embla_lock *lock)
{
    unsigned none = EMBLA_LOCK_FREE;
    return atomic_compare_exchange_strong_explicit(&lock->state, &none, EMBLA_LOCK_TAKEN,
                                                   memory_order_acquire, memory_order_relaxed);
}

static inline void embla_lock_take(embla_lock *lock)
{
    if (!embla_lock_try(lock)) embla_lock_wait(lock);
}

static inline void embla_lock_give(embla_lock *lock)
{
    if (atomic_exchange_explicit(&lock->state, EMBLA_LOCK_FREE, memory_order_release) ==
        EMBLA_LOCK_AWAITED)
        embla_lock_wake(lock);
}

typedef struct {
    atomic_uint signals, waiting;
} embla_condition;

/* Gives the lock back, sleeps until the condition is signalled, and takes the lock. May return
 * early, so the caller looks again. */
void embla_condition_wait(embla_condition *condition, embla_lock *lock);
/* Wakes one thread that waits, or all of them. */
void embla_condition_signal(embla_condition *condition);
void embla_condition_signal_all(embla_condition *condition);

typedef struct {
    atomic_uint state; /* 0, then 1 while it is done, then 2 */
} embla_once;

/* Calls work if nobody has; returns when it is done. */
EMBLA_PRIVATE void embla_once_run(embla_once *once, void (*work)(void));

#endif
