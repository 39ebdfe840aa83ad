/* SPDX-License-Identifier: Apache-2.0 */
/* A checkpoint as `info`, `doctor` and `lookup` look at it: opened once, its token table,
 * its words and its numbers at hand.
 */
#ifndef CLI_CORE_MODEL_H
#define CLI_CORE_MODEL_H

#include "embla.h"

#include "core/args.h"
#include "core/out.h"

/* Options of every verb that opens a checkpoint. */
#define CLI_OPEN_OPTIONS                                                                           \
    {.name = "lenient", .help = "read files that are safe but break a rule of their format"},      \
    {                                                                                              \
        .name = "as", .value = "DTYPE", .choices = cli_as_name,                                    \
        .help = "what the two-byte numbers of an .npy file without a type are"                     \
    }
const char *cli_as_name(size_t n);
/* The n-th dtype there is, for options. */
const char *cli_model_dtype(size_t n);

enum { CLI_SENTENCE = 512 };

typedef struct {
    embla_checkpoint *checkpoint;
    bool has_table;
    bool no_matrix;     /* there is none, since no tensor is rows x dim */
    embla_tensor table; /* the token table */
    const char *why;    /* the rule that found it */
    int64_t rows, dim;  /* of it */
    embla_facts facts;  /* what the model does with it that the table does not show */
    embla_vocab *vocab; /* NULL: there are no words for these rows */
    /* what was said where there is no table, no vocab; "" where all is well or there is none */
    char table_error[CLI_SENTENCE], vocab_error[CLI_SENTENCE];
    /* "8 rows, 20 tokens": there are words, but not of the tensor that was chosen; else "" */
    char no_words[CLI_SENTENCE];
} cli_model;

/* embla_checkpoint_open, and what a fuzzer puts in its place; see open.c. */
EMBLA_CHECKED embla_status cli_open_path(const char *path, const embla_open_options *options,
                                         embla_checkpoint **out);

/* Opens path by the options of args. CLI_DONE, or CLI_FAILED after the sentence. A model
 * without a table, or without words, is opened all the same. */
int cli_model_open(const cli_args *args, const char *path, cli_model *out);
void cli_model_free(cli_model *model);

/* How the table was found: "known by embed_tokens.weight", "the only tensor". Returns text. */
const char *cli_model_why(const cli_model *model, char text[CLI_CELL]);
/* Whether path is one of the files that are read. */
bool cli_model_has_file(const cli_model *model, const char *path);

/* The first of keys (ends with NULL) that the checkpoint has a number for; "%s" in a key
 * stands for a GGUF's architecture. False if it has none. */
bool cli_model_number(const cli_model *model, const char *const *keys, int64_t *out,
                      const char **key);
/* One more than the highest token: by the words, or by the header of an llm.c model; -1: not
 * known. */
int64_t cli_model_tokens_end(const cli_model *model);
/* "the model multiplies a row by 48 after the lookup: sqrt(dim), ..", from the facts. Returns text,
 * or NULL if the model uses rows as they are stored. */
const char *cli_model_scaling(const cli_model *model, char text[CLI_SENTENCE]);
/* The first token of each row below `rows`, -1 for a row without one, and if sharing is not NULL
 * how many tokens share the row. CLI_FAILED after a message. */
int cli_first_tokens(const embla_table *table, int64_t rows, int64_t *first, int64_t *sharing);

/* "32,000 x 4,096", "512", "1"; of a tensor of any rank. */
const char *cli_shape_text(const embla_tensor *tensor, char text[CLI_CELL]);

#endif
