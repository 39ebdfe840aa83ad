/* SPDX-License-Identifier: Apache-2.0 */
#include "base/load.h"

#include <stdio.h>
#include <string.h>

#include "base/injected.h"

void *embla_load(const char *name, unsigned kind, char *why, size_t size)
{
    embla_outcome told;
    if (!embla_injected(EMBLA_INJECT_LOAD, &told)) return embla_system_load(name, kind, why, size);
    (void)snprintf(why, size, "%s: ", name ? name : "the program");
    size_t used = strnlen(why, size);
    embla_system_describe(told.number, why + used, size - used);
    return NULL;
}

void embla_unload(void *library)
{
    embla_system_unload(library);
}

void *embla_load_symbol(void *library, const char *name)
{
    return embla_system_symbol(library, name);
}

bool embla_load_home(const void *address, char *out, size_t size)
{
    return embla_system_home(address, out, size);
}
