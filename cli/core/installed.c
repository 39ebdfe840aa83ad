/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the files that come with the program. */
#include "core/installed.h"

#include <stdio.h>
#include <stdlib.h>

#include "host/host.h"

#ifndef EMBLA_DATA_INSTALLED
#define EMBLA_DATA_INSTALLED "/usr/local/share/embla"
#endif

const cli_installed cli_installed_demo = {"EMBLA_DEMO", "demo", {"../../demo"}, "words.vec"};
/* build/play, and play/ of a source that was packed with the module */
const cli_installed cli_installed_play = {
    "EMBLA_PLAY", "play", {"../play", "../../play"}, "play.wasm.gz"};

bool cli_installed_is(const cli_installed *what, const char *folder)
{
    char path[CLI_PATH_MOST];
    return snprintf(path, sizeof path, "%s/%s", folder, what->file) < (int)sizeof path &&
           cli_is_readable(path);
}

/* Whether it is the folder; its real path goes to `folder`. */
static bool take(const cli_installed *what, const char *path, char folder[CLI_PATH_MOST])
{
    char *real = cli_installed_is(what, path) ? cli_path_real(path) : NULL;
    bool good = real && snprintf(folder, CLI_PATH_MOST, "%s", real) < CLI_PATH_MOST;
    free(real);
    return good;
}

/* The same for a folder in another one. */
static bool take_in(const cli_installed *what, const char *outer, const char *inner,
                    char folder[CLI_PATH_MOST])
{
    char path[CLI_PATH_MOST];
    return snprintf(path, sizeof path, "%s/%s", outer, inner) < (int)sizeof path &&
           take(what, path, folder);
}

bool cli_installed_find(const cli_installed *what, char folder[CLI_PATH_MOST])
{
    const char *named = getenv(what->variable);
    if (named) return take(what, named, folder);
    char program[CLI_PATH_MOST], share[64];
    (void)snprintf(share, sizeof share, "../share/embla/%s", what->name);
    if (cli_program_path(program, sizeof program)) {
        const char *slash = embla_system_slash(program);
        if (slash) program[slash - program] = '\0';
        if (take_in(what, program, share, folder)) return true;
        for (size_t i = 0; i < sizeof what->beside / sizeof what->beside[0]; i++)
            if (what->beside[i] && take_in(what, program, what->beside[i], folder)) return true;
    }
    return take_in(what, EMBLA_DATA_INSTALLED, what->name, folder);
}
