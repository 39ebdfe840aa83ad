/* SPDX-License-Identifier: Apache-2.0 */
/* Defaults for OpenMP and for the libraries that the engine loads later. A program may set
 * environment variables, a library may not. Variables that the user has set are kept.
 */
#include "core/environment.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

/* ---- OpenBLAS ---- */

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

/* ---- waiting threads ---- */

#if defined(_OPENMP)
/* Whether this process was re-executed. The kernel names a process after its file, which is "exe"
 * after a re-execution; this restores the original name. */
static bool was_reexecuted(const char *name)
{
    char now[16] = "";
    if (prctl(PR_GET_NAME, now) != 0 || strcmp(now, "exe") != 0) return false;
    const char *slash = name ? strrchr(name, '/') : NULL;
    if (name) (void)prctl(PR_SET_NAME, slash ? slash + 1 : name);
    return true;
}

static bool wait_policy_is_set(void)
{
    static const char *const names[] = {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME",
                                        "KMP_LIBRARY"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (getenv(names[i])) return true;
    return false;
}

/* Threads that wait for work sleep instead of spinning: docs/decisions/017-waiting-threads.md.
 * OpenMP reads its variables before main, so the program must execute itself again to change them.
 * It does so once: afterwards the variable is set and the process has another name. If that fails
 * (no /proc), the program continues with OpenMP's own default. */
static void set_passive_waiting(char **argv)
{
    if (was_reexecuted(argv[0]) || wait_policy_is_set()) return;
    if (setenv("OMP_WAIT_POLICY", "passive", 0) == 0) (void)execv("/proc/self/exe", argv);
}
#else
static void set_passive_waiting(char **argv)
{
    (void)argv;
}
#endif

void cli_environment_prepare(char **argv)
{
    const char *core = openblas_core();
    if (core) (void)setenv("OPENBLAS_CORETYPE", core, 0);
    set_passive_waiting(argv);
}
