/* SPDX-License-Identifier: Apache-2.0 */
/* Draws numbers as coloured cells. */
#include "draw/heat.h"

#include <math.h>
#include <stdio.h>

#include "draw/pen.h"

enum { PADDING = 5 }; /* pixels beside a number in its cell */
#define PALE 0.3

static double largest_of(const float *values, size_t count)
{
    double largest = 0;
    for (size_t i = 0; i < count; i++)
        if (isfinite(values[i]) && fabs((double)values[i]) > largest)
            largest = fabs((double)values[i]);
    return largest;
}

static double widest_of(int decimals, const float *values, size_t count)
{
    double widest = 0;
    for (size_t i = 0; i < count; i++) {
        char text[CLI_PEN_NUMBER];
        (void)cli_pen_number(decimals, values[i], text);
        widest = fmax(widest, cli_sheet_width(CLI_SHEET_NUMBER, text));
    }
    return ceil(widest) + 2 * PADDING;
}

cli_heat cli_heat_of(const float *values, size_t count, double width, double height)
{
    double largest = largest_of(values, count);
    cli_heat heat = {.limit = largest > 0 ? largest : 1,
                     .decimals = cli_pen_decimals((float)largest),
                     .height = height};
    double widest = widest_of(heat.decimals, values, count);
    heat.width = width > 0 ? width : fmax(widest, 36);
    heat.numbers = heat.width >= widest && height >= 14;
    return heat;
}

void cli_heat_add(cli_heat *heat, const float *values, size_t count)
{
    heat->limit = fmax(heat->limit, largest_of(values, count));
    heat->width = fmax(heat->width, widest_of(heat->decimals, values, count));
}

int cli_heat_color(const cli_heat *heat, double value)
{
    const int half = CLI_SHEET_SHADES / 2;
    double share = isnan(value) ? 0 : fmax(-1, fmin(1, value / heat->limit));
    if (heat->pale) share *= PALE;
    /* a little more than the number itself rounds, so that no sum's last bit chooses */
    return CLI_SHEET_FIRST_SHADE + half + (int)lround(share * half * (1 + 1e-6));
}

void cli_heat_cell(cli_sheet *sheet, const cli_sheet_spot *spot, int color, const char *text)
{
    cli_sheet_box(sheet, spot, color);
    if (!text) return;
    const cli_sheet_style style = {spot->x + spot->width - PADDING, spot->y + spot->height / 2 + 4,
                                   CLI_SHEET_END, CLI_SHEET_NUMBER,
                                   color - CLI_SHEET_FIRST_SHADE + CLI_SHEET_ON_SHADE};
    cli_sheet_text(sheet, &style, text);
}

void cli_heat_row(cli_sheet *sheet, const cli_heat *heat, double x, double y, const float *values,
                  size_t count)
{
    for (size_t k = 0; k < count; k++) {
        const cli_sheet_spot spot = {x + (double)k * heat->width, y, heat->width, heat->height};
        char text[CLI_PEN_NUMBER];
        if (heat->numbers) (void)cli_pen_number(heat->decimals, values[k], text);
        cli_heat_cell(sheet, &spot, cli_heat_color(heat, (double)values[k]),
                      heat->numbers ? text : NULL);
    }
}

void cli_heat_legend(cli_sheet *sheet, const cli_heat *heat, double x, double y)
{
    enum { STEP = 5, TALL = 10 };
    char least[CLI_PEN_NUMBER], most[CLI_PEN_NUMBER];
    (void)cli_pen_number(heat->decimals, (float)-heat->limit, least);
    (void)cli_pen_number(heat->decimals, (float)heat->limit, most);
    double right = floor(x - cli_sheet_width(CLI_SHEET_NUMBER, most) - 6);
    double left = right - CLI_SHEET_SHADES * STEP;
    for (int shade = 0; shade < CLI_SHEET_SHADES; shade++) {
        const cli_sheet_spot spot = {left + shade * STEP, y - TALL, STEP, TALL};
        cli_sheet_box(sheet, &spot, CLI_SHEET_FIRST_SHADE + shade);
    }
    cli_sheet_text(
        sheet, &(cli_sheet_style){left - 6, y - 1, CLI_SHEET_END, CLI_SHEET_NUMBER, CLI_SHEET_SOFT},
        least);
    cli_sheet_text(
        sheet,
        &(cli_sheet_style){right + 6, y - 1, CLI_SHEET_START, CLI_SHEET_NUMBER, CLI_SHEET_SOFT},
        most);
}
