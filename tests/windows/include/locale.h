/* SPDX-License-Identifier: Apache-2.0 */
/* For a test that has its own newlocale, which the library does not call here. */
#ifndef EMBLA_TESTS_WINDOWS_LOCALE_H
#define EMBLA_TESTS_WINDOWS_LOCALE_H

#include_next <locale.h>

typedef struct windows_locale *locale_t;

#endif
