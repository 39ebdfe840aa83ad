/* SPDX-License-Identifier: Apache-2.0 */
/* What the program prints: aligned tables, numbers for people, wrapped text, JSON.
 *
 * Everything goes to stdout. Whether it arrived is asked once, at the end, by
 * embla_out_finish.
 */
#ifndef EMBLA_CLI_OUT_H
#define EMBLA_CLI_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The width text is wrapped to; facts on a terminal to its own, within bounds. */
#define EMBLA_WIDTH 80

#define EMBLA_CELL 64

/* 1,234,567. Returns text. */
const char *embla_commas(int64_t number, char text[EMBLA_CELL]);
/* "2.10 GB": decimal units, two decimals; below 1000 the plain bytes. */
const char *embla_size(int64_t bytes, char text[EMBLA_CELL]);

/* Prints text from the column the cursor stands in, wrapped at EMBLA_WIDTH, further
 * lines indented. A newline in text begins a new line. */
void embla_out_wrapped(const char *text, int column, int indent);

/* Columns of the terminal, but lines neither too short to hold a word beside a label nor too long
 * to read; EMBLA_WIDTH where there is none. */
int embla_out_width(void);

/* "label  sentence", the sentence wrapped and indented, whatever it quotes made harmless. */
#define EMBLA_LABEL 14
void embla_out_fact(const char *label, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A column as tall as its share of `tall` lines, on one of these, 0 at the bottom: a sign, in
 * eighths where there are signs for them; " " above it. What is more than 0 is seen. */
const char *embla_out_block(double share, int tall, int line, bool utf8);

/* Cells are put row by row, then printed in columns: 'l' left, 'r' right. */
typedef struct {
    size_t columns, used;
    char cells[256][EMBLA_CELL];
} embla_grid;

void embla_grid_put(embla_grid *grid, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void embla_grid_print(const embla_grid *grid, const char *align);

/* One JSON value on one line. key is NULL inside an array and at the top. */
typedef struct {
    bool comma;
} embla_json;

void embla_json_open(embla_json *json, const char *key, char bracket);
void embla_json_close(embla_json *json, char bracket);
void embla_json_text(embla_json *json, const char *key, const char *text); /* NULL: null */
/* Any bytes: what is no UTF-8 becomes U+FFFD. True if nothing had to. */
bool embla_json_bytes(embla_json *json, const char *key, const char *bytes, size_t length);
void embla_json_whole(embla_json *json, const char *key, int64_t number);
/* Nine digits, from which the same float is read back; null where it is no number. */
void embla_json_real(embla_json *json, const char *key, double number);
void embla_json_bool(embla_json *json, const char *key, bool value);

/* Static, because the library has a function of this name inside. */
static inline void embla_json_count(embla_json *json, const char *key, int64_t number)
{
    embla_json_whole(json, key, number);
}

/* Text from a file: what would move the cursor, or is no UTF-8, is printed as \xNN. */
void embla_out_safe(const char *text);

/* "3 rows", "1 row": the number with commas, and the word as it goes with it. */
const char *embla_plural(int64_t number, const char *word, char text[EMBLA_CELL]);

/* From here on everything is printed to path: into a temporary file beside it, which gets the
 * name once it is complete (a device or a pipe is written to as it is). A file that is there
 * is replaced only by force. EMBLA_DONE, or EMBLA_FAILED after a sentence. */
int embla_out_to(const char *path, bool force);
/* The end of that, if it was begun: good and written, the file gets its name; else it is gone.
 * Returns code, or EMBLA_FAILED after a sentence. */
int embla_out_done(int code);

/* "written  norms.svg: 8.06 kB", after what was asked for; with --json or --quiet nothing. */
struct embla_args;
void embla_out_written(const struct embla_args *args, const char *path);

/* True when everything printed has been written; else errno says why not. */
bool embla_out_finish(void);

#endif
