/* SPDX-License-Identifier: Apache-2.0 */
/* For tests that watch which files are opened, which are skipped on Windows. */
#ifndef EMBLA_TESTS_WINDOWS_INOTIFY_H
#define EMBLA_TESTS_WINDOWS_INOTIFY_H

struct inotify_event {
    int wd;
    unsigned mask, cookie, len;
    char name[];
};
enum { IN_NONBLOCK = 1, IN_CLOEXEC = 2, IN_OPEN = 4, IN_ACCESS = 8 };
#define inotify_init1(flags)                test_lacks("Windows does not tell which files of a folder are opened")
#define inotify_add_watch(file, path, what) ((void)(path), -1)

#endif
