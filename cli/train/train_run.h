/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of a training, and what is done between them. */
#ifndef CLI_TRAIN_TRAIN_RUN_H
#define CLI_TRAIN_TRAIN_RUN_H

#include "train/training.h"

/* From the first step to the last, or until a signal comes. The exit code. */
int cli_training_run(cli_training *t);

#endif
