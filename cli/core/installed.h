/* SPDX-License-Identifier: Apache-2.0 */
/* Files that come with the program: those of the demo, and the module of pages. */
#ifndef CLI_CORE_INSTALLED_H
#define CLI_CORE_INSTALLED_H

#include "host/paths.h"

typedef struct {
    const char *variable;  /* of the environment, that names the folder: "EMBLA_DEMO" */
    const char *name;      /* of the folder in share/embla of an installation: "demo" */
    const char *beside[3]; /* other places, from the folder of the program; NULL after the last */
    const char *file;      /* which the folder has */
} cli_installed;

extern const cli_installed cli_installed_demo, cli_installed_play;

/* Whether it is the folder. */
bool cli_installed_is(const cli_installed *what, const char *folder);
/* Finds the folder: by its variable, beside the installed program, in the source tree of the
 * program, or where the build said that it will be installed. If the variable is set, it is
 * nowhere else. */
bool cli_installed_find(const cli_installed *what, char folder[CLI_PATH_MOST]);

#endif
