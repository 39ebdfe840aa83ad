/* SPDX-License-Identifier: Apache-2.0 */
/* Calls the caller's progress function (embla_progress_fn): at the ends of parts, or now and then
 * from a loop on several threads. Inline, so that all libraries use it without an exported symbol.
 */
#ifndef EMBLA_BASE_STOP_H
#define EMBLA_BASE_STOP_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/clock.h"
#include "base/status.h"

EMBLA_CHECKED static inline embla_status embla_stopped(const char *what, int64_t done,
                                                       int64_t total)
{
    return embla_fail(EMBLA_ERR_STOPPED,
                      "stopped by the caller: %s, %" PRId64 " of %" PRId64 " done", what, done,
                      total);
}

/* EMBLA_ERR_STOPPED if the function returns false. progress may be NULL. */
EMBLA_CHECKED static inline embla_status embla_progress_report(embla_progress_fn progress,
                                                               void *context, const char *what,
                                                               int64_t done, int64_t total)
{
    if (!progress || progress(context, what, done, total)) return EMBLA_OK;
    return embla_stopped(what, done, total);
}

/* ---- a loop on several threads ---- */

enum { EMBLA_WATCH_NS = 20000000 }; /* between two calls of the function */

/* What the threads of a call share. */
typedef struct {
    embla_progress_fn progress; /* NULL means none */
    void *context;
    const char *what;
    int64_t total;
    _Atomic int64_t done;
    atomic_bool stopped;
    int64_t next; /* when the function is called next, by embla_clock_ns */
} embla_watch;

static inline void embla_watch_begin(embla_watch *watch, embla_progress_fn progress, void *context,
                                     const char *what)
{
    watch->progress = progress;
    watch->context = context;
    watch->what = what;
    watch->total = 0;
    watch->next = progress ? embla_clock_ns() + EMBLA_WATCH_NS : 0;
    atomic_init(&watch->done, 0);
    atomic_init(&watch->stopped, false);
}

/* Adds to what is done. The thread that made the call also calls the function, if it is time. True
 * if the call has to stop. watch may be NULL. */
static inline bool embla_watch_step(embla_watch *watch, bool caller, int64_t more)
{
    if (!watch || !watch->progress) return false;
    int64_t done = atomic_fetch_add(&watch->done, more) + more;
    if (caller && !atomic_load(&watch->stopped)) {
        int64_t now = embla_clock_ns();
        if (now >= watch->next) {
            if (!watch->progress(watch->context, watch->what, done, watch->total))
                atomic_store(&watch->stopped, true);
            watch->next = embla_clock_ns() + EMBLA_WATCH_NS;
        }
    }
    return atomic_load(&watch->stopped);
}

/* EMBLA_ERR_STOPPED if the function has returned false. watch may be NULL. */
EMBLA_CHECKED static inline embla_status embla_watch_say(embla_watch *watch)
{
    if (!watch || !watch->progress || !atomic_load(&watch->stopped)) return EMBLA_OK;
    return embla_stopped(watch->what, atomic_load(&watch->done), watch->total);
}

#endif
