/* SPDX-License-Identifier: Apache-2.0 */
/* Coordinates of a film as bytes, little-endian.
 *
 *   number after number, and for each number moment after moment:
 *   first moment   an int16: 32,000 times the number, -32,768 for none
 *   later moments  an int8: the difference from what was decoded for the moment before, in steps of
 *                  16 / 32,000. -128 means that an int16 follows instead, as in the first moment
 *
 * Differences are from what the reader has decoded, so errors do not add up: a number is never more
 * than half a step and half a unit away, 1/3,700 of half the picture.
 */
#include <math.h>

#include "base/half.h"
#include "map/film.h"

enum { FULL = 32000, STEP = 16, NONE = -32768, ESCAPE = -128 };

size_t embla_film_code_most(size_t moments, size_t count)
{
    return 3 * moments * count;
}

static int whole_of(double number)
{
    if (isnan(number)) return NONE;
    return (int)lrint(fmax(-1, fmin(1, number)) * FULL);
}

static size_t put_whole(int whole, uint8_t *out)
{
    embla_store_u16(out, (uint16_t)whole);
    return 2;
}

/* Codes a number that the reader has as *known, and updates that. */
static size_t put_change(int whole, int *known, uint8_t *out)
{
    int change = whole == NONE && *known == NONE   ? 0
                 : whole == NONE || *known == NONE ? ESCAPE
                                                   : (int)lrint((double)(whole - *known) / STEP);
    if (change > ESCAPE && change <= 127) {
        if (*known != NONE) *known += STEP * change;
        *out = (uint8_t)change;
        return 1;
    }
    *out = (uint8_t)ESCAPE;
    *known = whole;
    return 1 + put_whole(whole, out + 1);
}

size_t embla_film_encode(const double *numbers, size_t moments, size_t count, uint8_t *out)
{
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        int known = whole_of(numbers[i]);
        used += put_whole(known, out + used);
        for (size_t m = 1; m < moments; m++)
            used += put_change(whole_of(numbers[m * count + i]), &known, out + used);
    }
    return used;
}
