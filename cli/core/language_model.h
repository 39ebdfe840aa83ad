/* SPDX-License-Identifier: Apache-2.0 */
/* A language model with its tokenizer, as the verbs open it that continue a text. */
#ifndef CLI_CORE_LANGUAGE_MODEL_H
#define CLI_CORE_LANGUAGE_MODEL_H

#include "embla_train.h"

#include "core/model.h"
#include "core/speak.h"

typedef struct {
    cli_model model;
    embla_gpt *gpt;
    embla_gpt_shape shape; /* of gpt */
    cli_speaker speaker;
    int threads; /* of --threads; 1 for a small model if none were asked for */
} cli_language_model;

/* Opens path with the options of args, among them --tokenizer. CLI_DONE, or another code after a
 * message, which says of a plain table that it is no model. Call cli_language_model_free in any
 * case. */
int cli_language_model_open(const cli_args *args, const char *path, cli_language_model *out);
void cli_language_model_free(cli_language_model *model);

#endif
