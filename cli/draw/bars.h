/* SPDX-License-Identifier: Apache-2.0 */
/* A list of bars as a picture for a file: a label, a bar and a number on each line. */
#ifndef CLI_DRAW_BARS_H
#define CLI_DRAW_BARS_H

#include "draw/sheet.h"

typedef struct {
    const char *label; /* may contain text from files */
    const char *text;  /* at the end of the bar: "0.31" */
    double value;      /* 0 or more; what is not finite has no bar */
    int color;         /* of sheet.h */
} cli_bar;

typedef struct {
    const cli_bar *bars;
    size_t count;
    double full;  /* the value of a full bar; 0 means the largest */
    double width; /* pixels of a full bar */
    double step;  /* pixels from one bar to the next; 0 means 24 */
} cli_bar_list;

/* The size of a list in pixels. */
double cli_bars_width(const cli_bar_list *list);
double cli_bars_height(const cli_bar_list *list);
/* Draws a list whose top left corner is at x, y. */
void cli_bars_draw(cli_sheet *sheet, const cli_bar_list *list, double x, double y);
/* Prints a file with a list alone: title, facts and about of page, whose size is that of the list.
 * CLI_DONE, or CLI_FAILED after a message. */
int cli_bars_print(cli_sheet_kind kind, const cli_sheet_page *page, const cli_bar_list *list);

#endif
