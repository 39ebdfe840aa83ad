/* SPDX-License-Identifier: Apache-2.0 */
/* Linux: CPUs, threads and what belongs to them. A container often has all CPUs of its machine, and
 * a quota of time on them: with more threads than the quota pays for, the kernel stops all of them
 * for the rest of each period. Linux says so in one of two versions of control groups:
 *
 *   2   GROUPS/PATH/cpu.max has "150000 100000", or "max 100000"
 *   1   GROUPS/cpu/PATH/cpu.cfs_quota_us has "150000", or "-1"; cpu.cfs_period_us has "100000"
 *
 * PATH is in a line "0::PATH" (version 2) or "4:cpu,cpuacct:PATH" (version 1) of /proc/self/cgroup.
 * The quotas of all groups above hold too. Inside a container the path may be one of the machine,
 * which is not visible; then its ends are missing and the groups above are found.
 */
#include "system/linux_quota.h"

#include "system/system_threads.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { TEXT = 4096 };

/* The beginning of a file, as a string. False if it cannot be read. */
static bool read_text(const char *path, char text[TEXT])
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    ssize_t got = read(fd, text, TEXT - 1);
    (void)close(fd);
    if (got < 0) return false;
    text[got] = '\0';
    return true;
}

static int quota_of(long long time, long long period)
{
    if (time <= 0 || period <= 0) return 0;
    long long cpus = (time - 1) / period + 1;
    return cpus < INT_MAX ? (int)cpus : INT_MAX;
}

/* The quota of one group; 0 if it has none. */
static int group_quota(const char *groups, bool first_version, const char *path)
{
    char name[2 * TEXT], text[TEXT], *end;
    long long time;
    (void)snprintf(name, sizeof name, "%s%s%s/%s", groups, first_version ? "/cpu" : "", path,
                   first_version ? "cpu.cfs_quota_us" : "cpu.max");
    if (!read_text(name, text)) return 0;
    time = strtoll(text, &end, 10); /* "max" is 0 */
    if (!first_version) return quota_of(time, strtoll(end, NULL, 10));
    (void)snprintf(name, sizeof name, "%s/cpu%s/cpu.cfs_period_us", groups, path);
    return read_text(name, text) ? quota_of(time, strtoll(text, NULL, 10)) : 0;
}

static int smaller(int a, int b)
{
    return a == 0 || (b > 0 && b < a) ? b : a;
}

/* The smallest quota of a group and of all groups above it. Shortens the path. */
static int path_quota(const char *groups, bool first_version, char *path)
{
    int quota = 0;
    for (;;) {
        quota = smaller(quota, group_quota(groups, first_version, strcmp(path, "/") ? path : ""));
        char *last = strrchr(path, '/');
        if (!last || strcmp(path, "/") == 0) return quota;
        *last = '\0';
    }
}

/* Whether "cpu" is one of the names between two commas. */
static bool names_cpu(const char *names)
{
    for (const char *at = names; at; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, "cpu", 3) == 0 && (at[3] == '\0' || at[3] == ',')) return true;
    }
    return false;
}

int embla_linux_quota(const char *proc, const char *groups)
{
    char text[TEXT], *rest = NULL;
    int quota = 0;
    if (!read_text(proc, text)) return 0;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        char *names = strchr(line, ':'), *path = names ? strchr(names + 1, ':') : NULL;
        if (!path) continue;
        *path++ = '\0';
        names++;
        if (*names == '\0' || names_cpu(names))
            quota = smaller(quota, path_quota(groups, *names != '\0', path));
    }
    return quota;
}

/* A machine with more CPUs than a cpu_set_t has refuses the call: then all of them count. */
static int allowed_cpus(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
    long all = sysconf(_SC_NPROCESSORS_ONLN);
    return all > 0 && all < INT_MAX ? (int)all : 1;
}

int embla_system_cpus(void)
{
    int cpus = smaller(allowed_cpus(), embla_linux_quota("/proc/self/cgroup", "/sys/fs/cgroup"));
    return cpus < 1 ? 1 : cpus;
}

void embla_system_name_thread(const char *name)
{
    (void)pthread_setname_np(pthread_self(), name);
}

/* Linux sleeps on a word itself. */
void embla_system_wait(atomic_uint *word, unsigned seen)
{
    (void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
}

void embla_system_wake(atomic_uint *word, int count)
{
    (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, count, NULL, NULL, 0);
}
