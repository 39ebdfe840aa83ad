/* SPDX-License-Identifier: Apache-2.0 */
#include "base/lock.h"

#include <limits.h>

#include "system/system_threads.h"

/* A thread that has slept does not know whether others do, so it leaves the lock AWAITED. */
void embla_lock_wait(embla_lock *lock)
{
    while (atomic_exchange_explicit(&lock->state, EMBLA_LOCK_AWAITED, memory_order_acquire) !=
           EMBLA_LOCK_FREE)
        embla_system_wait(&lock->state, EMBLA_LOCK_AWAITED);
}

void embla_lock_wake(embla_lock *lock)
{
    embla_system_wake(&lock->state, 1);
}

void embla_condition_wait(embla_condition *condition, embla_lock *lock)
{
    (void)atomic_fetch_add(&condition->waiting, 1);
    unsigned seen = atomic_load(&condition->signals);
    embla_lock_give(lock);
    embla_system_wait(&condition->signals, seen);
    (void)atomic_fetch_sub(&condition->waiting, 1);
    embla_lock_take(lock);
}

static void signal_some(embla_condition *condition, int count)
{
    (void)atomic_fetch_add(&condition->signals, 1);
    if (atomic_load(&condition->waiting) > 0) embla_system_wake(&condition->signals, count);
}

void embla_condition_signal(embla_condition *condition)
{
    signal_some(condition, 1);
}

void embla_condition_signal_all(embla_condition *condition)
{
    signal_some(condition, INT_MAX);
}

void embla_once_run(embla_once *once, void (*work)(void))
{
    enum { NOW = 1, DONE };
    unsigned none = 0;
    if (atomic_load_explicit(&once->state, memory_order_acquire) == DONE) return;
    if (atomic_compare_exchange_strong_explicit(&once->state, &none, NOW, memory_order_acquire,
                                                memory_order_relaxed)) {
        work();
        atomic_store_explicit(&once->state, DONE, memory_order_release);
        embla_system_wake(&once->state, INT_MAX);
        return;
    }
    while (atomic_load_explicit(&once->state, memory_order_acquire) != DONE)
        embla_system_wait(&once->state, NOW);
}
