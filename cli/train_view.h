/* SPDX-License-Identifier: Apache-2.0 */
/* What a training shows: facts before the first step, a line that is redrawn on a terminal, lines
 * or JSON elsewhere, a summary at the end.
 */
#ifndef EMBLA_CLI_TRAIN_VIEW_H
#define EMBLA_CLI_TRAIN_VIEW_H

#include "train_run.h"

/* Corpus, model, memory, how it is trained. */
void embla_view_start(const embla_training *t);
/* Draws the progress, and the rows that are watched, if it is time to. The exit code. */
int embla_view_draw(embla_training *t, double now);
/* One line, or one JSON object, about the last steps. */
int embla_view_report(embla_training *t);
/* Where it has come, and what can be done next. */
void embla_view_end(const embla_training *t);

/* What training takes, for a sentence: "2.63 GB". */
const char *embla_view_memory(const embla_training *t, char text[EMBLA_CELL]);

#endif
