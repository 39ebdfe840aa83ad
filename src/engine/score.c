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

/* Adds the numbers from column `first` on, decoded. The end of a row that is not a multiple of
 * LANES is padded with zeros. */
static void sum_decoded(const pass *p, size_t first, const embla_score_sums *all)
{
    const embla_stored *stored = p->job->rows;
    float space[ROWS][EMBLA_PIECE], ends[EMBLA_SCORE_VECTORS][LANES];
    for (size_t at = first; at < stored->dim; at += EMBLA_PIECE) {
        size_t n = stored->dim - at < EMBLA_PIECE ? stored->dim - at : EMBLA_PIECE;
        size_t whole = n / LANES * LANES, rest = n - whole;
        embla_score_sums s = *all;
        s.vectors += at;
        s.n = whole;
        for (size_t r = 0; r < s.side; r++) {
            const char *bytes = all->rows[r] + embla_dtype_bytes(stored->info, at);
            p->decode(bytes, n, stored->scale, EMBLA_WRITE_PLAIN, space[r]);
            if (rest > 0) memset(space[r] + n, 0, (LANES - rest) * sizeof space[r][0]);
            s.rows[r] = (const char *)space[r];
        }
        p->f32(&s);
        if (rest == 0) continue;
        memset(ends, 0, sizeof ends);
        for (size_t v = 0; v < p->count; v++)
            memcpy(ends[v], s.vectors + v * s.stride + whole, rest * sizeof ends[v][0]);
        for (size_t r = 0; r < s.side; r++) s.rows[r] = (const char *)(space[r] + whole);
        s.vectors = ends[0];
        s.stride = s.n = LANES;
        p->f32(&s);
    }
}

static float add_lanes(float lanes[LANES])
{
    for (size_t half = LANES / 2; half > 0; half /= 2)
        for (size_t j = 0; j < half; j++) lanes[j] += lanes[j + half];
    return lanes[0];
}

/* `side` rows of the job: at, at + apart, .. */
static void sum_rows(const pass *p, size_t at, size_t apart, size_t side)
{
    const embla_score_job *job = p->job;
    const embla_stored *stored = job->rows;
    float lanes[EMBLA_SCORE_VECTORS * ROWS * LANES], squares[ROWS * LANES];
    const bool with_squares = job->squares && p->first == 0;
    size_t whole = p->own ? stored->dim / LANES * LANES : 0;
    embla_score_sums s = {.vectors = job->vectors + p->first * stored->dim,
                          .n = whole,
                          .stride = stored->dim,
                          .side = side,
                          .count = p->count,
                          .scale = stored->scale,
                          .whole = job->whole,
                          .lanes = lanes,
                          .squares = with_squares ? squares : NULL};
    memset(lanes, 0, p->count * ROWS * LANES * sizeof lanes[0]);
    if (with_squares) memset(squares, 0, sizeof squares);
    for (size_t r = 0; r < side; r++)
        s.rows[r] = stored->data + ((size_t)job->first + at + r * apart) * stored->stride;
    if (whole > 0) p->own(&s);
    if (whole < stored->dim) sum_decoded(p, whole, &s);
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
    const size_t quarter = job->n / ROWS;
    pass p = {.job = job,
              .decode = embla_dtype_decoder(job->rows->dtype, isa),
              .f32 = embla_score_loop_for(EMBLA_F32, isa),
              .own = embla_score_loop_for(job->rows->dtype, isa)};
    for (; p.first < job->count; p.first += EMBLA_SCORE_VECTORS) {
        size_t left = job->count - p.first;
        p.count = left < EMBLA_SCORE_VECTORS ? left : EMBLA_SCORE_VECTORS;
        for (size_t i = 0; i < quarter; i++) sum_rows(&p, i, quarter, ROWS);
        for (size_t i = ROWS * quarter; i < job->n; i++) sum_rows(&p, i, 0, 1);
    }
}
