/* SPDX-License-Identifier: Apache-2.0 */
/* The files that a command reads. No command may overwrite one of them, not even with --force. */
#ifndef CLI_CORE_INPUTS_H
#define CLI_CORE_INPUTS_H

#include "core/args.h"

/* Checks that path, where the command will write, is not a file that it reads: an operand, the
 * value of an option, or a file of a folder that one of them names. CLI_FAILED after a message. */
int cli_inputs_check(const cli_args *args, const char *path);

#endif
