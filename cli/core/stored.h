/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of a giant table as `warm` and `verify` open them: a checkpoint, the tensors in it
 * that are the table, a placement, and how far the work has come.
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
     .help = "the table of this layer, where several have one; otherwise of the first"},           \
        {.name = "name",                                                                           \
         .value = "NAME",                                                                          \
         .help = "what the shared copy is called; otherwise a name made of the files"},            \
        {.name = "folder",                                                                         \
         .value = "DIR",                                                                           \
         .standard = "/dev/shm",                                                                   \
         .help = "where shared copies are"},                                                       \
        CLI_OPEN_OPTIONS

typedef struct {
    const char *path;
    embla_checkpoint *checkpoint;
    embla_store *store;
    embla_store_info info;
    cli_progress progress;
} cli_stored;

/* The first operand's table, at options->placement; progress, threads and names are filled in.
 * CLI_DONE, or another code after a sentence; either way cli_stored_free. */
int cli_stored_open(const cli_args *args, embla_store_options *options, cli_stored *out);
void cli_stored_free(cli_stored *s);

/* "table  FILE: 2,304 rows of 160 f8_e4m3 (160 bytes), 4 parts, 368.64 kB" */
void cli_stored_facts(const cli_stored *s);
void cli_stored_json(const cli_stored *s, cli_json *json);

#endif
