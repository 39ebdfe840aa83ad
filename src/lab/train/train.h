/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a training run. train.c makes steps, train_validate.c computes the validation loss,
 * train_state.c describes the state as text, and train_save.c saves and loads it.
 *
 * The state of the optimizer is two blocks with the layout of the weights. One loop goes over
 * weights, gradients and both blocks, whatever tensors there are. Between steps all gradients are
 * 0.
 *
 * Several processes may make a training together: train/train_shared.h is all that they need.
 */
#ifndef EMBLA_TRAIN_TRAIN_H
#define EMBLA_TRAIN_TRAIN_H

#include "base/arena.h"
#include "checkpoint/saved.h"
#include "embla_train.h"
#include "model/gpt.h"

/* A range of weights that all decay, or all do not, or are all frozen. */
typedef struct {
    size_t end; /* a run begins where the previous one ends */
    bool decays, frozen;
} embla_train_run;

/* Gradients of the n-gram rows that a batch uses. Their owner keeps them; the training may change
 * them. */
typedef struct {
    const int64_t *rows; /* ascending, each once */
    float *values;       /* count x dim */
    size_t count, dim;
} embla_train_rows;

typedef struct embla_train_shared embla_train_shared; /* train/train_shared.h */

struct embla_train {
    embla_gpt *gpt;
    const embla_corpus *corpus;
    embla_train_options options; /* with defaults filled in */
    size_t bytes;                /* of this block: the struct, runs, tokens, targets */
    int64_t step;                /* steps done */
    int64_t updates;             /* without skipped steps; the step count of AdamW */
    int64_t first, skipped;      /* the step it began or was loaded at; skipped steps in a row */
    embla_train_run *runs;       /* the last one ends where the weights end */
    size_t run_count;
    double *leaves; /* the squares of gradients, summed for each tile of the weights */
    size_t leaf_count;
    int32_t *tokens[2], *targets[2]; /* batch x length: this batch and the next one */
    int now;                         /* index of this batch */
    int64_t ahead;                   /* the step that the other batch is for; -1 if there is none */
    size_t ahead_used;
    char *mean, *squares; /* same layout as the weights */
    embla_optim *ngram;   /* for the n-gram table; NULL if there is none */
    bool clean;           /* all gradients are 0 */
    bool torn;            /* a load or an update failed halfway: the state is neither old nor new */
    embla_checksum sum;   /* of the corpus */
    const embla_train_shared *shared; /* NULL: this process makes the training alone */
    void *team;                       /* with shared: its owner */
};

/* How processes share a training, as its files say; all 0 if one process makes it alone. */
typedef struct {
    size_t micro_batches;
    bool fast, ngrams, tokens; /* n-gram rows, token rows: they are in folders beside the file */
    bool second;               /* in the second folders */
} embla_train_split;

/* The metadata of a checkpoint. */
typedef struct {
    embla_train_saved saved;
    int64_t updates;
    int64_t tokens, vocab, documents; /* of the corpus */
    embla_checksum sum;               /* of its tokens and their texts */
    embla_train_split split;
    bool no_engine; /* saved.options.engine is EMBLA_TRAIN_ENGINE_NONE */
} embla_train_state;

/* Checks what shall be frozen. */
EMBLA_CHECKED embla_status embla_train_freeze_check(const embla_gpt *gpt,
                                                    const embla_train_options *options);
/* Checks options->engine. */
EMBLA_CHECKED embla_status embla_train_engine_check(const embla_train_options *options);
/* NONE or LIBRARY; all other options have their defaults filled in. */
embla_train_engine embla_train_engine_choose(const embla_gpt *gpt,
                                             const embla_train_options *options);
/* Fills runs. */
void embla_train_divide(embla_train *train);
/* XXH3 of the tokens of a corpus and of their texts. Only a sample is hashed above 64 MiB.
 * EMBLA_ERR_IO if the file of tokens has changed. */
EMBLA_CHECKED embla_status embla_train_sum(const embla_corpus *corpus, embla_checksum *out);
/* Everything except the note; of one process alone. */
EMBLA_PRIVATE void embla_train_state_of(const embla_train *train, embla_train_state *out);
/* Writes the state as text, with the note, into the arena. One spare pair is left at the end. */
EMBLA_CHECKED embla_status embla_train_state_write(const embla_train_state *state,
                                                   embla_arena *arena, embla_pair **pairs,
                                                   size_t *count);
/* Parses the text. name is the file's name in messages. */
EMBLA_CHECKED embla_status embla_train_state_read(const embla_directory *directory,
                                                  const char *name, embla_train_state *out);
/* EMBLA_ERR_SHAPE or EMBLA_ERR_ARGUMENT if something differs from another state; the message names
 * the first difference. The other state was saved in the file `name`, or is that of a rank. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_train_state_compare(const embla_train_state *ours,
                                                                   const embla_train_state *other,
                                                                   const char *name, bool saved);
/* EMBLA_ERR_ARGUMENT if the state is neither old nor new. */
EMBLA_CHECKED embla_status embla_train_check_torn(const embla_train *train);
/* A double represents every integer up to here exactly. */
#define EMBLA_TRAIN_STEPS_MOST ((int64_t)1 << 53)

#endif
