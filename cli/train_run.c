/* SPDX-License-Identifier: Apache-2.0 */
/* The steps of a training, one after the other, and what is done between them: validation, a line
 * of loss.csv, reports, checkpoints.
 *
 * A step of a small model takes less than a system call may, so nothing of that is done for each
 * of them: the clock is asked once (it needs no call), lines are gathered, and a signal is seen in
 * a variable. What is no step (saving, drawing, validation) does not count as its time.
 */
#include "train_run.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "out.h"
#include "train_plot.h"
#include "train_view.h"

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

double embla_training_loss(const embla_training *t)
{
    int64_t count = t->recents < EMBLA_RECENT ? t->recents : EMBLA_RECENT;
    double sum = 0;
    for (int64_t i = 0; i < count; i++) sum += t->recent[i];
    return count > 0 ? sum / (double)count : NAN;
}

double embla_training_pace(const embla_training *t)
{
    int64_t steps = embla_train_steps(t->train) - t->first;
    return t->seconds > 0 ? (double)steps / t->seconds : 0;
}

double embla_training_speed(const embla_training *t)
{
    return t->seconds > 0 ? (double)t->tokens / t->seconds : 0;
}

static void remember(embla_training *t, double loss)
{
    if (isfinite(loss)) t->recent[t->recents++ % EMBLA_RECENT] = loss;
}

/* A line of the log that was there before this run. */
static void take_line(void *context, const embla_log_line *line)
{
    embla_training *t = context;
    remember(t, line->loss);
    if (!isnan(line->validation)) t->validation = line->validation;
    t->before = line->seconds;
}

/* ---- notes ---- */

char *embla_training_note(const embla_training *t)
{
    const size_t most = sizeof((embla_train_saved *)NULL)->note;
    char *note = malloc(most);
    if (!note) return NULL;
    int length = snprintf(note, most,
                          "text=%s\npreset=%s\nfrom=%s\nsteps=%" PRId64 "\nvalidate_every=%" PRId64
                          "\nsave_every=%" PRId64 "\nkeep=%" PRId64 "\nspread=%.17g\n",
                          t->text, t->preset ? t->preset : "", t->from ? t->from : "", t->steps,
                          t->validate_every, t->save_every, t->keep, t->spread);
    if (length >= 0 && (size_t)length < most) return note;
    free(note);
    return NULL;
}

char *embla_training_noted(const char *note, const char *key)
{
    size_t length = strlen(key);
    for (const char *line = note; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
        if (strncmp(line, key, length) == 0 && line[length] == '=')
            return strndup(line + length + 1, strcspn(line + length + 1, "\n"));
    return NULL;
}

/* ---- saving ---- */

/* The lines of the log first: a checkpoint has all of those before it. */
static int save(embla_training *t)
{
    int code = EMBLA_DONE;
    char *note = embla_training_note(t);
    if (!note)
        code = embla_failed("no memory for the note of a checkpoint");
    else if (t->log.file >= 0 && !embla_log_flush(&t->log, true))
        code = embla_failed("%s: %s", t->log.path, strerror(errno));
    else if (embla_train_checkpoint(t->train, t->checkpoints, (size_t)t->keep, note) != EMBLA_OK ||
             embla_gpt_save(t->gpt, t->folder, t->words) != EMBLA_OK)
        code = embla_failed("%s", embla_error());
    free(note);
    t->saved = embla_progress_now();
    return code;
}

/* In the midst of it a full disk is no reason to lose what was learned. */
static void save_between(embla_training *t)
{
    embla_progress_wipe(&t->progress);
    if (save(t) != EMBLA_DONE)
        embla_complain("no checkpoint at step %" PRId64
                       "; the one before it is still there, and the training goes on",
                       embla_train_steps(t->train));
    t->paused = true;
}

static bool save_due(const embla_training *t, double now)
{
    int64_t step = embla_train_steps(t->train);
    if (step >= t->steps) return false; /* the end is saved by itself */
    return t->save_every > 0 ? step % t->save_every == 0 : now - t->saved >= SAVED_EVERY;
}

/* ---- between steps ---- */

static bool validation_due(const embla_training *t)
{
    int64_t step = embla_train_steps(t->train);
    return t->validates && (step == t->steps || step % t->validate_every == 0);
}

/* On the way a part of what is kept, so that it takes a few percent of the time; at the end all,
 * or as much as takes a sixth of it. The same batches whenever the training is made. */
static int validate(embla_training *t)
{
    bool last = embla_train_steps(t->train) >= t->steps;
    int64_t batches = last ? t->steps / LAST_SHARE : t->validate_every / VALIDATION_SHARE;
    int64_t least = last ? LAST_LEAST : VALIDATION_LEAST;
    if (batches < least) batches = least;
    t->batches = batches;
    if (embla_train_validate(t->train, (size_t)batches, &t->validation) != EMBLA_OK)
        return embla_failed("%s", embla_error());
    t->validated = t->paused = true;
    return EMBLA_DONE;
}

/* A report, if it is time for one: a line where lines are wanted, the plot. */
static int report(embla_training *t, double now)
{
    int64_t step = embla_train_steps(t->train);
    int code = EMBLA_DONE;
    bool due = step % t->every == 0 || step == t->steps || now - t->spoken >= SPOKEN_EVERY;
    if (!due) return EMBLA_DONE;
    code = embla_view_report(t);
    if (code == EMBLA_DONE && t->plot && step < t->steps) { /* the last is drawn by finish */
        (void)embla_log_flush(&t->log, false);
        code = embla_plot_write(t->plot, t->log.path, t->steps, t->text);
    }
    t->spoken = now;
    t->paused = true;
    return code;
}

/* What comes after each step. */
static int look_around(embla_training *t)
{
    double now = embla_progress_now();
    int code = EMBLA_DONE;
    const embla_train_report *last = &t->last;
    t->seconds = now - t->begun - t->pauses;
    t->tokens += last->tokens;
    t->left_out += last->left_out;
    t->left_out_now = last->left_out ? t->left_out_now + 1 : 0;
    remember(t, last->loss);
    t->validated = t->paused = false;
    if (validation_due(t)) code = validate(t);
    embla_log_line line = {.step = last->step,
                           .loss = last->loss,
                           .validation = t->validated ? t->validation : NAN,
                           .rate = last->rate,
                           .norm = last->norm,
                           .tokens = last->tokens,
                           .seconds = t->before + t->seconds};
    if (code == EMBLA_DONE && !embla_log_add(&t->log, &line))
        code = embla_failed("no memory for the lines of %s", t->log.path);
    if (code == EMBLA_DONE) code = report(t, now);
    if (code == EMBLA_DONE) code = embla_view_draw(t, now);
    if (now - t->flushed >= 0.5) {
        t->flushed = now;
        (void)embla_log_flush(&t->log, false); /* said when it matters: at the next checkpoint */
    }
    if (code == EMBLA_DONE && save_due(t, now)) save_between(t);
    if (t->paused) t->pauses += embla_progress_now() - now;
    return code;
}

static int make_steps(embla_training *t)
{
    int code = EMBLA_DONE;
    t->begun = t->spoken = t->saved = t->flushed = embla_progress_now();
    while (code == EMBLA_DONE && embla_train_steps(t->train) < t->steps &&
           !embla_progress_caught()) {
        if (embla_train_step(t->train, &t->last) != EMBLA_OK)
            code = embla_failed("%s", embla_error());
        else
            code = look_around(t);
        if (code == EMBLA_DONE && t->left_out_now >= LEFT_OUT_MOST)
            code = embla_failed("the gradients of %d steps in a row are not finite, so nothing is "
                                "learned; a lower --rate or a --clip may help",
                                LEFT_OUT_MOST);
    }
    return code;
}

/* ---- all of it ---- */

/* A new training is saved before its first step: what cannot be written is found out now. */
static int begin(embla_training *t)
{
    int code = EMBLA_DONE;
    t->first = embla_train_steps(t->train);
    if (!t->resumed) {
        if (mkdir(t->folder, 0777) != 0 && errno != EEXIST)
            return embla_failed("%s: %s", t->folder, strerror(errno));
        code = save(t);
        if (code == EMBLA_DONE) code = embla_log_open(t->folder, &t->log);
    }
    if (code == EMBLA_DONE) code = embla_log_cut(&t->log, t->first, take_line, t);
    return code;
}

static int finish(embla_training *t, int64_t begun_at)
{
    int code = EMBLA_DONE;
    bool complete = embla_train_steps(t->train) >= t->steps;
    if (complete && t->validates && !t->validated) code = validate(t);
    if (code == EMBLA_DONE && (t->resumed || embla_train_steps(t->train) > begun_at)) {
        embla_progress_wipe(&t->progress);
        code = save(t);
    }
    if (code == EMBLA_DONE && t->plot)
        code = embla_plot_write(t->plot, t->log.path, t->steps, t->text);
    return code;
}

int embla_training_run(embla_training *t)
{
    char sentence[512], at[EMBLA_CELL], all[EMBLA_CELL];
    t->validation = NAN;
    embla_progress_begin(&t->progress, t->quiet || t->json);
    int code = begin(t);
    if (code == EMBLA_DONE) {
        embla_view_start(t);
        code = make_steps(t);
        /* what was learned is kept, whatever went wrong afterwards */
        int kept = finish(t, t->first);
        if (code == EMBLA_DONE) code = kept;
    }
    embla_progress_wipe(&t->progress);
    if (code == EMBLA_DONE) embla_view_end(t);
    (void)snprintf(sentence, sizeof sentence,
                   "interrupted after step %s of %s, which is saved; 'embla train --resume %.200s' "
                   "goes on",
                   embla_commas(embla_train_steps(t->train), at), embla_commas(t->steps, all),
                   t->folder);
    if (embla_train_steps(t->train) >= t->steps)
        (void)snprintf(sentence, sizeof sentence, "interrupted after the last step: all is saved");
    if (code != EMBLA_DONE) (void)snprintf(sentence, sizeof sentence, "interrupted");
    (void)fflush(stdout);
    embla_progress_end(&t->progress, sentence);
    return code;
}

void embla_training_free(embla_training *t)
{
    embla_watch_close(&t->watch);
    embla_log_close(&t->log);
    embla_train_free(t->train);
    embla_gpt_free(t->gpt);
    embla_corpus_free(t->corpus);
    free(t->words);
    free(t->text);
    free(t->from);
    free(t->checkpoints);
    free(t->checkpoint);
}
