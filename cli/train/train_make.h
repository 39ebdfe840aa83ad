/* SPDX-License-Identifier: Apache-2.0 */
/* Creates the corpus, model and training of `embla train`, new or from a checkpoint. All functions
 * return an exit code, after a message if it is not CLI_DONE.
 */
#ifndef CLI_TRAIN_TRAIN_MAKE_H
#define CLI_TRAIN_TRAIN_MAKE_H

#include "train/training.h"

/* embla_corpus_open; a fuzzer replaces it, see model_open.c. */
EMBLA_CHECKED embla_status cli_open_corpus(const char *path, const embla_corpus_options *options,
                                           embla_corpus **out);

/* Checks that nothing in the folder would be overwritten. */
int cli_make_free_folder(const char *folder);
/* The memory that the training needs, with the weights in bf16 if it computes in bf16. Returns the
 * library's status, without a message. */
EMBLA_CHECKED embla_status cli_make_plan(const cli_training *t, embla_gpt_memory *out);
/* Opens the text, its words and its tokenizer, with the corpus_options of t. */
int cli_make_text(const cli_args *args, cli_training *t);
/* Creates a training with the shape, options and corpus_options of t. Opens the text, unless t has
 * borrowed one. */
int cli_make_new(const cli_args *args, cli_training *t);
/* Reads the settings of the newest checkpoint in t's folder into t. */
int cli_make_saved(const cli_args *args, cli_training *t);
/* Creates the training that continues from that checkpoint. */
int cli_make_again(const cli_args *args, cli_training *t);
/* Lets several processes train together, loads the checkpoint of a resumed training, and starts
 * --watch and --film. Collective. */
int cli_make_ready(const cli_args *args, cli_training *t);

#endif
