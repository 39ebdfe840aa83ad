/* SPDX-License-Identifier: Apache-2.0 */
/* Opens the files named on the command line. A fuzzer of command lines replaces this file, so that
 * it touches no file.
 */
#include <string.h>

#include "core/model.h"
#include "core/unpack.h"
#include "train/train_make.h"

embla_status cli_open_path(const char *path, const embla_open_options *options,
                           embla_checkpoint **out)
{
    return embla_checkpoint_open(path, options, out);
}

/* Prints the library's message, with the name that the user knows instead of the temporary one. */
static int fail_packed(const char *path, const char *temporary)
{
    const char *error = embla_error(), *at = temporary ? strstr(error, temporary) : NULL;
    if (!at) return cli_failed("%s", error);
    return cli_failed("%.*s%s%s", (int)(at - error), error, path, at + strlen(temporary));
}

int cli_open_packed(const char *path, const embla_open_options *options, bool quiet,
                    embla_checkpoint **out)
{
    cli_unpacked unpacked = {0};
    if (cli_open_path(path, options, out) == EMBLA_OK) return CLI_DONE;
    int code = cli_unpack(path, quiet, &unpacked);
    if (code != CLI_DONE) return code;
    if (!unpacked.path || cli_open_path(unpacked.path, options, out) != EMBLA_OK)
        code = fail_packed(path, unpacked.path);
    cli_unpack_free(&unpacked);
    return code;
}

embla_status cli_open_tokenizer(const char *path, const embla_checkpoint *checkpoint,
                                embla_tokenizer **out)
{
    return path ? embla_tokenizer_open_file(path, out) : embla_tokenizer_open(checkpoint, out);
}

embla_status cli_train_tokenizer(const char *text, const embla_tokenizer_train_options *options,
                                 const char *out, embla_tokenizer_trained *trained)
{
    return embla_tokenizer_train(text, out, options, trained);
}

embla_status cli_open_words(const char *path, embla_vocab **out)
{
    return embla_vocab_open_file(path, out);
}

embla_status cli_make_table(embla_dtype dtype, int64_t rows, size_t dim, embla_table **out)
{
    return embla_table_new(dtype, rows, dim, NULL, out);
}

embla_status cli_open_corpus(const char *path, const embla_corpus_options *options,
                             embla_corpus **out)
{
    return embla_corpus_open(path, options, out);
}
