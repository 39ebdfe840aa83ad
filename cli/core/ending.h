/* SPDX-License-Identifier: Apache-2.0 */
/* The format of a file that a command writes, by the ending of its name: a file named .png holds a
 * PNG or is not written.
 */
#ifndef CLI_CORE_ENDING_H
#define CLI_CORE_ENDING_H

#include "core/args.h"
#include "draw/sheet.h"

/* Chooses one of formats for the file of --output: `asked`, which is what --format, --json or
 * --plain say (NULL means none of them is given), else by the ending (.txt means text, .htm html).
 * *out is NULL if neither says it: there is no file, or it is standard output, a device or a pipe.
 * CLI_USAGE after a message for an ending that names no format, or for a picture's ending that
 * contradicts `asked`; CLI_FAILED if the file is an input. */
int cli_ending_choose(const cli_args *args, cli_choices formats, const char *asked,
                      const char **out);
/* Checks the name of a file that always has one format, such as "SVG": CLI_USAGE after a message if
 * it has another ending. NULL means no file. */
int cli_ending_check(const char *option, const char *path, const char *format);
/* The kind of a file that is always a picture, by its ending; SVG if it has none. CLI_USAGE after a
 * message if it has another ending. */
int cli_ending_sheet(const char *option, const char *path, cli_sheet_kind *out);
/* Checks the name of a file that is no picture, such as "a tokenizer": CLI_USAGE after a message if
 * it has the ending of one. NULL means no file. */
int cli_ending_no_picture(const char *path, const char *what);

#endif
