/* SPDX-License-Identifier: Apache-2.0 */
/* Failures that a test injects: the n-th call of a kind fails. files/io.h and base/mem.h count
 * files and memory themselves; other kinds of calls are counted here. Many threads may count at
 * once. */
#ifndef EMBLA_BASE_INJECTED_H
#define EMBLA_BASE_INJECTED_H

#include <stdbool.h>
#include <stddef.h>

#include "system/system.h"

typedef enum {
    EMBLA_INJECT_FILE,   /* files and maps of them: embla_io_fail */
    EMBLA_INJECT_MEMORY, /* embla_mem_fail */
    EMBLA_INJECT_THREAD, /* starts of threads */
    EMBLA_INJECT_LOAD,   /* loads of libraries */
    EMBLA_INJECT_KINDS
} embla_inject_kind;

/* The n-th call of a kind from now fails with this error; 1 is the next call. If forever is true,
 * all later calls fail, too. n = 0 switches this off. */
void embla_inject(embla_inject_kind kind, size_t n, bool forever, embla_system_error error);
/* Counts a call. True, with its outcome, if it has to fail. */
bool embla_injected(embla_inject_kind kind, embla_outcome *out);

#endif
