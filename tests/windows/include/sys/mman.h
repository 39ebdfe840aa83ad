/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of the process by the call of Unix; tests/windows/posix.c. */
#ifndef EMBLA_TESTS_WINDOWS_MMAN_H
#define EMBLA_TESTS_WINDOWS_MMAN_H

#include <sys/types.h>

enum { PROT_NONE, PROT_READ, PROT_WRITE };
enum { MAP_SHARED = 1, MAP_PRIVATE = 2, MAP_ANONYMOUS = 32, MAP_NORESERVE = 64 };
#define MAP_FAILED ((void *)-1)

void *mmap(void *at, size_t bytes, int protection, int flags, int file, off_t offset);
int munmap(void *memory, size_t bytes);
int mprotect(void *memory, size_t bytes, int protection);
#define mincore(memory, bytes, flags)                                                              \
    ((void)(memory), (void)(bytes), (void)(flags),                                                 \
     test_lacks("Windows does not tell what its cache has"))

#endif
