/* SPDX-License-Identifier: Apache-2.0 */
/* A stroke font of ASCII letters for PNG pictures. It scales to any size and needs no font file.
 */
#ifndef CLI_DRAW_MAP_FONT_H
#define CLI_DRAW_MAP_FONT_H

#include <stddef.h>

/* A line between two points, in font units. y is 0 at the lowest descender; capitals are from 2 to
 * 8, small letters from 2 to 6. */
typedef struct {
    double x0, y0, x1, y1;
} cli_stroke;

enum { CLI_FONT_TOP = 9, CLI_FONT_BASE = 2 };

/* The width of text in font units. Characters that are not ASCII become question marks. */
double cli_font_width(const char *text);
/* Calls draw for each stroke of text, starting at x = 0. */
void cli_font_strokes(const char *text, void (*draw)(void *context, cli_stroke stroke),
                      void *context);

#endif
