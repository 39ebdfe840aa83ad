/* SPDX-License-Identifier: Apache-2.0 */
/* embla_learn.h - how rows learn: the head that turns vectors into scores of tokens, the loss
 * of those scores and its gradient, and the step that moves rows.
 *
 *   tokens -> embed -> your model -> hidden -> head, loss ------> one number
 *                                      |          |
 *   scatter (embla.h) <- your model's <- gradient <+-> gradient of the head's table
 *      |                                                 |
 *      +-------------------> clip -> optim <-------------+
 *
 * The rules of embla.h hold here too: the same input gives the same bits for any number of
 * threads. Products are by an engine (embla_lab.h), so another engine or another CPU has bits
 * of its own. Link libembla_lab. docs/numerics.md has accumulators, orders and tolerances.
 */
#ifndef EMBLA_LEARN_H
#define EMBLA_LEARN_H

#include "embla.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- head: vectors -> scores of all tokens ---- */

/* logit of token v = soft cap of (scale * hidden . row v + bias[v]); -infinity is not capped. */
typedef struct {
    const embla_table *table; /* the token table (tied) or one of its own; any dtype */
    const float *bias;        /* one for each row; NULL: none. -INFINITY: never this token */
    int64_t rows;             /* only the first so many are tokens (the rest is padding); 0: all */
    float scale;              /* 0: 1 */
    float soft_cap;           /* c * tanh(x / c); 0: none */
    uint64_t reserved[4];     /* must be 0 */
} embla_head;

typedef struct {
    int threads;          /* 0 means OpenMP's own number */
    uint64_t reserved[4]; /* must be 0 */
} embla_head_options;

/* Logits of count hidden vectors (count x dim) to out (count x rows). */
EMBLA_API EMBLA_CHECKED embla_status embla_head_logits(const embla_head *head, const float *hidden,
                                                       size_t count,
                                                       const embla_head_options *options,
                                                       float *out);

typedef struct {
    int32_t token;          /* -1: there were fewer tokens than asked for; the others -infinity */
    float logit;            /* before temperature */
    double log_probability; /* under all tokens, at temperature 1 */
} embla_choice;

/* The k tokens of the highest logits for each hidden vector, highest first (of the same logit
 * the lower token), to out (count x k). Logits are looked at a chunk at a time and never all
 * held. A NaN logit is never chosen; a vector whose logits are all NaN or -infinity gets token
 * -1. */
EMBLA_API EMBLA_CHECKED embla_status embla_head_top(const embla_head *head, const float *hidden,
                                                    size_t count, size_t k,
                                                    const embla_head_options *options,
                                                    embla_choice *out);

typedef struct {
    double temperature; /* logits are divided by it; 0: the highest logit, always */
    double top_p;       /* the fewest tokens whose probabilities reach this; 0: off */
    double min_p;       /* tokens at least so probable as this times the likeliest; 0: off */
    size_t top_k;       /* the k likeliest; 0: off. In turn: temperature, top_k, top_p, min_p */
    uint64_t seed;
    int64_t step; /* vector i of a call is draw step + i: the same seed and draw, the same token */
    int threads;  /* 0: OpenMP's own number */
    uint64_t reserved[4]; /* must be 0 */
} embla_sample_options;

/* A token for each hidden vector, drawn from what the options leave (NULL: the highest logit),
 * to out (count). Each token's luck is a number made of (seed, draw, token), so chunks and
 * threads change nothing. Never holds all logits. */
EMBLA_API EMBLA_CHECKED embla_status embla_head_sample(const embla_head *head, const float *hidden,
                                                       size_t count,
                                                       const embla_sample_options *options,
                                                       embla_choice *out);

/* ---- loss: how surprised the head is by the tokens that came ---- */

typedef struct {
    double smoothing; /* share of the target spread evenly over all tokens; 0 .. below 1 */
    double z_loss;    /* times (log of the sum of exponentials)^2 is added; 0: none */
    double weight;    /* multiplies gradients (not the loss); 0: 1 */
    int32_t ignore;   /* with has_ignore: a further target that is not counted (padding) */
    bool has_ignore;
    bool sum;             /* the sum over counted targets; default: their mean */
    embla_dtype compute;  /* f32 (default); bf16: factors of products are rounded to bf16, sums
                             are f32 */
    int threads;          /* 0: OpenMP's own number */
    uint64_t reserved[4]; /* must be 0 */
} embla_loss_options;

/* Where gradients go; NULL: not wanted. Without any, only the loss is worked out. */
typedef struct {
    float *hidden;        /* count x dim, overwritten; zeros for targets that are not counted */
    float *table;         /* rows of the head's table x dim, added to */
    float *bias;          /* rows of the head's table, added to; needs a bias */
    uint64_t reserved[4]; /* must be 0 */
} embla_loss_gradients;

typedef struct {
    double loss;   /* cross-entropy with smoothing, and z-loss; 0 if nothing was counted */
    double z_loss; /* the part of it that is z-loss */
    int64_t counted, ignored;
    int64_t correct; /* counted targets that had the highest logit (the lowest token of equals) */
    uint64_t reserved[4];
} embla_loss_report;

/* The cross-entropy of targets (count) under the logits of hidden (count x dim), forward and
 * backward in chunks: at most 64 MiB are needed beside the arguments, however many tokens (above
 * 13 million rows 4 bytes for each row; for each thread some 2 MiB more unless the table is f32
 * and so is compute). They are taken and given back in each call. Gradients are those of the
 * very logits the loss was taken of; hidden's may be written over hidden. each (may be NULL)
 * gets the loss of each target, 0 where it is not counted. report may be NULL.
 * EMBLA_ERR_RANGE for a target that is neither a token nor ignored, EMBLA_ERR_UNSUPPORTED where
 * there is no engine (embla_lab.h). A NaN logit makes its target's loss and gradients NaN, and
 * so the table's; -infinity is a probability of 0; the loss of a target at -infinity is
 * infinite, and NaN where all are.
 * Chunks are cut from the counted targets by rows and dim alone: a batch given in several calls
 * (with sum, and one weight), each but the last a whole number of chunks, adds the same bits to
 * the table's gradient as one call. */
EMBLA_API EMBLA_CHECKED embla_status embla_head_loss(const embla_head *head, const float *hidden,
                                                     const int32_t *targets, size_t count,
                                                     const embla_loss_options *options,
                                                     const embla_loss_gradients *gradients,
                                                     float *each, embla_loss_report *report);

/* ---- losses for tables of very many rows ---- */

typedef enum {
    EMBLA_PROPOSAL_LOG_UNIFORM =
        0, /* P(v) = ln((v + 2) / (v + 1)) / ln(rows + 1): tokens by frequency */
    EMBLA_PROPOSAL_UNIFORM = 1
} embla_proposal;

typedef struct {
    size_t negatives; /* draws, shared by all targets of the call; at least 1 */
    uint64_t seed;
    int64_t step; /* the same seed and step draw the same tokens */
    embla_proposal proposal;
    uint64_t reserved[4]; /* must be 0 */
} embla_negatives;

/* What a sampled loss learns: rows that were targets or drawn, ascending, each once. */
typedef struct {
    float *hidden;        /* count x dim, overwritten; NULL: not wanted */
    int64_t *rows;        /* room for count + negatives; NULL with table: not wanted */
    float *table;         /* room for (count + negatives) x dim: gradient of rows[i] */
    size_t touched;       /* out: how many rows */
    uint64_t reserved[4]; /* must be 0 */
} embla_sampled_gradients;

/* Cross-entropy against drawn tokens instead of all. Drawn with replacement, and each that came
 * counts once; each logit, the target's too, less the log of the chance that its token is among
 * the drawn: 1 - (1 - P)^negatives; a drawn token that is the target counts not as a negative
 * for it. The more negatives, the nearer to embla_head_loss; it costs negatives / rows of it,
 * and needs about as much memory as gradients has room for. correct: the target's logit (as the
 * head has it) was the highest among the drawn. A bias is used, but has no gradient here. If no
 * target is counted no row is touched. smoothing and z_loss are EMBLA_ERR_UNSUPPORTED. */
EMBLA_API EMBLA_CHECKED embla_status embla_sampled_loss(const embla_head *head, const float *hidden,
                                                        const int32_t *targets, size_t count,
                                                        const embla_negatives *negatives,
                                                        const embla_loss_options *options,
                                                        embla_sampled_gradients *gradients,
                                                        float *each, embla_loss_report *report);

typedef struct embla_adaptive embla_adaptive;

typedef struct {
    const int64_t *cutoffs; /* ascending, inside 1 .. rows-1: tokens below the first are in the */
    size_t cutoff_count; /* head, the others in clusters, one for each cutoff; 0: all in the head */
    double divide; /* cluster i (from 1) has dim / divide^i numbers in a row, 1 at least; 0: 4 */
    uint64_t seed; /* of the first weights: normal, 1 / sqrt(numbers in a row) */
    uint64_t reserved[4]; /* must be 0 */
} embla_adaptive_options;

/* Adaptive softmax (Grave and others, 2017): tokens in order of frequency; frequent ones in a
 * head of cutoffs[0] + clusters rows, rare ones in clusters of shorter rows. The same tables as
 * PyTorch's AdaptiveLogSoftmaxWithLoss without a bias. options may be NULL. */
EMBLA_API EMBLA_CHECKED embla_status embla_adaptive_new(int64_t rows, size_t dim,
                                                        const embla_adaptive_options *options,
                                                        embla_adaptive **out);
EMBLA_API void embla_adaptive_free(embla_adaptive *adaptive);
/* Its tables, f32, to be read, written and trained: 0 the head, 1 the projection of the first
 * cluster (short dim x dim), 2 its rows (tokens x short dim), 3 and 4 of the second, ..; NULL
 * past the last. They belong to it. */
EMBLA_API embla_table *embla_adaptive_table(embla_adaptive *adaptive, size_t n);
/* Cross-entropy, as embla_head_loss. hidden's gradient is overwritten, that of table n added to
 * tables[n]; either NULL: not wanted. correct: the target, or its cluster, was the highest in the
 * head, and the target the highest in its cluster. smoothing, z_loss and bf16 are
 * EMBLA_ERR_UNSUPPORTED. */
EMBLA_API EMBLA_CHECKED embla_status
embla_adaptive_loss(const embla_adaptive *adaptive, const float *hidden, const int32_t *targets,
                    size_t count, const embla_loss_options *options, float *hidden_gradient,
                    float *const *tables, float *each, embla_loss_report *report);
/* Log-probabilities of all tokens (count x rows). */
EMBLA_API EMBLA_CHECKED embla_status
embla_adaptive_log_probabilities(const embla_adaptive *adaptive, const float *hidden, size_t count,
                                 const embla_head_options *options, float *out);

/* ---- clip: gradients that are too long together ---- */

typedef struct {
    float *values;
    size_t count;
} embla_span;

typedef struct {
    int threads;          /* 0 means OpenMP's own number */
    uint64_t reserved[4]; /* must be 0 */
} embla_clip_options;

/* Writes the Euclidean norm of all spans together to *norm (may be NULL). If it is above max_norm,
 * all values are multiplied by max_norm / norm. max_norm 0 means: only measure. Sums in double over
 * leaves of fixed size, added as a tree that depends on the counts alone. If the length is not
 * finite nothing is scaled: the step is better left out. */
EMBLA_API EMBLA_CHECKED embla_status embla_clip(const embla_span *spans, size_t count,
                                                double max_norm, const embla_clip_options *options,
                                                double *norm);

/* ---- schedule: the learning rate of a step ---- */

typedef enum {
    EMBLA_SCHEDULE_CONSTANT = 0,
    EMBLA_SCHEDULE_LINEAR = 1, /* from rate to final on a line */
    EMBLA_SCHEDULE_COSINE = 2, /* from rate to final on half a cosine */
    EMBLA_SCHEDULE_WSD = 3     /* rate, then from rate to final on a line over decay steps */
} embla_schedule_kind;

typedef struct {
    double rate, final; /* after warm-up; at the last step (where they are one step: rate) */
    int64_t steps;      /* of the whole training; constant: not needed */
    int64_t warm_up; /* steps from 0 to rate on a line: step s < warm_up has rate (s+1)/warm_up */
    int64_t decay;   /* wsd: the last so many steps */
    embla_schedule_kind kind;
    uint64_t reserved[4]; /* must be 0 */
} embla_schedule;

/* "constant", "linear", "cosine", "wsd"; NULL past the last. */
EMBLA_API const char *embla_schedule_name(embla_schedule_kind kind);
/* The rate of step (from 0; steps past the last have the last one's). */
EMBLA_API EMBLA_CHECKED embla_status embla_schedule_rate(const embla_schedule *schedule,
                                                         int64_t step, double *out);

/* ---- optim: the step that moves rows ---- */

typedef enum {
    EMBLA_OPTIM_SGD = 0,             /* with momentum if asked */
    EMBLA_OPTIM_ADAGRAD = 1,         /* a sum of squares for each number */
    EMBLA_OPTIM_ADAGRAD_ROWWISE = 2, /* one for each row: the mean of its squares */
    EMBLA_OPTIM_ADAMW = 3
} embla_optim_kind;

typedef struct {
    embla_optim_kind kind;
    double momentum; /* SGD; 0: none */
    double beta1;    /* AdamW; 0: 0.9 */
    double beta2;    /* 0: 0.999 */
    double epsilon;  /* 0: 1e-8 (AdamW), 1e-10 (Adagrad) */
    /* A row that learns is multiplied by 1 - rate * decay before each step (decoupled, in every
     * kind). */
    double decay;
    embla_frozen frozen; /* rows that no step changes: kept byte for byte. Copied. */
    bool nesterov;       /* SGD with momentum: look ahead */
    /* What becomes of rows that a step of rows does not name. false: nothing, neither decay nor
     * momentum (lazy; a step costs what it touches). true: what a dense step with a gradient of
     * zeros would have done, made up for when the row is next named or caught up: the same bits
     * as dense steps. */
    bool catch_up;
    int threads;          /* 0: OpenMP's own number */
    uint64_t reserved[4]; /* must be 0 */
} embla_optim_options;

typedef struct embla_optim embla_optim;

/* "sgd", "adagrad", "adagrad-rowwise", "adamw"; NULL past the last. */
EMBLA_API const char *embla_optim_name(embla_optim_kind kind);
/* An optimizer of table (f32; bf16 and f16 with an f32 master copy inside), which stays the
 * caller's and must outlive it. What others write to a row that has a master is lost at the
 * row's next step. Other dtypes are EMBLA_ERR_UNSUPPORTED. */
EMBLA_API EMBLA_CHECKED embla_status embla_optim_new(embla_table *table,
                                                     const embla_optim_options *options,
                                                     embla_optim **out);
EMBLA_API void embla_optim_free(embla_optim *optim);
/* One step with a gradient for every row (rows x dim). */
EMBLA_API EMBLA_CHECKED embla_status embla_optim_step(embla_optim *optim, double rate,
                                                      const float *gradient);
/* One step with gradients (count x dim) for these rows: ascending, each once, as
 * embla_scatter_rows has them. Frozen rows may be among them, and stay. */
EMBLA_API EMBLA_CHECKED embla_status embla_optim_step_rows(embla_optim *optim, double rate,
                                                           const int64_t *rows, size_t count,
                                                           const float *gradients);
/* With catch_up: brings these rows (any order; NULL: all) to the present, before they are looked
 * up. Without: nothing. */
EMBLA_API EMBLA_CHECKED embla_status embla_optim_catch_up(embla_optim *optim, const int64_t *rows,
                                                          size_t count);
/* Steps made; to go on with a saved state, set them (and fill the states). Set only while all
 * rows are caught up. */
EMBLA_API int64_t embla_optim_steps(const embla_optim *optim);
EMBLA_API EMBLA_CHECKED embla_status embla_optim_set_steps(embla_optim *optim, int64_t steps);

/* What it remembers: "momentum"; "squares"; "mean" and "squares"; "master". */
typedef struct {
    const char *name;
    float *values;
    int64_t rows;
    size_t dim; /* 1 for adagrad-rowwise */
    uint64_t reserved[4];
} embla_optim_state;

/* The n-th, with all rows caught up. EMBLA_ERR_RANGE past the last. */
EMBLA_API EMBLA_CHECKED embla_status embla_optim_state_at(embla_optim *optim, size_t n,
                                                          embla_optim_state *out);

#ifdef __cplusplus
}
#endif
#endif
