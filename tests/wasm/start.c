/* SPDX-License-Identifier: Apache-2.0 */
/* Part of every test program and example for WebAssembly: it begins in the folder in which run.mjs
 * was started, and not at the root. */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <wasi/api.h>

#include "posix.h"

__attribute__((constructor)) static void enter_folder(void)
{
    const char *folder = getenv("PWD");
    if (folder && chdir(folder) != 0) abort();
}

/* wasi-libc has none. */
char *mkdtemp(char *path)
{
    static const char letters[] = "0123456789abcdefghijklmnopqrstuv";
    char *end = path + strlen(path) - 6;
    do {
        unsigned char random[6];
        if (getentropy(random, sizeof random) != 0) return NULL;
        for (int i = 0; i < 6; i++) end[i] = letters[random[i] % 32];
    } while (mkdir(path, 0700) != 0 && errno == EEXIST);
    return path;
}

int wasm_usage(struct wasm_usage *out)
{
    *out = (struct wasm_usage){.ru_maxrss = (long)__builtin_wasm_memory_size(0) * 64};
    return 0;
}

__attribute__((weak)) long syscall(long number, ...)
{
    va_list list;
    long done = -1;
    va_start(list, number);
    if (number == SYS_pread64) {
        int file = va_arg(list, int);
        __wasi_iovec_t part = {va_arg(list, void *), va_arg(list, size_t)};
        __wasi_size_t got;
        __wasi_errno_t error = __wasi_fd_pread(file, &part, 1, va_arg(list, off_t), &got);
        errno = error;
        done = error ? -1 : (long)got;
    } else {
        errno = ENOSYS;
    }
    va_end(list);
    return done;
}
