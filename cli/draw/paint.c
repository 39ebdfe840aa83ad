/* SPDX-License-Identifier: Apache-2.0 */
/* The only file that uses Cairo and Pango. Without them, only PNG pictures are unsupported.
 *
 * They are loaded when a picture is drawn, because linking them would add some milliseconds to
 * every start of the program (decision 010). The handle of pangocairo finds the functions of the
 * libraries it depends on, too.
 */
#include "draw/paint.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "core/args.h"
#include "core/visible.h"
#include "system/system_threads.h"

#include <pango/pangocairo.h>

#define LIBRARY "libpangocairo-1.0.so.0"

/* clang-format off */
#define FUNCTIONS(X)                                                                               \
    X(cairo_image_surface_create) X(cairo_surface_status) X(cairo_surface_destroy)                 \
    X(cairo_surface_write_to_png_stream) X(cairo_create) X(cairo_destroy) X(cairo_status)          \
    X(cairo_status_to_string) X(cairo_set_source_rgba) X(cairo_paint) X(cairo_rectangle)           \
    X(cairo_arc) X(cairo_fill) X(cairo_stroke) X(cairo_new_path) X(cairo_move_to)                  \
    X(cairo_line_to) X(cairo_curve_to) X(cairo_set_line_width) X(cairo_set_line_join) X(cairo_save)                  \
    X(cairo_restore) X(cairo_translate) X(cairo_rotate) X(cairo_font_options_create)               \
    X(cairo_font_options_destroy) X(cairo_font_options_set_antialias)                              \
    X(cairo_font_options_set_hint_metrics) X(pango_cairo_create_layout)                            \
    X(pango_cairo_context_set_font_options) X(pango_layout_get_context)                            \
    X(pango_font_description_new) X(pango_font_description_free)                                   \
    X(pango_font_description_set_family) X(pango_font_description_set_weight)                      \
    X(pango_font_description_set_absolute_size) X(pango_layout_set_font_description)               \
    X(pango_layout_set_text) X(pango_layout_get_size) X(pango_layout_get_line_readonly)            \
    X(pango_cairo_show_layout_line) X(pango_cairo_layout_line_path) X(g_object_unref)
/* clang-format on */

#define POINTER(name) __typeof__(name) *name;
static struct {
    FUNCTIONS(POINTER)
} lib;

struct cli_paint {
    cairo_surface_t *surface;
    cairo_t *cairo;
    PangoLayout *layout;
};

int cli_paint_load(void)
{
    char why[256];
    void *library = embla_system_load(LIBRARY, EMBLA_LOAD_OWN, why, sizeof why);
    if (!library)
        return cli_failed("a PNG needs Cairo and Pango, and " LIBRARY
                          " is not installed (Debian: libpangocairo-1.0-0); write .svg or .html "
                          "instead");
    const char *missing = NULL;
    void *symbol;
#define FIND(name)                                                                                 \
    symbol = embla_system_symbol(library, #name);                                                  \
    memcpy(&lib.name, &symbol, sizeof symbol); /* ISO C has no cast from an object pointer */      \
    if (!symbol) missing = #name;
    FUNCTIONS(FIND)
    if (missing) return cli_failed(LIBRARY " has no %s; write .svg or .html instead", missing);
    return CLI_DONE;
}

/* ---- the canvas ---- */

cli_paint *cli_paint_new(int width, int height, uint32_t color)
{
    cli_paint *paint = calloc(1, sizeof *paint);
    if (paint) paint->surface = lib.cairo_image_surface_create(CAIRO_FORMAT_RGB24, width, height);
    if (paint) paint->cairo = lib.cairo_create(paint->surface); /* never NULL; it has a status */
    if (!paint || lib.cairo_status(paint->cairo) != CAIRO_STATUS_SUCCESS) {
        (void)cli_failed("no memory for a picture of %d x %d pixels", width, height);
        cli_paint_free(paint);
        return NULL;
    }
    paint->layout = lib.pango_cairo_create_layout(paint->cairo);
    /* the same picture whatever the settings of the screen are, with letters at their exact place
     */
    cairo_font_options_t *options = lib.cairo_font_options_create();
    lib.cairo_font_options_set_antialias(options, CAIRO_ANTIALIAS_GRAY);
    lib.cairo_font_options_set_hint_metrics(options, CAIRO_HINT_METRICS_OFF);
    lib.pango_cairo_context_set_font_options(lib.pango_layout_get_context(paint->layout), options);
    lib.cairo_font_options_destroy(options);
    lib.cairo_set_line_join(paint->cairo, CAIRO_LINE_JOIN_ROUND);
    cli_paint_color(paint, color, 1);
    lib.cairo_paint(paint->cairo);
    return paint;
}

void cli_paint_free(cli_paint *paint)
{
    if (!paint) return;
    if (paint->layout) lib.g_object_unref(paint->layout);
    if (paint->cairo) lib.cairo_destroy(paint->cairo);
    if (paint->surface) lib.cairo_surface_destroy(paint->surface);
    free(paint);
}

/* ---- shapes ---- */

void cli_paint_color(cli_paint *paint, uint32_t color, double alpha)
{
    lib.cairo_set_source_rgba(paint->cairo, (color >> 16 & 0xff) / 255.0,
                              (color >> 8 & 0xff) / 255.0, (color & 0xff) / 255.0, alpha);
}

static void stroke(cli_paint *paint, double line)
{
    lib.cairo_set_line_width(paint->cairo, line);
    lib.cairo_stroke(paint->cairo);
}

static void add_circle(cli_paint *paint, double x, double y, double radius)
{
    lib.cairo_new_path(paint->cairo);
    lib.cairo_arc(paint->cairo, x, y, radius, 0, 6.283185307179586);
}

void cli_paint_disc(cli_paint *paint, double x, double y, double radius)
{
    add_circle(paint, x, y, radius);
    lib.cairo_fill(paint->cairo);
}

void cli_paint_ring(cli_paint *paint, double x, double y, double radius, double line)
{
    add_circle(paint, x, y, radius);
    stroke(paint, line);
}

void cli_paint_bar(cli_paint *paint, double x, double y, double width, double height)
{
    lib.cairo_rectangle(paint->cairo, x, y, width, height);
    lib.cairo_fill(paint->cairo);
}

void cli_paint_box(cli_paint *paint, double x, double y, double width, double height, double line)
{
    lib.cairo_rectangle(paint->cairo, x, y, width, height);
    stroke(paint, line);
}

void cli_paint_line(cli_paint *paint, double x0, double y0, double x1, double y1, double line)
{
    lib.cairo_new_path(paint->cairo);
    lib.cairo_move_to(paint->cairo, x0, y0);
    lib.cairo_line_to(paint->cairo, x1, y1);
    stroke(paint, line);
}

void cli_paint_curve(cli_paint *paint, const double points[8], double line)
{
    lib.cairo_new_path(paint->cairo);
    lib.cairo_move_to(paint->cairo, points[0], points[1]);
    lib.cairo_curve_to(paint->cairo, points[2], points[3], points[4], points[5], points[6],
                       points[7]);
    stroke(paint, line);
}

void cli_paint_path(cli_paint *paint, const double *points, size_t count, double scale, double line)
{
    lib.cairo_new_path(paint->cairo);
    for (size_t i = 0; i < count; i++) {
        double x = scale * points[2 * i], y = scale * points[2 * i + 1];
        if (i == 0)
            lib.cairo_move_to(paint->cairo, x, y);
        else
            lib.cairo_line_to(paint->cairo, x, y);
    }
    stroke(paint, line);
}

void cli_paint_triangle(cli_paint *paint, const double corners[6])
{
    lib.cairo_new_path(paint->cairo);
    lib.cairo_move_to(paint->cairo, corners[0], corners[1]);
    lib.cairo_line_to(paint->cairo, corners[2], corners[3]);
    lib.cairo_line_to(paint->cairo, corners[4], corners[5]);
    lib.cairo_fill(paint->cairo);
}

/* ---- text ---- */

void cli_paint_font(cli_paint *paint, double size, bool bold)
{
    PangoFontDescription *font = lib.pango_font_description_new();
    lib.pango_font_description_set_family(font, "sans-serif");
    lib.pango_font_description_set_weight(font, bold ? PANGO_WEIGHT_BOLD : PANGO_WEIGHT_NORMAL);
    lib.pango_font_description_set_absolute_size(font, size * PANGO_SCALE);
    lib.pango_layout_set_font_description(paint->layout, font);
    lib.pango_font_description_free(font);
}

/* Copies text, with U+FFFD for what cannot be printed, because Pango reports such bytes on stderr.
 * The caller frees the *bytes bytes. NULL if there is no memory. */
static char *clean(const char *text, size_t *bytes)
{
    size_t left = strlen(text);
    char *out = malloc(3 * left + 1);
    *bytes = 0;
    while (out && left > 0) {
        size_t shown = cli_printable(text, left), whole = embla_utf8_length(text, left);
        memcpy(out + *bytes, shown > 0 ? text : "\xef\xbf\xbd", shown > 0 ? shown : 3);
        *bytes += shown > 0 ? shown : 3;
        whole = whole > 0 ? whole : 1;
        text += whole;
        left -= whole;
    }
    return out;
}

static PangoLayoutLine *set_text(cli_paint *paint, const char *text)
{
    size_t bytes;
    char *shown = clean(text, &bytes);
    lib.pango_layout_set_text(paint->layout, shown ? shown : "", (int)bytes);
    free(shown);
    return lib.pango_layout_get_line_readonly(paint->layout, 0);
}

double cli_paint_width(cli_paint *paint, const char *text)
{
    int width = 0;
    (void)set_text(paint, text);
    lib.pango_layout_get_size(paint->layout, &width, NULL);
    return (double)width / PANGO_SCALE;
}

void cli_paint_text(cli_paint *paint, double x, double y, bool upward, const char *text)
{
    PangoLayoutLine *line = set_text(paint, text);
    lib.cairo_save(paint->cairo);
    lib.cairo_translate(paint->cairo, x, y);
    if (upward) lib.cairo_rotate(paint->cairo, -1.5707963267948966);
    lib.cairo_move_to(paint->cairo, 0, 0);
    lib.pango_cairo_show_layout_line(paint->cairo, line);
    lib.cairo_restore(paint->cairo);
}

void cli_paint_outline(cli_paint *paint, double x, double y, double line, const char *text)
{
    PangoLayoutLine *letters = set_text(paint, text);
    lib.cairo_new_path(paint->cairo);
    lib.cairo_move_to(paint->cairo, x, y);
    lib.pango_cairo_layout_line_path(paint->cairo, letters);
    stroke(paint, line);
}

/* ---- the file ---- */

static void put_number(uint32_t number, unsigned char out[4])
{
    for (int i = 0; i < 4; i++) out[i] = (unsigned char)(number >> (24 - 8 * i));
}

/* The CRC-32 of a PNG chunk. */
static uint32_t checksum(const unsigned char *bytes, size_t count)
{
    uint32_t crc = 0xffffffff;
    for (size_t i = 0; i < count; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
    }
    return ~crc;
}

/* Prints the title as an iTXt chunk, which Cairo cannot write: keyword, two zeros for "not
 * compressed", an empty language and an empty translation of the keyword, then UTF-8. */
static void print_title(const char *title)
{
    static const char start[] = "iTXtTitle\0\0\0\0";
    size_t length;
    char *text = clean(title, &length);
    size_t bytes = sizeof start + length;
    unsigned char number[4], *chunk = malloc(bytes);
    if (text && chunk) { /* a picture without its title is still a picture */
        memcpy(chunk, start, sizeof start);
        memcpy(chunk + sizeof start, text, length);
        put_number((uint32_t)(bytes - 4), number);
        (void)fwrite(number, 1, 4, stdout);
        (void)fwrite(chunk, 1, bytes, stdout);
        put_number(checksum(chunk, bytes), number);
        (void)fwrite(number, 1, 4, stdout);
    }
    free(chunk);
    free(text);
}

typedef struct {
    size_t written;
    const char *title;
} printed;

enum { HEADER = 33 }; /* bytes of the signature and the first chunk, IHDR */

static cairo_status_t print_bytes(void *context, const unsigned char *bytes, unsigned int count)
{
    printed *to = context;
    unsigned int first = 0;
    if (to->written < HEADER) {
        first = count < HEADER - to->written ? count : (unsigned int)(HEADER - to->written);
        to->written += first;
        (void)fwrite(bytes, 1, first, stdout);
        if (to->written == HEADER) print_title(to->title);
    }
    (void)fwrite(bytes + first, 1, count - first, stdout);
    return ferror(stdout) ? CAIRO_STATUS_WRITE_ERROR : CAIRO_STATUS_SUCCESS;
}

int cli_paint_print(cli_paint *paint, const char *title)
{
    printed to = {.title = title};
    cairo_status_t status = lib.cairo_status(paint->cairo);
    if (status == CAIRO_STATUS_SUCCESS)
        status = lib.cairo_surface_write_to_png_stream(paint->surface, print_bytes, &to);
    if (status == CAIRO_STATUS_SUCCESS || ferror(stdout))
        return CLI_DONE; /* cli_out_done reports errors of stdout */
    return cli_failed("Cairo could not make the picture: %s", lib.cairo_status_to_string(status));
}
