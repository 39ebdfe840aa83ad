/* SPDX-License-Identifier: Apache-2.0 */
/* Included in front of every test for WebAssembly: what tests ask of Unix, and wasi-libc does not
 * have. start.c makes what WASI can do; a test that asks for the rest is skipped there, and prints
 * the reason that stands here. left_out.h has the other cases that are left out. */
#ifndef EMBLA_TESTS_WASM_POSIX_H
#define EMBLA_TESTS_WASM_POSIX_H

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <fenv.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>
#undef HUGE

/* ---- what WASI lacks ---- */

int test_lacks(const char *what); /* ends the test; -1. In ../left_out.c */
#define LACKS_FORK    test_lacks("WebAssembly starts no process")
#define LACKS_THREADS test_lacks("WebAssembly starts no thread")
#define LACKS_SIGNALS test_lacks("WebAssembly has no signals")
#define LACKS_PIPES   test_lacks("WASI has no pipes with a name in a folder")
#define LACKS_USERS   test_lacks("WASI has no users")
#define LACKS_RIGHTS  test_lacks("WASI sets no permissions of files")
#define LACKS_LIMITS  test_lacks("WASI has no limits of a process")
#define LACKS_SHARED  test_lacks("WASI duplicates no open file")
#define LACKS_SYSTEM  test_lacks("WASI has no such call of Linux")

#define fork()                        LACKS_FORK
#define pipe(ends)                    ((void)(ends), LACKS_FORK)
#define kill(process, number)         ((void)(process), (void)(number), LACKS_FORK)
#define system(command)               ((void)(command), LACKS_FORK)
#define mincore(at, bytes, pages)     ((void)(at), (void)(bytes), (void)(pages), LACKS_SYSTEM)
#define inotify_init1(flags)          LACKS_SYSTEM
#define inotify_add_watch(n, path, f) ((void)(n), (void)(path), (void)(f), LACKS_SYSTEM)
#define mount(what, at, kind, f, how) ((void)(what), (void)(at), (void)(how), -1)
#define umount(at)                    ((void)(at), LACKS_SYSTEM)
#define getppid()                     LACKS_FORK
#define pthread_create(t, a, run, x)  ((void)(t), (void)(a), (void)(run), (void)(x), LACKS_THREADS)
#define pthread_sigmask(how, s, old)  ((void)(how), (void)(s), (void)(old), LACKS_SIGNALS)
#define alarm(seconds)                ((unsigned)((seconds)*0)) /* ctest ends what hangs */
#define pause()                       LACKS_SIGNALS
#define mkfifo(path, mode)            ((void)(path), (void)(mode), LACKS_PIPES)
#define mkfifoat(at, path, mode)      ((void)(at), (void)(path), (void)(mode), LACKS_PIPES)
#define chroot(path)                  ((void)(path), LACKS_USERS)
#define seteuid(user)                 ((void)(user), LACKS_USERS)
#define setuid(user)                  ((void)(user), LACKS_USERS)
#define chown(path, user, group)      ((void)(path), (void)(user), (void)(group), LACKS_USERS)
#define geteuid()                     1000u
#define getuid()                      1000u
#define umask(mode)                   ((mode_t)((mode)*0))
#define chmod(path, mode)             ((void)(path), (void)(mode), LACKS_RIGHTS)
#define fchmod(file, mode)            ((void)(file), (void)(mode), LACKS_RIGHTS)
#define dup(file)                     ((void)(file), LACKS_SHARED)
#define dup2(from, to)                ((void)(from), (void)(to), LACKS_SHARED)
#define flock(file, kind)             ((void)(file), (void)(kind), LACKS_SHARED)
#define dlsym(library, name)          ((void)(name), (void *)NULL)
#define sched_getaffinity(id, n, set) ((void)(id), (void)(n), (void)(set), LACKS_THREADS)
#define sched_setaffinity(id, n, set) ((void)(id), (void)(n), (void)(set), LACKS_THREADS)

struct rlimit {
    unsigned long long rlim_cur, rlim_max;
};
typedef unsigned long long rlim_t;
enum { RLIMIT_FSIZE = 1, RLIMIT_NPROC = 6, RLIMIT_AS = 9 };
#define RLIM_INFINITY          (~0ULL)
#define getrlimit(kind, limit) ((void)(kind), (void)(limit), LACKS_LIMITS)
#define setrlimit(kind, limit) ((void)(kind), (void)(limit), LACKS_LIMITS)

/* One mode of rounding: to the nearest. */
enum { FE_UPWARD = 1, FE_DOWNWARD = 2, FE_TOWARDZERO = 3 };

enum { WNOHANG = 1 };
#define CLOCK_PROCESS_CPUTIME_ID CLOCK_MONOTONIC
#define CLOCK_THREAD_CPUTIME_ID  CLOCK_MONOTONIC

/* ---- what it has in another way ---- */

char *mkdtemp(char *path);

/* The memory that a program has taken: all that it ever took. */
struct wasm_usage {
    struct timeval ru_utime, ru_stime;
    long ru_maxrss, ru_minflt;
};
int wasm_usage(struct wasm_usage *out);
#define rusage              wasm_usage
#define getrusage(who, out) wasm_usage(out)

/* Tests that replace a call of the C library pass it on by its number on Linux. */
#define SYS_pread64   17
#define SYS_renameat2 316
long syscall(long number, ...);

/* cmocka, but for the cases that left_out.h lists. */
#define _cmocka_run_group_tests test_run

#endif
