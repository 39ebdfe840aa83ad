/* SPDX-License-Identifier: Apache-2.0 */
/* The instruction sets, and how a single function is compiled for one of them.
 *
 * A function marked EMBLA_AVX2 or EMBLA_AVX512 may use that set; everything around
 * it stays at the baseline of the build, so one library runs on every x86-64. What
 * is named here is exactly what kernels.c asks of the CPU before it chooses a set.
 */
#ifndef EMBLA_BASE_ISA_H
#define EMBLA_BASE_ISA_H

typedef enum { EMBLA_ISA_SCALAR, EMBLA_ISA_AVX2, EMBLA_ISA_AVX512, EMBLA_ISA_COUNT } embla_isa;

#if defined(__x86_64__) && !defined(EMBLA_NO_SIMD)
#define EMBLA_X86    1
#define EMBLA_AVX2   __attribute__((target("avx2,f16c")))
#define EMBLA_AVX512 __attribute__((target("avx2,f16c,avx512f,avx512bw,avx512vl,avx512dq")))
#else
#define EMBLA_X86 0
#endif

/* A body written once in plain C and compiled into a function for each set. */
#define EMBLA_BODY static inline __attribute__((always_inline))

#endif
