/* SPDX-License-Identifier: Apache-2.0 */
/* What the program prints: aligned tables, numbers for people, wrapped text, JSON.
 *
 * Everything goes to stdout. Whether it arrived is asked once, at the end, by
 * cli_out_finish.
 */
#ifndef CLI_CORE_OUT_H
#define CLI_CORE_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The width text is wrapped to; facts on a terminal to its own, within bounds. */
#define CLI_WIDTH 80

#define CLI_CELL 64

/* 1,234,567. Returns text. */
const char *cli_commas(int64_t number, char text[CLI_CELL]);
/* "2.10 GB": decimal units, two decimals; below 1000 the plain bytes. */
const char *cli_size(int64_t bytes, char text[CLI_CELL]);

/* Prints text from the column the cursor stands in, wrapped at CLI_WIDTH, further
 * lines indented. A newline in text begins a new line. */
void cli_out_wrapped(const char *text, int column, int indent);

/* Columns of the terminal, but lines neither too short to hold a word beside a label nor too long
 * to read; CLI_WIDTH where there is none. */
int cli_out_width(void);

/* "label  sentence", the sentence wrapped and indented, whatever it quotes made harmless. */
#define CLI_LABEL 14
void cli_out_fact(const char *label, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A column as tall as its share of `tall` lines, on one of these, 0 at the bottom: a sign, in
 * eighths where there are signs for them; " " above it. What is more than 0 is seen. */
const char *cli_out_block(double share, int tall, int line, bool utf8);

/* Cells are put row by row, then printed in columns: 'l' left, 'r' right. */
typedef struct {
    size_t columns, used;
    char cells[256][CLI_CELL];
} cli_grid;

void cli_grid_put(cli_grid *grid, const char *format, ...) __attribute__((format(printf, 2, 3)));
void cli_grid_print(const cli_grid *grid, const char *align);

/* One JSON value on one line. key is NULL inside an array and at the top. */
typedef struct {
    bool comma;
} cli_json;

void cli_json_open(cli_json *json, const char *key, char bracket);
void cli_json_close(cli_json *json, char bracket);
void cli_json_text(cli_json *json, const char *key, const char *text); /* NULL: null */
/* Any bytes: what is no UTF-8 becomes U+FFFD. True if nothing had to. */
bool cli_json_bytes(cli_json *json, const char *key, const char *bytes, size_t length);
void cli_json_whole(cli_json *json, const char *key, int64_t number);
/* Nine digits, from which the same float is read back; null where it is no number. */
void cli_json_real(cli_json *json, const char *key, double number);
void cli_json_bool(cli_json *json, const char *key, bool value);

/* Static, because the library has a function of this name inside. */
static inline void cli_json_count(cli_json *json, const char *key, int64_t number)
{
    cli_json_whole(json, key, number);
}

/* Text from a file: what would move the cursor, or is no UTF-8, is printed as \xNN. */
void cli_out_safe(const char *text);

/* "3 rows", "1 row": the number with commas, and the word as it goes with it. */
const char *cli_plural(int64_t number, const char *word, char text[CLI_CELL]);

/* From here on everything is printed to path: into a temporary file beside it, which gets the
 * name once it is complete (a device or a pipe is written to as it is). A file that is there
 * is replaced only by force. CLI_DONE, or CLI_FAILED after a sentence. */
int cli_out_to(const char *path, bool force);
/* The end of that, if it was begun: good and written, the file gets its name; else it is gone.
 * Returns code, or CLI_FAILED after a sentence. */
int cli_out_done(int code);

/* "written  norms.svg: 8.06 kB", after what was asked for; with --json or --quiet nothing. */
struct cli_args;
void cli_out_written(const struct cli_args *args, const char *path);

/* True when everything printed has been written; else errno says why not. */
bool cli_out_finish(void);

#endif
