/* SPDX-License-Identifier: Apache-2.0 */
/* Experiments: `embla train TEXT --try dim=4,8 --try tied=yes,no --seeds 3`.
 *
 * Every combination of the tried values is trained once with each seed, on the same text and
 * batches, by the functions of a training. try_settings.c reads what is tried, train_try.c trains,
 * try_view.c prints, try_plot.c draws.
 */
#ifndef CLI_TRAIN_TRY_H
#define CLI_TRAIN_TRY_H

#include "core/out.h"
#include "draw/sheet.h"
#include "train/training.h"

enum {
    CLI_TRY_AXES = 8,     /* options tried at once */
    CLI_TRY_VALUES = 64,  /* of one option */
    CLI_TRY_VALUE = 24,   /* characters of a value */
    CLI_TRY_RUNS = 10000, /* in all */
    CLI_TRY_NAME = 512    /* buffer size for a name with all settings */
};

/* An option and its values; the last axis changes fastest. */
typedef struct {
    const char *name;
    char *list; /* the memory of the values */
    const char *values[CLI_TRY_VALUES];
    size_t count;
} cli_try_axis;

typedef struct {
    bool done;    /* it is trained, or has failed */
    char *reason; /* why it has failed; NULL means that it has not */
    double validation, loss;
    double seconds; /* of its steps */
    int64_t parameters;
} cli_try_result;

/* The runs of a combination. */
typedef struct {
    size_t trained, failed;
    double mean, lowest, highest, deviation; /* of the validation losses; NaN without any */
    double seconds;                          /* mean */
    int64_t parameters;
    size_t best;            /* the run with the lowest loss */
    const char *reason;     /* of the first run that has failed; NULL if there is none */
    int64_t reason_of_seed; /* the seed of that run */
} cli_try_summary;

typedef struct {
    const cli_args *args;
    cli_try_axis axes[CLI_TRY_AXES];
    size_t axis_count;
    size_t combinations, seeds;
    int64_t first_seed;
    const char *folder; /* NULL means that the runs are not kept */
    const char *plot;   /* NULL means none */
    cli_sheet_kind plot_kind;
    bool resume, json, quiet;
    bool share_is_ours; /* documents have a validation part only because of --try */
    bool stopped;       /* the user has cancelled */
    cli_training base;  /* has the text, and the settings of the first combination */
    cli_training run;   /* the present one */
    cli_args run_args;
    double *expected;        /* seconds of a run of each combination; 0 means unknown */
    double left;             /* the expected seconds of the runs that are left */
    double foreseen, spent;  /* expected and true seconds of the runs that this command has made */
    cli_try_result *results; /* seeds of the first combination, then of the next, .. */
    cli_progress progress;
} cli_try;

/* ---- train_try.c ---- */

/* Runs `embla train --try`. Returns the exit code: CLI_FAILED if no run has been trained. */
int cli_try_main(const cli_args *args);
void cli_try_sum(const cli_try *x, size_t combination, cli_try_summary *out);

/* ---- try_settings.c ---- */

/* Reads --try, --seeds and what goes with them into x. */
int cli_try_read(const cli_args *args, cli_try *x);
/* Frees what cli_try_read has allocated. */
void cli_try_free(cli_try *x);
/* Writes the command line of a combination to x->run_args. CLI_USAGE after a message about a value
 * that its option refuses. */
int cli_try_settings(cli_try *x, size_t combination);
/* The value of an axis in a combination. */
const char *cli_try_value(const cli_try *x, size_t combination, size_t axis);
/* "dim=4, tied=yes", with gap between settings. Returns text. */
const char *cli_try_name(const cli_try *x, size_t combination, const char *gap,
                         char text[CLI_TRY_NAME]);
/* The folder of a run: FOLDER/dim=4,tied=yes,seed=1. NULL if there is no memory. */
char *cli_try_folder(const cli_try *x, size_t run);

/* ---- try_view.c ---- */

/* "about 40 s". Returns text. */
const char *cli_try_time(double seconds, char text[CLI_CELL]);
/* Prints the text, the number of runs, of which `left` are to be trained, and the expected
 * seconds. */
void cli_try_show_facts(const cli_try *x, size_t left);
void cli_try_show_heading(const cli_try *x);
/* Prints the row of a combination; nothing if none of its runs is done. */
void cli_try_show_row(const cli_try *x, size_t combination);
void cli_try_show_end(const cli_try *x);
void cli_try_json(const cli_try *x);

/* ---- try_plot.c ---- */

/* Checks before long work that the picture can be drawn and written. CLI_DONE, or another code
 * after a message. */
int cli_try_check_plot(cli_try *x);
/* Draws a row for each combination: its runs, and their mean. */
int cli_try_plot(const cli_try *x);

#endif
