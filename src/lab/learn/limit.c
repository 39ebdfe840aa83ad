/* SPDX-License-Identifier: Apache-2.0 */
/* Limits the norm of rows, in any dtype.
 *
 * A row is decoded in pieces, so nothing is allocated: once to compute its norm and, if that is too
 * large, once more to scale and encode the row. Rows are independent, so threads can share them in
 * any way.
 */
#include <math.h>
#include <string.h>

#include "base/kernels.h"
#include "base/options.h"
#include "base/status.h"
#include "base/threads.h"
#include "embla_learn.h"
#include "table/table.h"

typedef struct {
    embla_table *table;
    const embla_kernels *kernels;
    embla_decode_fn *decode;
    embla_encode_fn *encode;
    double most;
} job;

static size_t piece_length(const embla_table *table, size_t first)
{
    return table->dim - first < EMBLA_PIECE ? table->dim - first : EMBLA_PIECE;
}

/* The sum of squares, piece by piece in order. */
static double row_norm(const job *j, int64_t row)
{
    float space[EMBLA_PIECE];
    double sum = 0.0;
    for (size_t first = 0; first < j->table->dim; first += EMBLA_PIECE) {
        size_t n = piece_length(j->table, first);
        const float *x = embla_table_piece(j->table, j->decode, row, first, n, space);
        sum += j->kernels->dot(x, x, n);
    }
    return sqrt(sum);
}

static void scale_row(const job *j, int64_t row, double factor)
{
    const embla_table *table = j->table;
    float space[EMBLA_PIECE], scaled[EMBLA_PIECE];
    for (size_t first = 0; first < table->dim; first += EMBLA_PIECE) {
        size_t n = piece_length(table, first);
        const float *x = embla_table_piece(table, j->decode, row, first, n, space);
        for (size_t i = 0; i < n; i++) scaled[i] = (float)((double)x[i] * factor);
        j->encode(scaled, n, table->scale,
                  table->writable + (size_t)row * table->row_stride +
                      embla_dtype_bytes(table->info, first));
    }
}

embla_status embla_table_limit_norm(embla_table *table, const int64_t *rows, size_t count,
                                    float max_norm, const embla_limit_norm_options *options)
{
    EMBLA_TRY(embla_options_check(options));
    int threads = options ? options->threads : 0;
    EMBLA_TRY(embla_table_check_writable(table));
    EMBLA_TRY(embla_dtype_check_writes(table->dtype));
    EMBLA_TRY(embla_threads_check(threads));
    if (!(max_norm > 0.0f))
        return embla_fail(EMBLA_ERR_ARGUMENT, "the maximum norm of a row is %g; it must be above 0",
                          (double)max_norm);
    if (!rows) count = (size_t)table->rows;
    if (rows) EMBLA_TRY(embla_table_check_ascending(table, rows, count));
    EMBLA_TRY(embla_table_check_file(table));
    job j = {.table = table, .kernels = embla_kernels_get(), .most = (double)max_norm};
    j.decode = embla_dtype_decoder(table->dtype, j.kernels->isa);
    j.encode = embla_dtype_encoder(table->dtype, j.kernels->isa);
    threads = embla_threads_for(threads, count * table->row_bytes);
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
    for (size_t i = 0; i < count; i++) {
        int64_t row = rows ? rows[i] : (int64_t)i;
        double norm = row_norm(&j, row);
        if (isfinite(norm) && norm > j.most) scale_row(&j, row, j.most / norm);
    }
    return embla_table_check_file(table);
}
