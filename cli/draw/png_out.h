/* SPDX-License-Identifier: Apache-2.0 */
/* Prints pixels as a PNG file. This header is not called png.h, because libpng's header is.
 */
#ifndef CLI_DRAW_PNG_OUT_H
#define CLI_DRAW_PNG_OUT_H

#include <stdbool.h>
#include <stdint.h>

/* Whether the program was built with libpng. */
bool cli_png_able(void);
/* Prints width x height pixels of three bytes (red, green, blue) to stdout, with a title chunk.
 * CLI_DONE, or CLI_FAILED after a message. */
int cli_png_print(const uint8_t *pixels, int width, int height, const char *title);

#endif
