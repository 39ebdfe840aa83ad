/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of a giant table as `warm` and `verify` open them: a checkpoint, the tensors in it
 * that are the table, a placement, and how far the work has come.
 */
#ifndef EMBLA_CLI_STORED_H
#define EMBLA_CLI_STORED_H

#include "embla_store.h"

#include "model.h"
#include "out.h"
#include "progress.h"

/* Options of every verb that opens a store. */
#define EMBLA_STORED_OPTIONS                                                                       \
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
        EMBLA_OPEN_OPTIONS

typedef struct {
    const char *path;
    embla_checkpoint *checkpoint;
    embla_store *store;
    embla_store_info info;
    embla_progress progress;
    const char *doing; /* "reading": what is shown while the work is done */
} embla_stored;

/* The first operand's table, at options->place; progress, threads and names are filled in.
 * EMBLA_DONE, or another code after a sentence; either way embla_stored_free. */
int embla_stored_open(const embla_args *args, embla_store_options *options, const char *doing,
                      embla_stored *out);
void embla_stored_free(embla_stored *s);
/* For options.progress; context is the embla_stored. */
bool embla_stored_step(void *context, int64_t done, int64_t all);

/* "table  FILE: 2,304 rows of 160 f8_e4m3 (160 bytes), 4 parts, 368.64 kB" */
void embla_stored_facts(const embla_stored *s);
void embla_stored_json(const embla_stored *s, embla_json *json);

#endif
