/* SPDX-License-Identifier: Apache-2.0 */
/* Filters of calls; see filter.h. */
#ifndef EMBLA_TESTS_WINDOWS_SECCOMP_H
#define EMBLA_TESTS_WINDOWS_SECCOMP_H

struct seccomp_data {
    int nr;
};
enum {
    SECCOMP_SET_MODE_FILTER = 1,
    SECCOMP_FILTER_FLAG_TSYNC = 1,
    SECCOMP_RET_ERRNO = 0x50000,
    SECCOMP_RET_ALLOW = 0x7fff0000
};

#endif
