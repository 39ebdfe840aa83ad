/* SPDX-License-Identifier: Apache-2.0 */
/* A static model for verbs that make vectors of texts. */
#ifndef CLI_CORE_STATIC_MODEL_H
#define CLI_CORE_STATIC_MODEL_H

#include "embla_text.h"

#include "core/args.h"

typedef struct {
    embla_encoder *encoder;
    embla_encoder_info info;
} cli_static_model;

/* Opens the first operand with --compat, --tokenizer and, if the verb has it, --fit. CLI_DONE, or
 * another code after a message. Call cli_static_model_free in any case. */
int cli_static_model_open(const cli_args *args, bool fit, cli_static_model *out);
void cli_static_model_free(cli_static_model *model);

/* The n-th library whose rules can be followed; NULL past the last. */
const char *cli_compat_name(size_t n);

/* Options of the verbs. */
#define CLI_STATIC_MODEL_OPTIONS                                                                   \
    {.name = "compat",                                                                             \
     .value = "LIBRARY",                                                                           \
     .standard = "auto",                                                                           \
     .choices = cli_compat_name,                                                                   \
     .help = "follow the rules of LIBRARY, including its maximum length; auto means the library "  \
             "that the folder belongs to, without a maximum length"},                              \
    {                                                                                              \
        .name = "tokenizer", .value = "FILE", .reads = CLI_READS_FILE,                             \
        .help = "tokenizer of the model (default: the one beside it)"                              \
    }
#define CLI_STATIC_MODEL_FIT                                                                       \
    {                                                                                              \
        .name = "fit", .value = "FILE", .reads = CLI_READS_FILE,                                   \
        .help = "weights and components from 'embla fit', made for this model"                     \
    }

#endif
