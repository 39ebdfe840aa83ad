/* SPDX-License-Identifier: Apache-2.0 */
/* Norms and activations, forward and backward. Tokens are independent, except for the gradients of
 * gain and bias. For these, tokens are divided into blocks that depend only on their number. Each
 * block has its own sums in double, and blocks are added in order. */
#include <math.h>
#include <string.h>

#include "base/layout.h"
#include "base/mem.h"
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

static void norm_tokens(const embla_layer_way *way, const norm_job *job, size_t first, size_t n)
{
    if (way->precision == EMBLA_GPT_F64)
        EMBLA_PICK(norm_rows_f64)(job, first, n);
    else
        EMBLA_PICK(norm_rows_f32)(job, first, n);
}

void embla_norm_forward(const embla_layer_way *way, embla_norm_kind kind, double epsilon,
                        const void *x, size_t n, size_t dim, const void *gain, const void *bias,
                        void *y, void *stats)
{
    norm_job job = {.kind = kind,
                    .epsilon = epsilon,
                    .dim = dim,
                    .x = x,
                    .gain = gain,
                    .bias = bias,
                    .y = y,
                    .stats = stats};
    int team = embla_threads_for(way->threads, 2 * n * dim * embla_real_bytes(way->precision));
    if (team <= 1) {
        norm_tokens(way, &job, 0, n);
        return;
    }
#pragma omp parallel for num_threads(team) schedule(static)
    for (size_t t = 0; t < n; t++) norm_tokens(way, &job, t, 1);
}

/* Tokens of a block: few enough for BLOCKS_MOST blocks, but at least BLOCK. */
static size_t block_of(size_t n)
{
    size_t block = n / BLOCKS_MOST + (n % BLOCKS_MOST > 0);
    return block < BLOCK ? BLOCK : block;
}

static void back_block(const embla_layer_way *way, const norm_job *job, size_t n, size_t block,
                       double *sums)
{
    size_t size = block_of(n), first = block * size, some = n - first < size ? n - first : size;
    if (sums) sums += block * 2 * job->dim;
    if (way->precision == EMBLA_GPT_F64)
        EMBLA_PICK(norm_back_f64)(job, first, some, sums);
    else
        EMBLA_PICK(norm_back_f32)(job, first, some, sums);
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
                    .dx = dx};
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
    int team = embla_threads_for(way->threads, 4 * n * dim * embla_real_bytes(way->precision));
    if (team <= 1)
        for (size_t b = 0; b < blocks; b++) back_block(way, &job, n, b, sums);
    else {
#pragma omp parallel for num_threads(team) schedule(static)
        for (size_t b = 0; b < blocks; b++) back_block(way, &job, n, b, sums);
    }
    if (sums) add_sums(way, sums, blocks, 2 * dim, dim, dgain);
    if (sums) add_sums(way, sums + dim, blocks, 2 * dim, dim, dbias);
    embla_scratch_end(&use);
    return EMBLA_OK;
}

/* ---- activations ---- */

typedef void act_fn(const act_job *job, size_t first, size_t n);

static void in_pieces(const embla_layer_way *way, act_fn *f, const act_job *job, size_t n)
{
    int team = embla_threads_for(way->threads, 4 * n * embla_real_bytes(way->precision));
    if (team <= 1) {
        for (size_t i = 0; i < n; i += PIECE) f(job, i, n - i < PIECE ? n - i : PIECE);
        return;
    }
#pragma omp parallel for num_threads(team) schedule(static)
    for (size_t i = 0; i < n; i += PIECE) f(job, i, n - i < PIECE ? n - i : PIECE);
}

void embla_activation_forward(const embla_layer_way *way, embla_activation kind, const void *a,
                              const void *up, size_t n, size_t hidden, void *y)
{
    act_job job = {.kind = kind, .a = a, .up = up, .y = y};
    in_pieces(way, EMBLA_PICK(way->precision == EMBLA_GPT_F64 ? act_f64 : act_f32), &job,
              n * hidden);
}

void embla_activation_backward(const embla_layer_way *way, embla_activation kind, const void *a,
                               const void *up, const void *dy, size_t n, size_t hidden, void *da,
                               void *dup)
{
    act_job job = {.kind = kind, .a = a, .up = up, .dy = dy, .da = da, .dup = dup};
    in_pieces(way, EMBLA_PICK(way->precision == EMBLA_GPT_F64 ? act_back_f64 : act_back_f32), &job,
              n * hidden);
}
