/* SPDX-License-Identifier: Apache-2.0 */
/* A training that several processes make together (src/cluster). It answers six calls of
 * embla_train.h in its own way, and is built from the parts below. A training of one process knows
 * nothing of it.
 */
#ifndef EMBLA_TRAIN_TRAIN_SHARED_H
#define EMBLA_TRAIN_TRAIN_SHARED_H

#include "learn/wide_sum.h"
#include "train/train.h"

/* Arguments have been checked. All functions but leave are collective. */
struct embla_train_shared {
    /* rate and step of the report are set. */
    embla_status (*step)(embla_train *train, embla_train_report *report);
    /* The sum of the losses of up to `batches` batches, and the number of their targets. */
    embla_status (*validate)(embla_train *train, size_t batches, double *sum, double *counted);
    /* state has everything but the split. */
    embla_status (*save)(const embla_train *train, const char *path, embla_train_state *state);
    /* `path` is the new checkpoint in the folder. */
    embla_status (*checkpoint)(const embla_train *train, const char *folder, const char *path,
                               size_t keep, const char *note);
    embla_status (*save_model)(const embla_train *train, const char *folder,
                               const char *const *words);
    embla_status (*load)(embla_train *train, const char *path);
    void (*leave)(void *team); /* frees the team */
};

/* ---- parts of a step (train.c) ---- */

/* Gets the batch of this step (train->now), whose sequences have *used tokens, and how its
 * gradients are computed. All gradients are 0 then, also if it fails. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_train_batch(embla_train *train, size_t *used,
                                                           embla_gpt_options *how);
/* Sums the squares of gradients from .. end-1 in train->leaves, for embla_squares_join. Both are
 * borders of leaves, or the end of all weights. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_train_squares(const embla_train *train, size_t from,
                                                             size_t end);
/* Adds the squares of n-gram rows. The sum does not depend on their order, nor on who has them. */
EMBLA_PRIVATE void embla_train_rows_squares(const embla_train_rows *rows, embla_wide_sum *sum);
/* The factor that clips gradients of this norm; 1 means not clipped. */
EMBLA_PRIVATE double embla_train_clip(const embla_train *train, double norm);
/* Updates n-gram rows with factor times their gradients. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_train_move_rows(const embla_train *train,
                                                               const embla_train_rows *rows,
                                                               double rate, double factor);
/* Updates weights from .. end-1 with factor times their gradients, which become 0. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_train_move(const embla_train *train, size_t from,
                                                          size_t end, double rate, double factor);
/* Adapts a training to a model that has fewer numbers than before. Its state has the same layout.
 */
EMBLA_PRIVATE void embla_train_resize(embla_train *train);

/* ---- parts of files (train_save.c) ---- */

/* An open checkpoint. */
typedef struct {
    const char *path;
    embla_checkpoint *checkpoint;
    embla_train_state state;
    embla_saved tensors;
} embla_train_file;

/* Writes the tensors that the model has, and the state. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_train_write(const embla_train *train,
                                                           const char *path,
                                                           const embla_train_state *state);
/* Opens a checkpoint and reads its state. Close it also after a failure. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_train_file_open(const char *path,
                                                               embla_train_file *out);
EMBLA_PRIVATE void embla_train_file_close(embla_train_file *file);
/* Whether the file is of this training, whose state is `ours`. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_train_file_check(const embla_train *train,
                                                                const embla_train_state *ours,
                                                                embla_train_file *file);
/* Copies the tensors of a checked file. Until embla_train_file_done the training is neither old nor
 * new. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_train_file_copy(embla_train *train,
                                                               const embla_train_file *file);
EMBLA_PRIVATE void embla_train_file_done(embla_train *train, const embla_train_file *file);

/* Removes all checkpoints of a folder except the newest `keep` and the one just written. beside
 * (NULL means none) removes what belongs to a file of this name in the folder. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_train_remove_old(const char *folder, size_t keep,
                                                                int64_t written,
                                                                void (*beside)(embla_folder folder,
                                                                               const char *name));
/* Adds to the message of a failed save which checkpoints there still are. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_train_report_kept(embla_status failed,
                                                                 const char *folder, int64_t step);

#endif
