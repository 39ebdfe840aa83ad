/* SPDX-License-Identifier: Apache-2.0 */
/* An open checkpoint with its token table, vocabulary and facts, as the verbs use it.
 */
#ifndef CLI_CORE_MODEL_H
#define CLI_CORE_MODEL_H

#include "embla_checkpoint.h"
#include "embla_lab.h"
#include "embla_train.h"

#include "core/args.h"
#include "core/out.h"

/* Options of every verb that opens a checkpoint. */
#define CLI_OPEN_OPTIONS                                                                           \
    {.name = "lenient",                                                                            \
     .help = "accept files that are safe to read but break a rule of their format"},               \
    {                                                                                              \
        .name = "as", .value = "DTYPE", .choices = cli_as_name,                                    \
        .help = "dtype of the two-byte numbers of an .npy file that states none"                   \
    }
const char *cli_as_name(size_t n);
/* The name of the n-th dtype, for options. */
const char *cli_model_dtype(size_t n);
/* The same for a dtype that a file can be written in. */
const char *cli_writable_dtype(size_t n);

enum { CLI_SENTENCE = 512 };

typedef struct cli_text cli_text; /* model_text.c */

typedef struct {
    const char *path; /* as typed */
    embla_checkpoint *checkpoint;
    bool has_table;
    bool no_matrix;     /* there is no table because no tensor is rows x dim */
    embla_tensor table; /* the token table */
    const char *why;    /* the rule that found it */
    int64_t rows, dim;  /* of the table */
    embla_facts facts;  /* how the model uses the table: scaling, mapping, .. */
    embla_vocab *vocab; /* NULL means no words for these rows */
    cli_text *text;     /* the tokenizer, opened when it is needed */
    /* why there is no table or no vocabulary; "" without an error */
    char table_error[CLI_SENTENCE], vocab_error[CLI_SENTENCE];
    /* "8 rows, 20 tokens" if the words do not belong to the chosen tensor; else "" */
    char no_words[CLI_SENTENCE];
} cli_model;

/* embla_checkpoint_open; a fuzzer replaces it, see model_open.c. */
EMBLA_CHECKED embla_status cli_open_path(const char *path, const embla_open_options *options,
                                         embla_checkpoint **out);
/* embla_tokenizer_train; a fuzzer replaces it, too. */
EMBLA_CHECKED embla_status cli_train_tokenizer(const char *text,
                                               const embla_tokenizer_train_options *options,
                                               const char *out, embla_tokenizer_trained *trained);
/* embla_tokenizer_open_file, or embla_tokenizer_open the checkpoint if path is NULL;
 * embla_vocab_open_file; embla_table_new. A fuzzer replaces them, too. */
EMBLA_CHECKED embla_status cli_open_tokenizer(const char *path, const embla_checkpoint *checkpoint,
                                              embla_tokenizer **out);
EMBLA_CHECKED embla_status cli_open_words(const char *path, embla_vocab **out);
EMBLA_CHECKED embla_status cli_make_table(embla_dtype dtype, int64_t rows, size_t dim,
                                          embla_table **out);

/* Reports that embla_convert failed with status. An unknown file extension without --to is wrong
 * usage. */
int cli_convert_failed(const cli_args *args, embla_status status);
/* Format and bytes of what embla_convert has written. */
embla_account_info cli_account_info(const embla_account *account);

/* Opens path with the options of args. CLI_DONE, or CLI_FAILED after a message. */
int cli_checkpoint_open(const cli_args *args, const char *path, embla_checkpoint **out);
/* The same with table, facts and vocabulary. A missing table or vocabulary is not an error. */
int cli_model_open(const cli_args *args, const char *path, cli_model *out);
void cli_model_free(cli_model *model);
/* Prints the notes of a checkpoint to stderr, so that they do not mix with data; not with --quiet.
 */
void cli_print_notes(const cli_args *args, const embla_checkpoint *checkpoint);

/* How the table was found: "recognised by embed_tokens.weight", "the only tensor". Returns text. */
const char *cli_model_why(const cli_model *model, char text[CLI_CELL]);

/* Reads the first of keys (ends with NULL) with a numeric value; "%s" in a key stands for the
 * architecture of a GGUF. False if there is none. */
bool cli_model_number(const cli_model *model, const char *const *keys, int64_t *out,
                      const char **key);
/* One more than the highest token, from the vocabulary or an llm.c header; -1 means unknown. */
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
