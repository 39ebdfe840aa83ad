/* SPDX-License-Identifier: Apache-2.0 */
/* Letters for pictures made of pixels: ASCII, as strokes, so that they can be drawn smooth at
 * any size and no font has to be found on the machine.
 */
#ifndef CLI_DRAW_MAP_FONT_H
#define CLI_DRAW_MAP_FONT_H

#include <stddef.h>

/* A stroke goes from one point to the next. In units: capitals stand from 2 to 8 above the
 * lowest tail, small letters from 2 to 6. */
typedef struct {
    double x0, y0, x1, y1;
} cli_stroke;

enum { CLI_FONT_TOP = 9, CLI_FONT_BASE = 2 };

/* Units that text takes. What is not ASCII is drawn as a question mark. */
double cli_font_width(const char *text);
/* Calls draw for each stroke of text, from x = 0 on. */
void cli_font_strokes(const char *text, void (*draw)(void *context, cli_stroke stroke),
                      void *context);

#endif
