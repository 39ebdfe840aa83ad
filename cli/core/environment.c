/* SPDX-License-Identifier: Apache-2.0 */
/* Defaults for OpenMP and for the libraries that the engine loads later. A program may set
 * environment variables, a library may not. What the user has set stays.
 */
#include "core/environment.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

/* ---- OpenBLAS ---- */

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

/* ---- how threads wait ---- */

#if defined(_OPENMP)
/* The kernel calls a process by the file that it runs: "exe" after the second start. This gives
 * it back the name that it was started by, and says whether there was a second start. */
static bool started_twice(const char *name)
{
    char now[16] = "";
    if (prctl(PR_GET_NAME, now) != 0 || strcmp(now, "exe") != 0) return false;
    const char *slash = name ? strrchr(name, '/') : NULL;
    if (name) (void)prctl(PR_SET_NAME, slash ? slash + 1 : name);
    return true;
}

static bool waiting_is_set(void)
{
    static const char *const names[] = {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME",
                                        "KMP_LIBRARY"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (getenv(names[i])) return true;
    return false;
}

/* Threads that wait for work sleep instead of spinning: docs/decisions/017-waiting-threads.md.
 * OpenMP reads its variables before main, so only a new start can change them. It happens once:
 * then the variable is set, and the process has another name. Where it fails (no /proc), the
 * program goes on with OpenMP's own default. */
static void let_threads_sleep(char **argv)
{
    if (started_twice(argv[0]) || waiting_is_set()) return;
    if (setenv("OMP_WAIT_POLICY", "passive", 0) == 0) (void)execv("/proc/self/exe", argv);
}
#else
static void let_threads_sleep(char **argv)
{
    (void)argv;
}
#endif

void cli_environment_prepare(char **argv)
{
    const char *core = openblas_core();
    if (core) (void)setenv("OPENBLAS_CORETYPE", core, 0);
    let_threads_sleep(argv);
}
