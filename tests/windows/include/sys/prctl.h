/* SPDX-License-Identifier: Apache-2.0 */
/* For tests that forbid calls in a child, which are skipped on Windows. */
#ifndef EMBLA_TESTS_WINDOWS_PRCTL_H
#define EMBLA_TESTS_WINDOWS_PRCTL_H

enum { PR_SET_NO_NEW_PRIVS = 38, PR_SET_PDEATHSIG = 1 };
#define prctl(...) LACKS_FORK

#endif
