/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs. A new verb needs one file, one line here, and one line in the list of main.c.
 */
#ifndef CLI_CORE_VERBS_H
#define CLI_CORE_VERBS_H

#include "core/args.h"

extern const cli_verb cli_verb_demo;
extern const cli_verb cli_verb_info;
extern const cli_verb cli_verb_doctor;
extern const cli_verb cli_verb_lookup;
extern const cli_verb cli_verb_embed;
extern const cli_verb cli_verb_near;
extern const cli_verb cli_verb_analogy;
extern const cli_verb cli_verb_compare;
extern const cli_verb cli_verb_doesnt_match;
extern const cli_verb cli_verb_eval;
extern const cli_verb cli_verb_health;
extern const cli_verb cli_verb_spectrum;
extern const cli_verb cli_verb_diff;
extern const cli_verb cli_verb_map;
extern const cli_verb cli_verb_play;
extern const cli_verb cli_verb_rows;
extern const cli_verb cli_verb_trace;
extern const cli_verb cli_verb_pack;
extern const cli_verb cli_verb_warm;
extern const cli_verb cli_verb_verify;
extern const cli_verb cli_verb_words;
extern const cli_verb cli_verb_tokens;
extern const cli_verb cli_verb_tokenizer;
extern const cli_verb cli_verb_encode;
extern const cli_verb cli_verb_fit;
extern const cli_verb cli_verb_search;
extern const cli_verb cli_verb_train;
extern const cli_verb cli_verb_predict;
extern const cli_verb cli_verb_generate;
extern const cli_verb cli_verb_new;
extern const cli_verb cli_verb_convert;
extern const cli_verb cli_verb_cost;
extern const cli_verb cli_verb_plan;
extern const cli_verb cli_verb_bench;
extern const cli_verb cli_verb_completion;
extern const cli_verb cli_verb_help;

/* Parses the command line, runs the verb and returns the exit code. main checks the output. */
int cli_run(int argc, char **argv);

/* Prints the help of verb, or of the whole program if it is NULL. */
void cli_help_print(const cli_verb *verb, bool as_json);

#endif
