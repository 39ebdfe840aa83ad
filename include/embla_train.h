/* SPDX-License-Identifier: Apache-2.0 */
/* embla_train.h - train and run a language model around the table.
 *
 *   text -> corpus -> tokens, targets (B, T)
 *   tokens -> table + positions -> layers -> head -> loss -> gradients -> step
 *   model + corpus -> train (steps, validation, checkpoints)
 *   model + tokens -> decoder -> the next token
 *   model + tokens -> predict -> how probable each token is
 *
 * The rules of embla.h hold here too: the same seed gives the same bits for any number of threads,
 * and a training that is interrupted and resumed gives the same bits as one that is not. An engine
 * (embla_lab.h) computes matrix products, so the bits depend on the engine and the CPU; small
 * models do without it, and any model does with EMBLA_TRAIN_ENGINE_NONE. Link libembla_lab.
 */
#ifndef EMBLA_TRAIN_H
#define EMBLA_TRAIN_H

#include "embla_learn.h"
#include "embla_store.h"
#include "embla_text.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- corpus: text as tokens ---- */

typedef struct embla_corpus embla_corpus;

typedef enum {
    EMBLA_CORPUS_CHARACTERS = 0, /* a token for each different character (UTF-8), by code point */
    EMBLA_CORPUS_BYTES = 1,      /* 256 tokens */
    EMBLA_CORPUS_TOKENS = 2,     /* a file of tokens: llm.c's .bin, .npy of u2, u4 or i4 */
    EMBLA_CORPUS_WORDS = 3,      /* a token for each of the most frequent words, and one for all
                                    other words; docs/train.md has the rule */
    EMBLA_CORPUS_TOKENIZER = 4   /* the tokens of a tokenizer */
} embla_corpus_kind;

typedef struct {
    embla_corpus_kind kind;
    bool documents;    /* each line is a document between two BOS tokens */
    double validation; /* share for validation, below 1; 0 means 0.1 for a stream and none for
                          documents; a negative number means none */
    uint64_t seed;     /* of the order of documents, and of positions in a stream */
    bool in_order;     /* use documents, or pieces of a stream, in the order of the file */
    int64_t max_words; /* for EMBLA_CORPUS_WORDS; 0 means all words */
    const embla_tokenizer *tokenizer; /* for EMBLA_CORPUS_TOKENIZER; needed only by
                                         embla_corpus_open. BOS is its token <|endoftext|> */
    uint64_t reserved[4];             /* must be 0 */
} embla_corpus_options;

/* Opens a text file, a folder of text files, or a file of tokens. The files of a folder are joined
 * in the order of their names; hidden files are skipped, links and folders refused. A text is kept
 * in memory as tokens of 1, 2 or 4 bytes; a file of tokens is mapped. Lines end with LF or CR LF;
 * an empty line is no document. options NULL means characters, as one stream. Tokens of words are
 * numbered by frequency, the most frequent first, and equally frequent ones in the order of their
 * bytes; the token of unknown words follows them. EMBLA_ERR_FORMAT names the byte that is not valid
 * UTF-8. */
EMBLA_API EMBLA_CHECKED embla_status embla_corpus_open(const char *path,
                                                       const embla_corpus_options *options,
                                                       embla_corpus **out);
EMBLA_API void embla_corpus_free(embla_corpus *corpus);
/* The number of tokens; each document counts one BOS. */
EMBLA_API int64_t embla_corpus_tokens(const embla_corpus *corpus);
EMBLA_API int64_t embla_corpus_vocab(const embla_corpus *corpus);
EMBLA_API int64_t embla_corpus_documents(const embla_corpus *corpus); /* 1 for a stream */
/* The text of a token: *length bytes, then a 0. length may be NULL. NULL if the token has no text
 * (BOS, the token of unknown words, tokens of a file). */
EMBLA_API const char *embla_corpus_word(const embla_corpus *corpus, int32_t token, size_t *length);
/* The name of a token, as embla_gpt_save takes it: its text, "<bos>" or "<unk>". NULL for a token
 * of a file. */
EMBLA_API const char *embla_corpus_name(const embla_corpus *corpus, int32_t token);
/* The BOS token; -1 if there is none. */
EMBLA_API int32_t embla_corpus_bos(const embla_corpus *corpus);
/* The token of all words that are not in the vocabulary; -1 if there is none. *count (may be NULL)
 * gets how often it occurs in the corpus. A word of more than 255 bytes is never in it. */
EMBLA_API int32_t embla_corpus_unknown(const embla_corpus *corpus, int64_t *count);
/* Converts text to tokens. *count is their number; the first `capacity` are written to tokens. No
 * BOS is added. EMBLA_ERR_NOT_FOUND names a character that the corpus does not have. */
EMBLA_API EMBLA_CHECKED embla_status embla_corpus_tokenize(const embla_corpus *corpus,
                                                           const char *text, size_t length,
                                                           size_t capacity, int32_t *tokens,
                                                           size_t *count);
/* The batch that embla_corpus_batch writes. */
typedef struct {
    int64_t step;         /* number of the batch, from 0 */
    size_t batch, length; /* B sequences of T tokens */
    bool validation;      /* of the validation part, in order */
    uint64_t reserved[4]; /* must be 0 */
} embla_corpus_request;

/* Writes a batch: tokens (B, T) and the token after each as its target. Past the end of a document
 * the token is 0 and the target EMBLA_TARGET_IGNORE. A batch depends only on the request and the
 * options of the corpus, not on earlier calls.
 *   documents   Sequence b is document number (step * B + b) in an order that seed gives, cut to T
 *               tokens. Each epoch has another order, with each document once.
 *   stream      Sequence b is T tokens from a position drawn by (seed, step, b); with in_order,
 *               piece number (step * B + b).
 *   validation  EMBLA_ERR_RANGE past the last batch. The validation part of a stream is its end, in
 *               pieces of T tokens; the last may be shorter. Documents for validation are the same
 *               for all seeds; with in_order they are the last ones. Missing sequences of the last
 *               batch are EMBLA_TARGET_IGNORE.
 * used (may be NULL) gets the length of the longest sequence: what is written is (B, *used). tokens
 * and targets need room for B x T. EMBLA_ERR_SHAPE if there are fewer than T + 1 tokens to train
 * on. EMBLA_ERR_IO if the file of tokens has changed. */
EMBLA_API EMBLA_CHECKED embla_status embla_corpus_batch(const embla_corpus *corpus,
                                                        const embla_corpus_request *request,
                                                        int32_t *tokens, int32_t *targets,
                                                        size_t *used);

/* ---- a tokenizer of one's own ---- */

typedef struct {
    embla_tokenizer_kind kind;  /* 0 means EMBLA_TOKENIZER_BPE, which is byte-level */
    int64_t max_tokens;         /* special ones included; 0 means 32000 */
    int64_t min_count;          /* a pair (a word for WordLevel, a string for Unigram) that occurs
                                   less often makes no token; 0 means no limit */
    const char *const *special; /* special tokens; they are the first tokens */
    size_t special_count;
    bool lowercase;             /* the tokenizer turns text to lower case */
    int threads;                /* for counting; 0 means the default number */
    embla_progress_fn progress; /* NULL means none; counts bytes, then tokens */
    void *context;              /* passed to progress */
    uint64_t reserved[4];       /* must be 0 */
} embla_tokenizer_train_options;

/* What a training has made. */
typedef struct {
    int64_t tokens, special, merges;
    int64_t pieces; /* different words of the text, as the tokenizer cuts it */
    uint64_t reserved[4];
} embla_tokenizer_trained;

/* Trains a tokenizer on a text file, or on the files of a folder, and writes it to `path` as a
 * tokenizer.json that Hugging Face's library reads too. `path` is replaced if it exists; after a
 * failure it is unchanged. The merges of BPE are those of Hugging Face's BpeTrainer on the same
 * lines; Unigram is learned as its UnigramTrainer does. WordPiece and WordLevel get the special
 * token [UNK] if it is not given, Unigram gets <unk>. The result does not depend on the number of
 * threads. options NULL means defaults; trained may be NULL. EMBLA_ERR_FORMAT names the byte that
 * is not valid UTF-8, EMBLA_ERR_ARGUMENT if max_tokens is too small for the characters of the text.
 */
EMBLA_API EMBLA_CHECKED embla_status embla_tokenizer_train(
    const char *text, const char *path, const embla_tokenizer_train_options *options,
    embla_tokenizer_trained *trained);

/* ---- model: a decoder ---- */

typedef struct embla_gpt embla_gpt;

typedef enum {
    EMBLA_NORM_LAYER = 0, /* mean 0, variance 1 */
    EMBLA_NORM_RMS = 1    /* mean square 1 */
} embla_norm_kind;

typedef enum {
    EMBLA_ACTIVATION_GELU = 0, /* the tanh form, as in GPT-2 */
    EMBLA_ACTIVATION_RELU = 1,
    EMBLA_ACTIVATION_RELU_SQUARED = 2,
    EMBLA_ACTIVATION_SWIGLU = 3 /* silu(gate) * up, with a third matrix */
} embla_activation;

typedef enum {
    EMBLA_POSITIONS_LEARNED = 0,
    EMBLA_POSITIONS_SINUSOIDAL = 1,
    EMBLA_POSITIONS_ROTARY = 2,
    EMBLA_POSITIONS_NONE = 3
} embla_positions_kind;

/* "learned", "sinusoidal", "rotary", "none"; NULL past the last. */
EMBLA_API const char *embla_positions_name(embla_positions_kind kind);

/* A hashed n-gram table beside the trunk. The last few tokens select rows; their numbers side by
 * side (E = (orders - 1) * heads * dim) are projected to a key and a value of the model's dim. gate
 * * value is added to the input of a layer, where gate = sigmoid(rms(stream) . rms(key) /
 * sqrt(dim)). Rows start at 0, so that the model starts as it would be without the table. An n-gram
 * does not cross the last token of the vocabulary (BOS, if there is one). */
typedef struct {
    int64_t rows;         /* of all heads together, approximately; 0 means no such table */
    size_t heads;         /* row numbers for each order; 0 means 4 */
    size_t orders;        /* n-grams of 2 to this many tokens; 0 means 3 */
    size_t dim;           /* numbers in a row; 0 means about the model's dim for E */
    size_t layer;         /* the layer that gets it, from 0 */
    uint64_t seed;        /* of the hash */
    uint64_t reserved[4]; /* must be 0 */
} embla_gpt_ngram;

typedef struct {
    int64_t vocab;
    size_t dim;
    size_t layers;
    size_t heads;
    size_t kv_heads;  /* heads for keys and values (grouped-query attention); 0 means heads */
    size_t hidden;    /* hidden size of the feed-forward layers; 0 means 4 * dim */
    size_t positions; /* the length of the longest sequence */
    embla_norm_kind norm;
    embla_activation activation;
    embla_positions_kind position_kind;
    double norm_epsilon;         /* 0 means 1e-5 */
    double rope_theta;           /* 0 means 10000 */
    embla_rope_order rope_order; /* for rotary positions */
    double dropout;              /* 0 means none */
    bool no_gain;                /* norms have no gain and no bias */
    bool biases;                 /* linear layers and layer norms have biases */
    bool untied;                 /* the head is a separate table */
    bool norm_first;             /* a norm after the positions are added (microGPT) */
    bool no_norm_last;           /* no norm before the head (microGPT) */
    embla_gpt_ngram ngram;       /* rows 0 means none */
    uint64_t reserved[4];        /* must be 0 */
} embla_gpt_shape;

typedef struct {
    embla_gpt_shape shape;
    /* the defaults of a training */
    size_t batch, length;
    int64_t steps;
    double rate, final_rate;
    int64_t warm_up;
    double beta1, beta2, epsilon, decay, clip;
    embla_schedule_kind schedule;
    double spread; /* of the initial weights, for embla_gpt_new; 0 means its default */
    uint64_t reserved[4];
} embla_gpt_preset;

/* The name of the n-th preset: "microgpt", "gpt2", "gpt2-mini", "andrea-12m", "andrea-120m",
 * "llama-mini"; NULL past the last. A preset with vocab 0 uses the corpus's vocabulary. */
EMBLA_API const char *embla_gpt_preset_name(size_t n);
EMBLA_API EMBLA_CHECKED embla_status embla_gpt_preset_find(const char *name, embla_gpt_preset *out);

/* Gives the shape of a preset another dim or number of heads; 0 keeps it. hidden and kv_heads keep
 * their ratios. Where heads is 0, the shape gets the most heads, but no more than it had, that
 * divide dim; each has an even size if positions are rotary. So set position_kind before. */
EMBLA_API void embla_gpt_resize(embla_gpt_shape *shape, size_t dim, size_t heads);

/* Creates a model with random weights. Tables are normal with 1/sqrt(dim), or with spread if it is
 * not 0. Linear layers are normal with spread (0 means 0.02); those that end a residual branch are
 * divided by sqrt(2 * layers). Gains are 1, biases 0. EMBLA_ERR_ARGUMENT and EMBLA_ERR_SHAPE say
 * which sizes do not fit. */
EMBLA_API EMBLA_CHECKED embla_status embla_gpt_new(const embla_gpt_shape *shape, uint64_t seed,
                                                   double spread, embla_gpt **out);
/* Opens a model from a checkpoint: a folder with config.json and safetensors of GPT-2, of Llama or
 * of embla_gpt_save, or a file of llama2.c or llm.c. All float dtypes are converted to f32.
 * EMBLA_ERR_FORMAT for a tensor that is missing or has the wrong shape. EMBLA_ERR_UNSUPPORTED names
 * what is not supported. */
EMBLA_API EMBLA_CHECKED embla_status embla_gpt_open(const embla_checkpoint *checkpoint,
                                                    embla_gpt **out);
EMBLA_API void embla_gpt_free(embla_gpt *gpt);
/* The shape, with all defaults filled in. */
EMBLA_API EMBLA_CHECKED embla_status embla_gpt_describe(const embla_gpt *gpt, embla_gpt_shape *out);
EMBLA_API int64_t embla_gpt_parameters(const embla_gpt *gpt);

/* One tensor: rows x dim; a vector has 1 row. Linear layers are stored output x input. */
typedef struct {
    const char *name; /* "wte", "wpe", "layer0.attn.q", ..; docs/train.md lists them */
    int64_t rows;
    size_t dim;
    float *values;
    float *gradient; /* the same size; NULL before embla_gpt_reserve */
    bool decays;     /* a matrix: weight decay applies to it */
    uint64_t reserved[4];
} embla_gpt_tensor;

/* The n-th tensor. EMBLA_ERR_RANGE past the last. */
EMBLA_API EMBLA_CHECKED embla_status embla_gpt_tensor_at(const embla_gpt *gpt, size_t n,
                                                         embla_gpt_tensor *out);
EMBLA_API size_t embla_gpt_tensor_count(const embla_gpt *gpt);

typedef struct {
    int64_t weights, gradients, optimizer, activations, total; /* bytes */
    int64_t rounded; /* bytes of the weights in bf16, only if that is computed in; not in total */
    uint64_t reserved[4];
} embla_gpt_memory;

/* Computes the memory that training with batches of batch x length needs. Allocates nothing. */
EMBLA_API EMBLA_CHECKED embla_status embla_gpt_plan_memory(const embla_gpt_shape *shape,
                                                           size_t batch, size_t length,
                                                           embla_gpt_memory *out);
/* Allocates gradients and activations for batches of up to batch x length tokens. */
EMBLA_API EMBLA_CHECKED embla_status embla_gpt_reserve(embla_gpt *gpt, size_t batch, size_t length);

typedef struct {
    /* f32 (default) or bf16: factors of linear layers and of the head are rounded, and those of
     * attention too if the CPU multiplies bf16; sums and all else stay f32 */
    embla_dtype compute;
    int threads;
    uint64_t seed; /* of dropout; with step: the same draws */
    int64_t step;
    double weight; /* multiplies gradients; 0 means 1 */
    /* for embla_gpt_backward: number of sampled tokens for the loss (embla_sampled_loss), by seed
     * and step; 0 means against all tokens; f32 only */
    size_t negatives;
    embla_proposal proposal; /* how they are drawn */
    bool no_engine;          /* only plain loops compute matrix products */
    uint64_t reserved[4];    /* must be 0 */
} embla_gpt_options;

/* B sequences of T tokens. */
typedef struct {
    const int32_t *tokens, *targets; /* (B, T) */
    size_t batch, length;
    uint64_t reserved[4]; /* must be 0 */
} embla_gpt_batch;

/* Computes the mean cross-entropy of the targets after the tokens, without dropout. Targets that
 * are EMBLA_TARGET_IGNORE do not count. embla_gpt_reserve must have been called for as many tokens.
 * report may be NULL. */
EMBLA_API EMBLA_CHECKED embla_status embla_gpt_loss(embla_gpt *gpt, const embla_gpt_batch *batch,
                                                    const embla_gpt_options *options,
                                                    embla_loss_report *report);
/* Computes the same with dropout, and adds the gradients of all tensors. If it fails for lack of
 * memory, call embla_gpt_zero_gradients. */
EMBLA_API EMBLA_CHECKED embla_status embla_gpt_backward(embla_gpt *gpt,
                                                        const embla_gpt_batch *batch,
                                                        const embla_gpt_options *options,
                                                        embla_loss_report *report);
EMBLA_API void embla_gpt_zero_gradients(embla_gpt *gpt);

/* The token table: a view of "wte", for embla_near and others. It changes with the model. */
EMBLA_API const embla_table *embla_gpt_tokens(const embla_gpt *gpt);

/* The n-gram table (f32, rows x dim); NULL if the model has none. It is not one of the tensors: a
 * step changes only the rows that its batch selects. */
EMBLA_API embla_table *embla_gpt_ngram_table(embla_gpt *gpt);
/* The rows that the last embla_gpt_backward selected, ascending, each once, and their gradients
 * (*count x dim), for embla_optim_step_rows. Gradients are not summed over calls. The arrays are
 * valid until the next embla_gpt_backward or embla_gpt_reserve. EMBLA_ERR_NOT_FOUND without such a
 * table, EMBLA_ERR_ARGUMENT before the first embla_gpt_backward. */
EMBLA_API EMBLA_CHECKED embla_status embla_gpt_ngram_gradients(const embla_gpt *gpt,
                                                               const int64_t **rows,
                                                               const float **gradients,
                                                               size_t *count);
/* Moves the n-gram table to memory that other processes can read: a new npy file (f4, rows x dim)
 * at this path, for example in /dev/shm. The file stays when the model is freed. Readers see rows
 * while they change. The table keeps its handle. EMBLA_ERR_ARGUMENT if the file exists. */
EMBLA_API EMBLA_CHECKED embla_status embla_gpt_ngram_share(embla_gpt *gpt, const char *path);

/* The model_type that embla_gpt_save writes for a shape: "gpt2", "llama", or "embla", which only
 * embla_gpt_open reads. NULL if the shape is NULL. */
EMBLA_API const char *embla_gpt_family(const embla_gpt_shape *shape);
/* Writes a folder that other programs open: config.json, model.safetensors with the names of GPT-2
 * or Llama, and tokenizer.json if words are given. words has a text for each token; NULL or empty
 * means a token without text. A shape that neither family has gets Embla's own names, for
 * embla_gpt_open. The folder is created if it is missing. Each file is complete or unchanged; the
 * weights are written last. */
EMBLA_API EMBLA_CHECKED embla_status embla_gpt_save(const embla_gpt *gpt, const char *folder,
                                                    const char *const *words);

/* ---- the begin and the end of a text ---- */

enum { EMBLA_TEXT_ENDS = 16 };

typedef struct {
    int32_t begin;                 /* the token that begins a text (BOS); -1 means none */
    bool leads;                    /* it also stands before a prompt */
    int32_t ends[EMBLA_TEXT_ENDS]; /* end_count tokens that end a text; BOS is one of them */
    size_t end_count;
    uint64_t reserved[4];
} embla_text_ends;

/* Finds the tokens, below `tokens`, that begin and end a text of a model: from config.json or GGUF
 * keys, by GPT-2's word <|endoftext|>, which it puts between texts and not before a prompt, or 1
 * and 2 in files of llama2.c. tokenizer may be NULL. */
EMBLA_API void embla_text_ends_find(const embla_checkpoint *checkpoint,
                                    const embla_tokenizer *tokenizer, int64_t tokens,
                                    embla_text_ends *out);

/* ---- decoder: generate one token after the other ---- */

typedef struct embla_decoder embla_decoder;

/* Allocates the key-value cache of one sequence of at most `capacity` tokens. The model must
 * outlive the decoder. */
EMBLA_API EMBLA_CHECKED embla_status embla_decoder_new(const embla_gpt *gpt, size_t capacity,
                                                       embla_decoder **out);
EMBLA_API void embla_decoder_free(embla_decoder *decoder);
/* Starts a new, empty sequence. */
EMBLA_API void embla_decoder_reset(embla_decoder *decoder);
typedef struct {
    int threads;
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

/* ---- predict: how probable tokens are ---- */

/* A token at one place of a text. */
typedef struct {
    int32_t token;
    float logit;            /* before the temperature */
    double log_probability; /* natural logarithm, among all tokens, at the temperature */
    int64_t rank; /* 1 is the highest logit; of equal logits the lower token comes first */
} embla_prediction;

typedef struct {
    double temperature;   /* divides the logits; 0 means 1. Ranks do not depend on it */
    size_t top;           /* next tokens for `next`, at most all tokens of the model */
    const int32_t *asked; /* asked_count tokens for `asked` */
    size_t asked_count;
    int threads;
    uint64_t reserved[4]; /* must be 0 */
} embla_predict_options;

/* What embla_gpt_predict writes. The arrays are the caller's; NULL means not wanted. */
typedef struct {
    embla_prediction *next;  /* top: the most probable tokens after the text, best first */
    embla_prediction *asked; /* asked_count: the asked tokens after the text */
    embla_prediction *each;  /* count: each token of the text after those before it. The first has
                                none before it: its logit, logarithm and rank are 0 */
    float *attention; /* layers x heads x count: the weights with which the last token attends to
                         the tokens of the text; those of a head sum to 1 */
    double loss; /* output, with each: the mean of -log_probability of all tokens but the first, in
                    nats; 0 if there is only one. e^loss is the perplexity */
    uint64_t reserved[4]; /* must be 0 */
} embla_predict_results;

/* Computes what the model expects after count tokens, and how probable these tokens are. A call
 * that fails writes nothing. options NULL means the defaults. EMBLA_ERR_RANGE for more tokens than
 * the model has positions, for a token or a top that it does not have, and for a logit that is NaN
 * or infinite. EMBLA_ERR_ARGUMENT without a token, or for a temperature that is negative or not
 * finite. */
EMBLA_API EMBLA_CHECKED embla_status embla_gpt_predict(const embla_gpt *gpt, const int32_t *tokens,
                                                       size_t count,
                                                       const embla_predict_options *options,
                                                       embla_predict_results *results);

/* ---- train: steps, validation, checkpoints ---- */

typedef struct embla_train embla_train;

/* What a training leaves as it is: bits of embla_train_options.freeze. */
enum {
    EMBLA_FREEZE_TOKENS = 1,    /* the token table; if tied, this is also the head */
    EMBLA_FREEZE_POSITIONS = 2, /* learned positions */
    EMBLA_FREEZE_TRUNK = 4      /* layers and norms: all but the tables, the head and n-grams */
};

/* What computes the matrix products of a training. */
typedef enum {
    EMBLA_TRAIN_ENGINE_AUTO = 0,   /* NONE if the largest product of a step has at most 4,194,304
                                      multiplications, in f32 and without negatives; else LIBRARY */
    EMBLA_TRAIN_ENGINE_NONE = 1,   /* plain loops: slower for large models, but the same bits on
                                      every CPU, and no library is needed */
    EMBLA_TRAIN_ENGINE_LIBRARY = 2 /* the engine that Embla was built with, for products that are
                                      large enough; plain loops for all others */
} embla_train_engine;

typedef struct {
    size_t batch, length;    /* sequences in a step; tokens in a sequence (0 means all positions) */
    embla_schedule schedule; /* its steps are those of the whole training */
    double beta1, beta2, epsilon, decay; /* AdamW; 0 means 0.9, 0.95, 1e-8 and no decay */
    double clip;                         /* clip the gradient norm to this; 0 disables clipping */
    double ngram_rate;    /* of row-wise Adagrad, scaled like the schedule's rate; 0 means 0.05 */
    embla_dtype compute;  /* f32 (default) or bf16 */
    uint64_t seed;        /* of dropout (the corpus has its own) */
    int threads;          /* does not change results */
    unsigned freeze;      /* EMBLA_FREEZE_.., added; frozen numbers keep their bits, and their
                             gradients do not count in the norm; 0 means that everything is trained */
    int64_t freeze_below; /* rows below this one of the token table, and of a separate head, are
                             frozen too */
    size_t negatives;     /* sampled softmax: number of sampled tokens;
                             frequent ones are drawn more often if tokens are words or come from a
                             file; 0 means against all tokens. Validation always uses all */
    embla_train_engine engine; /* NONE cannot be used with negatives */
    uint64_t reserved[4];      /* must be 0 */
} embla_train_options;

/* The options of a training with a preset: its batch, length, optimizer and schedule; the others
 * are 0. steps 0 means those of the preset, and a rate below 0 its rate. The warm-up is that of the
 * preset, but at most a tenth of the steps. The final rate keeps its ratio to the rate.
 * EMBLA_SCHEDULE_WSD decays over the last fifth. */
EMBLA_API EMBLA_CHECKED embla_status embla_gpt_preset_options(const embla_gpt_preset *preset,
                                                              int64_t steps, double rate,
                                                              embla_schedule_kind kind,
                                                              embla_train_options *out);

/* Creates a training of gpt on corpus, at step 0. Both must outlive it. It needs the memory that
 * embla_gpt_plan_memory computes; steps allocate nothing that stays. It uses the gradients of the
 * model, which are 0 between steps. EMBLA_ERR_SHAPE if the corpus has more tokens than the model,
 * or sequences are longer than its positions. EMBLA_ERR_ARGUMENT if nothing is left to learn, or
 * a part to freeze does not exist. */
EMBLA_API EMBLA_CHECKED embla_status embla_train_new(embla_gpt *gpt, const embla_corpus *corpus,
                                                     const embla_train_options *options,
                                                     embla_train **out);
EMBLA_API void embla_train_free(embla_train *train);
/* The number of steps made. */
EMBLA_API int64_t embla_train_steps(const embla_train *train);
/* The options, with all defaults filled in. */
EMBLA_API EMBLA_CHECKED embla_status embla_train_describe(const embla_train *train,
                                                          embla_train_options *out);

typedef struct {
    int64_t step;   /* the number of this step, from 0 */
    double loss;    /* before the step */
    double rate;    /* learning rate */
    double norm;    /* gradient norm before clipping */
    int64_t tokens; /* counted targets */
    bool skipped;   /* the gradient was not finite: no weight was changed */
    uint64_t reserved[4];
} embla_train_report;

/* Makes one step: batch, gradients, clipping, AdamW (row-wise Adagrad for n-grams). Steps past the
 * end of the schedule use its last rate. report may be NULL. EMBLA_ERR_RANGE, after the step, from
 * the 100th step in a row on whose gradient is not finite: nothing is learned. */
EMBLA_API EMBLA_CHECKED embla_status embla_train_step(embla_train *train,
                                                      embla_train_report *report);
/* Whether a training has learned something, for its end. EMBLA_ERR_RANGE if it has diverged: a
 * weight is NaN or infinite, or the gradients of more than half of its steps, up to the last, were
 * not finite. It then needs a lower rate. */
EMBLA_API EMBLA_CHECKED embla_status embla_train_check(const embla_train *train);
/* Computes the mean loss of the corpus's validation part. batches limits the number of batches; 0
 * means all. EMBLA_ERR_NOT_FOUND if there is no validation part. */
EMBLA_API EMBLA_CHECKED embla_status embla_train_validate(embla_train *train, size_t batches,
                                                          double *loss);

/* Saves everything that the next step depends on to one safetensors file: weights, optimizer state,
 * step, options, and the identity of the corpus. note (may be NULL) is any text of the caller. The
 * file is complete or unchanged, and so are the rows in folders beside it (embla_cluster.h). */
EMBLA_API EMBLA_CHECKED embla_status embla_train_save(const embla_train *train, const char *path,
                                                      const char *note);
/* Restores a saved state. The following steps have the same bits as they would have had then.
 * EMBLA_ERR_SHAPE or EMBLA_ERR_ARGUMENT names what differs: the model, the corpus, or an option
 * that changes results. EMBLA_ERR_FORMAT if the file is damaged. After a failure the training is
 * unchanged. */
EMBLA_API EMBLA_CHECKED embla_status embla_train_load(embla_train *train, const char *path);

/* Saves to folder/step-NNNNNNNNNN.safetensors, then removes all such files but the newest `keep`
 * (at least 1). The folder is created if it is missing. */
EMBLA_API EMBLA_CHECKED embla_status embla_train_checkpoint(const embla_train *train,
                                                            const char *folder, size_t keep,
                                                            const char *note);
/* Writes the path of the newest complete checkpoint of a folder to path (size bytes). *damaged (may
 * be NULL) gets the number of newer ones that are damaged. EMBLA_ERR_NOT_FOUND if there is none. */
EMBLA_API EMBLA_CHECKED embla_status embla_train_newest(const char *folder, char *path, size_t size,
                                                        size_t *damaged);

/* What a file of embla_train_save contains, to create the model, corpus and training again. */
typedef struct {
    embla_gpt_shape shape;
    embla_train_options options;
    embla_corpus_options corpus;
    int64_t step;
    char note[4096];
    uint64_t reserved[4];
} embla_train_saved;

/* embla_gpt_save of the model of a training. After embla_train_join it is collective, and rank 0
 * writes the files. If the n-gram table or the token rows are divided among the ranks, only this
 * function saves them. */
EMBLA_API EMBLA_CHECKED embla_status embla_train_save_model(const embla_train *train,
                                                            const char *folder,
                                                            const char *const *words);

/* Reads what a file of embla_train_save contains. EMBLA_ERR_FORMAT if it is damaged. */
EMBLA_API EMBLA_CHECKED embla_status embla_train_describe_saved(const char *path,
                                                                embla_train_saved *out);

#ifdef __cplusplus
}
#endif
#endif
