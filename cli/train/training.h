/* SPDX-License-Identifier: Apache-2.0 */
/* A training as `embla train` carries it out: what was asked for, what is trained, how it goes.
 *
 * cmd_train.c reads the command line, train_make.c makes model and corpus. train_run.c makes the
 * steps, validates and saves. train_view.c, train_watch.c and train_plot.c show it.
 *
 * A folder holds all of it: the model as others open it (config.json, model.safetensors,
 * tokenizer.json), checkpoints/step-*.safetensors to go on from, and loss.csv.
 */
#ifndef CLI_TRAIN_TRAINING_H
#define CLI_TRAIN_TRAINING_H

#include "embla_train.h"

#include "core/args.h"
#include "core/progress.h"
#include "train/train_log.h"
#include "train/train_watch.h"

enum { CLI_RECENT = 100 }; /* steps whose mean is called the loss */

typedef struct {
    /* what was asked for */
    bool json, quiet, resumed;
    const char *folder;
    const char *named;  /* the text, as it was named; NULL: as it was saved */
    const char *plot;   /* NULL: none */
    const char *preset; /* NULL: the shape of another model */
    char *text, *from;  /* absolute paths; from NULL: first weights are random */
    char *checkpoints;  /* folder/checkpoints */
    int64_t steps;      /* of the whole training */
    int64_t every;      /* steps between two reports.. */
    bool every_asked;   /* ..as somebody wants them */
    int64_t validate_every;
    int64_t save_every; /* 0: by the clock */
    int64_t keep;
    double spread;
    embla_gpt_shape shape;
    embla_train_options options;
    embla_corpus_options corpus_options;
    char *checkpoint; /* resumed: the one it goes on from */
    size_t damaged;   /* newer checkpoints that are not whole */

    /* what is trained */
    embla_corpus *corpus;
    embla_gpt *gpt;
    embla_train *train;
    const char **words; /* of the tokens; NULL: a corpus without */
    bool validates;     /* the corpus keeps something for it */

    /* how it goes */
    cli_progress progress;
    cli_log log;
    cli_watch watch;
    embla_train_report last;
    double recent[CLI_RECENT]; /* losses, a ring */
    int64_t recents;
    double validation; /* the newest; NaN: none yet */
    int64_t batches;   /* that it looked at, at most */
    bool validated;    /* after the last step */
    bool paused;       /* after it something was measured, drawn or saved */
    int64_t first;     /* the step that this run began with */
    int64_t tokens, left_out;
    int64_t left_out_now; /* in a row */
    double seconds;       /* of steps, in this run.. */
    double before;        /* ..and in those before it */
    double begun, pauses; /* when this run began; what of it were no steps */
    double spoken, saved, drawn, looked, flushed; /* when that was last done */
} cli_training;

void cli_training_free(cli_training *t);

/* The mean loss of the last 100 steps, or of as many as there are; NaN: none. */
double cli_training_loss(const cli_training *t);
/* Steps a second, tokens a second, in this run; 0: not known. */
double cli_training_pace(const cli_training *t);
double cli_training_speed(const cli_training *t);

/* What the note of a checkpoint says, for embla_train_save. NULL: no memory, or it is too long. */
char *cli_training_note(const cli_training *t);
/* The value of key in a note, to be freed; NULL if it is not there. */
char *cli_training_noted(const char *note, const char *key);

#endif
