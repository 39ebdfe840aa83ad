/* SPDX-License-Identifier: Apache-2.0 */
/* Explains the codes at the end of messages: `embla help C15`. */
#include "core/rules.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "core/complain.h"
#include "core/out.h"

enum { CODE_MOST = 7 };

/* The code in capitals, without parentheses; "" if word does not look like one. */
static void read_code(const char *word, char code[CODE_MOST + 1])
{
    const size_t open = *word == '(';
    size_t length = strlen(word += open), letters = 0;
    code[0] = '\0';
    if (open && length > 0 && word[length - 1] == ')') length--;
    if (length == 0 || length > CODE_MOST) return;
    while (letters < length && isalpha((unsigned char)word[letters])) letters++;
    if (letters < 1 || letters > 2) return;
    if (strspn(word + letters, "0123456789") < length - letters) return;
    for (size_t i = 0; i < length; i++) code[i] = (char)toupper((unsigned char)word[i]);
    code[length] = '\0';
}

static size_t count_letters(const char *code)
{
    return strcspn(code, "0123456789");
}

bool cli_rule_looks(const char *word)
{
    char code[CODE_MOST + 1];
    read_code(word, code);
    return code[0] && (code[count_letters(code)] || cli_rule_find(word));
}

const cli_rule *cli_rule_find(const char *word)
{
    char code[CODE_MOST + 1];
    read_code(word, code);
    for (const cli_rule *rule = cli_rules; rule->code; rule++)
        if (strcmp(rule->code, code) == 0) return rule;
    return NULL;
}

/* "unknown code 'C99'; the codes with C are C1 to C15" */
static int unknown_code(const char *word)
{
    const cli_rule *first = NULL, *last = NULL;
    char code[CODE_MOST + 1];
    read_code(word, code);
    const size_t letters = count_letters(code);
    for (const cli_rule *rule = cli_rules; rule->code; rule++) {
        if (count_letters(rule->code) != letters || strncmp(rule->code, code, letters) != 0)
            continue;
        if (!first) first = rule;
        last = rule;
    }
    if (!first)
        return cli_usage("unknown code '%.60s'; docs/formats.md lists the codes of messages", word);
    if (first == last)
        return cli_usage("unknown code '%.60s'; the only code with %.*s is %s", word, (int)letters,
                         code, first->code);
    return cli_usage("unknown code '%.60s'; the codes with %.*s are %s to %s", word, (int)letters,
                     code, first->code, last->code);
}

static void print_json(const cli_rule *rule)
{
    cli_json json = {0};
    cli_json_open(&json, NULL, '{');
    cli_json_text(&json, "code", rule->code);
    cli_json_text(&json, "for", rule->of);
    cli_json_text(&json, "text", rule->text);
    cli_json_bool(&json, "lenient", rule->lenient);
    cli_json_close(&json, '}');
    putchar('\n');
}

int cli_rule_print(const char *word, bool as_json)
{
    const cli_rule *rule = cli_rule_find(word);
    if (!rule) return unknown_code(word);
    if (as_json) {
        print_json(rule);
        return CLI_DONE;
    }
    printf("%s, a rule for %s:\n  ", rule->code, rule->of);
    cli_out_wrapped(rule->text, 2, 2);
    putchar('\n');
    cli_out_wrapped(
        "A message that ends with this code says which file breaks the rule, and where. "
        "Such a file is incomplete or damaged, is beyond a limit of Embla, or has a "
        "form that Embla does not read. Copy or download it again, or convert it with "
        "the program that made it.",
        0, 0);
    if (rule->lenient) cli_out_wrapped("--lenient reads files that break this rule.", 0, 0);
    cli_out_wrapped("docs/formats.md lists all rules.", 0, 0);
    return CLI_DONE;
}
