/* SPDX-License-Identifier: Apache-2.0 */
/* Linux sleeps on a word itself (futex). Elsewhere all words share one mutex and one condition:
 * slower if many threads sleep, but without private interfaces of the system. */
#include "base/thread_system.h"

#include <pthread.h>
#include <signal.h>

#if defined(__linux__) && !defined(EMBLA_NO_FUTEX)
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

/* ---- a thread ---- */

/* Explicit, because defaults range from 128 KiB (musl) to 8 MiB (glibc). Pages that are not touched
 * cost address space only. */
enum { STACK_BYTES = 2 << 20 };

/* The host's signal handlers run on the host's threads. Our threads take only the signals that
 * their own code can raise; blocking those would end the process. */
static void block_signals(sigset_t *before)
{
    static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS};
    sigset_t blocked;
    (void)sigfillset(&blocked);
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) (void)sigdelset(&blocked, own[i]);
    (void)pthread_sigmask(SIG_SETMASK, &blocked, before);
}

bool embla_thread_start(void *(*run)(void *argument), void *argument)
{
    pthread_attr_t attributes;
    pthread_t thread;
    sigset_t before;
    if (pthread_attr_init(&attributes) != 0) return false;
    bool started = pthread_attr_setstacksize(&attributes, STACK_BYTES) == 0 &&
                   pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED) == 0;
    if (started) {
        /* a new thread has the mask of its creator: set before, no signal can slip in */
        block_signals(&before);
        started = pthread_create(&thread, &attributes, run, argument) == 0;
        (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    (void)pthread_attr_destroy(&attributes);
    return started;
}

void embla_thread_name(const char *name)
{
#if defined(__linux__)
    (void)pthread_setname_np(pthread_self(), name);
#elif defined(__APPLE__)
    (void)pthread_setname_np(name);
#else
    (void)name;
#endif
}

/* ---- sleeping ---- */

#if defined(__linux__) && !defined(EMBLA_NO_FUTEX)

void embla_word_wait(atomic_uint *word, unsigned seen)
{
    (void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
}

void embla_word_wake(atomic_uint *word, int count)
{
    (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}

#else

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

void embla_word_wait(atomic_uint *word, unsigned seen)
{
    (void)pthread_mutex_lock(&lock);
    while (atomic_load(word) == seen) (void)pthread_cond_wait(&changed, &lock);
    (void)pthread_mutex_unlock(&lock);
}

/* The word has changed before the lock is taken, so a thread either sees the change or already
 * waits. All wake, because they may wait for different words. */
void embla_word_wake(atomic_uint *word, int count)
{
    (void)word;
    (void)count;
    (void)pthread_mutex_lock(&lock);
    (void)pthread_cond_broadcast(&changed);
    (void)pthread_mutex_unlock(&lock);
}

#endif
