/* SPDX-License-Identifier: Apache-2.0 */
/* How far a long piece of work has come: one line on stderr, or a few, redrawn, gone at the end,
 * and only where stderr is a terminal. And how it is ended: Ctrl-C asks for it, the work stops
 * at the next step and cleans up, then the program goes as the signal would have had it.
 */
#ifndef CLI_CORE_PROGRESS_H
#define CLI_CORE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    bool shown;         /* draw at all */
    bool drawn;         /* there is a line to wipe.. */
    int above;          /* ..and so many above it */
    double start, last; /* seconds: when this work began, when the line was drawn */
    char what[32];      /* the work that was begun last */
} cli_progress;

/* Begins: signals that end the program are held back. quiet: draw nothing. */
void cli_progress_begin(cli_progress *progress, bool quiet);
/* done of all bytes; draws at most ten times a second. False: the user wants it to end. */
bool cli_progress_step(cli_progress *progress, const char *what, int64_t done, int64_t all);
/* The same as an embla_progress_fn; context is the cli_progress. */
bool cli_progress_call(void *context, const char *what, int64_t done, int64_t total);
/* For work that has more to show than bytes: lines of text, the last without an end, take the place
 * of what was drawn before. None may be wider than cli_progress_width. */
void cli_progress_draw(cli_progress *progress, const char *text);
/* Takes away what was drawn, so that something else can be printed. */
void cli_progress_wipe(cli_progress *progress);
/* Columns that a line may take, and lines that there are, on the terminal of stderr. */
int cli_progress_width(void);
int cli_progress_height(void);
/* Whether the user wants the work to end. Costs nothing. */
bool cli_progress_caught(void);
/* Wipes the line, lets signals through again. If one came, the program ends by it here,
 * after the sentence. */
void cli_progress_end(cli_progress *progress, const char *sentence);

/* Seconds, from some moment on. */
double cli_progress_now(void);

#endif
