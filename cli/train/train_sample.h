/* SPDX-License-Identifier: Apache-2.0 */
/* Text that the model writes while it learns (--sample-every, --film). */
#ifndef CLI_TRAIN_TRAIN_SAMPLE_H
#define CLI_TRAIN_TRAIN_SAMPLE_H

#include "train/training.h"

typedef struct {
    double temperature;
    size_t tokens; /* maximum of all texts together */
    size_t texts;  /* maximum, one on each line, if a text ends by itself; 0 means 1 */
} cli_sample_how;

/* Generates text with the present weights. The same weights give the same text. *text has *length
 * bytes and a 0; the caller frees it. CLI_DONE, or CLI_FAILED after a message. */
int cli_sample_text(cli_training *t, const cli_sample_how *how, char **text, size_t *length);
/* Generates one text and prints it. */
int cli_sample_print(cli_training *t);

#endif
