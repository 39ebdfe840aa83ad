/* SPDX-License-Identifier: Apache-2.0 */
/* No process is started, so none is waited for. */
#ifndef EMBLA_TESTS_WASM_WAIT_H
#define EMBLA_TESTS_WASM_WAIT_H
#define WIFEXITED(status)     ((status) == 0)
#define WEXITSTATUS(status)   (status)
#define WIFSIGNALED(status)   ((status) != 0)
#define WTERMSIG(status)      (status)
#define waitpid(id, out, how) ((void)(id), (void)(out), (void)(how), LACKS_FORK)
#endif
