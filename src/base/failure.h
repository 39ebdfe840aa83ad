/* SPDX-License-Identifier: Apache-2.0 */
/* What failed inside a parallel loop. A sentence belongs to the thread that said it, so the first
 * is kept here, and said again on the thread that called.
 */
#ifndef EMBLA_BASE_FAILURE_H
#define EMBLA_BASE_FAILURE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/status.h"

typedef struct {
    atomic_int status;
    atomic_flag said;   /* one has failed.. */
    char sentence[512]; /* ..and this is what it said */
} embla_failure;

#define EMBLA_NO_FAILURE                                                                           \
    {                                                                                              \
        .said = ATOMIC_FLAG_INIT                                                                   \
    }

/* Keeps a status that is not EMBLA_OK, if it is the first. */
static inline void embla_failure_keep(embla_failure *failure, embla_status status)
{
    if (status == EMBLA_OK || atomic_flag_test_and_set(&failure->said)) return;
    (void)snprintf(failure->sentence, sizeof failure->sentence, "%s", embla_error());
    atomic_store(&failure->status, (int)status);
}

/* Whether work that is left can be left out. */
static inline bool embla_failure_any(embla_failure *failure)
{
    return atomic_load(&failure->status) != EMBLA_OK;
}

/* After the loop. */
static inline EMBLA_CHECKED embla_status embla_failure_say(embla_failure *failure)
{
    embla_status status = (embla_status)atomic_load(&failure->status);
    return status == EMBLA_OK ? EMBLA_OK : embla_fail(status, "%s", failure->sentence);
}

#endif
