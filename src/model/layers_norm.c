/* SPDX-License-Identifier: Apache-2.0 */
/* Norms and activations, forward and backward. Tokens are independent, but for the gradients of
 * gain and bias: tokens are cut into blocks, by their number alone; each block has sums of its
 * own, in double, and blocks are added in their order.
 */
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/room.h"
#include "base/threads.h"
#include "learn/head.h"
#include "learn/softmax.h"
#include "model/layers.h"
#include "model/real.h"

enum {
    SUMS = 16,        /* partial sums of a token */
    PIECE = 512,      /* numbers of an activation at a time */
    BLOCK = 64,       /* tokens with sums of their own, at least */
    BLOCKS_MOST = 32, /* of them */
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

/* Arrays may be the same (da and dy), but never overlap otherwise. */
#define EACH_NUMBER _Pragma("omp simd") for (size_t i = 0; i < n; i++)

/* embla_body_tanh step by step, for DEEP VECs side by side, in place: of its choices compilers make
 * branches, and a single VEC waits for its own steps most of the time. */
enum { DEEP = 4 };
#define EACH for (size_t v = 0; v < DEEP; v++)

EMBLA_BODY void tanh_vecs(float *at)
{
    const embla_vec_f32 ten = (embla_vec_f32){0} + 10.0f;
    embla_vec_f32 a[DEEP], p[DEEP], e[DEEP], r[DEEP];
    embla_whole n[DEEP];
    EACH a[v] = (embla_vec_f32)(((embla_whole *)at)[v] & 0x7fffffff);
    EACH a[v] = EMBLA_CHOOSE(a[v] < 10.0f, a[v], ten);
    EACH r[v] = a[v] * a[v];
    EACH p[v] = r[v] * -5.70498872745e-3f + 2.06390887954e-2f;
    EACH p[v] = p[v] * r[v] - 5.37397155531e-2f;
    EACH p[v] = p[v] * r[v] + 1.33314422036e-1f;
    EACH p[v] = p[v] * r[v] - 3.33332819422e-1f;
    EACH p[v] = p[v] * r[v] * a[v] + a[v];
    EACH n[v] = __builtin_convertvector((a[v] + a[v]) * 1.44269504088896341f + 0.5f, embla_whole);
    EACH e[v] = __builtin_convertvector(n[v], embla_vec_f32);
    EACH r[v] = (a[v] + a[v]) - e[v] * 0.693359375f + e[v] * 2.12194440e-4f;
    EACH e[v] = r[v] * 1.9875691500e-4f + 1.3981999507e-3f;
    EACH e[v] = e[v] * r[v] + 8.3334519073e-3f;
    EACH e[v] = e[v] * r[v] + 4.1665795894e-2f;
    EACH e[v] = e[v] * r[v] + 1.6666665459e-1f;
    EACH e[v] = e[v] * r[v] + 5.0000001201e-1f;
    EACH e[v] = e[v] * (r[v] * r[v]) + r[v] + 1.0f;
    EACH e[v] = e[v] * (embla_vec_f32)((n[v] + 127) << 23);
    EACH p[v] = EMBLA_CHOOSE(a[v] < 0.625f, p[v], 1.0f - 2.0f / (e[v] + 1.0f));
    EACH
    {
        embla_vec_f32 x = ((embla_vec_f32 *)at)[v];
        p[v] = (embla_vec_f32)((embla_whole)p[v] | ((embla_whole)x & INT32_MIN));
        ((embla_vec_f32 *)at)[v] = EMBLA_CHOOSE(x != x, x, p[v]);
    }
}

EMBLA_BODY void tanh_many_f32(float *x, size_t n)
{
    size_t i = 0;
    for (; i + DEEP * EMBLA_VEC_f32 <= n; i += DEEP * EMBLA_VEC_f32) tanh_vecs(x + i);
    for (; i < n; i++) x[i] = embla_body_tanh(x[i]);
}

EMBLA_BODY void tanh_many_f64(double *x, size_t n)
{
    for (size_t i = 0; i < n; i++) x[i] = tanh(x[i]);
}

/* e^-x of n numbers, PIECE at most. */
static inline void powers_of_less_f32(const float *x, size_t n, float *out)
{
    if (n == 0) return;
    for (size_t i = 0; i < n; i++) out[i] = -x[i];
    embla_softmax_powers(out, n, 0.0f, out);
}

static inline void powers_of_less_f64(const double *x, size_t n, double *out)
{
    for (size_t i = 0; i < n; i++) out[i] = exp(-x[i]);
}

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
        norm_rows_f64(job, first, n);
    else
        norm_rows_f32(job, first, n);
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

/* Tokens of a block: as few as make BLOCKS_MOST blocks, but BLOCK at least. */
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
        norm_back_f64(job, first, some, sums);
    else
        norm_back_f32(job, first, some, sums);
}

/* out += the blocks' sums, which are stride doubles apart. */
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
    embla_room room = {0};
    void *memory = NULL;
    if (sums && blocks * 2 * dim > STACK) {
        (void)embla_room_add(&room, blocks * 2 * dim, sizeof(double));
        EMBLA_TRY(embla_mem_new(room.bytes, "the gradients of a norm", &memory));
        sums = memory;
    } else if (sums) {
        memset(sums, 0, blocks * 2 * dim * sizeof *sums);
    }
    int team = embla_threads_for(way->threads, 4 * n * dim * embla_real_bytes(way->precision));
    if (team <= 1)
        for (size_t b = 0; b < blocks; b++) back_block(way, &job, n, b, sums);
    else {
#pragma omp parallel for num_threads(team) schedule(static)
        for (size_t b = 0; b < blocks; b++) back_block(way, &job, n, b, sums);
    }
    if (sums) add_sums(way, sums, blocks, 2 * dim, dim, dgain);
    if (sums) add_sums(way, sums + dim, blocks, 2 * dim, dim, dbias);
    embla_mem_free(memory, room.bytes);
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
    in_pieces(way, way->precision == EMBLA_GPT_F64 ? act_f64 : act_f32, &job, n * hidden);
}

void embla_activation_backward(const embla_layer_way *way, embla_activation kind, const void *a,
                               const void *up, const void *dy, size_t n, size_t hidden, void *da,
                               void *dup)
{
    act_job job = {.kind = kind, .a = a, .up = up, .dy = dy, .da = da, .dup = dup};
    in_pieces(way, way->precision == EMBLA_GPT_F64 ? act_back_f64 : act_back_f32, &job, n * hidden);
}
