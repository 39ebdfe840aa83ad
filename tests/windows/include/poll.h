/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting, which tests do by poll; tests/windows/posix.c. */
#ifndef EMBLA_TESTS_WINDOWS_POLL_H
#define EMBLA_TESTS_WINDOWS_POLL_H

struct pollfd {
    int fd;
    short events, revents;
};
enum { POLLIN = 1, POLLOUT = 4 };

#endif
