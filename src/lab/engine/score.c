/* SPDX-License-Identifier: Apache-2.0 */
/* Four rows are read side by side, each a quarter of the block from the next: four streams without
 * gaps are faster than one. A dtype without a loop of its own (engine/score_loops.h) is decoded to
 * memory, EMBLA_PIECE numbers of four rows at a time, and then multiplied as f32.
 */
#include "engine/score.h"

#include <string.h>

#include "base/kernels.h"
#include "engine/score_loops.h"

enum { LANES = EMBLA_SCORE_LANES, ROWS = EMBLA_SCORE_ROWS };

typedef struct {
    const embla_score_job *job;
    embla_decode_fn *decode;
    embla_score_loop *f32,
        *own;     /* own is for the dtype as stored; NULL means that it is decoded first */
    size_t first; /* of at most EMBLA_SCORE_VECTORS vectors */
    size_t count;
} pass;

/* Adds the numbers of rows that are decoded first. */
static void sum_decoded(const pass *p, const embla_score_sums *all)
{
    const embla_row *row = p->job->rows->row;
    const size_t dim = row->format.dim;
    float space[ROWS][EMBLA_PIECE];
    for (size_t at = 0; at < dim; at += EMBLA_PIECE) {
        embla_score_sums s = *all;
        s.vectors += at;
        s.from_zero = at == 0;
        s.n = dim - at < EMBLA_PIECE ? dim - at : EMBLA_PIECE;
        for (size_t r = 0; r < s.side; r++) {
            const char *bytes = all->rows[r] + embla_dtype_bytes(row->info, at);
            p->decode(bytes, s.n, row->format.scale, EMBLA_WRITE_PLAIN, space[r]);
            s.rows[r] = (const char *)space[r];
        }
        p->f32(&s);
    }
}

/* Four floats that are added with one instruction, on every instruction set. */
typedef float four __attribute__((vector_size(4 * sizeof(float))));

/* Adds the lanes of one sum, in halves: lane j and j + 8, then j and j + 4, .. */
EMBLA_BODY float add_lanes(const float lanes[LANES])
{
    four q[LANES / 4];
    memcpy(q, lanes, sizeof q);
    q[0] = (q[0] + q[2]) + (q[1] + q[3]);
    return (q[0][0] + q[0][2]) + (q[0][1] + q[0][3]);
}

/* `side` rows of the job: at, at + apart, .. */
static void sum_rows(const pass *p, size_t at, size_t apart, size_t side)
{
    const embla_score_job *job = p->job;
    const embla_row_format *format = &job->rows->row->format;
    float lanes[EMBLA_SCORE_VECTORS * ROWS * LANES], squares[ROWS * LANES];
    const bool with_squares = job->squares && p->first == 0;
    embla_score_sums s = {.vectors = job->vectors + p->first * format->dim,
                          .n = format->dim,
                          .stride = format->dim,
                          .side = side,
                          .count = p->count,
                          .scale = format->scale,
                          .whole = job->whole,
                          .from_zero = true,
                          .lanes = lanes,
                          .squares = with_squares ? squares : NULL};
    for (size_t r = 0; r < side; r++)
        s.rows[r] = embla_source_at(job->rows, job->first + (int64_t)(at + r * apart));
    if (p->own)
        p->own(&s);
    else
        sum_decoded(p, &s);
    for (size_t r = 0; r < side; r++) {
        float *out = job->dots + p->first * job->stride + at + r * apart;
        for (size_t v = 0; v < p->count; v++)
            out[v * job->stride] = add_lanes(lanes + (v * ROWS + r) * LANES);
        if (with_squares) job->squares[at + r * apart] = add_lanes(squares + r * LANES);
    }
}

void embla_score(const embla_score_job *job)
{
    const embla_isa isa = embla_kernels_get()->isa;
    const embla_dtype dtype = job->rows->row->format.dtype;
    const size_t quarter = job->n / ROWS;
    pass p = {.job = job,
              .decode = embla_dtype_decoder(dtype, isa),
              .f32 = embla_score_loop_for(EMBLA_F32, isa),
              .own = embla_score_loop_for(dtype, isa)};
    for (; p.first < job->count; p.first += EMBLA_SCORE_VECTORS) {
        size_t left = job->count - p.first;
        p.count = left < EMBLA_SCORE_VECTORS ? left : EMBLA_SCORE_VECTORS;
        for (size_t i = 0; i < quarter; i++) sum_rows(&p, i, quarter, ROWS);
        for (size_t i = ROWS * quarter; i < job->n; i++) sum_rows(&p, i, 0, 1);
    }
}
