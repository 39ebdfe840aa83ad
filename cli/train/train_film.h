/* SPDX-License-Identifier: Apache-2.0 */
/* The film of a training (--film): its rows, its moments, and what the model writes at some. */
#ifndef CLI_TRAIN_TRAIN_FILM_H
#define CLI_TRAIN_TRAIN_FILM_H

#include "train/training.h"

/* Chooses the rows: those of --watch, or the whole table; of a large one the most frequent tokens.
 * Returns the exit code. */
int cli_train_film_start(cli_training *t);
/* Takes a moment, if it is time; now: in any case, unless this step has one. */
int cli_train_film_step(cli_training *t, bool now);

#endif
