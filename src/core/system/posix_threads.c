/* SPDX-License-Identifier: Apache-2.0 */
/* Threads, signals and libraries of systems like Unix. */
#include "system/system_threads.h"

#include "system/posix.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

/* ---- signals ---- */

_Static_assert(sizeof(sigset_t) <= sizeof(embla_signals), "a set of signals fits");

/* The host's signal handlers run on the host's threads. Blocking what a thread's own code can raise
 * would end the process. */
void embla_system_block_signals(embla_signals *before)
{
    static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS};
    sigset_t blocked, set;
    (void)sigfillset(&blocked);
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) (void)sigdelset(&blocked, own[i]);
    (void)pthread_sigmask(SIG_BLOCK, &blocked, &set);
    memcpy(before, &set, sizeof set);
}

void embla_system_restore_signals(const embla_signals *before)
{
    sigset_t set;
    memcpy(&set, before, sizeof set);
    (void)pthread_sigmask(SIG_SETMASK, &set, NULL);
}

/* ---- threads ---- */

/* Explicit, because defaults range from 128 KiB (musl) to 8 MiB (glibc). Pages that are not touched
 * cost address space only. */
enum { STACK_BYTES = 2 << 20 };

static int create(pthread_attr_t *attributes, void *(*run)(void *argument), void *argument,
                  embla_thread *out)
{
    pthread_t thread;
    embla_signals before;
    int state = out ? PTHREAD_CREATE_JOINABLE : PTHREAD_CREATE_DETACHED;
    int error = pthread_attr_setstacksize(attributes, STACK_BYTES);
    if (error == 0) error = pthread_attr_setdetachstate(attributes, state);
    if (error != 0) return error;
    /* a new thread has the mask of its creator: set before, no signal can slip in */
    embla_system_block_signals(&before);
    error = pthread_create(&thread, attributes, run, argument);
    embla_system_restore_signals(&before);
    if (error == 0 && out) *out = (embla_thread)thread;
    return error;
}

embla_outcome embla_system_start(void *(*run)(void *argument), void *argument, embla_thread *out)
{
    pthread_attr_t attributes;
    errno = pthread_attr_init(&attributes);
    if (errno != 0) return embla_posix_failed();
    errno = create(&attributes, run, argument, out);
    embla_outcome done = embla_posix_ended(errno == 0 ? 0 : -1);
    (void)pthread_attr_destroy(&attributes);
    return done;
}

void embla_system_join(embla_thread thread)
{
    (void)pthread_join((pthread_t)thread, NULL);
}

void embla_system_watch_forks(void (*in_child)(void))
{
    (void)pthread_atfork(NULL, NULL, in_child);
}

_Static_assert(sizeof(pthread_key_t) <= sizeof(uintptr_t), "a key fits");

bool embla_system_key(void (*at_end)(void *value), embla_thread_key *out)
{
    pthread_key_t key;
    if (pthread_key_create(&key, at_end) != 0) return false;
    *out = (embla_thread_key)key;
    return true;
}

void *embla_system_value(embla_thread_key key)
{
    return pthread_getspecific((pthread_key_t)key);
}

bool embla_system_set_value(embla_thread_key key, void *value)
{
    return pthread_setspecific((pthread_key_t)key, value) == 0;
}

/* ---- libraries ---- */

void *embla_system_load(const char *name, unsigned kind, char *why, size_t size)
{
    int flags = RTLD_NOW | (kind & EMBLA_LOAD_GLOBAL ? RTLD_GLOBAL : RTLD_LOCAL) |
                (kind & EMBLA_LOAD_STAYS ? RTLD_NODELETE : 0);
    void *library = dlopen(name, flags);
    const char *reason = library ? NULL : dlerror();
    if (!library) (void)snprintf(why, size, "%s", reason ? reason : name);
    return library;
}

void embla_system_unload(void *library)
{
    (void)dlclose(library);
}

void *embla_system_symbol(void *library, const char *name)
{
    return dlsym(library, name);
}

bool embla_system_home(const void *address, char *out, size_t size)
{
    Dl_info info;
    if (dladdr(address, &info) == 0 || !info.dli_fname) return false;
    return (size_t)snprintf(out, size, "%s", info.dli_fname) < size;
}
