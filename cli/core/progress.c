/* SPDX-License-Identifier: Apache-2.0 */
/* Draws percent, speed and remaining time. The signal handler only records the signal; the work
 * itself reacts to it, where that is safe.
 */
#include "core/progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/args.h"
#include "core/out.h"
#include "host/host.h"

double cli_progress_now(void)
{
    return 1e-9 * (double)embla_system_clock();
}

void cli_progress_begin(cli_progress *progress, bool quiet)
{
    *progress = (cli_progress){.shown = !quiet && cli_is_terminal(CLI_STDERR)};
    cli_signals_record();
}

bool cli_progress_caught(void)
{
    return cli_signals_recorded();
}

int cli_progress_width(void)
{
    int width, height;
    if (!cli_terminal_size(CLI_STDERR, &width, &height)) width = CLI_WIDTH;
    return width > 3 ? width - 3 : 1; /* a full line, or ^C after it, would begin the next one */
}

int cli_progress_height(void)
{
    int width, height;
    return cli_terminal_size(CLI_STDERR, &width, &height) && height > 0 ? height : 24;
}

/* Moves the cursor to the start of the first drawn line. */
static void move_to_start(const cli_progress *progress, FILE *to)
{
    if (progress->drawn && progress->above > 0) fprintf(to, "\033[%dA", progress->above);
    fputc('\r', to);
}

void cli_progress_wipe(cli_progress *progress)
{
    bool echo = cli_signals_interrupted() && progress->shown && !progress->echoed;
    if (!progress->drawn && !echo) return;
    if (cli_signals_recorded()) progress->echoed = true; /* ^C is on the line that is erased */
    if (progress->above > 0) {
        move_to_start(progress, stderr);
        fputs("\033[J", stderr);
    } else {
        fputs("\r\033[K", stderr);
    }
    progress->drawn = false;
    progress->above = 0;
}

void cli_progress_leave(cli_progress *progress)
{
    if (!progress->drawn) return;
    fputc('\n', stderr);
    progress->drawn = false;
    progress->above = 0;
}

/* One write, because lines written one by one flicker. */
void cli_progress_draw(cli_progress *progress, const char *text)
{
    char *all = NULL;
    size_t size = 0;
    int above = 0;
    if (!progress->shown) return;
    FILE *to = cli_text_open(&all, &size);
    if (!to) return;
    move_to_start(progress, to);
    for (;; above++) {
        size_t length = strcspn(text, "\n");
        fprintf(to, "%.*s\033[K", (int)length, text);
        if (text[length] == '\0') break;
        fputc('\n', to);
        text += length + 1;
    }
    fputs("\033[J", to);
    if (cli_text_close(to, &all, &size)) {
        (void)fwrite(all, 1, size, stderr);
        (void)fflush(stderr);
        progress->drawn = true;
        progress->above = above;
    }
    free(all);
}

static void draw(cli_progress *progress, double time, int64_t done, int64_t all)
{
    double passed = time - progress->start;
    double speed = passed > 0 ? (double)done / passed : 0;
    char size[CLI_CELL];
    cli_progress_wipe(progress);
    fprintf(stderr, "%s %3d%%", progress->what,
            all > 0 ? (int)(100.0 * (double)done / (double)all) : 100);
    if (speed > 0) { /* unknown before the first step */
        double left = (double)(all - done) / speed;
        if (progress->unit)
            fprintf(stderr, "  %.*f %s/s", speed < 10, speed, progress->unit);
        else
            fprintf(stderr, "  %s/s", cli_size((int64_t)speed, size));
        fprintf(stderr, "  %d:%02d left", (int)(left / 60), (int)left % 60);
    }
    (void)fflush(stderr);
    progress->drawn = true;
}

bool cli_progress_call(void *context, const char *what, int64_t done, int64_t total)
{
    return cli_progress_step(context, what, done, total);
}

bool cli_progress_step(cli_progress *progress, const char *what, int64_t done, int64_t all)
{
    double time;
    if (cli_signals_recorded()) return false;
    if (!progress->shown) return true;
    time = cli_progress_now();
    if (strncmp(progress->what, what, sizeof progress->what - 1) != 0) {
        snprintf(progress->what, sizeof progress->what, "%s", what);
        progress->start = time;
        progress->last = time;
    }
    if (time - progress->last >= 0.1) {
        draw(progress, time, done, all);
        progress->last = time;
    }
    return true;
}

void cli_progress_end(cli_progress *progress, const char *sentence)
{
    cli_progress_wipe(progress);
    cli_signals_release();
    if (!cli_signals_recorded()) return;
    cli_complain("%s", sentence);
    cli_signals_repeat();
}
