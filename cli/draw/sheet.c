/* SPDX-License-Identifier: Apache-2.0 */
/* Draws on an SVG or on a canvas of Cairo.
 *
 * Colours of an SVG are CSS classes: f5 fills with colour 5, k5 draws lines in it. Shades of
 * numbers go from blue (negative) through the colour of paper to orange (positive), which people
 * with any kind of colour vision can tell apart.
 */
#include "draw/sheet.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "core/args.h"
#include "draw/paint.h"
#include "draw/svg.h"

struct cli_sheet {
    cli_paint *paint; /* NULL means SVG */
};

enum {
    PIXELS = 2,    /* of a PNG for each of the SVG */
    STYLE = 8192,  /* bytes of CSS */
    UNTITLED = 38, /* pixels that a page leaves out at the top, down to the legend */
};

/* ---- colours ---- */

static const uint32_t plain[2][CLI_SHEET_PLAIN] = {
    {0x00707d, 0x8a6100, 0x2d7a2d, 0x7a3fa8, 0x3f4fb8, 0xa8324a, 0x1b1d22, 0x5b616e, 0xdfe1e6,
     0xfbfbfa},
    {0x4fc4cf, 0xe0b94a, 0x7cc97c, 0xc79be8, 0x9aa8ff, 0xf28fa0, 0xeceef2, 0xa2a9b6, 0x31363f,
     0x121419}};
/* the most negative number, zero, the most positive number */
static const uint32_t ends[2][3] = {{0x1f5fa8, 0xf1f2f4, 0xa84300}, {0x6fb1ff, 0x23272f, 0xffa552}};

static uint32_t shade_color(int shade, bool dark)
{
    const int half = CLI_SHEET_SHADES / 2, far = shade < half ? half - shade : shade - half;
    const uint32_t zero = ends[dark][1], end = ends[dark][shade < half ? 0 : 2];
    uint32_t out = 0;
    for (int shift = 16; shift >= 0; shift -= 8) {
        int a = (int)(zero >> shift & 0xff), b = (int)(end >> shift & 0xff);
        out |= (uint32_t)(a + (b - a) * far / half) << shift;
    }
    return out;
}

/* Relative luminance, with 2 as the exponent of sRGB so that it is exact. */
static double luminance(uint32_t color)
{
    double red = (color >> 16 & 0xff) / 255.0, green = (color >> 8 & 0xff) / 255.0;
    double blue = (color & 0xff) / 255.0;
    return 0.2126 * red * red + 0.7152 * green * green + 0.0722 * blue * blue;
}

/* Black or white, whichever has more contrast. */
static uint32_t color_on(uint32_t shade)
{
    double light = luminance(shade) + 0.05;
    return 1.05 / light > light / 0.05 ? 0xffffff : 0x000000;
}

static uint32_t color_of(int color, bool dark)
{
    if (color < CLI_SHEET_PLAIN) return plain[dark][color];
    if (color < CLI_SHEET_ON_SHADE) return shade_color(color - CLI_SHEET_FIRST_SHADE, dark);
    return color_on(shade_color(color - CLI_SHEET_ON_SHADE, dark));
}

static size_t append_theme(bool dark, char *style, size_t used)
{
    for (int c = 0; c < CLI_SHEET_COLORS; c++)
        used += (size_t)snprintf(style + used, STYLE - used, ".f%d{fill:#%06x}", c,
                                 (unsigned)color_of(c, dark));
    for (int c = 0; c < CLI_SHEET_PLAIN; c++)
        used += (size_t)snprintf(style + used, STYLE - used, ".k%d{stroke:#%06x}", c,
                                 (unsigned)color_of(c, dark));
    used += (size_t)snprintf(style + used, STYLE - used, ".paper{fill:#%06x}\n",
                             (unsigned)color_of(CLI_SHEET_PAPER, dark));
    return used;
}

static void make_style(char style[STYLE])
{
    size_t used = (size_t)snprintf(style, STYLE,
                                   ".number{font-size:11px}.bold{font-size:13px;font-weight:600}"
                                   "path,rect.frame,circle{fill:none}"
                                   "path.head{stroke:none}path{stroke-linejoin:round}\n");
    used = append_theme(false, style, used);
    used += (size_t)snprintf(style + used, STYLE - used, "@media (prefers-color-scheme:dark){\n");
    used = append_theme(true, style, used);
    (void)snprintf(style + used, STYLE - used, "}\n");
}

static void use_color(cli_sheet *sheet, int color)
{
    cli_paint_color(sheet->paint, color_of(color, false), 1);
}

/* ---- shapes ---- */

/* Edges of a filled box lie on whole pixels, so that boxes side by side have no seams. */
static cli_sheet_spot pixels_of(const cli_sheet_spot *spot)
{
    double left = round(PIXELS * spot->x), top = round(PIXELS * spot->y);
    return (cli_sheet_spot){left, top, round(PIXELS * (spot->x + spot->width)) - left,
                            round(PIXELS * (spot->y + spot->height)) - top};
}

void cli_sheet_box(cli_sheet *sheet, const cli_sheet_spot *spot, int color)
{
    if (sheet->paint) {
        cli_sheet_spot p = pixels_of(spot);
        use_color(sheet, color);
        cli_paint_bar(sheet->paint, p.x, p.y, p.width, p.height);
        return;
    }
    printf("<rect class=\"f%d\" x=\"%.6g\" y=\"%.6g\" width=\"%.6g\" height=\"%.6g\"/>\n", color,
           spot->x, spot->y, spot->width, spot->height);
}

/* One path: a third of the bytes of rectangles. */
void cli_sheet_boxes(cli_sheet *sheet, const cli_sheet_spot *spots, size_t count, int color)
{
    if (count == 0) return;
    if (!sheet->paint) printf("<path class=\"f%d\" d=\"", color);
    for (size_t i = 0; i < count; i++) {
        const cli_sheet_spot *s = &spots[i];
        if (sheet->paint)
            cli_sheet_box(sheet, s, color);
        else
            printf("M%.6g %.6gh%.6gv%.6gh%.6gz", s->x, s->y, s->width, s->height, -s->width);
    }
    if (!sheet->paint) puts("\"/>");
}

void cli_sheet_frame(cli_sheet *sheet, const cli_sheet_spot *spot, int color, double line)
{
    if (sheet->paint) {
        use_color(sheet, color);
        cli_paint_box(sheet->paint, PIXELS * spot->x, PIXELS * spot->y, PIXELS * spot->width,
                      PIXELS * spot->height, PIXELS * line);
        return;
    }
    printf("<rect class=\"frame k%d\" x=\"%.6g\" y=\"%.6g\" width=\"%.6g\" height=\"%.6g\" "
           "rx=\"2\" stroke-width=\"%.4g\"/>\n",
           color, spot->x, spot->y, spot->width, spot->height, line);
}

void cli_sheet_line(cli_sheet *sheet, const double at[4], int color, double line)
{
    if (sheet->paint) {
        use_color(sheet, color);
        cli_paint_line(sheet->paint, PIXELS * at[0], PIXELS * at[1], PIXELS * at[2], PIXELS * at[3],
                       PIXELS * line);
        return;
    }
    printf("<path class=\"k%d\" stroke-width=\"%.4g\" d=\"M%.2f %.2fL%.2f %.2f\"/>\n", color, line,
           at[0], at[1], at[2], at[3]);
}

void cli_sheet_curve(cli_sheet *sheet, const double at[4], int color, double line)
{
    const double middle = (at[0] + at[2]) / 2;
    if (sheet->paint) {
        const double curve[8] = {PIXELS * at[0],  PIXELS * at[1], PIXELS * middle, PIXELS * at[1],
                                 PIXELS * middle, PIXELS * at[3], PIXELS * at[2],  PIXELS * at[3]};
        use_color(sheet, color);
        cli_paint_curve(sheet->paint, curve, PIXELS * line);
        return;
    }
    printf("<path class=\"k%d\" stroke-width=\"%.4g\" d=\"M%.2f %.2fC%.2f %.2f %.2f %.2f %.2f "
           "%.2f\"/>\n",
           color, line, at[0], at[1], middle, at[1], middle, at[3], at[2], at[3]);
}

void cli_sheet_path(cli_sheet *sheet, const double *points, size_t count, int color, double line)
{
    if (sheet->paint) {
        use_color(sheet, color);
        cli_paint_path(sheet->paint, points, count, PIXELS, PIXELS * line);
        return;
    }
    printf("<path class=\"k%d\" stroke-width=\"%.4g\" d=\"", color, line);
    for (size_t i = 0; i < count; i++)
        printf("%c%.1f %.1f", i > 0 ? 'L' : 'M', points[2 * i], points[2 * i + 1]);
    puts("\"/>");
}

void cli_sheet_arrow(cli_sheet *sheet, const double at[4], int color, double line)
{
    const double far = hypot(at[2] - at[0], at[3] - at[1]), length = fmin(12, far);
    const double half = 5 * length / 12;
    if (!(far > 0)) return;
    const double dx = (at[2] - at[0]) / far, dy = (at[3] - at[1]) / far;
    const double x = at[2] - length * dx, y = at[3] - length * dy; /* the base of the head */
    const double head[6] = {at[2],         at[3],         x - half * dy,
                            y + half * dx, x + half * dy, y - half * dx};
    cli_sheet_line(sheet, (const double[4]){at[0], at[1], x, y}, color, line);
    if (sheet->paint) {
        double corners[6];
        for (size_t i = 0; i < 6; i++) corners[i] = PIXELS * head[i];
        cli_paint_triangle(sheet->paint, corners);
        return;
    }
    printf("<path class=\"head f%d\" d=\"M%.2f %.2fL%.2f %.2fL%.2f %.2fZ\"/>\n", color, head[0],
           head[1], head[2], head[3], head[4], head[5]);
}

void cli_sheet_disc(cli_sheet *sheet, double x, double y, double radius, int color)
{
    if (sheet->paint) {
        use_color(sheet, color);
        cli_paint_disc(sheet->paint, PIXELS * x, PIXELS * y, PIXELS * radius);
        return;
    }
    printf("<circle class=\"f%d\" cx=\"%.6g\" cy=\"%.6g\" r=\"%.4g\"/>\n", color, x, y, radius);
}

void cli_sheet_ring(cli_sheet *sheet, double x, double y, double radius, int color)
{
    if (sheet->paint) {
        use_color(sheet, color);
        cli_paint_ring(sheet->paint, PIXELS * x, PIXELS * y, PIXELS * radius, PIXELS);
        return;
    }
    printf("<circle class=\"k%d\" cx=\"%.6g\" cy=\"%.6g\" r=\"%.4g\"/>\n", color, x, y, radius);
}

/* ---- text ---- */

static double size_of(cli_sheet_font font)
{
    return font == CLI_SHEET_TITLE ? 17 : font == CLI_SHEET_BOLD ? 13 : 12 - (int)font;
}

double cli_sheet_width(cli_sheet_font font, const char *text)
{
    return cli_svg_width(text, size_of(font)) * (font >= CLI_SHEET_BOLD ? 1.1 : 1);
}

static void paint_text(cli_sheet *sheet, const cli_sheet_style *style, const char *text)
{
    cli_paint_font(sheet->paint, PIXELS * size_of(style->font), style->font >= CLI_SHEET_BOLD);
    double width = cli_paint_width(sheet->paint, text), x = PIXELS * style->x;
    x -= style->anchor == CLI_SHEET_START    ? 0
         : style->anchor == CLI_SHEET_MIDDLE ? width / 2
                                             : width;
    use_color(sheet, style->color);
    cli_paint_text(sheet->paint, x, PIXELS * style->y, false, text);
}

void cli_sheet_text(cli_sheet *sheet, const cli_sheet_style *style, const char *text)
{
    static const char *const anchors[] = {"start", "middle", "end"};
    static const char *const classes[] = {"", "number ", "bold ", "title "};
    char class[32];
    if (sheet->paint) {
        paint_text(sheet, style, text);
        return;
    }
    (void)snprintf(class, sizeof class, "%sf%d", classes[style->font], style->color);
    cli_svg_text(style->x, style->y, class, anchors[style->anchor], text);
}

/* ---- files ---- */

static void draw_title(cli_sheet *sheet, const cli_sheet_page *page)
{
    const cli_sheet_style title = {CLI_SHEET_MARGIN, 34, CLI_SHEET_START, CLI_SHEET_TITLE,
                                   CLI_SHEET_INK};
    const cli_sheet_style facts = {CLI_SHEET_MARGIN, 55, CLI_SHEET_START, CLI_SHEET_LABEL,
                                   CLI_SHEET_SOFT};
    cli_sheet_text(sheet, &title, page->title);
    cli_sheet_text(sheet, &facts, page->facts);
}

/* The width of the page: at least that of its title. */
static int width_of(const cli_sheet_page *page)
{
    double title = cli_sheet_width(CLI_SHEET_TITLE, page->title);
    double facts = cli_sheet_width(CLI_SHEET_LABEL, page->facts);
    return (int)ceil(fmax(page->width, fmax(title, facts) + 2 * CLI_SHEET_MARGIN));
}

static int print_png(const cli_sheet_page *page, void (*draw)(cli_sheet *, const void *),
                     const void *context)
{
    int code = cli_paint_load(), width = width_of(page), height = (int)ceil(page->height);
    if (code != CLI_DONE) return code;
    cli_sheet sheet = {NULL};
    sheet.paint = cli_paint_new(PIXELS * width, PIXELS * height, color_of(CLI_SHEET_PAPER, false));
    if (!sheet.paint) return CLI_FAILED;
    draw_title(&sheet, page);
    draw(&sheet, context);
    code = cli_paint_print(sheet.paint, page->title);
    cli_paint_free(sheet.paint);
    return code;
}

static void print_svg(const cli_sheet_page *page, bool titled,
                      void (*draw)(cli_sheet *, const void *), const void *context)
{
    char style[STYLE];
    cli_sheet sheet = {NULL};
    make_style(style);
    cli_svg svg = {.title = page->title,
                   .about = page->about,
                   .width = width_of(page),
                   .height = (int)ceil(page->height),
                   .skip = titled ? 0 : UNTITLED,
                   .plain = true,
                   .style = style};
    cli_svg_open(&svg);
    if (titled) draw_title(&sheet, page);
    draw(&sheet, context);
    cli_svg_close(&svg);
}

/* The start of a page, up to its title; it has the look of map_page.html. */
static const char head[] =
    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
    "'unsafe-inline'; img-src data:\">\n"
    "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
    "<meta name=\"color-scheme\" content=\"light dark\">\n<link rel=\"icon\" href=\"data:,\">\n"
    "<style>\n"
    ":root{--page:#fbfbfa;--ink:#1b1d22;--soft:#5b616e;--line:#dfe1e6;color-scheme:light dark}\n"
    "@media (prefers-color-scheme:dark){:root{--page:#121419;--ink:#eceef2;--soft:#a2a9b6;"
    "--line:#31363f}}\n"
    "body{margin:0;padding:20px;background:var(--page);color:var(--ink);font:15px/1.45 system-ui,"
    "-apple-system,'Segoe UI',Roboto,'Noto Sans','Helvetica Neue',Arial,sans-serif}\n"
    "h1{font-size:19px;line-height:1.25;font-weight:650;margin:0 0 2px;overflow-wrap:anywhere}\n"
    "p,figcaption{color:var(--soft);font-size:13px;margin:0;max-width:72ch}\n"
    "figure{margin:16px 0 0}.wide{overflow-x:auto;margin:0 -20px 12px}svg{display:block}\n"
    "</style>\n<title>";

static void print_escaped(const char *text, const char *after)
{
    cli_svg_escape(text, strlen(text));
    fputs(after, stdout);
}

static void print_page(const cli_sheet_page *page, void (*draw)(cli_sheet *, const void *),
                       const void *context)
{
    fputs(head, stdout);
    print_escaped(page->title, "</title>\n</head>\n<body>\n<main>\n<h1>");
    print_escaped(page->title, "</h1>\n<p>");
    print_escaped(page->facts, "</p>\n<figure>\n<div class=\"wide\" tabindex=\"0\">\n");
    print_svg(page, false, draw, context);
    fputs("</div>\n<figcaption>", stdout);
    print_escaped(page->about, "</figcaption>\n</figure>\n</main>\n</body>\n</html>\n");
}

int cli_sheet_print(cli_sheet_kind kind, const cli_sheet_page *page,
                    void (*draw)(cli_sheet *sheet, const void *context), const void *context)
{
    if (kind == CLI_SHEET_PNG) return print_png(page, draw, context);
    if (kind == CLI_SHEET_HTML)
        print_page(page, draw, context);
    else
        print_svg(page, true, draw, context);
    return CLI_DONE;
}
