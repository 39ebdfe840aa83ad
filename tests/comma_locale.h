/* SPDX-License-Identifier: Apache-2.0 */
/* A locale with a decimal comma, for tests that what the library writes and reads has a point in
 * every locale. */
#ifndef EMBLA_TESTS_COMMA_LOCALE_H
#define EMBLA_TESTS_COMMA_LOCALE_H

#include <locale.h>

#include "scratch.h"

/* Makes the German locale in the folder; localedef and its sources may not be installed. */
static inline const char *comma_locale_make(scratch *s)
{
    char command[SCRATCH_PATH + 128];
    (void)snprintf(command, sizeof command,
                   "localedef -i de_DE -f UTF-8 '%s' >/dev/null 2>/dev/null",
                   scratch_path(s, "de_DE.UTF-8"));
    if (system(command) < 0 || setenv("LOCPATH", s->folder, 1) != 0) return NULL;
    const char *found = setlocale(LC_ALL, "de_DE.UTF-8");
    (void)unsetenv("LOCPATH");
    return found;
}

/* Sets a locale with a decimal comma until comma_locale_end. Without one a message is printed, the
 * C locale stays, and the test checks less. */
static inline void comma_locale_begin(void)
{
    static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "ru_RU.UTF-8", "de_DE",
                                        "German"};
    const char *found = NULL;
    for (size_t i = 0; i < COUNT_OF(names) && !found; i++) found = setlocale(LC_ALL, names[i]);
    if (!found) {
        scratch s;
        scratch_new(&s);
        found = comma_locale_make(&s);
        (void)snprintf(s.path, sizeof s.path, "rm -r '%s'", s.folder);
        (void)!system(s.path);
    }
    if (!found) print_message("no locale with a decimal comma can be had; the C locale is used\n");
}

static inline void comma_locale_end(void)
{
    (void)setlocale(LC_ALL, "C");
}

#endif
