/* SPDX-License-Identifier: Apache-2.0 */
/* The features of an x86 CPU, asked by the instruction cpuid. The compiler's __builtin_cpu_supports
 * needs a run-time library that not every compiler brings. */
#ifndef EMBLA_BASE_X86_H
#define EMBLA_BASE_X86_H

#if defined(__x86_64__)
#include <cpuid.h>
#include <string.h>

enum {
    EMBLA_X86_AVX2 = 1,
    EMBLA_X86_F16C = 2,
    EMBLA_X86_FMA = 4,
    EMBLA_X86_AVX512 = 8, /* F, BW, VL and DQ */
    EMBLA_X86_INTEL = 16  /* the maker */
};

/* The parts of the registers that the system saves for each thread. */
static inline unsigned embla_x86_saved(void)
{
    unsigned low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    (void)high;
    return low;
}

/* A sum of the features above. Wide registers count only if the system saves them. */
static inline unsigned embla_x86_features(void)
{
    enum { OSXSAVE = 1 << 27, YMM = 0x06, ZMM = 0xe6 };
    unsigned a, b, c, d, found = 0, saved = 0, first;
    if (!__get_cpuid(0, &a, &b, &c, &d)) return 0;
    const unsigned name[3] = {b, d, c};
    if (memcmp(name, "GenuineIntel", sizeof name) == 0) found |= EMBLA_X86_INTEL;
    if (!__get_cpuid(1, &a, &b, &first, &d) || !(first & OSXSAVE)) return found;
    saved = embla_x86_saved();
    if ((saved & YMM) != YMM || !__get_cpuid_count(7, 0, &a, &b, &c, &d)) return found;
    if (first & bit_F16C) found |= EMBLA_X86_F16C;
    if (first & bit_FMA) found |= EMBLA_X86_FMA;
    if (b & bit_AVX2) found |= EMBLA_X86_AVX2;
    const unsigned wide = bit_AVX512F | bit_AVX512BW | bit_AVX512VL | bit_AVX512DQ;
    if ((saved & ZMM) == ZMM && (b & wide) == wide) found |= EMBLA_X86_AVX512;
    return found;
}
#endif
#endif
