/* SPDX-License-Identifier: Apache-2.0 */
/* embla help: prints the tables of args.h as text, as JSON or as a man page.
 *
 * Defaults and choices come from the table that parses them. docs/man has the output of `embla help
 * --man` and `embla help VERB --man`, written by packaging/man; a test compares them.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "embla.h"

#include "core/out.h"
#include "core/rules.h"
#include "core/verbs.h"

#define ABOUT  "the embedding layer of a language model"
#define COLUMN 26
/* The date of the man pages: when their text was last written anew. The current date would make
 * every build another. */
#define MAN_DATE "2026-11-20"
enum { VERB_COLUMN = 15, GROUP_COLUMN = 17 };

/* The verbs as people look for them. Each verb belongs to one group; a test finds one that is
 * missing here. */
static const struct {
    const char *name, *about, *verbs;
} groups[] = {
    {"learn the ideas", "rows, positions, neighbours, directions, costs",
     "demo lookup embed near compare analogy doesnt-match map play predict cost"},
    {"look inside", "what a checkpoint holds, and whether it is sound",
     "info doctor health spectrum diff"},
    {"train", "word vectors, or a model around a table; what it writes",
     "new words train generate"},
    {"text", "text to tokens, and to vectors that can be searched",
     "tokenizer tokens encode fit search"},
    {"giant tables", "rows of n-grams, in memory, in files, on many hosts",
     "rows trace pack warm verify plan"},
    {"files", "other formats and dtypes; help, and words for the shell", "convert completion help"},
    {"measure", "scores of a table; speed against a limit", "eval bench"},
};
enum { GROUPS = sizeof groups / sizeof groups[0] };

typedef struct {
    const char *word, *meaning;
} line;

static const line exit_codes[] = {{"0", "success"},
                                  {"1", "failure"},
                                  {"2", "wrong usage"},
                                  {"3", "the check found a problem, or unknown words were skipped"},
                                  {NULL, NULL}};

static const line environment[] = {
    {"EMBLA_ISA", "kernel set: scalar, neon, avx2 or avx512; any other name means scalar (default: "
                  "the best for this CPU)"},
    {"EMBLA_WRITE",
     "how large results are written: ahead or stream (default: the best for this CPU)"},
    {"OMP_NUM_THREADS", "number of threads without --threads; bench runs 1 and 2 anyway"},
    {"OPENBLAS_CORETYPE", "kernels of OpenBLAS (default: the best for this CPU)"},
    {"NO_COLOR", "disables colour, unless --color is given"},
    {"COLUMNS", "maximum width of the picture of lookup"},
    {"TMPDIR", "folder for temporary files: decompressed input, bench open (default: /tmp)"},
    {NULL, NULL}};

static const char numbers[] =
    "Options may appear anywhere on the line, as --name value or --name=value; -- ends the "
    "options. Numbers may be written as 128000, 128,000 or 128_000.";

static const char inputs[] =
    "A file to read may be compressed with gzip, xz, zstd or bzip2: it is decompressed to a "
    "temporary file first. - is standard input, once in a command: as a file, or where words, "
    "tokens or texts are read, one on each line. search and train need a file with a name.\n\n"
    "Unknown words in a list are skipped: a note on stderr names them, and the exit code is 3. "
    "They "
    "are an error (1) if no other word is left, and where a missing word would shift the others: "
    "embed, rows, trace, and lookup to npy, raw or fvecs.";

/* ---- groups ---- */

/* The next verb of a list of names, which moves on; NULL at the end. A build may lack a verb. */
static const cli_verb *next_verb(const char **list)
{
    char name[32];
    while (**list) {
        const size_t length = strcspn(*list, " ");
        (void)snprintf(name, sizeof name, "%.*s", (int)length, *list);
        *list += length + ((*list)[length] == ' ');
        const cli_verb *verb = cli_verb_find(name);
        if (verb) return verb;
    }
    return NULL;
}

/* The name of a verb's group; NULL if it was forgotten. */
static const char *group_of(const cli_verb *verb)
{
    for (size_t i = 0; i < GROUPS; i++) {
        const char *list = groups[i].verbs;
        for (const cli_verb *other; (other = next_verb(&list));)
            if (other == verb) return groups[i].name;
    }
    return NULL;
}

/* "dtype of tables and trunk (f32, f64; default: f32)" */
static const char *help_text(const cli_option *option, char *text, size_t size)
{
    size_t used = (size_t)snprintf(text, size, "%s", option->help);
    const char *gap = " (";
    cli_choices listed = cli_option_listed(option);
    for (size_t n = 0; listed && listed(n) && used < size; n++) {
        used += (size_t)snprintf(text + used, size - used, "%s%s", gap, listed(n));
        gap = ", ";
    }
    if (option->standard && used < size) {
        used += (size_t)snprintf(text + used, size - used, "%sdefault%s%s",
                                 option->choices ? "; " : gap, option->value ? ": " : "",
                                 option->value ? option->standard : "");
        gap = "";
    }
    if (*gap != ' ' && used < size) snprintf(text + used, size - used, ")");
    return text;
}

static const char *option_text(const cli_option *option, char *text, size_t size)
{
    char letter[] = {'-', option->letter, ',', ' ', '\0'};
    snprintf(text, size, "%s--%s%s%s", option->letter ? letter : "", option->name,
             option->value ? " " : "", option->value ? option->value : "");
    return text;
}

/* ---- text ---- */

static void print_pair(const char *name, const char *meaning)
{
    if (strlen(name) > COLUMN - 3)
        (void)printf("  %s\n%*s", name, COLUMN, "");
    else
        (void)printf("  %-*s ", COLUMN - 3, name);
    cli_out_wrapped(meaning, COLUMN, COLUMN);
}

static void print_options(const cli_option *options)
{
    char name[64], text[512];
    for (; options->name; options++)
        print_pair(option_text(options, name, sizeof name), help_text(options, text, sizeof text));
}

static void print_choices(const cli_verb *verb)
{
    char text[512];
    printf("\n%s is one of:\n  ", verb->operand);
    cli_out_wrapped(cli_choices_text(verb->choices, text, sizeof text), 2, 2);
}

static void print_verb(const cli_verb *verb)
{
    printf("embla %s - %s\n\nUsage: embla %s %s%s[OPTIONS]\n\n", verb->name, verb->about,
           verb->name, verb->synopsis, *verb->synopsis ? " " : "");
    cli_out_wrapped(verb->text, 0, 0);
    if (verb->choices) print_choices(verb);
    if (verb->options->name) printf("\nOptions:\n");
    print_options(verb->options);
    printf("\nOptions of every verb:\n");
    print_options(cli_global_options);
    printf("\nExample:\n  %s\n", verb->example);
}

static void print_usage(void)
{
    printf("embla %s - " ABOUT "\n\nUsage: embla VERB [OPERANDS] [OPTIONS]\n\n", embla_version());
}

/* One screen: the groups and the names of their verbs. */
static void print_groups(void)
{
    print_usage();
    for (size_t i = 0; i < GROUPS; i++) {
        const char *list = groups[i].verbs;
        char names[CLI_WIDTH] = "";
        size_t used = 0;
        cli_out_wrapped(groups[i].about, printf("%-*s ", GROUP_COLUMN - 1, groups[i].name),
                        GROUP_COLUMN);
        for (const cli_verb *verb; (verb = next_verb(&list)) && used < sizeof names;)
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", used > 0 ? " " : "",
                                     verb->name);
        cli_out_wrapped(names, printf("  "), 2);
    }
    putchar('\n');
    cli_out_wrapped("'embla demo' is where to begin. 'embla help VERB' describes a verb with an "
                    "example, 'embla help C15' the code of a message. 'embla help --all' has a "
                    "line for each verb, the options of all, exit codes and the environment.",
                    0, 0);
}

/* One line for each verb, and what holds for all of them. */
static void print_all(void)
{
    print_usage();
    for (size_t i = 0; i < GROUPS; i++) {
        const char *list = groups[i].verbs;
        printf("%s%s: %s\n", i > 0 ? "\n" : "", groups[i].name, groups[i].about);
        for (const cli_verb *verb; (verb = next_verb(&list));)
            cli_out_wrapped(verb->about, printf("  %-*s ", VERB_COLUMN - 3, verb->name),
                            VERB_COLUMN);
    }
    printf("\nOptions of every verb:\n");
    print_options(cli_global_options);
    putchar('\n');
    cli_out_wrapped(numbers, 0, 0);
    putchar('\n');
    cli_out_wrapped(inputs, 0, 0);
    printf("\nExit codes:\n");
    for (const line *code = exit_codes; code->word; code++) print_pair(code->word, code->meaning);
    printf("\nEnvironment:\n");
    for (const line *name = environment; name->word; name++) print_pair(name->word, name->meaning);
    printf("\nExamples:\n");
    for (size_t n = 0; cli_verbs[n]; n++) printf("  %s\n", cli_verbs[n]->example);
}

/* ---- JSON ---- */

static void json_choices(cli_json *json, cli_choices choices)
{
    if (!choices) return;
    cli_json_open(json, "choices", '[');
    for (size_t n = 0; choices(n); n++) cli_json_text(json, NULL, choices(n));
    cli_json_close(json, ']');
}

static void json_verb(cli_json *json, const cli_verb *verb)
{
    const cli_option *option;
    cli_json_open(json, NULL, '{');
    cli_json_text(json, "name", verb->name);
    cli_json_text(json, "operands", verb->synopsis);
    cli_json_text(json, "group", group_of(verb));
    cli_json_text(json, "about", verb->about);
    cli_json_text(json, "example", verb->example);
    json_choices(json, verb->choices);
    cli_json_open(json, "options", '[');
    for (size_t n = 0; (option = cli_option_at(verb, n)); n++) {
        cli_json_open(json, NULL, '{');
        cli_json_text(json, "name", option->name);
        cli_json_text(json, "value", option->value);
        cli_json_text(json, "default", option->standard);
        cli_json_text(json, "help", option->help);
        json_choices(json, cli_option_listed(option));
        cli_json_close(json, '}');
    }
    cli_json_close(json, ']');
    cli_json_close(json, '}');
}

static void print_json(const cli_verb *verb)
{
    cli_json json = {0};
    cli_json_open(&json, NULL, '{');
    cli_json_text(&json, "version", embla_version());
    cli_json_open(&json, "verbs", '[');
    for (size_t n = 0; cli_verbs[n]; n++)
        if (!verb || verb == cli_verbs[n]) json_verb(&json, cli_verbs[n]);
    cli_json_close(&json, ']');
    cli_json_close(&json, '}');
    putchar('\n');
}

void cli_help_print(const cli_verb *verb, bool as_json)
{
    if (as_json)
        print_json(verb);
    else if (verb)
        print_verb(verb);
    else
        print_groups();
}

/* ---- man page ---- */

enum { ROFF_ESCAPE = 4 }; /* the longest escape, \(aq */

/* The columns that the next word takes at most. */
static size_t roff_length(const char *text)
{
    size_t used = 0;
    for (; *text && *text != ' ' && *text != '\n'; text++)
        used += strchr("-\\'", *text) ? ROFF_ESCAPE : 1;
    return used;
}

/* Escapes text for roff: \- is a hyphen, \e a backslash. A dot or quote at the start of a line
 * would be a request. A line end becomes .br, an empty line .P. A line that is longer than width
 * ends at a space; 0 means that none does. */
static void roff_wrapped(const char *text, size_t width)
{
    bool start = true;
    size_t used = 0;
    for (; *text; text++) {
        if (*text == ' ' && width > 0 && used + 1 + roff_length(text + 1) > width) {
            putchar('\n');
            start = true;
            used = 0;
            continue;
        }
        used = *text == '\n' ? 0 : used + (strchr("-\\'", *text) ? ROFF_ESCAPE : 1);
        if (start && (*text == '.' || *text == '\'')) fputs("\\&", stdout);
        start = *text == '\n';
        if (start) {
            bool paragraph = text[1] == '\n';
            fputs(paragraph ? "\n.P\n" : "\n.br\n", stdout);
            text += paragraph;
        } else if (*text == '-')
            fputs("\\-", stdout);
        else if (*text == '\\')
            fputs("\\e", stdout);
        else if (*text == '\'')
            fputs("\\(aq", stdout);
        else
            putchar(*text);
    }
}

static void roff(const char *text)
{
    roff_wrapped(text, 0);
}

static void roff_text(const char *text)
{
    roff_wrapped(text, CLI_WIDTH);
    putchar('\n');
}

static void roff_line(const char *before, const char *text)
{
    fputs(before, stdout);
    roff(text);
    putchar('\n');
}

static void roff_options(const cli_option *options)
{
    char text[512];
    for (; options->name; options++) {
        printf(".TP\n");
        roff_line(".B ", option_text(options, text, sizeof text));
        roff_text(help_text(options, text, sizeof text));
    }
}

/* The first lines of a page; verb NULL means the page of the program. */
static void roff_head(const cli_verb *verb)
{
    printf(".\\\" SPDX-License"
           "-Identifier: Apache-2.0\n");
    printf(".\\\" Printed by: embla help %s%s--man\n", verb ? verb->name : "", verb ? " " : "");
    fputs(".TH EMBLA", stdout);
    if (verb) fputs("\\-", stdout);
    for (const char *c = verb ? verb->name : ""; *c; c++)
        if (*c == '-')
            fputs("\\-", stdout);
        else
            putchar(toupper((unsigned char)*c));
    printf(" 1 \"" MAN_DATE "\" \"Embla %s\" \"User Commands\"\n", embla_version());
}

/* A reference to the page of a verb, or of the program. */
static void roff_page(const cli_verb *verb, const char *after)
{
    fputs(verb ? ".BR embla\\-" : ".BR embla", stdout);
    roff(verb ? verb->name : "");
    printf(" (1)%s\n", after);
}

static void roff_lines(const char *heading, const line *lines)
{
    printf(".SH %s\n", heading);
    for (; lines->word; lines++) {
        printf(".TP\n");
        roff_line(".B ", lines->word);
        roff_text(lines->meaning);
    }
}

/* The page of the program: what holds for all verbs, and a line for each. */
static void man_program(void)
{
    roff_head(NULL);
    printf(".SH NAME\nembla \\- " ABOUT "\n");
    printf(".SH SYNOPSIS\n.B embla\n.I verb\n.RI [ operands ]\n.RI [ options ]\n");
    printf(".SH DESCRIPTION\n");
    roff_text("Embla works with embedding tables: one row of numbers for each token. Results "
              "go to standard output, messages to standard error.");
    printf(".P\n");
    roff_text(numbers);
    printf(".SH VERBS\nEach verb has a page of its own.\n");
    for (size_t i = 0; i < GROUPS; i++) {
        const char *list = groups[i].verbs;
        roff_line(".SS ", groups[i].name);
        roff_text(groups[i].about);
        for (const cli_verb *verb; (verb = next_verb(&list));) {
            printf(".TP\n");
            roff_page(verb, "");
            roff_text(verb->about);
        }
    }
    printf(".SH OPTIONS OF EVERY VERB\n");
    roff_options(cli_global_options);
    printf(".SH INPUT\n");
    roff_text(inputs);
    roff_lines("EXIT STATUS", exit_codes);
    roff_lines("ENVIRONMENT", environment);
    printf(".SH EXAMPLES\n.nf\n");
    for (size_t n = 0; cli_verbs[n]; n++) roff_line("", cli_verbs[n]->example);
    printf(".fi\n");
}

/* The page of a verb. It ends with the other verbs of the group. */
static void man_verb(const cli_verb *verb)
{
    roff_head(verb);
    printf(".SH NAME\n");
    fputs("embla\\-", stdout);
    roff(verb->name);
    printf(" \\-\n");
    roff_text(verb->about);
    printf(".SH SYNOPSIS\n.B embla ");
    roff_line("", verb->name);
    roff(verb->synopsis);
    printf("%s[OPTIONS]\n.SH DESCRIPTION\n", *verb->synopsis ? " " : "");
    roff_text(verb->text);
    if (verb->choices) {
        char text[512];
        printf(".P\n%s is one of:\n", verb->operand);
        roff_text(cli_choices_text(verb->choices, text, sizeof text));
    }
    printf(".SH OPTIONS\n");
    roff_options(verb->options);
    roff_options(cli_global_options);
    printf(".SH EXAMPLES\n.nf\n");
    roff_line("", verb->example);
    printf(".fi\n.SH SEE ALSO\n");
    const char *const group = group_of(verb);
    for (size_t n = 0; cli_verbs[n]; n++)
        if (cli_verbs[n] != verb && group && strcmp(group_of(cli_verbs[n]), group) == 0)
            roff_page(cli_verbs[n], ",");
    roff_page(NULL, "");
}

/* ---- the verb ---- */

static int run(const cli_args *args)
{
    const bool all = cli_args_flag(args, "all");
    if (all &&
        (args->operand_count > 0 || cli_args_flag(args, "man") || cli_args_flag(args, "json")))
        return cli_usage("--all goes with no VERB, --man or --json, which print all there is");
    if (cli_args_flag(args, "man") && cli_args_flag(args, "json"))
        return cli_usage(
            "--man and --json cannot be used together; 'embla help --json' prints the same facts");
    if (args->operand_count > 0 && cli_rule_looks(args->operands[0]))
        return cli_rule_print(args->operands[0], cli_args_flag(args, "json"));
    const cli_verb *const verb = args->operand_count > 0 ? cli_verb_find(args->operands[0]) : NULL;
    if (all)
        print_all();
    else if (cli_args_flag(args, "man"))
        verb ? man_verb(verb) : man_program();
    else
        cli_help_print(verb, cli_args_flag(args, "json"));
    return CLI_DONE;
}

static const cli_option options[] = {
    {.name = "all", .help = "print a line for each verb, and what holds for all"},
    {.name = "man", .help = "print the man page of the program, or of VERB, in roff"},
    {.name = NULL}};

const cli_verb cli_verb_help = {
    .name = "help",
    .synopsis = "[VERB|CODE]",
    .operand = "VERB",
    .operands_most = 1,
    .choices = cli_verb_name,
    .about = "show help for the program or for one verb",
    .text = "Prints the verbs in groups, or the options of VERB with their defaults and an "
            "example.\n\nCODE "
            "is what a message about a file ends with, for example C15: its rule is printed.",
    .example = "embla help cost",
    .options = options,
    .run = run};
