/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as cells on a scale of colours: blue is negative, orange positive, the colour of paper 0.
 */
#ifndef CLI_DRAW_HEAT_H
#define CLI_DRAW_HEAT_H

#include "draw/sheet.h"

typedef struct {
    double limit;         /* numbers of this size have the strongest colour */
    int decimals;         /* of printed numbers */
    double width, height; /* of a cell */
    bool numbers;         /* cells are large enough to print the numbers in them */
    bool pale;            /* weaker colours, for what is beside the point */
} cli_heat;

/* The scale for these numbers, in cells of this size; width 0 means as wide as the numbers. */
cli_heat cli_heat_of(const float *values, size_t count, double width, double height);
/* The same scale for other numbers too: grows the limit and the cells. */
void cli_heat_add(cli_heat *heat, const float *values, size_t count);

/* The colour of a number: CLI_SHEET_FIRST_SHADE and up. NaN has that of 0. */
int cli_heat_color(const cli_heat *heat, double value);
/* One cell, with the text in it; NULL means none. */
void cli_heat_cell(cli_sheet *sheet, const cli_sheet_spot *spot, int color, const char *text);
/* count cells from x, y to the right. */
void cli_heat_row(cli_sheet *sheet, const cli_heat *heat, double x, double y, const float *values,
                  size_t count);
/* The scale of colours with its ends, whose right end is at x and whose bottom is at y. */
void cli_heat_legend(cli_sheet *sheet, const cli_heat *heat, double x, double y);

#endif
