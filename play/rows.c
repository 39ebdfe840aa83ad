/* SPDX-License-Identifier: Apache-2.0 */
/* A large table is in the page as i8, with a second tensor `scales`: the factor of each row, which
 * is a NaN for a row that had a NaN or an infinity.
 */
#include "rows.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "answer.h"

/* Whether the file has a scale for each of the rows. */
static bool has_scales(const embla_checkpoint *checkpoint, const embla_table *table)
{
    embla_tensor found;
    return embla_table_dtype(table) == EMBLA_I8 &&
           embla_checkpoint_find(checkpoint, "scales", &found) == EMBLA_OK &&
           found.dtype == EMBLA_F32 && found.rank == 1 && found.shape[0] == embla_table_rows(table);
}

static embla_status decode_row(const embla_table *stored, int64_t row, float scale, float *out)
{
    const size_t dim = embla_table_dim(stored);
    for (size_t i = 0; i < dim; i++) out[i] = NAN;
    const void *bytes = embla_table_row(stored, row);
    return bytes && isfinite(scale) ? embla_dtype_decode(EMBLA_I8, bytes, dim, scale, out)
                                    : EMBLA_OK;
}

static embla_status decode(const embla_checkpoint *checkpoint, const embla_table *stored,
                           float *scales, embla_table *out)
{
    const int64_t rows = embla_table_rows(stored);
    float *numbers = embla_table_data(out);
    embla_status status =
        embla_checkpoint_read(checkpoint, "scales", 0, (size_t)rows * sizeof *scales, scales);
    for (int64_t row = 0; row < rows && status == EMBLA_OK; row++)
        status =
            decode_row(stored, row, scales[row], numbers + (size_t)row * embla_table_dim(stored));
    return status;
}

embla_status rows_open(const embla_checkpoint *checkpoint, embla_table **out)
{
    embla_table *stored = NULL, *table = NULL;
    embla_status status = embla_table_open(checkpoint, NULL, NULL, &stored);
    if (status != EMBLA_OK || !has_scales(checkpoint, stored)) {
        *out = stored;
        return status;
    }
    float *scales = malloc((size_t)embla_table_rows(stored) * sizeof *scales);
    status =
        embla_table_new(EMBLA_F32, embla_table_rows(stored), embla_table_dim(stored), NULL, &table);
    if (status == EMBLA_OK && !scales) status = answer_no_memory();
    if (status == EMBLA_OK) status = decode(checkpoint, stored, scales, table);
    free(scales);
    embla_table_free(stored);
    if (status == EMBLA_OK)
        *out = table;
    else
        embla_table_free(table);
    return status;
}
