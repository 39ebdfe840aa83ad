/* SPDX-License-Identifier: Apache-2.0 */
/* The verdict in words. It states how many rows were compared, so that a sample is not mistaken for
 * the whole table.
 */
#include "core/tie_text.h"

#include <stdio.h>
#include <string.h>

/* How many rows were compared: "in all 512 rows". */
static const char *rows_compared_text(const embla_tie *tie, char text[CLI_CELL])
{
    char rows[CLI_CELL];
    snprintf(text, CLI_CELL, "%s %.40s%s", tie->sampled ? "in the" : "in all",
             cli_plural(tie->rows_compared, "row", rows), tie->sampled ? " compared" : "");
    return text;
}

static void verdict_text(const embla_tie *tie, char *text, size_t size)
{
    char rows[CLI_CELL];
    switch (tie->kind) {
    case EMBLA_TIE_TIED:
        snprintf(text, size, "yes, the head uses the token table");
        return;
    case EMBLA_TIE_STORED_TWICE:
        snprintf(text, size, "yes, but stored twice: table and head are equal %s",
                 rows_compared_text(tie, rows));
        return;
    case EMBLA_TIE_UNTIED:
        snprintf(text, size, "no, the head is a separate tensor%s",
                 tie->conflict ? ", although the flag says that it is tied" : "");
        return;
    case EMBLA_TIE_INVERTED:
        snprintf(text, size, "yes, only the head is stored, and the table uses it");
        return;
    case EMBLA_TIE_HEAD_MISSING:
        snprintf(text, size, "no, but the head is missing from the file");
        return;
    case EMBLA_TIE_NO_HEAD:
        snprintf(text, size, "the model has no head");
        return;
    case EMBLA_TIE_NO_TABLE:
        snprintf(text, size, "there is no token table");
        return;
    }
    snprintf(text, size, "%s", embla_tie_name(tie->kind));
}

const char *cli_tie_text(const embla_tie *tie, char text[CLI_SENTENCE])
{
    char words[160];
    verdict_text(tie, words, sizeof words);
    bool unset = strncmp(tie->flag, "not set", 7) == 0;
    if (tie->rule[0] >= '0' && tie->rule[0] <= '9')
        snprintf(text, CLI_SENTENCE, "%s (%s%s)", words, unset ? "flag " : "", tie->flag);
    else
        snprintf(text, CLI_SENTENCE, "%s", words);
    return text;
}

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
