/* SPDX-License-Identifier: Apache-2.0 */
/* Loads shared libraries at their first use. If they were linked, every start of the program
 * would take some 10 ms longer, and OpenBLAS would start its threads each time.
 */
#include "engine/library.h"

#include <stdio.h>
#include <string.h>

#include "base/load.h"
#include "base/mem.h"

void *embla_library_load(const char *const *names, const char *package,
                         char error[EMBLA_LIBRARY_SENTENCE])
{
    char first[EMBLA_LIBRARY_SENTENCE / 2] = "";
    /* The C library loads this one when a thread ends, and ends the process if it cannot. */
    char why[EMBLA_LIBRARY_SENTENCE / 2];
    (void)embla_load("libgcc_s.so.1", EMBLA_LOAD_OWN, why, sizeof why);
    for (; *names; names++) {
        void *library = embla_load(*names, EMBLA_LOAD_OWN, why, sizeof why);
        if (library) return library;
        if (!*first) (void)snprintf(first, sizeof first, "%s", why);
    }
    if (strstr(first, "map segment") || strstr(first, "allocate memory"))
        (void)snprintf(error, EMBLA_LIBRARY_SENTENCE, "%s: no memory to load %s", first, package);
    else
        (void)snprintf(error, EMBLA_LIBRARY_SENTENCE, "%s; install %s", first, package);
    return NULL;
}

embla_status embla_library_reserve(size_t bytes, const char *library)
{
    if (embla_mem_fits(bytes)) return EMBLA_OK;
    return embla_fail(EMBLA_ERR_MEMORY,
                      "%s may need %zu MiB of memory, and the limits of the process do not "
                      "leave so much",
                      library, bytes >> 20);
}

void *embla_library_symbol(void *library, const char *name, const char **missing)
{
    void *symbol = embla_load_symbol(library, name);
    if (!symbol && !*missing) *missing = name;
    return symbol;
}
