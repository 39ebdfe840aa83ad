/* SPDX-License-Identifier: Apache-2.0 */
/* How many threads to use for a loop. */
#ifndef EMBLA_BASE_THREADS_H
#define EMBLA_BASE_THREADS_H

#include <stddef.h>

#include "base/status.h"

/* EMBLA_ERR_ARGUMENT if asked is negative. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_threads_check(int asked);
/* The number of threads for a loop that moves `bytes` bytes: `asked` (0 means
 * embla_default_threads), but not more than the work is worth. */
EMBLA_PRIVATE int embla_threads_for(int asked, size_t bytes);

#endif
