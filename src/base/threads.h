/* SPDX-License-Identifier: Apache-2.0 */
/* How many threads a loop is worth. */
#ifndef EMBLA_BASE_THREADS_H
#define EMBLA_BASE_THREADS_H

#include <stddef.h>

#include "base/status.h"

/* EMBLA_ERR_ARGUMENT if asked is below 0. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_threads_check(int asked);
/* Threads for a loop that moves bytes: asked, or OpenMP's own number for 0, but no
 * more than there is work for, and one for what a single thread does sooner than
 * a second one wakes up. */
EMBLA_PRIVATE int embla_threads_for(int asked, size_t bytes);

/* Which thread of a loop's this is, from 0. */
EMBLA_PRIVATE int embla_threads_mine(void);

#endif
