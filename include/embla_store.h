/* SPDX-License-Identifier: Apache-2.0 */
/* embla_store.h - rows of a giant table: named by n-grams, held anywhere, decoded.
 *
 *   config or GGUF -> ngram
 *   tokens, history -> ngram ------------> row numbers (tokens x columns)
 *   checkpoint -> store (ram, shared, mapped)
 *   row numbers -> store lookup ---------> vectors -> your model
 *
 * Models of 2026 keep most of their weights in tables of hundreds of millions of rows that
 * are only ever gathered, addressed by hashing the last few tokens. The rules of embla.h hold
 * here too; this is part of libembla. examples/giant.c is all of it in one page.
 */
#ifndef EMBLA_STORE_H
#define EMBLA_STORE_H

#include "embla.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- fold: tokens that count as one ---- */

typedef struct embla_fold embla_fold;

/* What each token of a vocabulary counts as (DeepSeek: 129,280 tokens fold to 99,092). Copied.
 * EMBLA_ERR_FORMAT unless numbers are given out in order: each is at most one above all before. */
EMBLA_API EMBLA_CHECKED embla_status embla_fold_new(const int32_t *folded, size_t tokens,
                                                    embla_fold **out);
/* From a file: an npy array of int32, one for each token (docs/giant-tables.md). */
EMBLA_API EMBLA_CHECKED embla_status embla_fold_open(const char *path, embla_fold **out);
EMBLA_API void embla_fold_free(embla_fold *fold);
/* Tokens that it folds, and different numbers they become. */
EMBLA_API int64_t embla_fold_tokens(const embla_fold *fold);
EMBLA_API int64_t embla_fold_count(const embla_fold *fold);
EMBLA_API const int32_t *embla_fold_values(const embla_fold *fold);

/* ---- n-gram hasher: tokens -> row numbers ---- */

typedef struct embla_ngram embla_ngram;

typedef enum {
    EMBLA_NGRAM_IDENTITY = 0, /* the row is the token (Gemma's per-layer table) */
    EMBLA_NGRAM_ENGRAM = 1,   /* DeepSeek: products xored, modulo primes; numpy's generator */
    EMBLA_NGRAM_QWEN = 2,     /* qwen4_exp: the same; splitmix64; EOS ends the n-gram */
    EMBLA_NGRAM_LONGCAT = 3   /* a polynomial in the vocabulary, modulo odd numbers */
} embla_ngram_kind;

/* Where the token itself is EOS: implementations of LongCat differ. */
typedef enum {
    EMBLA_NGRAM_EOS_REFERENCE = 0, /* it counts, and so do those before it */
    EMBLA_NGRAM_EOS_ZERO = 1,      /* nothing counts: the first row of each head (vLLM) */
    EMBLA_NGRAM_EOS_IGNORED = 2    /* it is a token like any other, everywhere (mlx-lm) */
} embla_ngram_eos;

typedef struct {
    embla_ngram_kind kind;
    int64_t vocab; /* tokens that are hashed are below this: after folding, where there is a fold */
    int32_t orders;        /* the longest n-gram, 2..8; identity: not looked at */
    int32_t heads;         /* row numbers of each order from 2 on, 1..64; identity: not looked at */
    int64_t base;          /* engram, qwen: sizes of heads are primes from here on */
    double ratio;          /* longcat: sizes of heads are odd, from ratio * vocab + 1 on */
    const int32_t *layers; /* engram: the layers that have a table, in order: no two share a
                              prime; NULL: only this one */
    size_t layer_count;
    int32_t layer; /* engram: the one of them; qwen: which table, from 0 */
    int64_t seed;  /* engram: 0 in what is published; qwen: 1234 */
    int32_t pad; /* engram: what stands before the start, folded; identity: the row of a barrier */
    int32_t eos; /* qwen, longcat; -1: there is none, in longcat */
    embla_ngram_eos eos_rule; /* longcat */
    int64_t multiple;         /* rows are padded to a multiple of this; 0: 1 */
    const embla_fold *fold;   /* engram: NULL: tokens come folded. Kept by the caller. */
    /* Constants that a file states; NULL: derived by the rules. orders, then (orders - 1) x heads.
     */
    const int64_t *multipliers;
    const int64_t *sizes, *offsets;
    uint64_t reserved[4]; /* must be 0 */
} embla_ngram_parameters;

EMBLA_API EMBLA_CHECKED embla_status embla_ngram_new(const embla_ngram_parameters *parameters,
                                                     embla_ngram **out);
/* That of a known model: "qwen3.8-flash-next", "deepseek-v4.1-flash", .. layer is the number of
 * a layer that has a table, from 0 on; -1: the first. fold may be NULL: then tokens come folded.
 * EMBLA_ERR_NOT_FOUND lists the names, or the layers. */
EMBLA_API EMBLA_CHECKED embla_status embla_ngram_new_model(const char *name, int32_t layer,
                                                           const embla_fold *fold,
                                                           embla_ngram **out);
/* The n-th name; NULL past the last. */
EMBLA_API const char *embla_ngram_model_name(size_t n);
/* As a checkpoint's config.json or GGUF keys say; its fold, if it has one, comes with it.
 * EMBLA_ERR_NOT_FOUND where they say nothing of n-grams; EMBLA_ERR_FORMAT where constants that
 * they state are not those of the rules. */
EMBLA_API EMBLA_CHECKED embla_status embla_ngram_open(const embla_checkpoint *checkpoint,
                                                      int32_t layer, const embla_fold *fold,
                                                      embla_ngram **out);
EMBLA_API void embla_ngram_free(embla_ngram *ngram);

typedef struct {
    embla_ngram_kind kind;
    int64_t tokens; /* tokens are below this: what embla_ngram_rows takes */
    int64_t vocab;  /* what is hashed is below this */
    int64_t rows;   /* of the table, padding included */
    int64_t used;   /* rows up to the last that can be named */
    size_t columns; /* row numbers of a token: order by order, then head by head */
    size_t history; /* tokens before a token that it depends on */
    int32_t orders, heads;
    int32_t layer;    /* of a known model or a checkpoint, from 0; -1: the table is no layer's */
    int32_t pad, eos; /* -1: there is none */
    const int64_t *multipliers;     /* orders; NULL: longcat, identity */
    const int64_t *sizes, *offsets; /* columns; NULL: identity */
    uint64_t reserved[4];
} embla_ngram_info;

EMBLA_API void embla_ngram_describe(const embla_ngram *ngram, embla_ngram_info *out);

typedef struct {
    /* (B, history): the tokens before each sequence, oldest first; -1: none, the sequence starts
     * after it. NULL: all start. */
    const int32_t *history;
    /* (B, T): not 0: no n-gram reaches this token from later ones, nor what is before it (images
     * of DeepSeek, padding). Its own row numbers are those of a token that is pad or EOS, and
     * what stands in tokens there is not looked at. */
    const uint8_t *barrier;
    int threads;          /* 0: OpenMP's own number */
    uint64_t reserved[4]; /* must be 0 */
} embla_ngram_options;

/* tokens (B, T) -> rows (B, T, columns). A token outside the vocabulary is EMBLA_ERR_RANGE,
 * also in the history (but -1). */
EMBLA_API EMBLA_CHECKED embla_status embla_ngram_rows(const embla_ngram *ngram,
                                                      const int32_t *tokens, size_t batch,
                                                      size_t length,
                                                      const embla_ngram_options *options,
                                                      int64_t *rows);

/* ---- store: where the rows are ---- */

typedef struct embla_store embla_store;

typedef struct {
    embla_placement placement; /* mapped: opening calls embla_guard. Not view */
    const char *shared_folder; /* shared: where copies are; NULL: /dev/shm */
    const char
        *shared_name;    /* shared: what the copy is called; NULL: made of the file's identity */
    void *buffer;        /* ram: memory of the caller's for the rows, on a boundary of 64 */
    size_t buffer_bytes; /* EMBLA_ERR_SHAPE if it is less than rows x row bytes */
    /* ram: once there is memory (the buffer, too) and before rows are in it: to pin it, or to
     * register it with a GPU. A failure ends the opening with that status. */
    embla_status (*allocated)(void *context, void *memory, size_t bytes);
    /* ram: before the memory is given back. Called if allocated was, and did not fail. */
    void (*released)(void *context, void *memory, size_t bytes);
    embla_progress_fn progress; /* ram, shared, warm; NULL means none */
    void *context;              /* passed to allocated, released and progress */
    int threads;                /* that fill; 0: OpenMP's own number */
    bool small_pages;           /* ram: ask for no huge pages */
    bool found_only;            /* shared: make no copy. EMBLA_ERR_NOT_FOUND if there is none,
                                   EMBLA_ERR_BUSY while another process makes it */
    uint64_t reserved[4];       /* must be 0 */
} embla_store_options;

/* Rows of a file that lie one after the other. */
typedef struct {
    const char *file;
    int64_t offset;         /* of the first row */
    size_t stride;          /* bytes from one row to the next; 0: they follow each other */
    const char *scale_file; /* NULL: the same file */
    int64_t scale_offset;   /* of the first row's scales; -1: they follow the numbers of each row */
    size_t scale_stride;    /* 0: they follow each other. All three: only where there are scales */
    int64_t rows;
    uint64_t reserved[4]; /* must be 0 */
} embla_extent;

/* The tensor called name and its scales; name may have one '*' for the number of a part
 * ("..shard_*.weight"), from 0 on, none missing. NULL: the giant table of the checkpoint, of
 * this layer where several have one; layer -1: the first. Sentences list what there is. */
EMBLA_API EMBLA_CHECKED embla_status embla_store_open(const embla_checkpoint *checkpoint,
                                                      const char *name, int32_t layer,
                                                      const embla_store_options *options,
                                                      embla_store **out);
/* Rows of any files. */
EMBLA_API EMBLA_CHECKED embla_status embla_store_open_extents(const embla_row_format *format,
                                                              const embla_extent *extents,
                                                              size_t count,
                                                              const embla_store_options *options,
                                                              embla_store **out);
/* Rows in the caller's memory, kept by the caller. stride 0: they follow each other. */
EMBLA_API EMBLA_CHECKED embla_status embla_store_view(const embla_row_format *format, int64_t rows,
                                                      const void *data, size_t data_bytes,
                                                      size_t stride, embla_store **out);
EMBLA_API void embla_store_free(embla_store *store);
/* Removes the name of a shared copy. Its memory is freed when the last process that has it open,
 * this store included, closes it. EMBLA_ERR_NOT_FOUND if the name is gone or belongs to another
 * copy by now. EMBLA_ERR_BUSY if another process holds its lock for more than a second.
 * EMBLA_ERR_ARGUMENT for any other placement. */
EMBLA_API EMBLA_CHECKED embla_status embla_store_unshare(const embla_store *store);

typedef struct {
    embla_row_format format;
    int64_t rows;
    size_t row_bytes; /* numbers and scales */
    size_t parts;     /* extents */
    embla_placement placement;
    int64_t bytes;      /* of all rows */
    int64_t huge_bytes; /* of them on huge pages, as the system says; -1: not known */
    int64_t resident;   /* mapped: bytes of the files' rows in the page cache; else bytes; -1: not
                           known */
    const char *shared; /* shared: the copy's path; else NULL */
    bool built;         /* shared: this call made the copy */
    uint64_t reserved[4];
} embla_store_info;

/* What it is, and what the system says of it now (which takes a while). */
EMBLA_API EMBLA_CHECKED embla_status embla_store_describe(const embla_store *store,
                                                          embla_store_info *out);
/* Brings all rows into memory: mapped into the page cache; shared back from swap, and compares
 * them with the checksums they were published with, EMBLA_ERR_IO if they differ; others have them
 * there. */
EMBLA_API EMBLA_CHECKED embla_status embla_store_warm(const embla_store *store,
                                                      const embla_store_options *options);

typedef struct {
    int64_t rows;      /* compared */
    int64_t different; /* of them */
    int64_t first;     /* that is different; -1: none */
    uint64_t reserved[4];
} embla_verify_report;

/* Compares rows with the files, read once more: sample of them, evenly chosen by seed, the first
 * and the last always; 0: all. EMBLA_ERR_IO if a file has been changed, cut or replaced;
 * EMBLA_ERR_UNSUPPORTED for a view. */
EMBLA_API EMBLA_CHECKED embla_status embla_store_verify(const embla_store *store, int64_t sample,
                                                        uint64_t seed, embla_verify_report *out);

/* ---- lookup over a store ---- */

typedef struct {
    size_t heads;        /* row numbers of a token (embla_ngram_info.columns); 0: 1 */
    size_t token_stride; /* bytes from one token's vectors to the next; 0: they follow each other */
    size_t head_stride;  /* and from one head's to the next; 0: one vector. For head-major output:
                            token_stride one vector, head_stride tokens times that */
    size_t first;        /* numbers first .. first+columns-1 of each row.. */
    size_t columns;      /* ..whole groups of its format; 0: all from first on */
    float scale;         /* multiplies every number; 0: 1 */
    int threads;         /* 0: OpenMP's own number */
    bool sum;            /* a token's rows are added, in order, in f32: one vector a token */
    bool raw;            /* stored bytes, scales after them; out_dtype is not looked at */
    embla_dtype out_dtype; /* f32 (default), bf16 or f16 */
    uint64_t reserved[4];  /* must be 0 */
} embla_store_lookup_options;

/* rows (count / heads, heads) -> vectors. EMBLA_ERR_RANGE for a row outside the table,
 * EMBLA_ERR_SHAPE for a count that is no multiple of heads, EMBLA_ERR_IO where a file was cut
 * short or changed: then what is in out is not to be used. */
EMBLA_API EMBLA_CHECKED embla_status embla_store_lookup(const embla_store *store,
                                                        const int64_t *rows, size_t count,
                                                        const embla_store_lookup_options *options,
                                                        void *out);

/* The same where rows occur more than once: each is fetched once. For one thread at a time. */
typedef struct embla_batch embla_batch;

/* Room for at most `most` row numbers; lookups allocate nothing. */
EMBLA_API EMBLA_CHECKED embla_status embla_batch_new(const embla_store *store, size_t most,
                                                     embla_batch **out);
EMBLA_API void embla_batch_free(embla_batch *batch);
EMBLA_API EMBLA_CHECKED embla_status embla_batch_lookup(embla_batch *batch, const int64_t *rows,
                                                        size_t count,
                                                        const embla_store_lookup_options *options,
                                                        void *out);
typedef struct {
    int64_t calls;
    int64_t asked;        /* rows */
    int64_t unique;       /* rows that were fetched, call by call */
    int64_t bytes_read;   /* that had to be touched: lines of memory, pages of a file */
    int64_t bytes_useful; /* of the rows that were fetched */
    int64_t verified;     /* rows compared with the file, see embla_batch_verify */
    uint64_t reserved[4];
} embla_batch_stats;

EMBLA_API void embla_batch_statistics(const embla_batch *batch, embla_batch_stats *out);
/* From now on about one row in `every` is read from the file once more and compared;
 * a difference is EMBLA_ERR_IO. 0: none is (the default). */
EMBLA_API EMBLA_CHECKED embla_status embla_batch_verify(embla_batch *batch, size_t every);

#ifdef __cplusplus
}
#endif
#endif
