/* SPDX-License-Identifier: Apache-2.0 */
/* Norms and activations, forward and backward. Tokens are independent, except for the gradients of
 * gain and bias. For these, tokens are divided into blocks that depend only on their number. Each
 * block has its own sums in double, and blocks are added in order. */
#include <math.h>
#include <string.h>

#include "base/layout.h"
#include "base/mem.h"
#include "base/parallel.h"
#include "base/threads.h"
#include "model/layers.h"
#include "model/real.h"

enum {
    PIECE = 512,      /* numbers of an activation processed at a time */
    BLOCK = 64,       /* minimum tokens of a block */
    BLOCKS_MOST = 32, /* maximum number of blocks */
    STACK = 1024      /* doubles that need no allocation */
};

typedef struct {
    embla_norm_kind kind;
    double epsilon;
    size_t dim;
    const void *x, *gain, *bias, *dy;
    void *y, *stats, *dx;
    embla_gpt_precision precision;
    size_t n;     /* backward: tokens */
    double *sums; /* backward: of each block, 2 x dim; NULL means not wanted */
} norm_job;

typedef struct {
    embla_activation kind;
    const void *a, *up, *dy;
    void *y, *da, *dup;
} act_job;

/* Arrays may be the same (da and dy), but must not overlap otherwise. */
#define EACH_NUMBER _Pragma("omp simd") for (size_t i = 0; i < n; i++)

#define EMBLA_REAL 32
#include "model/layers_norm_body.h"
#undef EMBLA_REAL
#define EMBLA_REAL 64
#include "model/layers_norm_body.h"
#undef EMBLA_REAL

/* ---- norms ---- */

static embla_status norm_tokens(void *job, size_t first, size_t end, size_t slot)
{
    const norm_job *j = job;
    (void)slot;
    if (j->precision == EMBLA_GPT_F64)
        EMBLA_PICK(norm_rows_f64)(j, first, end - first);
    else
        EMBLA_PICK(norm_rows_f32)(j, first, end - first);
    return EMBLA_OK;
}

embla_status embla_norm_forward(const embla_layer_way *way, embla_norm_kind kind, double epsilon,
                                const void *x, size_t n, size_t dim, const void *gain,
                                const void *bias, void *y, void *stats)
{
    norm_job job = {.kind = kind,
                    .epsilon = epsilon,
                    .dim = dim,
                    .x = x,
                    .gain = gain,
                    .bias = bias,
                    .y = y,
                    .stats = stats,
                    .precision = way->precision};
    int threads = embla_threads_for(way->threads, 2 * n * dim * embla_real_bytes(way->precision));
    return embla_share(threads, n, 0, norm_tokens, &job);
}

/* Tokens of a block: few enough for BLOCKS_MOST blocks, but at least BLOCK. */
static size_t block_of(size_t n)
{
    size_t block = n / BLOCKS_MOST + (n % BLOCKS_MOST > 0);
    return block < BLOCK ? BLOCK : block;
}

static embla_status back_blocks(void *job, size_t first, size_t end, size_t slot)
{
    const norm_job *j = job;
    size_t size = block_of(j->n);
    (void)slot;
    for (size_t block = first; block < end; block++) {
        size_t from = block * size, some = j->n - from < size ? j->n - from : size;
        double *sums = j->sums ? j->sums + block * 2 * j->dim : NULL;
        if (j->precision == EMBLA_GPT_F64)
            EMBLA_PICK(norm_back_f64)(j, from, some, sums);
        else
            EMBLA_PICK(norm_back_f32)(j, from, some, sums);
    }
    return EMBLA_OK;
}

/* Adds the sums of the blocks, which are stride doubles apart, to out. */
static void add_sums(const embla_layer_way *way, const double *sums, size_t blocks, size_t stride,
                     size_t dim, void *out)
{
    for (size_t i = 0; out && i < dim; i++) {
        double sum = 0.0;
        for (size_t b = 0; b < blocks; b++) sum += sums[b * stride + i];
        if (way->precision == EMBLA_GPT_F64)
            ((double *)out)[i] += sum;
        else
            ((float *)out)[i] = (float)((double)((float *)out)[i] + sum);
    }
}

embla_status embla_norm_backward(const embla_layer_way *way, embla_norm_kind kind, const void *x,
                                 const void *stats, size_t n, size_t dim, const void *gain,
                                 const void *dy, void *dx, void *dgain, void *dbias)
{
    norm_job job = {.kind = kind,
                    .dim = dim,
                    .x = x,
                    .gain = gain,
                    .dy = dy,
                    .stats = (void *)(uintptr_t)stats,
                    .dx = dx,
                    .precision = way->precision,
                    .n = n};
    size_t size = block_of(n), blocks = n / size + (n % size > 0);
    double stack[STACK], *sums = dgain || dbias ? stack : NULL;
    embla_layout layout = {0};
    embla_scratch_use use = {0};
    if (sums && blocks * 2 * dim > STACK) {
        (void)embla_layout_add(&layout, blocks * 2 * dim, sizeof(double));
        EMBLA_TRY(embla_scratch_begin(way->scratch, layout.bytes, "the gradients of a norm", &use));
        sums = use.memory;
    }
    if (sums) memset(sums, 0, blocks * 2 * dim * sizeof *sums);
    job.sums = sums;
    int threads = embla_threads_for(way->threads, 4 * n * dim * embla_real_bytes(way->precision));
    embla_status status = embla_share(threads, blocks, 0, back_blocks, &job);
    if (status == EMBLA_OK && sums) {
        add_sums(way, sums, blocks, 2 * dim, dim, dgain);
        add_sums(way, sums + dim, blocks, 2 * dim, dim, dbias);
    }
    embla_scratch_end(&use);
    return status;
}

/* ---- activations ---- */

typedef void act_fn(const act_job *job, size_t first, size_t n);

typedef struct {
    act_fn *f;
    const act_job *job;
    size_t n;
} pieces_job;

static embla_status run_pieces(void *job, size_t first, size_t end, size_t slot)
{
    const pieces_job *p = job;
    (void)slot;
    for (size_t i = first * PIECE; i < p->n && i < end * PIECE; i += PIECE)
        p->f(p->job, i, p->n - i < PIECE ? p->n - i : PIECE);
    return EMBLA_OK;
}

static embla_status in_pieces(const embla_layer_way *way, act_fn *f, const act_job *job, size_t n)
{
    int threads = embla_threads_for(way->threads, 4 * n * embla_real_bytes(way->precision));
    return embla_share(threads, n / PIECE + (n % PIECE > 0), 0, run_pieces,
                       &(pieces_job){f, job, n});
}

embla_status embla_activation_forward(const embla_layer_way *way, embla_activation kind,
                                      const void *a, const void *up, size_t n, size_t hidden,
                                      void *y)
{
    act_job job = {.kind = kind, .a = a, .up = up, .y = y};
    return in_pieces(way, EMBLA_PICK(way->precision == EMBLA_GPT_F64 ? act_f64 : act_f32), &job,
                     n * hidden);
}

embla_status embla_activation_backward(const embla_layer_way *way, embla_activation kind,
                                       const void *a, const void *up, const void *dy, size_t n,
                                       size_t hidden, void *da, void *dup)
{
    act_job job = {.kind = kind, .a = a, .up = up, .dy = dy, .da = da, .dup = dup};
    return in_pieces(way, EMBLA_PICK(way->precision == EMBLA_GPT_F64 ? act_back_f64 : act_back_f32),
                     &job, n * hidden);
}
