/* SPDX-License-Identifier: Apache-2.0 */
/* The only file that uses libpng. Without libpng, only PNG pictures are unsupported.
 */
#include "draw/png_out.h"

#include "core/args.h"

#ifdef EMBLA_PNG

#include <png.h>
#include <setjmp.h>
#include <stdio.h>

bool cli_png_able(void)
{
    return true;
}

/* Replaces libpng's own message; cli_png_print reports the error. */
static void fail(png_structp png, png_const_charp message)
{
    (void)message;
    png_longjmp(png, 1);
}

static void ignore(png_structp png, png_const_charp message)
{
    (void)png;
    (void)message;
}

/* On failure libpng jumps back to setjmp; no local variable changes after it. */
static bool write_png(png_structp png, png_infop info, const uint8_t *pixels, int width, int height,
                      png_textp text)
{
    if (setjmp(png_jmpbuf(png))) return false;
    png_init_io(png, stdout);
    png_set_IHDR(png, info, (png_uint_32)width, (png_uint_32)height, 8, PNG_COLOR_TYPE_RGB,
                 PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_set_text(png, info, text, 1);
    png_write_info(png, info);
    for (int y = 0; y < height; y++) png_write_row(png, pixels + (size_t)y * (size_t)width * 3);
    png_write_end(png, info);
    return true;
}

int cli_png_print(const uint8_t *pixels, int width, int height, const char *title)
{
    char key[] = "Title", value[128];
    snprintf(value, sizeof value, "%s", title);
    png_text text = {.compression = PNG_TEXT_COMPRESSION_NONE, .key = key, .text = value};
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, fail, ignore);
    png_infop info = png ? png_create_info_struct(png) : NULL;
    bool good = info && write_png(png, info, pixels, width, height, &text);
    png_destroy_write_struct(&png, &info);
    if (!good && ferror(stdout)) return CLI_DONE; /* reported by cli_out_done */
    return good ? CLI_DONE : cli_failed("libpng could not make the picture");
}

#else

bool cli_png_able(void)
{
    return false;
}

int cli_png_print(const uint8_t *pixels, int width, int height, const char *title)
{
    (void)pixels;
    (void)width;
    (void)height;
    (void)title;
    return cli_failed("this program was built without libpng; write .svg or .html instead");
}

#endif
