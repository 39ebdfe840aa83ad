/* SPDX-License-Identifier: Apache-2.0 */
/* embla_learn.h - train the rows of a table: the head that turns vectors into logits, the loss and
 * its gradients, and the optimizers that update rows.
 *
 *   tokens -> embed -> your model -> hidden -> head, loss ------> one number
 *                                      |          |
 *   scatter <- your model's gradient <-+          +-> gradient of the head's table
 *      |                                                 |
 *      +-------------------> clip -> optim <-------------+
 *
 * The rules of embla.h hold here too: the same input gives the same bits for any number of
 * threads. An engine (embla_lab.h) computes matrix products, so the bits depend on the engine and
 * the CPU. Link libembla_lab. docs/numerics.md has accumulators, orders and tolerances.
 */
#ifndef EMBLA_LEARN_H
#define EMBLA_LEARN_H

#include "embla.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- scatter: lookup backwards ---- */

typedef struct embla_scatter embla_scatter;

/* Rows that must not change: those named in any of the three ways. A zeroed struct means none. */
typedef struct {
    int64_t below;       /* all rows below this one, to train only rows added at the end */
    const uint8_t *mask; /* a byte for each row of the table: not 0 means frozen; NULL means none */
    const int64_t *rows; /* count row numbers, for example a padding row */
    size_t count;
    uint64_t reserved[4]; /* must be 0 */
} embla_frozen;

typedef struct {
    embla_frozen frozen; /* these rows get no gradient */
    /* Positions in a virtual shard. A row's gradient is summed within each shard and rounded to
     * float; then the shards are summed in order. Processes that split a batch at shards get the
     * same bits. 0 means one shard. */
    size_t shard;
    float max_norm; /* clip the gradient of each row to this norm; 0 means no clipping */
    int threads;
    bool by_count;        /* divide the gradient of a row by the number of its occurrences */
    uint64_t reserved[4]; /* must be 0 */
} embla_scatter_options;

/* Allocates what a scatter needs, for a table with `rows` rows and batches of at most `capacity`
 * tokens. The calls below allocate nothing. */
EMBLA_API EMBLA_CHECKED embla_status embla_scatter_new(int64_t rows, size_t capacity,
                                                       embla_scatter **out);
EMBLA_API void embla_scatter_free(embla_scatter *scatter);
/* Sorts the tokens of a batch by row. Token i is row i: for a table with a mapping, use
 * embla_table_find_rows and embla_scatter_plan_rows. EMBLA_ERR_RANGE for a token outside the table,
 * EMBLA_ERR_SHAPE for more tokens than the capacity. Pointers in options are not used after the
 * call. */
EMBLA_API EMBLA_CHECKED embla_status embla_scatter_plan(embla_scatter *scatter,
                                                        const int32_t *tokens, size_t count,
                                                        const embla_scatter_options *options);
/* The same by row number. */
EMBLA_API EMBLA_CHECKED embla_status embla_scatter_plan_rows(embla_scatter *scatter,
                                                             const int64_t *rows, size_t count,
                                                             const embla_scatter_options *options);
/* The rows of the batch that are not frozen: ascending, each once; and their number. */
EMBLA_API size_t embla_scatter_count(const embla_scatter *scatter);
EMBLA_API const int64_t *embla_scatter_rows(const embla_scatter *scatter);
/* Sums the gradients of the batch (tokens x dim) for each of these rows, and writes the sums to out
 * (embla_scatter_count x dim). Sums are in double, in the order of positions, rounded once. */
EMBLA_API EMBLA_CHECKED embla_status embla_scatter_sum(const embla_scatter *scatter,
                                                       const float *gradients, size_t dim,
                                                       float *out);

/* ---- head: vectors -> scores of all tokens ---- */

/* logit of token v = soft cap of (scale * hidden . row v + bias[v]). -infinity is not capped. */
typedef struct {
    const embla_table *table; /* the token table (tied) or a separate one; any dtype */
    const float *bias;        /* one number for each row of the head's table; NULL means no bias */
    int64_t rows;   /* only the first `rows` rows are tokens, the rest is padding; 0 means all */
    float scale;    /* 0 means 1 */
    float soft_cap; /* c * tanh(x / c); 0 means none */
    uint64_t reserved[4]; /* must be 0 */
} embla_head;

typedef struct {
    int threads;
    uint64_t reserved[4]; /* must be 0 */
} embla_head_options;

/* Computes the logits (count x rows) of hidden vectors (count x dim). */
EMBLA_API EMBLA_CHECKED embla_status embla_head_logits(const embla_head *head, const float *hidden,
                                                       size_t count,
                                                       const embla_head_options *options,
                                                       float *out);

typedef struct {
    int32_t token; /* -1 if there are fewer tokens than asked for; the rest is then -infinity */
    float logit;   /* before temperature */
    double log_probability; /* among all tokens, at temperature 1 */
} embla_choice;

/* Finds the k tokens with the highest logits for each hidden vector, and writes them to out (count
 * x k), highest first; of equal logits the lower token comes first. Logits are computed in chunks
 * and never held all at once. A NaN logit is never chosen. If all logits of a vector are NaN or
 * -infinity, its token is -1. options NULL means the defaults. */
EMBLA_API EMBLA_CHECKED embla_status embla_head_top(const embla_head *head, const float *hidden,
                                                    size_t count, size_t k,
                                                    const embla_head_options *options,
                                                    embla_choice *out);

typedef struct {
    double temperature; /* divides the logits; 0 means always the highest logit */
    double top_p;       /* keep the fewest tokens whose probabilities sum to this; 0 means off */
    double min_p; /* keep tokens with at least this share of the highest probability; 0 means off */
    size_t top_k; /* keep the k most probable tokens; 0 means off. Order: temperature, top_k, top_p,
                     min_p */
    uint64_t seed;
    /* Vector i of a call is draw step + i. The same seed and draw give the same token. */
    int64_t step;
    int threads;
    uint64_t reserved[4]; /* must be 0 */
} embla_sample_options;

/* Draws a token for each hidden vector, and writes it to out (count). options NULL means the token
 * with the highest logit. Each token's random number depends only on (seed, draw, token), so the
 * number of threads does not matter. Logits are never held all at once. */
EMBLA_API EMBLA_CHECKED embla_status embla_head_sample(const embla_head *head, const float *hidden,
                                                       size_t count,
                                                       const embla_sample_options *options,
                                                       embla_choice *out);

/* ---- loss: cross-entropy of the targets ---- */

typedef struct {
    double smoothing; /* share of the target that is spread over all tokens; 0 .. below 1 */
    double z_loss;    /* adds this times (log of the sum of exponentials)^2; 0 means none */
    double weight;    /* multiplies gradients, not the loss; 0 means 1 */
    int32_t ignore;   /* with has_ignore: another target that is not counted (padding) */
    bool has_ignore;
    bool sum;            /* return the sum over counted targets; default: their mean */
    embla_dtype compute; /* f32 (default), or bf16: round factors of products to bf16, sum in f32 */
    int threads;
    uint64_t reserved[4]; /* must be 0 */
} embla_loss_options;

/* Hidden vectors and their targets. */
typedef struct {
    const float *hidden;    /* count x dim */
    const int32_t *targets; /* count */
    size_t count;           /* with 0, all pointers may be NULL */
    float *each; /* output (count): the loss of each target, 0 if it is not counted; NULL means not
                    wanted */
    uint64_t reserved[4]; /* must be 0 */
} embla_loss_batch;

/* Where gradients are written. NULL means not wanted; without any, only the loss is computed. */
typedef struct {
    float *hidden;        /* count x dim, overwritten; zeros for targets that are not counted */
    float *table;         /* rows of the head's table x dim; gradients are added */
    float *bias;          /* rows of the head's table, added to; needs a bias */
    uint64_t reserved[4]; /* must be 0 */
} embla_loss_gradients;

typedef struct {
    double loss;   /* cross-entropy with smoothing and z-loss; 0 if nothing was counted */
    double z_loss; /* the z-loss part of it */
    int64_t counted, ignored;
    int64_t correct; /* counted targets with the highest logit; of equal ones, the lowest token */
    uint64_t reserved[4];
} embla_loss_report;

/* Computes the cross-entropy of the targets of a batch under the logits of its hidden vectors,
 * forward and backward.
 *
 * Outputs: the gradient of hidden may overwrite hidden. gradients and report may be NULL.
 *
 * Numbers: a NaN logit makes its target's loss and gradients NaN, and those of the table. -infinity
 * is a probability of 0; a target with it has an infinite loss, and NaN if all logits are
 * -infinity.
 *
 * Memory, which the call allocates and frees: at most 64 MiB beside the arguments, for any number
 * of tokens; 4 bytes for each row above 13 million rows; about 2 MiB for each thread unless table
 * and compute are f32. If compute is bf16 and the table is not, also the table in bf16 if that has
 * at most 128 MiB.
 *
 * Chunks: counted targets are processed in chunks whose size depends only on rows and dim. A batch
 * may be split over calls (with sum and one weight). If all calls but the last have whole chunks,
 * the table's gradient has the same bits as with one call.
 *
 * EMBLA_ERR_RANGE for a target that is neither a token nor ignored. EMBLA_ERR_UNSUPPORTED without
 * an engine (embla_lab.h). */
EMBLA_API EMBLA_CHECKED embla_status embla_head_loss(const embla_head *head,
                                                     const embla_loss_batch *batch,
                                                     const embla_loss_options *options,
                                                     const embla_loss_gradients *gradients,
                                                     embla_loss_report *report);

/* ---- sampled loss: for tables of very many rows ---- */

typedef enum {
    EMBLA_PROPOSAL_LOG_UNIFORM =
        0, /* P(v) = ln((v + 2) / (v + 1)) / ln(rows + 1): tokens by frequency */
    EMBLA_PROPOSAL_UNIFORM = 1
} embla_proposal;

typedef struct {
    size_t negatives; /* tokens to draw, shared by all targets of the call; at least 1 */
    uint64_t seed;
    int64_t step; /* the same seed and step give the same tokens */
    embla_proposal proposal;
    uint64_t reserved[4]; /* must be 0 */
} embla_negatives;

/* Gradients of a sampled loss. Rows that were targets or negatives: ascending, each once. */
typedef struct {
    float *hidden;  /* count x dim, overwritten; NULL means not wanted */
    int64_t *rows;  /* room for count + negatives; NULL, together with table, means not wanted */
    float *table;   /* room for (count + negatives) x dim: the gradient of rows[i] */
    size_t touched; /* output: the number of rows */
    uint64_t reserved[4]; /* must be 0 */
} embla_sampled_gradients;

/* Sampled softmax: cross-entropy against drawn tokens instead of all tokens. Tokens are drawn with
 * replacement, and duplicates are used once. Each logit is reduced by the log of the probability
 * that its token is drawn, 1 - (1 - P)^negatives. A sampled token that equals the target is not
 * used as a negative for it. With more negatives the result approaches embla_head_loss. The cost is
 * negatives / rows of that, and about as much memory as the gradients.
 * correct counts targets whose logit is the highest among the drawn. A bias is used but gets no
 * gradient. EMBLA_ERR_UNSUPPORTED for smoothing and z_loss. */
EMBLA_API EMBLA_CHECKED embla_status embla_sampled_loss(const embla_head *head,
                                                        const embla_loss_batch *batch,
                                                        const embla_negatives *negatives,
                                                        const embla_loss_options *options,
                                                        embla_sampled_gradients *gradients,
                                                        embla_loss_report *report);

/* ---- clip: limit the norm of all gradients together ---- */

typedef struct {
    float *values;
    size_t count;
} embla_span;

typedef struct {
    int threads;
    uint64_t reserved[4]; /* must be 0 */
} embla_clip_options;

/* Writes the Euclidean norm of all spans together to *norm (may be NULL). If it is above max_norm,
 * all values are multiplied by max_norm / norm. max_norm 0 means: only measure. If the norm is NaN
 * or infinite, nothing is scaled, and the step should be skipped. Sums are in double over leaves of
 * fixed size, added as a tree that depends only on the counts. */
EMBLA_API EMBLA_CHECKED embla_status embla_clip(const embla_span *spans, size_t count,
                                                double max_norm, const embla_clip_options *options,
                                                double *norm);

/* ---- schedule: the learning rate of a step ---- */

typedef enum {
    EMBLA_SCHEDULE_CONSTANT = 0,
    EMBLA_SCHEDULE_LINEAR = 1, /* linear from rate to final */
    EMBLA_SCHEDULE_COSINE = 2, /* half a cosine from rate to final */
    EMBLA_SCHEDULE_WSD = 3     /* rate, then linear to final over the last decay steps */
} embla_schedule_kind;

typedef struct {
    double rate;     /* after warm-up */
    double final;    /* at the last step; if there is only one step, rate is used */
    int64_t steps;   /* of the whole training; not needed for constant */
    int64_t warm_up; /* step s < warm_up has rate * (s + 1) / warm_up; 0 means no warm-up */
    int64_t decay;   /* wsd: the number of last steps that decay */
    embla_schedule_kind kind;
    uint64_t reserved[4]; /* must be 0 */
} embla_schedule;

/* "constant", "linear", "cosine", "wsd"; NULL past the last. */
EMBLA_API const char *embla_schedule_name(embla_schedule_kind kind);
/* The learning rate of a step, counted from 0. Steps past the last have the last rate. */
EMBLA_API EMBLA_CHECKED embla_status embla_schedule_rate(const embla_schedule *schedule,
                                                         int64_t step, double *out);

/* ---- optim: update rows ---- */

typedef enum {
    EMBLA_OPTIM_SGD = 0,             /* with optional momentum */
    EMBLA_OPTIM_ADAGRAD = 1,         /* a sum of squares for each number */
    EMBLA_OPTIM_ADAGRAD_ROWWISE = 2, /* a sum of mean squares for each row */
    EMBLA_OPTIM_ADAMW = 3
} embla_optim_kind;

typedef struct {
    embla_optim_kind kind;
    double momentum; /* SGD; 0 means none */
    double beta1;    /* AdamW; 0 means 0.9 */
    double beta2;    /* AdamW; 0 means 0.999 */
    double epsilon;  /* 0 means 1e-8 (AdamW), 1e-10 (Adagrad) */
    /* Decoupled weight decay, in every kind: a row is multiplied by 1 - rate * decay before each
     * step. 0 means none. */
    double decay;
    embla_frozen frozen; /* rows that no step changes; copied */
    bool nesterov;       /* SGD with momentum: Nesterov's variant */
    /* What happens to rows that a step does not name. false means nothing, neither decay
     * nor momentum (lazy; a step costs what it touches). true means what a dense step with a
     * gradient of zeros would do. It is done when the row is next named or caught up, with the same
     * bits as dense steps. */
    bool catch_up;
    int threads;
    uint64_t reserved[4]; /* must be 0 */
} embla_optim_options;

typedef struct embla_optim embla_optim;

/* "sgd", "adagrad", "adagrad-rowwise", "adamw"; NULL past the last. */
EMBLA_API const char *embla_optim_name(embla_optim_kind kind);
/* Creates an optimizer for a table of f32, or of bf16 or f16 with an f32 master copy inside. The
 * table belongs to the caller and must outlive the optimizer. Values that others write to a row
 * with a master copy are lost at the row's next step. EMBLA_ERR_UNSUPPORTED for other dtypes. */
EMBLA_API EMBLA_CHECKED embla_status embla_optim_new(embla_table *table,
                                                     const embla_optim_options *options,
                                                     embla_optim **out);
EMBLA_API void embla_optim_free(embla_optim *optim);
/* Makes one step with a gradient for every row (rows x dim). */
EMBLA_API EMBLA_CHECKED embla_status embla_optim_step(embla_optim *optim, double rate,
                                                      const float *gradient);
/* Makes one step with gradients (count x dim) for these rows: ascending, each once, as
 * embla_scatter_rows returns them. Frozen rows may be among them; they do not change. */
EMBLA_API EMBLA_CHECKED embla_status embla_optim_step_rows(embla_optim *optim, double rate,
                                                           const int64_t *rows, size_t count,
                                                           const float *gradients);
/* With catch_up: makes the outstanding updates of these rows, in any order, before they are looked
 * up. rows NULL means all. Without catch_up it does nothing. */
EMBLA_API EMBLA_CHECKED embla_status embla_optim_catch_up(embla_optim *optim, const int64_t *rows,
                                                          size_t count);
/* The number of steps made. To continue from a saved state, set it and fill the states; all rows
 * must be caught up. */
EMBLA_API int64_t embla_optim_steps(const embla_optim *optim);
EMBLA_API EMBLA_CHECKED embla_status embla_optim_set_steps(embla_optim *optim, int64_t steps);

/* One state: "momentum"; "squares"; "mean" and "squares"; "master". */
typedef struct {
    const char *name;
    float *values;
    int64_t rows;
    size_t dim; /* 1 for adagrad-rowwise */
    uint64_t reserved[4];
} embla_optim_state;

/* The n-th state, with all rows caught up. EMBLA_ERR_RANGE past the last. */
EMBLA_API EMBLA_CHECKED embla_status embla_optim_state_at(embla_optim *optim, size_t n,
                                                          embla_optim_state *out);

#ifdef __cplusplus
}
#endif
#endif
