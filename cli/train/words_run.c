/* SPDX-License-Identifier: Apache-2.0 */
/* Runs `embla words`: steps, and between them reports and saved states. */
#include "train/words_run.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/complain.h"
#include "core/inputs.h"
#include "core/memory.h"
#include "host/paths.h"

enum { SPOKEN_EVERY = 60 }; /* maximum seconds between reports */

/* ---- the text ---- */

/* Under mpirun standard input was left unread until it was clear that this process is the only one.
 */
static int find_text(const cli_args *args, cli_words *w)
{
    int code = CLI_DONE;
    if (strcmp(w->named, "-") == 0) code = cli_inputs_add("-", cli_args_flag(args, "quiet"));
    w->text = cli_input_path(w->named);
    return code;
}

/* ---- steps ---- */

static int save_state(cli_words *w)
{
    double now = cli_progress_now();
    embla_status status = embla_wordvec_save(w->words, w->state);
    w->saved = cli_progress_now();
    w->pauses += w->saved - now;
    return status == EMBLA_OK ? CLI_DONE : cli_failed("%s", embla_error());
}

/* Whether this step is the last of an epoch, or of all. */
static bool ends_epoch(const cli_words *w)
{
    return w->last.step == w->last.steps || (int64_t)w->last.epochs > w->epoch;
}

static int report(cli_words *w, double now)
{
    bool scores = ends_epoch(w);
    w->loss = w->loss_steps > 0 ? w->loss_sum / w->loss_steps : NAN;
    w->loss_sum = w->loss_steps = 0;
    w->epoch = (int64_t)w->last.epochs;
    int code = cli_words_report(w, scores);
    if (code == CLI_DONE && w->plot) code = cli_words_plot(w);
    w->spoken = cli_progress_now();
    w->pauses += w->spoken - now;
    return code;
}

static int film_moment(cli_words *w)
{
    double begun = cli_progress_now();
    int code = cli_words_film_step(w, false);
    w->pauses += cli_progress_now() - begun;
    return code;
}

/* What follows a step. */
static int after_step(cli_words *w)
{
    double now = cli_progress_now();
    w->tokens += w->last.tokens;
    w->loss_sum += w->last.loss;
    w->loss_steps += 1;
    w->stopped = cli_progress_caught() || ferror(stdout);
    bool save = w->last.step < w->last.steps && now - w->saved >= w->save_every;
    int code = film_moment(w);
    if (code == CLI_DONE && (ends_epoch(w) || now - w->spoken >= SPOKEN_EVERY))
        code = report(w, now);
    if (code == CLI_DONE) cli_words_draw(w);
    if (code == CLI_DONE && save) code = save_state(w);
    return code;
}

static int run_steps(cli_words *w)
{
    int code = CLI_DONE;
    w->begun = w->spoken = w->saved = cli_progress_now();
    w->pauses = 0; /* the first state was saved before */
    while (code == CLI_DONE && w->last.step < w->last.steps && !w->stopped) {
        if (embla_wordvec_step(w->words, &w->last) != EMBLA_OK)
            code = cli_failed("%s", embla_error());
        else
            code = after_step(w);
    }
    return code;
}

/* ---- the whole ---- */

/* Counts the words, and continues a saved training. */
static int make_words(cli_words *w)
{
    embla_wordvec_info info;
    w->options.progress = cli_progress_call;
    w->options.context = &w->progress;
    embla_status status = embla_wordvec_new(w->text, &w->options, &w->words);
    if (status != EMBLA_OK) return cli_failed("%s", embla_error());
    if (embla_wordvec_describe(w->words, &info) != EMBLA_OK) return cli_failed("%s", embla_error());
    w->about = info.text;
    int code = cli_memory_check(w->about.memory, "training",
                                "choose a smaller --dim or --max-words, or a larger --min-count");
    if (code != CLI_DONE) return code;
    if (w->resume && embla_wordvec_load(w->words, w->state) != EMBLA_OK)
        return cli_failed("%s", embla_error());
    if (embla_wordvec_describe(w->words, &info) != EMBLA_OK) return cli_failed("%s", embla_error());
    w->last = info.progress;
    w->before = w->last.epochs;
    w->epoch = (int64_t)w->last.epochs;
    return CLI_DONE;
}

/* Everything before the first step. */
static int begin(cli_words *w, const char *watch)
{
    int code = make_words(w);
    if (code == CLI_DONE && watch) code = cli_words_watch(w, watch);
    if (code == CLI_DONE) code = cli_words_film_start(w);
    return code == CLI_DONE ? save_state(w) : code; /* so that a write error shows at once */
}

/* Writes the result, or saves what was not finished. */
static int finish(cli_words *w)
{
    if (w->last.step < w->last.steps) return save_state(w);
    int code = cli_words_write(w);
    if (code == CLI_DONE || embla_wordvec_check(w->words) == EMBLA_ERR_RANGE)
        (void)cli_remove(w->state); /* nothing to resume */
    else
        (void)save_state(w); /* --resume writes the result again */
    return code;
}

static int run_all(cli_words *w, const char *watch)
{
    int code = begin(w, watch);
    if (code != CLI_DONE) return code;
    cli_progress_wipe(&w->progress);
    cli_words_show_start(w);
    code = run_steps(w);
    cli_progress_wipe(&w->progress);
    if (code == CLI_DONE) code = finish(w);
    if (code == CLI_DONE) code = cli_words_film_step(w, true); /* of an interrupted training */
    if (code == CLI_DONE && w->film.film) code = cli_film_write(&w->film);
    if (code == CLI_DONE && w->last.step == w->last.steps) cli_words_show_end(w);
    return code;
}

static int plan(cli_words *w)
{
    w->options.progress = cli_progress_call;
    w->options.context = &w->progress;
    if (embla_wordvec_plan(w->text, &w->options, &w->about) != EMBLA_OK)
        return cli_failed("%s", embla_error());
    cli_progress_wipe(&w->progress);
    cli_words_show_start(w);
    return CLI_DONE;
}

int cli_words_run(const cli_args *args, cli_words *w)
{
    const char *watch = cli_args_text(args, "watch");
    char sentence[700] = "interrupted";
    int code = w->dry_run ? CLI_DONE : cli_words_check_files(args, w);
    if (code == CLI_DONE) code = find_text(args, w);
    if (code != CLI_DONE) return code;
    cli_progress_begin(&w->progress, w->quiet || w->json);
    code = w->dry_run ? plan(w) : run_all(w, watch);
    cli_progress_wipe(&w->progress);
    if (code == CLI_DONE && !w->dry_run && w->last.step < w->last.steps)
        (void)snprintf(sentence, sizeof sentence,
                       "interrupted after %.2f of %zu epochs and saved; the same command with "
                       "--resume continues",
                       w->last.epochs, w->options.epochs);
    (void)fflush(stdout);
    cli_progress_end(&w->progress, sentence);
    return code;
}

void cli_words_free(cli_words *w)
{
    embla_wordvec_free(w->words);
    cli_film_free(&w->film);
    for (size_t i = 0; i < w->eval_count; i++) free(w->evals[i]);
    free(w->points);
    free(w->state);
}
