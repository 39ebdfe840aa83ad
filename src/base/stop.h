/* SPDX-License-Identifier: Apache-2.0 */
/* Calls the caller's progress function (embla_progress_fn). Inline, so that both libraries use
 * it without an exported symbol.
 */
#ifndef EMBLA_BASE_STOP_H
#define EMBLA_BASE_STOP_H

#include "base/status.h"

/* EMBLA_ERR_STOPPED if the function returns false. progress may be NULL. */
EMBLA_CHECKED static inline embla_status embla_progress_report(embla_progress_fn progress,
                                                               void *context, const char *what,
                                                               int64_t done, int64_t total)
{
    if (!progress || progress(context, what, done, total)) return EMBLA_OK;
    return embla_fail(EMBLA_ERR_STOPPED,
                      "stopped by the caller: %s, %" PRId64 " of %" PRId64 " done", what, done,
                      total);
}

#endif
