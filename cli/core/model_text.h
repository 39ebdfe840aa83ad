/* SPDX-License-Identifier: Apache-2.0 */
/* Text where a verb expects tokens: the tokenizer of a model cuts it. All verbs use this one way.
 *
 * A tokenizer is opened when a verb first meets text, because the file of a large one takes a
 * while. It is the file of --tokenizer, or the tokenizer that the checkpoint has.
 */
#ifndef CLI_CORE_MODEL_TEXT_H
#define CLI_CORE_MODEL_TEXT_H

#include "embla_text.h"

#include "core/model.h"

/* The option of every verb that takes text. */
#define CLI_TOKENIZER_OPTION                                                                       \
    {                                                                                              \
        .name = "tokenizer", .value = "FILE", .reads = CLI_READS_FILE,                             \
        .help = "tokenizer for text, whose tokens also name the rows (default: the model's own)"   \
    }

/* Uses the file of --tokenizer; its tokens become the words of the rows. Without the option nothing
 * changes. CLI_DONE, or CLI_FAILED after a message. */
int cli_model_use_tokenizer(const cli_args *args, cli_model *model);
/* The tokenizer, opened if it was not yet. NULL if there is none. */
const embla_tokenizer *cli_model_tokenizer(const cli_model *model);
/* The memory for its work; NULL without a tokenizer. */
embla_tokenized *cli_model_tokenized(const cli_model *model);
/* Cuts text into tokens, without special tokens. They are valid until the next call. Another
 * status if there is no tokenizer, or with embla_error() if the text cannot be cut. */
EMBLA_CHECKED embla_status cli_model_tokenize(const cli_model *model, const char *text,
                                              size_t length, const int32_t **tokens, size_t *count);
/* Writes the vector of a text to out (dim), as `embla encode` makes it. CLI_DONE, or CLI_FAILED
 * after a message. */
int cli_model_encode(const cli_model *model, const char *text, size_t length, size_t dim,
                     float *out);

/* What is wrong with the tokenizer that there is; "" if it is good, or if there is none. */
const char *cli_model_bad_tokenizer(const cli_model *model);

/* The state of a model, for cli_model_open. NULL if there is no memory. */
cli_text *cli_text_new(void);
void cli_text_free(cli_text *text);

#endif
