/* SPDX-License-Identifier: Apache-2.0 */
#include "core/memory.h"

#include "core/complain.h"
#include "core/out.h"
#include "host/host.h"

int64_t cli_memory_available(const char **why)
{
    const char *unused;
    return cli_host_memory(why ? why : &unused);
}

int cli_memory_check(int64_t bytes, const char *what, const char *advice)
{
    const char *why;
    char needed[CLI_CELL], left[CLI_CELL];
    int64_t available = cli_memory_available(&why);
    if (bytes <= available) return CLI_DONE;
    return cli_failed("%s needs %s, but only %s is available (%s); %s", what,
                      cli_size(bytes, needed), cli_size(available, left), why, advice);
}
