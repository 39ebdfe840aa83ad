/* SPDX-License-Identifier: Apache-2.0 */
/* The files of `embla words`: FILE, the words beside it, and FILE.state.
 *
 * They are checked before the training, not after it. FILE is replaced with --force. The other
 * names nobody typed: a file that is there and that Embla did not write is never replaced.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "embla_checkpoint.h"

#include "core/complain.h"
#include "core/inputs.h"
#include "host/paths.h"
#include "train/train_plot.h"
#include "train/words_run.h"

/* The formats of the result by the end of its name. */
static const struct {
    const char *end, *format; /* NULL means the file of the words itself */
    bool beside;              /* the words go to NAME.vocab.txt */
} formats[] = {{".safetensors", NULL, true},    {".vec", "word2vec", false},
               {".bin", "word2vec-bin", false}, {".txt", "glove", false},
               {".w2v", "word2vec-bin", false}, {".npy", "npy", true},
               {".gguf", "gguf", false}};
enum { FORMATS = sizeof formats / sizeof formats[0] };

static size_t format_of(const char *path)
{
    const char *dot = strrchr(path, '.');
    size_t n = 0;
    while (n < FORMATS && !(dot && strcmp(dot, formats[n].end) == 0)) n++;
    return n;
}

/* ---- before the training ---- */

static int check_format(const cli_words *w)
{
    size_t n = format_of(w->output);
    if (n == FORMATS)
        return cli_usage("-o %.200s: the name must end in .safetensors, .vec, .bin, .txt, .w2v, "
                         ".npy or .gguf",
                         w->output);
    if (w->options.max_gram > 0 && formats[n].format && !w->quiet)
        cli_complain("note: %.200s keeps the rows of words, but not those of n-grams; a name that "
                     "ends in .safetensors keeps both",
                     w->output);
    return CLI_DONE;
}

/* Whether the file is a saved training of words. */
static bool is_state(const char *path)
{
    embla_checkpoint *checkpoint = NULL;
    bool ours = embla_checkpoint_open(path, NULL, &checkpoint) == EMBLA_OK &&
                embla_checkpoint_text(checkpoint, "embla_wordvec") &&
                embla_checkpoint_text(checkpoint, "step");
    embla_checkpoint_free(checkpoint);
    return ours;
}

static int check_state(const cli_words *w)
{
    bool there = cli_out_exists(w->state);
    if (w->resume && !there)
        return cli_failed("%s: there is no training to resume; leave out --resume", w->state);
    int code = cli_out_check_beside(w->state, is_state(w->state), true);
    if (code == CLI_DONE && there && !w->resume && !w->force)
        return cli_failed("%s is a training that was not finished; continue it with --resume, or "
                          "start again with --force",
                          w->state);
    return code;
}

/* NAME.vocab.txt. */
static int check_words(const cli_args *args, const cli_words *w)
{
    size_t n = format_of(w->output), length = strlen(w->output) - strlen(formats[n].end);
    char *words = NULL;
    if (!formats[n].beside) return CLI_DONE;
    if (asprintf(&words, "%.*s.vocab.txt", (int)length, w->output) < 0)
        return cli_failed("no memory for a name");
    int code = cli_inputs_check(args, words);
    if (code == CLI_DONE && embla_wordvec_write_check(w->output) != EMBLA_OK)
        code = cli_failed("%s", embla_error());
    if (code == CLI_DONE) code = cli_out_check_beside(words, true, w->force);
    free(words);
    return code;
}

int cli_words_check_files(const cli_args *args, const cli_words *w)
{
    int code = check_format(w);
    if (code == CLI_DONE) code = cli_inputs_check(args, w->output);
    if (code == CLI_DONE) code = cli_inputs_check(args, w->state);
    if (code == CLI_DONE) code = check_state(w);
    if (code == CLI_DONE) code = cli_out_check_new(w->output, w->force);
    if (code == CLI_DONE) code = check_words(args, w);
    if (code == CLI_DONE && w->plot) code = cli_plot_check(args, w->plot);
    return code;
}

/* ---- after the training ---- */

/* Converts the file of the words, which lies in a new folder beside OUTPUT. */
static int convert_part(const cli_words *w, const char *part)
{
    embla_checkpoint *checkpoint = NULL;
    embla_account *account = NULL;
    const embla_convert_options options = {
        .overwrite = w->force, .tables_only = true, .to = formats[format_of(w->output)].format};
    embla_status status = embla_wordvec_write(w->words, part);
    if (status == EMBLA_OK) status = embla_checkpoint_open(part, NULL, &checkpoint);
    if (status == EMBLA_OK) status = embla_convert(checkpoint, w->output, &options, &account);
    embla_account_free(account);
    embla_checkpoint_free(checkpoint);
    return status == EMBLA_OK ? CLI_DONE : cli_failed("%s", embla_error());
}

static int write_converted(const cli_words *w, char *folder)
{
    char *part = NULL, *words = NULL;
    int code = CLI_DONE;
    if (!cli_new_folder(folder))
        return cli_failed("cannot create a folder beside %s: %s", w->output, cli_why());
    if (asprintf(&part, "%s/words.safetensors", folder) < 0) part = NULL;
    if (asprintf(&words, "%s/words.vocab.txt", folder) < 0) words = NULL;
    code = part && words ? convert_part(w, part) : cli_failed("no memory for a name");
    if (part) (void)cli_remove(part);
    if (words) (void)cli_remove(words);
    (void)cli_remove_folder(folder);
    free(part);
    free(words);
    return code;
}

int cli_words_write(const cli_words *w)
{
    char *folder = NULL;
    int code = cli_out_check_new(w->output, w->force); /* it may have appeared meanwhile */
    if (code != CLI_DONE) return code;
    if (!formats[format_of(w->output)].format) {
        if (embla_wordvec_write(w->words, w->output) == EMBLA_OK) return CLI_DONE;
        return cli_failed("%s", embla_error());
    }
    if (asprintf(&folder, "%s.XXXXXX", w->output) < 0) return cli_failed("no memory for a name");
    code = write_converted(w, folder);
    free(folder);
    return code;
}
