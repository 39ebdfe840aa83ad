/* SPDX-License-Identifier: Apache-2.0 */
/* 'embla eval --sentences': a static model on sentence pairs. */
#ifndef CLI_VERBS_EVAL_SENTENCES_H
#define CLI_VERBS_EVAL_SENTENCES_H

#include "core/args.h"

/* Scores the files of the operands and prints the scores. */
int cli_eval_sentences(const cli_args *args);

/* Whether the file looks like pairs of sentences: one of its first lines has two fields of several
 * words, between tabs or commas. */
bool cli_eval_has_sentences(const char *path);

#endif
