/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the head uses the token table, as JSON. `info` and `health` print it; embla_tie_text has
 * the words for people.
 */
#ifndef CLI_CORE_TIE_JSON_H
#define CLI_CORE_TIE_JSON_H

#include "embla_checkpoint.h"

#include "core/out.h"

void cli_tie_json(const embla_tie *tie, cli_json *json, const char *key);

#endif
