/* SPDX-License-Identifier: Apache-2.0 */
/* The codes at the end of messages about files: "(C15)". */
#ifndef CLI_CORE_RULES_H
#define CLI_CORE_RULES_H

#include <stdbool.h>
#include <stddef.h>

typedef struct {
    const char *code; /* "C15" */
    const char *of;   /* what it belongs to: "every reader" */
    const char *text; /* what docs/formats.md says */
    bool lenient;     /* --lenient accepts files that break it */
} cli_rule;

extern const cli_rule cli_rules[]; /* rules_list.c; ends with a NULL code */

/* Whether word looks like a code: one or two letters and a number, in any case, perhaps in
 * parentheses. */
bool cli_rule_looks(const char *word);

/* The rule with the code word; NULL means that there is none. */
const cli_rule *cli_rule_find(const char *word);

/* Prints the rule, or for an unknown code a message that lists the codes with its letters. Returns
 * the exit code of the program. */
int cli_rule_print(const char *word, bool as_json);

#endif
