/* SPDX-License-Identifier: Apache-2.0 */
/* Random initial rows. Every number depends only on (seed, row, column), so threads can share rows
 * in any way. */
#include <math.h>

#include "base/kernels.h"
#include "base/options.h"
#include "base/parallel.h"
#include "base/status.h"
#include "base/threads.h"
#include "table/table.h"

#define LARGEST_SPREAD 0x1p124f /* normal numbers reach 5.77 spreads, and must stay finite */

/* A call, checked. */
typedef struct {
    const embla_table *table;
    const embla_table_part *part; /* NULL means a table of its own */
    embla_random_fn *fill;
    embla_encode_fn *encode;
    uint64_t seed;
    float spread;
} drawing;

/* Fills a row in pieces: random floats, then encoded. number is the row's number in the draws. */
static void fill_row(const drawing *d, size_t row, int64_t number)
{
    const embla_table *table = d->table;
    const size_t dim = table->row.format.dim;
    char *bytes = table->writable + row * table->source.stride;
    float numbers[EMBLA_PIECE];
    for (size_t first = 0; first < dim; first += EMBLA_PIECE) {
        size_t n = dim - first < EMBLA_PIECE ? dim - first : EMBLA_PIECE;
        d->fill(d->seed, (uint64_t)number, first, n, d->spread, numbers);
        d->encode(numbers, n, table->row.format.scale,
                  bytes + embla_dtype_bytes(table->row.info, first));
    }
}

static embla_status fill_rows(void *job, size_t first, size_t end, size_t slot)
{
    const drawing *d = job;
    (void)slot;
    for (size_t row = first; row < end; row++) {
        int64_t number = d->part ? d->part->number(d->part->owner, (int64_t)row) : (int64_t)row;
        if (number >= 0) fill_row(d, row, number);
    }
    return EMBLA_OK;
}

embla_status embla_table_init(embla_table *table, const embla_init_options *options)
{
    return embla_table_init_part(table, options, NULL);
}

embla_status embla_table_init_part(embla_table *table, const embla_init_options *options,
                                   const embla_table_part *part)
{
    EMBLA_TRY(embla_options_check(options));
    const embla_init_options defaults = {0};
    if (!options) options = &defaults;
    EMBLA_TRY(embla_table_check_writable(table));
    EMBLA_TRY(embla_dtype_check_writes(table->row.format.dtype));
    EMBLA_TRY(embla_threads_check(options->threads));
    if (!(options->spread >= 0.0f && options->spread <= LARGEST_SPREAD))
        return embla_fail(EMBLA_ERR_ARGUMENT, "spread is %g; it must be from 0 to %g",
                          (double)options->spread, (double)LARGEST_SPREAD);
    if (options->kind != EMBLA_INIT_NORMAL && options->kind != EMBLA_INIT_XAVIER)
        return embla_fail(EMBLA_ERR_ARGUMENT, "unknown init kind %d; kinds are 0 and 1",
                          (int)options->kind);

    const embla_kernels *kernels = embla_kernels_get();
    bool normal = options->kind == EMBLA_INIT_NORMAL;
    double dim = (double)table->row.format.dim,
           both = (double)(part ? part->rows : table->source.rows) + dim;
    float spread = options->spread;
    if (spread == 0.0f) spread = (float)(normal ? 1.0 / sqrt(dim) : sqrt(2.0 / both));
    const drawing d = {.table = table,
                       .part = part,
                       .fill = normal ? kernels->normal : kernels->uniform,
                       .encode = embla_dtype_encoder(table->row.format.dtype, kernels->isa),
                       .seed = options->seed,
                       .spread = spread};
    size_t bytes = (size_t)table->source.rows *
                   table->row.bytes; /* cannot overflow: checked when the table was created */
    return embla_share(embla_threads_for(options->threads, bytes), (size_t)table->source.rows, 0,
                       fill_rows, &d);
}
