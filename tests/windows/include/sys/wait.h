/* SPDX-License-Identifier: Apache-2.0 */
/* For tests that fork, which are skipped on Windows. */
#ifndef EMBLA_TESTS_WINDOWS_WAIT_H
#define EMBLA_TESTS_WINDOWS_WAIT_H

enum { WNOHANG = 1, WUNTRACED = 2 };
#define WIFEXITED(status)           ((status) == 0)
#define WEXITSTATUS(status)         (status)
#define WIFSIGNALED(status)         ((status) != 0)
#define WTERMSIG(status)            (status)
#define waitpid(child, status, how) ((void)(child), (void)(status), (void)(how), LACKS_FORK)
#define wait(status)                ((void)(status), LACKS_FORK)

#endif
