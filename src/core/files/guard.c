/* SPDX-License-Identifier: Apache-2.0 */
/* Which lost pages are of our maps: the handler of system/system_memory.h asks for the entry of a
 * map, which is then marked as lost, and replaces the page by zeros.
 *
 * The handler may run at any time in any thread, while other threads open and close files. So what
 * it calls here follows no pointers: the address and size of each map are in a fixed array of
 * atomics that is never freed.
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

#include <stdatomic.h>
#include <stdint.h>

#include "base/lock.h"
#include "base/mem.h"
#include "system/system_memory.h"

enum { MOST_MAPS = 4096 };

static struct {
    atomic_bool taken;
    atomic_bool lost; /* a page was lost; stays set until the entry is reused */
    atomic_uint version;
    atomic_uintptr_t base;
    atomic_size_t size; /* 0 means no map */
} entries[MOST_MAPS];
static atomic_int used; /* entries that have ever been taken */

static embla_lock installing;
static bool installed; /* protected by the lock */

static void set_entry(int i, uintptr_t base, size_t size)
{
    atomic_fetch_add(&entries[i].version, 1);
    atomic_store(&entries[i].base, base);
    atomic_store(&entries[i].size, size);
    atomic_fetch_add(&entries[i].version, 1);
}

int embla_guard_add(const void *base, size_t size)
{
    size_t whole = embla_mem_page(); /* the last page belongs to the map as a whole */
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

/* Called by the handler. Marks first: another thread may read the zeros as soon as they are mapped,
 * and must see the mark when it checks afterwards. */
static bool is_ours(uintptr_t at)
{
    int entry = find_entry(at);
    if (entry < 0) return false;
    atomic_store(&entries[entry].lost, true);
    return true;
}

/* Called with the lock held. */
static embla_status install(void)
{
    char why[128];
    embla_outcome done = embla_system_guard(is_ours);
    installed = embla_worked(done);
    if (installed) return EMBLA_OK;
    embla_system_describe(done.number, why, sizeof why);
    return embla_fail(done.error == EMBLA_SYSTEM_UNSUPPORTED ? EMBLA_ERR_UNSUPPORTED : EMBLA_ERR_IO,
                      "cannot install a handler for lost pages of files: %s", why);
}

embla_status embla_guard(void)
{
    embla_status status = EMBLA_OK;
    embla_lock_take(&installing); /* a second caller waits until it is installed */
    if (!installed) status = install();
    embla_lock_give(&installing);
    return status;
}
