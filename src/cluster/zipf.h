/* SPDX-License-Identifier: Apache-2.0 */
/* Row numbers as frequent as words: row i (from 0) has a probability proportional to
 * (i + 1)^-exponent. Exponent 0 is uniform, 1 is Zipf's law.
 *
 * Sums over many rows are integrals, so a table of 10^12 rows costs no more than a small one.
 */
#ifndef EMBLA_CLUSTER_ZIPF_H
#define EMBLA_CLUSTER_ZIPF_H

#include <stdint.h>

typedef struct {
    double rows, exponent;
    double sum;               /* of i^-exponent over all rows, i from 1 */
    double first, last, near; /* of draws: the range of the integral, and a quick acceptance */
} embla_zipf;

/* rows is at least 1, exponent at least 0. */
void embla_zipf_set(embla_zipf *zipf, int64_t rows, double exponent);
/* The expected number of different rows among `draws` row numbers. */
double embla_zipf_unique(const embla_zipf *zipf, double draws);
/* A row number. state is any number; it changes with every call. */
int64_t embla_zipf_draw(const embla_zipf *zipf, uint64_t *state);

#endif
