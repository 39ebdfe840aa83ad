/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the head is the token table, in words: the verdict, the case that decided, and
 * what the flag said. `info` and `doctor` say it alike.
 */
#ifndef CLI_CORE_TIE_TEXT_H
#define CLI_CORE_TIE_TEXT_H

#include "embla.h"

#include "core/model.h"
#include "core/out.h"

/* "no, the head is a tensor of its own (case 2; not set)". Returns text. */
const char *cli_tie_text(const embla_tie *tie, char text[CLI_SENTENCE]);
void cli_tie_json(const embla_tie *tie, cli_json *json, const char *key);

#endif
