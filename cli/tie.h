/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the head is the token table, in words: the verdict, the case that decided, and
 * what the flag said. `info` and `doctor` say it alike.
 */
#ifndef EMBLA_CLI_TIE_H
#define EMBLA_CLI_TIE_H

#include "embla.h"

#include "model.h"
#include "out.h"

/* "no, the head is a tensor of its own (case 2; not said)". Returns text. */
const char *embla_tie_text(const embla_tie *tie, char text[EMBLA_SENTENCE]);
void embla_tie_json(const embla_tie *tie, embla_json *json, const char *key);

#endif
