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

/* The width text is wrapped to, on a terminal and in a pipe alike. */
#define EMBLA_WIDTH 80

#define EMBLA_CELL 64

/* 1,234,567. Returns text. */
const char *embla_commas(int64_t number, char text[EMBLA_CELL]);
/* "2.10 GB": decimal units, two decimals; below 1000 the plain bytes. */
const char *embla_size(int64_t bytes, char text[EMBLA_CELL]);

/* Prints text from the column the cursor stands in, wrapped at EMBLA_WIDTH, further
 * lines indented. A newline in text begins a new line. */
void embla_out_wrapped(const char *text, int column, int indent);

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
void embla_json_count(embla_json *json, const char *key, int64_t number);
void embla_json_real(embla_json *json, const char *key, double number);
void embla_json_bool(embla_json *json, const char *key, bool value);

/* True when everything printed has been written; else errno says why not. */
bool embla_out_finish(void);

#endif
