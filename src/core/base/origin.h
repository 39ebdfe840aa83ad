/* SPDX-License-Identifier: Apache-2.0 */
/* The process that made a handle. A forked child has a copy of the handle, but none of the threads
 * that work for it. */
#ifndef EMBLA_BASE_ORIGIN_H
#define EMBLA_BASE_ORIGIN_H

#include <stdbool.h>

#include "base/status.h"

typedef struct {
    long process;   /* for messages */
    unsigned forks; /* between the first process that used the library and this one */
} embla_origin;

/* The calling process. */
embla_origin embla_origin_here(void);
/* False in a forked child of the process that made the handle. It makes no system call. */
bool embla_origin_is_here(const embla_origin *origin);
/* EMBLA_ERR_UNSUPPORTED in such a child; `what` was opened, as in "this store". */
EMBLA_CHECKED embla_status embla_origin_check(const embla_origin *origin, const char *what);

#endif
