/* SPDX-License-Identifier: Apache-2.0 */
/* Optimizer steps on all rows, or on the rows that a batch touched.
 *
 * One thread updates a row, from front to back, and no row depends on another, so the result does
 * not depend on how rows are shared among threads. The arithmetic is in learn/steps.c.
 *
 * With catch_up, a row stores the number of the step it has reached, and the optimizer stores a few
 * numbers (embla_moment, 12 bytes) of each step that some row still has to make. When a row is
 * touched, it first makes its missed steps, while it is in the cache, with the arithmetic of a
 * dense step: so the bits are those of dense steps. Moments that all rows have passed are deleted.
 *
 * A table that is not f32 is updated in an f32 copy (the master), because bf16 would round small
 * steps away. Every row that changes there is encoded into the table at once.
 */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/hash.h"
#include "base/kernels.h"
#include "base/mem.h"
#include "base/options.h"
#include "base/parallel.h"
#include "base/status.h"
#include "base/threads.h"
#include "embla_learn.h"
#include "learn/frozen.h"
#include "learn/steps.h"
#include "table/access.h"

enum {
    STATES_MOST = 3,
    TILE = 65536,     /* numbers of one piece of work in a dense step: 256 KiB of each array */
    SHARE_LEAST = 64, /* minimum rows of one piece of work in a step of some rows */
    AHEAD = 768,      /* numbers prefetched ahead in a dense step; not a multiple of a page, so that
                         arrays do not share sets of the first-level cache */
    HISTORY_LEAST = 64
};
#define STEPS_MOST ((int64_t)1 << 53) /* the largest count that a double holds exactly */

typedef struct {
    embla_optim_state seen; /* as the caller gets it */
    size_t bytes;
} state;

struct embla_optim {
    embla_table *table;
    const embla_row_source *source; /* the rows of the table */
    int64_t rows;
    size_t dim;
    int threads;
    embla_rule rule;
    embla_frozen_set frozen;
    state states[STATES_MOST];
    size_t state_count;
    float *a, *b;  /* states of the kind (steps.h); NULL means none */
    float *master; /* rows x dim; NULL means that the table's own rows are updated */
    int64_t steps; /* made */
    /* for catch_up, if a step changes rows without a gradient; otherwise NULL */
    int64_t *reached; /* steps that each row has made */
    size_t reached_bytes;
    embla_moment *history; /* of steps forgotten, forgotten + 1, .. (from 0) */
    size_t history_room;
    int64_t forgotten;
};

static const char *const names[] = {"sgd", "adagrad", "adagrad-rowwise", "adamw"};
enum { KINDS = sizeof names / sizeof names[0] };

const char *embla_optim_name(embla_optim_kind kind)
{
    return (unsigned)kind < KINDS ? names[kind] : NULL;
}

/* ---- creation ---- */

static embla_status check_share(const char *what, double value, bool zero_is_fine)
{
    bool fine = value < 1.0 && (zero_is_fine ? value >= 0.0 : value > 0.0);
    if (!fine) /* NaN is not fine either */
        return embla_fail(EMBLA_ERR_ARGUMENT, "%s is %g; it must be %s and below 1", what, value,
                          zero_is_fine ? "0 or greater" : "above 0");
    return EMBLA_OK;
}

static embla_status check_options(const embla_optim_options *o)
{
    EMBLA_TRY(embla_threads_check(o->threads));
    if ((unsigned)o->kind >= KINDS)
        return embla_fail(EMBLA_ERR_ARGUMENT, "unknown optimizer kind %d; kinds are 0 to %d",
                          (int)o->kind, KINDS - 1);
    EMBLA_TRY(check_share("momentum", o->momentum, true));
    EMBLA_TRY(check_share("beta1", o->beta1, true));
    EMBLA_TRY(check_share("beta2", o->beta2, true));
    if (o->momentum != 0.0 && o->kind != EMBLA_OPTIM_SGD)
        return embla_fail(EMBLA_ERR_ARGUMENT, "momentum is %g; %s has none, only sgd does",
                          o->momentum, names[o->kind]);
    if (o->nesterov && o->momentum == 0.0)
        return embla_fail(EMBLA_ERR_ARGUMENT, "nesterov needs a momentum above 0; it is %g",
                          o->momentum);
    if (o->epsilon != 0.0 && !((float)o->epsilon > 0.0f && (float)o->epsilon <= FLT_MAX))
        return embla_fail(EMBLA_ERR_ARGUMENT, "epsilon is %g; it must be above 0 and fit in an f32",
                          o->epsilon);
    if (!(o->decay >= 0.0) || !isfinite(o->decay))
        return embla_fail(EMBLA_ERR_ARGUMENT, "decay is %g; it must be finite and 0 or greater",
                          o->decay);
    return EMBLA_OK;
}

static embla_status check_table(const embla_table *table)
{
    EMBLA_TRY(embla_table_check_writable(table));
    const embla_dtype dtype = embla_table_dtype(table);
    if (dtype != EMBLA_F32 && dtype != EMBLA_BF16 && dtype != EMBLA_F16)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "a table of %s cannot be trained; supported dtypes: f32, bf16, f16",
                          embla_dtype_name(dtype));
    return EMBLA_OK;
}

/* Adds a state of rows x dim zeros. */
static embla_status add_state(embla_optim *o, const char *name, size_t dim, float **out)
{
    state *s = &o->states[o->state_count];
    int64_t rows = o->rows;
    uint64_t numbers, bytes;
    void *memory = NULL;
    if (!embla_mul_ok((uint64_t)rows, dim, &numbers) ||
        !embla_mul_ok(numbers, sizeof(float), &bytes) || !embla_size_ok(bytes, &s->bytes))
        return embla_fail(EMBLA_ERR_MEMORY,
                          "no memory for the %s of %" PRId64 " rows of %zu numbers", name, rows,
                          dim);
    EMBLA_TRY(embla_mem_new(s->bytes, "the state of an optimizer", &memory));
    *out = memory;
    s->seen = (embla_optim_state){.name = name, .values = memory, .rows = rows, .dim = dim};
    o->state_count++;
    return EMBLA_OK;
}

static embla_status decode_rows(void *job, size_t first, size_t end, size_t slot)
{
    const embla_optim *o = job;
    embla_decode_fn *decode =
        embla_dtype_decoder(o->source->row->format.dtype, embla_kernels_get()->isa);
    (void)slot;
    for (size_t row = first; row < end; row++)
        embla_source_decode(o->source, decode, (int64_t)row, o->master + row * o->dim);
    return EMBLA_OK;
}

static embla_status add_master(embla_optim *o)
{
    EMBLA_TRY(embla_source_check(o->source));
    EMBLA_TRY(add_state(o, "master", o->dim, &o->master));
    int threads = embla_threads_for(o->threads, o->states[o->state_count - 1].bytes);
    EMBLA_TRY(embla_share(threads, (size_t)o->rows, 0, decode_rows, o));
    return embla_source_check(o->source);
}

/* If a gradient of zeros changes nothing, there is nothing to catch up. */
static embla_status add_reached(embla_optim *o)
{
    bool moves = o->rule.kind == EMBLA_STEP_MOMENTUM || o->rule.kind == EMBLA_STEP_NESTEROV ||
                 o->rule.kind == EMBLA_STEP_ADAMW;
    uint64_t bytes;
    void *memory = NULL;
    if (!moves && o->rule.decay == 0.0) return EMBLA_OK;
    if (!embla_mul_ok((uint64_t)o->rows, sizeof *o->reached, &bytes) ||
        !embla_size_ok(bytes, &o->reached_bytes))
        return embla_fail(EMBLA_ERR_MEMORY, "no memory for the steps of %" PRId64 " rows", o->rows);
    EMBLA_TRY(embla_mem_new(o->reached_bytes, "the steps of rows", &memory));
    o->reached = memory;
    return EMBLA_OK;
}

static embla_status fill(embla_optim *o, const embla_optim_options *options)
{
    size_t dim = o->dim;
    EMBLA_TRY(embla_frozen_copy(&options->frozen, o->rows, &o->frozen));
    switch (o->rule.kind) {
    case EMBLA_STEP_MOMENTUM:
    case EMBLA_STEP_NESTEROV:
        EMBLA_TRY(add_state(o, "momentum", dim, &o->a));
        break;
    case EMBLA_STEP_ADAGRAD:
        EMBLA_TRY(add_state(o, "squares", dim, &o->a));
        break;
    case EMBLA_STEP_ROWWISE:
        EMBLA_TRY(add_state(o, "squares", 1, &o->a));
        break;
    case EMBLA_STEP_ADAMW:
        EMBLA_TRY(add_state(o, "mean", dim, &o->a));
        EMBLA_TRY(add_state(o, "squares", dim, &o->b));
        break;
    default:
        break;
    }
    if (!embla_source_in_place(o->source)) EMBLA_TRY(add_master(o));
    if (options->catch_up) EMBLA_TRY(add_reached(o));
    return EMBLA_OK;
}

embla_status embla_optim_new(embla_table *table, const embla_optim_options *options,
                             embla_optim **out)
{
    EMBLA_TRY(embla_options_check(options));
    const embla_optim_options defaults = {0};
    void *memory = NULL;
    if (!options) options = &defaults;
    EMBLA_NEED(table);
    EMBLA_NEED(out);
    EMBLA_TRY(check_table(table));
    EMBLA_TRY(check_options(options));
    EMBLA_TRY(embla_mem_new(sizeof(embla_optim), "an optimizer", &memory));
    embla_optim *o = memory;
    o->table = table;
    o->source = embla_table_source(table);
    o->rows = embla_table_rows(table);
    o->dim = embla_table_dim(table);
    o->threads = options->threads;
    o->rule = embla_rule_of(options);
    embla_status status = fill(o, options);
    if (status != EMBLA_OK) {
        embla_optim_free(o);
        return status;
    }
    *out = o;
    return EMBLA_OK;
}

void embla_optim_free(embla_optim *o)
{
    if (!o) return;
    for (size_t i = 0; i < o->state_count; i++)
        embla_mem_free(o->states[i].seen.values, o->states[i].bytes);
    embla_mem_free(o->reached, o->reached_bytes);
    embla_mem_free(o->history, o->history_room * sizeof *o->history);
    embla_frozen_free(&o->frozen);
    embla_mem_free(o, sizeof *o);
}

/* ---- the numbers of a step, and their history ---- */

static embla_status next_moment(const embla_optim *o, double rate, embla_moment *out)
{
    int64_t step = o->steps + 1;
    if (!(rate >= 0.0) || !isfinite(rate))
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "the rate of a step is %g; it must be finite and 0 or greater", rate);
    if (step > STEPS_MOST)
        return embla_fail(EMBLA_ERR_ARGUMENT, "step %" PRId64 " of at most %" PRId64, step,
                          STEPS_MOST);
    if (!embla_moment_of(&o->rule, step, rate, out))
        return embla_fail(EMBLA_ERR_ARGUMENT, "rate %g and decay %g of a step do not fit in an f32",
                          rate, o->rule.decay);
    return EMBLA_OK;
}

/* The fewest steps that any trainable row has made. */
static int64_t oldest(const embla_optim *o)
{
    int64_t least = o->steps;
    for (int64_t row = 0; row < o->rows; row++)
        if (o->reached[row] < least && !embla_frozen_has(&o->frozen, row)) least = o->reached[row];
    return least;
}

/* Makes room in the history for one more step. All rows are checked only when it is full. */
static embla_status make_room(embla_optim *o)
{
    size_t used = (size_t)(o->steps - o->forgotten);
    uint64_t room, bytes;
    size_t unused;
    void *memory = NULL;
    if (!o->reached || used < o->history_room) return EMBLA_OK;
    int64_t least = oldest(o);
    size_t passed = (size_t)(least - o->forgotten);
    if (passed > 0 && passed >= used / 2) {
        memmove(o->history, o->history + passed, (used - passed) * sizeof *o->history);
        o->forgotten = least;
        return EMBLA_OK;
    }
    if (!embla_mul_ok(o->history_room, 2, &room) ||
        !embla_mul_ok(room, sizeof *o->history, &bytes) || !embla_size_ok(bytes, &unused))
        return embla_fail(EMBLA_ERR_MEMORY, "no memory for the rates of %zu steps", used);
    if (room < HISTORY_LEAST) room = HISTORY_LEAST;
    EMBLA_TRY(embla_mem_new((size_t)room * sizeof *o->history, "the rates of steps", &memory));
    if (used > 0) memcpy(memory, o->history, used * sizeof *o->history);
    embla_mem_free(o->history, o->history_room * sizeof *o->history);
    o->history = memory;
    o->history_room = (size_t)room;
    return EMBLA_OK;
}

/* Marks all rows as up to date, so that the history is empty. */
static void forget(embla_optim *o)
{
    if (!o->reached) return;
    for (int64_t row = 0; row < o->rows; row++) o->reached[row] = o->steps;
    o->forgotten = o->steps;
}

static bool any_behind(const embla_optim *o)
{
    return o->reached && o->forgotten < o->steps;
}

/* ---- rows ---- */

/* What the threads of one call share. */
typedef struct {
    const embla_optim *o;
    embla_steps loops;
    char *data;                 /* row 0 of the table */
    embla_encode_fn *encode;    /* encoder of the table, if there is a master */
    const embla_moment *moment; /* numbers of the step; NULL means that rows only catch up */
    const float *gradients;     /* of all rows, or of those in the list; NULL means none */
    int64_t tile;               /* rows of one piece of work, if all rows are updated */
    const int64_t *rows;        /* a list of `count` rows */
    size_t count;
    uint64_t owners; /* of rows that may be listed many times */
} work;

static work work_of(const embla_optim *o, const embla_moment *moment, const float *gradients)
{
    embla_isa isa = embla_kernels_get()->isa;
    work k = {.o = o, .data = embla_table_data(o->table), .moment = moment, .gradients = gradients};
    k.loops = embla_steps_of(o->rule.kind, isa);
    if (o->master) k.encode = embla_dtype_encoder(o->source->row->format.dtype, isa);
    return k;
}

static float *weights_of(const work *k, int64_t row)
{
    const embla_optim *o = k->o;
    if (o->master) return o->master + (size_t)row * o->dim;
    return (float *)(void *)(k->data + (size_t)row * o->source->stride);
}

/* The state of a row; a rowwise state has one number for each row. */
static float *state_of(const embla_optim *o, float *values, int64_t row)
{
    size_t dim = o->rule.kind == EMBLA_STEP_ROWWISE ? 1 : o->dim;
    return values ? values + (size_t)row * dim : NULL;
}

static embla_numbers numbers_of(const work *k, int64_t row, int64_t rows)
{
    const embla_optim *o = k->o;
    return (embla_numbers){.w = weights_of(k, row),
                           .a = state_of(o, o->a, row),
                           .b = state_of(o, o->b, row),
                           .n = (size_t)rows * o->dim};
}

/* Prefetches the lines of this row while those of x are updated. */
static void fetch_row(const work *k, int64_t row, const float *g, embla_numbers *x)
{
    const embla_optim *o = k->o;
    x->next_w = weights_of(k, row);
    x->next_a = state_of(o, o->a, row);
    x->next_b = state_of(o, o->b, row);
    x->next_g = g;
}

static void encode_rows(const work *k, int64_t row, const embla_numbers *x)
{
    const embla_row_source *to = k->o->source;
    if (k->encode) k->encode(x->w, x->n, to->row->format.scale, k->data + (size_t)row * to->stride);
}

/* Updates one row: missed steps, then the step. It is not frozen, and this thread owns it. */
static void do_row(const work *k, int64_t row, embla_numbers *x)
{
    const embla_optim *o = k->o;
    if (o->reached) {
        size_t missed = (size_t)(o->steps - o->reached[row]);
        if (missed == 0 && !k->moment) return;
        if (missed > 0)
            k->loops.replay(&o->rule, o->history + (o->reached[row] - o->forgotten), missed, x);
        o->reached[row] = o->steps + (k->moment ? 1 : 0);
    }
    if (k->moment) k->loops.step(&o->rule, k->moment, x);
    encode_rows(k, row, x);
}

/* ---- all rows ---- */

/* Rows that are contiguous in all arrays are updated as one long row. */
static void do_rows(const work *k, int64_t row, int64_t rows)
{
    const embla_optim *o = k->o;
    size_t at = (size_t)row * o->dim, all = (size_t)o->rows * o->dim;
    embla_numbers x = numbers_of(k, row, rows);
    x.g = k->gradients + at;
    if (all - at >= x.n + AHEAD) {
        x.next_w = x.w + AHEAD;
        x.next_a = x.a ? x.a + AHEAD : NULL;
        x.next_b = x.b ? x.b + AHEAD : NULL;
        x.next_g = x.g + AHEAD;
    }
    k->loops.step(&o->rule, k->moment, &x);
    encode_rows(k, row, &x);
}

static bool side_by_side(const embla_optim *o)
{
    return o->source->stride == o->source->row->bytes && o->rule.kind != EMBLA_STEP_ROWWISE &&
           !any_behind(o);
}

static void do_tile(const work *k, int64_t first, int64_t end)
{
    const embla_optim *o = k->o;
    bool joined = side_by_side(o);
    for (int64_t row = first; row < end;) {
        int64_t stop = row + 1;
        if (embla_frozen_has(&o->frozen, row)) {
            row++;
            continue;
        }
        if (joined) {
            while (stop < end && !embla_frozen_has(&o->frozen, stop)) stop++;
            do_rows(k, row, stop - row);
        } else {
            embla_numbers x = numbers_of(k, row, 1);
            if (k->gradients) x.g = k->gradients + (size_t)row * o->dim;
            if (k->gradients && stop < end) fetch_row(k, stop, x.g + o->dim, &x);
            do_row(k, row, &x);
        }
        row = stop;
    }
}

/* Bytes read and written in memory for each number. */
static size_t bytes_of(const embla_optim *o, uint64_t numbers)
{
    size_t streams = o->rule.kind == EMBLA_STEP_ROWWISE ? 3 : o->b ? 7 : o->a ? 5 : 3;
    uint64_t bytes;
    return embla_mul_ok(numbers, streams * sizeof(float), &bytes) ? (size_t)bytes : SIZE_MAX;
}

static embla_status do_tiles(void *job, size_t first, size_t end, size_t slot)
{
    const work *k = job;
    int64_t rows = k->o->rows;
    (void)slot;
    for (size_t i = first; i < end; i++) {
        int64_t from = (int64_t)i * k->tile, stop = from + k->tile;
        do_tile(k, from, stop < rows ? stop : rows);
    }
    return EMBLA_OK;
}

static embla_status do_all(work *k)
{
    const embla_optim *o = k->o;
    int64_t rows = o->rows, dim = (int64_t)o->dim;
    int threads = embla_threads_for(o->threads, bytes_of(o, (uint64_t)rows * (uint64_t)dim));
    k->tile = dim < TILE ? TILE / dim : 1;
    return embla_share(threads, (size_t)((rows + k->tile - 1) / k->tile), 1, do_tiles, k);
}

/* A loop fails only when all its rows are done. So its step counts in any case. */
embla_status embla_optim_step(embla_optim *optim, double rate, const float *gradient)
{
    embla_moment moment;
    EMBLA_NEED(optim);
    EMBLA_NEED(gradient);
    EMBLA_TRY(next_moment(optim, rate, &moment));
    work k = work_of(optim, &moment, gradient);
    embla_status status = do_all(&k);
    optim->steps++;
    forget(optim);
    return status;
}

/* ---- some rows ---- */

/* Updates rows first .. end-1 of the list. The row after them is prefetched too, because it usually
 * belongs to this thread. */
static embla_status do_some(void *job, size_t first, size_t end, size_t slot)
{
    const work *k = job;
    const embla_optim *o = k->o;
    size_t dim = o->dim;
    (void)slot;
    for (size_t i = first; i < end; i++) {
        int64_t row = k->rows[i];
        if (embla_frozen_has(&o->frozen, row)) continue;
        embla_numbers x = numbers_of(k, row, 1);
        x.g = k->gradients + i * dim;
        if (i + 1 < k->count) fetch_row(k, k->rows[i + 1], x.g + dim, &x);
        do_row(k, row, &x);
    }
    return EMBLA_OK;
}

/* Rows of one piece of work: many, so that few rows come without a prefetch; but several pieces for
 * each thread, and short ones when rows catch up, because some rows have missed many steps and
 * others none. */
static size_t share_of(const embla_optim *o, size_t count, int threads)
{
    size_t share = count / (4 * (size_t)threads);
    return share < SHARE_LEAST || any_behind(o) ? SHARE_LEAST : share;
}

embla_status embla_optim_step_rows(embla_optim *optim, double rate, const int64_t *rows,
                                   size_t count, const float *gradients)
{
    embla_moment moment;
    EMBLA_NEED(optim);
    EMBLA_TRY(next_moment(optim, rate, &moment));
    EMBLA_NEED_MANY(rows, count);
    EMBLA_NEED_MANY(gradients, count);
    EMBLA_TRY(embla_table_check_ascending(optim->table, rows, count));
    EMBLA_TRY(make_room(optim));
    work k = work_of(optim, &moment, gradients);
    k.rows = rows;
    k.count = count;
    int threads = embla_threads_for(optim->threads, bytes_of(optim, (uint64_t)count * optim->dim));
    embla_status status = embla_share(threads, count, share_of(optim, count, threads), do_some, &k);
    if (optim->reached) optim->history[optim->steps - optim->forgotten] = moment;
    optim->steps++;
    return status;
}

/* ---- catching up ---- */

/* A row may be listed many times: it has one owner. */
static embla_status catch_up_owned(void *job, size_t first, size_t end, size_t slot)
{
    const work *k = job;
    (void)slot;
    for (size_t i = 0; i < k->count; i++) {
        int64_t row = k->rows[i];
        uint64_t owner = ((uint64_t)row * EMBLA_GOLDEN >> 40) % k->owners;
        if (owner < first || owner >= end || embla_frozen_has(&k->o->frozen, row)) continue;
        embla_numbers x = numbers_of(k, row, 1);
        do_row(k, row, &x);
    }
    return EMBLA_OK;
}

embla_status embla_optim_catch_up(embla_optim *optim, const int64_t *rows, size_t count)
{
    EMBLA_NEED(optim);
    if (rows) EMBLA_TRY(embla_table_check_rows(optim->table, rows, count));
    if (!any_behind(optim)) return EMBLA_OK;
    work k = work_of(optim, NULL, NULL);
    if (!rows) {
        embla_status status = do_all(&k);
        forget(optim);
        return status;
    }
    int threads = embla_threads_for(optim->threads, bytes_of(optim, (uint64_t)count * optim->dim));
    k.rows = rows;
    k.count = count;
    k.owners = (uint64_t)threads;
    return embla_share(threads, (size_t)threads, 0, catch_up_owned, &k);
}

/* ---- states ---- */

int64_t embla_optim_steps(const embla_optim *optim)
{
    return optim ? optim->steps : 0;
}

embla_status embla_optim_set_steps(embla_optim *optim, int64_t steps)
{
    EMBLA_NEED(optim);
    if (steps < 0 || steps > STEPS_MOST)
        return embla_fail(EMBLA_ERR_ARGUMENT, "steps is %" PRId64 "; it must be from 0 to %" PRId64,
                          steps, STEPS_MOST);
    int64_t least = any_behind(optim) ? oldest(optim) : optim->steps;
    if (least < optim->steps)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "steps cannot be set to %" PRId64 ": a row has made only %" PRId64
                          " of %" PRId64 "; call embla_optim_catch_up first",
                          steps, least, optim->steps);
    optim->steps = steps;
    forget(optim);
    return EMBLA_OK;
}

embla_status embla_optim_state_at(embla_optim *optim, size_t n, embla_optim_state *out)
{
    EMBLA_NEED(optim);
    EMBLA_NEED(out);
    if (n >= optim->state_count)
        return embla_fail(EMBLA_ERR_RANGE, "state %zu does not exist; there are %zu", n,
                          optim->state_count);
    EMBLA_TRY(embla_optim_catch_up(optim, NULL, 0));
    *out = optim->states[n].seen;
    return EMBLA_OK;
}
