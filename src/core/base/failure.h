/* SPDX-License-Identifier: Apache-2.0 */
/* The first failure of several threads or steps. An error message belongs to its thread, and the
 * next failure replaces it; so the first one is stored here and reported again at the end. Loops do
 * without it: embla_share returns the failure (base/parallel.h). */
#ifndef EMBLA_BASE_FAILURE_H
#define EMBLA_BASE_FAILURE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/status.h"

/* The thread that sets `said` first writes the sentence, then stores the status, which releases it;
 * whoever loads a status other than EMBLA_OK has acquired the sentence. */
typedef struct {
    atomic_int status;
    atomic_flag said;   /* a thread has failed */
    char sentence[512]; /* its message */
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

/* True if a thread has failed, so remaining work can be skipped. */
static inline bool embla_failure_any(embla_failure *failure)
{
    return atomic_load(&failure->status) != EMBLA_OK;
}

/* Reports the failure after the loop. */
static inline EMBLA_CHECKED embla_status embla_failure_say(embla_failure *failure)
{
    embla_status status = (embla_status)atomic_load(&failure->status);
    return status == EMBLA_OK ? EMBLA_OK : embla_fail(status, "%s", failure->sentence);
}

#endif
