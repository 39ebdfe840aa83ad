/* SPDX-License-Identifier: Apache-2.0 */
/* Part of every test program and example for WebAssembly: it begins in the folder in which run.mjs
 * was started, and not at the root. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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
