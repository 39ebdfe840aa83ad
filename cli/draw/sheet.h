/* SPDX-License-Identifier: Apache-2.0 */
/* A page to draw on, which becomes an SVG, a PNG or a web page: one drawing for all three.
 *
 *   static void draw(cli_sheet *sheet, const void *context) { cli_sheet_box(sheet, ..); }
 *   cli_sheet_print(CLI_SHEET_PNG, &page, draw, context);
 *
 * Lengths are pixels of the SVG, y grows downwards; a PNG has two pixels for each. Colours have a
 * light and a dark form: an SVG and a page follow the reader's system, a PNG is light.
 */
#ifndef CLI_DRAW_SHEET_H
#define CLI_DRAW_SHEET_H

#include <stdbool.h>
#include <stddef.h>

typedef enum { CLI_SHEET_SVG, CLI_SHEET_PNG, CLI_SHEET_HTML } cli_sheet_kind;
typedef struct cli_sheet cli_sheet;

/* Pixels at the top for the title and the line of facts. */
enum { CLI_SHEET_TOP = 72, CLI_SHEET_MARGIN = 24 };

typedef struct {
    const char *title, *facts; /* drawn at the top; may contain text from files */
    const char *about;         /* what the picture shows, in words, for readers who cannot see it */
    double width, height;
} cli_sheet_page;

/* Colours: 0 to 5 are those of tokens (as cli_pen_begin), the same for the same token everywhere.
 * FIRST_SHADE + s is shade s of numbers (heat.h), ON_SHADE + s the colour of text on it. */
enum {
    CLI_SHEET_TOKENS = 6,
    CLI_SHEET_INK = CLI_SHEET_TOKENS,
    CLI_SHEET_SOFT,
    CLI_SHEET_LINE,
    CLI_SHEET_PAPER,
    CLI_SHEET_PLAIN, /* the number of colours above */
    CLI_SHEET_SHADES = 25,
    CLI_SHEET_FIRST_SHADE = CLI_SHEET_PLAIN,
    CLI_SHEET_ON_SHADE = CLI_SHEET_FIRST_SHADE + CLI_SHEET_SHADES,
    CLI_SHEET_COLORS = CLI_SHEET_ON_SHADE + CLI_SHEET_SHADES
};

typedef struct {
    double x, y, width, height;
} cli_sheet_spot;

/* A filled rectangle, many of them in one colour, and the frame of one with round corners. */
void cli_sheet_box(cli_sheet *sheet, const cli_sheet_spot *spot, int color);
void cli_sheet_boxes(cli_sheet *sheet, const cli_sheet_spot *spots, size_t count, int color);
void cli_sheet_frame(cli_sheet *sheet, const cli_sheet_spot *spot, int color, double line);
void cli_sheet_line(cli_sheet *sheet, const double ends[4], int color, double line);
/* A line that leaves and arrives horizontally. */
void cli_sheet_curve(cli_sheet *sheet, const double ends[4], int color, double line);
/* A line through count points, x and y in turn. */
void cli_sheet_path(cli_sheet *sheet, const double *points, size_t count, int color, double line);
/* A line with a head at its second end. */
void cli_sheet_arrow(cli_sheet *sheet, const double ends[4], int color, double line);
void cli_sheet_disc(cli_sheet *sheet, double x, double y, double radius, int color);
void cli_sheet_ring(cli_sheet *sheet, double x, double y, double radius, int color);

typedef enum {
    CLI_SHEET_LABEL,  /* 12 pixels */
    CLI_SHEET_NUMBER, /* 11 pixels, of cells */
    CLI_SHEET_BOLD,   /* 13 pixels, bold */
    CLI_SHEET_TITLE   /* 17 pixels, bold */
} cli_sheet_font;
typedef enum { CLI_SHEET_START, CLI_SHEET_MIDDLE, CLI_SHEET_END } cli_sheet_anchor;

typedef struct {
    double x, y; /* of the baseline */
    cli_sheet_anchor anchor;
    cli_sheet_font font;
    int color;
} cli_sheet_style;

void cli_sheet_text(cli_sheet *sheet, const cli_sheet_style *style, const char *text);
/* The width that a layout allows for text: the same for every kind of sheet. */
double cli_sheet_width(cli_sheet_font font, const char *text);

/* Prints the whole file to stdout. CLI_DONE, or CLI_FAILED after a message. */
int cli_sheet_print(cli_sheet_kind kind, const cli_sheet_page *page,
                    void (*draw)(cli_sheet *sheet, const void *context), const void *context);

#endif
