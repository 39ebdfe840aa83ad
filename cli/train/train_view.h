/* SPDX-License-Identifier: Apache-2.0 */
/* The output of a training: facts before the first step, then a redrawn line on a terminal or
 * lines and JSON elsewhere, and a summary at the end.
 */
#ifndef CLI_TRAIN_TRAIN_VIEW_H
#define CLI_TRAIN_TRAIN_VIEW_H

#include "train/training.h"

/* Prints corpus, model, memory and training settings. */
void cli_view_start(const cli_training *t);
/* Prints the text, its vocabulary and what is set aside for validation. */
void cli_view_text(const cli_training *t);
/* Draws the progress and the watched rows, if it is time; the last drawing is always made and has
 * the final rows. Returns the exit code. */
int cli_view_draw(cli_training *t, double now, bool last);
/* Prints one line or one JSON object about the last steps. */
int cli_view_report(cli_training *t);
/* Prints the summary and the next command. */
void cli_view_end(const cli_training *t);

/* The memory that training needs: "2.63 GB". */
const char *cli_view_memory(const cli_training *t, char text[CLI_CELL]);

#endif
