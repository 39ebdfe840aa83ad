/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the options of `embla train`. Functions that return an int return an exit code, after a
 * message if it is not CLI_DONE.
 */
#ifndef CLI_TRAIN_TRAIN_OPTIONS_H
#define CLI_TRAIN_TRAIN_OPTIONS_H

#include "train/training.h"

/* The values of --positions, and those of --loss, from n = 0 on; NULL past the last. */
const char *cli_position_name(size_t n);
const char *cli_loss_name(size_t n);
/* Reads all settings of a new training into t. */
int cli_options_read(const cli_args *args, cli_training *t);
/* Reads what may change when a training is resumed: reports, checkpoints, plot and film. */
int cli_options_read_intervals(const cli_args *args, cli_training *t);

#endif
