/* SPDX-License-Identifier: Apache-2.0 */
/* Opens the files named on the command line. A fuzzer of command lines replaces this file, so that
 * it touches no file.
 */
#include "core/model.h"
#include "train/train_make.h"

embla_status cli_open_path(const char *path, const embla_open_options *options,
                           embla_checkpoint **out)
{
    return embla_checkpoint_open(path, options, out);
}

embla_status cli_open_corpus(const char *path, const embla_corpus_options *options,
                             embla_corpus **out)
{
    return embla_corpus_open(path, options, out);
}
