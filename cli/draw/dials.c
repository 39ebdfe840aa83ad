/* SPDX-License-Identifier: Apache-2.0 */
/* Draws angles of rotary positions: a dial for each position and pair of numbers. Its hand starts
 * on the right and turns against the clock, as angles do.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "draw/waves.h"

enum {
    RADIUS = 19,
    WIDE = 64 /* at least */,
    TALL = 70,
    LEFT = 190,
    TOP = CLI_SHEET_TOP + 44,
    POINTS = 49
};

static void write_at(cli_sheet *sheet, double x, double y, cli_sheet_anchor anchor, int color,
                     const char *text)
{
    const cli_sheet_style style = {x, y, anchor, CLI_SHEET_LABEL, color};
    cli_sheet_text(sheet, &style, text);
}

static double degrees_of(double radians)
{
    return radians * 180 / acos(-1.0);
}

static void draw_dial(cli_sheet *sheet, double x, double y, double radians, int color)
{
    const double whole = 2 * acos(-1.0), angle = fmod(radians, whole);
    const double start[4] = {x, y, x + RADIUS, y};
    double arc[2 * POINTS];
    char text[64];
    for (size_t i = 0; i < POINTS; i++) {
        double at = angle * (double)i / (POINTS - 1);
        arc[2 * i] = x + 0.45 * RADIUS * cos(at);
        arc[2 * i + 1] = y - 0.45 * RADIUS * sin(at);
    }
    cli_sheet_ring(sheet, x, y, RADIUS, CLI_SHEET_LINE);
    cli_sheet_line(sheet, start, CLI_SHEET_LINE, 1);
    if (angle > 0.02) cli_sheet_path(sheet, arc, POINTS, color, 1.2);
    cli_sheet_line(sheet, (const double[4]){x, y, x + RADIUS * cos(angle), y - RADIUS * sin(angle)},
                   color, 2.5);
    const double degrees = degrees_of(radians);
    snprintf(text, sizeof text,
             degrees == 0     ? "0\u00b0"
             : degrees < 0.01 ? "%.0e\u00b0"
             : degrees < 10   ? "%.2f\u00b0"
                              : "%.0f\u00b0",
             degrees);
    write_at(sheet, x, y + RADIUS + 15, CLI_SHEET_MIDDLE, CLI_SHEET_SOFT, text);
}

typedef struct {
    const cli_dials *dials;
    double wide; /* of a column */
} plan;

static void draw_pair_name(cli_sheet *sheet, const cli_dials *d, size_t n)
{
    const double y = TOP + (double)n * TALL + RADIUS, degrees = degrees_of(d->radians[n]);
    char text[64];
    snprintf(text, sizeof text, "pair %zu", d->pairs[n]);
    const cli_sheet_style style = {CLI_SHEET_MARGIN, y, CLI_SHEET_START, CLI_SHEET_BOLD,
                                   (int)(n % CLI_SHEET_TOKENS)};
    cli_sheet_text(sheet, &style, text);
    snprintf(text, sizeof text, "%.4g\u00b0 each position", degrees);
    write_at(sheet, CLI_SHEET_MARGIN, y + 17, CLI_SHEET_START, CLI_SHEET_SOFT, text);
}

static void draw_all(cli_sheet *sheet, const void *context)
{
    const plan *p = context;
    const cli_dials *d = p->dials;
    char text[64];
    for (size_t i = 0; i < d->count; i++) {
        const double x = LEFT + ((double)i + 0.5) * p->wide;
        const double position = (double)(d->first + (int64_t)i);
        if (d->words) {
            const cli_sheet_style style = {x, TOP - 32, CLI_SHEET_MIDDLE, CLI_SHEET_BOLD,
                                           CLI_SHEET_INK};
            cli_sheet_text(sheet, &style, d->words[i]);
        }
        snprintf(text, sizeof text, "%s%" PRId64, d->words ? "at " : "position ",
                 d->first + (int64_t)i);
        write_at(sheet, x, TOP - 14, CLI_SHEET_MIDDLE, CLI_SHEET_SOFT,
                 d->words || i == 0 ? text : text + 9);
        for (size_t n = 0; n < d->pair_count; n++)
            draw_dial(sheet, x, TOP + (double)n * TALL + RADIUS, position * d->radians[n],
                      (int)(n % CLI_SHEET_TOKENS));
    }
    for (size_t n = 0; n < d->pair_count; n++) draw_pair_name(sheet, d, n);
}

int cli_dials_print(cli_sheet_kind kind, const cli_dials *d)
{
    plan p = {d, WIDE};
    char last[64];
    snprintf(last, sizeof last, "at %" PRId64, d->first + (int64_t)d->count);
    p.wide = fmax(p.wide, cli_sheet_width(CLI_SHEET_LABEL, last) + 8);
    for (size_t i = 0; d->words && i < d->count; i++)
        p.wide = fmax(p.wide, cli_sheet_width(CLI_SHEET_BOLD, d->words[i]) + 10);
    const cli_sheet_page page = {d->title, d->facts, d->about,
                                 LEFT + (double)d->count * p.wide + CLI_SHEET_MARGIN,
                                 TOP + (double)d->pair_count * TALL + CLI_SHEET_MARGIN / 2.0};
    return cli_sheet_print(kind, &page, draw_all, &p);
}
