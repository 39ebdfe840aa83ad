/* SPDX-License-Identifier: Apache-2.0 */
/* Loads shared libraries at their first use. If they were linked, every start of the program
 * would take some 10 ms longer, and OpenBLAS would start its threads each time.
 */
#include "engine/library.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

void *embla_library_load(const char *const *names, const char *package,
                         char error[EMBLA_LIBRARY_SENTENCE])
{
    char first[EMBLA_LIBRARY_SENTENCE / 2] = "";
    /* The C library loads this one when a thread ends, and ends the process if it cannot. */
    (void)dlopen("libgcc_s.so.1", RTLD_NOW);
    for (; *names; names++) {
        void *library = dlopen(*names, RTLD_NOW | RTLD_LOCAL);
        if (library) return library;
        const char *reason = dlerror();
        if (!*first) (void)snprintf(first, sizeof first, "%s", reason ? reason : *names);
    }
    if (strstr(first, "map segment") || strstr(first, "allocate memory"))
        (void)snprintf(error, EMBLA_LIBRARY_SENTENCE, "%s: no memory to load %s", first, package);
    else
        (void)snprintf(error, EMBLA_LIBRARY_SENTENCE, "%s; install %s", first, package);
    return NULL;
}

/* Whether the address space of the process has a limit. */
static bool is_limited(void)
{
    static atomic_int known = -1;
    struct rlimit space, data;
    int limited = atomic_load_explicit(&known, memory_order_relaxed);
    if (limited >= 0) return limited > 0;
    limited = (getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY) ||
              (getrlimit(RLIMIT_DATA, &data) == 0 && data.rlim_cur != RLIM_INFINITY);
    atomic_store_explicit(&known, limited, memory_order_relaxed);
    return limited > 0;
}

embla_status embla_library_reserve(size_t bytes, const char *library)
{
    if (!is_limited()) return EMBLA_OK;
    void *space = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (space == MAP_FAILED)
        return embla_fail(EMBLA_ERR_MEMORY,
                          "%s may need %zu MiB of memory, and the limits of the process do not "
                          "leave so much",
                          library, bytes >> 20);
    (void)munmap(space, bytes);
    return EMBLA_OK;
}

void *embla_library_symbol(void *library, const char *name, const char **missing)
{
    void *symbol = dlsym(library, name);
    if (!symbol && !*missing) *missing = name;
    return symbol;
}
