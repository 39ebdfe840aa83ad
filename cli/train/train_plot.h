/* SPDX-License-Identifier: Apache-2.0 */
/* loss.csv as a chart: the loss of each step faint, its mean over some of them on top, validation
 * as points.
 */
#ifndef CLI_TRAIN_TRAIN_PLOT_H
#define CLI_TRAIN_TRAIN_PLOT_H

#include <stdint.h>

/* Whether path may be written to: there is nothing, or an SVG. The exit code, after a sentence. */
int cli_plot_check(const char *path);
/* Draws the log to path, which is whole under its name or as it was. steps of all, text that it
 * learns from. */
int cli_plot_write(const char *path, const char *log, int64_t steps, const char *text);

#endif
