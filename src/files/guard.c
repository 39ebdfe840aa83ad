/* SPDX-License-Identifier: Apache-2.0 */
/* SIGBUS inside one of our maps becomes a page of zeros and a mark on the map.
 *
 * The handler may run at any moment in any thread, so the list of maps is a fixed array
 * of atomics, written once per opening and only read by the handler; it calls nothing but
 * mmap, which Linux allows there.
 */
#include "files/guard.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MOST_MAPS = 4096 };

static _Atomic(embla_map *) maps[MOST_MAPS];
static atomic_size_t used; /* places that have ever been taken */
static struct sigaction before;
static atomic_flag installing = ATOMIC_FLAG_INIT;
static size_t page;

void embla_guard_add(embla_map *map)
{
    for (size_t i = 0; i < MOST_MAPS; i++) {
        embla_map *none = NULL;
        if (!atomic_compare_exchange_strong(&maps[i], &none, map)) continue;
        size_t seen = atomic_load(&used);
        while (seen < i + 1 && !atomic_compare_exchange_weak(&used, &seen, i + 1)) continue;
        return;
    }
}

void embla_guard_drop(embla_map *map)
{
    size_t end = atomic_load(&used);
    for (size_t i = 0; i < end; i++) {
        embla_map *mine = map;
        if (atomic_compare_exchange_strong(&maps[i], &mine, NULL)) return;
    }
}

/* The map that holds this address, NULL if none does. */
static embla_map *map_of(const void *address)
{
    uintptr_t at = (uintptr_t)address;
    size_t end = atomic_load(&used);
    for (size_t i = 0; i < end; i++) {
        embla_map *map = atomic_load(&maps[i]);
        if (map && at - (uintptr_t)map->bytes < map->size) return map;
    }
    return NULL;
}

static void on_signal(int number, siginfo_t *info, void *context)
{
    int error = errno;
    embla_map *map = map_of(info->si_addr);
    void *at = (void *)((uintptr_t)info->si_addr & ~(page - 1));
    if (map && mmap(at, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == at) {
        atomic_store(&map->cut, true);
        errno = error;
        return;
    }
    if (before.sa_flags & SA_SIGINFO) {
        before.sa_sigaction(number, info, context);
    } else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
        before.sa_handler(number);
    } else { /* as if we were not here: the access is made again and ends the program */
        (void)sigaction(SIGBUS, &before, NULL);
    }
}

embla_status embla_guard(void)
{
    struct sigaction ours = {0};
    if (atomic_flag_test_and_set(&installing)) return EMBLA_OK;
    page = (size_t)sysconf(_SC_PAGESIZE);
    ours.sa_sigaction = on_signal;
    ours.sa_flags = SA_SIGINFO;
    (void)sigemptyset(&ours.sa_mask);
    if (sigaction(SIGBUS, NULL, &before) != 0 || sigaction(SIGBUS, &ours, NULL) != 0) {
        atomic_flag_clear(&installing);
        return embla_fail(EMBLA_ERR_IO, "SIGBUS cannot be handled: %s", strerror(errno));
    }
    return EMBLA_OK;
}
