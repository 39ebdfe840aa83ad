/* SPDX-License-Identifier: Apache-2.0 */
/* The norm of all gradients together, and clipping to it.
 *
 * The sum of squares is a tree that depends on the counts alone. A leaf is LEAF numbers of a span
 * (the last leaf of a span may be shorter), summed by the kernel `dot`. Node i of level k covers
 * leaves i * 2^k .. (i+1) * 2^k - 1. Subtrees left over at the end of a span are added smallest
 * first. Sums of spans are added in the order of the spans.
 *
 * Threads compute subtrees of CHUNK leaves, and the calling thread joins them. Processes can do the
 * same: each sends the sums of its leaves, and joining these gives the bits of a single process
 * (learn/clip.h). Nothing is allocated: subtrees are computed WAVE at a time, and a tree needs one
 * number for each level.
 */
#include "learn/clip.h"

#include <math.h>

#include "base/checked.h"
#include "base/kernels.h"
#include "base/options.h"
#include "base/parallel.h"
#include "base/status.h"
#include "base/threads.h"

enum {
    LEAF = EMBLA_SQUARES_LEAF,
    CHUNK = 64,                   /* leaves of a subtree; a power of two */
    CHUNK_NUMBERS = LEAF * CHUNK, /* numbers of a subtree: 1 MiB */
    WAVE = 256,                   /* subtrees at a time */
    LEVELS = 64
};

/* ---- the tree ---- */

/* Subtrees without a neighbour yet: bit k of count is set if level k has one. */
typedef struct {
    double waiting[LEVELS];
    uint64_t count; /* nodes of the lowest level so far */
} tree;

/* Adds a node of the lowest level and carries, as adding 1 to a binary number does. */
static void tree_add(tree *t, double sum)
{
    unsigned level = 0;
    for (; (t->count >> level & 1u) != 0; level++) sum = t->waiting[level] + sum;
    t->waiting[level] = sum;
    t->count++;
}

/* Adds the remaining subtrees, smallest first; 0 for an empty tree. */
static double tree_root(const tree *t)
{
    double sum = 0.0;
    bool first = true;
    for (unsigned level = 0; level < LEVELS; level++) {
        if ((t->count >> level & 1u) == 0) continue;
        sum = first ? t->waiting[level] : t->waiting[level] + sum;
        first = false;
    }
    return sum;
}

double embla_squares_leaf(const float *values, size_t count)
{
    return embla_kernels_get()->dot(values, values, count);
}

double embla_squares_join(const double *leaves, size_t count)
{
    tree t = {.count = 0};
    for (size_t i = 0; i < count; i++) tree_add(&t, leaves[i]);
    return tree_root(&t);
}

/* ---- chunks ---- */

/* A part of a span: CHUNK_NUMBERS numbers, or the rest. */
typedef struct {
    float *values;
    size_t count;
    bool last; /* of its span */
} chunk;

typedef struct {
    const embla_span *spans;
    size_t count;
    size_t span, offset; /* where the next chunk begins */
} cursor;

/* Lists the next chunks, at most WAVE; empty spans have none. */
static size_t next_wave(cursor *c, chunk chunks[WAVE])
{
    size_t n = 0;
    while (c->span < c->count && n < WAVE) {
        const embla_span *span = &c->spans[c->span];
        size_t left = span->count - c->offset;
        size_t take = left < CHUNK_NUMBERS ? left : CHUNK_NUMBERS;
        if (take > 0) chunks[n++] = (chunk){span->values + c->offset, take, take == left};
        c->offset += take;
        if (take == left) {
            c->span++;
            c->offset = 0;
        }
    }
    return n;
}

static double chunk_sum(const chunk *c)
{
    tree t = {.count = 0};
    for (size_t i = 0; i < c->count; i += LEAF) {
        size_t n = c->count - i < LEAF ? c->count - i : LEAF;
        tree_add(&t, embla_squares_leaf(c->values + i, n));
    }
    return tree_root(&t);
}

typedef struct {
    chunk chunks[WAVE];
    double sums[WAVE]; /* of squares */
    float scale;
} wave;

static embla_status sum_chunks(void *job, size_t first, size_t end, size_t slot)
{
    wave *w = job;
    (void)slot;
    for (size_t i = first; i < end; i++) w->sums[i] = chunk_sum(&w->chunks[i]);
    return EMBLA_OK;
}

static embla_status sum_of_squares(const embla_span *spans, size_t count, int threads, double *out)
{
    cursor c = {.spans = spans, .count = count};
    tree t = {.count = 0};
    double total = 0.0;
    wave w;
    size_t n;
    while ((n = next_wave(&c, w.chunks)) > 0) {
        EMBLA_TRY(embla_share(threads, n, 1, sum_chunks, &w));
        for (size_t i = 0; i < n; i++) {
            tree_add(&t, w.sums[i]);
            if (!w.chunks[i].last) continue;
            total += tree_root(&t);
            t.count = 0;
        }
    }
    *out = total;
    return EMBLA_OK;
}

static embla_status scale_chunks(void *job, size_t first, size_t end, size_t slot)
{
    const wave *w = job;
    (void)slot;
    for (size_t i = first; i < end; i++) {
        const chunk *c = &w->chunks[i];
        embla_kernels_get()->scale(c->values, w->scale, c->count, c->values);
    }
    return EMBLA_OK;
}

static embla_status scale_all(const embla_span *spans, size_t count, float scale, int threads)
{
    cursor c = {.spans = spans, .count = count};
    wave w;
    size_t n;
    w.scale = scale;
    while ((n = next_wave(&c, w.chunks)) > 0)
        EMBLA_TRY(embla_share(threads, n, 1, scale_chunks, &w));
    return EMBLA_OK;
}

/* ---- checks and entry point ---- */

static embla_status check(const embla_span *spans, size_t count, double max_norm, int threads,
                          size_t *bytes)
{
    uint64_t numbers = 0, all = 0;
    EMBLA_TRY(embla_threads_check(threads));
    if (!isfinite(max_norm) || max_norm < 0.0)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "the maximum gradient norm is %g; it must be finite and 0 or greater",
                          max_norm);
    for (size_t i = 0; i < count; i++) {
        if (spans[i].count > 0 && !spans[i].values)
            return embla_fail(EMBLA_ERR_ARGUMENT, "spans[%zu].values is NULL, but its count is %zu",
                              i, spans[i].count);
        if (!embla_add_ok(numbers, spans[i].count, &numbers) ||
            !embla_mul_ok(numbers, sizeof(float), &all) || !embla_size_ok(all, bytes))
            return embla_fail(EMBLA_ERR_ARGUMENT,
                              "span %zu has %zu numbers: together they do not fit in memory", i,
                              spans[i].count);
    }
    return EMBLA_OK;
}

embla_status embla_clip(const embla_span *spans, size_t count, double max_norm,
                        const embla_clip_options *options, double *norm)
{
    EMBLA_TRY(embla_options_check(options));
    size_t bytes = 0;
    int threads = options ? options->threads : 0;
    EMBLA_NEED_MANY(spans, count);
    EMBLA_TRY(check(spans, count, max_norm, threads, &bytes));
    threads = embla_threads_for(threads, bytes);
    double squares, length;
    EMBLA_TRY(sum_of_squares(spans, count, threads, &squares));
    length = sqrt(squares);
    if (max_norm > 0.0 && length > max_norm && isfinite(length))
        EMBLA_TRY(scale_all(spans, count, (float)(max_norm / length), threads));
    if (norm) *norm = length;
    return EMBLA_OK;
}
