/* SPDX-License-Identifier: Apache-2.0 */
/* Linux: the memory that a process may still use, CPUs, and the path of the program. */
#include "host/host.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "host/paths.h"

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
    FILE *file = cli_file_open(path, "r");
    while (file && found < 0 && fgets(line, sizeof line, file))
        if (strncmp(line, key, strlen(key)) == 0) found = strtoll(line + strlen(key), NULL, 10);
    if (file) (void)fclose(file);
    return found;
}

/* ---- control groups ---- */

/* A file with one number; -1 if it has none ("max") or cannot be read. */
static int64_t read_number(const char *folder, const char *name)
{
    char path[CLI_PATH_MOST], line[64] = "";
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path) return -1;
    FILE *file = cli_file_open(path, "r");
    bool read = file && fgets(line, sizeof line, file);
    if (file) (void)fclose(file);
    return read && line[0] >= '0' && line[0] <= '9' ? strtoll(line, NULL, 10) : -1;
}

/* A group and all groups above it: each may have a limit. */
static void lower_by_groups(const char *root, char *group, const char *limit, const char *usage,
                            int64_t *least, const char **why)
{
    for (;;) {
        char folder[CLI_PATH_MOST];
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
    char line[CLI_PATH_MOST];
    FILE *file = cli_file_open("/proc/self/cgroup", "r");
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

int64_t cli_host_memory(const char **why)
{
    int64_t least = INT64_MAX, machine = read_kilobytes("/proc/meminfo", "MemAvailable:");
    *why = "";
    if (machine >= 0) lower(machine * 1024, "the machine", &least, why);
    lower_by_control_groups(&least, why);
    lower_by_limit(false, "VmSize:", "ulimit -v", &least, why);
    lower_by_limit(true, "VmData:", "ulimit -d", &least, why);
    return least;
}

/* ---- CPUs and paths ---- */

int cli_host_cpus(void)
{
    long all = sysconf(_SC_NPROCESSORS_ONLN);
    return all > 0 && all <= 1 << 20 ? (int)all : 1;
}

bool cli_program_path(char *out, size_t size)
{
    ssize_t length = readlink("/proc/self/exe", out, size - 1);
    if (length <= 0) return false;
    out[length] = '\0';
    return true;
}
