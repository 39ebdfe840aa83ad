/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of a training, one after the other, and what is done between them: validation, a line
 * of loss.csv, reports, checkpoints.
 *
 * A step of a small model takes less than a system call may, so nothing of that is done for each
 * of them: the clock is asked once (it needs no call), lines are gathered, and a signal is seen in
 * a variable. What is no step (saving, drawing, validation) does not count as its time.
 */
#include "train/train_run.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/out.h"
#include "train/train_plot.h"
#include "train/train_view.h"

enum {
    SPOKEN_EVERY = 60,     /* seconds after which a report comes, whatever the step */
    SAVED_EVERY = 300,     /* seconds between checkpoints where no steps are given */
    LEFT_OUT_MOST = 100,   /* steps in a row with a gradient that is not finite */
    VALIDATION_SHARE = 10, /* steps between two validations for each batch of one.. */
    VALIDATION_LEAST = 4,
    LAST_SHARE = 2, /* ..and steps of all for each batch of the last */
    LAST_LEAST = 20
};

/* ---- figures ---- */

static void remember(cli_training *t, double loss)
{
    if (isfinite(loss)) t->recent[t->recents++ % CLI_RECENT] = loss;
}

/* A line of the log that was there before this run. */
static void take_line(void *context, const cli_log_line *line)
{
    cli_training *t = context;
    remember(t, line->loss);
    if (!isnan(line->validation)) t->validation = line->validation;
    t->before = line->seconds;
}

/* ---- saving ---- */

/* The lines of the log first: a checkpoint has all of those before it. */
static int save(cli_training *t)
{
    int code = CLI_DONE;
    char *note = cli_training_note(t);
    if (!note)
        code = cli_failed("no memory for the note of a checkpoint");
    else if (t->log.file >= 0 && !cli_log_flush(&t->log, true))
        code = cli_failed("%s: %s", t->log.path, strerror(errno));
    else if (embla_train_checkpoint(t->train, t->checkpoints, (size_t)t->keep, note) != EMBLA_OK ||
             embla_gpt_save(t->gpt, t->folder, t->words) != EMBLA_OK)
        code = cli_failed("%s", embla_error());
    free(note);
    t->saved = cli_progress_now();
    return code;
}

/* In the midst of it a full disk is no reason to lose what was learned. */
static void save_between(cli_training *t)
{
    cli_progress_wipe(&t->progress);
    if (save(t) != CLI_DONE)
        cli_complain("no checkpoint at step %" PRId64
                     "; the one before it is still there, and the training goes on",
                     embla_train_steps(t->train));
    t->paused = true;
}

static bool save_due(const cli_training *t, double now)
{
    int64_t step = embla_train_steps(t->train);
    if (step >= t->steps) return false; /* the end is saved by itself */
    return t->save_every > 0 ? step % t->save_every == 0 : now - t->saved >= SAVED_EVERY;
}

/* ---- between steps ---- */

static bool validation_due(const cli_training *t)
{
    int64_t step = embla_train_steps(t->train);
    return t->validates && (step == t->steps || step % t->validate_every == 0);
}

/* On the way a part of what is kept, so that it takes a few percent of the time; at the end all,
 * or as much as takes a sixth of it. The same batches whenever the training is made. */
static int validate(cli_training *t)
{
    bool last = embla_train_steps(t->train) >= t->steps;
    int64_t batches = last ? t->steps / LAST_SHARE : t->validate_every / VALIDATION_SHARE;
    int64_t least = last ? LAST_LEAST : VALIDATION_LEAST;
    if (batches < least) batches = least;
    t->batches = batches;
    if (embla_train_validate(t->train, (size_t)batches, &t->validation) != EMBLA_OK)
        return cli_failed("%s", embla_error());
    t->validated = t->paused = true;
    return CLI_DONE;
}

/* A report, if it is time for one: a line where lines are wanted, the plot. */
static int report(cli_training *t, double now)
{
    int64_t step = embla_train_steps(t->train);
    int code = CLI_DONE;
    bool due = step % t->every == 0 || step == t->steps || now - t->spoken >= SPOKEN_EVERY;
    if (!due) return CLI_DONE;
    code = cli_view_report(t);
    if (code == CLI_DONE && t->plot && step < t->steps) { /* the last is drawn by finish */
        (void)cli_log_flush(&t->log, false);
        code = cli_plot_write(t->plot, t->log.path, t->steps, t->text);
    }
    t->spoken = now;
    t->paused = true;
    return code;
}

/* What comes after each step. */
static int look_around(cli_training *t)
{
    double now = cli_progress_now();
    int code = CLI_DONE;
    const embla_train_report *last = &t->last;
    t->seconds = now - t->begun - t->pauses;
    t->tokens += last->tokens;
    t->left_out += last->left_out;
    t->left_out_now = last->left_out ? t->left_out_now + 1 : 0;
    remember(t, last->loss);
    t->validated = t->paused = false;
    if (validation_due(t)) code = validate(t);
    cli_log_line line = {.step = last->step,
                         .loss = last->loss,
                         .validation = t->validated ? t->validation : NAN,
                         .rate = last->rate,
                         .norm = last->norm,
                         .tokens = last->tokens,
                         .seconds = t->before + t->seconds};
    if (code == CLI_DONE && !cli_log_add(&t->log, &line))
        code = cli_failed("no memory for the lines of %s", t->log.path);
    if (code == CLI_DONE) code = report(t, now);
    if (code == CLI_DONE) code = cli_view_draw(t, now);
    if (now - t->flushed >= 0.5) {
        t->flushed = now;
        (void)cli_log_flush(&t->log, false); /* said when it matters: at the next checkpoint */
    }
    if (code == CLI_DONE && save_due(t, now)) save_between(t);
    if (t->paused) t->pauses += cli_progress_now() - now;
    return code;
}

static int make_steps(cli_training *t)
{
    int code = CLI_DONE;
    t->begun = t->spoken = t->saved = t->flushed = cli_progress_now();
    while (code == CLI_DONE && embla_train_steps(t->train) < t->steps && !cli_progress_caught()) {
        if (embla_train_step(t->train, &t->last) != EMBLA_OK)
            code = cli_failed("%s", embla_error());
        else
            code = look_around(t);
        if (code == CLI_DONE && t->left_out_now >= LEFT_OUT_MOST)
            code = cli_failed("the gradients of %d steps in a row are not finite, so nothing is "
                              "learned; a lower --rate or a --clip may help",
                              LEFT_OUT_MOST);
    }
    return code;
}

/* ---- all of it ---- */

/* A new training is saved before its first step: what cannot be written is found out now. */
static int begin(cli_training *t)
{
    int code = CLI_DONE;
    t->first = embla_train_steps(t->train);
    if (!t->resumed) {
        if (mkdir(t->folder, 0777) != 0 && errno != EEXIST)
            return cli_failed("%s: %s", t->folder, strerror(errno));
        code = save(t);
        if (code == CLI_DONE) code = cli_log_open(t->folder, &t->log);
    }
    if (code == CLI_DONE) code = cli_log_cut(&t->log, t->first, take_line, t);
    return code;
}

static int finish(cli_training *t, int64_t begun_at)
{
    int code = CLI_DONE;
    bool complete = embla_train_steps(t->train) >= t->steps;
    if (complete && t->validates && !t->validated) code = validate(t);
    if (code == CLI_DONE && (t->resumed || embla_train_steps(t->train) > begun_at)) {
        cli_progress_wipe(&t->progress);
        code = save(t);
    }
    if (code == CLI_DONE && t->plot) code = cli_plot_write(t->plot, t->log.path, t->steps, t->text);
    return code;
}

int cli_training_run(cli_training *t)
{
    char sentence[512], at[CLI_CELL], all[CLI_CELL];
    t->validation = NAN;
    cli_progress_begin(&t->progress, t->quiet || t->json);
    int code = begin(t);
    if (code == CLI_DONE) {
        cli_view_start(t);
        code = make_steps(t);
        /* what was learned is kept, whatever went wrong afterwards */
        int kept = finish(t, t->first);
        if (code == CLI_DONE) code = kept;
    }
    cli_progress_wipe(&t->progress);
    if (code == CLI_DONE) cli_view_end(t);
    (void)snprintf(sentence, sizeof sentence,
                   "interrupted after step %s of %s, which is saved; 'embla train --resume %.200s' "
                   "goes on",
                   cli_commas(embla_train_steps(t->train), at), cli_commas(t->steps, all),
                   t->folder);
    if (embla_train_steps(t->train) >= t->steps)
        (void)snprintf(sentence, sizeof sentence, "interrupted after the last step: all is saved");
    if (code != CLI_DONE) (void)snprintf(sentence, sizeof sentence, "interrupted");
    (void)fflush(stdout);
    cli_progress_end(&t->progress, sentence);
    return code;
}
