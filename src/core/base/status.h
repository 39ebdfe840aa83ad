/* SPDX-License-Identifier: Apache-2.0 */
/* A status for programs and a message for people, created where the error is found.
 *
 *   if (rows < 1) return embla_fail(EMBLA_ERR_ARGUMENT, "rows is %" PRId64 "; it must ..", rows);
 *   EMBLA_TRY(embla_mem_new(bytes, "a table", &memory));
 */
#ifndef EMBLA_BASE_STATUS_H
#define EMBLA_BASE_STATUS_H

#include <inttypes.h>

#include "embla.h"

/* Marks a function that a library exports for the libraries above it of the same version alone: see
 * symbol_versions.cmake. tests/house/symbols lists these functions. */
#define EMBLA_PRIVATE EMBLA_API

/* Stores the message of this thread (embla_error). Never fails; a long message is truncated. */
EMBLA_PRIVATE void embla_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Stores the message and gives the status. A macro, so that the compiler sees that the status is
 * not EMBLA_OK. */
#define embla_fail(status, ...) (embla_say(__VA_ARGS__), (status))

/* Returns from the calling function if call failed. */
#define EMBLA_TRY(call)                                                                            \
    do {                                                                                           \
        embla_status try_status = (call);                                                          \
        if (try_status != EMBLA_OK) return try_status;                                             \
    } while (0)

/* EMBLA_ERR_ARGUMENT with "FUNCTION: NAME is NULL" unless the pointer is set. For public functions:
 * the name is that of the parameter, as the header has it. */
#define EMBLA_NEED(pointer) EMBLA_NEED_OF(__func__, #pointer, pointer)
/* The same inside a public function, whose name and parameter are given. */
#define EMBLA_NEED_OF(function, name, pointer)                                                     \
    do {                                                                                           \
        if ((pointer) == NULL)                                                                     \
            return embla_fail(EMBLA_ERR_ARGUMENT, "%s: %s is NULL", function, name);               \
    } while (0)
/* The same for an array that may be NULL if it is empty. */
#define EMBLA_NEED_MANY(pointer, count)                                                            \
    do {                                                                                           \
        if ((pointer) == NULL && (count) != 0)                                                     \
            return embla_fail(EMBLA_ERR_ARGUMENT,                                                  \
                              "%s: " #pointer " is NULL, but its count is %" PRIu64, __func__,     \
                              (uint64_t)(count));                                                  \
    } while (0)

#endif
