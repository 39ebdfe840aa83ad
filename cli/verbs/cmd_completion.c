/* SPDX-License-Identifier: Apache-2.0 */
/* embla completion: prints a completion script for bash, zsh or fish.
 *
 * A script contains the verbs, their options, and the words that an option or operand accepts. It
 * is generated from the tables of args.h, so completing a word starts no process.
 */
#include <stdio.h>
#include <string.h>

#include "core/verbs.h"

static void print_words(cli_choices choices, const char *gap)
{
    for (size_t n = 0; choices && choices(n); n++) printf("%s%s", n ? gap : "", choices(n));
}

/* Operands without fixed choices are files, and so are option values called FILE. */
static bool takes_files(const cli_verb *verb)
{
    return (!verb->choices || verb->or_files) && verb->operands_most > 0;
}

static bool is_file(const cli_option *option)
{
    return option->value && strcmp(option->value, "FILE") == 0;
}

/* ---- bash ---- */

static void bash_options(const cli_verb *verb)
{
    const cli_option *option;
    for (size_t n = 0; (option = cli_option_at(verb, n)); n++) printf(" --%s", option->name);
}

/* The choices of each option with a value, if it has any. */
static void bash_values(const cli_verb *verb)
{
    const cli_option *option;
    for (size_t n = 0; (option = cli_option_at(verb, n)); n++) {
        if (!option->value) continue;
        printf("        %s,--%s) words='", verb->name, option->name);
        print_words(cli_option_listed(option), " ");
        printf("' ;;\n");
    }
}

static void print_bash(void)
{
    printf("# bash completion for embla; made by: embla completion bash\n"
           "_embla() {\n"
           "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
           "    local verb='' word words at=$COMP_CWORD\n"
           "    # --name=value arrives as three words.\n"
           "    if [[ $cur == = ]]; then cur=''; elif [[ $prev == = ]]; then at=$((at - 1)); fi\n"
           "    if [[ $at -gt 1 && ${COMP_WORDS[at]} == = ]]; then prev=${COMP_WORDS[at-1]}; fi\n"
           "    for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n"
           "        case $word in\n"
           "        ");
    print_words(cli_verb_name, "|");
    printf(") verb=$word; break ;;\n"
           "        esac\n"
           "    done\n"
           "    case $verb,$prev in\n");
    for (size_t n = 0; cli_verbs[n]; n++) bash_values(cli_verbs[n]);
    printf("        *) case $verb in\n");
    for (size_t n = 0; cli_verbs[n]; n++) {
        printf("        %s) words='", cli_verbs[n]->name);
        print_words(cli_verbs[n]->choices, " ");
        bash_options(cli_verbs[n]);
        printf("'%s ;;\n", takes_files(cli_verbs[n]) && !cli_verbs[n]->choices
                               ? "; [[ $cur == -* ]] || words=''"
                               : "");
    }
    printf("        *) words='");
    print_words(cli_verb_name, " ");
    bash_options(NULL);
    printf("' ;;\n"
           "        esac ;;\n"
           "    esac\n"
           "    COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
           "}\n"
           "# files where there are no words to offer\n"
           "complete -o default -F _embla embla\n");
}

/* ---- zsh ---- */

/* Prints text for single quotes, with a backslash before each of special. */
static void print_escaped(const char *text, const char *special)
{
    for (; *text; text++) {
        if (*text == '\'')
            fputs("'\\''", stdout);
        else if (strchr(special, *text))
            printf("\\%c", *text);
        else
            putchar(*text);
    }
}

/* The options of verb; NULL means the global options. */
static void zsh_options(const cli_verb *verb)
{
    const cli_option *option;
    for (size_t n = 0; (option = cli_option_at(verb, n)); n++) {
        printf(" \\\n        '--%s%s[", option->name, option->value ? "=" : "");
        print_escaped(option->help, "[]\\:");
        printf("]");
        if (is_file(option)) {
            printf(":FILE:_files");
        } else if (option->value) {
            printf(":%s:(", option->value);
            print_words(cli_option_listed(option), " ");
            printf(")");
        }
        printf("'");
    }
}

static void zsh_verb(const cli_verb *verb)
{
    printf("    rest,%s) _arguments", verb->name);
    zsh_options(verb);
    if (verb->choices) {
        printf(" \\\n        '*:%s:%s", verb->operand, verb->or_files ? "{_files; compadd " : "(");
        print_words(verb->choices, " ");
        printf(verb->or_files ? "}'" : ")'");
    } else if (takes_files(verb)) {
        printf(" \\\n        '*:%s:_files'", verb->operand);
    }
    printf(" ;;\n");
}

static void print_zsh(void)
{
    printf("#compdef embla\n"
           "# zsh completion for embla; made by: embla completion zsh\n"
           "_embla() {\n"
           "    local curcontext=$curcontext state line\n"
           "    typeset -A opt_args\n"
           "    local -a verbs\n"
           "    verbs=(\n");
    for (size_t n = 0; cli_verbs[n]; n++) {
        printf("        '%s:", cli_verbs[n]->name);
        print_escaped(cli_verbs[n]->about, "\\:");
        printf("'\n");
    }
    printf("    )\n"
           "    _arguments -C");
    zsh_options(NULL);
    printf(" \\\n        '1: :->verb' '*:: :->rest'\n"
           "    case $state,$line[1] in\n"
           "    verb,*) _describe verb verbs ;;\n");
    for (size_t n = 0; cli_verbs[n]; n++) zsh_verb(cli_verbs[n]);
    printf("    esac\n"
           "}\n"
           "if [[ $funcstack[1] == _embla ]]; then _embla \"$@\"; else compdef _embla embla; fi\n");
}

/* ---- fish ---- */

static void fish_options(const cli_option *option, const char *condition)
{
    for (; option->name; option++) {
        printf("complete -c embla%s -l %s", condition, option->name);
        if (option->letter) printf(" -s %c", option->letter);
        if (option->value) printf(is_file(option) ? " -r -F" : " -x");
        if (option->choices) {
            printf(" -a '");
            print_words(cli_option_listed(option), " ");
            printf("'");
        }
        printf(" -d '");
        print_escaped(option->help, "\\");
        printf("'\n");
    }
}

static void print_fish(void)
{
    char condition[80];
    printf("# fish completion for embla; made by: embla completion fish\n"
           "complete -c embla -f\n");
    fish_options(cli_global_options, "");
    for (size_t n = 0; cli_verbs[n]; n++) {
        const cli_verb *verb = cli_verbs[n];
        printf("complete -c embla -n __fish_use_subcommand -a %s -d '", verb->name);
        print_escaped(verb->about, "\\");
        printf("'\n");
        snprintf(condition, sizeof condition, " -n '__fish_seen_subcommand_from %s'", verb->name);
        fish_options(verb->options, condition);
        if (takes_files(verb)) printf("complete -c embla%s -F\n", condition);
        if (!verb->choices) continue;
        printf("complete -c embla%s -a '", condition);
        print_words(verb->choices, " ");
        printf("'\n");
    }
}

/* ---- the verb ---- */

static const struct {
    const char *name;
    void (*print)(void);
} shells[] = {{"bash", print_bash}, {"zsh", print_zsh}, {"fish", print_fish}};
#define SHELLS (sizeof shells / sizeof shells[0])

static const char *shell_name(size_t n)
{
    return n < SHELLS ? shells[n].name : NULL;
}

static int run(const cli_args *args)
{
    if (cli_args_flag(args, "json")) return cli_usage("completion cannot print JSON");
    for (size_t i = 0; i < SHELLS; i++)
        if (strcmp(shells[i].name, args->operands[0]) == 0) shells[i].print();
    return CLI_DONE;
}

static const cli_option options[] = {{.name = NULL}};

const cli_verb cli_verb_completion = {
    .name = "completion",
    .synopsis = "SHELL",
    .operand = "SHELL",
    .operands_least = 1,
    .operands_most = 1,
    .choices = shell_name,
    .about = "print a script that completes verbs and options in a shell",
    .text = "Prints a completion script. For bash, put eval \"$(embla completion bash)\" into "
            "~/.bashrc. For zsh, save the script as _embla in a folder of $fpath; for fish, as "
            "~/.config/fish/completions/embla.fish.",
    .example = "embla completion bash",
    .options = options,
    .run = run};
