/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the command line with the tables of args.h.
 *
 * Options may appear anywhere, even before the verb, so the line is read twice: once to find the
 * verb, once with its options. Anything unknown is an error; the message suggests the nearest name.
 */
#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/args.h"

#include "core/elsewhere.h"
#include "core/rules.h"

/* ---- did you mean ---- */

#define WORD_MAX_LENGTH 32

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

size_t cli_word_distance(const char *a, const char *b)
{
    size_t rows[3][WORD_MAX_LENGTH + 1], m = strlen(a), n = strlen(b);
    if (m > WORD_MAX_LENGTH || n > WORD_MAX_LENGTH) return WORD_MAX_LENGTH;
    for (size_t j = 0; j <= n; j++) rows[0][j] = j;
    for (size_t i = 1; i <= m; i++) {
        size_t *now = rows[i % 3], *last = rows[(i - 1) % 3], *before = rows[(i + 1) % 3];
        now[0] = i;
        for (size_t j = 1; j <= n; j++) {
            size_t changed = last[j - 1] +
                             (tolower((unsigned char)a[i - 1]) != tolower((unsigned char)b[j - 1]));
            now[j] = min_size(changed, min_size(last[j], now[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                now[j] = min_size(now[j], before[j - 2] + 1);
        }
    }
    return rows[m % 3][n];
}

typedef struct {
    const char *word, *best;
    size_t distance;
} candidate;

/* Keeps the nearest name. A prefix counts as near: `qwen` for qwen3.8-flash-next. */
static void update_guess(candidate *guess, const char *name)
{
    size_t length = strlen(guess->word);
    size_t distance = length > 1 && strncasecmp(guess->word, name, length) == 0
                          ? 1
                          : cli_word_distance(guess->word, name);
    if (distance < guess->distance && distance <= 1 + length / 5) {
        guess->distance = distance;
        guess->best = name;
    }
}

static const char *nearest_choice(const char *word, cli_choices choices)
{
    candidate guess = {word, NULL, WORD_MAX_LENGTH};
    for (size_t n = 0; choices(n); n++) update_guess(&guess, choices(n));
    return guess.best;
}

static bool is_choice(const char *word, cli_choices choices)
{
    for (size_t n = 0; choices(n); n++)
        if (strcmp(choices(n), word) == 0) return true;
    return false;
}

const char *cli_choices_text(cli_choices choices, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t n = 0; choices(n) && used < size; n++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", n ? ", " : "", choices(n));
    return text;
}

int cli_unknown_word(const char *what, const char *word, cli_choices choices)
{
    const char *meant = nearest_choice(word, choices);
    char names[512];
    if (meant) return cli_usage("unknown %s '%.60s'; did you mean '%s'?", what, word, meant);
    return cli_usage("unknown %s '%.60s'; use %s%s", what, word,
                     choices(0) && choices(1) ? "one of " : "",
                     cli_choices_text(choices, names, sizeof names));
}

/* ---- verbs and options by name ---- */

const char *cli_verb_name(size_t n)
{
    return cli_verbs[n] ? cli_verbs[n]->name : NULL;
}

const cli_verb *cli_verb_find(const char *name)
{
    for (size_t n = 0; cli_verbs[n]; n++)
        if (strcmp(cli_verbs[n]->name, name) == 0) return cli_verbs[n];
    return NULL;
}

const cli_option *cli_option_at(const cli_verb *verb, size_t n)
{
    size_t own = 0;
    if (verb)
        for (; verb->options[own].name; own++)
            if (own == n) return &verb->options[own];
    for (size_t i = 0; cli_global_options[i].name; i++)
        if (own + i == n) return &cli_global_options[i];
    return NULL;
}

/* Whether the first length bytes of word are --name. */
static bool is_long_name(const char *word, size_t length, const char *name)
{
    return name && length > 2 && strncmp(word, "--", 2) == 0 && strlen(name) == length - 2 &&
           strncmp(word + 2, name, length - 2) == 0;
}

/* Whether word is a letter with its number attached: -k3. */
static bool is_attached(const cli_option *option, const char *word)
{
    return option->count && option->letter && word[0] == '-' && word[1] == option->letter &&
           word[2] && strspn(word + 2, "0123456789") == strlen(word + 2);
}

/* The option that word names: --name, --name=value, -l or -l3. */
static const cli_option *find_option(const cli_verb *verb, const char *word, size_t *index)
{
    size_t length = strcspn(word, "=");
    const cli_option *option;
    for (size_t n = 0; (option = cli_option_at(verb, n)); n++) {
        bool is_short =
            option->letter && length == 2 && word[0] == '-' && word[1] == option->letter;
        if (is_short || is_attached(option, word) || is_long_name(word, length, option->name) ||
            is_long_name(word, length, option->also)) {
            if (index) *index = n;
            return option;
        }
    }
    return NULL;
}

static int unknown_option(const cli_verb *verb, const char *word)
{
    const cli_option *option;
    const char *where = verb ? verb->name : "the program";
    int length = (int)strcspn(word, "="), dashes = word[1] == '-' ? 2 : 1;
    char name[WORD_MAX_LENGTH + 1];
    candidate guess = {name, NULL, WORD_MAX_LENGTH};
    snprintf(name, sizeof name, "%.*s", length - dashes, word + dashes);
    const char *meant = cli_elsewhere_option(verb, name);
    if (meant) return cli_usage("%s has no option '%.*s'; use '--%s'", where, length, word, meant);
    for (size_t n = 0; (option = cli_option_at(verb, n)); n++) update_guess(&guess, option->name);
    if (guess.best)
        return cli_usage("%s has no option '%.*s'; did you mean '--%s'?", where, length, word,
                         guess.best);
    if (verb && verb->signs && dashes == 1)
        return cli_usage("%s has no option '%s'; write '- %s' for the sign, or '\\%s' for the word",
                         where, word, word + 1, word);
    if (verb && verb->operands_most > 0 && cli_elsewhere_input(name))
        return cli_usage("%s has no option '%.*s'; write the name of the file alone: embla %s %s",
                         where, length, word, verb->name, verb->synopsis);
    return cli_usage("%s has no option '%.*s'; see 'embla help%s%s'", where, length, word,
                     verb ? " " : "", verb ? verb->name : "");
}

/* Names of similar verbs in other tools. */
static const struct {
    const char *word, *verb;
} synonyms[] = {{"size", "cost"},
                {"params", "cost"},
                {"memory", "cost"},
                {"benchmark", "bench"},
                {"perf", "bench"},
                {"completions", "completion"},
                {"man", "help"},
                {"ls", "info"},
                {"inspect", "info"},
                {"show", "info"},
                {"list", "info"},
                {"tokenize", "tokens"},
                {"vocab", "info"},
                {"check", "doctor"},
                {"get", "lookup"},
                {"row", "lookup"},
                {"init", "new"},
                {"sentence", "encode"},
                {"vector", "lookup"},
                {"export", "convert"},
                {"quantize", "convert"},
                {"quantise", "convert"},
                {"nn", "near"},
                {"nearest", "near"},
                {"neighbours", "near"},
                {"neighbors", "near"},
                {"similar", "near"},
                {"similarity", "compare"},
                {"doesnt_match", "doesnt-match"},
                {"odd", "doesnt-match"},
                {"analogies", "analogy"},
                {"norms", "health"},
                {"glitch", "health"},
                {"svd", "spectrum"},
                {"pca", "map"},
                {"plot", "map"},
                {"umap", "map"},
                {"tsne", "map"},
                {"distance", "compare"},
                {"evaluate", "eval"},
                {"sample", "generate"},
                {"complete", "generate"},
                {"learn", "train"}};

/* What other tools do that no verb of ours does yet, and what serves instead. */
static const struct {
    const char *word, *advice;
} missing_verbs[] = {{"serve", "the library answers from other programs, see embla.h"}};

static int unknown_verb(const char *word)
{
    for (size_t i = 0; i < sizeof synonyms / sizeof synonyms[0]; i++) {
        if (strcmp(synonyms[i].word, word) != 0) continue;
        return cli_usage("unknown verb '%s'; use '%s' instead, see 'embla help %s'", word,
                         synonyms[i].verb, synonyms[i].verb);
    }
    for (size_t i = 0; i < sizeof missing_verbs / sizeof missing_verbs[0]; i++)
        if (strcmp(missing_verbs[i].word, word) == 0)
            return cli_usage("there is no verb '%s'; %s", word, missing_verbs[i].advice);
    return cli_unknown_word("verb", word, cli_verb_name);
}

/* ---- numbers ---- */

bool cli_args_digits(const char *text, char *out, size_t size)
{
    const char *mark = strpbrk(text, ",_");
    size_t used = 0, group = 0;
    for (const char *c = text; *c; c++) {
        if (mark && *c == *mark) {
            if (c > mark ? group != 3 : c == text || c - text > 3) return false;
            group = 0;
            continue;
        }
        if (*c < '0' || *c > '9' || used + 1 >= size) return false;
        out[used++] = *c;
        group++;
    }
    out[used] = '\0';
    return used > 0 && (!mark || group == 3);
}

static int read_count(const cli_option *option, const char *text, int64_t *out)
{
    const char *name = option->name;
    char plain[32], *rest = NULL;
    int64_t value = 0;
    size_t length = strlen(text);
    if (text[0] == '-' && text[1] >= '0' && text[1] <= '9')
        return cli_usage("--%s is %s; the minimum is %" PRId64, name, text, option->least);
    if (length > 1 && strspn(text, "0123456789.,_") == length - 1 &&
        strchr("kKmMgGbB", text[length - 1]))
        return cli_usage(
            "--%s: the suffix of '%s' is ambiguous (1,000 or 1,024); write the number in full",
            name, text);
    if (strlen(text) > 0 && strspn(text, "0123456789") == length && length >= sizeof plain)
        return cli_usage("--%s: '%s' does not fit in 64 bits", name, text);
    if (!cli_args_digits(text, plain, sizeof plain) && strpbrk(text, ".eE") &&
        isfinite(strtod(text, &rest)) && rest > text && *rest == '\0')
        return cli_usage("--%s is %s; it must be a whole number, written in full", name, text);
    if (!cli_args_digits(text, plain, sizeof plain))
        return cli_usage("--%s: '%s' is not a number such as 128000, 128_000 or 128,000", name,
                         text);
    for (const char *c = plain; *c; c++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, *c - '0', &value))
            return cli_usage("--%s: '%s' does not fit in 64 bits", name, text);
    if (value < option->least)
        return cli_usage("--%s is %s; the minimum is %" PRId64, name, text, option->least);
    if (option->most > 0 && value > option->most)
        return cli_usage("--%s is %s; the maximum is %" PRId64, name, text, option->most);
    *out = value;
    return CLI_DONE;
}

/* ---- the command line ---- */

/* Whether word is an option whose value is the next word. It works without a verb, because an
 * option has the same meaning in every verb. */
static bool takes_next_word(const cli_verb *verb, const char *word)
{
    const cli_option *option = find_option(verb, word, NULL);
    for (size_t n = 0; !option && !verb && cli_verbs[n]; n++)
        option = find_option(cli_verbs[n], word, NULL);
    return option && option->value && !strchr(word, '=') && !is_attached(option, word);
}

static bool is_option(const char *word)
{
    return word[0] == '-' && word[1] != '\0';
}

/* The index of the verb: the first word that is neither an option nor its value. 0 if none. */
static int find_verb(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (!is_option(argv[i])) return i;
        if (strcmp(argv[i], "--") == 0) return i + 1 < argc ? i + 1 : 0;
        if (takes_next_word(NULL, argv[i])) i++;
    }
    return 0;
}

/* The index of the first option before the verb that neither the program nor any verb has. 0 if
 * none: then the word that was taken for the verb is wrong, not the option. */
static int find_unknown_option(int verb_at, char **argv)
{
    for (int i = 1; i < verb_at; i++) {
        bool known = !is_option(argv[i]) || find_option(NULL, argv[i], NULL);
        for (size_t n = 0; !known && cli_verbs[n]; n++)
            known = find_option(cli_verbs[n], argv[i], NULL) != NULL;
        if (!known) return i;
    }
    return 0;
}

static int set_value(cli_args *args, size_t index, const char *text)
{
    const cli_option *option = cli_option_at(args->verb, index);
    char what[WORD_MAX_LENGTH + 3];
    args->values[index] = text;
    if (option->choices && !is_choice(text, option->choices)) {
        snprintf(what, sizeof what, "--%s", option->name);
        return cli_unknown_word(what, text, cli_option_listed(option));
    }
    return option->count ? read_count(option, text, &args->counts[index]) : CLI_DONE;
}

/* The same for a value that was typed: those of an option that repeats are all kept. */
static int add_value(cli_args *args, size_t index, const char *text)
{
    const cli_option *option = cli_option_at(args->verb, index);
    if (!option->repeats) return set_value(args, index, text);
    if (args->repeated_count == CLI_REPEATED_MOST)
        return cli_usage("--%s is given too often; at most %d times are possible", option->name,
                         CLI_REPEATED_MOST);
    args->repeated[args->repeated_count].option = index;
    args->repeated[args->repeated_count++].text = text;
    return set_value(args, index, text);
}

/* Parses the option at *i and moves *i to its last word. */
static int read_option(int argc, char **argv, int *i, cli_args *args)
{
    const char *word = argv[*i], *equals = strchr(word, '=');
    size_t index = 0;
    const cli_option *option = find_option(args->verb, word, &index);
    if (!option) return unknown_option(args->verb, word);
    args->given[index] = true;
    if (!option->value) {
        if (equals) return cli_usage("--%s takes no value; remove '=%s'", option->name, equals + 1);
        args->values[index] = "";
        return CLI_DONE;
    }
    if (is_attached(option, word)) return add_value(args, index, word + 2);
    const char *text = equals ? equals + 1 : *i + 1 < argc ? argv[*i + 1] : NULL;
    if (!text || text[0] == '\0' || (!equals && strncmp(text, "--", 2) == 0))
        return cli_usage("--%s needs a value: --%s %s", option->name, option->name, option->value);
    if (!equals) (*i)++;
    return add_value(args, index, text);
}

/* The option that has `word` among its choices: microgpt is a --preset of train. NULL if none. */
static const cli_option *option_of_choice(const cli_verb *verb, const char *word)
{
    const cli_option *option;
    for (size_t n = 0; (option = cli_option_at(verb, n)); n++)
        if (option->choices && is_choice(word, option->choices)) return option;
    return NULL;
}

/* An operand too many: what may have been meant. */
static int refuse_operand(const cli_args *args, const char *word)
{
    const cli_verb *verb = args->verb;
    const size_t most = verb->operands_most;
    const char *last = most > 0 ? args->operands[most - 1] : "";
    if (most == 0 && find_option(verb, "--output", NULL))
        return cli_usage("%s takes no operands; remove '%s', or write '-o %s' if it is the output",
                         verb->name, word, word);
    if (most == 0) return cli_usage("%s takes no operands; remove '%s'", verb->name, word);
    if (verb->one_text)
        return cli_usage("%s takes at most %zu operands; put a text of several words in quotes: "
                         "\"%.40s %.40s\"",
                         verb->name, most, last, word);
    const cli_option *option = option_of_choice(verb, word);
    const char *meant = option ? word : last;
    if (!option) option = option_of_choice(verb, last);
    if (option)
        return cli_usage("%s takes at most %zu operand%s; write '--%s %s', or remove '%s'",
                         verb->name, most, most == 1 ? "" : "s", option->name, meant, word);
    return cli_usage("%s takes at most %zu operand%s; remove '%s'%s", verb->name, most,
                     most == 1 ? "" : "s", word,
                     most == CLI_OPERANDS_MOST ? ", or pass many as lines of standard input" : "");
}

static int read_operand(const char *word, cli_args *args)
{
    const cli_verb *verb = args->verb;
    const bool rule = verb->choices == cli_verb_name && cli_rule_looks(word);
    if (verb->choices == cli_verb_name && !rule && !is_choice(word, cli_verb_name))
        return unknown_verb(word);
    if (verb->choices && !verb->or_files && !rule && !is_choice(word, verb->choices))
        return cli_unknown_word(verb->operand, word, verb->choices);
    if (args->operand_count == verb->operands_most) return refuse_operand(args, word);
    args->operands[args->operand_count++] = word;
    return CLI_DONE;
}

static int set_defaults(cli_args *args)
{
    const cli_option *option;
    for (size_t n = 0; (option = cli_option_at(args->verb, n)); n++) {
        assert(n < CLI_OPTIONS_MOST);
        if (!option->standard) continue;
        int code = set_value(args, n, option->standard);
        if (code != CLI_DONE) return code;
    }
    return CLI_DONE;
}

/* `embla version` is `embla --version`. */
static void set_version(cli_args *args)
{
    size_t index = 0;
    if (find_option(args->verb, "--version", &index)) args->values[index] = "";
}

int cli_args_parse(int argc, char **argv, cli_args *out)
{
    cli_args args = {0};
    int code = CLI_DONE, verb_at = find_verb(argc, argv);
    bool options_end = false, version = verb_at > 0 && strcmp(argv[verb_at], "version") == 0;
    if (verb_at > 0 && !version && !(args.verb = cli_verb_find(argv[verb_at]))) {
        int option_at = find_unknown_option(verb_at, argv);
        if (option_at > 0) return unknown_option(NULL, argv[option_at]);
        const bool later = verb_at + 1 < argc && cli_verb_find(argv[verb_at + 1]);
        if (later && strpbrk(argv[verb_at], "./"))
            return cli_usage("unknown verb '%.60s'; the verb comes first: embla %s %.60s",
                             argv[verb_at], argv[verb_at + 1], argv[verb_at]);
        return unknown_verb(argv[verb_at]);
    }
    code = set_defaults(&args);
    if (version) set_version(&args);
    for (int i = 1; i < argc && code == CLI_DONE; i++) {
        if (i == verb_at) continue;
        if (!options_end && strcmp(argv[i], "--") == 0)
            options_end = true;
        else if (!options_end && is_option(argv[i]))
            code = read_option(argc, argv, &i, &args);
        else if (args.verb)
            code = read_operand(argv[i], &args);
        else
            code = unknown_verb(argv[i]);
    }
    if (code != CLI_DONE) return code;
    bool asks = cli_args_flag(&args, "help") || cli_args_flag(&args, "version");
    if (args.verb && args.operand_count < args.verb->operands_least && !asks) {
        if (args.verb->operands_least > 1)
            return cli_usage("%s needs %zu operands, %s; see 'embla help %s'", args.verb->name,
                             args.verb->operands_least, args.verb->synopsis, args.verb->name);
        return cli_usage("%s needs a %s; see 'embla help %s'", args.verb->name, args.verb->operand,
                         args.verb->name);
    }
    *out = args;
    return CLI_DONE;
}

/* ---- parsed values ---- */

static size_t option_index(const cli_args *args, const char *name)
{
    const cli_option *option;
    for (size_t n = 0; (option = cli_option_at(args->verb, n)); n++)
        if (strcmp(option->name, name) == 0) return n;
    assert(false && "an option of this verb");
    return 0;
}

bool cli_args_given(const cli_args *args, const char *name)
{
    return args->given[option_index(args, name)];
}

bool cli_args_flag(const cli_args *args, const char *name)
{
    return args->values[option_index(args, name)] != NULL;
}

int64_t cli_args_count(const cli_args *args, const char *name)
{
    return args->counts[option_index(args, name)];
}

size_t cli_args_size(const cli_args *args, const char *name)
{
    return cli_as_size(cli_args_count(args, name));
}

const char *cli_args_text(const cli_args *args, const char *name)
{
    return args->values[option_index(args, name)];
}

int cli_args_real(const cli_args *args, const char *name, double most, double *out)
{
    const char *text = cli_args_text(args, name);
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end != '\0' || !isfinite(value))
        return cli_usage("--%s: '%.60s' is not a number such as 0.8", name, text);
    if (value < 0 || value > most)
        return cli_usage("--%s is %.60s; it must be between 0 and %g", name, text, most);
    *out = value;
    return CLI_DONE;
}

const char *cli_args_each(const cli_args *args, const char *name, size_t n)
{
    size_t index = option_index(args, name);
    for (size_t i = 0; i < args->repeated_count; i++)
        if (args->repeated[i].option == index && n-- == 0) return args->repeated[i].text;
    return NULL;
}

int cli_args_set(cli_args *args, const char *name, const char *text)
{
    size_t index = option_index(args, name);
    args->given[index] = true;
    return set_value(args, index, text);
}

void cli_args_unset(cli_args *args, const char *name)
{
    size_t index = option_index(args, name);
    args->given[index] = false;
    args->values[index] = NULL;
    args->counts[index] = 0;
}
