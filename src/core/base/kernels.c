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

#include "base/x86.h"
#include "embla.h"

static _Atomic(const embla_kernels *) chosen;

static bool cpu_has(embla_isa isa)
{
#if EMBLA_X86
    /* exactly the features that isa.h lets the compiler use */
    const unsigned has = embla_x86_features(), avx2 = EMBLA_X86_AVX2 | EMBLA_X86_F16C;
    if (isa == EMBLA_ISA_AVX512) return (has & avx2) == avx2 && (has & EMBLA_X86_AVX512);
    if (isa == EMBLA_ISA_AVX2) return (has & avx2) == avx2;
#endif
    if (isa == EMBLA_ISA_NEON) return EMBLA_ARM; /* every 64-bit Arm CPU */
    return isa == EMBLA_ISA_SCALAR;
}

static const embla_kernels *const sets[EMBLA_ISA_COUNT] = EMBLA_ISA_TABLE(
    &embla_kernels_scalar, &embla_kernels_neon, &embla_kernels_avx2, &embla_kernels_avx512);

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
    const char *wanted = getenv("EMBLA_WRITE");
    if (wanted && strcmp(wanted, "ahead") == 0) return EMBLA_WRITE_AHEAD;
    if (wanted && strcmp(wanted, "stream") == 0) return EMBLA_WRITE_STREAM;
#if EMBLA_X86
    unsigned a = 0, b, c, d;
    if ((embla_x86_features() & EMBLA_X86_INTEL) && __get_cpuid(1, &a, &b, &c, &d)) {
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

const char *embla_kernels_at(int number)
{
    int found = 0;
    for (int isa = 0; isa < EMBLA_ISA_COUNT; isa++)
        if (cpu_has((embla_isa)isa) && found++ == number) return sets[isa]->name;
    return NULL;
}
