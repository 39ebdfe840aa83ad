/* SPDX-License-Identifier: Apache-2.0 */
/* Included in front of every test for Windows: what tests ask of Unix, and mingw does not have.
 * posix.c makes what Windows can do; a test that asks for the rest is skipped there, and prints the
 * reason that stands here.
 */
#ifndef EMBLA_TESTS_WINDOWS_POSIX_H
#define EMBLA_TESTS_WINDOWS_POSIX_H

#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

/* ---- what Windows lacks ---- */

int test_lacks(const char *what); /* ends the test; -1. In ../left_out.c */
#define LACKS_FORK  test_lacks("Windows has no fork")
#define LACKS_LINKS test_lacks("Windows makes symbolic links for administrators only")
#define LACKS_PIPES test_lacks("Windows has no pipes with a name in a folder")
#define LACKS_USERS test_lacks("Windows has no number of a user")
#define LACKS_AT    test_lacks("the C library of Windows has no file at a folder's handle")

#define fork()                   LACKS_FORK
#define pipe(ends)               ((void)(ends), LACKS_FORK)
#define kill(process, number)    ((void)(process), (void)(number), LACKS_FORK)
#define symlink(target, path)    ((void)(target), (void)(path), LACKS_LINKS)
#define symlinkat(target, at, n) ((void)(target), (void)(at), (void)(n), LACKS_LINKS)
#define mkfifo(path, mode)       ((void)(path), (void)(mode), LACKS_PIPES)
#define mkfifoat(at, path, mode) ((void)(at), (void)(path), (void)(mode), LACKS_PIPES)
#define seteuid(user)            ((void)(user), LACKS_USERS)
#define setuid(user)             ((void)(user), LACKS_USERS)
#define fstatat(at, path, s, f)  ((void)(at), (void)(path), (void)(s), (void)(f), LACKS_AT)
#define mkdirat(at, path, mode)  ((void)(at), (void)(path), (void)(mode), LACKS_AT)
#define flock(file, kind)        ((void)(file), (void)(kind), LACKS_AT)
#define poll(files, count, wait) windows_poll((files), (count), (wait))
#define alarm(seconds)           ((unsigned)((seconds)*0)) /* ctest ends what hangs */

enum { LOCK_SH = 1, LOCK_EX = 2, LOCK_NB = 4, LOCK_UN = 8 };
enum { F_GETFD = 1, SIGALRM = 14, SIGKILL = 9, SIGBUS = 7, SIGPIPE = 13 };
enum { O_CLOEXEC = _O_NOINHERIT, O_NONBLOCK = 0, O_NOFOLLOW = 0 };
enum { AT_FDCWD = -100, _SC_PAGESIZE = 1, POSIX_FADV_DONTNEED = 4, UTIME_OMIT = 0x3ffffffe };
#define posix_fadvise(file, at, bytes, how) ((void)(file), 0)

/* An open file of the library is a handle of Windows. */
int windows_fcntl(intptr_t handle);
#define fcntl(file, what) ((void)(what), windows_fcntl((intptr_t)(file)))

/* ---- what it has under other names ---- */

char *mkdtemp(char *path);
int setenv(const char *name, const char *value, int replace);
int unsetenv(const char *name);
void *memmem(const void *in, size_t size, const void *part, size_t count);
ssize_t pread(int file, void *out, size_t bytes, off_t offset);
ssize_t pwrite(int file, const void *bytes, size_t count, off_t offset);
long sysconf(int what);
int windows_chmod(const char *path, unsigned mode);
int windows_rename(const char *from, const char *to);
int windows_poll(void *files, unsigned long count, int milliseconds);

#define mkdir(path, mode)    ((void)(mode), _mkdir(path))
#define chmod(path, mode)    windows_chmod((path), (unsigned)(mode))
#define fchmod(file, mode)   ((void)(file), windows_chmod(NULL, (unsigned)(mode)))
#define rename(from, to)     windows_rename((from), (to))
#define fsync(file)          _commit(file)
#define geteuid()            1000u
#define getuid()             1000u
#define realpath(path, full) _fullpath((full), (path), 4096)

/* Facts of a file with all that Unix tells; st_mode is what the library takes for it. */
struct windows_stat {
    uint64_t st_dev, st_ino;
    unsigned st_mode, st_nlink, st_uid;
    off_t st_size;
    struct timespec st_atim, st_mtim;
};
int windows_stat(const char *path, struct windows_stat *out);
int windows_fstat(int file, struct windows_stat *out);
int futimens(int file, const struct timespec *times);
int windows_set_times(const char *path, const struct timespec *times);
#undef stat
#undef fstat
#undef lstat
#define stat  windows_stat
#define fstat windows_fstat
#define lstat windows_stat
#define utimensat(at, path, times, flag)                                                           \
    ((void)(at), (void)(flag), windows_set_times((path), (times)))

/* Memory of aligned_alloc is given back by free, which the linker calls __wrap_free. */
void *aligned_alloc(size_t alignment, size_t bytes);

/* ---- cmocka, but for the cases that left_out.h lists ---- */

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

int test_run(const char *group, const struct CMUnitTest *tests, size_t count,
             CMFixtureFunction setup, CMFixtureFunction teardown);
#define _cmocka_run_group_tests test_run

#endif
