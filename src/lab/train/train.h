/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a training run. train.c makes steps, train_validate.c computes the validation loss,
 * train_state.c describes the state as text, and train_save.c saves and loads it.
 *
 * The state of the optimizer is two blocks with the layout of the weights. One loop goes over
 * weights, gradients and both blocks, whatever tensors there are. Between steps all gradients are
 * 0. In a team, a rank updates a slice of the weights, and has the state of that slice alone.
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

/* Processes that make the steps of a training together. cluster/train_team.c fills it in; without
 * it all functions are NULL. All functions but leave are collective. */
typedef struct {
    void *owner; /* passed to each function */
    int rank, size;
    size_t shards; /* pieces of a batch; 0 without a team */
    size_t slice;  /* weights that a rank updates: rank r those from r * slice on; whole tiles */
    bool fast;
    bool sharded; /* the n-gram table is divided among the ranks */
    bool tokens;  /* so are the token table and a separate head: the model has no rows of them */
    /* Computes the gradients of this rank's slice and the loss of this batch (train->now), whose
     * sequences have `length` tokens. All gradients are 0 before, and those of other slices after.
     * ready: whether this rank has the batch. */
    embla_status (*gradients)(void *owner, embla_train *train, embla_status ready, size_t length,
                              const embla_gpt_options *options, embla_loss_report *loss,
                              embla_train_rows *rows);
    /* Each rank has its slice of an array of `bytes` bytes, of which a slice has `slice`. Gives all
     * slices to every rank, or to rank 0 alone. */
    embla_status (*gather)(void *owner, void *values, size_t bytes, size_t slice, bool everyone);
    /* Sums over all ranks. At most one rank has a number that is not 0. */
    embla_status (*join)(void *owner, double *values, size_t count);
    /* EMBLA_OK if all ranks have EMBLA_OK. saving: other ranks may take long to answer. */
    embla_status (*agree)(void *owner, embla_status status, const char *what, bool saving);
    void (*leave)(void *owner); /* frees the owner */
    /* Only if sharded: */
    /* Gets the n-gram vectors of a batch for the model's next pass; 0 sequences mean none. */
    embla_status (*fetch)(void *owner, embla_gpt *gpt, const int32_t *tokens, size_t batch,
                          size_t length);
    /* Sums integers over all ranks. */
    embla_status (*total)(void *owner, int64_t *values, size_t count);
    /* Waits until all ranks have updated their n-gram rows. */
    embla_status (*publish)(void *owner);
    /* Only if tokens: */
    /* Computes the loss of this batch (train->now). ready: whether this rank has it. */
    embla_status (*loss)(void *owner, embla_train *train, embla_status ready, size_t length,
                         const embla_gpt_options *options, embla_loss_report *loss);
    /* The sum of squares of the gradients of all token rows that are not frozen. */
    embla_status (*squares)(void *owner, double *out);
    /* Updates token rows with factor times their gradients. */
    embla_status (*update)(void *owner, double rate, double factor);
    /* If sharded or tokens: */
    /* Whether the folders beside `path` have the divided rows as they are. Not collective. */
    bool (*has_rows)(void *owner, const char *path);
    /* Saves the divided rows of this step to the folders beside `path`, or loads them. No file may
     * need what these folders have. */
    embla_status (*save_rows)(void *owner, const embla_train *train, const char *path);
    embla_status (*load_rows)(void *owner, const embla_train *train, const char *path,
                              int64_t step);
    embla_status (*save_model)(void *owner, embla_gpt *gpt, const char *folder,
                               const char *const *words);
} embla_train_ranks;

struct embla_train {
    embla_gpt *gpt;
    const embla_corpus *corpus;
    embla_train_options options; /* with defaults filled in */
    size_t bytes;                /* of this block: the struct, runs, tokens, targets */
    int64_t step;                /* steps done */
    int64_t updates;             /* without skipped steps; the step count of AdamW */
    embla_train_run *runs;       /* the last one ends where the weights end */
    size_t run_count;
    size_t from, end; /* the weights that this process updates */
    double *leaves;   /* f32: the squares of gradients, summed for each tile of the weights */
    size_t leaf_count;
    int32_t *tokens[2], *targets[2]; /* batch x length: this batch and the next one */
    int now;                         /* index of this batch */
    int64_t ahead;                   /* the step that the other batch is for; -1 if there is none */
    size_t ahead_used;
    char *mean, *squares; /* same layout and precision as the weights */
    embla_optim *ngram;   /* for the n-gram table; NULL if there is none */
    bool clean;           /* all gradients are 0 */
    bool torn;            /* a load or an update failed halfway: the state is neither old nor new */
    embla_checksum sum;   /* of the corpus */
    embla_train_ranks team;
};

/* The metadata of a checkpoint. */
typedef struct {
    embla_train_saved saved;
    int64_t updates;
    embla_gpt_precision precision;
    int64_t tokens, vocab, documents; /* of the corpus */
    embla_checksum sum;               /* of its tokens and their texts */
    bool second;                      /* divided rows are in the second folders */
} embla_train_state;

/* Checks what shall be frozen. */
EMBLA_CHECKED embla_status embla_train_freeze_check(const embla_gpt *gpt,
                                                    const embla_train_options *options);
/* Fills runs. */
void embla_train_divide(embla_train *train);
/* Adapts a training to a model that has fewer numbers than before. Its state has the same layout.
 */
EMBLA_PRIVATE void embla_train_resize(embla_train *train);
/* Whether the ranks of a team have divided a table among themselves. */
static inline bool embla_train_divided(const embla_train *train)
{
    return train->team.sharded || train->team.tokens;
}

/* XXH3 of the tokens of a corpus and of their texts. Only a sample is hashed above 64 MiB.
 * EMBLA_ERR_IO if the file of tokens has changed. */
EMBLA_CHECKED embla_status embla_train_sum(const embla_corpus *corpus, embla_checksum *out);
/* Everything except the note. */
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
/* EMBLA_OK if all ranks of the team, or this process alone, have EMBLA_OK. */
EMBLA_CHECKED embla_status embla_train_agree(const embla_train *train, embla_status status,
                                             const char *what, bool saving);

/* Gives rank 0 the state of the optimizer for all weights. Collective. */
EMBLA_CHECKED embla_status embla_train_gather(const embla_train *train);

/* A double represents every integer up to here exactly. */
#define EMBLA_TRAIN_STEPS_MOST ((int64_t)1 << 53)

#endif
