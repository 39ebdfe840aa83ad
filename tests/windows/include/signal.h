/* SPDX-License-Identifier: Apache-2.0 */
/* Signals, which Windows does not send: a test that asks which are blocked is skipped. */
#ifndef EMBLA_TESTS_WINDOWS_SIGNAL_H
#define EMBLA_TESTS_WINDOWS_SIGNAL_H

#include_next <signal.h>

#define sigset_t unsigned long
enum { SIGPROF = 27, SIGXFSZ = 25, SIG_BLOCK = 0, SIG_SETMASK = 2 };
#define pthread_sigmask(how, set, before)                                                          \
    ((void)(how), (void)(set), (void)(before), test_lacks("Windows has no signals of Unix"))
#define sigismember(set, number) ((void)(set), 0 * (number))

#endif
