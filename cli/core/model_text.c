/* SPDX-License-Identifier: Apache-2.0 */
/* Opens tokenizers when they are needed. */
#include "core/model_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/inputs.h"

struct cli_text {
    char *tokenizer_path; /* of --tokenizer; NULL means the model's own */
    embla_tokenizer *tokenizer;
    embla_tokenized *tokenized;
    embla_encoder *encoder; /* for vectors of texts */
    bool tried;             /* the tokenizer was opened, or cannot be */
    char error[CLI_SENTENCE];
};

/* The state is a pointer, so that a const model can open its tokenizer. */
static cli_text *text_of(const cli_model *model)
{
    return model->text;
}

void cli_text_free(cli_text *text)
{
    if (!text) return;
    embla_encoder_free(text->encoder);
    embla_tokenized_free(text->tokenized);
    embla_tokenizer_free(text->tokenizer);
    free(text->tokenizer_path);
    free(text);
}

cli_text *cli_text_new(void)
{
    return calloc(1, sizeof(cli_text));
}

/* ---- tokenizer ---- */

static embla_status open_once(const cli_model *model, cli_text *text)
{
    embla_status status =
        cli_open_tokenizer(text->tokenizer_path, model->checkpoint, &text->tokenizer);
    if (status == EMBLA_OK) status = embla_tokenized_new(text->tokenizer, &text->tokenized);
    if (status == EMBLA_OK) return EMBLA_OK;
    if (status != EMBLA_ERR_NOT_FOUND)
        (void)snprintf(text->error, sizeof text->error, "%s", embla_error());
    embla_tokenizer_free(text->tokenizer);
    text->tokenizer = NULL;
    return status;
}

const embla_tokenizer *cli_model_tokenizer(const cli_model *model)
{
    cli_text *text = text_of(model);
    if (model->no_words[0]) return NULL; /* the rows do not belong to tokens */
    if (!text->tried) (void)open_once(model, text);
    text->tried = true;
    return text->tokenizer;
}

embla_tokenized *cli_model_tokenized(const cli_model *model)
{
    return cli_model_tokenizer(model) ? text_of(model)->tokenized : NULL;
}

const char *cli_model_bad_tokenizer(const cli_model *model)
{
    return text_of(model)->error;
}

int cli_model_use_tokenizer(const cli_args *args, cli_model *model)
{
    const char *path = cli_args_text(args, "tokenizer");
    embla_vocab *words = NULL;
    char rows[CLI_CELL], tokens[CLI_CELL];
    if (!path) return CLI_DONE;
    model->text->tokenizer_path = strdup(path);
    if (!model->text->tokenizer_path) return cli_failed("no memory for the name of a tokenizer");
    model->no_words[0] = '\0';
    if (!cli_model_tokenizer(model)) return cli_failed("%s", embla_error());
    if (embla_tokenizer_words(model->text->tokenizer, &words) != EMBLA_OK)
        return cli_failed("%s", embla_error());
    embla_vocab_free(model->vocab);
    model->vocab = words;
    if (model->has_table && embla_vocab_end(words) > model->facts.tokens &&
        !cli_args_flag(args, "quiet"))
        cli_complain("note: %s has %s, but the table has rows for %s", path,
                     cli_plural(embla_vocab_end(words), "token", tokens),
                     cli_commas(model->facts.tokens, rows));
    return CLI_DONE;
}

embla_status cli_model_tokenize(const cli_model *model, const char *text, size_t length,
                                const int32_t **tokens, size_t *count)
{
    if (!cli_model_tokenizer(model)) return EMBLA_ERR_NOT_FOUND;
    embla_tokenized *e = text_of(model)->tokenized;
    embla_status status = embla_tokenize(e, text, length, NULL);
    *tokens = embla_tokenized_tokens(e);
    *count = embla_tokenized_count(e);
    return status;
}

/* ---- vectors ---- */

static embla_status open_encoder(const cli_model *model, cli_text *text)
{
    const embla_encoder_options options = {.tokenizer = cli_input_path(text->tokenizer_path)};
    if (text->encoder) return EMBLA_OK;
    return embla_encoder_open(cli_input_path(model->path), &options, &text->encoder);
}

int cli_model_encode(const cli_model *model, const char *text, size_t length, size_t dim,
                     float *out)
{
    cli_text *state = text_of(model);
    embla_encoder_info info;
    if (open_encoder(model, state) != EMBLA_OK ||
        embla_encoder_describe(state->encoder, &info) != EMBLA_OK)
        return cli_failed("%s", embla_error());
    if (info.dim != dim)
        return cli_failed("'%.60s' is no word, and vectors of texts have %zu numbers, but a row "
                          "has %zu",
                          text, info.dim, dim);
    const embla_texts one = {.texts = &text, .lengths = &length, .count = 1};
    if (embla_encoder_encode(state->encoder, &one, NULL, out, NULL) != EMBLA_OK)
        return cli_failed("%s", embla_error());
    return CLI_DONE;
}
