/* SPDX-License-Identifier: Apache-2.0 */
/* A giant table as `warm` and `verify` open it: checkpoint, store and progress.
 */
#ifndef CLI_CORE_STORED_H
#define CLI_CORE_STORED_H

#include "embla_store.h"

#include "core/model.h"
#include "core/out.h"
#include "core/progress.h"

/* Options of every verb that opens a store. */
#define CLI_STORED_OPTIONS                                                                         \
    {.name = "layer",                                                                              \
     .value = "N",                                                                                 \
     .count = true,                                                                                \
     .most = INT32_MAX,                                                                            \
     .help = "use the table of this layer (default: the first with a table)"},                     \
        {.name = "name",                                                                           \
         .value = "NAME",                                                                          \
         .help = "name of the shared copy (default: derived from the files)"},                     \
        {.name = "folder",                                                                         \
         .value = "DIR",                                                                           \
         .help = "folder of shared copies (default: /dev/shm, on Linux)"},                         \
        {.name = "wait",                                                                           \
         .value = "SECONDS",                                                                       \
         .standard = "600",                                                                        \
         .count = true,                                                                            \
         .help = "wait this long for a process that creates the copy; 0 means no limit"},          \
        CLI_OPEN_OPTIONS

typedef struct {
    const char *path;
    embla_checkpoint *checkpoint;
    embla_store *store;
    embla_store_info info;
    cli_progress progress;
} cli_stored;

/* Opens the table of the first operand at options->placement; fills in progress, threads and names.
 * Returns CLI_DONE, or another code after a message. Call cli_stored_free in any case. */
int cli_stored_open(const cli_args *args, embla_store_options *options, cli_stored *out);
void cli_stored_free(cli_stored *s);

/* The folder of shared copies: --folder, or that of the system. Returns like cli_stored_open. */
int cli_stored_folder(const cli_args *args, const char **out);

/* "table  FILE: 2,304 rows of 160 f8_e4m3 (160 bytes), 4 parts, 368.64 kB" */
void cli_stored_facts(const cli_stored *s);
void cli_stored_json(const cli_stored *s, cli_json *json);

#endif
