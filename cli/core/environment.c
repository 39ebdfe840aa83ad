/* SPDX-License-Identifier: Apache-2.0 */
/* Defaults for the libraries that the engine loads later. A program may set environment
 * variables, a library may not: so this is here, and what the user has set stays.
 */
#include "core/environment.h"

#include <stdlib.h>

/* OpenBLAS chooses its kernels by the CPU's model number. A CPU that is newer than OpenBLAS gets
 * kernels of 2004, several times slower. This names the kernels that the CPU can run. An Intel
 * CPU with AVX2 alone gets Haswell, as OpenBLAS chooses for every such CPU that it knows; it
 * knows AMD's CPUs by their family, and those are left to it. NULL means no default. */
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
