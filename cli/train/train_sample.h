/* SPDX-License-Identifier: Apache-2.0 */
/* Text that the model writes while it learns (--sample-every). */
#ifndef CLI_TRAIN_TRAIN_SAMPLE_H
#define CLI_TRAIN_TRAIN_SAMPLE_H

#include "train/training.h"

/* Generates one text with the present weights and prints it. The same weights give the same text.
 * CLI_DONE, or CLI_FAILED after a message. */
int cli_sample_print(cli_training *t);

#endif
