/* SPDX-License-Identifier: Apache-2.0 */
/* Exit codes, and messages on stderr. */
#ifndef CLI_CORE_COMPLAIN_H
#define CLI_CORE_COMPLAIN_H

#include <stdbool.h>
#include <stddef.h>

/* Exit codes of every verb. */
enum { CLI_DONE = 0, CLI_FAILED = 1, CLI_USAGE = 2, CLI_WANTING = 3 };

/* Prints "embla: message" to stderr. */
void cli_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* From now on the last message is kept instead of printed. */
void cli_complain_hold(void);
/* Prints the message that was kept, or drops it, and no longer keeps messages. If rank is above 0,
 * this and all later messages name it. */
void cli_complain_release(int rank, bool print);
/* No longer keeps messages. Copies the one that was kept to text; "" if there was none. */
void cli_complain_take(char *text, size_t size);
/* These print a message and give the exit code. They are macros so that the compiler sees the
 * constant. */
#define cli_usage(...)  (cli_complain(__VA_ARGS__), CLI_USAGE)
#define cli_failed(...) (cli_complain(__VA_ARGS__), CLI_FAILED)

#endif
