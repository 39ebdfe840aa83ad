/* SPDX-License-Identifier: Apache-2.0 */
/* The Hartley transform of columns of real numbers: out[u] = sum over x of in[x] * (cos + sin)(2 pi
 * u x / size). It is its own inverse, up to a factor of size. As in a Fourier transform, a
 * convolution with an even kernel is a product of transforms, but all numbers are real.
 *
 * Columns are transformed 16 at a time, side by side, so that a vector instruction works on many.
 * Every instruction set gives the same bits.
 */
#ifndef EMBLA_MAP_HARTLEY_H
#define EMBLA_MAP_HARTLEY_H

#include <stddef.h>

enum { EMBLA_HARTLEY_WIDE = 16, EMBLA_HARTLEY_MOST = 4096 };

/* Writes cosine and sine of 2 pi k / size for k < size / 2; size is a power of two. */
void embla_hartley_turns(size_t size, float *turns);
/* The row where row `at` of the input must be put before the transform: its bits reversed. */
size_t embla_hartley_place(size_t at, size_t size);
/* Transforms the columns of x (size x 16), whose rows are in their places. */
void embla_hartley(float *x, size_t size, const float *turns);

#endif
