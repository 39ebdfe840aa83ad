/* SPDX-License-Identifier: Apache-2.0 */
/* Builds in which many steps take too long: sanitizers, programs for another CPU, and what
 * EMBLA_TEST_SLOW says. */
#ifndef EMBLA_TESTS_SLOW_H
#define EMBLA_TESTS_SLOW_H

#include <stdlib.h>

#if defined(__has_feature)
#define FEATURE(name) __has_feature(name)
#else
#define FEATURE(name) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || FEATURE(address_sanitizer) || \
    FEATURE(thread_sanitizer) || FEATURE(memory_sanitizer) || defined(EMBLA_TEST_EMULATED)
enum { SLOW_BUILD = 1 };
#else
enum { SLOW_BUILD = 0 };
#endif

/* An emulator runs this program: pages, processes and clocks are not as the system would have them.
 */
#if defined(EMBLA_TEST_EMULATED)
enum { EMULATED = 1 };
#else
enum { EMULATED = 0 };
#endif

static inline int steps_of(int steps)
{
    return SLOW_BUILD || getenv("EMBLA_TEST_SLOW") ? steps / 10 : steps;
}

#endif
