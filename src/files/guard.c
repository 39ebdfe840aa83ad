/* SPDX-License-Identifier: Apache-2.0 */
/* SIGBUS inside one of our maps becomes a page of zeros and a mark on the map's place.
 *
 * The handler may run at any moment in any thread, while other threads open and close files.
 * So it follows no pointer: where each map lies is in a fixed array of atomics that is never
 * freed, and it calls nothing but mmap, sigaction and raise.
 *
 * Why it can neither miss a map nor take another for it:
 * - The map M that a fault is in cannot be closed meanwhile: who reads it, holds it. So M's
 *   place does not change while the handler looks, and a place that does change is not M's.
 *   turn counts the changes, odd while one is going on: a place whose turn is odd, or not the
 *   same before and after its base and size were read, is passed over. Without that the base
 *   of one map could be read with the size of another, and the wrong one be marked.
 * - A place is emptied before its map is unmapped. The other way round, someone else's map
 *   could be put at the same address between the two, and its fault be taken for ours. Once
 *   emptied, a place covers no address, and may be taken again at once.
 */
#include "files/guard.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/status.h"

enum { MOST_MAPS = 4096 };

static struct {
    atomic_bool taken;
    atomic_bool lost; /* a page of it; stays until the place is taken again */
    atomic_uint turn;
    atomic_uintptr_t base;
    atomic_size_t size; /* 0: no map */
} places[MOST_MAPS];
static atomic_int used; /* places that have ever been taken */

static pthread_mutex_t installing = PTHREAD_MUTEX_INITIALIZER;
static bool installed;          /* under the mutex */
static struct sigaction before; /* written before ready is set, and never after */
static atomic_bool ready;
static atomic_size_t page;

static void change(int i, uintptr_t base, size_t size)
{
    atomic_fetch_add(&places[i].turn, 1);
    atomic_store(&places[i].base, base);
    atomic_store(&places[i].size, size);
    atomic_fetch_add(&places[i].turn, 1);
}

int embla_guard_add(const void *base, size_t size)
{
    for (int i = 0; i < MOST_MAPS; i++) {
        bool none = false;
        if (atomic_load(&places[i].taken) ||
            !atomic_compare_exchange_strong(&places[i].taken, &none, true))
            continue;
        atomic_store(&places[i].lost, false);
        change(i, (uintptr_t)base, size);
        int seen = atomic_load(&used);
        while (seen < i + 1 && !atomic_compare_exchange_weak(&used, &seen, i + 1)) continue;
        return i;
    }
    return -1;
}

void embla_guard_drop(int place)
{
    if (place < 0) return;
    change(place, 0, 0);
    atomic_store(&places[place].taken, false);
}

bool embla_guard_lost(int place)
{
    return place >= 0 && atomic_load(&places[place].lost);
}

/* The place of the map that holds this address, -1 if none does. */
static int place_of(uintptr_t at)
{
    int end = atomic_load(&used);
    for (int i = 0; i < end; i++) {
        unsigned turn = atomic_load(&places[i].turn);
        uintptr_t base = atomic_load(&places[i].base);
        size_t size = atomic_load(&places[i].size);
        if (turn % 2 == 0 && atomic_load(&places[i].turn) == turn && at - base < size) return i;
    }
    return -1;
}

/* Puts zeros where a page of one of our maps was lost. */
static bool mend(const siginfo_t *info)
{
    uintptr_t at = (uintptr_t)info->si_addr;
    int place = place_of(at);
    size_t bytes = atomic_load(&page);
    if (place < 0) return false;
    /* The mark first: another thread may read the zeros as soon as they are there, and must
     * find the mark when it asks afterwards. */
    atomic_store(&places[place].lost, true);
    void *start = (void *)(at & ~(uintptr_t)(bytes - 1));
    return mmap(start, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == start;
}

/* As if we were not here. */
static void pass_on(int number, siginfo_t *info, void *context, bool sent)
{
    bool plain = !(before.sa_flags & SA_SIGINFO);
    if (plain && before.sa_handler == SIG_IGN && sent) return;
    if ((plain && (before.sa_handler == SIG_DFL || before.sa_handler == SIG_IGN)) ||
        (before.sa_flags & (int)SA_RESETHAND)) {
        /* It happens again, without us: an access because it is made again once we return, a
         * signal that was sent because we send it; it waits until we return. */
        (void)sigaction(SIGBUS, &before, NULL);
        if (sent) (void)raise(number);
    } else if (plain) {
        before.sa_handler(number);
    } else {
        before.sa_sigaction(number, info, context);
    }
}

static void on_signal(int number, siginfo_t *info, void *context)
{
    int error = errno;
    bool sent = info->si_code <= 0; /* by kill or raise: there is no address in it */
    if (atomic_load(&ready) && (sent || !mend(info))) pass_on(number, info, context, sent);
    errno = error;
}

/* Under the mutex. */
static embla_status install(void)
{
    struct sigaction ours = {0};
    if (sigaction(SIGBUS, NULL, &before) != 0)
        return embla_fail(EMBLA_ERR_IO, "SIGBUS cannot be handled: %s", strerror(errno));
    atomic_store(&page, (size_t)sysconf(_SC_PAGESIZE));
    atomic_store(&ready, true);
    ours.sa_sigaction = on_signal;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK; /* threads of others may have small stacks */
    ours.sa_mask = before.sa_mask;           /* for the handler that we pass signals on to */
    if (sigaction(SIGBUS, &ours, NULL) != 0)
        return embla_fail(EMBLA_ERR_IO, "SIGBUS cannot be handled: %s", strerror(errno));
    installed = true;
    return EMBLA_OK;
}

embla_status embla_guard(void)
{
    embla_status status = EMBLA_OK;
    (void)pthread_mutex_lock(&installing); /* who comes second, returns when it is installed */
    if (!installed) status = install();
    (void)pthread_mutex_unlock(&installing);
    return status;
}
