/* SPDX-License-Identifier: Apache-2.0 */
/* The instruction sets, and the one way to compile a function for several of them.
 *
 * Write the loop once, in plain C, as an EMBLA_BODY. EMBLA_ISA_FUNCTION compiles it for each set
 * and makes a table of the results. EMBLA_PICK (kernels.h) takes the entry for the set that this
 * process uses:
 *
 *     EMBLA_BODY float largest_body(const float *x, size_t n) { .. }
 *     EMBLA_ISA_FUNCTION(float, largest, (const float *x, size_t n), return largest_body(x, n);)
 *     ..
 *     float most = EMBLA_PICK(largest)(x, n);
 *
 * Where the compiler's code is not good enough, write the loop of a set with intrinsics: put it
 * between #if EMBLA_X86 (or EMBLA_ARM) and #endif, and list the loops with EMBLA_ISA_TABLE. NULL in
 * a table means that the next lower set serves; scalar is always there.
 *
 * On x86-64 a loop is marked EMBLA_AVX2 or EMBLA_AVX512. A marked function may use its set;
 * everything around it stays at the baseline of the build, so one library runs on every x86-64. The
 * attributes name exactly what kernels.c asks of the CPU. On 64-bit Arm NEON is the baseline, so
 * its loops need no mark, and what the compiler makes of plain C uses it, too: EMBLA_ISA_FUNCTION
 * compiles a body once.
 */
#ifndef EMBLA_BASE_ISA_H
#define EMBLA_BASE_ISA_H

#include <stdbool.h>
#include <stddef.h>

typedef enum {
    EMBLA_ISA_SCALAR,
    EMBLA_ISA_NEON,
    EMBLA_ISA_AVX2,
    EMBLA_ISA_AVX512,
    EMBLA_ISA_COUNT
} embla_isa;

#if defined(__x86_64__) && !defined(EMBLA_NO_SIMD)
#define EMBLA_X86    1
#define EMBLA_AVX2   __attribute__((target("avx2,f16c")))
#define EMBLA_AVX512 __attribute__((target("avx2,f16c,avx512f,avx512bw,avx512vl,avx512dq")))
#else
#define EMBLA_X86 0
#endif
#if defined(__aarch64__) && !defined(EMBLA_NO_SIMD)
#define EMBLA_ARM 1
#else
#define EMBLA_ARM 0
#endif

/* A loop in plain C that is inlined, and so compiled, into a function of each set. */
#ifndef EMBLA_BODY
#define EMBLA_BODY static inline __attribute__((always_inline))
#endif

/* The initializer of a table[EMBLA_ISA_COUNT]. Only the names of sets of this machine are used, so
 * the others need not exist. */
#if EMBLA_X86
#define EMBLA_ISA_TABLE(scalar, neon, avx2, avx512)                                                \
    {                                                                                              \
        scalar, NULL, avx2, avx512                                                                 \
    }
#elif EMBLA_ARM
#define EMBLA_ISA_TABLE(scalar, neon, avx2, avx512)                                                \
    {                                                                                              \
        scalar, neon                                                                               \
    }
#else
#define EMBLA_ISA_TABLE(scalar, neon, avx2, avx512)                                                \
    {                                                                                              \
        scalar                                                                                     \
    }
#endif

/* static functions name_scalar and, on x86-64, name_avx2 and name_avx512, each with the same
 * statements. */
#if EMBLA_X86
#define EMBLA_ISA_COMPILE(type, name, parameters, ...)                                             \
    static type EMBLA_JOIN(name, _scalar) parameters{__VA_ARGS__} EMBLA_AVX2 static type           \
    EMBLA_JOIN(name, _avx2) parameters{__VA_ARGS__} EMBLA_AVX512 static type                       \
    EMBLA_JOIN(name, _avx512) parameters                                                           \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
#else
#define EMBLA_ISA_COMPILE(type, name, parameters, ...)                                             \
    static type EMBLA_JOIN(name, _scalar) parameters                                               \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
#endif

/* The same functions, and a table of them called `name`. */
#define EMBLA_ISA_FUNCTION(type, name, parameters, ...)                                            \
    EMBLA_ISA_COMPILE(type, name, parameters, __VA_ARGS__)                                         \
    static type(*const name[EMBLA_ISA_COUNT]) parameters = EMBLA_ISA_TABLE(                        \
        EMBLA_JOIN(name, _scalar), NULL, EMBLA_JOIN(name, _avx2), EMBLA_JOIN(name, _avx512));

/* The entry of a table for a set, or for the next lower set that has one. */
#define EMBLA_ISA_PICK(table, isa)                                                                 \
    ((table)[embla_isa_lowered(isa, (table)[EMBLA_ISA_NEON] != NULL,                               \
                               (table)[EMBLA_ISA_AVX2] != NULL,                                    \
                               (table)[EMBLA_ISA_AVX512] != NULL)])

static inline embla_isa embla_isa_lowered(embla_isa isa, bool has_neon, bool has_avx2,
                                          bool has_avx512)
{
    if (isa == EMBLA_ISA_AVX512 && has_avx512) return EMBLA_ISA_AVX512;
    if (isa >= EMBLA_ISA_AVX2 && has_avx2) return EMBLA_ISA_AVX2;
    return isa == EMBLA_ISA_NEON && has_neon ? EMBLA_ISA_NEON : EMBLA_ISA_SCALAR;
}

/* Joins two names after expanding them. */
#define EMBLA_JOIN_1(a, b) a##b
#define EMBLA_JOIN(a, b)   EMBLA_JOIN_1(a, b)

#endif
