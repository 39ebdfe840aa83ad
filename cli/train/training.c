/* SPDX-License-Identifier: Apache-2.0 */
/* Figures of a training, and the note in its checkpoints. */
#include "train/training.h"
#include "host/paths.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- figures ---- */

double cli_training_loss(const cli_training *t)
{
    int64_t count = t->recents < CLI_RECENT ? t->recents : CLI_RECENT;
    double sum = 0;
    for (int64_t i = 0; i < count; i++) sum += t->recent[i];
    return count > 0 ? sum / (double)count : NAN;
}

double cli_training_pace(const cli_training *t)
{
    int64_t steps = embla_train_steps(t->train) - t->first;
    return t->seconds > 0 ? (double)steps / t->seconds : 0;
}

double cli_training_speed(const cli_training *t)
{
    return t->seconds > 0 ? (double)t->tokens / t->seconds : 0;
}

/* ---- notes ---- */

char *cli_training_note(const cli_training *t)
{
    const size_t most = sizeof((embla_train_saved *)NULL)->note;
    char *note = malloc(most);
    if (!note) return NULL;
    int length = snprintf(note, most,
                          "text=%s\npreset=%s\nfrom=%s\nsteps=%" PRId64 "\nvalidate_every=%" PRId64
                          "\nsave_every=%" PRId64 "\nkeep=%" PRId64
                          "\nspread=%.17g\ntoken_spread=%.17g\nplot=%s\nwatch=%s\n",
                          t->text, t->preset ? t->preset : "", t->from ? t->from : "", t->steps,
                          t->validate_every, t->save_every, t->keep, t->spread, t->token_spread,
                          t->plot ? t->plot : "", t->watched ? t->watched : "");
    if (length >= 0 && (size_t)length < most) return note;
    free(note);
    return NULL;
}

/* The value of key, which the caller frees; NULL if there is none. */
static char *find_note(const char *note, const char *key)
{
    size_t length = strlen(key);
    for (const char *line = note; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
        if (strncmp(line, key, length) == 0 && line[length] == '=')
            return cli_copy_text(line + length + 1, strcspn(line + length + 1, "\n"));
    return NULL;
}

static int64_t read_note_integer(const char *note, const char *key, int64_t standard)
{
    char *text = find_note(note, key), *end = NULL;
    long long value = text ? strtoll(text, &end, 10) : 0;
    bool good = text && end != text && *end == '\0' && value >= 0;
    free(text);
    return good ? (int64_t)value : standard;
}

/* NULL if the text is missing or empty. */
static char *read_note_text(const char *note, const char *key)
{
    char *text = find_note(note, key);
    if (text && *text) return text;
    free(text);
    return NULL;
}

void cli_training_read_note(cli_training *t, const char *note)
{
    char *preset = find_note(note, "preset"), *spread;
    for (size_t n = 0; preset && embla_gpt_preset_name(n); n++)
        if (strcmp(preset, embla_gpt_preset_name(n)) == 0) t->preset = embla_gpt_preset_name(n);
    free(preset);
    spread = find_note(note, "spread");
    if (spread) t->spread = strtod(spread, NULL);
    free(spread);
    spread = find_note(note, "token_spread");
    if (spread) t->token_spread = strtod(spread, NULL);
    free(spread);
    t->from = read_note_text(note, "from");
    t->text = find_note(note, "text");
    t->steps = read_note_integer(note, "steps", t->options.schedule.steps);
    t->validate_every = read_note_integer(note, "validate_every", 1);
    if (t->validate_every < 1) t->validate_every = 1;
    t->save_every = read_note_integer(note, "save_every", 0);
    t->plot = t->noted_plot = read_note_text(note, "plot");
    t->noted_watch = read_note_text(note, "watch");
    t->keep = read_note_integer(note, "keep", t->keep);
    if (t->keep < 1) t->keep = 1;
}

/* ---- one text for several trainings ---- */

void cli_training_borrow(cli_training *t, const cli_training *lender)
{
    t->lender = lender;
    t->text = lender->text;
    t->corpus_options = lender->corpus_options;
    t->corpus = lender->corpus;
    t->vocab = lender->vocab;
    t->tokenizer = lender->tokenizer;
    t->tokenizer_path = lender->tokenizer_path;
    t->validates = lender->validates;
}

/* ---- the end ---- */

void cli_training_free(cli_training *t)
{
    cli_watch_close(&t->watch);
    cli_film_free(&t->film);
    cli_log_close(&t->log);
    embla_train_free(t->train);
    embla_gpt_free(t->gpt);
    embla_tokenized_free(t->writer_tokenized);
    embla_tokenizer_free(t->writer);
    if (!t->lender) {
        embla_corpus_free(t->corpus);
        embla_vocab_free(t->vocab);
        embla_tokenizer_free(t->tokenizer);
        free(t->tokenizer_path);
        free(t->text);
    }
    free(t->words);
    free(t->noted_plot);
    free(t->noted_watch);
    free(t->from);
    free(t->checkpoints);
    free(t->checkpoint);
}
