/* SPDX-License-Identifier: Apache-2.0 */
/* Draws percent, speed and the time that is left. A handler only takes note of the signal:
 * all that is done about it is done by the work itself, where it is safe.
 */
#include "progress.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "args.h"
#include "out.h"

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
enum { SIGNALS = sizeof signals / sizeof signals[0] };

static volatile sig_atomic_t caught;
static struct sigaction before[SIGNALS];

static void take_note(int number)
{
    caught = number;
}

double embla_progress_now(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void embla_progress_begin(embla_progress *progress, bool quiet)
{
    *progress = (embla_progress){.shown = !quiet && isatty(STDERR_FILENO)};
    caught = 0;
    for (size_t i = 0; i < SIGNALS; i++) {
        struct sigaction action = {.sa_handler = take_note};
        (void)sigemptyset(&action.sa_mask);
        (void)sigaction(signals[i], NULL, &before[i]);
        if (before[i].sa_handler != SIG_IGN) (void)sigaction(signals[i], &action, NULL);
    }
}

static void wipe(embla_progress *progress)
{
    if (progress->drawn) fputs("\r\033[K", stderr);
    progress->drawn = false;
}

static void draw(embla_progress *progress, double time, int64_t done, int64_t all)
{
    double passed = time - progress->start;
    double speed = passed > 0 ? (double)done / passed : 0;
    char size[EMBLA_CELL];
    wipe(progress);
    fprintf(stderr, "%s %3d%%", progress->what,
            all > 0 ? (int)(100.0 * (double)done / (double)all) : 100);
    if (speed > 0) { /* before the first step is done nobody knows */
        double left = (double)(all - done) / speed;
        fprintf(stderr, "  %s/s  %d:%02d left", embla_size((int64_t)speed, size), (int)(left / 60),
                (int)left % 60);
    }
    (void)fflush(stderr);
    progress->drawn = true;
}

bool embla_progress_step(embla_progress *progress, const char *what, int64_t done, int64_t all)
{
    double time;
    if (caught) return false;
    if (!progress->shown) return true;
    time = embla_progress_now();
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

void embla_progress_end(embla_progress *progress, const char *sentence)
{
    wipe(progress);
    for (size_t i = 0; i < SIGNALS; i++) (void)sigaction(signals[i], &before[i], NULL);
    if (!caught) return;
    embla_complain("%s", sentence);
    (void)raise(caught);
}
