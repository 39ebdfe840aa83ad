/* SPDX-License-Identifier: Apache-2.0 */
/* Draws loss.csv as a chart: the loss of each step faint, its moving mean on top, validation as
 * points.
 */
#ifndef CLI_TRAIN_TRAIN_PLOT_H
#define CLI_TRAIN_TRAIN_PLOT_H

#include <stdint.h>

#include "core/args.h"

/* Checks that path is no input and does not exist, or is a chart of a training. Returns the exit
 * code, after a message. */
int cli_plot_check_file(const cli_args *args, const char *path);
/* The same for a chart that is always an SVG. */
int cli_plot_check(const cli_args *args, const char *path);
/* Draws the log to path, replacing the file in one step. steps is the length of the x axis, text
 * the name in the title. */
int cli_plot_write(const char *path, const char *log, int64_t steps, const char *text);

#endif
