/* SPDX-License-Identifier: Apache-2.0 */
/* A training from inside, for the files that make steps (train.c), say what it is (train_state.c)
 * and bring it to a file and back (train_save.c).
 *
 * What the optimizer remembers is two blocks laid out as the weights are: one loop goes over
 * weights, gradients and both, whatever tensors there are. Between steps all gradients are 0.
 */
#ifndef EMBLA_TRAIN_TRAIN_H
#define EMBLA_TRAIN_TRAIN_H

#include "base/arena.h"
#include "base/checksum.h"
#include "embla_train.h"
#include "formats/checkpoint.h"
#include "model/gpt.h"

/* Numbers of the weights side by side that all decay, or all do not. */
typedef struct {
    size_t end; /* they begin where the run before ends */
    bool decays;
} embla_train_run;

struct embla_train {
    embla_gpt *gpt;
    const embla_corpus *corpus;
    embla_train_options options; /* with what 0 stands for filled in */
    size_t bytes;                /* of this block: the struct, runs, tokens, targets */
    int64_t step;                /* steps made */
    int64_t updates;             /* of these, without those left out: what AdamW counts */
    embla_train_run *runs;       /* the last ends where the weights do */
    size_t run_count;
    int32_t *tokens[2], *targets[2]; /* batch x length: of now, and of the next step */
    int now;                         /* which of the two */
    int64_t ahead;                   /* the step of the other; -1: it holds nothing */
    size_t ahead_used;
    char *mean, *squares; /* as many numbers as the weights, of the same precision */
    embla_optim *ngram;   /* of the n-gram table; NULL: there is none */
    bool clean;           /* all gradients are 0 */
    bool torn;            /* a load failed when some numbers were read: neither old nor new */
    embla_checksum sum;   /* of the corpus */
};

/* What stands in the metadata of a checkpoint. */
typedef struct {
    embla_train_saved saved;
    int64_t updates;
    embla_gpt_precision precision;
    int64_t tokens, vocab, documents; /* of the corpus */
    embla_checksum sum;               /* of its tokens and their texts */
} embla_train_state;

/* XXH3 of the tokens of a corpus and of their texts; of more than 64 MiB a sample.
 * EMBLA_ERR_IO if the file of tokens has changed. */
EMBLA_CHECKED embla_status embla_train_sum(const embla_corpus *corpus, embla_checksum *out);
/* All but the note. */
void embla_train_state_of(const embla_train *train, embla_train_state *out);
/* As text, with the note; one pair more is left free at the end. Lives in the arena. */
EMBLA_CHECKED embla_status embla_train_state_write(const embla_train_state *state,
                                                   embla_arena *arena, embla_pair **pairs,
                                                   size_t *count);
/* Back from text; name is what messages call the file. */
EMBLA_CHECKED embla_status embla_train_state_read(const embla_directory *directory,
                                                  const char *name, embla_train_state *out);
/* EMBLA_ERR_SHAPE, EMBLA_ERR_ARGUMENT name the first that is another than what was saved. */
EMBLA_CHECKED embla_status embla_train_state_compare(const embla_train_state *ours,
                                                     const embla_train_state *saved,
                                                     const char *name);
/* The value of a key; NULL: there is none. */
const char *embla_train_value(const embla_directory *directory, const char *key);

enum { EMBLA_TRAIN_SUM_TEXT = 33 }; /* 32 digits and a 0 */
void embla_train_sum_text(embla_checksum sum, char out[EMBLA_TRAIN_SUM_TEXT]);

/* A double holds every whole number up to here. */
#define EMBLA_TRAIN_STEPS_MOST ((int64_t)1 << 53)

#endif
