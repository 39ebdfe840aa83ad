/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the steps of a training. */
#ifndef CLI_TRAIN_TRAIN_RUN_H
#define CLI_TRAIN_TRAIN_RUN_H

#include "train/training.h"

/* Runs until the last step or a signal. Returns the exit code. */
int cli_training_run(cli_training *t);
/* The same for one of several trainings: t->progress has been begun, and a signal is left to the
 * caller. Prints nothing if t->quiet is set. */
int cli_training_do(cli_training *t);
/* Reads the figures of the steps that are done from the open log. */
int cli_training_read_log(cli_training *t);
/* The number of batches of the validation after the last step. */
int64_t cli_training_last_batches(const cli_training *t);

#endif
