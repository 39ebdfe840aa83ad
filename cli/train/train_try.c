/* SPDX-License-Identifier: Apache-2.0 */
/* Trains every combination of the tried values with every seed.
 *
 * The text is opened once. The order of the batches has the seed of --seed in all runs; the initial
 * weights and dropout have a seed of their own in each. A run that fails becomes a result with its
 * reason, and the next one follows.
 */
#include "train/try.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/out.h"
#include "host/paths.h"
#include "train/train_make.h"
#include "train/train_options.h"
#include "train/train_ranks.h"
#include "train/train_run.h"

static const double share = 0.1;        /* of documents for validation, if none is given */
static const double trial_time = 0.05;  /* seconds of a trial.. */
static const double trial_share = 0.05; /* ..which makes at most this share of the steps */
static const double validating = 1.2;   /* validation makes a run so many times longer */

/* ---- one run ---- */

/* Reads the settings of a combination into t, which is replaced. */
static int read_settings(cli_try *x, size_t combination, cli_training *t)
{
    *t = (cli_training){.ranks = x->base.ranks,
                        .joins = x->base.joins,
                        .team = x->base.team,
                        .quiet = true,
                        .named = x->args->operands[0],
                        .keep = cli_args_count(x->args, "keep"),
                        .log = {.file = -1}};
    int code = cli_try_settings(x, combination);
    return code == CLI_DONE ? cli_options_read(&x->run_args, t) : code;
}

/* As many batches at the end as contain the validation text of the first combination, whatever the
 * size of a batch and the number of steps are. */
static int64_t validation_batches(const cli_try *x, const cli_training *t)
{
    const cli_training *b = &x->base;
    bool documents = b->corpus_options.documents;
    double all = (double)cli_training_last_batches(b) * (double)b->options.batch;
    double each = (double)t->options.batch;
    if (!documents) all *= (double)b->options.length, each *= (double)t->options.length;
    return (int64_t)ceil(all / each);
}

/* Creates the training x->run. folder NULL means that nothing is written. */
static int make_run(cli_try *x, size_t run, const char *folder)
{
    cli_training *t = &x->run;
    int code = read_settings(x, run / x->seeds, t);
    if (code != CLI_DONE) return code;
    cli_training_borrow(t, &x->base);
    t->folder = folder;
    t->options.seed = (uint64_t)x->first_seed + run % x->seeds;
    if (t->shape.ngram.rows > 0) t->shape.ngram.seed = t->options.seed;
    t->last_batches = validation_batches(x, t);
    code = cli_make_new(&x->run_args, t);
    return code == CLI_DONE ? cli_make_ready(&x->run_args, t) : code;
}

/* Continues a run of an earlier command. *finished: its figures were read, there is nothing to do.
 */
static int continue_run(cli_training *t, bool *finished)
{
    char path[PATH_MAX];
    if (embla_train_newest(t->checkpoints, path, sizeof path, NULL) != EMBLA_OK)
        return cli_make_free_folder(t->folder);
    if (embla_train_load(t->train, path) != EMBLA_OK) return cli_failed("%s", embla_error());
    t->resumed = true;
    int code = cli_log_open(t->folder, &t->log);
    if (code != CLI_DONE || embla_train_steps(t->train) < t->steps) return code;
    code = cli_training_read_log(t);
    *finished = isfinite(t->validation);
    if (code == CLI_DONE && *finished && embla_train_check(t->train) != EMBLA_OK)
        code = cli_failed("%s", embla_error());
    return code;
}

/* Keeps the figures of x->run, or the reason why it has failed, without the name of its folder. */
static void keep_result(cli_try *x, size_t run, int code, const char *message)
{
    cli_try_result *r = &x->results[run];
    cli_training *t = &x->run;
    size_t length = t->folder ? strlen(t->folder) : 0;
    r->parameters = t->gpt ? embla_gpt_parameters(t->gpt) : 0;
    r->validation = t->validation;
    r->loss = t->train ? cli_training_loss(t) : NAN;
    r->seconds = t->before + t->seconds;
    r->done = code != CLI_DONE || !t->stopped || embla_train_steps(t->train) >= t->steps;
    if (code == CLI_DONE && isfinite(r->validation)) return;
    if (!r->done) return;
    if (code == CLI_DONE) message = "the validation loss is not a finite number";
    if (length > 0 && strncmp(message, t->folder, length) == 0 && message[length] == ':')
        message += length + 1 + strspn(message + length + 1, " ");
    r->reason = strdup(message);
    if (!r->reason) r->done = false; /* without memory it is as if it had not been tried */
}

/* The seconds that all runs that are left will take, if they differ from what was expected as those
 * before them did: beside other programs steps take longer. */
static double seconds_left(const cli_try *x)
{
    return x->left * (x->foreseen > 0 ? x->spent / x->foreseen : 1);
}

static void note_time(cli_try *x, size_t run, double seconds)
{
    const double expected = x->expected[run / x->seeds];
    x->spent += seconds;
    x->foreseen += expected;
    x->left -= expected;
}

static void train_run(cli_try *x, size_t run)
{
    char name[CLI_TRY_NAME], label[CLI_TRY_NAME + 128], message[640], left[CLI_CELL];
    const double begun = cli_progress_now();
    char *folder = x->folder ? cli_try_folder(x, run) : NULL;
    bool finished = false;
    (void)snprintf(label, sizeof label, "run %zu of %zu, %s to go: %.80s, seed %lld", run + 1,
                   x->combinations * x->seeds, cli_try_time(seconds_left(x), left),
                   cli_try_name(x, run / x->seeds, ", ", name),
                   (long long)(x->first_seed + (int64_t)(run % x->seeds)));
    cli_complain_hold();
    int code = !x->folder || folder ? make_run(x, run, folder) : cli_failed("no memory for a path");
    if (code == CLI_DONE && x->resume) code = continue_run(&x->run, &finished);
    if (code == CLI_DONE && !finished) {
        x->run.label = label;
        x->run.progress = x->progress;
        code = cli_training_do(&x->run);
        x->progress = x->run.progress;
        note_time(x, run, cli_progress_now() - begun);
    }
    cli_complain_take(message, sizeof message);
    cli_progress_wipe(&x->progress);
    keep_result(x, run, code, message);
    if (code == CLI_DONE && message[0]) cli_complain("%s: %s", label, message);
    cli_training_free(&x->run);
    free(folder);
}

/* ---- the time that it will take ---- */

/* Seconds of a step: the mean of a few after the first, so that other programs count. */
static double time_steps(const cli_training *t)
{
    const int64_t most = (int64_t)(trial_share * (double)t->steps) + 1;
    double begun = cli_progress_now(), first = begun, last = begun;
    int64_t count = 0;
    while (count <= most && (count < 2 || last - begun < trial_time) && !cli_progress_caught()) {
        if (embla_train_step(t->train, NULL) != EMBLA_OK) break;
        last = cli_progress_now();
        if (count++ == 0) first = last;
    }
    return count > 1 ? (last - first) / (double)(count - 1) : last - begun;
}

/* Whether an earlier command has made all steps of a run. */
static bool is_trained(const cli_try *x, size_t run)
{
    char path[PATH_MAX], *folder = x->resume ? cli_try_folder(x, run) : NULL;
    size_t size = folder ? strlen(folder) + sizeof "/checkpoints" : 0;
    char *checkpoints = folder ? malloc(size) : NULL;
    embla_train_saved *saved = malloc(sizeof *saved);
    bool trained = false;
    if (checkpoints && saved) {
        (void)snprintf(checkpoints, size, "%s/checkpoints", folder);
        trained = embla_train_newest(checkpoints, path, sizeof path, NULL) == EMBLA_OK &&
                  embla_train_describe_saved(path, saved) == EMBLA_OK &&
                  saved->step >= x->run.steps;
    }
    free(saved);
    free(checkpoints);
    free(folder);
    return trained;
}

/* Makes a few steps of each combination. Combinations that fail are left out. */
static void estimate(cli_try *x, size_t *left)
{
    char message[640];
    *left = 0;
    x->left = 0;
    x->progress.unit = "combinations";
    for (size_t c = 0; c < x->combinations; c++) {
        size_t runs = 0;
        if (!cli_progress_step(&x->progress, "measuring", (int64_t)c, (int64_t)x->combinations))
            break;
        cli_complain_hold();
        int code = make_run(x, c * x->seeds, NULL);
        for (size_t s = 0; s < x->seeds; s++) runs += !is_trained(x, c * x->seeds + s);
        if (code == CLI_DONE && runs > 0)
            x->expected[c] = validating * (double)x->run.steps * time_steps(&x->run);
        x->left += (double)runs * x->expected[c];
        *left += runs;
        cli_complain_take(message, sizeof message);
        cli_training_free(&x->run);
    }
    cli_progress_wipe(&x->progress);
}

/* ---- figures ---- */

void cli_try_sum(const cli_try *x, size_t combination, cli_try_summary *out)
{
    const cli_try_result *results = x->results + combination * x->seeds;
    cli_try_summary s = {.mean = NAN, .lowest = NAN, .highest = NAN, .deviation = NAN};
    double sum = 0, squares = 0;
    for (size_t i = 0; i < x->seeds; i++) {
        const cli_try_result *r = &results[i];
        if (r->reason && s.failed++ == 0) {
            s.reason = r->reason;
            s.reason_of_seed = x->first_seed + (int64_t)i;
        }
        if (!r->done || r->reason) continue;
        if (!(s.lowest <= r->validation)) s.best = combination * x->seeds + i;
        s.lowest = fmin(s.lowest, r->validation); /* the other number, if one is NaN */
        s.highest = fmax(s.highest, r->validation);
        s.parameters = r->parameters;
        s.trained++;
        sum += r->validation;
        s.seconds += r->seconds;
    }
    if (s.trained > 0) s.mean = sum / (double)s.trained, s.seconds /= (double)s.trained;
    for (size_t i = 0; i < x->seeds; i++)
        if (results[i].done && !results[i].reason)
            squares += (results[i].validation - s.mean) * (results[i].validation - s.mean);
    if (s.trained > 1) s.deviation = sqrt(squares / (double)(s.trained - 1));
    *out = s;
}

/* ---- the whole experiment ---- */

/* Checks the values of all combinations, and before long work what will be written. */
static int check(cli_try *x)
{
    int code = CLI_DONE;
    for (size_t c = 0; code == CLI_DONE && c < x->combinations; c++) {
        code = read_settings(x, c, &x->run);
        cli_training_free(&x->run);
    }
    if (code == CLI_DONE && x->plot) code = cli_try_check_plot(x);
    for (size_t run = 0; x->folder && !x->resume && run < x->combinations * x->seeds; run++) {
        char *path = code == CLI_DONE ? cli_try_folder(x, run) : NULL;
        if (path && cli_out_exists(path))
            code = cli_failed("%.200s already exists; use --resume %.100s in place of -o to "
                              "continue these runs, or choose another folder",
                              path, x->folder);
        free(path);
    }
    if (code == CLI_DONE && x->resume && !cli_out_exists(x->folder))
        code = cli_failed("%s does not exist; use -o %s to make it", x->folder, x->folder);
    return code;
}

static int open_text(cli_try *x)
{
    int code = read_settings(x, 0, &x->base);
    if (code != CLI_DONE) return code;
    embla_corpus_options *o = &x->base.corpus_options;
    if (o->validation < 0)
        return cli_usage("--try compares validation losses; give --validation a share above 0");
    x->share_is_ours = o->documents && o->validation == 0;
    if (x->share_is_ours) o->validation = share;
    code = cli_make_text(&x->run_args, &x->base);
    if (code != CLI_DONE || x->base.validates) return code;
    return cli_failed("%s is too short to set a part of it aside for validation, which --try "
                      "compares; use a longer text or a larger --validation",
                      x->args->operands[0]);
}

static int make_folder(const cli_try *x)
{
    if (!x->folder || cli_make_folder(x->folder) || cli_why_error() == EMBLA_SYSTEM_EXISTS)
        return CLI_DONE;
    return cli_why_error() == EMBLA_SYSTEM_NOT_FOUND ? cli_out_check_folder(x->folder)
                                                     : cli_failed("%s: %s", x->folder, cli_why());
}

static void train_all(cli_try *x)
{
    x->stopped = cli_progress_caught();
    for (size_t c = 0; c < x->combinations && !x->stopped; c++) {
        for (size_t s = 0; s < x->seeds && !x->stopped; s++) {
            train_run(x, c * x->seeds + s);
            x->stopped = cli_progress_caught() || ferror(stdout);
        }
        if (!x->json) cli_try_show_row(x, c);
    }
}

/* CLI_FAILED if all runs have failed. */
static int conclude(const cli_try *x)
{
    size_t trained = 0, failed = 0;
    for (size_t i = 0; i < x->combinations * x->seeds; i++) {
        trained += x->results[i].done && !x->results[i].reason;
        failed += x->results[i].reason != NULL;
    }
    int code = x->plot && trained > 0 ? cli_try_plot(x) : CLI_DONE;
    if (x->json)
        cli_try_json(x);
    else
        cli_try_show_end(x);
    if (code == CLI_DONE && trained == 0 && failed == 1)
        code = cli_failed("no model was trained: the run has failed");
    else if (code == CLI_DONE && trained == 0 && failed > 0)
        code = cli_failed("no model was trained: all %zu runs have failed", failed);
    return code;
}

static int run_all(cli_try *x)
{
    char sentence[512];
    size_t runs = x->combinations * x->seeds, left = runs;
    x->results = calloc(runs, sizeof *x->results);
    x->expected = calloc(x->combinations, sizeof *x->expected);
    if (!x->results || !x->expected) return cli_failed("no memory for %zu results", runs);
    cli_progress_begin(&x->progress, x->quiet || x->json);
    if (!x->json && !x->quiet) {
        estimate(x, &left);
        cli_try_show_facts(x, left);
    }
    if (!x->json) cli_try_show_heading(x);
    train_all(x);
    int code = conclude(x);
    (void)snprintf(sentence, sizeof sentence, "interrupted%s%.300s%s",
                   x->folder ? "; the same command with --resume " : "", x->folder ? x->folder : "",
                   x->folder ? " in place of -o continues" : "");
    (void)fflush(stdout);
    cli_progress_end(&x->progress, sentence);
    return code;
}

int cli_try_main(const cli_args *args)
{
    cli_try *x = calloc(1, sizeof *x);
    if (!x) return cli_failed("no memory for an experiment");
    x->base.log.file = -1;
    int code = cli_training_open(args, &x->base);
    if (code == CLI_DONE && cli_ranks_many(&x->base.ranks))
        code = cli_usage("--try trains in one process; start it without mpirun");
    code = cli_ranks_agree(&x->base.ranks, code, true);
    cli_ranks ranks = x->base.ranks;
    if (code == CLI_DONE) code = cli_try_read(args, x);
    if (code == CLI_DONE) code = check(x);
    if (code == CLI_DONE) code = open_text(x);
    if (code == CLI_DONE) code = make_folder(x);
    if (code == CLI_DONE) code = run_all(x);
    for (size_t i = 0; x->results && i < x->combinations * x->seeds; i++)
        free(x->results[i].reason);
    free(x->results);
    free(x->expected);
    cli_training_free(&x->base);
    cli_ranks_close(&ranks);
    cli_try_free(x);
    free(x);
    return code;
}
