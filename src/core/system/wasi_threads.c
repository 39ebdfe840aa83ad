/* SPDX-License-Identifier: Apache-2.0 */
/* WebAssembly with one thread: none can be started, and no library can be loaded. */
#include "system/system_threads.h"

#include <stdio.h>
#include <string.h>

/* ---- threads ---- */

embla_outcome embla_system_start(void *(*run)(void *argument), void *argument, embla_thread *out)
{
    (void)run, (void)argument;
    if (out) *out = 0;
    return embla_system_outcome(EMBLA_SYSTEM_UNSUPPORTED);
}

void embla_system_join(embla_thread thread)
{
    (void)thread;
}

void embla_system_name_thread(const char *name)
{
    (void)name;
}

/* Nobody else can change the word. */
void embla_system_wait(atomic_uint *word, unsigned seen)
{
    (void)word, (void)seen;
}

void embla_system_wake(atomic_uint *word, int count)
{
    (void)word, (void)count;
}

void embla_system_watch_forks(void (*in_child)(void))
{
    (void)in_child;
}

int embla_system_cpus(void)
{
    return 1;
}

/* The thread ends with the program, so what is called at its end is never called. */
enum { KEYS = 16 };
static void *values[KEYS];
static unsigned keys;

bool embla_system_key(void (*at_end)(void *value), embla_thread_key *out)
{
    (void)at_end;
    if (keys == KEYS) return false;
    *out = keys++;
    return true;
}

void *embla_system_value(embla_thread_key key)
{
    return values[key];
}

bool embla_system_set_value(embla_thread_key key, void *value)
{
    values[key] = value;
    return true;
}

void embla_system_block_signals(embla_signals *before)
{
    memset(before, 0, sizeof *before);
}

void embla_system_restore_signals(const embla_signals *before)
{
    (void)before;
}

/* ---- libraries ---- */

void *embla_system_load(const char *name, unsigned kind, char *why, size_t size)
{
    (void)kind;
    (void)snprintf(why, size, "%s: WebAssembly loads no libraries", name ? name : "the program");
    return NULL;
}

void embla_system_unload(void *library)
{
    (void)library;
}

void *embla_system_symbol(void *library, const char *name)
{
    (void)library, (void)name;
    return NULL;
}

bool embla_system_home(const void *address, char *out, size_t size)
{
    (void)address, (void)out, (void)size;
    return false;
}
