/* SPDX-License-Identifier: Apache-2.0 */
/* Prints an SVG document: style, background, grid, axes, then the data.
 *
 * Colours are CSS classes, with a second set under prefers-color-scheme: dark. They are written out
 * instead of CSS variables, so that programs that support neither (file viewers, rsvg) show the
 * light set. Lengths have two decimals: finer than any screen, and the same on all machines.
 */
#include "draw/svg.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "core/out.h"
#include "core/visible.h"

enum { FONT = 12, TITLE = 17, SUBTITLE = 13, CHARACTER = 7 }; /* pixels */

static const char css[] =
    "text{font:12px system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,"
    "'Noto Sans',sans-serif;fill:#57606a;white-space:pre;font-variant-numeric:tabular-nums}\n"
    ".title{font-size:17px;font-weight:600;fill:#1f2328}\n"
    ".subtitle{font-size:13px}\n"
    ".paper{fill:#ffffff}.grid{stroke:#e4e8ec}.axis{stroke:#8c959f}\n"
    ".bar{fill:#2f6fb5}.bar:hover{fill:#d1681b}\n"
    ".line{fill:none;stroke-width:1.8;stroke-linejoin:round;stroke-linecap:round}\n"
    ".line.a{stroke:#2f6fb5}.line.b{stroke:#d1681b}.line.c{stroke:#3c8a52}\n"
    ".point.a{fill:#2f6fb5}.point.b{fill:#d1681b}.point.c{fill:#3c8a52}\n"
    ".mark{stroke:#d1681b;stroke-dasharray:4 3}.note{fill:#a34e0f}\n"
    ".halo{paint-order:stroke;stroke:#ffffff;stroke-width:3px;stroke-linejoin:round}\n"
    "@media (prefers-color-scheme:dark){\n"
    "text{fill:#9ba6b2}.title{fill:#e9edf2}\n"
    ".paper{fill:#14181d}.grid{stroke:#262d35}.axis{stroke:#5b6672}\n"
    ".bar{fill:#5f9fe0}.bar:hover{fill:#f0a05a}\n"
    ".line.a{stroke:#5f9fe0}.line.b{stroke:#f0a05a}.line.c{stroke:#74c48d}\n"
    ".point.a{fill:#5f9fe0}.point.b{fill:#f0a05a}.point.c{fill:#74c48d}\n"
    ".mark{stroke:#f0a05a}.note{fill:#f3b57f}.halo{stroke:#14181d}\n"
    "}\n";

/* ---- text ---- */

void cli_svg_escape(const char *text, size_t length)
{
    while (length > 0) {
        size_t bytes = cli_printable(text, length), whole = embla_utf8_length(text, length);
        /* U+FFFE and U+FFFF are UTF-8, but not XML characters */
        bool none = bytes == 3 && memcmp(text, "\xef\xbf", 2) == 0 && (text[2] & 0x3e) == 0x3e;
        if (bytes == 0 || none)
            fputs("\xef\xbf\xbd", stdout);
        else if (*text == '&' || *text == '<' || *text == '>' || *text == '"' || *text == '\'')
            printf("&#%d;", *text);
        else
            (void)fwrite(text, 1, bytes, stdout);
        whole = whole > 0 ? whole : 1;
        text += whole;
        length -= whole;
    }
}

static void print_escaped(const char *text)
{
    cli_svg_escape(text, strlen(text));
}

void cli_svg_text(double x, double y, const char *class, const char *anchor, const char *text)
{
    printf("<text x=\"%.2f\" y=\"%.2f\" text-anchor=\"%s\"", x, y, anchor);
    if (class) printf(" class=\"%s\"", class);
    putchar('>');
    print_escaped(text);
    puts("</text>");
}

/* The approximate width of a character in a sans-serif font, in parts of the font size. */
static double character_width(uint32_t code)
{
    if (code >= 0x1100 && (code < 0x1200 || (code >= 0x2e80 && code < 0xa000) ||
                           (code >= 0xac00 && code < 0xd7b0) || code >= 0xf900))
        return 1;
    if (code < 128 && strchr("ijl.,;:'|!()[]{} ", (int)code)) return 0.38;
    if (code < 128 && strchr("frtI/\\-\"", (int)code)) return 0.46;
    if (code < 128 && strchr("mwMW@%", (int)code)) return 0.98;
    if (code < 128 && strchr("<>=+~^#&", (int)code)) return 0.84;
    return code >= 'A' && code <= 'Z' ? 0.74 : 0.63;
}

double cli_svg_width(const char *text, double size)
{
    double width = 0;
    for (size_t left = strlen(text), bytes; left > 0; left -= bytes, text += bytes) {
        bytes = embla_utf8_length(text, left);
        width += character_width(bytes > 0 ? embla_utf8_code(text, bytes) : '?');
        bytes = bytes > 0 ? bytes : 1;
    }
    return width * size;
}

/* Formats a value of an axis: integers with commas, decimals as many as the step has. */
static void format_value(double value, double step, char text[CLI_CELL])
{
    double size = fabs(value);
    if (step > 0 && size < step * 1e-6) value = size = 0;
    bool plain = size < 1e7 && (size == 0 || size >= 1e-4);
    if (plain && (step >= 1 || (step <= 0 && size >= 1)))
        (void)cli_commas((int64_t)llround(value), text);
    else if (plain && step > 0)
        snprintf(text, CLI_CELL, "%.*f", (int)fmax(0, ceil(-log10(step) - 1e-9)), value);
    else
        snprintf(text, CLI_CELL, "%.4g", value);
}

/* ---- axes ---- */

double cli_svg_step(double span, int most_ticks)
{
    if (!(span > 0) || !isfinite(span)) return 1;
    double raw = span / (most_ticks > 0 ? most_ticks : 1), power = pow(10, floor(log10(raw)));
    static const double steps[] = {1, 2, 5};
    for (size_t i = 0; i < 3; i++)
        if (steps[i] * power >= raw * (1 - 1e-9)) return steps[i] * power;
    return 10 * power;
}

/* The n-th round number of a log axis: 1, 2, 5, 10, 20, 50 .. */
static double round_log(int n)
{
    static const double steps[] = {1, 2, 5};
    int decade = n >= 0 ? n / 3 : -((2 - n) / 3);
    return steps[n - 3 * decade] * pow(10, decade);
}

static int round_log_below(double value)
{
    int n = 3 * (int)floor(log10(value)) + 3;
    while (round_log(n) > value * (1 + 1e-9)) n--;
    return n;
}

/* Changes any two numbers to a range that can be drawn. */
static void fix_range(cli_svg_axis *axis, int ticks)
{
    if (!isfinite(axis->least)) axis->least = 0;
    if (!isfinite(axis->most)) axis->most = axis->least;
    if (axis->log) {
        if (!(axis->most > 0)) axis->most = 1;
        if (!(axis->least > 0)) axis->least = axis->most * 1e-6;
        if (!(axis->least < axis->most)) {
            axis->least = axis->most / 2;
            axis->most *= 2;
        }
        if (axis->tight) return;
        int low = round_log_below(axis->least), high = round_log_below(axis->most);
        axis->least = round_log(low);
        axis->most = round_log(high) < axis->most * (1 - 1e-9) ? round_log(high + 1) : axis->most;
        return;
    }
    if (!(axis->least < axis->most)) { /* a single value gets a margin on both sides */
        double room = axis->least != 0 ? fabs(axis->least) * 0.1 : 1;
        axis->most = axis->least + room;
        axis->least -= room;
    }
    if (!isfinite(axis->most - axis->least)) { /* too far apart for a double */
        axis->least /= 4;
        axis->most /= 4;
    }
    if (axis->tight) return;
    double step = cli_svg_step(axis->most - axis->least, ticks);
    axis->least = floor(axis->least / step + 1e-9) * step;
    axis->most = ceil(axis->most / step - 1e-9) * step;
}

static double pixel_of(const cli_svg_axis *axis, double value, double from, double to)
{
    if (!isfinite(value) || (axis->log && !(value > 0))) return NAN;
    double share = axis->log ? log(value / axis->least) / log(axis->most / axis->least)
                             : (value - axis->least) / (axis->most - axis->least);
    return from + share * (to - from);
}

double cli_svg_x(const cli_svg *svg, double value)
{
    return pixel_of(&svg->x, value, svg->left, svg->right);
}

double cli_svg_y(const cli_svg *svg, double value)
{
    return pixel_of(&svg->y, value, svg->bottom, svg->top);
}

/* The n-th tick; false past the last. A log axis with many decades has only powers of ten, as many
 * as fit. */
static bool tick(const cli_svg_axis *axis, int ticks, int n, double *value, double *step)
{
    if (!axis->log) {
        *step = cli_svg_step(axis->most - axis->least, ticks);
        *value = (ceil(axis->least / *step - 1e-9) + n) * *step;
        return *value <= axis->most + *step * 1e-6;
    }
    double decades = log10(axis->most / axis->least);
    int apart = decades * 3 <= ticks ? 1 : 3 * (int)ceil(decades / ticks);
    int first = round_log_below(axis->least * (1 - 1e-6)) + 1;
    if (apart > 1) first += (apart - (first % apart + apart) % apart) % apart;
    *step = 0;
    *value = round_log(first + n * apart);
    return *value <= axis->most * (1 + 1e-9);
}

enum { X_TICKS = 8, Y_TICKS = 6 };

static void draw_x(const cli_svg *svg)
{
    char text[CLI_CELL];
    double value, step;
    for (int n = 0; tick(&svg->x, X_TICKS, n, &value, &step); n++) {
        double x = cli_svg_x(svg, value);
        format_value(value, step, text);
        printf("<path class=\"axis\" d=\"M%.2f %.2fv5\"/>\n", x, svg->bottom);
        cli_svg_text(x, svg->bottom + 19, NULL, "middle", text);
    }
    printf("<path class=\"axis\" d=\"M%.2f %.2fH%.2f\"/>\n", svg->left, svg->bottom, svg->right);
    if (svg->x.label)
        cli_svg_text((svg->left + svg->right) / 2, svg->bottom + 41, NULL, "middle", svg->x.label);
}

static void draw_y(const cli_svg *svg)
{
    char text[CLI_CELL];
    double value, step;
    for (int n = 0; tick(&svg->y, Y_TICKS, n, &value, &step); n++) {
        double y = cli_svg_y(svg, value);
        format_value(value, step, text);
        if (y < svg->bottom - 0.5)
            printf("<path class=\"grid\" d=\"M%.2f %.2fH%.2f\"/>\n", svg->left, y, svg->right);
        cli_svg_text(svg->left - 9, y + 4, NULL, "end", text);
    }
    if (!svg->y.label) return;
    printf("<text transform=\"translate(18 %.2f) rotate(-90)\" text-anchor=\"middle\">",
           (svg->top + svg->bottom) / 2);
    print_escaped(svg->y.label);
    puts("</text>");
}

/* The width of the longest number beside the y axis, in pixels. */
static double y_label_width(const cli_svg *svg)
{
    char text[CLI_CELL];
    double value, step;
    size_t most = 1;
    for (int n = 0; tick(&svg->y, Y_TICKS, n, &value, &step); n++) {
        format_value(value, step, text);
        most = strlen(text) > most ? strlen(text) : most;
    }
    return (double)(most * CHARACTER);
}

/* ---- the document ---- */

void cli_svg_open(cli_svg *svg)
{
    printf("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
           "viewBox=\"0 %d %d %d\" role=\"img\">\n<title>",
           svg->width, svg->height - svg->skip, svg->skip, svg->width, svg->height - svg->skip);
    print_escaped(svg->title);
    puts("</title>");
    if (svg->about) {
        fputs("<desc>", stdout);
        print_escaped(svg->about);
        puts("</desc>");
    }
    printf("<style>\n%s%s</style>\n<rect class=\"paper\" width=\"%d\" height=\"%d\"/>\n", css,
           svg->style ? svg->style : "", svg->width, svg->height);
    if (svg->plain) {
        svg->left = svg->top = 0;
        svg->right = svg->width;
        svg->bottom = svg->height;
        return;
    }
    fix_range(&svg->x, X_TICKS);
    fix_range(&svg->y, Y_TICKS);
    svg->left = (svg->y.label ? 40 : 20) + y_label_width(svg);
    svg->right = svg->width - 24;
    svg->top = svg->subtitle ? 78 : 56;
    svg->bottom = svg->height - (svg->x.label ? 58 : 34);
    cli_svg_text(24, 32, "title", "start", svg->title);
    if (svg->subtitle) cli_svg_text(24, 53, "subtitle", "start", svg->subtitle);
    draw_y(svg);
    draw_x(svg);
}

void cli_svg_close(const cli_svg *svg)
{
    (void)svg;
    puts("</svg>");
}

/* ---- data ---- */

static bool inside(double pixel, double from, double to)
{
    return pixel >= from - 0.5 && pixel <= to + 0.5; /* false for a NaN */
}

void cli_svg_bars(const cli_svg *svg, const int64_t *counts, size_t count, double first,
                  double last, const char *what)
{
    double width = (last - first) / (double)count;
    double gap = (svg->right - svg->left) / (double)count > 4 ? 1 : 0;
    for (size_t i = 0; i < count; i++) {
        double from = first + width * (double)i, to = first + width * (double)(i + 1);
        double left = cli_svg_x(svg, from), right = cli_svg_x(svg, to);
        double top = cli_svg_y(svg, (double)counts[i]);
        char text[CLI_CELL];
        if (counts[i] <= 0 || !inside(left, svg->left, svg->right) ||
            !inside(right, svg->left, svg->right) || !isfinite(top))
            continue;
        if (top > svg->bottom - 1) top = svg->bottom - 1; /* a small count stays visible */
        if (top < svg->top) top = svg->top;
        if (right - left < 1) right = left + 1;
        printf("<rect class=\"bar\" x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\">"
               "<title>%.4g to %.4g: %s ",
               left, top, fmax(right - left - gap, 0.5), svg->bottom - top, from, to,
               cli_commas(counts[i], text));
        print_escaped(what);
        puts("</title></rect>");
    }
}

void cli_svg_line(const cli_svg *svg, const char *class, const double *x, const double *y,
                  size_t count)
{
    bool down = false;
    printf("<path class=\"line %s\" d=\"", class);
    for (size_t i = 0; i < count; i++) {
        double px = cli_svg_x(svg, x[i]), py = cli_svg_y(svg, y[i]);
        bool shown = inside(px, svg->left, svg->right) && inside(py, svg->top, svg->bottom);
        if (shown) printf("%c%.2f %.2f", down ? 'L' : 'M', px, py);
        down = shown;
    }
    puts("\"/>");
}

void cli_svg_points(const cli_svg *svg, const char *class, const double *x, const double *y,
                    size_t count, double radius)
{
    printf("<g class=\"point %s\">\n", class);
    for (size_t i = 0; i < count; i++) {
        double px = cli_svg_x(svg, x[i]), py = cli_svg_y(svg, y[i]);
        if (inside(px, svg->left, svg->right) && inside(py, svg->top, svg->bottom))
            printf("<circle cx=\"%.2f\" cy=\"%.2f\" r=\"%.2f\"/>\n", px, py, radius);
    }
    puts("</g>");
}

void cli_svg_mark(const cli_svg *svg, double x, int row, const char *text)
{
    double px = cli_svg_x(svg, x), top = svg->top + 14.0 * row;
    if (!inside(px, svg->left, svg->right)) return;
    bool right =
        px > svg->right - (double)(strlen(text) * CHARACTER) - 8; /* no room on the right */
    printf("<path class=\"mark\" d=\"M%.2f %.2fV%.2f\"/>\n", px, svg->top, svg->bottom);
    cli_svg_text(px + (right ? -5 : 5), top + 10, "note halo", right ? "end" : "start", text);
}
