/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the steps of a training and, between them, validation, loss.csv, reports and checkpoints.
 *
 * A step of a small model can take less time than a system call, so a step makes none: the clock is
 * read through the vDSO, log lines are buffered, and signals set a variable. Time for saving,
 * drawing and validation does not count as step time.
 */
#include "train/train_run.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/inputs.h"
#include "core/out.h"
#include "host/host.h"
#include "host/paths.h"
#include "train/train_film.h"
#include "train/train_plot.h"
#include "train/train_ranks.h"
#include "train/train_sample.h"
#include "train/train_view.h"

enum {
    SPOKEN_EVERY = 60,     /* maximum seconds between reports */
    SAVED_EVERY = 300,     /* seconds between checkpoints without --save-every */
    VALIDATION_SHARE = 10, /* one validation batch for so many steps.. */
    VALIDATION_LEAST = 4,
    LAST_SHARE = 2, /* ..and the same for the final validation */
    LAST_LEAST = 20
};

/* ---- figures ---- */

static void record_loss(cli_training *t, double loss)
{
    if (isfinite(loss)) t->recent[t->recents++ % CLI_RECENT] = loss;
}

/* Restores figures from a log line of an earlier run. */
static void restore_line(void *context, const cli_log_line *line)
{
    cli_training *t = context;
    record_loss(t, line->loss);
    if (!isnan(line->validation)) {
        t->validation = line->validation;
        if (!(t->best <= line->validation)) t->best = line->validation, t->best_step = line->step;
    }
    t->before = line->seconds;
}

int cli_training_read_log(cli_training *t)
{
    t->validation = t->best = NAN;
    t->first = embla_train_steps(t->train);
    if (cli_log_read(t->log.path, t->first, restore_line, t, NULL)) return CLI_DONE;
    return cli_failed("%s: %s", t->log.path, cli_why());
}

/* ---- saving ---- */

/* Writes the model; all ranks take part. tokenizer.json is made of the words, or is the file of
 * --tokenizer. */
static embla_status save_model(const cli_training *t)
{
    char path[CLI_PATH_MOST];
    if (!t->tokenizer) return embla_train_save_model(t->train, t->folder, t->words);
    embla_status status = embla_train_save_model(t->train, t->folder, NULL);
    int used = snprintf(path, sizeof path, "%s/tokenizer.json", t->folder);
    if (status != EMBLA_OK || t->ranks.follows || used < 0 || (size_t)used >= sizeof path)
        return status;
    return cli_is_there(path) ? EMBLA_OK
                              : embla_tokenizer_copy(cli_input_path(t->tokenizer_path), path);
}

/* Flushes the log first, so that it contains all lines before the checkpoint. */
static int save(cli_training *t)
{
    int code = CLI_DONE;
    if (!t->folder) return CLI_DONE;
    char *note = cli_training_note(t);
    if (!note)
        code = cli_failed("no memory for the note of a checkpoint");
    else if (t->log.file != EMBLA_NO_FILE && !cli_log_flush(&t->log, true))
        code = cli_failed("%s: %s", t->log.path, cli_why());
    if (code != CLI_DONE && cli_ranks_many(&t->ranks))
        cli_ranks_abort(&t->ranks); /* the others wait for us */
    if (code == CLI_DONE &&
        (embla_train_checkpoint(t->train, t->checkpoints, (size_t)t->keep, note) != EMBLA_OK ||
         save_model(t) != EMBLA_OK))
        code = t->ranks.follows ? CLI_FAILED : cli_failed("%s", embla_error());
    free(note);
    t->saved = cli_progress_now();
    int waited = cli_ranks_wait(&t->ranks);
    return code == CLI_DONE ? waited : code;
}

/* Writes the model with the lowest validation loss to FOLDER/best. A failure is reported, but does
 * not end the training. */
static int save_best(cli_training *t)
{
    char path[4096];
    bool better = isfinite(t->validation) && !(t->validation >= t->best); /* true for a NaN */
    int code =
        cli_ranks_follow(&t->ranks, &better); /* rank 0 alone knows the best of earlier runs */
    if (code != CLI_DONE || !better) return code;
    t->best = t->validation;
    t->best_step = embla_train_steps(t->train);
    if (!t->folder) return CLI_DONE;
    int used = snprintf(path, sizeof path, "%s/best", t->folder);
    if (used >= 0 && (size_t)used < sizeof path &&
        embla_train_save_model(t->train, path, t->tokenizer ? NULL : t->words) == EMBLA_OK)
        return CLI_DONE;
    if (t->ranks.follows) return CLI_DONE;
    cli_progress_wipe(&t->progress);
    cli_complain("the best model, of step %" PRId64 ", was not saved in %s/best: %s; training "
                 "continues",
                 t->best_step, t->folder, embla_error());
    return CLI_DONE;
}

/* A failed save during training (a full disk) is reported, but does not end the training. */
static void save_during_training(cli_training *t)
{
    char newest[CLI_PATH_MOST];
    cli_progress_wipe(&t->progress);
    if (save(t) != CLI_DONE && !t->ranks.follows) {
        bool kept = embla_train_newest(t->checkpoints, newest, sizeof newest, NULL) == EMBLA_OK;
        cli_complain("no checkpoint saved at step %" PRId64 "; %s, and training continues",
                     embla_train_steps(t->train),
                     kept ? "the previous one is intact" : "there is no earlier one");
    }
    t->paused = true;
}

static bool save_due(const cli_training *t, double now)
{
    int64_t step = embla_train_steps(t->train);
    if (step >= t->steps || !t->folder) return false; /* finish saves the end */
    return t->save_every > 0 ? step % t->save_every == 0 : now - t->saved >= SAVED_EVERY;
}

/* ---- between steps ---- */

static bool validation_due(const cli_training *t)
{
    int64_t step = embla_train_steps(t->train);
    return t->validates && (step == t->steps || step % t->validate_every == 0);
}

static int validate_on(cli_training *t, int64_t batches, int64_t least)
{
    t->batches = batches < least ? least : batches;
    if (embla_train_validate(t->train, (size_t)t->batches, &t->validation) != EMBLA_OK)
        return cli_failed("%s", embla_error());
    t->validated = t->paused = true;
    return CLI_DONE;
}

int64_t cli_training_last_batches(const cli_training *t)
{
    if (t->last_batches > 0) return t->last_batches;
    return t->steps / LAST_SHARE > LAST_LEAST ? t->steps / LAST_SHARE : LAST_LEAST;
}

/* During training validation uses few batches, so that it takes a few percent of the time; the best
 * model is chosen by them. At the end it may take a sixth. The batches do not depend on when the
 * training runs. */
static int validate(cli_training *t)
{
    bool last = embla_train_steps(t->train) >= t->steps;
    int code = validate_on(t, t->validate_every / VALIDATION_SHARE, VALIDATION_LEAST);
    if (code == CLI_DONE) code = save_best(t);
    if (code == CLI_DONE) code = cli_ranks_wait(&t->ranks);
    if (code == CLI_DONE && last) code = validate_on(t, cli_training_last_batches(t), 1);
    return code;
}

static int sample_if_due(cli_training *t)
{
    if (t->ranks.follows || t->sample_every == 0 ||
        embla_train_steps(t->train) % t->sample_every != 0)
        return CLI_DONE;
    t->paused = true;
    return cli_sample_print(t);
}

/* Prints a report and draws the plot, if it is time. */
static int report(cli_training *t, double now)
{
    int64_t step = embla_train_steps(t->train);
    int code = CLI_DONE;
    bool due = step % t->every == 0 || step == t->steps || now - t->spoken >= SPOKEN_EVERY;
    if (!due || t->ranks.follows) return CLI_DONE;
    code = cli_view_report(t);
    (void)fflush(stdout); /* an error ends the training after a checkpoint */
    if (code == CLI_DONE && t->plot && step < t->steps) { /* finish draws the last one */
        (void)cli_log_flush(&t->log, false);
        code = cli_plot_write(t->plot, t->log.path, t->steps, t->text);
    }
    t->spoken = now;
    t->paused = true;
    return code;
}

/* Bookkeeping after each step: figures, validation, log, reports, checkpoints. */
static int after_step(cli_training *t)
{
    double now = cli_progress_now();
    int code = CLI_DONE;
    const embla_train_report *last = &t->last;
    t->seconds = now - t->begun - t->pauses;
    t->tokens += last->tokens;
    t->left_out += last->skipped;
    record_loss(t, last->loss);
    t->validated = t->paused = false;
    if (validation_due(t)) code = validate(t);
    cli_log_line line = {.step = last->step,
                         .loss = last->loss,
                         .validation = t->validated ? t->validation : NAN,
                         .rate = last->rate,
                         .norm = last->norm,
                         .tokens = last->tokens,
                         .seconds = t->before + t->seconds};
    if (code == CLI_DONE && t->log.file != EMBLA_NO_FILE && !cli_log_add(&t->log, &line))
        code = cli_failed("no memory for the lines of %s", t->log.path);
    if (code == CLI_DONE) code = report(t, now);
    if (code == CLI_DONE) code = sample_if_due(t);
    if (code == CLI_DONE) code = cli_train_film_step(t, false);
    if (code == CLI_DONE) code = cli_view_draw(t, now, false);
    if (now - t->flushed >= 0.5 && t->log.file >= 0) {
        t->flushed = now;
        (void)cli_log_flush(&t->log, false); /* an error is reported at the next checkpoint */
    }
    cli_training_plan plan = {.stop = cli_progress_caught() || ferror(stdout),
                              .out_of_time = t->minutes > 0 && now - t->begun >= 60 * t->minutes,
                              .save = save_due(t, now)};
    if (code == CLI_DONE) code = cli_training_decide(t, &plan);
    if (code == CLI_DONE && plan.save) save_during_training(t);
    if (t->paused) t->pauses += cli_progress_now() - now;
    t->stopped = plan.stop;
    t->out_of_time = plan.out_of_time;
    return code;
}

static int run_steps(cli_training *t)
{
    int code = CLI_DONE;
    t->begun = t->spoken = t->saved = t->flushed = cli_progress_now();
    while (code == CLI_DONE && embla_train_steps(t->train) < t->steps && !t->stopped &&
           !t->out_of_time) {
        if (embla_train_step(t->train, &t->last) != EMBLA_OK)
            code = cli_failed("%s", embla_error());
        else
            code = after_step(t);
    }
    if (!t->watched) return code;
    if (code == CLI_DONE) code = cli_view_draw(t, cli_progress_now(), true);
    cli_progress_leave(&t->progress); /* the last state of the rows stays on the screen */
    return code;
}

/* ---- the whole training ---- */

/* Saves a new training before its first step, so that write errors show at once. */
static int prepare(cli_training *t)
{
    int code = CLI_DONE;
    t->first = embla_train_steps(t->train);
    if (!t->folder) return CLI_DONE;
    if (!t->resumed) {
        if (!t->ranks.follows && !cli_make_folder(t->folder) &&
            cli_why_error() != EMBLA_SYSTEM_EXISTS)
            return cli_why_error() == EMBLA_SYSTEM_NOT_FOUND
                       ? cli_out_check_folder(t->folder)
                       : cli_failed("%s: %s", t->folder, cli_why());
        code = save(t);
        if (code == CLI_DONE && !t->ranks.follows) code = cli_log_open(t->folder, &t->log);
    }
    if (code == CLI_DONE && !t->ranks.follows)
        code = cli_log_cut(&t->log, t->first, restore_line, t);
    if (code == CLI_DONE) code = cli_train_film_step(t, true); /* as the rows begin */
    return code;
}

/* A training that has diverged is kept, but it is not a success. */
static int check_weights(const cli_training *t)
{
    if (embla_train_check(t->train) == EMBLA_OK) return CLI_DONE;
    if (!t->folder) return cli_failed("%s", embla_error());
    return cli_failed("%.200s: %s", t->folder, embla_error());
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
    if (code == CLI_DONE && t->plot && !t->ranks.follows)
        code = cli_plot_write(t->plot, t->log.path, t->steps, t->text);
    if (code == CLI_DONE) code = cli_train_film_step(t, true); /* of an interrupted training */
    if (code == CLI_DONE && t->film.film) code = cli_film_write(&t->film);
    return code == CLI_DONE && complete && !t->ranks.follows ? check_weights(t) : code;
}

/* The output cannot be written any more, but the training is saved. If its reader has gone (|
 * head), the signal that would have ended it at once ends it now; main reports any other error. */
static int end_by_output(const cli_training *t)
{
    char at[CLI_CELL], all[CLI_CELL];
    bool closed = !cli_out_finish() && cli_is_pipe_error(errno);
    cli_complain("the output %s after step %s of %s; the training is saved, continue it "
                 "with 'embla train --resume %.200s'",
                 closed ? "was closed" : "could not be written",
                 cli_commas(embla_train_steps(t->train), at), cli_commas(t->steps, all), t->folder);
    if (closed) cli_end_by_pipe();
    return CLI_FAILED;
}

int cli_training_do(cli_training *t)
{
    t->validation = t->best = NAN;
    int code = prepare(t);
    if (code != CLI_DONE) return code;
    if (!t->ranks.follows) cli_view_start(t);
    code = run_steps(t);
    /* save the weights even after an error; with several ranks there is the last checkpoint */
    if (code != CLI_DONE && cli_ranks_many(&t->ranks)) return code;
    int kept = finish(t, t->first);
    return code == CLI_DONE ? kept : code;
}

int cli_training_run(cli_training *t)
{
    char sentence[512], at[CLI_CELL], all[CLI_CELL];
    cli_pipe_ends(false);
    cli_progress_begin(&t->progress, t->quiet || t->json || t->ranks.follows);
    int code = cli_training_do(t);
    if (code != CLI_DONE && cli_ranks_many(&t->ranks)) return code; /* which ends the job */
    if (code == CLI_DONE && ferror(stdout)) code = end_by_output(t);
    cli_progress_wipe(&t->progress);
    if (code == CLI_DONE && !t->ranks.follows) cli_view_end(t);
    (void)snprintf(
        sentence, sizeof sentence,
        "interrupted after step %s of %s and saved; continue with 'embla train --resume %.200s'",
        cli_commas(embla_train_steps(t->train), at), cli_commas(t->steps, all), t->folder);
    if (embla_train_steps(t->train) >= t->steps)
        (void)snprintf(sentence, sizeof sentence,
                       "interrupted after the last step; everything is saved");
    if (code != CLI_DONE) (void)snprintf(sentence, sizeof sentence, "interrupted");
    (void)fflush(stdout);
    cli_progress_end(&t->progress, sentence);
    return code;
}
