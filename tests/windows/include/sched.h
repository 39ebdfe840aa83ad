/* SPDX-License-Identifier: Apache-2.0 */
/* The CPUs of a process, for tests that choose them in a child, which are skipped on Windows. */
#ifndef EMBLA_TESTS_WINDOWS_SCHED_H
#define EMBLA_TESTS_WINDOWS_SCHED_H

#include_next <sched.h>

typedef unsigned long cpu_set_t;
enum { CPU_SETSIZE = 32 };
#define CPU_ZERO(set)                    (*(set) = 0)
#define CPU_COUNT(set)                   (*(set) != 0)
#define CPU_ISSET(cpu, set)              (*(set) >> (cpu)&1)
#define CPU_SET(cpu, set)                (*(set) |= 1ul << (cpu))
#define sched_getaffinity(id, size, set) ((void)(set), LACKS_FORK)
#define sched_setaffinity(id, size, set) ((void)(set), LACKS_FORK)

#endif
