/* SPDX-License-Identifier: Apache-2.0 */
/* All fields of a tie. The number of compared rows is one of them, so that a sample is not mistaken
 * for the whole table.
 */
#include "core/tie_json.h"

void cli_tie_json(const embla_tie *tie, cli_json *json, const char *key)
{
    cli_json_open(json, key, '{');
    cli_json_text(json, "verdict", embla_tie_name(tie->kind));
    cli_json_text(json, "case", tie->rule);
    cli_json_text(json, "flag", tie->flag);
    cli_json_bool(json, "conflict", tie->conflict);
    cli_json_bool(json, "sampled", tie->sampled);
    cli_json_whole(json, "rows_compared", tie->rows_compared);
    cli_json_real(json, "difference", tie->difference);
    cli_json_close(json, '}');
}
