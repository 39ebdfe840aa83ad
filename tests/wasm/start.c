/* SPDX-License-Identifier: Apache-2.0 */
/* Part of every test program and example for WebAssembly: it begins in the folder in which run.mjs
 * was started, and not at the root. */
#include <stdlib.h>
#include <unistd.h>

__attribute__((constructor)) static void enter_folder(void)
{
    const char *folder = getenv("PWD");
    if (folder && chdir(folder) != 0) abort();
}
