/* SPDX-License-Identifier: Apache-2.0 */
/* Sums rows where they are. A block of columns stays in registers while all rows pass by, so every
 * cache line of a row is read once and nothing but the result is written. Rows of other dtypes are
 * decoded piece by piece.
 *
 * A column is summed in the order of the tokens whatever the block, so each kernel set gives the
 * same bits.
 */
#include "table/row_mean.h"

#include "base/kernels.h"
#include "table/table.h"

enum {
    LANES = 16,
    BLOCK = 4 * LANES, /* columns that are summed in registers */
    AHEAD = 8          /* rows from the one that is added to the one that is prefetched */
};

/* LANES floats as the compilers know them: one register of AVX-512, two of AVX2. */
typedef float lanes __attribute__((vector_size(64), aligned(sizeof(float)), may_alias));

typedef struct {
    const embla_table *table;
    const int32_t *tokens;
    size_t count;
    bool fetch;
} rows;

embla_row_mean embla_row_mean_of(const embla_table *table, size_t dim, const double *weights)
{
    return (embla_row_mean){
        .table = table,
        .dim = dim,
        .weights = weights,
        .decode = embla_dtype_decoder(table->row.format.dtype, embla_kernels_get()->isa),
        .in_place = embla_source_in_place(&table->source),
        .fetch = (uint64_t)table->source.rows * table->source.stride > EMBLA_SMALL_TABLE};
}

/* ---- floats in place ---- */

/* Number `column` of the row of the t-th token. */
EMBLA_BODY const float *at(const rows *r, size_t t, size_t column)
{
    const char *row =
        embla_source_at(&r->table->source, embla_table_row_of(r->table, r->tokens[t]));
    return (const float *)(const void *)row + column;
}

EMBLA_BODY void sum_block(const rows *r, size_t column, float *out)
{
    lanes a = {0}, b = {0}, c = {0}, d = {0};
    for (size_t t = 0; t < r->count; t++) {
        if (r->fetch && t + AHEAD < r->count) {
            const float *later = at(r, t + AHEAD, column);
            for (size_t k = 0; k < BLOCK; k += EMBLA_LINE / sizeof(float))
                __builtin_prefetch(later + k);
        }
        const lanes *x = (const lanes *)at(r, t, column);
        a += x[0];
        b += x[1];
        c += x[2];
        d += x[3];
    }
    lanes *y = (lanes *)out;
    y[0] = a;
    y[1] = b;
    y[2] = c;
    y[3] = d;
}

EMBLA_BODY void sum_rows_body(const rows *r, size_t dim, float *out)
{
    size_t column = 0;
    for (; column + BLOCK <= dim; column += BLOCK) sum_block(r, column, out + column);
    if (column == dim) return;
    for (size_t i = column; i < dim; i++) out[i] = 0.0f;
    for (size_t t = 0; t < r->count; t++) {
        const float *x = at(r, t, 0);
        for (size_t i = column; i < dim; i++) out[i] += x[i];
    }
}
EMBLA_ISA_FUNCTION(void, sum_rows, (const rows *r, size_t dim, float *out),
                   sum_rows_body(r, dim, out);)

/* ---- other dtypes, and weights ---- */

EMBLA_BODY void add_body(const float *x, size_t n, float *sums)
{
    for (size_t i = 0; i < n; i++) sums[i] += x[i];
}
EMBLA_ISA_FUNCTION(void, add, (const float *x, size_t n, float *sums), add_body(x, n, sums);)

/* Columns of a piece: those to decode are whole blocks of the dtype, those of the result may be
 * fewer. */
typedef struct {
    size_t first, stored, used;
} piece;

static piece piece_at(const embla_row_mean *m, size_t first)
{
    size_t stored = m->table->row.format.dim - first, used = m->dim - first;
    return (piece){first, stored < EMBLA_PIECE ? stored : EMBLA_PIECE,
                   used < EMBLA_PIECE ? used : EMBLA_PIECE};
}

static void sum_floats(const embla_row_mean *m, const int32_t *tokens, size_t count, piece p,
                       float *out)
{
    float space[EMBLA_PIECE], sums[EMBLA_PIECE] = {0};
    for (size_t t = 0; t < count; t++) {
        int64_t row = embla_table_row_of(m->table, tokens[t]);
        EMBLA_PICK(add)
        (embla_source_piece(&m->table->source, m->decode, row, p.first, p.stored, space), p.used,
         sums);
    }
    for (size_t i = 0; i < p.used; i++) out[i] = sums[i];
}

static void mean_doubles(const embla_row_mean *m, const int32_t *tokens, size_t count, piece p,
                         float *out)
{
    const embla_kernels *kernels = embla_kernels_get();
    float space[EMBLA_PIECE];
    double sums[EMBLA_PIECE] = {0};
    for (size_t t = 0; t < count; t++) {
        int64_t row = embla_table_row_of(m->table, tokens[t]);
        const float *x =
            embla_source_piece(&m->table->source, m->decode, row, p.first, p.stored, space);
        kernels->accumulate(x, m->weights ? m->weights[tokens[t]] : 1.0, p.used, sums);
    }
    for (size_t i = 0; i < p.used; i++) out[i] = (float)(sums[i] / (double)count);
}

void embla_row_mean_write(const embla_row_mean *mean, const int32_t *tokens, size_t count,
                          float *out)
{
    const embla_table *table = mean->table;
    bool doubles = mean->weights || table->row.format.dtype == EMBLA_F64;
    if (!doubles && mean->in_place) {
        const rows r = {table, tokens, count, mean->fetch};
        EMBLA_PICK(sum_rows)(&r, mean->dim, out);
    } else {
        for (size_t first = 0; first < mean->dim; first += EMBLA_PIECE) {
            piece p = piece_at(mean, first);
            if (doubles)
                mean_doubles(mean, tokens, count, p, out + first);
            else
                sum_floats(mean, tokens, count, p, out + first);
        }
    }
    if (doubles) return;
    for (size_t i = 0; i < mean->dim; i++) out[i] /= (float)count;
}
