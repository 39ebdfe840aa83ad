/* SPDX-License-Identifier: Apache-2.0 */
/* Opens a language model with its tokenizer.
 *
 * A file whose only tensor is a table is a mistake that learners make: word vectors have rows, but
 * nothing that computes with them. The message says so.
 */
#include "core/language_model.h"

#include "core/model_text.h"

enum { PARALLEL_FROM = 4000000 }; /* parameters */

/* The reason why there is no model. */
static int say_no_model(const cli_language_model *m)
{
    char rows[CLI_CELL];
    size_t tensors = 0;
    (void)embla_checkpoint_tensors(m->model.checkpoint, &tensors);
    if (!m->model.has_table || tensors != 1 ||
        embla_checkpoint_text(m->model.checkpoint, "model_type"))
        return cli_failed("%s", embla_error());
    return cli_failed("%s is a plain table: %s of %" PRId64 " numbers without layers and a head, "
                      "so it predicts nothing; 'embla near' finds rows that are alike, and 'embla "
                      "train' makes a model",
                      m->model.path, cli_plural(m->model.rows, "row", rows), m->model.dim);
}

int cli_language_model_open(const cli_args *args, const char *path, cli_language_model *out)
{
    *out = (cli_language_model){.threads = (int)cli_args_count(args, "threads")};
    int code = cli_model_open(args, path, &out->model);
    if (code != CLI_DONE) return code;
    if (embla_gpt_open(out->model.checkpoint, &out->gpt) != EMBLA_OK) return say_no_model(out);
    code = cli_model_use_tokenizer(args, &out->model);
    if (code != CLI_DONE) return code;
    (void)cli_model_tokenizer(&out->model);
    if (cli_model_bad_tokenizer(&out->model)[0])
        cli_complain("tokens are numbers: %s", cli_model_bad_tokenizer(&out->model));
    if (embla_gpt_describe(out->gpt, &out->shape) != EMBLA_OK)
        return cli_failed("%s", embla_error());
    cli_speaker_of(&out->model, out->shape.vocab, &out->speaker);
    out->speaker.quiet = cli_args_flag(args, "quiet");
    /* for a small model, waking a second thread takes longer than a token */
    if (out->threads == 0 && embla_gpt_parameters(out->gpt) < PARALLEL_FROM) out->threads = 1;
    return CLI_DONE;
}

void cli_language_model_free(cli_language_model *model)
{
    embla_gpt_free(model->gpt);
    cli_model_free(&model->model);
    *model = (cli_language_model){0};
}
