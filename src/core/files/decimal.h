/* SPDX-License-Identifier: Apache-2.0 */
/* Floats as text, for files of words and vectors: reads a decimal number as the nearest float,
 * and writes a float with the fewest digits that read back to it (rule W4).
 *
 * Both are exact and do not depend on the locale. A number has the form
 *     [+-] digits [. digits] [e [+-] digits]    or    [+-] nan, inf or infinity
 * with letters in either case. ".5", "5." and hexadecimal numbers are not accepted.
 */
#ifndef EMBLA_FILES_DECIMAL_H
#define EMBLA_FILES_DECIMAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads the number that begins at from; it ends at end at the latest. *out is the nearest float,
 * ties to even, or infinity if the number is too large. Returns the end of the number, or NULL if
 * no number begins there; *out is then unchanged. */
const uint8_t *embla_decimal_read(const uint8_t *from, const uint8_t *end, float *out);
/* True if these bytes are one number and nothing else. */
bool embla_decimal_is(const uint8_t *bytes, size_t length);

/* Bytes of the longest text that embla_decimal_write writes, "-0.000123456789". */
enum { EMBLA_DECIMAL_MOST = 15 };

/* Writes value with the fewest digits that read back to the same float ("0.1", "1e-7", "-0"), or
 * "nan", "inf" or "-inf". Returns the number of bytes; no 0 follows them. */
size_t embla_decimal_write(float value, char out[EMBLA_DECIMAL_MOST]);

#endif
