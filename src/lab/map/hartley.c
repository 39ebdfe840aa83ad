/* SPDX-License-Identifier: Apache-2.0 */
/* The fast Hartley transform (Bracewell 1984) by halves: the transforms E and O of the even and the
 * odd rows give
 *     H[k] = E[k] + cos(2 pi k / n) O[k] + sin(2 pi k / n) O[n/2 - k]
 * and H[k + n/2] with a minus sign. Rows k and n/2 - k use the same four numbers, so they are
 * computed together, in place.
 */
#include "map/hartley.h"

#include "base/kernels.h"
#include "base/random.h"

enum { WIDE = EMBLA_HARTLEY_WIDE };

void embla_hartley_turns(size_t size, float *turns)
{
    for (size_t k = 0; k < size / 2; k++)
        embla_turn_of((uint32_t)(((uint64_t)k << 24) / size), &turns[2 * k + 1], &turns[2 * k]);
}

size_t embla_hartley_place(size_t at, size_t size)
{
    size_t place = 0;
    for (size_t bit = 1; bit < size; bit *= 2) {
        place = 2 * place + (at & 1);
        at /= 2;
    }
    return place;
}

/* a + b and a - b. */
EMBLA_BODY void add_and_subtract(float *a, float *b)
{
    for (size_t i = 0; i < WIDE; i++) {
        float sum = a[i] + b[i], difference = a[i] - b[i];
        a[i] = sum;
        b[i] = difference;
    }
}

/* Rows k and half - k of the even part (a, b) and of the odd part (c, d). */
EMBLA_BODY void turn_rows(float *restrict a, float *restrict b, float *restrict c,
                          float *restrict d, float cosine, float sine)
{
    for (size_t i = 0; i < WIDE; i++) {
        float first = cosine * c[i] + sine * d[i], second = sine * c[i] - cosine * d[i];
        float even = a[i], other = b[i];
        a[i] = even + first;
        c[i] = even - first;
        b[i] = other + second;
        d[i] = other - second;
    }
}

EMBLA_BODY void transform_body(float *x, size_t size, const float *turns)
{
    for (size_t n = 2; n <= size; n *= 2) {
        size_t half = n / 2, step = size / n;
        for (float *part = x; part < x + size * WIDE; part += n * WIDE) {
            add_and_subtract(part, part + half * WIDE);
            if (n > 2) add_and_subtract(part + half / 2 * WIDE, part + (half + half / 2) * WIDE);
            for (size_t k = 1; k < half - k; k++)
                turn_rows(part + k * WIDE, part + (half - k) * WIDE, part + (half + k) * WIDE,
                          part + (n - k) * WIDE, turns[2 * k * step], turns[2 * k * step + 1]);
        }
    }
}
EMBLA_ISA_FUNCTION(void, transform, (float *x, size_t size, const float *turns),
                   transform_body(x, size, turns);)

void embla_hartley(float *x, size_t size, const float *turns)
{
    EMBLA_PICK(transform)(x, size, turns);
}
