/* SPDX-License-Identifier: Apache-2.0 */
/* Trains a small model of a text by the functions of `embla train`, from the command line that a
 * person would type. Nothing but the model is written.
 */
#include "train/text_model.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/verbs.h"
#include "host/host.h"
#include "host/paths.h"
#include "train/train_make.h"
#include "train/train_options.h"
#include "train/train_ranks.h"
#include "train/train_run.h"

/* The demo's model of words: demo/make.sh. */
enum { WORDS = 300, LOOKED_AT = 1 << 16 };
#define SHAPE_OF_WORDS "--dim", "32", "--batch", "4"
#define STEPS_OF_WORDS 4000

enum { ARGUMENTS = 24, NUMBER = 24 };

/* ---- how the text is cut ---- */

/* Whether most lines at its beginning have several words. */
static bool has_sentences(const char *path)
{
    char *text = malloc(LOOKED_AT);
    FILE *file = text ? cli_file_open(path, "rb") : NULL;
    size_t count = file ? fread(text, 1, LOOKED_AT, file) : 0, lines = 0, sentences = 0;
    bool begun = false, spaced = false, again = false; /* a word, a space after it, a word again */
    for (size_t i = 0; i < count; i++) {
        const char c = text[i];
        if (c == '\n') {
            lines += begun;
            sentences += again;
            begun = spaced = again = false;
        } else if (c == ' ' || c == '\t') {
            spaced = begun;
        } else if (c != '\r') {
            again = again || spaced;
            begun = true;
        }
    }
    lines += begun;
    sentences += again;
    if (file) (void)fclose(file);
    free(text);
    return 2 * sentences > lines;
}

/* ---- the command line ---- */

typedef struct {
    const char *words[ARGUMENTS + 1];
    int count;
    char most[NUMBER], steps[NUMBER], threads[NUMBER];
} command_line;

static void add(command_line *line, const char *option, const char *value)
{
    line->words[line->count++] = option;
    line->words[line->count++] = value;
}

static const char *digits(int64_t number, char text[NUMBER])
{
    (void)snprintf(text, NUMBER, "%" PRId64, number);
    return text;
}

static void make_line(const cli_text_model *m, command_line *line)
{
    static const char *const shape[] = {SHAPE_OF_WORDS};
    const int64_t steps = m->steps < 0 && m->words > 0 ? STEPS_OF_WORDS : m->steps;
    add(line, "embla", "train");
    line->words[line->count++] = m->named;
    add(line, "--preset", "microgpt");
    if (m->words > 0) add(line, "--words", digits(m->words, line->most));
    for (size_t i = 0; m->words > 0 && i < sizeof shape / sizeof shape[0]; i++)
        line->words[line->count++] = shape[i];
    if (steps >= 0) add(line, "--steps", digits(steps, line->steps));
    add(line, "--engine", "none");
}

/* The text without its folder and extension. */
static void name_model(cli_text_model *m)
{
    const char *title = cli_path_title(m->named), *dot = strrchr(title, '.');
    const bool found = dot && dot > title;
    (void)snprintf(m->name, sizeof m->name, "%.*s", found ? (int)(dot - title) : 5,
                   found ? title : "model");
}

/* Appends a word as a shell takes it. */
static void append(char *text, size_t size, const char *word)
{
    size_t used = strlen(text);
    const bool plain =
        word[0] && word[strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVW"
                                     "XYZ0123456789-_./+=,:@%")] == '\0';
    if (used + 1 < size && used > 0) text[used++] = ' ';
    text[used < size ? used : size - 1] = '\0';
    if (plain) {
        (void)snprintf(text + used, size - used, "%s", word);
        return;
    }
    char quoted[CLI_TEXT_COMMAND] = "'";
    size_t length = 1;
    for (; *word && length + 6 < sizeof quoted; word++) {
        const char *piece = *word == '\'' ? "'\\''" : (const char[]){*word, '\0'};
        length += (size_t)snprintf(quoted + length, sizeof quoted - length, "%s", piece);
    }
    (void)snprintf(text + used, size - used, "%s'", quoted);
}

static void write_command(cli_text_model *m, const command_line *line)
{
    m->command[0] = '\0';
    for (int i = 0; i < line->count; i++) append(m->command, sizeof m->command, line->words[i]);
    append(m->command, sizeof m->command, "-o");
    append(m->command, sizeof m->command, m->name);
}

/* ---- the training ---- */

static int make(const cli_args *args, cli_training *t)
{
    int code = cli_training_open(args, t);
    if (code == CLI_DONE) code = cli_options_read(args, t);
    if (code == CLI_DONE) code = cli_make_new(args, t);
    return code == CLI_DONE ? cli_make_ready(args, t) : code;
}

static int train(const cli_args *args, cli_training *t, const char *folder, cli_progress *progress)
{
    int code = make(args, t);
    if (code != CLI_DONE) return code;
    t->progress = *progress;
    code = cli_training_do(t);
    *progress = t->progress;
    cli_progress_wipe(progress);
    if (code == CLI_DONE && cli_progress_caught()) return CLI_FAILED;
    if (code == CLI_DONE && embla_train_save_model(t->train, folder, t->words) != EMBLA_OK)
        code = cli_failed("%s", embla_error());
    return code;
}

/* Parses the line, with the real path of the text, as main does. */
static int parse_and_train(const cli_text_model *m, command_line *line, const char *folder,
                           cli_progress *progress)
{
    char *words[ARGUMENTS + 1] = {NULL}, label[128];
    cli_args *args = calloc(1, sizeof *args);
    cli_training *t = calloc(1, sizeof *t);
    (void)snprintf(label, sizeof label, "training on %.60s", cli_path_title(m->named));
    add(line, "--threads", digits(m->threads, line->threads));
    for (int i = 0; i < line->count; i++) words[i] = (char *)(uintptr_t)line->words[i];
    words[2] = (char *)(uintptr_t)m->path;
    int code = args && t ? cli_args_parse(line->count, words, args)
                         : cli_failed("no memory for a training");
    if (code == CLI_DONE) {
        t->log.file = EMBLA_NO_FILE;
        t->quiet = true;
        t->named = m->named;
        t->label = label;
        code = train(args, t, folder, progress);
        cli_training_free(t);
        cli_ranks_close(&t->ranks);
    }
    free(t);
    free(args);
    return code;
}

int cli_text_model_train(cli_text_model *model, const char *folder, cli_progress *progress)
{
    command_line line = {.count = 0};
    if (model->words < 0) model->words = has_sentences(model->path) ? WORDS : 0;
    name_model(model);
    make_line(model, &line);
    write_command(model, &line);
    return parse_and_train(model, &line, folder, progress);
}
