/* SPDX-License-Identifier: Apache-2.0 */
#include "core/memory.h"

#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "core/complain.h"
#include "core/out.h"

static void lower(int64_t bytes, const char *name, int64_t *least, const char **why)
{
    if (bytes >= *least) return;
    *least = bytes < 0 ? 0 : bytes;
    *why = name;
}

/* ---- the machine ---- */

/* The number of kB after a key of /proc/meminfo or /proc/self/status; -1 if there is none. */
static int64_t read_kilobytes(const char *path, const char *key)
{
    char line[256];
    int64_t found = -1;
    FILE *file = fopen(path, "re");
    while (file && found < 0 && fgets(line, sizeof line, file))
        if (strncmp(line, key, strlen(key)) == 0) found = strtoll(line + strlen(key), NULL, 10);
    if (file) (void)fclose(file);
    return found;
}

/* ---- control groups ---- */

/* A file with one number; -1 if it has none ("max") or cannot be read. */
static int64_t read_number(const char *folder, const char *name)
{
    char path[PATH_MAX], line[64] = "";
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path) return -1;
    FILE *file = fopen(path, "re");
    bool read = file && fgets(line, sizeof line, file);
    if (file) (void)fclose(file);
    return read && line[0] >= '0' && line[0] <= '9' ? strtoll(line, NULL, 10) : -1;
}

/* A group and all groups above it: each may have a limit. */
static void lower_by_groups(const char *root, char *group, const char *limit, const char *usage,
                            int64_t *least, const char **why)
{
    for (;;) {
        char folder[PATH_MAX];
        if (snprintf(folder, sizeof folder, "%s%s", root, group) < (int)sizeof folder) {
            int64_t most = read_number(folder, limit), used = read_number(folder, usage);
            if (most >= 0 && used >= 0) lower(most - used, "the control group", least, why);
        }
        char *end = strrchr(group, '/');
        if (!end || !*group) return;
        *end = '\0';
    }
}

static void lower_by_control_groups(int64_t *least, const char **why)
{
    char line[PATH_MAX];
    FILE *file = fopen("/proc/self/cgroup", "re");
    while (file && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = '\0';
        char *kinds = strchr(line, ':'), *group = kinds ? strchr(kinds + 1, ':') : NULL;
        if (!group) continue;
        *group++ = '\0';
        if (kinds[1] == '\0')
            lower_by_groups("/sys/fs/cgroup", group, "memory.max", "memory.current", least, why);
        else if (strstr(kinds, "memory"))
            lower_by_groups("/sys/fs/cgroup/memory", group, "memory.limit_in_bytes",
                            "memory.usage_in_bytes", least, why);
    }
    if (file) (void)fclose(file);
}

/* ---- limits of the process ---- */

static void lower_by_limit(bool data, const char *key, const char *name, int64_t *least,
                           const char **why)
{
    struct rlimit limit;
    int64_t used = read_kilobytes("/proc/self/status", key);
    if (getrlimit(data ? RLIMIT_DATA : RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
        limit.rlim_cur > INT64_MAX)
        return;
    lower((int64_t)limit.rlim_cur - (used > 0 ? used * 1024 : 0), name, least, why);
}

int64_t cli_memory_available(const char **why)
{
    const char *unused;
    int64_t least = INT64_MAX, machine = read_kilobytes("/proc/meminfo", "MemAvailable:");
    if (!why) why = &unused;
    *why = "";
    if (machine >= 0) lower(machine * 1024, "the machine", &least, why);
    lower_by_control_groups(&least, why);
    lower_by_limit(false, "VmSize:", "ulimit -v", &least, why);
    lower_by_limit(true, "VmData:", "ulimit -d", &least, why);
    return least;
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
