/* SPDX-License-Identifier: Apache-2.0 */
/* embla.h - rows of an embedding table, in your program.
 *
 *   checkpoint -> table (and the words its rows stand for)
 *   tokens -> lookup ---------------------------> vectors -> pool
 *   tokens -> embed (lookup + positions) -------> vectors -> your model
 *                                 rotary embeddings rotate its queries and keys
 *   gradients of vectors -> scatter ------------> gradients of rows
 *
 * A table (embedding matrix) has rows x dim numbers; dim is the embedding dimension,
 * d_model. A lookup copies row i for token i: it is a gather, never a matrix product.
 * A token is an int32_t. A row number is an int64_t, because giant tables have more
 * than 2^31 rows. In a vocabulary table token i is row i, unless the table has a mapping
 * (Model2Vec).
 *
 * The shortest program: open a checkpoint, open its table, look up two tokens.
 *   embla_checkpoint *checkpoint = NULL;
 *   embla_table *table = NULL;
 *   const int32_t tokens[2] = {17, 42};
 *   if (embla_checkpoint_open("model.safetensors", NULL, &checkpoint) != EMBLA_OK ||
 *       embla_table_open(checkpoint, NULL, NULL, &table) != EMBLA_OK ||
 *       embla_lookup(table, tokens, 2, NULL, vectors) != EMBLA_OK)
 *       fprintf(stderr, "%s\n", embla_error());
 *
 * Six rules hold for every function here:
 *   status   A function that can fail returns embla_status; any other returns its value.
 *            A call that fails leaves its outputs untouched, unless its comment says otherwise.
 *   NULL     A getter of a NULL handle returns 0, NULL, or -1 where its comment says so. A
 *            function with a status returns EMBLA_ERR_ARGUMENT, and the message names the
 *            parameter. The name of an unknown value is NULL.
 *   order    Arguments are in this order: handle, inputs, options, outputs.
 *   memory   new, view and open create a handle; free releases it, and accepts NULL. The
 *            caller owns result arrays. They must not overlap an input, unless a function
 *            says that it works in place. A void * result needs no alignment. A pointer or
 *            an array that the library returns is valid until its handle is freed, unless its
 *            comment says otherwise.
 *   threads  Many threads may use a const handle at once; any other handle belongs to one
 *            thread at a time. The same input gives the same bits for any number of threads
 *            and on every instruction set. `threads` 0 means the number of
 *            embla_set_parallel, or else the first number in OMP_NUM_THREADS, or else the CPUs
 *            that the process may use. Embla starts its own threads when a call first needs
 *            them; they sleep between calls (decision 033).
 *   zero     A zeroed options struct, or NULL, means the defaults.
 *
 * Stable: from 0.1.0 on, nothing in this header changes within a minor version; new options take
 * reserved words (decision 020).
 *
 * Structs never change their size. The reserved words at the end of a struct become fields in later
 * versions; until then they must be 0, so zero every struct before you fill it. A reserved word
 * that is not 0 is EMBLA_ERR_UNSUPPORTED: no option is silently ignored. Elements of arrays (a
 * word, a span, a chunk) have no reserved words and never change.
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

/* The version of the library that is running: "0.1.0". */
EMBLA_API const char *embla_version(void);
/* The kernel set in use: "scalar", "neon" (64-bit Arm), "avx2" or "avx512" (x86-64). It is chosen
 * once, by the CPU. The environment variable EMBLA_ISA=scalar|neon|avx2|avx512 overrides the
 * choice. An unknown name, or a set that this CPU cannot run, means "scalar". */
EMBLA_API const char *embla_kernels_name(void);
/* The name of kernel set `number` of those that this CPU can run, from "scalar", which is number 0,
 * to the one that is chosen if EMBLA_ISA is unset; NULL for a number beyond them. */
EMBLA_API const char *embla_kernels_at(int number);
/* What the library was built with, for bug reports: the compiler. */
EMBLA_API const char *embla_build_info(void);
/* The maximum number of threads of one call: four for each CPU that the process may use, at least
 * 16. Options that ask for more get this many. */
EMBLA_API int embla_max_threads(void);
/* What an option `threads` of 0 means now: the number of embla_set_parallel; else the first number
 * in OMP_NUM_THREADS; else the CPUs that this process may use (affinity and control group). 1 in a
 * forked child of a process that has used Embla's threads. */
EMBLA_API int embla_default_threads(void);

/* ---- status ---- */

typedef enum {
    EMBLA_OK = 0,
    EMBLA_ERR_ARGUMENT = 1, /* the call is wrong, whatever the data */
    EMBLA_ERR_MEMORY = 2,
    EMBLA_ERR_IO = 3,          /* the system reported an error, or a file changed while open */
    EMBLA_ERR_FORMAT = 4,      /* the file is damaged or breaks the rules of its format */
    EMBLA_ERR_UNSUPPORTED = 5, /* valid, but this library does not read or do it */
    EMBLA_ERR_NOT_FOUND = 6,
    EMBLA_ERR_RANGE = 7,   /* a token, row or position outside the table */
    EMBLA_ERR_SHAPE = 8,   /* two sizes do not fit together */
    EMBLA_ERR_STOPPED = 9, /* a callback returned false */
    EMBLA_ERR_BUSY = 10    /* another process or call uses it now; try again later */
} embla_status;

/* "ok", "argument", ..; NULL if there is no such status. */
EMBLA_API const char *embla_status_name(embla_status status);
/* The message of the last failure on this thread: one line without a newline, with the numbers
 * that did not fit. "" if nothing has failed. It is valid until the next failure on this thread. */
EMBLA_API const char *embla_error(void);

/* ---- threads of the host program ---- */

/* One part of the work of a call. It belongs to Embla; a host's function calls it. */
typedef void (*embla_parallel_part)(void *job, size_t index);
/* A host's function: calls part(job, i) once for each i < count and returns when all of them have
 * returned. It may use any threads, the calling one included, in any order, one after another or at
 * once. No part waits for another. With libdispatch it is one line:
 *   dispatch_apply_f(count, DISPATCH_APPLY_AUTO, job, part); */
typedef void (*embla_parallel_run)(void *context, size_t count, embla_parallel_part part,
                                   void *job);

/* Lets every call of this process, of all libraries of Embla, use the host's threads instead of
 * Embla's own. `threads` is what an option `threads` of 0 means from now on, 1 to 4096; no call has
 * more parts, nor more than embla_max_threads. run NULL means Embla's own threads again; threads 0
 * is then their default number: the first number in OMP_NUM_THREADS, or else the CPUs that the
 * process may use.
 *
 * Results do not depend on the function. Progress is reported from the calling thread: if the
 * function runs no part there, only at the end. If it drops a part, calls one twice or returns
 * early, the call that used it still does all its work, but returns EMBLA_ERR_ARGUMENT.
 * EMBLA_ERR_BUSY while a call runs in parallel. EMBLA_ERR_UNSUPPORTED in a forked child, which uses
 * the calling thread only. */
EMBLA_API EMBLA_CHECKED embla_status embla_set_parallel(embla_parallel_run run, void *context,
                                                        int threads);

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
    EMBLA_Q4_1 = 10,   /* like q4_0, with a minimum as well, 20 bytes */
    EMBLA_Q5_0 = 11,   /* 32 five-bit numbers, 22 bytes */
    EMBLA_Q5_1 = 12,   /* like q5_0, with a minimum as well, 24 bytes */
    EMBLA_Q3_K = 13,   /* ggml: 256 numbers, a scale for each 16 or 32; 110 bytes; read only */
    EMBLA_Q4_K = 14,   /* the same, 144 bytes; read only */
    EMBLA_Q5_K = 15,   /* the same, 176 bytes; read only */
    EMBLA_Q6_K = 16,   /* the same, 210 bytes; read only */
    EMBLA_IQ4_NL = 17, /* 32 numbers, each one of 16 uneven levels, 18 bytes */
    EMBLA_IQ4_XS = 18, /* 256 of them in groups of 32, 136 bytes; read only */
    EMBLA_MXFP4 = 19,  /* OCP: 32 e2m1 numbers and one power of two, 17 bytes, in ggml's layout */
    EMBLA_NVFP4 = 20,  /* 64 e2m1 numbers and four e4m3 scales, 36 bytes, in ggml's layout */
    EMBLA_F4_E2M1 = 21 /* two numbers in a byte, the first in the low bits; takes a scale */
} embla_dtype;

/* "f32", "q4_0", ..; NULL if there is no such dtype. Values run from 1 without gaps. */
EMBLA_API const char *embla_dtype_name(embla_dtype dtype);
/* Finds the dtype with this name. EMBLA_ERR_NOT_FOUND lists the names. */
EMBLA_API EMBLA_CHECKED embla_status embla_dtype_find(const char *name, embla_dtype *out);
/* The bytes of a row of dim numbers. EMBLA_ERR_SHAPE if dim is not a multiple of the dtype's block
 * (32 for q8_0, 256 for q4_k, 1 for f32; see embla_dtype). */
EMBLA_API EMBLA_CHECKED embla_status embla_dtype_row_bytes(embla_dtype dtype, size_t dim,
                                                           size_t *out);
/* Converts dim stored numbers to float. scale multiplies i8, f8 and f4 values; 0 means 1. For other
 * dtypes it must be 0 or 1. */
EMBLA_API EMBLA_CHECKED embla_status embla_dtype_decode(embla_dtype dtype, const void *in,
                                                        size_t dim, float scale, float *out);
/* The reverse: rounds to the nearest number of the dtype, ties to even; blocks round as ggml's
 * reference does. EMBLA_ERR_UNSUPPORTED for a dtype that is read only. Out of range:
 *   - i8, f4 and nvfp4 clamp to their largest number, and turn a NaN into 0;
 *   - f16, e5m2 and bf16 overflow to infinity, e4m3 to NaN;
 *   - a q or iq4_nl block with a NaN, an infinity or a scale too large for f16 becomes all NaN;
 *   - an mxfp4 block with a NaN or an infinity becomes all NaN. */
EMBLA_API EMBLA_CHECKED embla_status embla_dtype_encode(embla_dtype dtype, const float *in,
                                                        size_t dim, float scale, void *out);

/* ---- row format: what the bytes of a row mean ---- */

/* Scales that are stored beside the numbers of a row: one byte for each group of numbers. */
typedef enum {
    EMBLA_SCALES_NONE = 0,
    EMBLA_SCALES_UE8M0_32 = 1,  /* 2^(byte - 127) for 32 numbers (DeepSeek-V4.1); 255 is NaN */
    EMBLA_SCALES_UE8M0_128 = 2, /* the same for 128 */
    EMBLA_SCALES_E4M3_16 = 3    /* an f8_e4m3 for 16 numbers (NVFP4 of ModelOpt) */
} embla_scales;

typedef struct {
    size_t dim;
    embla_dtype dtype;
    embla_scales scales;  /* for f8_e4m3 and f4_e2m1 only */
    float scale;          /* i8, f8, f4: multiplies every number of the table; 0 means 1 */
    uint64_t reserved[4]; /* must be 0 */
} embla_row_format;

/* The bytes of a row: its numbers, then its scales; the last group may be incomplete.
 * EMBLA_ERR_SHAPE if dim is not a multiple of the block. EMBLA_ERR_ARGUMENT if the dtype does not
 * take these scales. */
EMBLA_API EMBLA_CHECKED embla_status embla_row_bytes(const embla_row_format *format, size_t *out);
/* Decodes count consecutive rows to floats (count x dim). */
EMBLA_API EMBLA_CHECKED embla_status embla_row_decode(const embla_row_format *format,
                                                      const void *rows, size_t count, float *out);
/* The reverse. Each group gets the smallest scale that can represent its largest number.
 * EMBLA_ERR_UNSUPPORTED for a dtype that is read only. */
EMBLA_API EMBLA_CHECKED embla_status embla_row_encode(const embla_row_format *format,
                                                      const float *in, size_t count, void *out);

/* ---- placement: where rows are ---- */

typedef enum {
    EMBLA_PLACEMENT_RAM = 0, /* memory of this process, on huge pages where the system has them */
    EMBLA_PLACEMENT_SHARED = 1, /* stores: one copy for all processes of this machine */
    EMBLA_PLACEMENT_MAPPED = 2, /* the file itself, through the page cache */
    EMBLA_PLACEMENT_READ = 3,   /* stores: the file, one read for each row; slow, the reference */
    EMBLA_PLACEMENT_VIEW = 4,   /* memory of the caller; only embla_table_view, embla_store_view */
    EMBLA_PLACEMENT_DIRECT = 5  /* stores: the file, many reads at once past the page cache */
} embla_placement;

/* "ram", "shared", ..; NULL if there is no such placement. */
EMBLA_API const char *embla_placement_name(embla_placement placement);

/* ---- table: rows x dim ---- */

typedef struct embla_table embla_table;

typedef struct {
    size_t row_stride; /* bytes from one row to the next; 0 means no gap */
    float scale;       /* i8, f8, f4: multiplies every stored value; 0 means 1 */
    bool writable;     /* view: allow init and write; a new table is always writable */
    /* new, view: the row of each token; token_count entries, which are copied. NULL means that
     * token i is row i. EMBLA_ERR_RANGE if an entry is not a row of the table. */
    const int64_t *token_rows;
    int64_t token_count;
    bool by_row;          /* open: ignore the checkpoint's mapping, so that token i is row i */
    uint64_t reserved[4]; /* must be 0 */
} embla_table_options;

/* Creates a table of zeros in the memory of this process, on huge pages where the system has them.
 * The system provides the memory when it is first written: a table larger than memory can be
 * created, but not filled. 1 <= rows <= 2^40, 1 <= dim <= 2^20. */
EMBLA_API EMBLA_CHECKED embla_status embla_table_new(embla_dtype dtype, int64_t rows, size_t dim,
                                                     const embla_table_options *options,
                                                     embla_table **out);

/* What the caller's bytes are. The limits are those of embla_table_new. */
typedef struct {
    embla_dtype dtype;
    int64_t rows;
    size_t dim;
    uint64_t reserved[4]; /* must be 0 */
} embla_table_layout;

/* Creates a table that uses the caller's bytes. The bytes must stay valid until the view is freed.
 * EMBLA_ERR_SHAPE if data_bytes is too small for rows x dim. */
EMBLA_API EMBLA_CHECKED embla_status embla_table_view(const embla_table_layout *layout,
                                                      const void *data, size_t data_bytes,
                                                      const embla_table_options *options,
                                                      embla_table **out);
EMBLA_API void embla_table_free(embla_table *table);

EMBLA_API int64_t embla_table_rows(const embla_table *table);
EMBLA_API size_t embla_table_dim(const embla_table *table);
/* How many tokens embla_lookup accepts: the rows, or the length of the mapping. */
EMBLA_API int64_t embla_table_tokens(const embla_table *table);
EMBLA_API embla_dtype embla_table_dtype(const embla_table *table);
EMBLA_API float embla_table_scale(const embla_table *table);
/* EMBLA_PLACEMENT_RAM, _MAPPED or _VIEW. */
EMBLA_API embla_placement embla_table_placement(const embla_table *table);
/* The bytes of one row, and the bytes from one row to the next. */
EMBLA_API size_t embla_table_row_bytes(const embla_table *table);
EMBLA_API size_t embla_table_row_stride(const embla_table *table);
/* The stored bytes of a row. NULL if there is no such row, or if the rows are not in memory. The
 * bytes of a mapped table are valid only while its file keeps its length. */
EMBLA_API const void *embla_table_row(const embla_table *table, int64_t row);
/* Writes the row number of each token to out; out NULL means that the tokens are only checked.
 * EMBLA_ERR_RANGE names the first token without a row, its index and the number of tokens. */
EMBLA_API EMBLA_CHECKED embla_status embla_table_find_rows(const embla_table *table,
                                                           const int32_t *tokens, size_t count,
                                                           int64_t *out);
/* The same check for row numbers. */
EMBLA_API EMBLA_CHECKED embla_status embla_table_check_rows(const embla_table *table,
                                                            const int64_t *rows, size_t count);
/* The bytes of row 0, for writing. NULL if the table is read-only. */
EMBLA_API void *embla_table_data(embla_table *table);

typedef enum {
    EMBLA_INIT_NORMAL = 0, /* mean 0, standard deviation spread */
    EMBLA_INIT_XAVIER = 1  /* uniform in [-spread, spread) */
} embla_init_kind;

typedef struct {
    uint64_t seed;
    float spread; /* 0 means 1/sqrt(dim) for normal, sqrt(2/(rows+dim)) for Xavier */
    int threads;
    embla_init_kind kind; /* default: normal */
    uint64_t reserved[4]; /* must be 0 */
} embla_init_options;

/* Fills the table with random numbers. The number at (row, column) depends only on seed, kind and
 * spread: it is the same on every machine and in a table of any shape. */
EMBLA_API EMBLA_CHECKED embla_status embla_table_init(embla_table *table,
                                                      const embla_init_options *options);
/* Encodes count rows of dim floats into the rows first .. first+count-1. */
EMBLA_API EMBLA_CHECKED embla_status embla_table_write(embla_table *table, int64_t first,
                                                       size_t count, const float *values);

/* ---- checkpoint: a file or a model's folder; embla_checkpoint.h shows what is in it ---- */

typedef struct embla_checkpoint embla_checkpoint;
typedef struct embla_vocab embla_vocab; /* words, see below */

typedef struct {
    bool lenient;         /* accept mistakes that are safe; docs/formats.md lists them */
    bool copy;            /* read tables into memory instead of mapping the file; a file that
                             everyone may write to is always copied */
    embla_dtype as;       /* npy: the dtype of '<V2' and '|V2' (bf16); 0 means refuse them */
    uint64_t reserved[4]; /* must be 0 */
} embla_open_options;

/* Opens a file, or a folder with config.json and weights. The format is detected from the file's
 * contents. The header is checked: every tensor of an open checkpoint lies inside its file. Rows
 * are not read. "file::tensor" opens file and uses tensor as the table.
 * EMBLA_ERR_FORMAT names the rule of docs/formats.md that was broken. EMBLA_ERR_UNSUPPORTED for
 * formats that are programs (pickle). */
EMBLA_API EMBLA_CHECKED embla_status embla_checkpoint_open(const char *path,
                                                           const embla_open_options *options,
                                                           embla_checkpoint **out);
EMBLA_API void embla_checkpoint_free(embla_checkpoint *checkpoint);

/* Opens a tensor as a table. name NULL means the token table. The rows stay in the file and are
 * read-only; a text format is converted to f32 in memory. The table keeps its file open: the
 * checkpoint may be freed first. If the checkpoint has a mapping for this tensor (Model2Vec),
 * embla_lookup uses it; every entry is checked here. Of options, set only scale and by_row;
 * EMBLA_ERR_ARGUMENT for row_stride, writable or token_rows. EMBLA_ERR_UNSUPPORTED for a type
 * without a dtype, EMBLA_ERR_SHAPE for a tensor that is not rows x dim, EMBLA_ERR_FORMAT for a
 * mapping that is not a list of rows of this table. */
EMBLA_API EMBLA_CHECKED embla_status embla_table_open(const embla_checkpoint *checkpoint,
                                                      const char *name,
                                                      const embla_table_options *options,
                                                      embla_table **out);

/* Installs a handler for SIGBUS, which the system raises when a mapped file is cut short while its
 * rows are read. The handler deals with pages of files that Embla mapped, and passes any other
 * signal on; the lookup then returns EMBLA_ERR_IO. Without it, every lookup still checks the file's
 * size before and after. Programs call this once; libraries should leave it to their program. */
EMBLA_API EMBLA_CHECKED embla_status embla_guard(void);

/* ---- vocab: the words that rows stand for ---- */

/* Opens the words of a checkpoint's token table. They are in the file itself or in a file beside
 * it: NAME.vocab.txt, tokenizer.json, vocab.json, vocab.txt or tokenizer.bin (docs/formats.md has
 * the order). EMBLA_ERR_NOT_FOUND if there are none. */
EMBLA_API EMBLA_CHECKED embla_status embla_vocab_open(const embla_checkpoint *checkpoint,
                                                      embla_vocab **out);
/* Opens the words of one file: tokenizer.json, vocab.json, lines of text, GGUF, a SentencePiece
 * model, or a tokenizer of llama2.c or llm.c. */
EMBLA_API EMBLA_CHECKED embla_status embla_vocab_open_file(const char *path, embla_vocab **out);
EMBLA_API void embla_vocab_free(embla_vocab *vocab);
/* The file that the words came from, for messages. */
EMBLA_API const char *embla_vocab_source(const embla_vocab *vocab);
/* The number of words, and the highest token plus 1. They differ if some tokens have no word. */
EMBLA_API int64_t embla_vocab_count(const embla_vocab *vocab);
EMBLA_API int64_t embla_vocab_end(const embla_vocab *vocab);
/* The word of a token as it is stored: *length bytes of any value, then a 0. length may be NULL.
 * NULL if the token has no word. */
EMBLA_API const char *embla_vocab_word(const embla_vocab *vocab, int32_t token, size_t *length);

typedef struct {
    const char *bytes; /* length of them, then a 0 */
    uint32_t length;
    int32_t token;
} embla_word;

/* All *count words, in ascending order of tokens. The vocab owns the array. */
EMBLA_API const embla_word *embla_vocab_words(const embla_vocab *vocab, size_t *count);
/* Finds the token of a word. If the word is not stored as it is, a leading space is tried in the
 * spellings that vocabularies use (U+2581, U+0120). EMBLA_ERR_NOT_FOUND if there is none. */
EMBLA_API EMBLA_CHECKED embla_status embla_vocab_find(const embla_vocab *vocab, const char *word,
                                                      size_t length, int32_t *out);

/* ---- lookup: tokens or row numbers -> rows ---- */

typedef struct {
    size_t out_stride;     /* bytes from one output row to the next; 0 means no gap */
    int threads;           /* small batches stay on the calling thread */
    bool raw;              /* copy the stored bytes without decoding; out_dtype is ignored */
    embla_dtype out_dtype; /* f32 (default), bf16 or f16 */
    uint64_t reserved[4];  /* must be 0 */
} embla_lookup_options;

/* Writes the row of tokens[i] to out + i*out_stride. The table's mapping decides which row that is;
 * without a mapping it is row tokens[i]. EMBLA_ERR_RANGE for a token without a row, in every dtype;
 * no token is wrapped, clamped or read as row 0. EMBLA_ERR_IO if the table's file was cut short; if
 * that happened during the call, the contents of out are undefined. */
EMBLA_API EMBLA_CHECKED embla_status embla_lookup(const embla_table *table, const int32_t *tokens,
                                                  size_t count, const embla_lookup_options *options,
                                                  void *out);
/* The same by row number, whether or not the table has a mapping. */
EMBLA_API EMBLA_CHECKED embla_status embla_lookup_rows(const embla_table *table,
                                                       const int64_t *rows, size_t count,
                                                       const embla_lookup_options *options,
                                                       void *out);

/* A target with this value is not counted. PyTorch's ignore_index has the same default. */
enum { EMBLA_TARGET_IGNORE = -100 };

/* ---- embed: tokens (B, T) -> vectors (B, T, dim), with positions ---- */

typedef struct {
    const embla_table *position_table; /* its rows are added; NULL means no positions */
    int64_t first_position;            /* the position of the first token of every sequence */
    const int64_t *positions; /* (B, T): the position of each token; NULL means consecutive ones */
    float scale;              /* multiplies the token's row, not the position; 0 means 1 */
    size_t out_stride;        /* bytes from one output row to the next; 0 means no gap */
    int threads;
    bool sqrt_dim;         /* scale by sqrt(dim) as well, as Gemma and the first Transformer do */
    embla_dtype out_dtype; /* f32 (default), bf16 or f16 */
    uint64_t reserved[4];  /* must be 0 */
} embla_embed_options;

/* Computes out[b][t] = table[tokens[b][t]] * scale + position_table[position] in one pass. Learned
 * positions are a table like any other; for sinusoidal positions, create a view of what
 * embla_sinusoid wrote. The two tables may differ in dtype. EMBLA_ERR_SHAPE if they differ in dim.
 * EMBLA_ERR_ARGUMENT for positions without a position table. EMBLA_ERR_RANGE for a token or a
 * position outside its table. */
EMBLA_API EMBLA_CHECKED embla_status embla_embed(const embla_table *table, const int32_t *tokens,
                                                 size_t batch, size_t length,
                                                 const embla_embed_options *options, void *out);

/* ---- positions by formula ---- */

/* Writes count rows of dim floats, for the positions first, first+1, ... Column 2i of position p is
 * sin(p / base^(2i/dim)), column 2i+1 is the cosine. base 0 means 10000. */
EMBLA_API EMBLA_CHECKED embla_status embla_sinusoid(int64_t first, size_t count, size_t dim,
                                                    double base, float *out);

typedef struct embla_rope embla_rope;

typedef enum {
    EMBLA_ROPE_ORDER_INTERLEAVED = 0, /* pairs (0,1) (2,3) ..: the paper, GPT-J, llama2.c */
    EMBLA_ROPE_ORDER_HALF_SPLIT = 1   /* pairs (0,dim/2) (1,dim/2+1) ..: NeoX, Hugging Face */
} embla_rope_order;

typedef enum {
    EMBLA_ROPE_SCALING_PLAIN = 0,
    EMBLA_ROPE_SCALING_LINEAR = 1, /* divides positions by factor */
    EMBLA_ROPE_SCALING_NTK = 2,    /* multiplies theta by factor^(dim/(dim-2)) */
    EMBLA_ROPE_SCALING_YARN = 3,   /* divides slow pairs, keeps fast ones, a ramp between them */
    EMBLA_ROPE_SCALING_LLAMA3 = 4  /* the same with the ramp of Llama 3.1 */
} embla_rope_scaling;

typedef struct {
    double theta;           /* 0 means 10000 */
    double factor;          /* how many times longer the context becomes; 0 means 1 */
    double context;         /* yarn, llama3: the trained context in tokens; required */
    double beta_fast;       /* keep pairs with more rotations in context; 0 means 32, llama3 4 */
    double beta_slow;       /* divide pairs with fewer rotations by factor; 0 means 1 */
    double attention;       /* multiplies the result; 0 means 1, yarn 0.1 ln(factor) + 1 */
    size_t cached;          /* positions to precompute, 4*dim bytes each; 0 means none */
    embla_rope_order order; /* default: interleaved */
    embla_rope_scaling scaling; /* default: plain */
    uint64_t reserved[4];       /* must be 0 */
} embla_rope_options;

/* Creates a rotary embedding for attention heads of dim numbers. dim must be even. */
EMBLA_API EMBLA_CHECKED embla_status embla_rope_new(size_t dim, const embla_rope_options *options,
                                                    embla_rope **out);
EMBLA_API void embla_rope_free(embla_rope *rope);

/* The memory layout of heads, in floats. If head_stride is above dim, only the first dim
 * numbers of a head are rotated. Use a larger group_stride for queries and keys inside longer rows.
 */
typedef struct {
    size_t head_stride;   /* from one head to the next; 0 means dim */
    size_t group_stride;  /* from one position to the next; 0 means heads * head_stride */
    uint64_t reserved[4]; /* must be 0 */
} embla_rope_layout;

/* Rotates x (count, heads, dim) in place; the i-th group of heads by positions[i]. layout NULL
 * means no gaps. EMBLA_ERR_SHAPE if the strides make heads overlap. */
EMBLA_API EMBLA_CHECKED embla_status embla_rope_apply(const embla_rope *rope,
                                                      const int64_t *positions, size_t count,
                                                      size_t heads, const embla_rope_layout *layout,
                                                      float *x);
/* Applies the transpose, which maps gradients back. It is the inverse if attention is 1. */
EMBLA_API EMBLA_CHECKED embla_status embla_rope_transpose(const embla_rope *rope,
                                                          const int64_t *positions, size_t count,
                                                          size_t heads,
                                                          const embla_rope_layout *layout,
                                                          float *x);

/* ---- pool: many vectors -> one ---- */

typedef enum {
    EMBLA_POOL_MEAN = 0,
    EMBLA_POOL_SUM = 1,
    EMBLA_POOL_MAX = 2, /* of each column; a NaN stays a NaN */
    EMBLA_POOL_LAST = 3
} embla_pool_kind;

typedef struct {
    const size_t *lengths; /* (B): the vectors used of each sequence; NULL means all T */
    const float
        *weights; /* (B, T): for mean and sum; the mean divides by their sum; NULL means 1 each */
    int threads;
    embla_pool_kind kind; /* default: mean */
    bool normalize;       /* divide the result by its norm */
    uint64_t reserved[4]; /* must be 0 */
} embla_pool_options;

/* Pools x (B, T, dim) to out (B, dim). The result of an empty sequence is zero, and so is a mean
 * whose weights sum to 0; a zero vector is not normalised. EMBLA_ERR_RANGE if a length is above T,
 * EMBLA_ERR_ARGUMENT for weights with max or last. */
EMBLA_API EMBLA_CHECKED embla_status embla_pool(const float *x, size_t batch, size_t length,
                                                size_t dim, const embla_pool_options *options,
                                                float *out);
/* The same of the rows of tokens (B, T), to out (B, dim): embla_lookup and embla_pool in one pass,
 * with the same bits, without the (B, T, dim) array. Errors are those of both. Tokens after the
 * length of a sequence are not read; with lengths, an error counts the index of a token from the
 * beginning of its sequence. */
EMBLA_API EMBLA_CHECKED embla_status embla_lookup_pool(const embla_table *table,
                                                       const int32_t *tokens, size_t batch,
                                                       size_t length,
                                                       const embla_pool_options *options,
                                                       float *out);

/* ---- geometry of vectors ---- */

/* Sums are in double, in an order that depends only on n. */
EMBLA_API double embla_dot(const float *x, const float *y, size_t n);
EMBLA_API double embla_norm(const float *x, size_t n);
/* dot / (norm * norm); 0 if either vector is zero. */
EMBLA_API double embla_cosine(const float *x, const float *y, size_t n);

#ifdef __cplusplus
}
#endif
#endif
