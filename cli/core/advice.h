/* SPDX-License-Identifier: Apache-2.0 */
/* What a beginner may have meant: operands in another order, a file with a similar name, a text
 * without quotes, a model where a text is expected. */
#ifndef CLI_CORE_ADVICE_H
#define CLI_CORE_ADVICE_H

#include "core/args.h"

/* Looks for the first `files` operands on disk. If one is missing, and a later operand is a file or
 * a file beside it has a similar name, says so: CLI_USAGE or CLI_FAILED after a message. CLI_DONE
 * if there is nothing to say; the verb then reports what it cannot open. */
int cli_advise_files(const cli_args *args, size_t files);

/* A note if the operands from `first` on are several texts of one word each. */
void cli_advise_quotes(const cli_args *args, size_t first);

/* A note if the file or folder that is read as a text is a model or a table. */
void cli_advise_text(const cli_args *args, const char *path);

#endif
