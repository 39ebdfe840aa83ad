/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs of the program and what may stand on its command line.
 *
 * One table describes each verb: its operands, its options with their defaults and
 * choices, an example. The same table parses the line, prints help and the man
 * page, and makes the shell completions, so that none of them can disagree.
 */
#ifndef CLI_CORE_ARGS_H
#define CLI_CORE_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/complain.h"

/* Operands on one line, and options of one verb with the global ones. */
#define CLI_OPERANDS_MOST 32
#define CLI_OPTIONS_MOST  64

/* The n-th word that may stand here, NULL past the last. */
typedef const char *(*cli_choices)(size_t n);

typedef struct {
    const char *name;     /* without its dashes */
    const char *value;    /* what help calls the value; NULL: the option takes none */
    const char *standard; /* default, as it would be typed; of a flag: any text if it is on */
    const char *help;     /* no full stop */
    cli_choices choices;  /* the words it takes; NULL: any */
    bool count;           /* the value is a number from 0 */
    char letter;          /* short form; 0: none */
} cli_option;

typedef struct cli_args cli_args;

typedef struct {
    const char *name;
    const char *synopsis; /* of the operands: "[PRESET]..." */
    const char *operand;  /* what one of them is called in a message */
    size_t operands_least, operands_most;
    cli_choices choices;       /* the words an operand may be; NULL: any */
    const char *about;         /* one line, no full stop */
    const char *text;          /* paragraphs, an empty line between them */
    const char *example;       /* runs as it is */
    const cli_option *options; /* ends with a NULL name */
    bool signs;                /* - is an operand: -x may have been meant as two */
    int (*run)(const cli_args *args);
} cli_verb;

struct cli_args {
    const cli_verb *verb; /* NULL: none was given */
    const char *values[CLI_OPTIONS_MOST];
    int64_t counts[CLI_OPTIONS_MOST];
    bool given[CLI_OPTIONS_MOST];
    const char *operands[CLI_OPERANDS_MOST];
    size_t operand_count;
};

extern const cli_verb *const cli_verbs[];     /* ends with NULL */
extern const cli_option cli_global_options[]; /* of every verb; ends with a NULL name */

const char *cli_verb_name(size_t n);
const cli_verb *cli_verb_find(const char *name);

/* The n-th option of verb: its own, then the global ones. NULL past the last. */
const cli_option *cli_option_at(const cli_verb *verb, size_t n);

/* "cost, bench, help": the words there are. Returns text, cut where it does not fit. */
const char *cli_choices_text(cli_choices choices, char *text, size_t size);

/* Reads the line. CLI_DONE, or CLI_USAGE after a sentence on stderr. */
int cli_args_parse(int argc, char **argv, cli_args *out);

/* By the option's name, which must be one of the verb's. The default if not given. */
bool cli_args_given(const cli_args *args, const char *name);
bool cli_args_flag(const cli_args *args, const char *name);
int64_t cli_args_count(const cli_args *args, const char *name);
const char *cli_args_text(const cli_args *args, const char *name);

#endif
