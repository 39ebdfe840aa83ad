/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the steps of a training. */
#ifndef CLI_TRAIN_TRAIN_RUN_H
#define CLI_TRAIN_TRAIN_RUN_H

#include "train/training.h"

/* Runs until the last step or a signal. Returns the exit code. */
int cli_training_run(cli_training *t);

#endif
