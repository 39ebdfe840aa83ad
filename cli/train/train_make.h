/* SPDX-License-Identifier: Apache-2.0 */
/* Makes what `embla train` trains: corpus, model and training, new or from a checkpoint. All
 * give an exit code, after a sentence.
 */
#ifndef CLI_TRAIN_TRAIN_MAKE_H
#define CLI_TRAIN_TRAIN_MAKE_H

#include "train/training.h"

/* embla_corpus_open, and what a fuzzer puts in its place; see open.c. */
EMBLA_CHECKED embla_status cli_open_corpus(const char *path, const embla_corpus_options *options,
                                           embla_corpus **out);

/* Nothing in the folder would be overwritten. */
int cli_make_free_folder(const char *folder);
/* By what was asked for: shape, options and corpus_options of t. */
int cli_make_new(const cli_args *args, cli_training *t);
/* What the newest checkpoint of t's folder says, to t.. */
int cli_make_saved(const cli_args *args, cli_training *t);
/* ..and the training that goes on from it. */
int cli_make_again(const cli_args *args, cli_training *t);

#endif
