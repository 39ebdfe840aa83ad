/* SPDX-License-Identifier: Apache-2.0 */
/* embla_checkpoint.h - what is in a checkpoint: its files, keys and tensors, and how the model uses
 * them.
 *
 *   checkpoint -> tensors, each with its role (token table, positions, head ..)
 *   checkpoint -> facts   which row a token has, the scale, the first position
 *   checkpoint -> tie     whether the head is the token table
 *
 * Stable: from 0.1.0 on, nothing in this header changes within a minor version; new options take
 * reserved words (decision 020).
 * embla.h opens a checkpoint and its table. You need this header to look at the other tensors, or
 * to write a table to a file. The rules of embla.h hold here too.
 */
#ifndef EMBLA_CHECKPOINT_H
#define EMBLA_CHECKPOINT_H

#include "embla.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- files and keys ---- */

/* "safetensors", "gguf", "npy", "word2vec", .. */
EMBLA_API const char *embla_checkpoint_format(const embla_checkpoint *checkpoint);

typedef struct {
    const char *name;
    int64_t bytes;
} embla_file;

/* Its *count files. The checkpoint owns the array. */
EMBLA_API const embla_file *embla_checkpoint_files(const embla_checkpoint *checkpoint,
                                                   size_t *count);
/* *count sentences about what was accepted but is unusual. The checkpoint owns the array. */
EMBLA_API const char *const *embla_checkpoint_notes(const embla_checkpoint *checkpoint,
                                                    size_t *count);
/* A text of the file's metadata or of config.json: "model_type", "general.architecture". NULL if
 * there is none. */
EMBLA_API const char *embla_checkpoint_text(const embla_checkpoint *checkpoint, const char *key);
/* An integer of config.json or of a GGUF's keys. A dot enters an object: "text_config.vocab_size".
 * EMBLA_ERR_NOT_FOUND if there is none. */
EMBLA_API EMBLA_CHECKED embla_status embla_checkpoint_integer(const embla_checkpoint *checkpoint,
                                                              const char *key, int64_t *out);
/* The same for a list of integers. *count is the length of the list; the first `capacity` of them
 * are written to out. out may be NULL if capacity is 0. */
EMBLA_API EMBLA_CHECKED embla_status embla_checkpoint_integers(const embla_checkpoint *checkpoint,
                                                               const char *key, size_t capacity,
                                                               int64_t *out, size_t *count);
/* The same for a number that need not be an integer. */
EMBLA_API EMBLA_CHECKED embla_status embla_checkpoint_real(const embla_checkpoint *checkpoint,
                                                           const char *key, double *out);

/* ---- tensors and their roles ---- */

/* The purpose of a tensor, recognised by the names that architectures use. */
typedef enum {
    EMBLA_ROLE_NONE = 0,
    EMBLA_ROLE_TOKENS = 1, /* the token table */
    EMBLA_ROLE_POSITIONS = 2,
    EMBLA_ROLE_HEAD = 3,
    EMBLA_ROLE_HEAD_BIAS = 4,
    EMBLA_ROLE_PER_LAYER = 5, /* a second vocabulary table (Gemma 3n) */
    EMBLA_ROLE_TOKENS_COPY =
        6, /* a copy of the token table, for another part of the model (MTP, T5) */
    EMBLA_ROLE_HEAD_COPY = 7,
    EMBLA_ROLE_TOKEN_TYPES = 8, /* not a vocabulary table */
    EMBLA_ROLE_MAPPING = 9,     /* Model2Vec: the row of each token */
    EMBLA_ROLE_WEIGHTS = 10     /* Model2Vec: the weight of each token */
} embla_role;

enum { EMBLA_TENSOR_RANK_MAX = 8 };

typedef struct {
    const char *name;
    const char *type;  /* the file's own name: "F32", "Q4_K" */
    embla_dtype dtype; /* 0 means that it cannot be opened as a table */
    embla_role role;
    size_t rank;
    int64_t shape[EMBLA_TENSOR_RANK_MAX]; /* slowest first: rows, then numbers in a row */
    int64_t bytes;
    int64_t offset; /* in its file; -1 if the file stores it in another form (text) */
    const char *file;
    uint64_t reserved[4];
} embla_tensor;

/* "none", "tokens", "head", ..; NULL if there is no such role. */
EMBLA_API const char *embla_role_name(embla_role role);
/* Its *count tensors, in the order of its files. The checkpoint owns the array. */
EMBLA_API const embla_tensor *embla_checkpoint_tensors(const embla_checkpoint *checkpoint,
                                                       size_t *count);
/* Finds a tensor by its name. EMBLA_ERR_NOT_FOUND suggests a similar name. */
EMBLA_API EMBLA_CHECKED embla_status embla_checkpoint_find(const embla_checkpoint *checkpoint,
                                                           const char *name, embla_tensor *out);
/* Finds the tensor with this role. *why (may be NULL) is the rule that decided. EMBLA_ERR_NOT_FOUND
 * if there is none, or several: the message then lists them, and "file::tensor" chooses one. */
EMBLA_API EMBLA_CHECKED embla_status embla_checkpoint_role(const embla_checkpoint *checkpoint,
                                                           embla_role role, embla_tensor *out,
                                                           const char **why);
/* Reads stored bytes of a tensor, from offset on. Not for text formats. */
EMBLA_API EMBLA_CHECKED embla_status embla_checkpoint_read(const embla_checkpoint *checkpoint,
                                                           const char *name, int64_t offset,
                                                           size_t bytes, void *out);

/* ---- facts: how the model uses its tables ---- */

/* How a model uses its tables. A "why" names the rule that decided, as text for people; NULL means
 * that the default is used. */
typedef struct {
    const char *architecture;     /* "gemma2"; NULL if the checkpoint does not say */
    const char *architecture_why; /* the key that says it: "model_type" */
    bool named;                   /* "file::tensor" chose the token table */
    embla_role role; /* of the token table by its name; not EMBLA_ROLE_TOKENS if "file::tensor"
                        chose another tensor, EMBLA_ROLE_NONE if there is no token table */
    int64_t tokens;  /* embla_lookup accepts tokens 0 .. tokens-1; 0 without a token table */
    const char *tokens_why;
    const char
        *mapping; /* the tensor with the row of each token; NULL means that token i is row i */
    const char *weights;    /* the tensor with the weight of each token; NULL means none */
    int64_t first_position; /* the row of position 0 in a position table; default 0 */
    const char *first_position_why;
    double scale; /* the model multiplies a looked-up row by this; default 1 */
    const char *scale_why;
    uint64_t reserved[4]; /* is 0 */
} embla_facts;

/* The facts of a checkpoint, from its names, its config.json or a GGUF's keys; docs/formats.md has
 * the rules. No tensor is read. The text in out is valid until the checkpoint is freed.
 *
 * embla_lookup uses the mapping. It applies neither scale nor weights: a row is returned as it is
 * stored. For the vectors that the model computes with, give embla_embed the scale and the first
 * position, and embla_pool the weights: embla_table_open(checkpoint, facts.weights, ..) is a table
 * with one row, the weight of every token. */
EMBLA_API EMBLA_CHECKED embla_status embla_checkpoint_facts(const embla_checkpoint *checkpoint,
                                                            embla_facts *out);

/* ---- tie: is the head the token table? ---- */

/* Whether the head (output projection, lm_head) uses the token table. */
typedef enum {
    EMBLA_TIE_TIED = 1,         /* one tensor is both */
    EMBLA_TIE_STORED_TWICE = 2, /* two tensors with the same bytes */
    EMBLA_TIE_UNTIED = 3,
    EMBLA_TIE_INVERTED = 4,     /* only the head is stored, and the table uses it */
    EMBLA_TIE_HEAD_MISSING = 5, /* the model has its own head, but the file does not contain it */
    EMBLA_TIE_NO_HEAD = 6,      /* the architecture has no head (encoders, word vectors) */
    EMBLA_TIE_NO_TABLE = 7
} embla_tie_kind;

typedef struct {
    embla_tie_kind kind;
    const char *rule; /* the rule of docs/formats.md that decided: "1", "2", "2c", "3" .. */
    const char *flag; /* the flag and where it was found: "tie_word_embeddings = true" */
    bool conflict;    /* the flag and the tensors disagree */
    bool sampled;     /* only a sample of the rows was compared, and all of it is equal */
    int64_t rows_compared;
    double difference; /* the largest |table - head| of the compared rows */
    uint64_t reserved[4];
} embla_tie;

/* The name of a kind; NULL if there is no such kind. */
EMBLA_API const char *embla_tie_name(embla_tie_kind kind);
/* Decides whether the head is tied. If both tensors are stored, their rows are compared until one
 * differs: `sample` evenly spread rows; 0 means all rows. */
EMBLA_API EMBLA_CHECKED embla_status embla_checkpoint_tie(const embla_checkpoint *checkpoint,
                                                          int64_t sample, embla_tie *out);

/* ---- view: a checkpoint of a table in memory ---- */

/* Makes a checkpoint of a table in memory, with one tensor, `vectors`. embla_convert (embla_lab.h)
 * then writes it to a file of any format. vocab has the words of the rows; NULL means none. Nothing
 * is copied: table and vocab must stay valid, and the rows unchanged, until the checkpoint is
 * freed. EMBLA_ERR_UNSUPPORTED for a table with gaps between rows, a scale or a mapping.
 * EMBLA_ERR_SHAPE if vocab has more tokens than the table has rows. */
EMBLA_API EMBLA_CHECKED embla_status embla_checkpoint_view(const embla_table *table,
                                                           const embla_vocab *vocab,
                                                           embla_checkpoint **out);

#ifdef __cplusplus
}
#endif
#endif
