/* SPDX-License-Identifier: Apache-2.0 */
/* 'embla eval --sentences': a static model on sentence pairs. */
#ifndef CLI_VERBS_EVAL_SENTENCES_H
#define CLI_VERBS_EVAL_SENTENCES_H

#include "core/args.h"

/* Scores the files of the operands and prints the scores. */
int cli_eval_sentences(const cli_args *args);

#endif
