/* SPDX-License-Identifier: Apache-2.0 */
/* Floats as text, for files of words and vectors: the nearest float of a decimal number,
 * and the fewest digits that give a float back (rule W4).
 *
 * Both are exact, and neither looks at the locale. A number is
 *     [+-] digits [. digits] [e [+-] digits]    or, with a sign, nan, inf or infinity,
 * letters in either case. ".5", "5." and hexadecimal numbers are no numbers here.
 */
#ifndef EMBLA_FILES_DECIMAL_H
#define EMBLA_FILES_DECIMAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The number that begins at from and ends at end or before: *out is the float nearest to
 * it, ties to even, infinity where it is too large. Returns where it ends, or NULL if no
 * number begins there; *out is then untouched. */
const uint8_t *embla_decimal_read(const uint8_t *from, const uint8_t *end, float *out);
/* Whether these bytes are one number and nothing else. */
bool embla_decimal_is(const uint8_t *bytes, size_t length);

/* The longest text that embla_decimal_write writes, "-0.000123456789". */
enum { EMBLA_DECIMAL_MOST = 15 };

/* Writes value with as few digits as read back to the same float ("0.1", "1e-7", "-0"), and
 * "nan", "inf" or "-inf". Returns how many bytes there are; no 0 follows them. */
size_t embla_decimal_write(float value, char out[EMBLA_DECIMAL_MOST]);

#endif
