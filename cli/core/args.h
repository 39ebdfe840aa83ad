/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs of the program and its command line.
 *
 * One table describes each verb: operands, options with defaults and choices, an example. The same
 * table parses the line, prints help and the man page, and generates the shell completions, so they
 * always agree.
 */
#ifndef CLI_CORE_ARGS_H
#define CLI_CORE_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/complain.h"

/* Maximum number of operands, and of options of one verb including the global ones. */
#define CLI_OPERANDS_MOST 4096
#define CLI_OPTIONS_MOST  80
/* Maximum number of values of options that may be given several times. */
#define CLI_REPEATED_MOST 16

/* Returns the n-th allowed word, NULL past the last. */
typedef const char *(*cli_choices)(size_t n);

/* What the value of an option names. A compressed file is decompressed before the verb runs. */
typedef enum {
    CLI_READS_NOTHING = 0,
    CLI_READS_FILE, /* a file; - is standard input, which is copied to a temporary file */
    CLI_READS_LINES /* items, or a file of them; - is standard input, read as it arrives */
} cli_reads;

typedef struct {
    const char *name;     /* without dashes */
    const char *also;     /* another name for the same option; NULL means none */
    const char *value;    /* name of the value in help; NULL means a flag without value */
    const char *standard; /* default, as typed; for a flag any text means on */
    const char *help;     /* without full stop */
    cli_choices choices;  /* allowed words; NULL means any */
    cli_choices listed;   /* the allowed words that help lists; NULL means all */
    int64_t least, most;  /* limits of a count; most 0 means no maximum */
    cli_reads reads;      /* whether the value names something to read */
    bool count;           /* the value is an integer */
    bool repeats;         /* may be given several times; see cli_args_each */
    char letter;          /* short form; 0 means none */
} cli_option;

/* The words that help and completions list for an option; NULL means any. */
static inline cli_choices cli_option_listed(const cli_option *option)
{
    return option->listed ? option->listed : option->choices;
}

typedef struct cli_args cli_args;

typedef struct {
    const char *name;
    const char *synopsis; /* operands: "[PRESET]..." */
    const char *operand;  /* name of an operand in messages */
    size_t operands_least, operands_most;
    size_t files;              /* the first of them are files to read; see core/inputs.h */
    const char *instead;       /* an option that takes the place of the first file; may be NULL */
    const char *no_stdin;      /* why no file can be standard input, in words; NULL: one can */
    cli_choices choices;       /* allowed operands; NULL means any */
    bool or_files;             /* an operand may also be a file, so the verb checks the choices */
    const char *about;         /* one line, without full stop */
    const char *text;          /* paragraphs, separated by an empty line */
    const char *example;       /* a command that runs as printed */
    const cli_option *options; /* ends with a NULL name */
    bool one_text;             /* the last operand is a text, in quotes if it has several words */
    bool signs;                /* - is an operand, so -x may mean - x */
    bool ranks;                /* its processes work together under mpirun */
    int (*run)(const cli_args *args);
} cli_verb;

struct cli_args {
    const cli_verb *verb; /* NULL means that none was given */
    const char *values[CLI_OPTIONS_MOST];
    int64_t counts[CLI_OPTIONS_MOST];
    bool given[CLI_OPTIONS_MOST];
    const char *operands[CLI_OPERANDS_MOST];
    size_t operand_count;
    struct {
        size_t option;
        const char *text;
    } repeated[CLI_REPEATED_MOST]; /* every value of the options that repeat */
    size_t repeated_count;
};

extern const cli_verb *const cli_verbs[];     /* ends with NULL */
extern const cli_option cli_global_options[]; /* options of every verb; ends with a NULL name */

const char *cli_verb_name(size_t n);
const cli_verb *cli_verb_find(const char *name);

/* The n-th option of verb: first its own, then the global ones. NULL past the last. */
const cli_option *cli_option_at(const cli_verb *verb, size_t n);

/* Writes all words, "cost, bench, help", truncated to size. Returns text. */
const char *cli_choices_text(cli_choices choices, char *text, size_t size);

/* Damerau-Levenshtein distance without case: letters to change, add, drop or swap. At least 32 if a
 * word is longer than 32 bytes. */
size_t cli_word_distance(const char *a, const char *b);
/* Reports an unknown word, what being "verb", with the nearest choice, or with all of them.
 * CLI_USAGE. */
int cli_unknown_word(const char *what, const char *word, cli_choices choices);

/* Copies the digits of 128000, 128_000 or 128,000: one kind of separator, then groups of three.
 * False for any other text, or if size is too small. */
bool cli_args_digits(const char *text, char *out, size_t size);

/* Parses the command line. CLI_DONE, or CLI_USAGE after a message. */
int cli_args_parse(int argc, char **argv, cli_args *out);

/* These take the name of an option of the verb, and return its value or its default. */
bool cli_args_given(const cli_args *args, const char *name);
bool cli_args_flag(const cli_args *args, const char *name);
int64_t cli_args_count(const cli_args *args, const char *name);
/* The same as a size: the largest one for what is larger. */
size_t cli_args_size(const cli_args *args, const char *name);

/* A number that is not negative as a size; the largest one for what is larger. */
static inline size_t cli_as_size(int64_t number)
{
    return (uint64_t)number > (uint64_t)PTRDIFF_MAX ? (size_t)PTRDIFF_MAX : (size_t)number;
}
const char *cli_args_text(const cli_args *args, const char *name);
/* Reads a finite number from 0 to most. CLI_DONE, or CLI_USAGE after a message. */
int cli_args_real(const cli_args *args, const char *name, double most, double *out);
/* The n-th value of an option that may be given several times. NULL past the last. */
const char *cli_args_each(const cli_args *args, const char *name, size_t n);

/* Gives an option a value, as if it had been typed; text must outlive args, and a flag takes "".
 * CLI_DONE, or CLI_USAGE after a message. */
int cli_args_set(cli_args *args, const char *name, const char *text);
/* Takes an option away, as if it had not been typed. It must have no default. */
void cli_args_unset(cli_args *args, const char *name);

#endif
