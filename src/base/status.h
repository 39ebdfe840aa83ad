/* SPDX-License-Identifier: Apache-2.0 */
/* A status for programs and a sentence for people, made at the place that knows.
 *
 *   if (rows < 1) return embla_fail(EMBLA_ERR_ARGUMENT, "a table of %" PRId64 " rows", rows);
 *   EMBLA_TRY(embla_mem_new(bytes, "a table", &memory));
 */
#ifndef EMBLA_BASE_STATUS_H
#define EMBLA_BASE_STATUS_H

#include <inttypes.h>

#include "embla.h"

/* Marks a function that libembla exports for the libembla_lab of the same version alone: see
 * symbol_versions.cmake. tests/house/symbols/embla_private.txt lists these functions. */
#define EMBLA_PRIVATE EMBLA_API

/* Keeps the sentence for this thread (embla_error). Never fails: a sentence that is too
 * long is cut. */
EMBLA_PRIVATE void embla_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The status of a call that failed, with its sentence. A macro, so that the compiler sees
 * what comes out and does not take a failure for success. */
#define embla_fail(status, ...) (embla_say(__VA_ARGS__), (status))

/* Returns from the calling function if call failed. */
#define EMBLA_TRY(call)                                                                            \
    do {                                                                                           \
        embla_status try_status = (call);                                                          \
        if (try_status != EMBLA_OK) return try_status;                                             \
    } while (0)

#endif
