/* SPDX-License-Identifier: Apache-2.0 */
/* embla_train.h - a language model around the table, to train it: text in, rows that mean
 * something out.
 *
 *   text -> corpus -> tokens, targets (B, T)
 *   tokens -> table + positions -> layers -> head -> loss -> gradients -> step
 *   model + corpus -> train (steps, validation, checkpoints)
 *   model + tokens -> generate -> tokens
 *
 * The rules of embla.h hold here too: the same seed gives the same bits for any number of
 * threads, also where a training was interrupted and went on. Products are by an engine
 * (embla_lab.h); small models do without. Link libembla_lab.
 */
#ifndef EMBLA_TRAIN_H
#define EMBLA_TRAIN_H

#include "embla_learn.h"
#include "embla_store.h"
#include "embla_text.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- model: a decoder ---- */

typedef struct embla_gpt embla_gpt;

typedef enum {
    EMBLA_NORM_LAYER = 0, /* mean 0, variance 1 */
    EMBLA_NORM_RMS = 1    /* mean square 1 */
} embla_norm_kind;

typedef enum {
    EMBLA_ACTIVATION_GELU = 0, /* by tanh, as GPT-2 */
    EMBLA_ACTIVATION_RELU = 1,
    EMBLA_ACTIVATION_RELU_SQUARED = 2,
    EMBLA_ACTIVATION_SWIGLU = 3 /* silu(gate) * up: a third matrix */
} embla_activation;

typedef enum {
    EMBLA_POSITIONS_LEARNED = 0,
    EMBLA_POSITIONS_SINUSOIDAL = 1,
    EMBLA_POSITIONS_ROTARY = 2,
    EMBLA_POSITIONS_NONE = 3
} embla_positions_kind;

/* A hashed n-gram table beside the trunk: the last few tokens name rows of it, whose numbers
 * side by side (E = (orders - 1) * heads * dim) become a key and a value of the model's dim;
 * value times gate is added to what a layer takes, where
 * gate = sigmoid(rms(stream) . rms(key) / sqrt(dim)). Rows are 0 at first: the model begins as it
 * would be without. N-grams do not reach over the last token of the vocabulary (BOS, where there
 * is one). */
typedef struct {
    int64_t rows;         /* of all heads together, about; 0: there is no such table */
    size_t heads;         /* row numbers for each order; 0: 4 */
    size_t orders;        /* n-grams of 2 to so many tokens; 0: 3 */
    size_t dim;           /* numbers in a row; 0: so many that E is the model's dim, about */
    size_t layer;         /* the layer, from 0 */
    uint64_t seed;        /* of the hash */
    uint64_t reserved[4]; /* must be 0 */
} embla_gpt_ngram;

typedef struct {
    int64_t vocab;
    size_t dim;
    size_t layers;
    size_t heads;
    size_t kv_heads;  /* groups of heads share keys and values; 0: heads */
    size_t hidden;    /* numbers inside the feed-forward part; 0: 4 * dim */
    size_t positions; /* the longest sequence */
    embla_norm_kind norm;
    embla_activation activation;
    embla_positions_kind position_kind;
    double norm_epsilon;         /* 0: 1e-5 */
    double rope_theta;           /* 0: 10000 */
    embla_rope_order rope_order; /* rotary */
    double dropout;              /* 0: none */
    bool no_gain;                /* norms have no gain (and no bias) */
    bool biases;                 /* of linear layers and of layer norms */
    bool untied;                 /* the head is a table of its own */
    bool norm_first;             /* a norm right after the positions are added (microGPT) */
    bool no_norm_last;           /* none before the head (microGPT) */
    embla_gpt_ngram ngram;       /* f32 only */
    uint64_t reserved[4];        /* must be 0 */
} embla_gpt_shape;

typedef struct {
    embla_gpt_shape shape;
    /* how it is trained where nothing else is said */
    size_t batch, length;
    int64_t steps;
    double rate, final_rate;
    int64_t warm_up;
    double beta1, beta2, epsilon, decay, clip;
    embla_schedule_kind schedule;
    double spread; /* of the first weights, for embla_gpt_new; 0: its own */
    uint64_t reserved[4];
} embla_gpt_preset;

/* "microgpt", "gpt2", "gpt2-mini", "andrea-12m", "andrea-120m", "llama-mini"; NULL past the
 * last. A vocab of 0: as many as the corpus has. */
EMBLA_API const char *embla_gpt_preset_name(size_t n);
EMBLA_API EMBLA_CHECKED embla_status embla_gpt_preset_find(const char *name, embla_gpt_preset *out);

/* Numbers are f32, or f64 for checks against a reference: slow, plain loops, no engine. */
typedef enum { EMBLA_GPT_F32 = 0, EMBLA_GPT_F64 = 1 } embla_gpt_precision;

/* A model with random weights: tables normal with 1/sqrt(dim) unless spread says otherwise, linear
 * layers normal with spread (0: 0.02), those that end a residual branch divided by
 * sqrt(2 * layers); gains 1, biases 0. EMBLA_ERR_ARGUMENT, EMBLA_ERR_SHAPE say what does not fit.
 */
EMBLA_API EMBLA_CHECKED embla_status embla_gpt_new(const embla_gpt_shape *shape,
                                                   embla_gpt_precision precision, uint64_t seed,
                                                   double spread, embla_gpt **out);
/* From a checkpoint: folders with config.json and safetensors of GPT-2, of Llama or of
 * embla_gpt_save, files of llama2.c and of llm.c. Any float dtype becomes f32. EMBLA_ERR_FORMAT
 * for a tensor that is missing or of another shape, with both; EMBLA_ERR_UNSUPPORTED names what
 * it is not. */
EMBLA_API EMBLA_CHECKED embla_status embla_gpt_open(const embla_checkpoint *checkpoint,
                                                    embla_gpt **out);
EMBLA_API void embla_gpt_free(embla_gpt *gpt);
EMBLA_API const embla_gpt_shape *embla_gpt_describe(const embla_gpt *gpt);
EMBLA_API embla_gpt_precision embla_gpt_precision_of(const embla_gpt *gpt);
EMBLA_API int64_t embla_gpt_parameters(const embla_gpt *gpt);

/* One tensor of it: rows x dim (rows 1: a vector). Linear layers are stored output x input. */
typedef struct {
    const char *name; /* "wte", "wpe", "layer0.attn.q", .. docs/train.md has the list */
    int64_t rows;
    size_t dim;
    void *values;   /* f32 or f64, by the precision */
    void *gradient; /* the same; NULL until room was made (embla_gpt_reserve) */
    bool decays;    /* a matrix: weight decay applies; not gains, biases */
    uint64_t reserved[4];
} embla_gpt_tensor;

/* The n-th. EMBLA_ERR_RANGE past the last. */
EMBLA_API EMBLA_CHECKED embla_status embla_gpt_tensor_at(const embla_gpt *gpt, size_t n,
                                                         embla_gpt_tensor *out);
EMBLA_API size_t embla_gpt_tensor_count(const embla_gpt *gpt);

typedef struct {
    int64_t weights, gradients, optimizer, activations, total; /* bytes */
    uint64_t reserved[4];
} embla_gpt_memory;

/* What training takes with batches of batch x length; nothing is allocated. */
EMBLA_API EMBLA_CHECKED embla_status embla_gpt_plan_memory(const embla_gpt_shape *shape,
                                                           embla_gpt_precision precision,
                                                           size_t batch, size_t length,
                                                           embla_gpt_memory *out);
/* Makes room for gradients and for activations of batch x length, once. */
EMBLA_API EMBLA_CHECKED embla_status embla_gpt_reserve(embla_gpt *gpt, size_t batch, size_t length);

typedef struct {
    /* f32 (default) or bf16: factors of linear layers and of the head are rounded, their sums are
     * f32; attention and all else stay f32 */
    embla_dtype compute;
    int threads;   /* 0: OpenMP's own number */
    uint64_t seed; /* of dropout; with step: the same draws */
    int64_t step;
    double weight;        /* multiplies gradients; 0: 1 */
    uint64_t reserved[4]; /* must be 0 */
} embla_gpt_options;

/* The mean cross-entropy of targets (B, T; EMBLA_TARGET_IGNORE: not counted) after tokens (B, T).
 * Room must have been made for as many tokens. Nothing is dropped out. report may be NULL. */
EMBLA_API EMBLA_CHECKED embla_status embla_gpt_loss(embla_gpt *gpt, const int32_t *tokens,
                                                    const int32_t *targets, size_t batch,
                                                    size_t length, const embla_gpt_options *options,
                                                    embla_loss_report *report);
/* The same with dropout, and gradients of all tensors are added to. If it fails for want of memory
 * they are to be zeroed. */
EMBLA_API EMBLA_CHECKED embla_status embla_gpt_backward(embla_gpt *gpt, const int32_t *tokens,
                                                        const int32_t *targets, size_t batch,
                                                        size_t length,
                                                        const embla_gpt_options *options,
                                                        embla_loss_report *report);
EMBLA_API void embla_gpt_zero_gradients(embla_gpt *gpt);
/* The vectors before the head, of the last loss or learn (B, T, dim), f32. */
EMBLA_API const float *embla_gpt_hidden(const embla_gpt *gpt);

/* The table of tokens, a view of "wte" that moves as it does, for embla_near and others; NULL
 * for f64. */
EMBLA_API const embla_table *embla_gpt_tokens(const embla_gpt *gpt);

/* The n-gram table (f32, rows x dim) of a model that has one, else NULL. It is none of the
 * tensors: a step changes only the rows that its batch named. */
EMBLA_API embla_table *embla_gpt_ngram_table(embla_gpt *gpt);
EMBLA_API const embla_ngram *embla_gpt_ngram_hasher(const embla_gpt *gpt);
/* The rows that the last embla_gpt_backward named, ascending, each once, and their gradients
 * (*count x dim), for embla_optim_step_rows. They are not added up over calls, and stay until the
 * next learn (or more room). EMBLA_ERR_NOT_FOUND: there is no table; EMBLA_ERR_ARGUMENT: nothing
 * was learned. */
EMBLA_API EMBLA_CHECKED embla_status embla_gpt_ngram_gradients(const embla_gpt *gpt,
                                                               const int64_t **rows,
                                                               const float **gradients,
                                                               size_t *count);
/* Announces the batch that embla_gpt_backward or embla_gpt_loss will get next: its rows are hashed
 * and prefetched now. This changes speed only. Of options, only threads is used. */
EMBLA_API EMBLA_CHECKED embla_status embla_gpt_ngram_prefetch(embla_gpt *gpt, const int32_t *tokens,
                                                              size_t batch, size_t length,
                                                              const embla_gpt_options *options);
/* Moves the n-gram table to memory that other processes see: an npy file (f4, rows x dim) of
 * this path, in /dev/shm for instance, which is made new and stays. They read rows while they
 * change. The table stays the same handle. EMBLA_ERR_ARGUMENT if the file is there. */
EMBLA_API EMBLA_CHECKED embla_status embla_gpt_ngram_share(embla_gpt *gpt, const char *path);

/* Writes a folder that others open: config.json, model.safetensors with the names of GPT-2 or
 * Llama, tokenizer.json if words are given (vocab of them, in the order of tokens; NULL or empty:
 * a token without text). A shape that neither has gets our own names, for embla_gpt_open. Made
 * where it is missing; each file whole or not at all, the weights last. */
EMBLA_API EMBLA_CHECKED embla_status embla_gpt_save(const embla_gpt *gpt, const char *folder,
                                                    const char *const *words);

/* ---- generate: tokens, one after the other ---- */

typedef struct embla_decoder embla_decoder;

/* Keys and values of up to `most` positions of one sequence. The model is the caller's. */
EMBLA_API EMBLA_CHECKED embla_status embla_decoder_new(const embla_gpt *gpt, size_t most,
                                                       embla_decoder **out);
EMBLA_API void embla_decoder_free(embla_decoder *decoder);
/* Back to no tokens. */
EMBLA_API void embla_decoder_reset(embla_decoder *decoder);
typedef struct {
    int threads;          /* 0 means OpenMP's own number */
    uint64_t reserved[4]; /* must be 0 */
} embla_decoder_options;

/* Appends count tokens to the sequence. The last one's vector goes to hidden (dim floats, may be
 * NULL), for embla_head_top or embla_head_sample; count 0 leaves it as it is. A call that fails
 * appends nothing. EMBLA_ERR_RANGE past the last position. */
EMBLA_API EMBLA_CHECKED embla_status embla_decoder_append(embla_decoder *decoder,
                                                          const int32_t *tokens, size_t count,
                                                          const embla_decoder_options *options,
                                                          float *hidden);
/* The head of the model, for embla_head_sample and embla_head_top. */
EMBLA_API EMBLA_CHECKED embla_status embla_decoder_head(const embla_decoder *decoder,
                                                        embla_head *out);

/* ---- train: steps, validation, checkpoints ---- */

typedef struct embla_train embla_train;

typedef struct {
    size_t batch, length;    /* sequences of a step, tokens of a sequence (0: all positions) */
    embla_schedule schedule; /* with the steps of the whole training */
    double beta1, beta2, epsilon, decay; /* AdamW; 0: 0.9, 0.95, 1e-8; decay 0: none */
    double clip;                         /* the longest gradient; 0: any */
    double ngram_rate;    /* of row-wise Adagrad, times schedule's rate / its highest; 0: 0.05 */
    embla_dtype compute;  /* f32 (default) or bf16 */
    uint64_t seed;        /* of dropout (the corpus has its own) */
    int threads;          /* 0: OpenMP's own number. No bit depends on it. */
    uint64_t reserved[4]; /* must be 0 */
} embla_train_options;

/* A training of gpt on corpus, which stay the caller's and must outlive it, at step 0. Takes what
 * embla_gpt_plan_memory says; steps keep nothing beyond it. Between steps all gradients are 0: they
 * are the training's. EMBLA_ERR_SHAPE where the corpus has more tokens than the model, or sequences
 * are longer than its positions. */
EMBLA_API EMBLA_CHECKED embla_status embla_train_new(embla_gpt *gpt, const embla_corpus *corpus,
                                                     const embla_train_options *options,
                                                     embla_train **out);
EMBLA_API void embla_train_free(embla_train *train);
/* Steps made. */
EMBLA_API int64_t embla_train_steps(const embla_train *train);
EMBLA_API const embla_train_options *embla_train_describe(const embla_train *train);

typedef struct {
    int64_t step;   /* this one, from 0 */
    double loss;    /* before the step */
    double rate;    /* learning rate */
    double norm;    /* length of the gradient, before it was clipped */
    int64_t tokens; /* counted targets */
    bool left_out;  /* the gradient was not finite: no number was changed */
    uint64_t reserved[4];
} embla_train_report;

/* One step: a batch, gradients, clip, AdamW (row-wise Adagrad for n-grams). Steps past the last of
 * the schedule go on at its last rate. report may be NULL. */
EMBLA_API EMBLA_CHECKED embla_status embla_train_step(embla_train *train,
                                                      embla_train_report *report);
/* The mean loss over what the corpus keeps for validation: at most so many batches, 0: all.
 * EMBLA_ERR_NOT_FOUND where it keeps nothing. */
EMBLA_API EMBLA_CHECKED embla_status embla_train_validate(embla_train *train, size_t batches,
                                                          double *loss);

/* Everything that the next step depends on, to one safetensors file: weights, what the optimizer
 * remembers, the step, the options, what corpus it was; and note (may be NULL), which is the
 * caller's. The file is whole under its name, or what was there before still is. */
EMBLA_API EMBLA_CHECKED embla_status embla_train_save(const embla_train *train, const char *path,
                                                      const char *note);
/* Back to what was saved: the steps that follow are those, to the bit, that would have followed
 * then. EMBLA_ERR_SHAPE, EMBLA_ERR_ARGUMENT name what is another: the model, an option that changes
 * results, the corpus; the training is then as it was. EMBLA_ERR_FORMAT: the file is damaged. */
EMBLA_API EMBLA_CHECKED embla_status embla_train_load(embla_train *train, const char *path);

/* embla_train_save as folder/step-NNNNNNNNNN.safetensors, then all but the newest `keep` (1 at
 * least) such files are removed. The folder is made if it is missing. */
EMBLA_API EMBLA_CHECKED embla_status embla_train_checkpoint(const embla_train *train,
                                                            const char *folder, size_t keep,
                                                            const char *note);
/* The newest checkpoint of a folder that is whole, to path (size bytes); *damaged (may be NULL) is
 * how many newer ones are not. EMBLA_ERR_NOT_FOUND: there is none. */
EMBLA_API EMBLA_CHECKED embla_status embla_train_newest(const char *folder, char *path, size_t size,
                                                        size_t *damaged);

/* What was saved, so that a training can be made anew to go on with it. */
typedef struct {
    embla_gpt_shape shape;
    embla_gpt_precision precision;
    embla_train_options options;
    embla_corpus_options corpus;
    int64_t step;
    char note[4096];
    uint64_t reserved[4];
} embla_train_saved;

EMBLA_API EMBLA_CHECKED embla_status embla_train_describe_saved(const char *path,
                                                                embla_train_saved *out);

#ifdef __cplusplus
}
#endif
#endif
