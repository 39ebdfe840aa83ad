/* SPDX-License-Identifier: Apache-2.0 */
/* How much memory this process may still use, to refuse what cannot fit before it starts. */
#ifndef CLI_CORE_MEMORY_H
#define CLI_CORE_MEMORY_H

#include <stdint.h>

/* Bytes: the least of what the machine, the control groups and the limits of the process leave.
 * INT64_MAX if nothing says. *why (may be NULL) gets what limits it: "the machine",
 * "the control group", "ulimit -v". */
int64_t cli_memory_available(const char **why);

/* CLI_DONE if `bytes` are available. Otherwise CLI_FAILED after a message: "WHAT needs 147.92 GB,
 * but only 20.10 GB is available (the machine); ADVICE". */
int cli_memory_check(int64_t bytes, const char *what, const char *advice);

#endif
