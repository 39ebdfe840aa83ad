/* SPDX-License-Identifier: Apache-2.0 */
/* The handler of SIGBUS: it replaces a lost page of one of our maps by zeros and marks the map's
 * entry as lost.
 *
 * The handler may run at any time in any thread, while other threads open and close files. So it
 * follows no pointers: the address and size of each map are in a fixed array of atomics that is
 * never freed. It calls only mmap, sigaction and raise.
 *
 * Why it always finds the right map:
 * - The map M that a fault is in cannot be closed meanwhile, because the thread that reads it
 *   owns it. So M's entry does not change during the search, and an entry that does change is
 *   not M's. `version` counts the changes and is odd during one (a seqlock). The search skips an
 *   entry whose version is odd, or differs before and after its base and size were read.
 *   Otherwise it could combine the base of one map with the size of another.
 * - An entry is cleared before its map is unmapped. In the other order, another map could appear
 *   at the same address in between, and its fault would be taken for ours. A cleared entry
 *   covers no address and may be reused at once.
 *
 * Why no zeros are taken for rows: the handler sets `lost`, then maps the zeros; a reader reads
 * rows, then `lost`, with a fence in between, because a load may pass an earlier plain load. So
 * whoever has read the zeros sees the mark. All other atomics are sequentially consistent: they
 * cost nothing beside opening a file or a fault.
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
    atomic_bool lost; /* a page was lost; stays set until the entry is reused */
    atomic_uint version;
    atomic_uintptr_t base;
    atomic_size_t size; /* 0 means no map */
} entries[MOST_MAPS];
static atomic_int used; /* entries that have ever been taken */

static pthread_mutex_t installing = PTHREAD_MUTEX_INITIALIZER;
static bool installed;          /* protected by the mutex */
static struct sigaction before; /* written only before ready is set */
static atomic_bool ready;
static atomic_size_t page;

static void set_entry(int i, uintptr_t base, size_t size)
{
    atomic_fetch_add(&entries[i].version, 1);
    atomic_store(&entries[i].base, base);
    atomic_store(&entries[i].size, size);
    atomic_fetch_add(&entries[i].version, 1);
}

int embla_guard_add(const void *base, size_t size)
{
    size_t whole = (size_t)sysconf(_SC_PAGESIZE); /* the last page belongs to the map as a whole */
    size += (whole - size % whole) % whole;
    for (int i = 0; i < MOST_MAPS; i++) {
        bool none = false;
        if (atomic_load(&entries[i].taken) ||
            !atomic_compare_exchange_strong(&entries[i].taken, &none, true))
            continue;
        atomic_store(&entries[i].lost, false);
        set_entry(i, (uintptr_t)base, size);
        int seen = atomic_load(&used);
        while (seen < i + 1 && !atomic_compare_exchange_weak(&used, &seen, i + 1)) continue;
        return i;
    }
    return -1;
}

void embla_guard_remove(int entry)
{
    if (entry < 0) return;
    set_entry(entry, 0, 0);
    atomic_store(&entries[entry].taken, false);
}

bool embla_guard_lost(int entry)
{
    if (entry < 0) return false;
    atomic_thread_fence(memory_order_acquire); /* after all reads of rows */
    return atomic_load_explicit(&entries[entry].lost, memory_order_relaxed);
}

/* Finds the entry of the map that contains this address; -1 if there is none. */
static int find_entry(uintptr_t at)
{
    int end = atomic_load(&used);
    for (int i = 0; i < end; i++) {
        unsigned version = atomic_load(&entries[i].version);
        uintptr_t base = atomic_load(&entries[i].base);
        size_t size = atomic_load(&entries[i].size);
        if (version % 2 == 0 && atomic_load(&entries[i].version) == version && at - base < size)
            return i;
    }
    return -1;
}

/* Replaces a lost page of one of our maps by zeros. False if the address is in none of them. */
static bool replace_page(const siginfo_t *info)
{
    uintptr_t at = (uintptr_t)info->si_addr;
    int entry = find_entry(at);
    size_t bytes = atomic_load(&page);
    if (entry < 0) return false;
    /* Mark first: another thread may read the zeros as soon as they are mapped, and must see the
     * mark when it checks afterwards. */
    atomic_store(&entries[entry].lost, true);
    void *start = (void *)(at & ~(uintptr_t)(bytes - 1));
    /* writable, because the lost page of a private map may be written to (embla_map_private) */
    return mmap(start, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
                0) == start;
}

/* Does what would have happened if this handler had not been installed. */
static void pass_on(int number, siginfo_t *info, void *context, bool sent)
{
    bool plain = !(before.sa_flags & SA_SIGINFO);
    if (plain && before.sa_handler == SIG_IGN && sent) return;
    if ((plain && (before.sa_handler == SIG_DFL || before.sa_handler == SIG_IGN)) ||
        (before.sa_flags & (int)SA_RESETHAND)) {
        /* Restore the old handler and let the signal happen again. A faulting access is repeated
         * when we return; a signal that was sent is sent again, and is blocked until then. */
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
    bool sent = info->si_code <= 0; /* by kill or raise; such a signal has no address */
    if (atomic_load(&ready) && (sent || !replace_page(info))) pass_on(number, info, context, sent);
    errno = error;
}

/* Called with the mutex held. */
static embla_status install(void)
{
    struct sigaction ours = {0};
    if (sigaction(SIGBUS, NULL, &before) != 0)
        return embla_fail(EMBLA_ERR_IO, "cannot install a handler for SIGBUS: %s", strerror(errno));
    atomic_store(&page, (size_t)sysconf(_SC_PAGESIZE));
    atomic_store(&ready, true);
    ours.sa_sigaction = on_signal;
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK; /* other threads may have small stacks */
    ours.sa_mask = before.sa_mask;           /* for the old handler, which we may call */
    if (sigaction(SIGBUS, &ours, NULL) != 0)
        return embla_fail(EMBLA_ERR_IO, "cannot install a handler for SIGBUS: %s", strerror(errno));
    installed = true;
    return EMBLA_OK;
}

embla_status embla_guard(void)
{
    embla_status status = EMBLA_OK;
    (void)pthread_mutex_lock(&installing); /* a second caller waits until it is installed */
    if (!installed) status = install();
    (void)pthread_mutex_unlock(&installing);
    return status;
}
