/* SPDX-License-Identifier: Apache-2.0 */
/* Pixels as a PNG file. The header has another name than libpng's, which is included by its
 * name alone.
 */
#ifndef CLI_DRAW_PNG_OUT_H
#define CLI_DRAW_PNG_OUT_H

#include <stdbool.h>
#include <stdint.h>

/* Whether this program was built with libpng. */
bool cli_png_able(void);
/* Prints width x height pixels of three bytes (red, green, blue) to stdout, title in it as
 * text. CLI_DONE, or CLI_FAILED after a sentence. */
int cli_png_print(const uint8_t *pixels, int width, int height, const char *title);

#endif
