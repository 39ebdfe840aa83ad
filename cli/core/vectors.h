/* SPDX-License-Identifier: Apache-2.0 */
/* Vectors of tokens, one for each: what lookup and embed have in common. Tokens of the command
 * line, formats of data, and the file of --output.
 *
 * All tokens are checked before the first vector is printed or a file is opened for writing, so
 * there is no partial result. Vectors are made and printed in batches, so a long list needs no more
 * memory than a short one.
 */
#ifndef CLI_CORE_VECTORS_H
#define CLI_CORE_VECTORS_H

#include "core/answers.h"
#include "draw/pen.h"
#include "draw/sheet.h"

typedef enum {
    CLI_VECTORS_PICTURE, /* of a terminal */
    CLI_VECTORS_SVG,     /* pictures for files, in the order of cli_sheet_kind */
    CLI_VECTORS_PNG,
    CLI_VECTORS_HTML,
    CLI_VECTORS_TEXT,
    CLI_VECTORS_TSV,
    CLI_VECTORS_JSON,
    CLI_VECTORS_JSONL,
    CLI_VECTORS_NPY,
    CLI_VECTORS_RAW,
    CLI_VECTORS_FVECS,
    CLI_VECTORS_SQL /* of texts only */
} cli_vectors_form;

typedef struct {
    cli_asked asked;
    cli_tokens tokens;
    int64_t *rows; /* the row of each token */
    size_t dim;    /* numbers of a vector to print; at most those of the table */
    int threads;
    cli_vectors_form form;
    bool unseen; /* words that the vocabulary does not have may get vectors of n-grams */
} cli_vectors;

/* Where vectors come from. */
typedef struct {
    const void *context; /* of the functions below */
    /* Writes the vectors of tokens at .. at+count-1 to out (count x dim of the table). CLI_DONE, or
     * CLI_FAILED after a message. */
    int (*make)(const void *context, size_t at, size_t count, float *out);
    /* Prints more keys of the JSON object, and of the object of token i; NULL means none. */
    void (*json)(const void *context, cli_json *json);
    void (*json_token)(const void *context, size_t i, cli_json *json);
} cli_vectors_source;

/* The form that --format, --json or (if `plain` is true) --plain asks for; else that of the ending
 * of
 * --output; else the first of formats. CLI_USAGE after a message if they contradict each other. */
int cli_vectors_choose(const cli_args *args, cli_choices formats, bool plain,
                       cli_vectors_form *out);
/* Whether a form is a picture for a file; *kind is its kind. */
bool cli_vectors_is_sheet(cli_vectors_form form, cli_sheet_kind *kind);

/* Opens the first operand and finds the rows of the tokens. unseen: see cli_vectors. An unknown
 * word is an error in a sequence, where it would shift the positions, and in a format without
 * words, where it would shift the rows; else it is skipped. Returns CLI_DONE, or another code after
 * a message. Call cli_vectors_free in any case. */
int cli_vectors_open(const cli_args *args, bool unseen, bool sequence, cli_vectors *out);
void cli_vectors_free(cli_vectors *vectors);

/* Redirects stdout to the file of --output, if it is given; end it with cli_out_done. A file that
 * the command reads is refused, and binary data on a terminal too. */
int cli_vectors_redirect(const cli_args *args, cli_vectors_form form);
/* Prints numbers as little-endian f32 on every machine. */
void cli_vectors_raw(const float *values, size_t dim);
/* The same after the dim as a 32-bit integer: fvecs. */
void cli_vectors_fvecs(const float *values, size_t dim);
/* Prints the header of npy 1.0: magic, length, a dictionary, and spaces so that the data begins at
 * a multiple of 64. */
void cli_vectors_npy(size_t rows, size_t dim);
/* Prints all vectors as data; a picture is printed as text. */
int cli_vectors_print(const cli_vectors *vectors, const cli_vectors_source *source);
/* The numbers of a row that a picture for a file shows: the first few, or those of --dim. */
size_t cli_vectors_numbers(const cli_args *args, const cli_vectors *vectors);
/* The tokens of a picture. */
cli_pen_tokens cli_vectors_tokens(const cli_vectors *vectors);
/* Prints facts about mapping and weights, for below a picture. */
void cli_vectors_facts(const cli_vectors *vectors);

/* The n-th format of vectors of tokens; NULL past the last. */
const char *cli_vectors_format(size_t n);
/* The same for vectors of texts: without the picture, which is of tokens, and with SQL. */
const char *cli_vectors_text_format(size_t n);
#define CLI_VECTORS_OPTIONS                                                                        \
    {.name = "ids",                                                                                \
     .value = "LIST",                                                                              \
     .reads = CLI_READS_LINES,                                                                     \
     .help = "token numbers, such as 2,5,7; - reads them from standard input"},                    \
        CLI_TOKENIZER_OPTION,                                                                      \
        {.name = "dim",                                                                            \
         .value = "N",                                                                             \
         .count = true,                                                                            \
         .help = "print only the first N numbers of each row"},                                    \
        {.name = "format",                                                                         \
         .value = "FORMAT",                                                                        \
         .standard = "picture",                                                                    \
         .choices = cli_vectors_format,                                                            \
         .help = "output format; taken from the extension of FILE if not given"},                  \
        {.name = "plain", .help = "same as --format text"},                                        \
        {.name = "output",                                                                         \
         .letter = 'o',                                                                            \
         .value = "FILE",                                                                          \
         .help = "write to FILE, such as picture.svg, .png, .html, rows.txt or .json"},            \
        {.name = "force", .help = "replace FILE if it exists"},                                    \
    {                                                                                              \
        .name = "color", .value = "WHEN", .standard = "auto", .choices = cli_color_name,           \
        .help = "use colour in the picture; auto means on a terminal, unless NO_COLOR is set"      \
    }

#endif
