/* SPDX-License-Identifier: Apache-2.0 */
/* embla demo --quiz: questions about embeddings, with commands that show the answers. */
#ifndef CLI_VERBS_DEMO_QUIZ_H
#define CLI_VERBS_DEMO_QUIZ_H

#include <stdbool.h>
#include <stddef.h>

/* How many questions there are. */
#define CLI_QUESTIONS 20

/* Asks question `number`, from 1; 0 means all of them. On a terminal the learner commits an answer
 * before ours is shown, with its commands run in `folder`, the demo's. Elsewhere the questions are
 * printed with the answers after them; as JSON if as_json. Returns the exit code. */
int cli_quiz(const char *folder, size_t number, bool as_json);

#endif
