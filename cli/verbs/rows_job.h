/* SPDX-License-Identifier: Apache-2.0 */
/* The row numbers of tokens, for the verbs `rows` and `trace`: a hasher from a known model or from
 * a checkpoint, tokens from the command line or from standard input. */
#ifndef CLI_VERBS_ROWS_JOB_H
#define CLI_VERBS_ROWS_JOB_H

#include "embla_store.h"

#include "core/args.h"
#include "core/model.h"
#include "core/token.h"

#define CLI_ROWS_OPTIONS                                                                           \
    {.name = "model",                                                                              \
     .value = "NAME",                                                                              \
     .choices = embla_ngram_model_name,                                                            \
     .help = "use the hasher of a known model; all operands are then tokens"},                     \
        {.name = "layer",                                                                          \
         .value = "N",                                                                             \
         .count = true,                                                                            \
         .most = INT32_MAX,                                                                        \
         .help = "layer whose table is used (default: the first with a table)"},                   \
        {.name = "fold",                                                                           \
         .value = "FILE",                                                                          \
         .reads = CLI_READS_FILE,                                                                  \
         .help = "npy file of int32 that maps each token to its folded token (DeepSeek); without " \
                 "it tokens are used as they are"},                                                \
        {.name = "fold-checksum",                                                                  \
         .value = "HEX",                                                                           \
         .help = "fail unless the fold has this checksum; without the option it is printed"},      \
        {.name = "ids",                                                                            \
         .value = "LIST",                                                                          \
         .reads = CLI_READS_LINES,                                                                 \
         .help = "token numbers, such as 2,5,7; - reads them from standard input"},                \
    {                                                                                              \
        .name = "history", .value = "LIST",                                                        \
        .help = "tokens before the first one, oldest first (default: the text starts there)"       \
    }

enum { CLI_ROWS_HISTORY = 16 };

typedef struct {
    const char *model_name; /* NULL means that a checkpoint is used */
    cli_model model;        /* the checkpoint */
    embla_fold *fold;
    embla_ngram *ngram;
    embla_ngram_info info;
    char checksum[33]; /* of the fold; empty if none is used */
    cli_tokens tokens;
    int32_t *ids;
    int32_t history[CLI_ROWS_HISTORY]; /* the tokens before, oldest first; -1 means none */
    int64_t *rows;                     /* tokens x columns */
} cli_rows_job;

/* --layer; -1 means the first layer with a table. */
int32_t cli_rows_layer(const cli_args *args);
/* Opens the hasher, reads the tokens and computes their row numbers. Returns CLI_DONE, or another
 * code after a message. Call cli_rows_free in any case. */
int cli_rows_hash(const cli_args *args, cli_rows_job *j);
void cli_rows_free(cli_rows_job *j);

#endif
