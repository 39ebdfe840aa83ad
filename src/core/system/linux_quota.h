/* SPDX-License-Identifier: Apache-2.0 */
/* The quota of a container, for the file of Linux and for tests. */
#ifndef EMBLA_SYSTEM_LINUX_QUOTA_H
#define EMBLA_SYSTEM_LINUX_QUOTA_H

/* The CPUs of the quota, rounded up; 0 if there is none. `proc` names the process's control groups
 * ("/proc/self/cgroup"); `groups` is the folder that holds them ("/sys/fs/cgroup"). */
int embla_linux_quota(const char *proc, const char *groups);

#endif
