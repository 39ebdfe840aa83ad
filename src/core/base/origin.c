/* SPDX-License-Identifier: Apache-2.0 */
/* Forks are counted by a handler that runs in the child. A comparison of process numbers would be
 * a system call, which costs as much as looking up a row that is in memory. */
#include "base/origin.h"

#include <stdatomic.h>

#include "base/lock.h"
#include "system/system_threads.h"

static atomic_uint forks;
static embla_once watched;

static void in_child(void)
{
    atomic_fetch_add_explicit(&forks, 1, memory_order_relaxed);
}

static void watch_forks(void)
{
    embla_system_watch_forks(in_child);
}

embla_origin embla_origin_here(void)
{
    embla_once_run(&watched, watch_forks);
    return (embla_origin){.process = embla_system_process(),
                          .forks = atomic_load_explicit(&forks, memory_order_relaxed)};
}

bool embla_origin_is_here(const embla_origin *origin)
{
    return origin->forks == atomic_load_explicit(&forks, memory_order_relaxed);
}

embla_status embla_origin_check(const embla_origin *origin, const char *what)
{
    if (embla_origin_is_here(origin)) return EMBLA_OK;
    return embla_fail(EMBLA_ERR_UNSUPPORTED,
                      "process %ld opened %s, and process %ld was forked from it: open %s again",
                      origin->process, what, embla_system_process(), what);
}
