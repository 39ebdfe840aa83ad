/* SPDX-License-Identifier: Apache-2.0 */
/* Adaptive softmax: the head predicts a frequent token, or a cluster of rare tokens; the cluster
 * predicts one of its tokens. The probability of a rare token is the product of both.
 *
 * Every target has a term in the head. Targets of a cluster are gathered in the order of their
 * positions, projected to the cluster's short rows, and have a second term there. The projection is
 * a product like the other two. So there are three operations: gather a chunk of tokens, multiply
 * (learn/lanes.h), and turn a token's logits into its loss and gradients.
 */
#include <math.h>
#include <string.h>

#include "base/hash.h"
#include "base/layout.h"
#include "base/mem.h"
#include "base/options.h"
#include "base/threads.h"
#include "learn/lanes.h"
#include "learn/sampled.h"
#include "learn/softmax.h"
#include "table/table.h"

/* ---- the tables ---- */

struct embla_adaptive {
    size_t dim, clusters;
    size_t bytes;         /* size of this struct */
    int64_t *begins;      /* clusters + 1: cluster i has tokens begins[i] .. begins[i+1]-1 */
    embla_table **tables; /* 1 + 2 * clusters */
};

static embla_status check_new(int64_t rows, size_t dim, const embla_adaptive_options *options)
{
    if (rows < 1 || rows > EMBLA_ROWS_MOST || dim < 1 || dim > EMBLA_DIM_MOST)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "an adaptive softmax of %" PRId64 " tokens and %zu numbers: 1 to %" PRId64
                          " tokens and 1 to %zu numbers are supported",
                          rows, dim, EMBLA_ROWS_MOST, EMBLA_DIM_MOST);
    if (options->cutoff_count > 0 && !options->cutoffs)
        return embla_fail(EMBLA_ERR_ARGUMENT, "%zu cutoffs, but cutoffs is NULL",
                          options->cutoff_count);
    if (options->divide != 0 && !(options->divide >= 1 && isfinite(options->divide)))
        return embla_fail(EMBLA_ERR_ARGUMENT, "the divisor of rows is %g; it must be at least 1",
                          options->divide);
    for (size_t i = 0; i < options->cutoff_count; i++) {
        int64_t least = i > 0 ? options->cutoffs[i - 1] + 1 : 1;
        if (options->cutoffs[i] < least || options->cutoffs[i] > rows - 1)
            return embla_fail(EMBLA_ERR_ARGUMENT,
                              "cutoff %zu is %" PRId64 "; it must be from %" PRId64 " to %" PRId64,
                              i, options->cutoffs[i], least, rows - 1);
    }
    return EMBLA_OK;
}

static embla_status new_table(embla_adaptive *made, size_t n, int64_t rows, size_t dim,
                              uint64_t seed)
{
    /* each table has its own seed, far from those of a neighbouring seed */
    embla_init_options init = {.seed = seed + n * EMBLA_GOLDEN};
    EMBLA_TRY(embla_table_new(EMBLA_F32, rows, dim, NULL, &made->tables[n]));
    return embla_table_init(made->tables[n], &init);
}

static embla_status new_tables(embla_adaptive *made, const embla_adaptive_options *options)
{
    double divide = options->divide == 0 ? 4 : options->divide;
    EMBLA_TRY(
        new_table(made, 0, made->begins[0] + (int64_t)made->clusters, made->dim, options->seed));
    for (size_t i = 0; i < made->clusters; i++) {
        double width = (double)made->dim / pow(divide, (double)(i + 1));
        size_t narrow = width >= 1 ? (size_t)width : 1;
        int64_t tokens = made->begins[i + 1] - made->begins[i];
        EMBLA_TRY(new_table(made, 2 * i + 1, (int64_t)narrow, made->dim, options->seed));
        EMBLA_TRY(new_table(made, 2 * i + 2, tokens, narrow, options->seed));
    }
    return EMBLA_OK;
}

embla_status embla_adaptive_new(int64_t rows, size_t dim, const embla_adaptive_options *options,
                                embla_adaptive **out)
{
    EMBLA_TRY(embla_options_check(options));
    const embla_adaptive_options defaults = {0};
    embla_layout layout = {0};
    void *memory;
    if (!out) return embla_fail(EMBLA_ERR_ARGUMENT, "embla_adaptive_new: out is NULL");
    if (!options) options = &defaults;
    EMBLA_TRY(check_new(rows, dim, options));
    size_t clusters = options->cutoff_count; /* less than rows, so nothing below overflows */
    (void)embla_layout_add(&layout, 1, sizeof **out);
    size_t begins = embla_layout_add(&layout, clusters + 1, sizeof(int64_t));
    size_t tables = embla_layout_add(&layout, 2 * clusters + 1, sizeof(embla_table *));
    EMBLA_TRY(embla_mem_new(layout.bytes, "an adaptive softmax", &memory));
    embla_adaptive *made = memory;
    *made = (embla_adaptive){.dim = dim, .clusters = clusters, .bytes = layout.bytes};
    made->begins = (int64_t *)(void *)((char *)memory + begins);
    made->tables = (embla_table **)(void *)((char *)memory + tables);
    for (size_t i = 0; i < clusters; i++) made->begins[i] = options->cutoffs[i];
    made->begins[clusters] = rows;
    embla_status status = new_tables(made, options);
    if (status != EMBLA_OK) {
        embla_adaptive_free(made);
        return status;
    }
    *out = made;
    return EMBLA_OK;
}

void embla_adaptive_free(embla_adaptive *adaptive)
{
    if (!adaptive) return;
    for (size_t n = 0; n <= 2 * adaptive->clusters; n++) embla_table_free(adaptive->tables[n]);
    embla_mem_free(adaptive, adaptive->bytes);
}

embla_table *embla_adaptive_table(embla_adaptive *adaptive, size_t n)
{
    return adaptive && n <= 2 * adaptive->clusters ? adaptive->tables[n] : NULL;
}

/* ---- the loss ---- */

typedef struct {
    const embla_adaptive *adaptive;
    const float *hidden;
    const int32_t *targets; /* NULL means log-probabilities are wanted */
    embla_loss_options options;
    float *hidden_gradient;  /* NULL: not wanted */
    float *const *gradients; /* gradients of the tables; NULL means not wanted */
    float *out;              /* tokens x rows log-probabilities */
    float step;              /* factor of each target's gradient */
    size_t *at, counted;     /* positions of the counted targets */
    size_t *members;         /* counted targets (indices into at): all, then by cluster */
    double *losses;          /* one for each counted target */
    uint8_t *right;
    /* of a chunk: vectors, their projections, gradients of both, logits, parts */
    float *x, *narrow, *dx, *dnarrow, *logits, *parts;
} pass;

/* Part 0 is the head, part n is cluster n - 1. */
typedef struct {
    size_t n;
    int64_t first; /* its first token */
    embla_lanes rows, projection;
    size_t chunk;
} stage;

static float *gradient_of(const pass *p, size_t table)
{
    return p->gradients ? p->gradients[table] : NULL;
}

static embla_lanes lanes_of(const pass *p, size_t table)
{
    const embla_table *t = p->adaptive->tables[table];
    return (embla_lanes){.rows = (const float *)(const void *)t->data,
                         .n = (size_t)t->rows,
                         .dim = t->dim,
                         .stride = t->dim,
                         .gradient = gradient_of(p, table),
                         .threads = p->options.threads};
}

static stage stage_of(const pass *p, size_t n)
{
    stage made = {.n = n, .first = n > 0 ? p->adaptive->begins[n - 1] : 0};
    made.rows = lanes_of(p, 2 * n);
    made.rows.logits = p->logits;
    made.chunk = embla_lanes_chunk(made.rows.n, made.rows.dim);
    if (p->hidden_gradient) made.rows.parts = p->parts;
    if (n == 0) return made;
    made.projection = lanes_of(p, 2 * n - 1);
    made.projection.logits = p->narrow;
    made.projection.parts = made.rows.parts;
    if (made.projection.gradient) made.rows.parts = p->parts;
    size_t chunk = embla_lanes_chunk(made.projection.n, made.projection.dim);
    if (chunk < made.chunk) made.chunk = chunk;
    return made;
}

/* The cluster of a token outside the head. */
static size_t cluster_of(const embla_adaptive *adaptive, int64_t token)
{
    size_t low = 0, high = adaptive->clusters; /* begins[low] <= token < begins[high] */
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        *(token < adaptive->begins[middle] ? &high : &low) = middle;
    }
    return low;
}

/* The row of the part that belongs to a target. */
static size_t row_of(const pass *p, const stage *s, int64_t target)
{
    int64_t shared = p->adaptive->begins[0];
    if (s->n == 0 && target >= shared) return (size_t)shared + cluster_of(p->adaptive, target);
    return (size_t)(target - s->first);
}

/* The logarithm of the sum of exponentials, in double. */
static double log_sum_of(const float *logits, size_t n)
{
    float base = embla_softmax_max(logits, n);
    if (!isfinite(base)) return (double)base;
    return (double)base + log(embla_softmax_sum(logits, n, base));
}

/* Turns one token's logits into log-probabilities. The head's result for cluster i is stored in the
 * slot of the cluster's first token until it is needed. */
static void to_log_probabilities(const pass *p, const stage *s, size_t k, const float *logits)
{
    const int64_t *begins = p->adaptive->begins;
    size_t clusters = p->adaptive->clusters, own = s->n == 0 ? (size_t)begins[0] : s->rows.n;
    float *out = p->out + k * (size_t)begins[clusters], *to = out + s->first;
    double log_sum = log_sum_of(logits, s->rows.n), base = s->n == 0 ? 0 : (double)to[0];
    for (size_t j = 0; j < own; j++) to[j] = (float)((double)logits[j] - log_sum + base);
    for (size_t i = 0; s->n == 0 && i < clusters; i++)
        out[begins[i]] = (float)((double)logits[own + i] - log_sum);
}

/* Turns one token's logits into its loss, and the logits into gradients in place. */
static void to_loss(const pass *p, const stage *s, size_t k, float *logits)
{
    size_t n = s->rows.n, target = row_of(p, s, p->targets[p->at[k]]), before = 0;
    float base = embla_softmax_max(logits, n);
    double sum = isfinite(base) ? embla_softmax_sum(logits, n, base) : (double)NAN;
    while (before < target && logits[before] < base) before++;
    double loss = log(sum) + (double)base - (double)logits[target];
    p->losses[k] += loss;
    p->right[k] = p->right[k] && before == target && logits[target] == base && !isnan(sum);
    if (!p->hidden_gradient && !p->gradients) return;
    embla_softmax_gradient(logits, n, base, (float)((double)p->step / sum), 0.0f);
    logits[target] = (float)(expm1(-loss) * (double)p->step); /* p - 1, accurate also near p = 1 */
}

static void finish_tokens(const pass *p, const stage *s, const size_t *members, size_t count)
{
    size_t n = s->rows.n;
    int team = embla_threads_for(p->options.threads, count * n * sizeof(float));
    (void)team; /* without OpenMP */
#pragma omp parallel for num_threads(team) schedule(static)
    for (size_t i = 0; i < count; i++) {
        if (p->out)
            to_log_probabilities(p, s, members[i], p->logits + i * n);
        else
            to_loss(p, s, members[i], p->logits + i * n);
    }
}

static void gather(const pass *p, const size_t *members, size_t count)
{
    size_t dim = p->adaptive->dim;
    for (size_t i = 0; i < count; i++)
        memcpy(p->x + i * dim, p->hidden + p->at[members[i]] * dim, dim * sizeof(float));
}

/* Writes gradients of hidden vectors: the head comes first and overwrites, clusters add. */
static void add_hidden_gradients(const pass *p, const stage *s, const size_t *members, size_t count)
{
    size_t dim = p->adaptive->dim;
    for (size_t i = 0; i < count; i++) {
        const float *from = p->dx + i * dim;
        float *to = p->hidden_gradient + p->at[members[i]] * dim;
        for (size_t j = 0; j < dim; j++) to[j] = s->n == 0 ? from[j] : to[j] + from[j];
    }
}

static embla_status run_chunk(const pass *p, stage *s, const size_t *members, size_t count)
{
    bool narrow = s->n > 0;
    const float *x = narrow ? p->narrow : p->x;
    gather(p, members, count);
    s->projection.logits = p->narrow;
    if (narrow) EMBLA_TRY(embla_lanes_forward(&s->projection, p->x, count));
    EMBLA_TRY(embla_lanes_forward(&s->rows, x, count));
    finish_tokens(p, s, members, count);
    if (!p->hidden_gradient && !p->gradients) return EMBLA_OK;
    EMBLA_TRY(embla_lanes_backward(&s->rows, x, count, narrow ? p->dnarrow : p->dx));
    s->projection.logits = p->dnarrow;
    if (narrow) EMBLA_TRY(embla_lanes_backward(&s->projection, p->x, count, p->dx));
    if (p->hidden_gradient) add_hidden_gradients(p, s, members, count);
    return EMBLA_OK;
}

static embla_status run_part(const pass *p, size_t n, const size_t *members, size_t count)
{
    stage s = stage_of(p, n);
    for (size_t from = 0; from < count; from += s.chunk) {
        size_t left = count - from;
        EMBLA_TRY(run_chunk(p, &s, members + from, left < s.chunk ? left : s.chunk));
    }
    return EMBLA_OK;
}

/* Lists the targets of cluster n - 1 in the order of their positions; returns how many. */
static size_t members_of(const pass *p, size_t n)
{
    const int64_t *begins = p->adaptive->begins;
    size_t count = 0;
    for (size_t k = 0; k < p->counted; k++) {
        int64_t target = p->targets[p->at[k]];
        if (target >= begins[n - 1] && target < begins[n]) p->members[count++] = k;
    }
    return count;
}

static embla_status run(const pass *p)
{
    for (size_t k = 0; k < p->counted; k++) p->members[k] = k;
    EMBLA_TRY(run_part(p, 0, p->members, p->counted));
    for (size_t n = 1; n <= p->adaptive->clusters; n++)
        EMBLA_TRY(run_part(p, n, p->members, p->targets ? members_of(p, n) : p->counted));
    return EMBLA_OK;
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Lays out the memory of a pass over count tokens, in floats. */
typedef struct {
    size_t x, narrow, logits, parts;
} extent;

static extent extent_of(const pass *p, size_t count)
{
    extent most = {0};
    for (size_t n = 0; n <= p->adaptive->clusters; n++) {
        stage one = stage_of(p, n);
        size_t chunk = one.chunk < count ? one.chunk : count;
        size_t lanes = embla_lanes_of(one.rows.n) * one.rows.dim;
        if (n > 0) lanes = larger(lanes, embla_lanes_of(one.projection.n) * one.projection.dim);
        most.x = larger(most.x, chunk * p->adaptive->dim);
        most.narrow = larger(most.narrow, n > 0 ? chunk * one.projection.n : 0);
        most.logits = larger(most.logits, chunk * one.rows.n);
        most.parts = larger(most.parts, chunk * lanes);
    }
    return most;
}

/* Allocates all memory of a pass before anything is written. */
static embla_status allocate(pass *p, size_t count, size_t *bytes, void **memory)
{
    bool backward = p->hidden_gradient || p->gradients;
    extent most = extent_of(p, count);
    embla_layout layout = {0};
    size_t at = embla_layout_add(&layout, count, sizeof *p->at);
    size_t members = embla_layout_add(&layout, count, sizeof *p->members);
    size_t losses = embla_layout_add(&layout, count, sizeof *p->losses);
    size_t right = embla_layout_add(&layout, count, sizeof *p->right);
    size_t x = embla_layout_add(&layout, most.x, sizeof(float));
    size_t narrow = embla_layout_add(&layout, most.narrow, sizeof(float));
    size_t logits = embla_layout_add(&layout, most.logits, sizeof(float));
    size_t dx = embla_layout_add(&layout, backward ? most.x : 0, sizeof(float));
    size_t dnarrow = embla_layout_add(&layout, backward ? most.narrow : 0, sizeof(float));
    size_t parts = embla_layout_add(&layout, backward ? most.parts : 0, sizeof(float));
    if (layout.too_large)
        return embla_fail(EMBLA_ERR_ARGUMENT, "%zu tokens do not fit in memory", count);
    EMBLA_TRY(embla_mem_new(layout.bytes, "an adaptive loss", memory));
    char *begin = *memory;
    p->at = (size_t *)(void *)(begin + at);
    p->members = (size_t *)(void *)(begin + members);
    p->losses = (double *)(void *)(begin + losses);
    p->right = (uint8_t *)(begin + right);
    p->x = (float *)(void *)(begin + x);
    p->narrow = (float *)(void *)(begin + narrow);
    p->logits = (float *)(void *)(begin + logits);
    p->dx = (float *)(void *)(begin + dx);
    p->dnarrow = (float *)(void *)(begin + dnarrow);
    p->parts = (float *)(void *)(begin + parts);
    *bytes = layout.bytes;
    return EMBLA_OK;
}

/* Sets the gradients of hidden vectors with ignored targets to zero. */
static void zero_ignored(const pass *p, size_t count)
{
    size_t dim = p->adaptive->dim, k = 0;
    for (size_t i = 0; i < count; i++) {
        if (k < p->counted && p->at[k] == i)
            k++;
        else
            memset(p->hidden_gradient + i * dim, 0, dim * sizeof(float));
    }
}

/* Checks that count vectors of width numbers fit in memory. */
static embla_status check_size(const char *name, size_t count, size_t width)
{
    uint64_t bytes;
    size_t fits;
    if (embla_mul_ok(count, width * sizeof(float), &bytes) && embla_size_ok(bytes, &fits))
        return EMBLA_OK;
    return embla_fail(EMBLA_ERR_ARGUMENT, "%s: %zu vectors of %zu numbers do not fit in memory",
                      name, count, width);
}

static embla_status check_hidden(const char *name, const embla_adaptive *adaptive,
                                 const float *hidden, size_t count, const void *other,
                                 const char *what)
{
    if (!adaptive || (count > 0 && (!hidden || !other)))
        return embla_fail(EMBLA_ERR_ARGUMENT, "%s: %s is NULL", name,
                          !adaptive ? "adaptive"
                          : !hidden ? "hidden"
                                    : what);
    return check_size(name, count, adaptive->dim);
}

embla_status embla_adaptive_loss(const embla_adaptive *adaptive, const float *hidden,
                                 const int32_t *targets, size_t count,
                                 const embla_loss_options *options, float *hidden_gradient,
                                 float *const *tables, float *each, embla_loss_report *report)
{
    EMBLA_TRY(embla_options_check(options));
    pass p = {.adaptive = adaptive,
              .hidden = hidden,
              .targets = targets,
              .hidden_gradient = hidden_gradient,
              .gradients = tables};
    void *memory = NULL;
    size_t bytes = 0;
    EMBLA_TRY(check_hidden("embla_adaptive_loss", adaptive, hidden, count, targets, "targets"));
    EMBLA_TRY(embla_rare_options("embla_adaptive_loss", options, &p.options));
    if (p.options.compute == EMBLA_BF16)
        return embla_fail(EMBLA_ERR_UNSUPPORTED, "embla_adaptive_loss computes in f32, not bf16");
    EMBLA_TRY(allocate(&p, count, &bytes, &memory));
    embla_status status = embla_rare_targets(targets, count, adaptive->begins[adaptive->clusters],
                                             &p.options, p.at, &p.counted);
    double share = p.options.sum || p.counted == 0 ? 1 : (double)p.counted;
    p.step = (float)(p.options.weight / share);
    for (size_t k = 0; k < p.counted; k++) p.right[k] = 1;
    if (status == EMBLA_OK) status = run(&p);
    if (status == EMBLA_OK) {
        if (hidden_gradient) zero_ignored(&p, count);
        embla_rare_report(&p.options, p.losses, p.right, p.at, p.counted, count, each, report);
    }
    embla_mem_free(memory, bytes);
    return status;
}

embla_status embla_adaptive_log_probabilities(const embla_adaptive *adaptive, const float *hidden,
                                              size_t count, const embla_head_options *options,
                                              float *out)
{
    EMBLA_TRY(embla_options_check(options));
    int threads = options ? options->threads : 0;
    pass p = {.adaptive = adaptive,
              .hidden = hidden,
              .options = {.threads = threads},
              .out = out,
              .counted = count};
    void *memory = NULL;
    size_t bytes = 0;
    EMBLA_TRY(
        check_hidden("embla_adaptive_log_probabilities", adaptive, hidden, count, out, "out"));
    EMBLA_TRY(check_size("embla_adaptive_log_probabilities", count,
                         (size_t)adaptive->begins[adaptive->clusters]));
    EMBLA_TRY(embla_threads_check(threads));
    EMBLA_TRY(allocate(&p, count, &bytes, &memory));
    for (size_t k = 0; k < count; k++) p.at[k] = k;
    embla_status status = run(&p);
    embla_mem_free(memory, bytes);
    return status;
}
