/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of Linux, for tests that put a function in the place of one of Unix. */
#ifndef EMBLA_TESTS_WINDOWS_SYSCALL_H
#define EMBLA_TESTS_WINDOWS_SYSCALL_H

enum {
    SYS_pread64 = 17,
    SYS_renameat2 = 316,
    SYS_seccomp = 317,
    SYS_io_uring_setup = 425,
    SYS_io_uring_enter = 426
};
long syscall(long number, ...);

#endif
