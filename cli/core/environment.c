/* SPDX-License-Identifier: Apache-2.0 */
/* Defaults for the libraries that the engine loads later. A program may set environment variables,
 * a library may not. Variables that the user has set are kept.
 */
#include "core/environment.h"

#include <stdlib.h>

/* OpenBLAS chooses its kernels by the model number of the CPU. For a CPU newer than OpenBLAS it
 * chooses kernels of 2004, which are several times slower. This function names kernels that the CPU
 * can run. An Intel CPU with AVX2 but without AVX-512 gets Haswell, as OpenBLAS chooses for the
 * models that it knows. OpenBLAS recognises AMD CPUs by family, so they get no default. NULL means
 * no default. */
static const char *openblas_core(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"))
        return "SkylakeX";
    if (__builtin_cpu_is("intel") && __builtin_cpu_supports("avx2") &&
        __builtin_cpu_supports("fma"))
        return "Haswell";
#endif
    return NULL;
}

void cli_environment_prepare(void)
{
    const char *core = openblas_core();
    if (core) (void)setenv("OPENBLAS_CORETYPE", core, 0);
}
