/* SPDX-License-Identifier: Apache-2.0 */
/* Sampled softmax: a target against a few sampled tokens instead of all. From each logit the log of
 * Q is subtracted, the probability that its token is among the sampled ones (as in TensorFlow's
 * sampled_softmax_loss).
 *
 * Tokens are drawn one after the other, with replacement, and each distinct token counts once. So Q
 * = 1 - (1 - P)^negatives exactly, and if Q is 1 for all tokens this is the full softmax. Products
 * use the distinct rows, ascending, gathered once; the target's own row is a separate dot product.
 * The gradients of rows, first of targets by position and then of the sampled tokens, are summed by
 * scatter.
 */
#include "learn/sampled.h"

#include <math.h>
#include <string.h>

#include "base/elementary.h"
#include "base/half.h"
#include "base/kernels.h"
#include "base/layout.h"
#include "base/mem.h"
#include "base/options.h"
#include "base/parallel.h"
#include "base/random.h"
#include "base/threads.h"
#include "learn/head.h"
#include "learn/lanes.h"
#include "learn/loss.h"
#include "learn/softmax.h"
#include "table/access.h"

/* ---- options, targets, report ---- */

/* Checks options (NULL means defaults) and fills in the weight. */
static embla_status check_options(const embla_loss_options *options, embla_loss_options *out)
{
    embla_loss_options asked = options ? *options : (embla_loss_options){0};
    if (asked.smoothing != 0 || asked.z_loss != 0)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "embla_sampled_loss supports neither smoothing (%g) nor z_loss (%g)",
                          asked.smoothing, asked.z_loss);
    if (asked.compute == 0) asked.compute = EMBLA_F32;
    if (asked.compute != EMBLA_F32 && asked.compute != EMBLA_BF16)
        return embla_fail(EMBLA_ERR_ARGUMENT, "compute is %d; f32 and bf16 are supported",
                          (int)asked.compute);
    if (!isfinite(asked.weight))
        return embla_fail(EMBLA_ERR_ARGUMENT, "weight is %g; it must be finite", asked.weight);
    if (asked.weight == 0) asked.weight = 1;
    EMBLA_TRY(embla_threads_check(asked.threads));
    *out = asked;
    return EMBLA_OK;
}

/* Writes the positions of counted targets, in order, to at (room for count); *counted is how many.
 * Returns EMBLA_ERR_RANGE for a target that is neither a token below rows nor ignored. */
static embla_status check_targets(const int32_t *targets, size_t count, int64_t rows,
                                  const embla_loss_options *options, size_t *at, size_t *counted)
{
    *counted = 0;
    for (size_t i = 0; i < count; i++) {
        if (!embla_loss_counts(options, targets[i])) continue;
        if (targets[i] < 0 || targets[i] >= rows)
            return embla_fail(EMBLA_ERR_RANGE,
                              "target %" PRId32 " at index %zu is not from 0 to %" PRId64,
                              targets[i], i, rows - 1);
        at[(*counted)++] = i;
    }
    return EMBLA_OK;
}

/* Writes losses and right (one for each counted target) to each (count) and *report. */
static void write_report(const embla_loss_options *options, const double *losses,
                         const uint8_t *right, const size_t *at, size_t counted, size_t count,
                         float *each, embla_loss_report *report)
{
    embla_loss_report made = {.counted = (int64_t)counted, .ignored = (int64_t)(count - counted)};
    if (each && count > 0) memset(each, 0, count * sizeof *each);
    for (size_t k = 0; k < counted; k++) {
        made.loss += losses[k];
        made.correct += right[k];
        if (each) each[at[k]] = (float)losses[k];
    }
    if (!options->sum && counted > 0) made.loss /= (double)counted;
    if (report) *report = made;
}

/* ---- drawing ---- */

enum {
    GROUP = 2 * EMBLA_RANDOM_LANES, /* numbers from one call: two words each */
    NEGATIVES_MOST = INT32_MAX
};

/* The token for u in [0, 1), by the inverse of the cumulative distribution. Rounding cannot leave 0
 * .. rows-1. */
static int64_t token_for(double u, const embla_negatives *negatives, int64_t rows)
{
    double x = negatives->proposal == EMBLA_PROPOSAL_UNIFORM
                   ? floor(u * (double)rows)
                   : floor(embla_exp(u * embla_log1p((double)rows))) - 1;
    if (!(x > 0)) return 0;
    return x < (double)rows ? (int64_t)x : rows - 1;
}

void embla_sampled_draw(const embla_negatives *negatives, int64_t rows, int64_t *out)
{
    uint32_t words[4][EMBLA_RANDOM_LANES];
    for (size_t i = 0; i < negatives->negatives; i++) {
        if (i % GROUP == 0)
            embla_philox(negatives->seed, (uint32_t)(i / 2), (uint64_t)negatives->step,
                         EMBLA_RANDOM_DRAWN, words);
        size_t block = i % GROUP / 2, half = i % 2 * 2;
        uint64_t bits = (uint64_t)words[half][block] << 32 | words[half + 1][block];
        out[i] = token_for((double)(bits >> 11) * 0x1p-53, negatives, rows);
    }
}

double embla_sampled_log_chance(const embla_negatives *negatives, int64_t rows, int64_t token)
{
    double share = negatives->proposal == EMBLA_PROPOSAL_UNIFORM
                       ? 1 / (double)rows
                       : embla_log1p(1 / ((double)token + 1)) / embla_log1p((double)rows);
    return embla_log(-embla_expm1((double)negatives->negatives * embla_log1p(-share)));
}

/* ---- a call ---- */

typedef struct {
    embla_head head; /* checked */
    const float *hidden;
    const int32_t *targets;
    const embla_negatives *negatives;
    embla_loss_options options;
    float *hidden_gradient; /* NULL: not wanted */
    bool table_gradient;
    bool bf16; /* factors of products are rounded to bf16 */
    size_t dim, count, counted, distinct;
    float step; /* factor of each target's gradient */
    /* for each counted target: position, loss, whether its logit is the highest */
    size_t *at;
    double *losses;
    uint8_t *right;
    /* counted targets, then the distinct sampled tokens: rows to scatter to */
    int64_t *tokens, *drawn;
    /* for each sampled token: log of Q, and bias (NULL means none) */
    float *shift, *bias;
    embla_head drawn_head; /* a head whose tokens are the sampled ones */
    float *rows;           /* distinct x dim: rows of the sampled tokens */
    float *pairs;          /* (counted + distinct) x dim: gradients to scatter */
    /* Of a chunk: vectors, rows of their targets, gradients of their dot products, gradients of
     * vectors; logits, a copy of them (for the soft cap; NULL means not wanted), and space. */
    float *x, *y, *dots, *dx, *logits, *kept, *parts;
    size_t chunk;
} call;

static embla_status round_numbers(void *job, size_t first, size_t end, size_t slot)
{
    float *x = job;
    (void)slot;
    for (size_t i = first; i < end; i++) x[i] = embla_f32_from_bf16(embla_bf16_from_f32(x[i]));
    return EMBLA_OK;
}

static embla_status round_bf16(const call *c, float *x, size_t n)
{
    if (!c->bf16) return EMBLA_OK;
    return embla_share(embla_threads_for(c->options.threads, n * sizeof(float)), n, 0,
                       round_numbers, x);
}

/* The index of token among the sampled ones, or distinct if it is not there. */
static size_t index_of(const call *c, int64_t token)
{
    size_t low = 0, high = c->distinct;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (c->drawn[middle] < token)
            low = middle + 1;
        else
            high = middle;
    }
    return low < c->distinct && c->drawn[low] == token ? low : c->distinct;
}

/* Whether the target has the highest logit; of equal logits the lower token wins. */
static bool highest(const call *c, float logit, int64_t token, const float *logits)
{
    float most = embla_softmax_max(logits, c->distinct);
    if (!(logit >= most)) return false;
    for (size_t j = 0; logit == most && j < c->distinct && c->drawn[j] < token; j++)
        if (logits[j] == most) return false;
    return true;
}

/* Turns gradients of logits into gradients of sums of products. */
static void back_to_sums(const call *c, const float *kept, size_t n, float *gradients)
{
    if (c->head.soft_cap > 0) embla_soft_cap_back(kept, n, c->head.soft_cap, gradients);
    embla_kernels_get()->scale(gradients, c->head.scale, n, gradients);
}

/* Token k, the i-th of its chunk: turns sums of products into its loss and into gradients. */
static void finish_token(const call *c, size_t k, size_t i)
{
    size_t n = c->distinct, place = index_of(c, c->tokens[k]);
    float *logits = c->logits + i * n, *kept = c->kept ? c->kept + i * n : NULL;
    float own = (float)embla_kernels_get()->dot(c->x + i * c->dim, c->y + i * c->dim, c->dim),
          plain;
    embla_head_finish(&c->drawn_head, 0, n, logits);
    embla_head_finish(&c->head, c->tokens[k], 1, &own);
    if (place < n) logits[place] = -INFINITY; /* a target is not its own negative */
    if (kept) memcpy(kept, logits, n * sizeof *kept);
    bool right = highest(c, own, c->tokens[k], logits);
    for (size_t j = 0; j < n; j++) logits[j] = logits[j] - c->shift[j];
    plain = own;
    own -= (float)embla_sampled_log_chance(c->negatives, c->head.rows, c->tokens[k]);

    float most = embla_softmax_max(logits, n), base = own > most ? own : most;
    double sum = NAN;
    if (isfinite(base))
        sum = embla_softmax_sum(logits, n, base) + embla_exp((double)own - (double)base);
    c->losses[k] = embla_log(sum) + (double)base - (double)own;
    c->right[k] = right && !isnan(sum);
    if (!c->hidden_gradient && !c->table_gradient) return;
    embla_softmax_gradient(logits, n, base, (float)((double)c->step / sum), 0.0f);
    c->dots[i] =
        (float)(embla_expm1(-c->losses[k]) * (double)c->step); /* p - 1, accurate also near p = 1 */
    back_to_sums(c, kept, n, logits);
    back_to_sums(c, &plain, 1, &c->dots[i]);
}

/* A chunk begins with this token. */
typedef struct {
    const call *call;
    size_t first;
} chunk_job;

static embla_status finish_tokens(void *job, size_t first, size_t end, size_t slot)
{
    const chunk_job *h = job;
    (void)slot;
    for (size_t i = first; i < end; i++) finish_token(h->call, h->first + i, i);
    return EMBLA_OK;
}

/* Stores the gradients of a chunk: those of vectors for the caller, those of the targets' rows for
 * scatter. */
static embla_status store_gradients(void *job, size_t first, size_t end, size_t slot)
{
    const embla_kernels *kernels = embla_kernels_get();
    const chunk_job *h = job;
    const call *c = h->call;
    size_t dim = c->dim;
    (void)slot;
    for (size_t i = first; i < end; i++) {
        if (c->hidden_gradient)
            kernels->scale_add(c->y + i * dim, c->dots[i], c->dx + i * dim, dim,
                               c->hidden_gradient + c->at[h->first + i] * dim);
        if (c->table_gradient)
            kernels->scale(c->x + i * dim, c->dots[i], dim, c->pairs + (h->first + i) * dim);
    }
    return EMBLA_OK;
}

static embla_status run_chunk(const call *c, size_t first, size_t count)
{
    embla_lanes lanes = {.rows = c->rows,
                         .n = c->distinct,
                         .dim = c->dim,
                         .stride = c->dim,
                         .gradient = c->table_gradient ? c->pairs + c->counted * c->dim : NULL,
                         .logits = c->logits,
                         .parts = c->hidden_gradient ? c->parts : NULL,
                         .threads = c->options.threads};
    embla_lookup_options lookup = {.threads = c->options.threads};
    const chunk_job here = {.call = c, .first = first};
    size_t dim = c->dim, n = c->distinct;
    for (size_t i = 0; i < count; i++)
        memcpy(c->x + i * dim, c->hidden + c->at[first + i] * dim, dim * sizeof(float));
    EMBLA_TRY(embla_lookup_rows(c->head.table, c->tokens + first, count, &lookup, c->y));
    EMBLA_TRY(round_bf16(c, c->x, count * dim));
    EMBLA_TRY(round_bf16(c, c->y, count * dim));
    EMBLA_TRY(embla_lanes_forward(&lanes, c->x, count));
    int threads = embla_threads_for(c->options.threads, count * n * sizeof(float));
    EMBLA_TRY(embla_share(threads, count, 0, finish_tokens, &here));
    if (!c->hidden_gradient && !c->table_gradient) return EMBLA_OK;
    EMBLA_TRY(round_bf16(c, c->logits, count * n));
    EMBLA_TRY(round_bf16(c, c->dots, count));
    EMBLA_TRY(embla_lanes_backward(&lanes, c->x, count, c->dx));
    threads = embla_threads_for(c->options.threads, count * dim * 4 * sizeof(float));
    return embla_share(threads, count, 0, store_gradients, &here);
}

/* Samples tokens, keeps each once, ascending, with the log of its Q. */
static embla_status draw(call *c, embla_scatter *scatter)
{
    int64_t *drawn = c->tokens + c->counted;
    embla_sampled_draw(c->negatives, c->head.rows, drawn);
    EMBLA_TRY(embla_scatter_plan_rows(scatter, drawn, c->negatives->negatives, NULL));
    c->drawn = drawn;
    c->distinct = embla_scatter_count(scatter);
    memcpy(drawn, embla_scatter_rows(scatter), c->distinct * sizeof *drawn);
    for (size_t i = 0; i < c->distinct; i++) {
        c->shift[i] = (float)embla_sampled_log_chance(c->negatives, c->head.rows, drawn[i]);
        if (c->head.bias) c->bias[i] = c->head.bias[drawn[i]];
    }
    c->chunk = embla_lanes_chunk(c->distinct, c->dim);
    if (c->chunk > c->counted) c->chunk = c->counted;
    c->drawn_head = (embla_head){.bias = c->head.bias ? c->bias : NULL,
                                 .rows = (int64_t)c->distinct,
                                 .scale = c->head.scale,
                                 .soft_cap = c->head.soft_cap};
    return EMBLA_OK;
}

/* Allocates the lists, before tokens are sampled. */
static embla_status allocate_lists(call *c, size_t *bytes, void **memory)
{
    embla_layout layout = {0};
    size_t n = c->negatives->negatives; /* below 2^31, so only count can overflow */
    size_t at = embla_layout_add(&layout, c->count, sizeof *c->at);
    size_t losses = embla_layout_add(&layout, c->count, sizeof *c->losses);
    size_t right = embla_layout_add(&layout, c->count, sizeof *c->right);
    size_t targets =
        embla_layout_add(&layout, c->count, sizeof *c->tokens); /* then the sampled tokens: */
    (void)embla_layout_add(&layout, n, sizeof *c->tokens);
    size_t shift = embla_layout_add(&layout, n, sizeof *c->shift);
    size_t bias = embla_layout_add(&layout, c->head.bias ? n : 0, sizeof *c->bias);
    if (layout.too_large)
        return embla_fail(EMBLA_ERR_ARGUMENT, "%zu tokens do not fit in memory", c->count);
    EMBLA_TRY(embla_mem_new(layout.bytes, "the tokens of a sampled loss", memory));
    char *begin = *memory;
    c->at = (size_t *)(void *)(begin + at);
    c->losses = (double *)(void *)(begin + losses);
    c->right = (uint8_t *)(begin + right);
    c->tokens = (int64_t *)(void *)(begin + targets);
    c->shift = (float *)(void *)(begin + shift);
    c->bias = (float *)(void *)(begin + bias);
    *bytes = layout.bytes;
    return EMBLA_OK;
}

/* Allocates memory for rows, once their number is known. */
static embla_status allocate_rows(call *c, size_t *bytes, void **memory)
{
    embla_layout layout = {0};
    size_t n = c->distinct, dim = c->dim, chunk = c->chunk;
    bool backward = c->hidden_gradient || c->table_gradient;
    size_t lanes = c->hidden_gradient ? embla_lanes_of(n) * chunk : 0;
    size_t row = dim * sizeof(float); /* at most 4 MiB */
    size_t rows = embla_layout_add(&layout, n, row);
    size_t pairs = embla_layout_add(&layout, c->table_gradient ? c->counted + n : 0, row);
    size_t x = embla_layout_add(&layout, chunk, row), y = embla_layout_add(&layout, chunk, row);
    size_t dx = embla_layout_add(&layout, chunk, row),
           parts = embla_layout_add(&layout, lanes, row);
    size_t dots = embla_layout_add(&layout, chunk, sizeof(float));
    size_t logits = embla_layout_add(&layout, chunk * n, sizeof(float));
    size_t kept =
        embla_layout_add(&layout, backward && c->head.soft_cap > 0 ? chunk * n : 0, sizeof(float));
    if (layout.too_large)
        return embla_fail(EMBLA_ERR_ARGUMENT, "%zu rows of %zu numbers do not fit in memory",
                          c->counted + n, dim);
    EMBLA_TRY(embla_mem_new(layout.bytes, "the rows of a sampled loss", memory));
    char *begin = *memory;
    c->rows = (float *)(void *)(begin + rows);
    c->pairs = (float *)(void *)(begin + pairs);
    c->x = (float *)(void *)(begin + x);
    c->y = (float *)(void *)(begin + y);
    c->dx = (float *)(void *)(begin + dx);
    c->parts = (float *)(void *)(begin + parts);
    c->dots = (float *)(void *)(begin + dots);
    c->logits = (float *)(void *)(begin + logits);
    if (backward && c->head.soft_cap > 0) c->kept = (float *)(void *)(begin + kept);
    *bytes = layout.bytes;
    return EMBLA_OK;
}

/* Everything between sampling and the report. Nothing is written for the caller before the first
 * product has succeeded. */
static embla_status run(call *c, embla_scatter *scatter, embla_sampled_gradients *gradients)
{
    embla_lookup_options lookup = {.threads = c->options.threads};
    embla_scatter_options options = {.threads = c->options.threads};
    EMBLA_TRY(embla_lookup_rows(c->head.table, c->drawn, c->distinct, &lookup, c->rows));
    EMBLA_TRY(round_bf16(c, c->rows, c->distinct * c->dim));
    for (size_t first = 0; first < c->counted; first += c->chunk) {
        size_t left = c->counted - first;
        EMBLA_TRY(run_chunk(c, first, left < c->chunk ? left : c->chunk));
    }
    if (!c->table_gradient) return EMBLA_OK;
    EMBLA_TRY(embla_scatter_plan_rows(scatter, c->tokens, c->counted + c->distinct, &options));
    EMBLA_TRY(embla_scatter_sum(scatter, c->pairs, c->dim, gradients->table));
    gradients->touched = embla_scatter_count(scatter);
    memcpy(gradients->rows, embla_scatter_rows(scatter),
           gradients->touched * sizeof *gradients->rows);
    return EMBLA_OK;
}

static embla_status run_counted(call *c, embla_sampled_gradients *gradients)
{
    embla_scatter *scatter = NULL;
    void *memory = NULL;
    size_t bytes = 0;
    double share = c->options.sum ? 1 : (double)c->counted;
    c->step = (float)(c->options.weight / share);
    for (size_t k = 0; k < c->counted; k++) c->tokens[k] = c->targets[c->at[k]];
    EMBLA_TRY(embla_scatter_new(c->head.rows, c->counted + c->negatives->negatives, &scatter));
    embla_status status = draw(c, scatter);
    if (status == EMBLA_OK) status = allocate_rows(c, &bytes, &memory);
    if (status == EMBLA_OK) status = run(c, scatter, gradients);
    embla_scatter_free(scatter);
    embla_mem_free(memory, bytes);
    return status;
}

static void zero_ignored(const call *c)
{
    for (size_t i = 0, k = 0; i < c->count; i++) {
        if (k < c->counted && c->at[k] == i)
            k++;
        else
            memset(c->hidden_gradient + i * c->dim, 0, c->dim * sizeof(float));
    }
}

static embla_status check(const call *c, const embla_sampled_gradients *gradients)
{
    const embla_negatives *negatives = c->negatives;
    if (!negatives || (c->count > 0 && (!c->hidden || !c->targets)))
        return embla_fail(EMBLA_ERR_ARGUMENT, "embla_sampled_loss: %s is NULL",
                          !negatives   ? "negatives"
                          : !c->hidden ? "hidden"
                                       : "targets");
    if (negatives->negatives < 1 || negatives->negatives > NEGATIVES_MOST)
        return embla_fail(EMBLA_ERR_ARGUMENT, "negatives is %zu; it must be from 1 to %d",
                          negatives->negatives, NEGATIVES_MOST);
    if (negatives->proposal != EMBLA_PROPOSAL_LOG_UNIFORM &&
        negatives->proposal != EMBLA_PROPOSAL_UNIFORM)
        return embla_fail(EMBLA_ERR_ARGUMENT, "unknown proposal %d; proposals are 0 and 1",
                          (int)negatives->proposal);
    if (gradients && !gradients->rows != !gradients->table)
        return embla_fail(EMBLA_ERR_ARGUMENT, "embla_sampled_loss: %s is set, but %s is NULL",
                          gradients->rows ? "rows" : "table", gradients->rows ? "table" : "rows");
    return EMBLA_OK;
}

embla_status embla_sampled_loss(const embla_head *head, const embla_loss_batch *batch,
                                const embla_negatives *negatives, const embla_loss_options *options,
                                embla_sampled_gradients *gradients, embla_loss_report *report)
{
    EMBLA_TRY(embla_options_check(batch));
    EMBLA_TRY(embla_options_check(negatives));
    EMBLA_TRY(embla_options_check(options));
    EMBLA_TRY(embla_options_check(gradients));
    EMBLA_NEED(batch);
    const size_t count = batch->count;
    call c = {
        .hidden = batch->hidden, .targets = batch->targets, .negatives = negatives, .count = count};
    void *memory = NULL;
    size_t bytes = 0;
    EMBLA_TRY(embla_head_check(head, &c.head));
    EMBLA_TRY(check(&c, gradients));
    EMBLA_TRY(check_options(options, &c.options));
    c.dim = embla_table_dim(c.head.table);
    c.bf16 = c.options.compute == EMBLA_BF16;
    c.hidden_gradient = gradients ? gradients->hidden : NULL;
    c.table_gradient = gradients && gradients->table;
    EMBLA_TRY(allocate_lists(&c, &bytes, &memory));
    embla_status status =
        check_targets(c.targets, count, c.head.rows, &c.options, c.at, &c.counted);
    if (status == EMBLA_OK && c.counted > 0) status = run_counted(&c, gradients);
    if (status == EMBLA_OK) status = embla_table_check_file(c.head.table);
    if (status == EMBLA_OK) {
        if (c.hidden_gradient) zero_ignored(&c);
        if (gradients && (!c.table_gradient || c.counted == 0)) gradients->touched = 0;
        write_report(&c.options, c.losses, c.right, c.at, c.counted, count, batch->each, report);
    }
    embla_mem_free(memory, bytes);
    return status;
}
