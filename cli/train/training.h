/* SPDX-License-Identifier: Apache-2.0 */
/* The state of `embla train`: settings, model and progress.
 *
 * train_options.c reads the settings; train_make.c creates model and corpus; train_run.c runs the
 * steps, validates and saves; train_view.c, train_watch.c, train_plot.c and train_film.c print and
 * draw.
 *
 * The folder contains the model in a format that other programs open (config.json,
 * model.safetensors, tokenizer.json), checkpoints/step-*.safetensors to resume from, and loss.csv.
 */
#ifndef CLI_TRAIN_TRAINING_H
#define CLI_TRAIN_TRAINING_H

#include "embla_cluster.h"
#include "embla_train.h"

#include "core/args.h"
#include "core/progress.h"
#include "train/film_file.h"
#include "train/ranks.h"
#include "train/train_log.h"
#include "train/train_watch.h"

enum { CLI_RECENT = 100 }; /* the reported loss is the mean of so many steps */

typedef struct cli_training cli_training;

struct cli_training {
    /* processes */
    cli_ranks ranks;
    bool joins;      /* batches are cut into pieces: with --micro-batches, --fast or mpirun */
    int64_t meeting; /* the next step at which ranks decide together */
    embla_team_options team; /* micro_batches 0 means the default */

    /* settings */
    bool json, quiet, resumed;
    const char *folder;             /* NULL means that nothing is written */
    const char *label;              /* what the progress line begins with; NULL means nothing */
    const char *named;              /* the text as typed; NULL means the saved path */
    const char *plot;               /* NULL means no plot */
    const char *watched;            /* the list of --watch; NULL means none */
    char *noted_plot, *noted_watch; /* resumed: from the note of the checkpoint */
    const char *preset;             /* NULL means the shape of --from */
    char *text, *from;              /* absolute paths; from NULL means random initial weights */
    char *checkpoints;              /* folder/checkpoints */
    int64_t steps;                  /* of the whole training */
    int64_t every;                  /* steps between two reports */
    bool every_asked;               /* --every was given */
    int64_t validate_every;
    int64_t save_every; /* 0 means by time */
    int64_t keep;
    int64_t sample_every; /* 0 means no samples */
    double minutes;       /* maximum time of this run; 0 means none */
    double spread;
    double token_spread;  /* of the initial token rows; 0 means that of all tables */
    int64_t last_batches; /* of the validation at the end; 0 means by the number of steps */
    embla_gpt_shape shape;
    embla_train_options options;
    embla_corpus_options corpus_options;
    char *checkpoint; /* resumed: the checkpoint to continue from */
    size_t damaged;   /* number of newer checkpoints that cannot be read */

    /* corpus and model */
    const cli_training *lender; /* the text, its words and its tokenizer belong to this training,
                                   which must outlive this one; NULL means that they are its own */
    embla_corpus *corpus;
    embla_gpt *gpt;
    embla_train *train;
    const char **words; /* words of the tokens; NULL means a file of tokens without --vocab */
    embla_vocab *vocab; /* of --vocab, or of a resumed training; NULL means none */
    embla_tokenizer *tokenizer; /* of --tokenizer; NULL means none */
    char *tokenizer_path;       /* its file */
    embla_tokenizer *writer;    /* the written tokenizer.json, for samples; NULL until needed */
    embla_tokenized *writer_tokenized;
    int64_t added_rows; /* rows for tokens that the model of --from does not have */
    bool validates;     /* the corpus has a validation part */

    /* progress */
    cli_progress progress;
    cli_log log;
    cli_watch watch;
    cli_film film;
    embla_train_report last;
    double recent[CLI_RECENT]; /* ring buffer of losses */
    int64_t recents;
    double validation; /* the newest; NaN means none yet */
    int64_t batches;   /* maximum number of batches of that validation */
    double best;       /* the lowest validation loss; NaN means none yet */
    int64_t best_step;
    bool stopped;     /* the user has cancelled, or the output is closed */
    bool out_of_time; /* --minutes have passed */
    bool validated;   /* validation ran after the last step */
    bool paused;      /* validation, drawing or saving took time after the last step */
    int64_t first;    /* first step of this run */
    int64_t tokens, left_out;
    double seconds;                               /* step time of this run.. */
    double before;                                /* ..and of earlier runs */
    double begun, pauses;                         /* start of this run; its time without steps */
    double spoken, saved, drawn, looked, flushed; /* when each was last done */
};

void cli_training_free(cli_training *t);
/* Lets t read the text that another training has opened. */
void cli_training_borrow(cli_training *t, const cli_training *lender);

/* The mean loss of the last 100 steps; NaN if there are none. */
double cli_training_loss(const cli_training *t);
/* Steps per second and tokens per second of this run; 0 means unknown. */
double cli_training_pace(const cli_training *t);
double cli_training_speed(const cli_training *t);

/* The note of a checkpoint, for embla_train_save. NULL if it is too long or there is no memory. */
char *cli_training_note(const cli_training *t);
/* Reads such a note into the settings of t; text and preset stay NULL if the note lacks them. */
void cli_training_read_note(cli_training *t, const char *note);

#endif
