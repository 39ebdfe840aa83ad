/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs, each described and carried out by its own file, and the help that is
 * printed from their tables. A new verb is one file, one line here, and one line in
 * the list of main.c.
 */
#ifndef EMBLA_CLI_VERBS_H
#define EMBLA_CLI_VERBS_H

#include "args.h"

extern const embla_verb embla_verb_info;
extern const embla_verb embla_verb_doctor;
extern const embla_verb embla_verb_lookup;
extern const embla_verb embla_verb_near;
extern const embla_verb embla_verb_analogy;
extern const embla_verb embla_verb_eval;
extern const embla_verb embla_verb_health;
extern const embla_verb embla_verb_spectrum;
extern const embla_verb embla_verb_diff;
extern const embla_verb embla_verb_map;
extern const embla_verb embla_verb_rows;
extern const embla_verb embla_verb_warm;
extern const embla_verb embla_verb_verify;
extern const embla_verb embla_verb_train;
extern const embla_verb embla_verb_generate;
extern const embla_verb embla_verb_convert;
extern const embla_verb embla_verb_cost;
extern const embla_verb embla_verb_bench;
extern const embla_verb embla_verb_completion;
extern const embla_verb embla_verb_help;

/* The program, short of making sure that its output arrived: reads the line, does what it
 * asks for, returns the exit code. */
int embla_run(int argc, char **argv);

/* Prints the help of verb, or of the whole program if it is NULL. */
void embla_help_print(const embla_verb *verb, bool as_json);

#endif
