/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of positions as pictures for a file: as cells with some columns as waves below them, or
 * angles of rotary positions as dials.
 */
#ifndef CLI_DRAW_WAVES_H
#define CLI_DRAW_WAVES_H

#include <stdint.h>

#include "draw/sheet.h"

/* Maxima of a picture: positions and numbers of a row; positions and pairs with dials. */
enum {
    CLI_WAVES_POSITIONS = 256,
    CLI_WAVES_NUMBERS = 128,
    CLI_DIALS_WIDE = 12,
    CLI_DIALS_TALL = 8
};

typedef struct {
    const char *title, *facts, *about;
    const float *values; /* count x dim, a row for each position */
    size_t count, dim;   /* at most the maxima */
    size_t whole;        /* the dim of a row, of which the first numbers are shown */
    int64_t first;       /* the first position */
    bool waves;          /* draw columns as lines too: they are sines and cosines */
} cli_waves;

/* Angles that grow with the position. */
typedef struct {
    const char *title, *facts, *about;
    const char *const *words; /* of each position; NULL means none */
    size_t count;             /* positions */
    int64_t first;
    const size_t *pairs; /* those that are shown */
    size_t pair_count;
    const double *radians; /* that a position turns each of them */
} cli_dials;

/* These print the file to stdout. CLI_DONE, or CLI_FAILED after a message. */
int cli_waves_print(cli_sheet_kind kind, const cli_waves *waves);
int cli_dials_print(cli_sheet_kind kind, const cli_dials *dials);

#endif
