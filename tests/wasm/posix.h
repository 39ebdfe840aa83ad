/* SPDX-License-Identifier: Apache-2.0 */
/* Included in front of every test for WebAssembly: what tests ask of Unix, and wasi-libc does not
 * declare. start.c has mkdtemp; the others fail, as a system may. */
#ifndef EMBLA_TESTS_WASM_POSIX_H
#define EMBLA_TESTS_WASM_POSIX_H

#include <errno.h>
#include <sys/types.h>
#include <time.h>

char *mkdtemp(char *path);

static inline int wasm_lacks(void)
{
    errno = ENOSYS;
    return -1;
}
#define fork()                   wasm_lacks()
#define alarm(seconds)           ((void)(seconds), wasm_lacks())
#define mkfifo(path, mode)       ((void)(path), (void)(mode), wasm_lacks())
#define mkfifoat(at, path, mode) ((void)(at), (void)(path), (void)(mode), wasm_lacks())
#define chroot(path)             ((void)(path), wasm_lacks())
#define seteuid(user)            ((void)(user), wasm_lacks())
#define setuid(user)             ((void)(user), wasm_lacks())
#define umask(mode)              ((mode_t)0)
#define geteuid()                1000u
#define dup2(from, to)           ((void)(from), (void)(to), wasm_lacks())
#define dup(file)                ((void)(file), wasm_lacks())
#define chmod(path, mode)        ((void)(path), (void)(mode), wasm_lacks())
#define CLOCK_PROCESS_CPUTIME_ID CLOCK_MONOTONIC
#define CLOCK_THREAD_CPUTIME_ID  CLOCK_MONOTONIC

#endif
