/* SPDX-License-Identifier: Apache-2.0 */
/* What a training shows: facts before the first step, a line that is redrawn on a terminal, lines
 * or JSON elsewhere, a summary at the end.
 */
#ifndef CLI_TRAIN_TRAIN_VIEW_H
#define CLI_TRAIN_TRAIN_VIEW_H

#include "train/training.h"

/* Corpus, model, memory, how it is trained. */
void cli_view_start(const cli_training *t);
/* Draws the progress, and the rows that are watched, if it is time to. The exit code. */
int cli_view_draw(cli_training *t, double now);
/* One line, or one JSON object, about the last steps. */
int cli_view_report(cli_training *t);
/* Where it has come, and what can be done next. */
void cli_view_end(const cli_training *t);

/* What training takes, for a sentence: "2.63 GB". */
const char *cli_view_memory(const cli_training *t, char text[CLI_CELL]);

#endif
