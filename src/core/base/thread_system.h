/* SPDX-License-Identifier: Apache-2.0 */
/* Starting threads, for the thread pool and the readers of stores. A test can make any start fail.
 */
#ifndef EMBLA_BASE_THREAD_SYSTEM_H
#define EMBLA_BASE_THREAD_SYSTEM_H

#include "base/status.h"
#include "system/system_threads.h"

/* Starts a thread that runs `run` once, see embla_system_start. EMBLA_SYSTEM_UNSUPPORTED: the
 * system has no threads. */
embla_outcome embla_thread_start(void *(*run)(void *argument), void *argument, embla_thread *out);

/* embla_system_key, _value, _block_signals and their opposites, for the libraries above. */
EMBLA_PRIVATE bool embla_thread_key_new(void (*at_end)(void *value), embla_thread_key *out);
EMBLA_PRIVATE void *embla_thread_value(embla_thread_key key);
EMBLA_PRIVATE bool embla_thread_set_value(embla_thread_key key, void *value);
EMBLA_PRIVATE void embla_signals_block(embla_signals *before);
EMBLA_PRIVATE void embla_signals_restore(const embla_signals *before);

/* Tells the CPU that this thread polls a word: it uses less power and leaves the pipeline to the
 * other hardware thread of the core. */
static inline void embla_cpu_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory"); /* `yield` does nothing on most cores */
#endif
}

#endif
