/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/openblas.h"
#include "base/load.h"
#include "base/lock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/x86.h"

embla_openblas embla_openblas_find(void *library)
{
    return (embla_openblas){
        .corename = (char *(*)(void))embla_load_symbol(library, "openblas_get_corename"),
        .config = (char *(*)(void))embla_load_symbol(library, "openblas_get_config"),
        .get_threads = (int (*)(void))embla_load_symbol(library, "openblas_get_num_threads"),
        .set_threads = (void (*)(int))embla_load_symbol(library, "openblas_set_num_threads")};
}

static embla_lock lock;
static int callers, threads_before;

void embla_openblas_one_thread_begin(const embla_openblas *blas)
{
    if (!blas->get_threads || !blas->set_threads) return;
    embla_lock_take(&lock);
    if (callers++ == 0) {
        threads_before = blas->get_threads();
        if (threads_before > 1) blas->set_threads(1);
    }
    embla_lock_give(&lock);
}

void embla_openblas_one_thread_end(const embla_openblas *blas)
{
    if (!blas->get_threads || !blas->set_threads) return;
    embla_lock_take(&lock);
    if (--callers == 0 && threads_before > 1) blas->set_threads(threads_before);
    embla_lock_give(&lock);
}

#if defined(__x86_64__)
/* OpenBLAS chooses its kernels by the CPU's model number. A model newer than the library gets
 * the oldest kernels, whatever instructions it has. */
static bool is_old_core(const char *core)
{
    static const char *const old[] = {
        /* clang-format off */
        "Katmai", "Coppermine", "Northwood", "Prescott", "Banias", "Atom", "Core2", "Penryn",
        "Dunnington", "Nehalem", "Sandybridge", "Athlon", "Opteron", "Opteron_SSE3", "Barcelona",
        "Nano", "Bobcat", "Bulldozer", "Piledriver", "Steamroller", "Generic", "generic",
        "Unknown", "unknown"
        /* clang-format on */
    };
    for (size_t i = 0; i < sizeof old / sizeof old[0]; i++)
        if (strcmp(core, old[i]) == 0) return true;
    return false;
}

void embla_openblas_warn(const embla_openblas *blas, char warning[EMBLA_LIBRARY_SENTENCE])
{
    const char *core = blas->corename ? blas->corename() : NULL;
    if (getenv("OPENBLAS_CORETYPE")) return; /* somebody chose this core */
    const unsigned has = embla_x86_features();
    bool avx2 = (has & EMBLA_X86_AVX2) && (has & EMBLA_X86_FMA), avx512 = has & EMBLA_X86_AVX512;
    if (!core || !avx2 || !is_old_core(core)) return;
    (void)snprintf(warning, EMBLA_LIBRARY_SENTENCE,
                   "OpenBLAS treats this CPU as a %s although it has %s, which makes it several "
                   "times slower; set OPENBLAS_CORETYPE=%s in the environment",
                   core, avx512 ? "AVX-512" : "AVX2", avx512 ? "SkylakeX" : "Haswell");
}
#else
void embla_openblas_warn(const embla_openblas *blas, char warning[EMBLA_LIBRARY_SENTENCE])
{
    (void)blas, (void)warning;
}
#endif
