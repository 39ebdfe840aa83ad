/* SPDX-License-Identifier: Apache-2.0 */
/* What this process has used; tests/windows/posix.c. */
#ifndef EMBLA_TESTS_WINDOWS_RESOURCE_H
#define EMBLA_TESTS_WINDOWS_RESOURCE_H

#include <sys/time.h>

enum {
    RUSAGE_SELF,
    RUSAGE_CHILDREN,
    RLIMIT_AS,
    RLIMIT_NOFILE,
    RLIMIT_NPROC,
    RLIMIT_FSIZE,
    RLIMIT_CORE
};
typedef unsigned long long rlim_t;
struct rlimit {
    rlim_t rlim_cur, rlim_max;
};
struct rusage {
    struct timeval ru_utime, ru_stime;
    long ru_maxrss; /* KiB */
};
int getrusage(int who, struct rusage *out);
#define getrlimit(what, limit)                                                                     \
    ((void)(what), (void)(limit), test_lacks("Windows has no limits of a process"))
#define setrlimit(what, limit)                                                                     \
    ((void)(what), (void)(limit), test_lacks("Windows has no limits of a process"))

#endif
