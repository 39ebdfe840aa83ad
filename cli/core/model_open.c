/* SPDX-License-Identifier: Apache-2.0 */
/* Opens the files named on the command line. A fuzzer of command lines replaces this file, so that
 * it touches no file.
 */
#include "core/inputs.h"
#include "core/model.h"
#include "train/train_make.h"

embla_status cli_open_path(const char *path, const embla_open_options *options,
                           embla_checkpoint **out)
{
    return embla_checkpoint_open(cli_input_path(path), options, out);
}

embla_status cli_open_tokenizer(const char *path, const embla_checkpoint *checkpoint,
                                embla_tokenizer **out)
{
    return path ? embla_tokenizer_open_file(cli_input_path(path), out)
                : embla_tokenizer_open(checkpoint, out);
}

embla_status cli_train_tokenizer(const char *text, const embla_tokenizer_train_options *options,
                                 const char *out, embla_tokenizer_trained *trained)
{
    return embla_tokenizer_train(cli_input_path(text), out, options, trained);
}

embla_status cli_open_words(const char *path, embla_vocab **out)
{
    return embla_vocab_open_file(cli_input_path(path), out);
}

embla_status cli_make_table(embla_dtype dtype, int64_t rows, size_t dim, embla_table **out)
{
    return embla_table_new(dtype, rows, dim, NULL, out);
}

embla_status cli_open_corpus(const char *path, const embla_corpus_options *options,
                             embla_corpus **out)
{
    return embla_corpus_open(cli_input_path(path), options, out);
}
