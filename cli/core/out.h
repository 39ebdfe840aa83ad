/* SPDX-License-Identifier: Apache-2.0 */
/* Output: aligned tables, numbers for people, wrapped text, JSON.
 *
 * Everything goes to stdout. cli_out_finish checks at the end that it was written.
 */
#ifndef CLI_CORE_OUT_H
#define CLI_CORE_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/shown.h"

/* The width of wrapped text. Facts on a terminal use its width, within bounds. */
#define CLI_WIDTH 80

#define CLI_CELL EMBLA_SHOWN_NUMBER

/* 1,234,567. Returns text. */
const char *cli_commas(int64_t number, char text[CLI_CELL]);
/* "2.10 GB": decimal units, two decimals; "999 B" below 1000. */
const char *cli_size(int64_t bytes, char text[CLI_CELL]);

/* Prints text from the current column on, wrapped at CLI_WIDTH, with further lines indented. A
 * newline in text begins a new line. */
void cli_out_wrapped(const char *text, int column, int indent);

/* The width of the terminal, limited to 40 .. 100; CLI_WIDTH without a terminal. */
int cli_out_width(void);
/* False if stdout is a terminal that is narrower than a line of so many columns. */
bool cli_out_fits(int columns);

/* Prints "label  text", wrapped and indented, with unprintable characters escaped. */
#define CLI_LABEL 14
void cli_out_fact(const char *label, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Prints "   $ command" so that it can be copied from a narrow terminal. */
void cli_out_command(const char *text);

/* One character of a vertical bar that fills `share` of `tall` lines; line 0 is the bottom. UTF-8
 * bars have eighths. A share above 0 is always visible. */
const char *cli_out_block(double share, int tall, int line, bool utf8);

/* Prints two spaces and a horizontal bar that fills `part` of the columns, in eighths of a column
 * with UTF-8. A negative part has no bar. padded: text follows the bar. */
void cli_out_bar(double part, int columns, bool utf8, bool padded);

/* Cells are added row by row, then printed in columns: 'l' aligns left, 'r' right. The first row is
 * the heading. On a terminal that is too narrow each cell has its own line. */
typedef struct {
    size_t columns, used;
    bool no_heading; /* the first row is not a heading */
    char cells[256][CLI_CELL];
} cli_grid;

void cli_grid_put(cli_grid *grid, const char *format, ...) __attribute__((format(printf, 2, 3)));
void cli_grid_print(const cli_grid *grid, const char *align);
/* Whether the grid fits on the terminal as columns. */
bool cli_grid_fits(const cli_grid *grid);

/* One JSON value on one line. key is NULL inside an array and at the top. */
typedef struct {
    bool comma;
} cli_json;

void cli_json_open(cli_json *json, const char *key, char bracket);
void cli_json_close(cli_json *json, char bracket);
void cli_json_text(cli_json *json, const char *key, const char *text); /* NULL prints null */
/* Bytes that are not UTF-8 become U+FFFD. True if there were none. */
bool cli_json_bytes(cli_json *json, const char *key, const char *bytes, size_t length);
void cli_json_whole(cli_json *json, const char *key, int64_t number);
/* Nine digits, enough to read back the same float; null if it is not finite. */
void cli_json_real(cli_json *json, const char *key, double number);
void cli_json_bool(cli_json *json, const char *key, bool value);

/* Static, because the library has an internal function of this name. */
static inline void cli_json_count(cli_json *json, const char *key, int64_t number)
{
    cli_json_whole(json, key, number);
}

/* Prints text from a file, with unprintable characters and invalid UTF-8 escaped. */
void cli_out_safe(const char *text);

/* "3,000 rows", "1 row". */
const char *cli_plural(int64_t number, const char *word, char text[CLI_CELL]);

/* Whether path is standard output: "-", or another name of it such as /dev/stdout. */
bool cli_out_is_stdout(const char *path);
/* Checks that the folder of path exists and can be written. CLI_FAILED after a message. */
int cli_out_check_folder(const char *path);
/* Checks before long work that path can be written: its folder exists, and path does not unless
 * force. CLI_FAILED after a message. */
int cli_out_check(const char *path, bool force);
/* Checks that the library can write a new file to path: nothing is there, or with force a regular
 * file. CLI_FAILED or CLI_USAGE after a message. */
int cli_out_check_new(const char *path, bool force);
/* Checks a file that is written beside the output, with a name that nobody typed: nothing is there,
 * or with force a file that is ours. CLI_FAILED after a message: what others wrote is never
 * replaced. */
int cli_out_check_beside(const char *path, bool ours, bool force);
/* Whether anything has this name, also a link that leads nowhere. */
bool cli_out_exists(const char *path);
/* Redirects stdout to path, through a temporary file beside it that is renamed when complete. A
 * device or a pipe is written directly. An existing file is replaced only with force. CLI_DONE, or
 * CLI_FAILED after a message. */
int cli_out_to(const char *path, bool force);
/* Ends cli_out_to, if it was called: after success the file gets its name, otherwise it is removed.
 * Returns code, or CLI_FAILED after a message. */
int cli_out_done(int code);
/* Writes what print prints to stdout to path, replacing the file in one step. Unlike cli_out_to it
 * leaves signals alone. Returns CLI_DONE, the code of print, or CLI_FAILED after a message. */
int cli_out_draw(const char *path, int (*print)(const void *context), const void *context);

/* Prints "written  norms.svg: 8.06 kB", unless --json or --quiet is given. apart: after an empty
 * line. */
struct cli_args;
void cli_out_written(const struct cli_args *args, const char *path, bool apart);

/* True if all output has been written; else errno is set. */
bool cli_out_finish(void);

#endif
