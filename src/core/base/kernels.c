/* SPDX-License-Identifier: Apache-2.0 */
/* Detects the CPU once and chooses a set of kernels.
 *
 * EMBLA_ISA in the environment overrides the choice. An unknown name, or one that this CPU cannot
 * run, gives scalar, which always works; embla_kernels_name() shows it. If two threads come first
 * at the same time, both choose the same set; no lock is needed. The pointer is relaxed, because it
 * publishes nothing: the sets are constants of the program.
 */
#include "base/kernels.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "embla.h"

#if EMBLA_X86
#include <cpuid.h>
#endif

static _Atomic(const embla_kernels *) chosen;

#if EMBLA_X86
/* These two check exactly the features that isa.h lets the compiler use. */
static bool cpu_has_avx2(void)
{
    unsigned a, b, c, d; /* not every compiler knows f16c by name */
    return __builtin_cpu_supports("avx2") && __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}

static bool cpu_has_avx512(void)
{
    return cpu_has_avx2() && __builtin_cpu_supports("avx512f") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512dq");
}
#endif

static bool cpu_has(embla_isa isa)
{
#if EMBLA_X86
    if (isa == EMBLA_ISA_AVX512) return cpu_has_avx512();
    if (isa == EMBLA_ISA_AVX2) return cpu_has_avx2();
#endif
    return isa == EMBLA_ISA_SCALAR;
}

static const embla_kernels *const sets[EMBLA_ISA_COUNT] =
    EMBLA_ISA_TABLE(&embla_kernels_scalar, &embla_kernels_avx2, &embla_kernels_avx512);

const embla_kernels *embla_kernels_find(const char *name)
{
    for (int isa = 0; isa < EMBLA_ISA_COUNT; isa++)
        if (sets[isa] && strcmp(name, sets[isa]->name) == 0)
            return cpu_has((embla_isa)isa) ? sets[isa] : NULL;
    return NULL;
}

/* The highest set that this CPU has. */
static embla_isa best_isa(void)
{
    int isa = EMBLA_ISA_COUNT - 1;
    while (!cpu_has((embla_isa)isa)) isa--;
    return (embla_isa)isa;
}

static const embla_kernels *choose(void)
{
    const char *wanted = getenv("EMBLA_ISA");
    if (!wanted || !*wanted) return EMBLA_ISA_PICK(sets, best_isa());
    const embla_kernels *found = embla_kernels_find(wanted);
    return found ? found : &embla_kernels_scalar;
}

const embla_kernels *embla_kernels_get(void)
{
    const embla_kernels *kernels = atomic_load_explicit(&chosen, memory_order_relaxed);
    if (!kernels) {
        kernels = choose();
        atomic_store_explicit(&chosen, kernels, memory_order_relaxed);
    }
    return kernels;
}

/* Streaming avoids reading a line that will be overwritten completely, but occupies one of the
 * core's few fill buffers until memory has the line. Intel's cores of model 85 (Skylake, Cascade
 * Lake and Cooper Lake servers) have few of them. There, prefetching lines and writing them in the
 * cache takes a third less time (docs/decisions/002). */
static embla_write_mode choose_store(void)
{
#if EMBLA_X86
    unsigned a = 0, b, c, d;
    const char *wanted = getenv("EMBLA_WRITE");
    if (wanted && strcmp(wanted, "ahead") == 0) return EMBLA_WRITE_AHEAD;
    if (wanted && strcmp(wanted, "stream") == 0) return EMBLA_WRITE_STREAM;
    if (__builtin_cpu_is("intel") && __get_cpuid(1, &a, &b, &c, &d)) {
        unsigned family = a >> 8 & 15u, model = (a >> 4 & 15u) | (a >> 12 & 0xf0u);
        if (family == 6 && model == 85) return EMBLA_WRITE_AHEAD;
    }
#endif
    return EMBLA_WRITE_STREAM;
}

/* The faster way to write large results on this CPU. */
static embla_write_mode large_store(void)
{
    static atomic_int known; /* 0 means not yet determined; otherwise the mode + 1 */
    int answer = atomic_load_explicit(&known, memory_order_relaxed);
    if (answer == 0) {
        answer = (int)choose_store() + 1;
        atomic_store_explicit(&known, answer, memory_order_relaxed);
    }
    return (embla_write_mode)(answer - 1);
}

/* Below the first size the results fit in a cache. From the second size on they would evict
 * everything else from the L2 cache without fitting in it. docs/decisions/002 has the
 * measurements. */
embla_write_mode embla_kernels_write_mode(size_t bytes, bool whole_lines)
{
    enum { AHEAD = 64 << 10, LARGE = 4 << 20 };
    if (bytes < AHEAD) return EMBLA_WRITE_PLAIN;
    if (bytes >= LARGE && whole_lines) return large_store();
    return EMBLA_WRITE_AHEAD;
}

void embla_kernels_use(const embla_kernels *kernels)
{
    atomic_store_explicit(&chosen, kernels, memory_order_relaxed);
}

const char *embla_kernels_name(void)
{
    return embla_kernels_get()->name;
}
