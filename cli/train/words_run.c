/* SPDX-License-Identifier: Apache-2.0 */
/* Runs `embla words`: steps, and between them reports and saved states. */
#include "train/words_run.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/complain.h"
#include "core/memory.h"

enum { SPOKEN_EVERY = 60 }; /* maximum seconds between reports */

/* ---- files ---- */

static bool exists(const char *path)
{
    return access(path, F_OK) == 0;
}

/* The formats of the result by the end of its name; NULL: the file of the words itself. */
static const struct {
    const char *end, *format;
} formats[] = {{".safetensors", NULL}, {".vec", "word2vec"},     {".bin", "word2vec-bin"},
               {".txt", "glove"},      {".w2v", "word2vec-bin"}, {".npy", "npy"},
               {".gguf", "gguf"}};
enum { FORMATS = sizeof formats / sizeof formats[0] };

static size_t format_of(const char *path)
{
    const char *dot = strrchr(path, '.');
    size_t n = 0;
    while (n < FORMATS && !(dot && strcmp(dot, formats[n].end) == 0)) n++;
    return n;
}

/* Checks what is there before long work. */
static int check_files(const cli_words *w)
{
    bool state = exists(w->state);
    if (format_of(w->output) == FORMATS)
        return cli_usage("-o %.200s: the name must end in .safetensors, .vec, .bin, .txt, .w2v, "
                         ".npy or .gguf",
                         w->output);
    if (w->resume && !state)
        return cli_failed("%s: there is no training to resume; leave out --resume", w->state);
    if (state && !w->resume && !w->force)
        return cli_failed("%s is a training that was not finished; continue it with --resume, or "
                          "start again with --force",
                          w->state);
    return cli_out_check(w->output, w->force || w->resume);
}

/* Makes `text` a file or folder that can be mapped. */
static int find_text(cli_words *w)
{
    int code = CLI_DONE;
    w->text = w->named;
    if (strcmp(w->named, "-") == 0) {
        code = cli_unpack_stdin(w->quiet, &w->piped);
        w->text = w->piped.path;
    }
    if (code == CLI_DONE) code = cli_unpack(w->text, w->quiet, &w->unpacked);
    if (code == CLI_DONE && w->unpacked.path) w->text = w->unpacked.path;
    return code;
}

/* OUTPUT.part.safetensors and its words, before they are converted to the format of OUTPUT. */
static int write_converted(const cli_words *w, char *part)
{
    embla_checkpoint *checkpoint = NULL;
    embla_account *account = NULL;
    const embla_convert_options options = {
        .overwrite = true, .tables_only = true, .to = formats[format_of(w->output)].format};
    embla_status status = embla_wordvec_write(w->words, part);
    if (status == EMBLA_OK) status = embla_checkpoint_open(part, NULL, &checkpoint);
    if (status == EMBLA_OK) status = embla_convert(checkpoint, w->output, &options, &account);
    embla_account_free(account);
    embla_checkpoint_free(checkpoint);
    (void)unlink(part);
    (void)snprintf(part + strlen(w->output), sizeof ".part.vocab.txt", ".part.vocab.txt");
    (void)unlink(part);
    return status == EMBLA_OK ? CLI_DONE : cli_failed("%s", embla_error());
}

static int write_result(const cli_words *w)
{
    size_t length = strlen(w->output);
    if (!formats[format_of(w->output)].format) {
        if (embla_wordvec_write(w->words, w->output) == EMBLA_OK) return CLI_DONE;
        return cli_failed("%s", embla_error());
    }
    char *part = malloc(length + sizeof ".part.safetensors");
    if (!part) return cli_failed("no memory for a name");
    (void)sprintf(part, "%s.part.safetensors", w->output);
    int code = write_converted(w, part);
    free(part);
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

static int report(cli_words *w, double now)
{
    bool end = w->last.step == w->last.steps, epoch = (int64_t)w->last.epochs > w->epoch;
    if (!end && !epoch && now - w->spoken < SPOKEN_EVERY) return CLI_DONE;
    w->loss = w->loss_steps > 0 ? w->loss_sum / w->loss_steps : NAN;
    w->loss_sum = w->loss_steps = 0;
    w->epoch = (int64_t)w->last.epochs;
    int code = cli_words_report(w, end || epoch);
    if (code == CLI_DONE && w->plot) code = cli_words_plot(w);
    w->spoken = cli_progress_now();
    w->pauses += w->spoken - now;
    return code;
}

/* What follows a step. */
static int after_step(cli_words *w)
{
    double now = cli_progress_now();
    w->tokens += w->last.tokens;
    w->loss_sum += w->last.loss;
    w->loss_steps += 1;
    int code = report(w, now);
    if (code == CLI_DONE) cli_words_draw(w);
    if (code == CLI_DONE && w->last.step < w->last.steps && now - w->saved >= w->save_every)
        code = save_state(w);
    return code;
}

static int run_steps(cli_words *w)
{
    int code = CLI_DONE;
    w->begun = w->spoken = w->saved = cli_progress_now();
    w->pauses = 0; /* the first state was saved before */
    while (code == CLI_DONE && w->last.step < w->last.steps && !cli_progress_caught() &&
           !ferror(stdout)) {
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
    w->options.progress = cli_progress_call;
    w->options.context = &w->progress;
    embla_status status = embla_wordvec_new(w->text, &w->options, &w->words);
    cli_unpack_free(&w->unpacked); /* the files stay mapped */
    cli_unpack_free(&w->piped);
    if (status != EMBLA_OK) return cli_failed("%s", embla_error());
    if (embla_wordvec_counts(w->words, &w->about) != EMBLA_OK)
        return cli_failed("%s", embla_error());
    int code = cli_memory_check(w->about.memory, "training",
                                "choose a smaller --dim or --most-words, or a larger --least");
    if (code != CLI_DONE) return code;
    if (w->resume && embla_wordvec_load(w->words, w->state) != EMBLA_OK)
        return cli_failed("%s", embla_error());
    if (embla_wordvec_progress(w->words, &w->last) != EMBLA_OK)
        return cli_failed("%s", embla_error());
    w->before = w->last.epochs;
    w->epoch = (int64_t)w->last.epochs;
    return CLI_DONE;
}

/* Writes the result, or saves what was not finished. */
static int finish(cli_words *w)
{
    if (w->last.step < w->last.steps) return save_state(w);
    int code = write_result(w);
    if (code == CLI_DONE) (void)unlink(w->state);
    return code;
}

static int run_all(cli_words *w, const char *watch)
{
    int code = make_words(w);
    if (code == CLI_DONE && watch) code = cli_words_watch(w, watch);
    if (code == CLI_DONE) code = save_state(w); /* so that a write error shows at once */
    if (code != CLI_DONE) return code;
    cli_progress_wipe(&w->progress);
    cli_words_show_start(w);
    code = run_steps(w);
    cli_progress_wipe(&w->progress);
    if (code == CLI_DONE) code = finish(w);
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

int cli_words_run(cli_words *w, const char *watch)
{
    char sentence[700] = "interrupted";
    int code = w->dry_run ? CLI_DONE : check_files(w);
    if (code == CLI_DONE) code = find_text(w);
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
    cli_unpack_free(&w->unpacked);
    cli_unpack_free(&w->piped);
    for (size_t i = 0; i < w->eval_count; i++) free(w->evals[i]);
    free(w->points);
    free(w->state);
}
