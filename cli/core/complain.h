/* SPDX-License-Identifier: Apache-2.0 */
/* Exit codes, and messages on stderr. */
#ifndef CLI_CORE_COMPLAIN_H
#define CLI_CORE_COMPLAIN_H

/* Exit codes of every verb. */
enum { CLI_DONE = 0, CLI_FAILED = 1, CLI_USAGE = 2, CLI_WANTING = 3 };

/* Prints "embla: message" to stderr. */
void cli_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* These print a message and give the exit code. They are macros so that the compiler sees the
 * constant. */
#define cli_usage(...)  (cli_complain(__VA_ARGS__), CLI_USAGE)
#define cli_failed(...) (cli_complain(__VA_ARGS__), CLI_FAILED)

#endif
