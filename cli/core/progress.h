/* SPDX-License-Identifier: Apache-2.0 */
/* Progress of a long computation: a few lines on stderr, which are redrawn and erased at the end,
 * only if stderr is a terminal. Also its cancellation: after Ctrl-C the work stops at its next step
 * and cleans up, then the signal ends the program.
 */
#ifndef CLI_CORE_PROGRESS_H
#define CLI_CORE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    bool shown;         /* whether to draw */
    bool drawn;         /* a line is on the screen */
    bool echoed;        /* the ^C that the terminal printed is gone */
    int above;          /* number of lines above it */
    double start, last; /* seconds: start of the phase, last drawing */
    char what[32];      /* name of the phase */
    const char *unit;   /* what is counted: "rows"; NULL means bytes */
} cli_progress;

/* Begins, and catches the signals that end the program. quiet: draw nothing. */
void cli_progress_begin(cli_progress *progress, bool quiet);
/* done of all bytes (or units) are finished. Draws at most ten times a second. False if the user
 * has cancelled. */
bool cli_progress_step(cli_progress *progress, const char *what, int64_t done, int64_t all);
/* cli_progress_step as an embla_progress_fn; context is the cli_progress. */
bool cli_progress_call(void *context, const char *what, int64_t done, int64_t total);
/* Draws lines of text in place of the previous drawing. The last line has no line end. None may be
 * wider than cli_progress_width. */
void cli_progress_draw(cli_progress *progress, const char *text);
/* Erases the drawing, so that something else can be printed. */
void cli_progress_wipe(cli_progress *progress);
/* Leaves the drawing on the screen and continues below it. */
void cli_progress_leave(cli_progress *progress);
/* The usable columns and the lines of the terminal of stderr. */
int cli_progress_width(void);
int cli_progress_height(void);
/* Whether the user has cancelled. Makes no system call. */
bool cli_progress_caught(void);
/* Erases the drawing and restores the signals. If one was caught, prints the message and ends the
 * program with that signal. */
void cli_progress_end(cli_progress *progress, const char *sentence);

/* Monotonic time in seconds. */
double cli_progress_now(void);

#endif
