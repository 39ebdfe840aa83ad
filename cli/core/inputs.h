/* SPDX-License-Identifier: Apache-2.0 */
/* The files that a command reads. All enter through cli_inputs_open, which decompresses them. No
 * command may overwrite one of them, not even with --force. */
#ifndef CLI_CORE_INPUTS_H
#define CLI_CORE_INPUTS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/args.h"

/* Makes all files that the command reads plain files: the operands that the verb calls files, and
 * the values of options that name some. A compressed file (gzip, xz, zstd, bzip2) is decompressed,
 * and standard input copied, to a temporary file. Refuses a second -. CLI_DONE, or another code
 * after a message. Call cli_inputs_close in any case. */
int cli_inputs_open(const cli_args *args);
void cli_inputs_close(void);
/* The same for a file that the command line does not name, such as the text of a training that
 * continues. */
int cli_inputs_add(const char *path, bool quiet);
/* Where the bytes of a file are that was named as `typed`: a temporary file, or typed itself. Every
 * call that opens a file uses it. NULL for NULL. */
const char *cli_input_path(const char *typed);
/* The name as typed of such a temporary file; other paths are returned as they are. */
const char *cli_input_name(const char *real);
/* Replaces the paths of temporary files in a message of size bytes by their names as typed. */
void cli_inputs_rename(char *text, size_t size);

/* Checks that path, where the command will write, is not a file that it reads: an operand, the
 * value of an option, standard input, or a file of a folder that one of them names. CLI_FAILED
 * after a message. */
int cli_inputs_check(const cli_args *args, const char *path);

#endif
