/* SPDX-License-Identifier: Apache-2.0 */
/* A small model of a text, of the shape of the demo's models: what `embla play TEXT` trains first.
 */
#ifndef CLI_TRAIN_TEXT_MODEL_H
#define CLI_TRAIN_TEXT_MODEL_H

#include <stdint.h>

#include "core/progress.h"

enum { CLI_TEXT_COMMAND = 1024, CLI_TEXT_NAME = 256 }; /* buffer sizes */

typedef struct {
    const char *path;  /* of the text.. */
    const char *named; /* ..and as it was typed */
    int64_t words;     /* tokens are words, at most so many; 0: characters; -1: by its lines */
    int64_t steps;     /* -1 means those of the demo's models */
    int64_t threads;   /* 0 means the default */
    /* Set by the training: the `embla train` with the same bits, and what it calls the model. */
    char command[CLI_TEXT_COMMAND], name[CLI_TEXT_NAME];
} cli_text_model;

/* Trains the model and writes it to a folder that exists. progress has been begun. Returns an exit
 * code, after a message if it is not CLI_DONE; CLI_FAILED without one if the user has cancelled. */
int cli_text_model_train(cli_text_model *model, const char *folder, cli_progress *progress);

#endif
