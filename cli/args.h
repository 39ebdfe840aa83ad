/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs of the program and what may stand on its command line.
 *
 * One table describes each verb: its operands, its options with their defaults and
 * choices, an example. The same table parses the line, prints help and the man
 * page, and makes the shell completions, so that none of them can disagree.
 */
#ifndef EMBLA_CLI_ARGS_H
#define EMBLA_CLI_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Exit codes of every verb. */
enum { EMBLA_DONE = 0, EMBLA_FAILED = 1, EMBLA_USAGE = 2, EMBLA_WANTING = 3 };

/* Operands on one line, and options of one verb with the global ones. */
#define EMBLA_OPERANDS_MOST 32
#define EMBLA_OPTIONS_MOST  64

/* The n-th word that may stand here, NULL past the last. */
typedef const char *(*embla_choices)(size_t n);

typedef struct {
    const char *name;      /* without its dashes */
    const char *value;     /* what help calls the value; NULL: the option takes none */
    const char *standard;  /* default, as it would be typed; of a flag: any text if it is on */
    const char *help;      /* no full stop */
    embla_choices choices; /* the words it takes; NULL: any */
    bool count;            /* the value is a number from 0 */
    char letter;           /* short form; 0: none */
} embla_option;

typedef struct embla_args embla_args;

typedef struct {
    const char *name;
    const char *synopsis; /* of the operands: "[PRESET]..." */
    const char *operand;  /* what one of them is called in a message */
    size_t operands_least, operands_most;
    embla_choices choices;       /* the words an operand may be; NULL: any */
    const char *about;           /* one line, no full stop */
    const char *text;            /* paragraphs, an empty line between them */
    const char *example;         /* runs as it is */
    const embla_option *options; /* ends with a NULL name */
    bool signs;                  /* - is an operand: -x may have been meant as two */
    int (*run)(const embla_args *args);
} embla_verb;

struct embla_args {
    const embla_verb *verb; /* NULL: none was given */
    const char *values[EMBLA_OPTIONS_MOST];
    int64_t counts[EMBLA_OPTIONS_MOST];
    bool given[EMBLA_OPTIONS_MOST];
    const char *operands[EMBLA_OPERANDS_MOST];
    size_t operand_count;
};

extern const embla_verb *const embla_verbs[];     /* ends with NULL */
extern const embla_option embla_global_options[]; /* of every verb; ends with a NULL name */

const char *embla_verb_name(size_t n);
const embla_verb *embla_verb_find(const char *name);

/* The n-th option of verb: its own, then the global ones. NULL past the last. */
const embla_option *embla_option_at(const embla_verb *verb, size_t n);

/* "cost, bench, help": the words there are. Returns text, cut where it does not fit. */
const char *embla_choices_text(embla_choices choices, char *text, size_t size);

/* Reads the line. EMBLA_DONE, or EMBLA_USAGE after a sentence on stderr. */
int embla_args_parse(int argc, char **argv, embla_args *out);

/* By the option's name, which must be one of the verb's. The default if not given. */
bool embla_args_given(const embla_args *args, const char *name);
bool embla_args_flag(const embla_args *args, const char *name);
int64_t embla_args_count(const embla_args *args, const char *name);
const char *embla_args_text(const embla_args *args, const char *name);

/* Prints "embla: sentence" to stderr. */
void embla_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The exit code, after the sentence. Macros, so that the compiler sees what comes out. */
#define embla_usage(...)  (embla_complain(__VA_ARGS__), EMBLA_USAGE)
#define embla_failed(...) (embla_complain(__VA_ARGS__), EMBLA_FAILED)

#endif
