/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that help with a call, and the places where calls offer their work.
 *
 * A caller opens a place, works itself, and closes the place. While the place is open, other
 * threads may enter and help: threads of the pool, or of the host program (base/parallel.h). The
 * caller never waits for a thread that has not entered. So a thread that the system starts late, or
 * never, costs its help and nothing else.
 */
#ifndef EMBLA_BASE_THREAD_POOL_H
#define EMBLA_BASE_THREAD_POOL_H

#include <stdbool.h>
#include <stddef.h>

typedef struct embla_place embla_place;

/* Takes work of the call and does it, until none is left. index is the host's number for this help,
 * or EMBLA_POOL_THREAD. */
typedef void embla_help_fn(void *call, size_t index);
#define EMBLA_POOL_THREAD ((size_t)-1)

/* A place with help(call, ..) as its work: for the host's threads, or for those of the pool. NULL
 * if all places are taken. */
embla_place *embla_place_open(embla_help_fn *help, void *call, bool hosted);
/* Enters, helps and leaves. False if the place is not open to this thread. */
bool embla_place_help(embla_place *place, size_t index);

typedef enum {
    EMBLA_PLACE_EMPTY,  /* nobody was inside when it was closed */
    EMBLA_PLACE_WAITED, /* the caller waited for helpers; all have left */
    EMBLA_PLACE_LOST /* this process was forked while helpers were inside: they will never leave */
} embla_place_end;

/* Lets nobody in from now on, and waits until all have left. */
embla_place_end embla_place_close(embla_place *place);

/* Calls up to `helpers` threads of the pool to the open places; starts threads that are missing. If
 * the system refuses, fewer come. */
void embla_pool_call(int helpers);
/* False in a forked child of the process that first used the pool: it has none of its threads. */
bool embla_pool_is_here(void);
/* The number of threads that the pool has started. */
int embla_pool_threads(void);

#endif
