/* SPDX-License-Identifier: Apache-2.0 */
/* Loads shared libraries at their first use. If they were linked, every start of the program
 * would take some 10 ms longer, and OpenBLAS would start its threads each time.
 */
#include "engine/library.h"

#include <dlfcn.h>
#include <stdio.h>

void *embla_library_load(const char *const *names, const char *package,
                         char error[EMBLA_LIBRARY_SENTENCE])
{
    char first[EMBLA_LIBRARY_SENTENCE / 2] = "";
    for (; *names; names++) {
        void *library = dlopen(*names, RTLD_NOW | RTLD_LOCAL);
        if (library) return library;
        const char *reason = dlerror();
        if (!*first) (void)snprintf(first, sizeof first, "%s", reason ? reason : *names);
    }
    (void)snprintf(error, EMBLA_LIBRARY_SENTENCE, "%s; install %s", first, package);
    return NULL;
}

void *embla_library_symbol(void *library, const char *name, const char **missing)
{
    void *symbol = dlsym(library, name);
    if (!symbol && !*missing) *missing = name;
    return symbol;
}
