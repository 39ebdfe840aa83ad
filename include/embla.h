/* SPDX-License-Identifier: Apache-2.0 */
/* embla.h - rows of an embedding table, in your program.
 *
 *   checkpoint -> table (and the words its rows stand for)
 *   tokens -> lookup ---------------------------> vectors -> pool
 *   tokens -> embed (lookup + positions) -------> vectors -> your model
 *                                 rotary turns queries and keys inside it
 *   gradients of vectors -> scatter ------------> gradients of rows
 *
 * A table is rows x dim numbers. Token i selects row i: a gather, never a matrix
 * product. A token is an int32_t; a row number is an int64_t, because giant
 * tables have more than 2^31 rows. In a vocabulary table they are the same number.
 *
 * Five rules hold for every function here:
 *   status   what can fail returns embla_status; what cannot returns its value.
 *            A failed call leaves its outputs untouched.
 *   order    handle, inputs, options, outputs last.
 *   memory   what new/view gives, free takes (NULL is fine); result arrays are
 *            the caller's, and overlap no input unless a function works in place;
 *            a void * result needs no alignment; a returned pointer lives as long
 *            as the handle it came from.
 *   threads  a const handle may be used by many threads at once; any other handle
 *            by one thread at a time. The same input gives the same bits for any
 *            number of threads and on every instruction set.
 *   zero     a zeroed options struct, or NULL, means the defaults.
 */
#ifndef EMBLA_H
#define EMBLA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define EMBLA_VERSION_MAJOR 0
#define EMBLA_VERSION_MINOR 1
#define EMBLA_VERSION_PATCH 0
#if defined(__GNUC__)
#define EMBLA_API     __attribute__((visibility("default")))
#define EMBLA_CHECKED __attribute__((warn_unused_result))
#else
#define EMBLA_API
#define EMBLA_CHECKED
#endif

/* Of the library that is running, "0.1.0". */
EMBLA_API const char *embla_version(void);
/* The kernel set in use: "scalar", "avx2" or "avx512". Chosen once, from the CPU;
 * EMBLA_ISA=scalar|avx2|avx512 in the environment overrides it; any other name, and a
 * set that this CPU cannot run, gives "scalar". */
EMBLA_API const char *embla_kernels_name(void);
/* What the library was built with, for bug reports: compiler and OpenMP. */
EMBLA_API const char *embla_build_info(void);
/* The most threads a call uses, whatever its options ask for: four for each CPU, 16 at
 * least; 1 in a build without OpenMP. (OpenMP ends the process when the system refuses
 * it a thread: hence a bound.) */
EMBLA_API int embla_threads_max(void);

/* ---- status ---- */

typedef enum {
    EMBLA_OK = 0,
    EMBLA_ERR_ARGUMENT = 1, /* a call that could never be right */
    EMBLA_ERR_MEMORY = 2,
    EMBLA_ERR_IO = 3,          /* the system refused, or a file changed while open */
    EMBLA_ERR_FORMAT = 4,      /* the bytes are not what they claim to be */
    EMBLA_ERR_UNSUPPORTED = 5, /* well formed, but not something we read or do */
    EMBLA_ERR_NOT_FOUND = 6,
    EMBLA_ERR_RANGE = 7,   /* a token, row or position outside the table */
    EMBLA_ERR_SHAPE = 8,   /* two things that do not fit together */
    EMBLA_ERR_STOPPED = 9, /* a callback returned false */
    EMBLA_ERR_BUSY = 10    /* another process uses it now; try again later */
} embla_status;

EMBLA_API const char *embla_status_name(embla_status status);
/* What went wrong last on this thread: one line, with both numbers in it, no
 * newline. "" if nothing has. Lives until the next failure on this thread. */
EMBLA_API const char *embla_error(void);

/* ---- progress: how far a long call has come ---- */

/* The library calls this function now and then, from the thread that made the call. what names
 * the phase in one word ("copy", "verify"). done of total bytes (questions, pairs) of that phase
 * are finished; done never decreases within a phase. Return true to continue. Return false to
 * stop: the call then cleans up and returns EMBLA_ERR_STOPPED. context is the pointer from the
 * options. */
typedef bool (*embla_progress_fn)(void *context, const char *what, int64_t done, int64_t total);

/* ---- dtype: how a row is stored ---- */

typedef enum {
    EMBLA_F32 = 1,
    EMBLA_F64 = 2,
    EMBLA_F16 = 3,     /* IEEE half */
    EMBLA_BF16 = 4,    /* the upper half of an f32 */
    EMBLA_F8_E4M3 = 5, /* OCP e4m3fn: no infinity, largest 448; takes a scale */
    EMBLA_F8_E5M2 = 6, /* OCP e5m2: the upper half of an f16; takes a scale */
    EMBLA_I8 = 7,      /* -128..127; takes a scale */
    EMBLA_Q8_0 = 8,    /* ggml: 32 signed bytes and one f16 scale, 34 bytes */
    EMBLA_Q4_0 = 9,    /* ggml: 32 four-bit numbers and one f16 scale, 18 bytes */
    EMBLA_Q4_1 = 10,   /* the same with a least value, 20 bytes */
    EMBLA_Q5_0 = 11,   /* 32 five-bit numbers, 22 bytes */
    EMBLA_Q5_1 = 12,   /* the same with a least value, 24 bytes */
    EMBLA_Q3_K = 13,   /* 256 numbers in groups of 16 or 32 with scales of their own: 110 bytes.. */
    EMBLA_Q4_K = 14,   /* ..144.. */
    EMBLA_Q5_K = 15,   /* ..176.. */
    EMBLA_Q6_K = 16,   /* ..210; these four are read, not written */
    EMBLA_IQ4_NL = 17, /* 32 numbers out of 16 uneven steps, 18 bytes */
    EMBLA_IQ4_XS = 18, /* 256 of them in groups of 32, 136 bytes; read, not written */
    EMBLA_MXFP4 = 19,  /* OCP: 32 e2m1 numbers and one power of two, 17 bytes, as ggml has it */
    EMBLA_NVFP4 = 20,  /* 64 e2m1 numbers and four e4m3 scales, 36 bytes, as ggml has it */
    EMBLA_F4_E2M1 = 21 /* two numbers in a byte, the first in its low half; takes a scale */
} embla_dtype;

/* "f32", "q4_0", ..; NULL if there is no such dtype. Values run from 1 without gaps. */
EMBLA_API const char *embla_dtype_name(embla_dtype dtype);
/* The dtype called name. EMBLA_ERR_NOT_FOUND lists the names there are. */
EMBLA_API EMBLA_CHECKED embla_status embla_dtype_find(const char *name, embla_dtype *out);
/* Bytes of a row of dim numbers. EMBLA_ERR_SHAPE if dim is not a whole number of
 * the dtype's blocks (32 for q8_0, 256 for q4_k, 1 for f32; see embla_dtype). */
EMBLA_API EMBLA_CHECKED embla_status embla_dtype_row_bytes(embla_dtype dtype, size_t dim,
                                                           size_t *out);
/* dim numbers from their stored form to float. scale multiplies i8, f8 and f4
 * values (0 means 1) and must be 0 or 1 for the other dtypes. */
EMBLA_API EMBLA_CHECKED embla_status embla_decode(embla_dtype dtype, const void *in, size_t dim,
                                                  float scale, float *out);
/* The reverse: the nearest number the dtype holds, ties to even (blocks as ggml's reference
 * rounds). i8 and f4 stop at their ends and have 0 for a NaN, nvfp4 too; f16, e5m2 and bf16
 * overflow to infinity, e4m3 to NaN; a q or iq4_nl block with a NaN, an infinity or a scale that
 * no f16 holds becomes all NaN, an mxfp4 block with a NaN or an infinity as well.
 * EMBLA_ERR_UNSUPPORTED for a dtype that is read, not written. */
EMBLA_API EMBLA_CHECKED embla_status embla_encode(embla_dtype dtype, const float *in, size_t dim,
                                                  float scale, void *out);

/* ---- row format: what the bytes of a row mean ---- */

/* Scales that stand beside the numbers of a row, one byte for each group of them. */
typedef enum {
    EMBLA_SCALES_NONE = 0,
    EMBLA_SCALES_UE8M0_32 = 1,  /* 2^(byte - 127) for 32 numbers (DeepSeek-V4.1); 255: NaN */
    EMBLA_SCALES_UE8M0_128 = 2, /* the same for 128 */
    EMBLA_SCALES_E4M3_16 = 3    /* an f8_e4m3 for 16 numbers (NVFP4 of ModelOpt) */
} embla_scales;

typedef struct {
    size_t dim;
    embla_dtype dtype;
    embla_scales scales; /* with f8_e4m3 and f4_e2m1 only */
    float scale;         /* of the whole table: i8, f8 and f4; 0: 1 */
} embla_row_format;

/* Bytes of a row: its numbers, then its scales (one for each group begun). EMBLA_ERR_SHAPE
 * where dim is no whole number of blocks, EMBLA_ERR_ARGUMENT for scales that do not go with
 * the dtype. */
EMBLA_API EMBLA_CHECKED embla_status embla_row_bytes(const embla_row_format *format, size_t *out);
/* count rows, one after the other, to floats (count x dim). */
EMBLA_API EMBLA_CHECKED embla_status embla_row_decode(const embla_row_format *format,
                                                      const void *rows, size_t count, float *out);
/* The reverse. Each group gets the smallest scale that holds its largest number.
 * EMBLA_ERR_UNSUPPORTED for a dtype that is only read. */
EMBLA_API EMBLA_CHECKED embla_status embla_row_encode(const embla_row_format *format,
                                                      const float *in, size_t count, void *out);

/* ---- placement: where rows are ---- */

typedef enum {
    EMBLA_PLACEMENT_RAM = 0, /* memory of this process, on huge pages where the system has them */
    EMBLA_PLACEMENT_SHARED = 1, /* stores: one copy for all processes of this machine */
    EMBLA_PLACEMENT_MAPPED = 2, /* the file itself, through the page cache */
    EMBLA_PLACEMENT_READ = 3,   /* stores: the file, one read for each row; slow, the reference */
    EMBLA_PLACEMENT_VIEW = 4    /* memory of the caller; only embla_table_view, embla_store_view */
} embla_placement;

/* "ram", "shared", ..; NULL if there is no such placement. */
EMBLA_API const char *embla_placement_name(embla_placement placement);

/* ---- table: rows x dim ---- */

typedef struct embla_table embla_table;

typedef struct {
    size_t row_stride; /* bytes from one row to the next; 0: rows follow each other */
    float scale;       /* i8, f8, f4: a stored value times this is the number; 0: 1 */
    bool writable;     /* view: init and write may change the bytes; new: always so */
} embla_table_options;

/* A table of zero bytes in this process, on huge pages where the system has them. Memory
 * is taken when it is first written: a table larger than memory can be made, but not
 * filled. 1 <= rows <= 2^40, 1 <= dim <= 2^20. */
EMBLA_API EMBLA_CHECKED embla_status embla_table_new(embla_dtype dtype, int64_t rows, size_t dim,
                                                     const embla_table_options *options,
                                                     embla_table **out);
/* A table over bytes the caller keeps, alive and unmoved, until the view is freed.
 * EMBLA_ERR_SHAPE if data_bytes is too few for rows x dim. */
EMBLA_API EMBLA_CHECKED embla_status embla_table_view(embla_dtype dtype, int64_t rows, size_t dim,
                                                      const void *data, size_t data_bytes,
                                                      const embla_table_options *options,
                                                      embla_table **out);
EMBLA_API void embla_table_free(embla_table *table);

EMBLA_API int64_t embla_table_rows(const embla_table *table);
EMBLA_API size_t embla_table_dim(const embla_table *table);
EMBLA_API embla_dtype embla_table_dtype(const embla_table *table);
EMBLA_API float embla_table_scale(const embla_table *table);
/* RAM, MAPPED or VIEW. */
EMBLA_API embla_placement embla_table_placement(const embla_table *table);
/* Bytes of one row, and from one row to the next. */
EMBLA_API size_t embla_table_row_bytes(const embla_table *table);
EMBLA_API size_t embla_table_row_stride(const embla_table *table);
/* The stored bytes of a row; NULL if there is no such row, or if the table does not hold
 * its rows in memory. Of a mapped file: they are there as long as the file is. */
EMBLA_API const void *embla_table_row(const embla_table *table, int64_t row);
/* The bytes of row 0, to change; NULL if they cannot be changed in place. */
EMBLA_API void *embla_table_data(embla_table *table);

typedef enum {
    EMBLA_INIT_NORMAL = 0, /* mean 0, standard deviation spread */
    EMBLA_INIT_XAVIER = 1  /* uniform in [-spread, spread) */
} embla_init_kind;

typedef struct {
    uint64_t seed;
    float spread;         /* 0: 1/sqrt(dim) for normal, sqrt(2/(rows+dim)) for Xavier */
    int threads;          /* 0: OpenMP's own number */
    embla_init_kind kind; /* default: normal */
} embla_init_options;

/* Fills the table with random numbers. Element (row, column) depends on seed, kind
 * and spread alone: it is the same on every machine, whatever the shape. */
EMBLA_API EMBLA_CHECKED embla_status embla_table_init(embla_table *table,
                                                      const embla_init_options *options);
/* Encodes count rows of dim floats into rows first .. first+count-1. */
EMBLA_API EMBLA_CHECKED embla_status embla_table_write(embla_table *table, int64_t first,
                                                       size_t count, const float *values);

/* ---- checkpoint: a file or a model's folder, and the tensors in it ---- */

typedef struct embla_checkpoint embla_checkpoint;

typedef struct {
    bool lenient;   /* take what is safe but wrong: docs/formats.md names the cases */
    bool copy;      /* tables are read into memory, not mapped; always so where everyone may
                       write to the file */
    embla_dtype as; /* npy: what '<V2' and '|V2' stand for, bf16; 0: refuse it */
} embla_open_options;

/* Opens a file of any format we read, or a folder with config.json and weights, and checks
 * it: the handle is the proof that every tensor lies where it says. What it is, is seen from
 * its bytes. Rows are not read. "file::tensor" opens file and takes tensor as the table.
 * EMBLA_ERR_FORMAT ends with the rule that was broken, docs/formats.md; EMBLA_ERR_UNSUPPORTED
 * for formats that are programs (pickle). */
EMBLA_API EMBLA_CHECKED embla_status embla_checkpoint_open(const char *path,
                                                           const embla_open_options *options,
                                                           embla_checkpoint **out);
EMBLA_API void embla_checkpoint_free(embla_checkpoint *checkpoint);

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
/* Text that comes with the file or its config.json: "model_type", "general.architecture";
 * NULL if it is not there. */
EMBLA_API const char *embla_checkpoint_text(const embla_checkpoint *checkpoint, const char *key);
/* A whole number of config.json or, in a GGUF, of its keys, "text_config.vocab_size" for one
 * inside another. EMBLA_ERR_NOT_FOUND. */
EMBLA_API EMBLA_CHECKED embla_status embla_checkpoint_integer(const embla_checkpoint *checkpoint,
                                                              const char *key, int64_t *out);
/* The same for a list of whole numbers: *count is how many there are, the first `most` of them
 * are written to out (NULL if most is 0). */
EMBLA_API EMBLA_CHECKED embla_status embla_checkpoint_integers(const embla_checkpoint *checkpoint,
                                                               const char *key, size_t most,
                                                               int64_t *out, size_t *count);
/* The same for any number, whole or not. */
EMBLA_API EMBLA_CHECKED embla_status embla_checkpoint_real(const embla_checkpoint *checkpoint,
                                                           const char *key, double *out);

/* What a tensor is for, found by the names that architectures use. */
typedef enum {
    EMBLA_ROLE_NONE = 0,
    EMBLA_ROLE_TOKENS = 1, /* the token table */
    EMBLA_ROLE_POSITIONS = 2,
    EMBLA_ROLE_HEAD = 3,
    EMBLA_ROLE_HEAD_BIAS = 4,
    EMBLA_ROLE_PER_LAYER = 5,   /* a second vocabulary table (Gemma 3n) */
    EMBLA_ROLE_TOKENS_COPY = 6, /* of the token table, for another part of the model (MTP, T5) */
    EMBLA_ROLE_HEAD_COPY = 7,
    EMBLA_ROLE_TOKEN_TYPES = 8, /* not a vocabulary table */
    EMBLA_ROLE_MAPPING = 9,     /* Model2Vec: the row of each token */
    EMBLA_ROLE_WEIGHTS = 10     /* Model2Vec: the weight of each token */
} embla_role;

enum { EMBLA_TENSOR_RANK_MAX = 8 };

typedef struct {
    const char *name;
    const char *type;  /* as the file calls it: "F32", "Q4_K" */
    embla_dtype dtype; /* 0: no table can be made of it */
    embla_role role;
    size_t rank;
    int64_t shape[EMBLA_TENSOR_RANK_MAX]; /* slowest first: rows, then numbers in a row */
    int64_t bytes;
    int64_t offset;   /* in its file; -1: does not lie there as it is (text) */
    const char *file; /* where it is */
} embla_tensor;

EMBLA_API const char *embla_role_name(embla_role role);
/* Its *count tensors, in the order of its files. The checkpoint owns the array. */
EMBLA_API const embla_tensor *embla_checkpoint_tensors(const embla_checkpoint *checkpoint,
                                                       size_t *count);
/* The tensor called name. EMBLA_ERR_NOT_FOUND names one that is nearly it. */
EMBLA_API EMBLA_CHECKED embla_status embla_checkpoint_find(const embla_checkpoint *checkpoint,
                                                           const char *name, embla_tensor *out);
/* The one tensor of this role. EMBLA_ERR_NOT_FOUND if there is none; if several could be it
 * the sentence lists them, and "file::tensor" chooses. *why (may be NULL) is the rule. */
EMBLA_API EMBLA_CHECKED embla_status embla_checkpoint_role(const embla_checkpoint *checkpoint,
                                                           embla_role role, embla_tensor *out,
                                                           const char **why);
/* bytes of a tensor's numbers as they are stored, from offset on. Not for text. */
EMBLA_API EMBLA_CHECKED embla_status embla_checkpoint_read(const embla_checkpoint *checkpoint,
                                                           const char *name, int64_t offset,
                                                           size_t bytes, void *out);

/* The tensor called name as a table, or the token table if name is NULL. Rows stay in the
 * file, read-only; text becomes f32 in memory. The table keeps its file open by itself. Of
 * options only scale is looked at. EMBLA_ERR_UNSUPPORTED for a type that has no dtype,
 * EMBLA_ERR_SHAPE for one that is not rows x dim. */
EMBLA_API EMBLA_CHECKED embla_status embla_table_open(const embla_checkpoint *checkpoint,
                                                      const char *name,
                                                      const embla_table_options *options,
                                                      embla_table **out);

/* Is the head the token table? */
typedef enum {
    EMBLA_TIE_TIED = 1,         /* one tensor serves as both */
    EMBLA_TIE_STORED_TWICE = 2, /* two tensors of the same bytes */
    EMBLA_TIE_UNTIED = 3,
    EMBLA_TIE_INVERTED = 4,     /* only the head is stored, and serves as the table */
    EMBLA_TIE_HEAD_MISSING = 5, /* a head of its own is due, but is not there */
    EMBLA_TIE_NO_HEAD = 6,      /* the architecture has none (encoders, word vectors) */
    EMBLA_TIE_NO_TABLE = 7
} embla_tie_kind;

typedef struct {
    embla_tie_kind kind;
    const char *rule; /* the case of docs/formats.md that decided: "1", "2", "2c", "3" .. */
    const char *flag; /* "tie_word_embeddings = true", "not said", .. and where it was found */
    bool conflict;    /* the flag says one thing, the tensors another */
    bool sampled;     /* equal in all rows that were compared, but not all were */
    int64_t rows_compared;
    double difference; /* the largest |table - head|, of the rows compared; 0 if not compared */
} embla_tie;

EMBLA_API const char *embla_tie_name(embla_tie_kind kind);
/* The verdict. Where both tensors are there they are compared: all rows, or with sample at
 * most so many, evenly spread (one row that differs settles it). */
EMBLA_API EMBLA_CHECKED embla_status embla_checkpoint_tie(const embla_checkpoint *checkpoint,
                                                          int64_t sample, embla_tie *out);

/* A file that is cut short while its rows are being read raises SIGBUS in whoever reads.
 * Every lookup asks for the file's size before and after; this closes the gap between: it
 * handles the signal for pages of our files, passes any other on, and the lookup ends with
 * EMBLA_ERR_IO. For programs; a library leaves it to the program it is in. */
EMBLA_API EMBLA_CHECKED embla_status embla_guard(void);

/* ---- vocab: the words that rows stand for ---- */

typedef struct embla_vocab embla_vocab;

/* The words of a checkpoint's token table, from the file itself or from what lies beside
 * it: NAME.vocab.txt, tokenizer.json, vocab.json, vocab.txt, tokenizer.bin; docs/formats.md
 * has the order. EMBLA_ERR_NOT_FOUND if there are none. */
EMBLA_API EMBLA_CHECKED embla_status embla_vocab_open(const embla_checkpoint *checkpoint,
                                                      embla_vocab **out);
/* The words of a file: tokenizer.json, vocab.json, lines of text, GGUF, SentencePiece's model,
 * the tokenizers of llama2.c and llm.c. */
EMBLA_API EMBLA_CHECKED embla_status embla_vocab_open_file(const char *path, embla_vocab **out);
EMBLA_API void embla_vocab_free(embla_vocab *vocab);
/* Where they came from, for people. */
EMBLA_API const char *embla_vocab_source(const embla_vocab *vocab);
/* Words there are, and one more than the highest token: they differ where ids have gaps. */
EMBLA_API int64_t embla_vocab_count(const embla_vocab *vocab);
EMBLA_API int64_t embla_vocab_end(const embla_vocab *vocab);
/* The word of a token as it is stored, any bytes, *length of them, with a 0 after; NULL if
 * the token has none. */
EMBLA_API const char *embla_vocab_word(const embla_vocab *vocab, int32_t token, size_t *length);
typedef struct {
    const char *bytes; /* length of them, then a 0 */
    uint32_t length;
    int32_t token;
} embla_word;

/* All *count words, in ascending order of tokens. The vocab owns the array. */
EMBLA_API const embla_word *embla_vocab_words(const embla_vocab *vocab, size_t *count);
/* The token of a word: as it is stored; or, where there is none such, with a leading space
 * written as some vocabularies do (U+2581, U+0120). EMBLA_ERR_NOT_FOUND. */
EMBLA_API EMBLA_CHECKED embla_status embla_vocab_find(const embla_vocab *vocab, const char *word,
                                                      size_t length, int32_t *out);

/* ---- lookup: row numbers -> rows ---- */

typedef struct {
    size_t out_stride;     /* bytes from one output row to the next; 0: they follow each other */
    int threads;           /* 0: OpenMP's own number; small batches stay on the calling thread */
    bool raw;              /* copy the stored bytes, undecoded; out_dtype is not looked at */
    embla_dtype out_dtype; /* f32 (default), bf16 or f16 */
} embla_lookup_options;

/* Writes the row of tokens[i] to out + i*out_stride. A token outside the table is
 * EMBLA_ERR_RANGE, in every dtype: nothing is wrapped, clipped or read as row 0. EMBLA_ERR_IO
 * if the file a table was opened from has been cut short; if that happened during the call,
 * what is in out is not to be used. */
EMBLA_API EMBLA_CHECKED embla_status embla_lookup(const embla_table *table, const int32_t *tokens,
                                                  size_t count, const embla_lookup_options *options,
                                                  void *out);
/* The same by row number. */
EMBLA_API EMBLA_CHECKED embla_status embla_lookup_rows(const embla_table *table,
                                                       const int64_t *rows, size_t count,
                                                       const embla_lookup_options *options,
                                                       void *out);

/* In a list of targets: this one is not counted. PyTorch uses the same number. */
enum { EMBLA_TARGET_IGNORE = -100 };

/* ---- embed: tokens (B, T) -> vectors (B, T, dim), with positions ---- */

typedef struct {
    int64_t first_position;   /* of the first token of every sequence; default 0 */
    const int64_t *positions; /* (B, T): one for each token, instead; default NULL */
    float scale;              /* multiplies the token's row before the position is added; 0: 1 */
    size_t out_stride;        /* bytes from one output row to the next; 0: they follow each other */
    int threads;              /* 0: OpenMP's own number */
    bool sqrt_dim;         /* scale by sqrt(dim) as well, as Gemma and the first Transformer do */
    embla_dtype out_dtype; /* f32 (default), bf16 or f16 */
} embla_embed_options;

/* out[b][t] = tokens_table[tokens[b][t]] * scale + positions_table[position], in one
 * pass. positions_table may be NULL: no positions. Learned positions are a table
 * like any other; for sinusoidal ones view what embla_sinusoid wrote. Positions
 * without a position table are EMBLA_ERR_ARGUMENT. The tables
 * may differ in dtype but not in dim (EMBLA_ERR_SHAPE). EMBLA_ERR_RANGE for a
 * token or a position outside its table. */
EMBLA_API EMBLA_CHECKED embla_status embla_embed(const embla_table *tokens_table,
                                                 const embla_table *positions_table,
                                                 const int32_t *tokens, size_t batch, size_t length,
                                                 const embla_embed_options *options, void *out);

/* ---- positions by formula ---- */

/* Writes count rows of dim floats for positions first, first+1, ..: column 2i is
 * sin(p / base^(2i/dim)), column 2i+1 the cosine. base 0 means 10000. */
EMBLA_API EMBLA_CHECKED embla_status embla_sinusoid(int64_t first, size_t count, size_t dim,
                                                    double base, float *out);

typedef struct embla_rope embla_rope;

typedef enum {
    EMBLA_ROPE_ORDER_INTERLEAVED = 0, /* pairs (0,1) (2,3) ..: the paper, GPT-J, llama2.c */
    EMBLA_ROPE_ORDER_HALF_SPLIT = 1   /* pairs (0,dim/2) (1,dim/2+1) ..: NeoX, Hugging Face */
} embla_rope_order;

typedef enum {
    EMBLA_ROPE_SCALING_PLAIN = 0,
    EMBLA_ROPE_SCALING_LINEAR = 1, /* positions divided by factor */
    EMBLA_ROPE_SCALING_NTK = 2,    /* theta times factor^(dim/(dim-2)) */
    EMBLA_ROPE_SCALING_YARN = 3,  /* slow pairs divided by factor, fast ones kept, a ramp between */
    EMBLA_ROPE_SCALING_LLAMA3 = 4 /* the same idea with Llama 3.1's ramp */
} embla_rope_scaling;

typedef struct {
    double theta;               /* 0: 10000 */
    double factor;              /* how many times longer the context becomes; 0: 1 */
    double context;             /* yarn, llama3: the context trained on, in tokens; needed */
    double beta_fast;           /* pairs that turn oftener in context are kept; 0: 32, llama3: 4 */
    double beta_slow;           /* pairs that turn less are divided by factor; 0: 1 */
    double attention;           /* multiplies the result; 0: 1, yarn: 0.1 ln(factor) + 1 */
    size_t cached;              /* positions 0.. to hold ready, 4*dim bytes each; 0: none */
    embla_rope_order order;     /* default: interleaved */
    embla_rope_scaling scaling; /* default: plain */
} embla_rope_options;

/* A rotary embedding for heads of dim numbers; dim is even. */
EMBLA_API EMBLA_CHECKED embla_status embla_rope_new(size_t dim, const embla_rope_options *options,
                                                    embla_rope **out);
EMBLA_API void embla_rope_free(embla_rope *rope);
/* Where heads lie, in floats: for heads that are turned in part (head_stride above dim), and
 * for queries and keys inside longer rows (group_stride above heads * head_stride). */
typedef struct {
    size_t head_stride;  /* from one head to the next; 0: dim */
    size_t group_stride; /* from one position's heads to the next; 0: heads * head_stride */
} embla_rope_layout;

/* Turns x (count, heads, dim) in place, the i-th group of heads by positions[i]. layout
 * may be NULL: all follow each other. EMBLA_ERR_SHAPE if strides make heads overlap. */
EMBLA_API EMBLA_CHECKED embla_status embla_rope_apply(const embla_rope *rope,
                                                      const int64_t *positions, size_t count,
                                                      size_t heads, const embla_rope_layout *layout,
                                                      float *x);
/* Turns back: the inverse for attention 1, and always the adjoint (for gradients). */
EMBLA_API EMBLA_CHECKED embla_status embla_rope_unapply(const embla_rope *rope,
                                                        const int64_t *positions, size_t count,
                                                        size_t heads,
                                                        const embla_rope_layout *layout, float *x);

/* ---- pool: many vectors -> one ---- */

typedef enum {
    EMBLA_POOL_MEAN = 0,
    EMBLA_POOL_SUM = 1,
    EMBLA_POOL_MAX = 2, /* column by column; a NaN stays a NaN */
    EMBLA_POOL_LAST = 3
} embla_pool_kind;

typedef struct {
    const size_t *lengths; /* (B): vectors that count in each sequence; NULL: all T */
    const float *weights;  /* (B, T): mean and sum; the mean divides by their sum */
    int threads;           /* 0: OpenMP's own number */
    embla_pool_kind kind;  /* default: mean */
    bool normalize;        /* divide the result by its norm */
} embla_pool_options;

/* Pools x (B, T, dim) to out (B, dim). Of no vectors the result is a row of zeros, as is
 * the mean of weights that sum to 0; a zero row is not normalised. EMBLA_ERR_RANGE if a
 * length is above T, EMBLA_ERR_ARGUMENT if weights come with max or last. */
EMBLA_API EMBLA_CHECKED embla_status embla_pool(const float *x, size_t batch, size_t length,
                                                size_t dim, const embla_pool_options *options,
                                                float *out);

/* ---- scatter: lookup backwards ---- */

typedef struct embla_scatter embla_scatter;

/* Rows that do not learn; what is named in any of the three ways does not. Zeroed: all do. */
typedef struct {
    int64_t below;       /* rows below this one: to train only those that were added at the end */
    const uint8_t *mask; /* one byte for each row of the table; not 0: this one */
    const int64_t *rows; /* these (a padding row) */
    size_t count;
} embla_frozen;

typedef struct {
    embla_frozen frozen; /* their gradients are left out */
    /* Vectors in a virtual shard: a row's gradient is summed in each shard of so many positions
     * and rounded to float, then these are summed in order. A batch that is cut at shards over
     * many processes gives the same bits. 0: one shard. */
    size_t shard;
    float max_norm; /* a row's gradient that is longer is shortened to this; 0: none is */
    int threads;    /* 0: OpenMP's own number */
    bool by_count;  /* a row's gradient is divided by how often the row occurs */
} embla_scatter_options;

/* Room to put the tokens of a batch in the order of their rows: for a table of rows rows and
 * at most `most` tokens. The calls below allocate nothing. */
EMBLA_API EMBLA_CHECKED embla_status embla_scatter_new(int64_t rows, size_t most,
                                                       embla_scatter **out);
EMBLA_API void embla_scatter_free(embla_scatter *scatter);
/* Which rows a batch of tokens touches, and where. EMBLA_ERR_RANGE for a token outside the
 * table, EMBLA_ERR_SHAPE for more tokens than there is room for. What options point to is not
 * needed afterwards. */
EMBLA_API EMBLA_CHECKED embla_status embla_scatter_plan(embla_scatter *scatter,
                                                        const int32_t *tokens, size_t count,
                                                        const embla_scatter_options *options);
/* The same by row number. */
EMBLA_API EMBLA_CHECKED embla_status embla_scatter_plan_rows(embla_scatter *scatter,
                                                             const int64_t *rows, size_t count,
                                                             const embla_scatter_options *options);
/* The rows that were touched and learn, ascending, each once; and how many they are. */
EMBLA_API size_t embla_scatter_count(const embla_scatter *scatter);
EMBLA_API const int64_t *embla_scatter_rows(const embla_scatter *scatter);
/* gradients (the plan's tokens x dim) -> the gradient of each touched row, to out
 * (embla_scatter_count x dim). Summed in the order of positions, in double, rounded once. */
EMBLA_API EMBLA_CHECKED embla_status embla_scatter_sum(const embla_scatter *scatter,
                                                       const float *gradients, size_t dim,
                                                       float *out);
/* The same sums, added to the touched rows of a dense gradient (rows x dim), in double, rounded
 * once. */
EMBLA_API EMBLA_CHECKED embla_status embla_scatter_add(const embla_scatter *scatter,
                                                       const float *gradients, size_t dim,
                                                       float *dense);
typedef struct {
    int threads; /* 0 means OpenMP's own number */
} embla_limit_norm_options;

/* Scales each row whose norm is above max_norm down to max_norm. rows are in ascending order, each
 * once; NULL means all rows, and count is ignored. A row with a NaN or an infinity stays as it
 * is. */
EMBLA_API EMBLA_CHECKED embla_status
embla_table_limit_norm(embla_table *table, const int64_t *rows, size_t count, float max_norm,
                       const embla_limit_norm_options *options);

/* ---- geometry of vectors ---- */

/* Summed in double, in an order that depends on n alone. */
EMBLA_API double embla_dot(const float *x, const float *y, size_t n);
EMBLA_API double embla_norm(const float *x, size_t n);
/* dot / (norm * norm); 0 if either vector is zero. */
EMBLA_API double embla_cosine(const float *x, const float *y, size_t n);
/* Divides x by its norm; leaves a zero vector as it is. */
EMBLA_API void embla_normalize(float *x, size_t n);

#ifdef __cplusplus
}
#endif
#endif
