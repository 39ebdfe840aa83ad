/* SPDX-License-Identifier: Apache-2.0 */
#include "core/static_model.h"

#include <string.h>

#include "core/inputs.h"

const char *cli_compat_name(size_t n)
{
    return embla_compat_name((embla_compat)n);
}

int cli_static_model_open(const cli_args *args, bool fit, cli_static_model *out)
{
    embla_encoder_options options = {.tokenizer = cli_input_path(cli_args_text(args, "tokenizer")),
                                     .fit =
                                         fit ? cli_input_path(cli_args_text(args, "fit")) : NULL};
    while (strcmp(embla_compat_name(options.compat), cli_args_text(args, "compat")) != 0)
        options.compat++;
    if (embla_encoder_open(cli_input_path(args->operands[0]), &options, &out->encoder) !=
            EMBLA_OK ||
        embla_encoder_describe(out->encoder, &out->info) != EMBLA_OK)
        return cli_failed("%s", embla_error());
    return CLI_DONE;
}

void cli_static_model_free(cli_static_model *model)
{
    embla_encoder_free(model->encoder);
    *model = (cli_static_model){0};
}
