/* SPDX-License-Identifier: Apache-2.0 */
/* How the CPU rounds on this thread: the rounding mode, and whether it flushes small numbers to
 * zero (FTZ, DAZ). Code built with -ffast-math sets the latter in threads that it starts, and a
 * host may lend us such a thread. */
#ifndef EMBLA_BASE_ROUNDING_H
#define EMBLA_BASE_ROUNDING_H

#include <stdint.h>

#if !defined(__x86_64__) && !defined(__aarch64__)
#include <fenv.h>
#endif

/* The control registers. On x86-64 MXCSR also holds flags of exceptions; x87 serves long double,
 * and strtod of some C libraries reads its rounding mode. */
typedef struct {
    uint64_t control;
    uint16_t x87;
} embla_rounding;

enum { EMBLA_MXCSR_FLAGS = 0x3f };

static inline embla_rounding embla_rounding_get(void)
{
    embla_rounding r = {0};
#if defined(__x86_64__)
    r.control = __builtin_ia32_stmxcsr();
    __asm__ volatile("fnstcw %0" : "=m"(r.x87));
#elif defined(__aarch64__)
    __asm__ volatile("mrs %0, fpcr" : "=r"(r.control));
#else
    r.control = (uint64_t)fegetround();
#endif
    return r;
}

/* Writing the registers costs more than reading them, so equal values are not written. */
static inline void embla_rounding_write(const embla_rounding *now, const embla_rounding *next)
{
#if defined(__x86_64__)
    if (now->control != next->control) __builtin_ia32_ldmxcsr((unsigned)next->control);
    if (now->x87 != next->x87) __asm__ volatile("fldcw %0" : : "m"(next->x87));
#elif defined(__aarch64__)
    if (now->control != next->control) __asm__ volatile("msr fpcr, %0" : : "r"(next->control));
#else
    if (now->control != next->control) (void)fesetround((int)next->control);
#endif
}

/* Takes over the settings of `wanted` on a thread that has `own`, and returns what is set now. */
static inline embla_rounding embla_rounding_take(const embla_rounding *own,
                                                 const embla_rounding *wanted)
{
    embla_rounding next = *wanted;
#if defined(__x86_64__)
    next.control = (wanted->control & ~(uint64_t)EMBLA_MXCSR_FLAGS) |
                   (own->control & (uint64_t)EMBLA_MXCSR_FLAGS);
#endif
    embla_rounding_write(own, &next);
    return next;
}

#endif
