/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the head uses the token table, in words: the verdict and the flag. `info`, `doctor` and
 * `health` print it.
 */
#ifndef CLI_CORE_TIE_TEXT_H
#define CLI_CORE_TIE_TEXT_H

#include "embla_checkpoint.h"

#include "core/model.h"
#include "core/out.h"

/* "no, the head is a separate tensor (flag not set)". Returns text. */
const char *cli_tie_text(const embla_tie *tie, char text[CLI_SENTENCE]);
void cli_tie_json(const embla_tie *tie, cli_json *json, const char *key);

#endif
