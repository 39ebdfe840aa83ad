/* SPDX-License-Identifier: Apache-2.0 */
/* Tables whose communities are known: rows around a few directions, row i around direction i %
 * blobs.
 */
#ifndef EMBLA_TESTS_BLOBS_H
#define EMBLA_TESTS_BLOBS_H

#include "check.h"

static inline embla_table *blobs_table(int64_t rows, size_t dim, int64_t blobs, float spread)
{
    embla_table *table = check_zeros(EMBLA_F32, rows, dim);
    float *to = embla_table_data(table);
    size_t stride = embla_table_row_stride(table) / sizeof *to;
    for (int64_t row = 0; row < rows; row++) {
        uint64_t centre = (uint64_t)(row % blobs) + 1000, seed = (uint64_t)row + 5000000;
        for (size_t i = 0; i < dim; i++)
            to[(size_t)row * stride + i] = check_unit(&centre) + spread * check_unit(&seed);
    }
    return table;
}

#endif
