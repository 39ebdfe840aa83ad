/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a place is one word: flags, and how many helpers are inside.
 *
 *   0 -> TAKEN            a caller takes the place and writes help and call
 *     -> TAKEN|OPEN       published: helpers enter by adding 1, only while OPEN is set
 *     -> TAKEN            closed: nobody enters; the caller waits until inside is 0
 *     -> TAKEN|SLEEPING   the same, and the last helper that leaves must wake the caller
 *     -> 0                free
 *
 * TAKEN|OPEN|HOSTED is open to the host's threads alone; without HOSTED, to those of the pool.
 *
 * A helper reads help and call after it has entered, so it never reads those of a call that has
 * returned. The word needs no epoch: a helper that entered a later call than it looked at is as
 * welcome there.
 *
 * Memory orders:
 * - open, enter: the store of OPEN releases help, call and all that the caller wrote before; the
 *   exchange that enters acquires it. Others that enter or leave in between are read-modify-writes,
 *   which continue the release sequence.
 * - leave, close: leaving releases what the helper wrote; the caller's load of inside == 0 acquires
 *   it from all helpers, by the same rule.
 * - free, take: the store of 0 releases, taking acquires: the next caller's writes to help and call
 *   come after all reads of the previous ones.
 * - call, look: a caller opens its place, then adds to posted, which releases the place; a thread
 *   acquires posted, then looks at the places. Who has seen the number has seen the place.
 * - call, sleep: `posted`, `asleep` and the end of `polling` are sequentially consistent. A caller
 *   adds to posted, then reads polling and asleep; a thread leaves polling, adds to asleep, then
 *   compares posted (in the kernel, which has a full barrier before). In the single order of these,
 *   one of them sees the other, so no call is missed.
 * - relaxed: `woken_at` and the beginning of `polling` are only hints; `started` and `wanted` are
 *   written under a mutex, and an old number costs no more than a look at that mutex.
 *
 * Threads start at the first call that can use them, sleep without work, and are never joined: at
 * exit they sleep, or work on memory that exists until the process ends. The shared library is
 * linked with -z nodelete, because dlclose would unmap the code they run.
 */
#include "base/thread_pool.h"

#include <stdatomic.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/lines.h"
#include "base/lock.h"
#include "base/origin.h"
#include "base/thread_system.h"

/* More callers at once than this work alone. */
enum { PLACES = 8 };
enum { INSIDE = 0xffff, OPEN = 1 << 16, TAKEN = 1 << 17, SLEEPING = 1 << 18, HOSTED = 1 << 19 };
/* How long a thread polls before it sleeps: decision 033 has the measurements. */
enum { SPIN_NS = 20000, POLLS_PER_LOOK = 8 };

struct embla_place {
    _Alignas(EMBLA_LINE) atomic_uint state;
    embla_help_fn *help;
    void *call;
};

static embla_place places[PLACES];

/* What callers write and threads of the pool watch. */
static _Alignas(EMBLA_LINE) atomic_uint posted; /* counts calls for help */
static atomic_int asleep, polling;              /* threads of the pool */
static _Atomic int64_t woken_at;                /* when sleeping threads were last called */

static _Alignas(EMBLA_LINE) atomic_int started; /* threads that run */
static atomic_int wanted;                       /* the most that were ever tried */
static embla_lock growing;

/* ---- forks ---- */

static embla_origin first;
static embla_once watched;

static void watch_forks(void)
{
    first = embla_origin_here();
}

bool embla_pool_is_here(void)
{
    embla_once_run(&watched, watch_forks);
    return embla_origin_is_here(&first);
}

/* ---- polling ---- */

/* Polls until the word is no longer `seen`. False after SPIN_NS. Time is counted, not polls: a
 * pause takes 10 cycles on some CPUs and 140 on others. */
static bool poll_word(atomic_uint *word, unsigned seen)
{
    for (int64_t end = 0;;) {
        for (int i = 0; i < POLLS_PER_LOOK; i++) {
            if (atomic_load_explicit(word, memory_order_acquire) != seen) return true;
            embla_cpu_pause();
        }
        int64_t now = embla_clock_ns();
        if (end == 0) end = now + SPIN_NS;
        if (now >= end) return false;
    }
}

/* ---- places ---- */

embla_place *embla_place_open(embla_help_fn *help, void *call, bool hosted)
{
    const unsigned opened = TAKEN | OPEN | (hosted ? HOSTED : 0);
    for (size_t i = 0; i < PLACES; i++) {
        embla_place *place = &places[i];
        unsigned none = 0;
        if (atomic_load_explicit(&place->state, memory_order_relaxed) != 0 ||
            !atomic_compare_exchange_strong_explicit(&place->state, &none, TAKEN,
                                                     memory_order_acquire, memory_order_relaxed))
            continue;
        place->help = help;
        place->call = call;
        atomic_store_explicit(&place->state, opened, memory_order_release);
        return place;
    }
    return NULL;
}

static bool enter(embla_place *place, bool hosted)
{
    const unsigned opened = OPEN | (hosted ? HOSTED : 0);
    unsigned state = atomic_load_explicit(&place->state, memory_order_relaxed);
    while ((state & (OPEN | HOSTED)) == opened && (state & INSIDE) < INSIDE)
        if (atomic_compare_exchange_weak_explicit(&place->state, &state, state + 1,
                                                  memory_order_acquire, memory_order_relaxed))
            return true;
    return false;
}

/* The place may be another caller's as soon as nobody is inside. To wake that one by mistake is
 * harmless, because it looks again. */
static void leave(embla_place *place)
{
    unsigned state = atomic_fetch_sub_explicit(&place->state, 1, memory_order_release);
    if ((state & (OPEN | SLEEPING | INSIDE)) == (SLEEPING | 1)) embla_system_wake(&place->state, 1);
}

bool embla_place_help(embla_place *place, size_t index)
{
    if (!enter(place, index != EMBLA_POOL_THREAD)) return false;
    place->help(place->call, index);
    leave(place);
    return true;
}

embla_place_end embla_place_close(embla_place *place)
{
    unsigned state =
        atomic_fetch_and_explicit(&place->state, ~(unsigned)OPEN, memory_order_acquire);
    embla_place_end end = (state & INSIDE) == 0 ? EMBLA_PLACE_EMPTY : EMBLA_PLACE_WAITED;
    while ((state & INSIDE) != 0) {
        if (!poll_word(&place->state, state & ~(unsigned)OPEN)) {
            if (!embla_pool_is_here()) return EMBLA_PLACE_LOST;
            state = atomic_fetch_or_explicit(&place->state, SLEEPING, memory_order_acquire);
            if ((state & INSIDE) != 0) embla_system_wait(&place->state, state | SLEEPING);
        }
        state = atomic_load_explicit(&place->state, memory_order_acquire);
    }
    atomic_store_explicit(&place->state, 0, memory_order_release);
    return end;
}

/* ---- the threads of the pool ---- */

static bool help_all(void)
{
    bool helped = false;
    for (size_t i = 0; i < PLACES; i++) helped |= embla_place_help(&places[i], EMBLA_POOL_THREAD);
    return helped;
}

/* A thread polls after useful work only, and only if the previous poll found work, or would have:
 * between the calls of a busy training it saves the wake-up; for a call now and then it would be
 * waste. */
static void *run_thread(void *unused)
{
    bool pays = true;
    embla_system_name_thread("embla");
    for (;;) {
        unsigned seen = atomic_load_explicit(&posted, memory_order_acquire);
        bool helped = help_all();
        if (helped && pays) {
            atomic_fetch_add_explicit(&polling, 1, memory_order_relaxed);
            pays = poll_word(&posted, seen);
            atomic_fetch_sub(&polling, 1);
            if (pays) continue;
        }
        int64_t since = embla_clock_ns();
        atomic_fetch_add(&asleep, 1);
        embla_system_wait(&posted, seen);
        atomic_fetch_sub(&asleep, 1);
        if (helped) pays = atomic_load_explicit(&woken_at, memory_order_relaxed) - since < SPIN_NS;
    }
    return unused;
}

/* A number that was tried once is not tried again: if the system refused, only a larger request
 * makes another attempt. */
static void grow(int helpers)
{
    if (!embla_lock_try(&growing)) return; /* another caller does it */
    if (helpers > atomic_load_explicit(&wanted, memory_order_relaxed)) {
        int count = atomic_load_explicit(&started, memory_order_relaxed);
        while (count < helpers && embla_worked(embla_thread_start(run_thread, NULL, NULL))) count++;
        atomic_store_explicit(&started, count, memory_order_relaxed);
        atomic_store_explicit(&wanted, helpers, memory_order_relaxed);
    }
    embla_lock_give(&growing);
}

/* Threads that poll come by themselves. Who sleeps is woken, but not more than are needed. */
void embla_pool_call(int helpers)
{
    if (helpers > atomic_load_explicit(&wanted, memory_order_relaxed)) grow(helpers);
    atomic_fetch_add(&posted, 1);
    int more = helpers - atomic_load(&polling), sleepers = atomic_load(&asleep);
    if (more > sleepers) more = sleepers;
    if (more <= 0) return;
    atomic_store_explicit(&woken_at, embla_clock_ns(), memory_order_relaxed);
    embla_system_wake(&posted, more);
}

int embla_pool_threads(void)
{
    return atomic_load_explicit(&started, memory_order_relaxed);
}
