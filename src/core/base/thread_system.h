/* SPDX-License-Identifier: Apache-2.0 */
/* What the thread pool needs from the operating system: start a thread, sleep until a word changes,
 * wake who sleeps on it. */
#ifndef EMBLA_BASE_THREAD_SYSTEM_H
#define EMBLA_BASE_THREAD_SYSTEM_H

#include <stdatomic.h>
#include <stdbool.h>

/* Starts a detached thread that runs `run` once. Its stack has 2 MiB. It receives no signal except
 * those that its own code raises. False if the system refuses. */
bool embla_thread_start(void *(*run)(void *argument), void *argument);
/* Names the calling thread, for debuggers and profilers; at most 15 characters. */
void embla_thread_name(const char *name);

/* Sleeps while *word == seen. May return early, so the caller checks the word again. */
void embla_word_wait(atomic_uint *word, unsigned seen);
/* Wakes at least `count` threads that sleep on the word, or all of them. Change the word first. */
void embla_word_wake(atomic_uint *word, int count);

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
