/* SPDX-License-Identifier: Apache-2.0 */
/* What `embla words` is doing: the text, the words that learn, and what is shown of them. */
#ifndef CLI_TRAIN_WORDS_RUN_H
#define CLI_TRAIN_WORDS_RUN_H

#include "embla_lab.h"
#include "embla_wordvec.h"

#include "core/args.h"
#include "core/out.h"
#include "core/progress.h"
#include "train/film_file.h"

enum { CLI_WORDS_WATCHED = 8, CLI_WORDS_EVALS = 8 };
enum { CLI_WORDS_PAIRS = CLI_WORDS_WATCHED * (CLI_WORDS_WATCHED - 1) / 2 };

/* A point of the plot. */
typedef struct {
    double epochs, loss;
    double cosines[CLI_WORDS_PAIRS]; /* of the watched words: 0 and 1, 0 and 2, .. */
} cli_words_point;

typedef struct {
    const char *named;  /* the text as typed */
    const char *text;   /* the file or folder that is read */
    const char *output; /* the file of the result */
    char *state;        /* the file of the saved training: OUTPUT.state */
    embla_wordvec_options options;
    embla_wordvec *words;
    embla_wordvec_text about;
    embla_wordvec_report last;
    bool json, quiet, resume, force, dry_run;
    double save_every; /* seconds */
    const char *plot;  /* NULL means none */
    cli_film film;
    char *evals[CLI_WORDS_EVALS];
    size_t eval_count;
    int32_t watched[CLI_WORDS_WATCHED];
    size_t watch_count;
    cli_words_point *points; /* one for each report */
    size_t point_count, point_room;
    cli_progress progress;
    double begun, spoken, saved, pauses; /* seconds */
    double before;                       /* epochs done by an earlier run */
    double loss_sum, loss_steps;         /* since the last report */
    double loss;                         /* of the last report */
    int64_t tokens;                      /* read by this run */
    int64_t epoch;                       /* of the last report */
    bool stopped;                        /* the user has cancelled, or the output is closed */
} cli_words;

/* ---- words_files.c ---- */

/* Checks every file that will be written, before long work. CLI_FAILED or CLI_USAGE after a
 * message. */
int cli_words_check_files(const cli_args *args, const cli_words *w);
/* Writes the result in the format that the name of OUTPUT asks for. */
int cli_words_write(const cli_words *w);

/* ---- words_run.c ---- */

/* Makes or resumes the training, runs it and writes the result. Returns the exit code. */
int cli_words_run(const cli_args *args, cli_words *w);
/* Closes everything; what was not given is NULL. */
void cli_words_free(cli_words *w);

/* ---- words_view.c ---- */

/* Finds the words of --watch; call it after the words are counted. */
int cli_words_watch(cli_words *w, const char *list);
/* The cosine of watched words a and b. NaN for a row of zeros. */
double cli_words_cosine(const cli_words *w, size_t a, size_t b);
/* Prints the text, the words and the settings. */
void cli_words_show_start(const cli_words *w);
/* Redraws the progress. */
void cli_words_draw(cli_words *w);
/* Prints a report: loss, watched words, and the scores of --eval if scores is true. */
int cli_words_report(cli_words *w, bool scores);
void cli_words_show_end(const cli_words *w);

/* ---- words_film.c ---- */

/* Chooses the rows of --film and takes the first moment; call it after cli_words_watch. */
int cli_words_film_start(cli_words *w);
/* Takes a moment, if it is time; now: in any case, unless this step has one. */
int cli_words_film_step(cli_words *w, bool now);

/* ---- words_plot.c ---- */

/* Draws the loss and the cosines of the reports so far. */
int cli_words_plot(const cli_words *w);

#endif
