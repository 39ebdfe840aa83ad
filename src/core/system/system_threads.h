/* SPDX-License-Identifier: Apache-2.0 */
/* Threads, waiting, and libraries that are loaded. base/thread_system.c, base/lock.c, base/cpus.c
 * and base/load.c are in front of it. */
#ifndef EMBLA_SYSTEM_SYSTEM_THREADS_H
#define EMBLA_SYSTEM_SYSTEM_THREADS_H

#include <stdatomic.h>

#include "system/system.h"

/* ---- threads ---- */

typedef uintptr_t embla_thread;

/* Starts a thread that runs `run` once. Its stack has 2 MiB. It receives no signal except those
 * that its own code raises. Join it; if out is NULL, it ends by itself. EMBLA_SYSTEM_UNSUPPORTED:
 * the system has no threads. */
embla_outcome embla_system_start(void *(*run)(void *argument), void *argument, embla_thread *out);
void embla_system_join(embla_thread thread);
/* Names the calling thread, for debuggers and profilers; at most 15 characters. */
void embla_system_name_thread(const char *name);
/* Sleeps while *word == seen. May return early. */
void embla_system_wait(atomic_uint *word, unsigned seen);
/* Wakes at least `count` threads that sleep on the word, or all of them. */
void embla_system_wake(atomic_uint *word, int count);
/* Calls in_child in each process that is forked from this one. */
void embla_system_watch_forks(void (*in_child)(void));
/* CPUs that this process may use, and the time on them that it is granted; at least 1. */
int embla_system_cpus(void);

/* A value of each thread. at_end is called with it, unless it is NULL, when the thread ends. */
typedef unsigned embla_thread_key;
bool embla_system_key(void (*at_end)(void *value), embla_thread_key *out);
void *embla_system_value(embla_thread_key key);
bool embla_system_set_value(embla_thread_key key, void *value);

/* Which signals the calling thread receives. */
typedef struct {
    uint64_t words[16];
} embla_signals;
/* Blocks all but those that the thread's own code can raise; *before is what was blocked. */
void embla_system_block_signals(embla_signals *before);
void embla_system_restore_signals(const embla_signals *before);

/* ---- libraries ---- */

typedef enum {
    EMBLA_LOAD_OWN = 0,    /* its names are found only by embla_system_symbol */
    EMBLA_LOAD_GLOBAL = 1, /* libraries that are loaded later find them too */
    EMBLA_LOAD_STAYS = 2   /* stays loaded also after embla_system_unload */
} embla_load_kind;

/* Loads a library by its path or name; NULL means the program itself. Returns NULL with the reason
 * if that fails. */
void *embla_system_load(const char *name, unsigned kind, char *why, size_t size);
void embla_system_unload(void *library);
/* NULL if the library has no such name. */
void *embla_system_symbol(void *library, const char *name);
/* The path of the library or program that an address is in. False if the system does not tell. */
bool embla_system_home(const void *address, char *out, size_t size);

#endif
