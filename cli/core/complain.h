/* SPDX-License-Identifier: Apache-2.0 */
/* How the program ends and what it says on stderr. */
#ifndef CLI_CORE_COMPLAIN_H
#define CLI_CORE_COMPLAIN_H

/* Exit codes of every verb. */
enum { CLI_DONE = 0, CLI_FAILED = 1, CLI_USAGE = 2, CLI_WANTING = 3 };

/* Prints "embla: sentence" to stderr. */
void cli_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The exit code, after the sentence. Macros, so that the compiler sees what comes out. */
#define cli_usage(...)  (cli_complain(__VA_ARGS__), CLI_USAGE)
#define cli_failed(...) (cli_complain(__VA_ARGS__), CLI_FAILED)

#endif
