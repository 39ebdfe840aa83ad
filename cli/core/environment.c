/* SPDX-License-Identifier: Apache-2.0 */
/* Defaults for the libraries that the engine loads later. A program may set environment variables,
 * a library may not. Variables that the user has set are kept.
 */
#include "core/environment.h"

#include <stddef.h>

#include "base/x86.h"
#include "host/host.h"

/* OpenBLAS chooses its kernels by the model number of the CPU. For a CPU newer than OpenBLAS it
 * chooses kernels of 2004, which are several times slower. This function names kernels that the CPU
 * can run. An Intel CPU with AVX2 but without AVX-512 gets Haswell, as OpenBLAS chooses for the
 * models that it knows. OpenBLAS recognises AMD CPUs by family, so they get no default. NULL means
 * no default. */
static const char *openblas_core(void)
{
#if defined(__x86_64__)
    const unsigned haswell = EMBLA_X86_INTEL | EMBLA_X86_AVX2 | EMBLA_X86_FMA;
    const unsigned has = embla_x86_features();
    if (has & EMBLA_X86_AVX512) return "SkylakeX";
    if ((has & haswell) == haswell) return "Haswell";
#endif
    return NULL;
}

void cli_environment_prepare(void)
{
    const char *core = openblas_core();
    if (core) cli_environment_default("OPENBLAS_CORETYPE", core);
}
