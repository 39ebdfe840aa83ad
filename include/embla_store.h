/* SPDX-License-Identifier: Apache-2.0 */
/* embla_store.h - rows of giant tables: n-grams of tokens -> row numbers -> vectors.
 *
 *   config or GGUF -> ngram
 *   tokens, history -> ngram ------------> row numbers (tokens x rows of a token)
 *   checkpoint -> store (ram, shared, mapped, direct)
 *   row numbers -> store lookup ---------> vectors -> your model
 *
 * Models of 2026 keep most of their weights in tables with hundreds of millions of rows. A token
 * selects its rows by a hash of the last few tokens, and the rows are only ever gathered: they can
 * stay in host memory or in a file. An n-gram hasher computes row numbers; a store holds the rows.
 * Stable: from 0.1.0 on, nothing in this header changes within a minor version; new options take
 * reserved words (decision 020).
 * The rules of embla.h hold here too; this is part of libembla. examples/giant.c shows all of it in
 * one page.
 */
#ifndef EMBLA_STORE_H
#define EMBLA_STORE_H

#include "embla.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- fold: tokens that count as one ---- */

typedef struct embla_fold embla_fold;

/* Maps each token of a vocabulary to a smaller number; tokens with the same number are hashed alike
 * (DeepSeek folds 129,280 tokens to 99,092). The array is copied. EMBLA_ERR_FORMAT unless each
 * number is at most one greater than the largest number before it. */
EMBLA_API EMBLA_CHECKED embla_status embla_fold_new(const int32_t *folded, size_t tokens,
                                                    embla_fold **out);
/* The same from a file: an npy array of int32, one for each token (docs/giant-tables.md). */
EMBLA_API EMBLA_CHECKED embla_status embla_fold_open(const char *path, embla_fold **out);
EMBLA_API void embla_fold_free(embla_fold *fold);
/* Writes the checksum of all values as 32 hexadecimal digits and a 0 (only the 0 without a fold):
 * XXH3-128 of the values as little-endian int32. A tokenizer of another revision can give a fold of
 * the same size with other values, and so other rows; its checksum differs. */
EMBLA_API void embla_fold_checksum(const embla_fold *fold, char out[33]);
/* EMBLA_ERR_FORMAT, with both checksums, unless `checksum` is that of the fold.
 * EMBLA_ERR_ARGUMENT if it is not 32 hexadecimal digits. */
EMBLA_API EMBLA_CHECKED embla_status embla_fold_require(const embla_fold *fold,
                                                        const char *checksum);

/* ---- n-gram hasher: tokens -> row numbers ---- */

typedef struct embla_ngram embla_ngram;

typedef enum {
    EMBLA_NGRAM_IDENTITY = 0, /* the row number is the token (Gemma's per-layer table) */
    EMBLA_NGRAM_ENGRAM = 1,   /* DeepSeek: xor of products modulo primes; constants by numpy */
    EMBLA_NGRAM_QWEN = 2,     /* qwen4_exp: the same; constants by splitmix64; EOS ends an n-gram */
    EMBLA_NGRAM_LONGCAT = 3   /* a polynomial in the vocabulary size, modulo odd numbers */
} embla_ngram_kind;

/* What happens if the token itself is EOS: implementations of LongCat differ. */
typedef enum {
    EMBLA_NGRAM_EOS_REFERENCE = 0, /* it is hashed, and so are the tokens before it */
    EMBLA_NGRAM_EOS_ZERO = 1,      /* the first row of each hash (vLLM) */
    EMBLA_NGRAM_EOS_IGNORED = 2    /* EOS is a token like any other (mlx-lm) */
} embla_ngram_eos;

typedef struct {
    embla_ngram_kind kind;
    int64_t vocab;  /* hashed tokens (folded, if there is a fold) are below this */
    int32_t orders; /* length of the longest n-gram, 2..8; ignored by identity */
    /* An n-gram of each order from 2 on has this many rows, 1..64, each by a hash of its own;
     * ignored by identity. */
    int32_t rows_per_ngram;
    int64_t base; /* engram, qwen: the sizes of hashes are primes from this number on */
    double ratio; /* longcat: the sizes of hashes are odd numbers from ratio * vocab + 1 on */
    const int32_t *layers; /* engram: all layers with a table, in order; no two share a prime.
                              NULL means only `layer` */
    size_t layer_count;
    int32_t layer; /* engram: the layer of this table; qwen: the number of the table, from 0 */
    int64_t seed;  /* published models: engram 0, qwen 1234 */
    int32_t pad;   /* engram: the folded token before a sequence; identity: the row of a barrier */
    int32_t eos;   /* qwen, longcat: the EOS token; -1 means none (longcat only) */
    embla_ngram_eos eos_rule; /* longcat */
    int64_t multiple;         /* the table is padded to a multiple of this; 0 means 1 */
    const embla_fold
        *fold; /* engram: NULL means that tokens are already folded. It must outlive the hasher */
    /* Constants from a file: orders multipliers, (orders - 1) x rows_per_ngram sizes and
     * offsets. NULL means
     * computed by the rules of the kind. */
    const int64_t *multipliers;
    const int64_t *sizes, *offsets;
    uint64_t reserved[4]; /* must be 0 */
} embla_ngram_parameters;

EMBLA_API EMBLA_CHECKED embla_status embla_ngram_new(const embla_ngram_parameters *parameters,
                                                     embla_ngram **out);
/* The hasher of a known model: "qwen3.8-flash-next", "deepseek-v4.1-flash", ... layer is a layer
 * that has a table, from 0; -1 means the first. fold NULL means that tokens are already folded.
 * EMBLA_ERR_NOT_FOUND lists the names, or the layers. */
EMBLA_API EMBLA_CHECKED embla_status embla_ngram_new_model(const char *name, int32_t layer,
                                                           const embla_fold *fold,
                                                           embla_ngram **out);
/* The name of the n-th known model; NULL past the last. */
EMBLA_API const char *embla_ngram_model_name(size_t n);
/* The hasher that a checkpoint's config.json or GGUF keys describe, with its fold if it has one.
 * EMBLA_ERR_NOT_FOUND if they do not mention n-grams. EMBLA_ERR_FORMAT if their constants differ
 * from those of the rules. */
EMBLA_API EMBLA_CHECKED embla_status embla_ngram_open(const embla_checkpoint *checkpoint,
                                                      int32_t layer, const embla_fold *fold,
                                                      embla_ngram **out);
EMBLA_API void embla_ngram_free(embla_ngram *ngram);
/* The fold that a hasher uses: the caller's, or one from the file. NULL if it has none. */
EMBLA_API const embla_fold *embla_ngram_fold(const embla_ngram *ngram);

typedef struct {
    embla_ngram_kind kind;
    int64_t tokens; /* tokens of embla_ngram_rows are below this */
    int64_t vocab;  /* hashed tokens are below this */
    int64_t rows;   /* of the table, padding included */
    int64_t used;   /* the highest row number that can occur, plus 1 */
    /* Row numbers of each token, (orders - 1) x rows_per_ngram: n-grams by their length, and the
     * rows of each side by side. */
    size_t rows_per_token;
    size_t history; /* how many earlier tokens a row number depends on */
    int32_t orders, rows_per_ngram;
    int32_t layer;                  /* from 0; -1 if the table belongs to no layer */
    int32_t pad, eos;               /* -1 means none */
    const int64_t *multipliers;     /* orders of them; NULL for longcat and identity */
    const int64_t *sizes, *offsets; /* rows_per_token of them; NULL for identity */
    const int32_t *folded;          /* tokens of them: what each is hashed as; NULL means itself */
    embla_ngram_eos eos_rule;
    uint64_t reserved[4];
} embla_ngram_info;

EMBLA_API EMBLA_CHECKED embla_status embla_ngram_describe(const embla_ngram *ngram,
                                                          embla_ngram_info *out);

typedef struct {
    /* (B, history): the tokens before each sequence, oldest first. -1 means no token: the sequence
     * starts after it. NULL means that all sequences start here. */
    const int32_t *history;
    /* (B, T): a byte that is not 0 is a barrier. No n-gram of a later token contains it or anything
     * before it (images of DeepSeek, padding). Its own row numbers are those of pad or EOS; its
     * token is ignored. NULL means no barriers. */
    const uint8_t *barrier;
    int threads;
    uint64_t reserved[4]; /* must be 0 */
} embla_ngram_options;

/* Computes the row numbers (B, T, rows_per_token) of tokens (B, T). EMBLA_ERR_RANGE for a token
 * outside the vocabulary, in the history too. */
EMBLA_API EMBLA_CHECKED embla_status embla_ngram_rows(const embla_ngram *ngram,
                                                      const int32_t *tokens, size_t batch,
                                                      size_t length,
                                                      const embla_ngram_options *options,
                                                      int64_t *rows);

/* ---- frequent n-grams: what to bundle, and what to keep in memory ---- */

typedef struct embla_frequent embla_frequent;

typedef struct {
    /* Either a text: a hasher and the tokens of one sequence .. */
    const embla_ngram *ngram;
    const int32_t *tokens;
    size_t length;
    const char *trace;     /* .. or an npy file of int64 (tokens, rows_per_token): row numbers */
    size_t rows_per_ngram; /* 0 means the hasher's */
    size_t max_ngrams;     /* of each order */
    embla_progress_fn progress; /* NULL means none */
    void *context;
    uint64_t reserved[4]; /* must be 0 */
} embla_frequent_options;

/* Counts all n-grams, and lists the most frequent of each order: together, the most frequent first;
 * of equally frequent ones, the shorter and then the earlier. */
EMBLA_API EMBLA_CHECKED embla_status embla_frequent_new(const embla_frequent_options *options,
                                                        embla_frequent **out);
/* The row numbers (count, rows_per_ngram) of the n-grams. */
EMBLA_API const int64_t *embla_frequent_rows(const embla_frequent *frequent, size_t *count,
                                             size_t *rows_per_ngram);
EMBLA_API void embla_frequent_free(embla_frequent *frequent);

/* ---- store: where the rows are ---- */

typedef struct embla_store embla_store;

/* How the placement direct reads. All readers return the same bytes. */
typedef enum {
    EMBLA_READER_AUTO = 0,     /* the first of the following that works */
    EMBLA_READER_IO_URING = 1, /* many reads with one call of the kernel; the least CPU time */
    EMBLA_READER_PREAD = 2,    /* threads, for systems that forbid io_uring (most containers) */
    EMBLA_READER_BUFFERED = 3  /* threads, through the page cache, which is asked to drop the pages:
                                  for files that cannot be read past it */
} embla_reader_kind;

/* "auto", "io_uring", ..; NULL if there is no such reader. */
EMBLA_API const char *embla_reader_name(embla_reader_kind kind);

/* How an engine holds rows. 0 means the default of each field. */
typedef struct {
    /* Open only rows first .. end-1, for instance those of one rank. Row numbers remain those of
     * the whole table. end 0 means all rows from first on. */
    int64_t first, end;
    bool zeros; /* rows outside are looked up as zero bytes, so that the sum over all ranks has the
                   rows. Default: they are EMBLA_ERR_RANGE */
    bool writable; /* mapped, shared: a private mapping that may be written to, for devices that do
                      not register read-only memory. Files and copies never change; a page that is
                      written to, or pinned for writing, becomes a copy of this process */
    bool bind;     /* ram: bind the memory to the NUMA node `node`. EMBLA_ERR_UNSUPPORTED if that is
                      not possible, EMBLA_ERR_MEMORY if the node has too little memory */
    int node;
    /* direct: gives the reader a thread of the caller. It must call work(argument) on a thread that
     * may block, and return true without waiting for it; work returns when the store is freed. It
     * is called once with io_uring, else for each of `depth` threads. If it returns false, the
     * reader does with the threads it has; EMBLA_ERR_MEMORY if it has none. NULL means that the
     * store starts its own threads. */
    bool (*execute)(void *context, void (*work)(void *argument), void *argument);
    void *context;        /* passed to execute */
    uint64_t reserved[4]; /* must be 0 */
} embla_store_engine_options;

typedef struct {
    embla_placement placement; /* any but view; mapped calls embla_guard */
    const char *shared_folder; /* shared: the folder of copies; NULL means /dev/shm, on Linux */
    const char *shared_name;   /* shared: the copy's name; NULL means one made from the file */
    void *buffer;              /* ram: the caller's memory for the rows, aligned to 64 bytes */
    size_t buffer_bytes;       /* EMBLA_ERR_SHAPE if this is less than rows x row bytes */
    /* ram: called when the memory (or the buffer) is there, before it is filled: to pin it or to
     * register it with a GPU. If it fails, the call returns its status. NULL means none. */
    embla_status (*allocated)(void *context, void *memory, size_t bytes);
    /* ram: called before the memory is freed, if allocated succeeded. NULL means none. */
    void (*released)(void *context, void *memory, size_t bytes);
    embla_progress_fn progress; /* ram, shared, warm; NULL means none */
    void *context;              /* passed to allocated, released and progress */
    int threads;                /* threads that fill the memory */
    bool small_pages;           /* ram: do not ask for huge pages */
    bool found_only;          /* shared: do not create a copy. EMBLA_ERR_NOT_FOUND if there is none,
                                 EMBLA_ERR_BUSY while another process creates it */
    double shared_wait;       /* shared: seconds to wait for a process that creates the copy, then
                                 EMBLA_ERR_BUSY; 0 means no limit */
    embla_reader_kind reader; /* direct: EMBLA_ERR_UNSUPPORTED if this one does not work */
    int depth;                /* direct: reads at once; 0 means 64 (io_uring) or 16 threads */
    const embla_store_engine_options *engine; /* NULL means all defaults */
    uint64_t reserved[4];                     /* must be 0 */
} embla_store_options;

/* A run of rows in a file. */
typedef struct {
    const char *file;
    int64_t offset; /* of the first row */
    size_t stride;  /* bytes from one row to the next; 0 means no gap */
    /* Used only if the format has scales. */
    const char *scale_file; /* NULL means the same file */
    int64_t scale_offset;   /* of the first row's scales; -1 means after each row's numbers */
    size_t scale_stride;    /* 0 means no gap */
    int64_t rows;
    uint64_t reserved[4]; /* must be 0 */
} embla_extent;

/* Opens a tensor and its scales as a store. name may contain one '*' for the number of a part
 * ("..shard_*.weight"), counted from 0 without gaps. name NULL means the giant table of the
 * checkpoint; if several layers have one, `layer` chooses, and -1 means the first. Messages list
 * the tables there are. */
EMBLA_API EMBLA_CHECKED embla_status embla_store_open(const embla_checkpoint *checkpoint,
                                                      const char *name, int32_t layer,
                                                      const embla_store_options *options,
                                                      embla_store **out);
/* Opens rows of any files as a store. */
EMBLA_API EMBLA_CHECKED embla_status embla_store_open_extents(const embla_row_format *format,
                                                              const embla_extent *extents,
                                                              size_t count,
                                                              const embla_store_options *options,
                                                              embla_store **out);
/* A store over rows in the caller's memory, which must outlive it. stride 0 means no gap. */
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
    int64_t copies;   /* copies that were removed .. */
    int64_t bytes;    /* .. and their bytes */
    int64_t leftover; /* unfinished files and locks of killed processes that were removed */
    int64_t kept;     /* copies of this user that remain */
    uint64_t reserved[4];
} embla_sweep_report;

/* Removes dead shared copies of this user. A copy is dead if no process has it open, and the file
 * of its first row has been changed, replaced or removed. If that is uncertain, because the path
 * now leads to another disk, the copy is kept. `unused` removes every copy that no process has
 * open. folder NULL means /dev/shm, on Linux; `out` may be NULL. Building a copy also removes dead
 * copies, except those with a shared_name. */
EMBLA_API EMBLA_CHECKED embla_status embla_store_sweep(const char *folder, bool unused,
                                                       embla_sweep_report *out);

typedef struct {
    embla_row_format format;
    int64_t rows;
    int64_t first, end; /* rows first .. end-1 are held: all, unless embla_store_engine_options sets
                           a range */
    size_t row_bytes;   /* numbers and scales */
    size_t parts;       /* extents */
    embla_placement placement;
    int64_t bytes;      /* bytes of the rows that it holds */
    int64_t huge_bytes; /* bytes on huge pages; -1 if the system does not tell */
    int64_t resident;   /* bytes in memory (mapped: in the page cache; direct: 0); -1 if the system
                           does not tell */
    const char *shared; /* shared: the copy's path; else NULL */
    bool built;         /* shared: opening this store created the copy */
    embla_reader_kind reader; /* direct: the one that was chosen */
    int depth;                /* direct: reads at once */
    const char *reader_why; /* direct: why a better reader does not work; NULL if it is the best */
    uint64_t reserved[4];
} embla_store_info;

/* Describes a store. It asks the system about its memory, which takes a while. */
EMBLA_API EMBLA_CHECKED embla_status embla_store_describe(const embla_store *store,
                                                          embla_store_info *out);
/* Brings all rows into memory. mapped: reads the files into the page cache. shared: brings the copy
 * back from swap and verifies its checksums; EMBLA_ERR_IO if they differ. direct: nothing happens.
 * The other placements already hold their rows in memory. Of options, progress, context and threads
 * are used. */
EMBLA_API EMBLA_CHECKED embla_status embla_store_warm(const embla_store *store,
                                                      const embla_store_options *options);

/* Contiguous memory of a store. */
typedef struct {
    void *memory; /* read-only for mapped and shared, unless opened as writable */
    size_t bytes;
} embla_chunk;

/* Lists the memory of all rows in chunks of at most max_bytes bytes, to be pinned or registered one
 * by one; 0 means 1 GiB. Chunks are in ascending order, do not overlap, and meet only on page
 * borders. Chunks of mapped and shared are whole pages. Those of ram and of a view begin and end
 * with the rows. Writes the first `capacity` chunks to out, and the number of all chunks to *count.
 * The chunks are valid until the store is freed. EMBLA_ERR_UNSUPPORTED for read and direct, which
 * hold no rows in memory. */
EMBLA_API EMBLA_CHECKED embla_status embla_store_chunks(const embla_store *store, size_t max_bytes,
                                                        size_t capacity, embla_chunk *out,
                                                        size_t *count);

/* EMBLA_ERR_IO if a file of the store has been changed, cut, replaced by another file, or removed
 * since it was opened. It takes a few microseconds for each file. */
EMBLA_API EMBLA_CHECKED embla_status embla_store_check(const embla_store *store);

typedef struct {
    int64_t rows;      /* rows compared */
    int64_t different; /* rows that differ */
    int64_t first;     /* the first of them; -1 if there is none */
    uint64_t reserved[4];
} embla_verify_report;

/* Reads rows from their files once more and compares them. `sample` rows are chosen evenly by seed,
 * the first and the last always among them; 0 means all rows. EMBLA_ERR_IO if a file was changed,
 * cut or replaced. EMBLA_ERR_UNSUPPORTED for a view. */
EMBLA_API EMBLA_CHECKED embla_status embla_store_verify(const embla_store *store, int64_t sample,
                                                        uint64_t seed, embla_verify_report *out);

/* ---- pack: a file from which each row, or each n-gram, is one read ---- */

/* A pack is made from a store. Scales follow the numbers of their row, and no row crosses a page of
 * 4,096 bytes. For frequent n-grams, all their rows are stored a second time, side by side (a
 * bundle): tickets of the placement direct then read them at once. embla_store_open opens a pack
 * like any other checkpoint, and embla_ngram_open finds its hasher. docs/formats.md has the
 * format. */
typedef struct {
    const char *name;         /* of the table, for people; NULL means none */
    const embla_ngram *ngram; /* the hasher to store in the pack; NULL means none */
    size_t rows_per_ngram;    /* 1 to 32; 0 means the hasher's */
    const int64_t *bundles;   /* (bundle_count, rows_per_ngram): n-grams, the most frequent first */
    size_t bundle_count;
    const char *bundle_file;    /* after them, those of an npy file of int64, or of another pack */
    bool overwrite;             /* replace the file if it exists */
    embla_progress_fn progress; /* NULL means none */
    void *context;
    uint64_t reserved[4]; /* must be 0 */
} embla_pack_options;

typedef struct {
    int64_t rows;
    size_t row_bytes;      /* numbers and scales */
    int64_t rows_a_page;   /* 0 if a row takes several pages */
    int64_t bundles;       /* n-grams that have a bundle */
    size_t rows_per_ngram; /* rows of a bundle */
    int64_t bytes;         /* of the file */
    int64_t different;     /* embla_pack_verify: rows that differ from the source, .. */
    int64_t first;         /* .. and the first of them; -1 if there is none */
    int64_t bundles_wrong; /* embla_pack_verify: bundles that differ from the pack's rows */
    int64_t version;      /* of the format; packs of version 1 have no checksum of their manifest */
    bool hasher;          /* the pack has one, .. */
    bool hasher_compared; /* .. and embla_pack_verify has compared it with options.ngram */
    uint64_t reserved[4];
} embla_pack_report;

/* Writes a pack. The file appears when it is complete and every row of it has been compared with
 * the source, bit for bit. EMBLA_ERR_IO if the source changes meanwhile. EMBLA_ERR_UNSUPPORTED if
 * the source is a view or holds only a range of the rows. out may be NULL. */
EMBLA_API EMBLA_CHECKED embla_status embla_pack_write(const embla_store *source, const char *path,
                                                      const embla_pack_options *options,
                                                      embla_pack_report *out);
/* Reads a whole pack, and compares its rows and lists with their checksums and its bundles with its
 * rows. With a source (not NULL), all rows are also compared with it, bit for bit. With
 * options.ngram (not NULL), the hasher is compared with it, constant by constant.
 * EMBLA_ERR_FORMAT if a checksum is wrong. EMBLA_ERR_SHAPE if the source has other rows or another
 * hasher than the pack, and EMBLA_ERR_UNSUPPORTED if it cannot be packed itself. Differences are
 * counted in *out. Of the other options, progress and context are used. */
EMBLA_API EMBLA_CHECKED embla_status embla_pack_verify(const embla_checkpoint *pack,
                                                       const embla_store *source,
                                                       const embla_pack_options *options,
                                                       embla_pack_report *out);

/* ---- lookup over a store ---- */

typedef struct {
    size_t rows_per_token; /* embla_ngram_info has it; 0 means 1 */
    size_t token_stride;   /* bytes from one token's vectors to the next; 0 means no gap */
    size_t row_stride;     /* bytes from one vector of a token to its next; 0 means no gap. To have
                              the first vectors of all tokens together, then the second ones:
                              token_stride is one vector, row_stride tokens x one vector */
    size_t first_column;   /* decode only `columns` numbers of each row, from this one on */
    size_t columns;        /* whole groups of the format; 0 means all from first_column on */
    float scale;           /* multiplies every number; 0 means 1 */
    int threads;
    bool sum; /* add the rows of a token, in order, in f32: one vector for each token */
    bool raw; /* copy the stored bytes, then the scales; out_dtype is ignored */
    embla_dtype out_dtype; /* f32 (default), bf16 or f16 */
    uint64_t reserved[4];  /* must be 0 */
} embla_store_lookup_options;

/* Looks up rows (count / rows_per_token, rows_per_token), and writes their vectors to out.
 * EMBLA_ERR_RANGE for a row outside the table. EMBLA_ERR_SHAPE if count is not a multiple of
 * rows_per_token. EMBLA_ERR_IO if a file was cut short or changed; the contents of out are then
 * undefined. */
EMBLA_API EMBLA_CHECKED embla_status embla_store_lookup(const embla_store *store,
                                                        const int64_t *rows, size_t count,
                                                        const embla_store_lookup_options *options,
                                                        void *out);

/* A lookup that fetches each row once if it occurs several times. For one thread at a time. */
typedef struct embla_batch embla_batch;

/* Allocates what lookups of at most `capacity` row numbers need; they allocate nothing. */
EMBLA_API EMBLA_CHECKED embla_status embla_batch_new(const embla_store *store, size_t capacity,
                                                     embla_batch **out);
EMBLA_API void embla_batch_free(embla_batch *batch);
EMBLA_API EMBLA_CHECKED embla_status embla_batch_lookup(embla_batch *batch, const int64_t *rows,
                                                        size_t count,
                                                        const embla_store_lookup_options *options,
                                                        void *out);
typedef struct {
    int64_t calls;
    int64_t asked;        /* rows asked for */
    int64_t unique;       /* rows fetched: different rows of each call */
    int64_t bytes_read;   /* bytes touched, as whole cache lines or pages of a file */
    int64_t bytes_useful; /* bytes of the rows that were fetched */
    int64_t verified;     /* rows compared with the file (embla_batch_verify) */
    uint64_t reserved[4];
} embla_batch_info;

/* What a batch has done since it was created. */
EMBLA_API EMBLA_CHECKED embla_status embla_batch_describe(const embla_batch *batch,
                                                          embla_batch_info *out);
/* From now on, reads about one row in `every` from its file once more and compares it; a difference
 * is EMBLA_ERR_IO. 0 (the default) means none. */
EMBLA_API EMBLA_CHECKED embla_status embla_batch_verify(embla_batch *batch, size_t every);

/* ---- tickets: rows that arrive while you compute ---- */

/* Requests for rows of one store that are under way. Submit a request as soon as the tokens are
 * known, compute, and wait for its ticket when the rows are needed. Many threads may use the
 * tickets of one store at once; one ticket is for one thread at a time. After opening, nothing is
 * allocated. Every placement accepts tickets. With the placement direct the rows arrive later;
 * with the others they are in `out` when embla_ticket_submit returns. A forked child cannot use the
 * tickets of its parent: every call returns EMBLA_ERR_UNSUPPORTED and touches nothing. Open the
 * store and its tickets again there. */
typedef struct embla_tickets embla_tickets;
typedef uint64_t embla_ticket; /* never 0, and never the same twice */

typedef struct {
    size_t max_rows;    /* row numbers of one ticket; 0 means 65,536 */
    size_t max_bytes;   /* memory for tickets that are under way; 0 means 32 MiB. A row takes its
                           bytes and 24 more, 40 if it has scales */
    size_t max_tickets; /* tickets under way; 0 means 256, at most 65,535 */
    bool event;         /* create an eventfd: see embla_tickets_event */
    /* direct: rows that are kept in memory. */
    size_t hot_bytes;          /* memory for them, never exceeded; 0 means none */
    const int64_t *hot_rows;   /* rows to keep from the beginning, the most frequent first .. */
    size_t hot_count;          /* .. and their number */
    const char *hot_file;      /* the same: an npy file of int64, or a pack; NULL means none */
    size_t hot_rows_per_ngram; /* at most 32: rows of an n-gram are kept and found together. 0 means
                                  1: each row by itself */
    uint64_t reserved[4];      /* must be 0 */
} embla_tickets_options;

/* The store must outlive the tickets. */
EMBLA_API EMBLA_CHECKED embla_status embla_tickets_new(const embla_store *store,
                                                       const embla_tickets_options *options,
                                                       embla_tickets **out);
/* Cancels all tickets that nobody has waited for; in a forked child, it forgets those of the
 * parent. NULL is allowed. */
EMBLA_API void embla_tickets_free(embla_tickets *tickets);

typedef struct {
    /* Either row numbers, or tokens of one sequence. They are read before submit returns. */
    const int64_t *rows;
    size_t count;
    const embla_ngram *ngram; /* NULL means row numbers */
    const int32_t *tokens;
    size_t length;
    const int32_t *history;                   /* as in embla_ngram_options */
    const embla_store_lookup_options *lookup; /* rows_per_token 0 means the ngram's, or 1;
                                                 threads 0 means 1. NULL means all defaults */
    void *out; /* written before the ticket ends, and never after embla_ticket_cancel */
    /* When the ticket has ended, value is stored to *flag with release order; UINT64_MAX if it
     * failed. NULL means no flag. */
    uint64_t *flag;
    uint64_t value;
    uint64_t reserved[4]; /* must be 0 */
} embla_ticket_request;

/* Starts to fetch rows. EMBLA_ERR_BUSY if there is no memory for one more ticket now: wait for one,
 * then try again. Other statuses as for embla_ngram_rows and embla_store_lookup. After a failure
 * there is no ticket. */
EMBLA_API EMBLA_CHECKED embla_status embla_ticket_submit(embla_tickets *tickets,
                                                         const embla_ticket_request *request,
                                                         embla_ticket *out);
/* *done tells whether embla_ticket_wait would return at once. */
EMBLA_API EMBLA_CHECKED embla_status embla_ticket_done(embla_tickets *tickets, embla_ticket ticket,
                                                       bool *done);
/* Waits until the rows are in out, and ends the ticket. EMBLA_ERR_IO if a file cannot be read or
 * has changed; `out` is then untouched. EMBLA_ERR_ARGUMENT if there is no such ticket. */
EMBLA_API EMBLA_CHECKED embla_status embla_ticket_wait(embla_tickets *tickets, embla_ticket ticket);
/* Ends a ticket whose rows are no longer wanted. It does not wait for the disk. */
EMBLA_API EMBLA_CHECKED embla_status embla_ticket_cancel(embla_tickets *tickets,
                                                         embla_ticket ticket);
/* Reads rows that will be needed soon, to keep them among the hot rows. It may do nothing: if there
 * are no hot rows, or if too much is under way. Of the request, only rows or tokens are used. */
EMBLA_API EMBLA_CHECKED embla_status embla_tickets_prefetch(embla_tickets *tickets,
                                                            const embla_ticket_request *request);
/* The eventfd, or -1 if there is none or in a forked child. Its count grows by 1 when a ticket
 * ends: then ask embla_ticket_done. Tickets with a flag or an eventfd are completed by a thread of
 * the store. */
EMBLA_API int embla_tickets_event(const embla_tickets *tickets);

typedef struct {
    int64_t tickets; /* that have ended and were waited for */
    int64_t cancelled;
    int64_t busy;          /* requests that were refused with EMBLA_ERR_BUSY */
    int64_t prefetched;    /* requests of embla_tickets_prefetch .. */
    int64_t dropped;       /* .. and those of them that were not read */
    int64_t tokens;        /* tokens asked for: row numbers / rows_per_token */
    int64_t asked;         /* row numbers asked for */
    int64_t hot;           /* of these, found among the hot rows */
    int64_t reads;         /* reads of files, prefetches included */
    int64_t bytes_read;    /* whole pages */
    int64_t bytes_useful;  /* bytes of the rows that were not hot */
    int64_t in_flight;     /* bytes of tickets under way: now .. */
    int64_t in_flight_max; /* .. and the maximum so far */
    int64_t blocked;       /* nanoseconds that embla_ticket_wait has waited */
    int64_t p50, p99;      /* nanoseconds from submit until the rows were in out; 1/8 precise */
    int64_t hot_rows;      /* rows that are kept .. */
    int64_t hot_bytes;     /* .. and the memory that was allocated for them */
    int64_t hot_fixed;     /* of `hot`, those kept from the beginning */
    int64_t bundled;       /* rows that were read from bundles of a pack */
    uint64_t reserved[4];
} embla_tickets_info;

/* What the tickets have done since they were created, and what is under way. */
EMBLA_API EMBLA_CHECKED embla_status embla_tickets_describe(const embla_tickets *tickets,
                                                            embla_tickets_info *out);

/* ---- reload: another version of a table while lookups go on ---- */

/* Holds the current version of a table. Threads acquire it, use it and release it. Meanwhile
 * another thread opens a new version and replaces the current one: whoever acquires afterwards
 * gets the new one. The old one is freed when the last thread has released it, so no lookup and no
 * ticket mixes rows of two versions. */
typedef struct embla_swap embla_swap;

typedef struct {
    const embla_store *store;
    embla_tickets *tickets; /* of that store; NULL if none were given */
    uint64_t number;        /* 1 for the first version, 2 for the next, .. */
    uint64_t reserved[4];
} embla_swap_version;

/* The swap owns store and tickets from now on, if the call succeeds. tickets NULL means none. */
EMBLA_API EMBLA_CHECKED embla_status embla_swap_new(embla_store *store, embla_tickets *tickets,
                                                    embla_swap **out);
/* The current version. It stays valid until it is released. It never fails, allocates nothing and
 * does not wait for a reload. A ticket must be waited for or cancelled before its version is
 * released; tickets of two versions never have the same number. The last thread that releases an
 * old version frees it, which takes a while if its rows are in memory. */
EMBLA_API const embla_swap_version *embla_swap_acquire(embla_swap *swap);
EMBLA_API void embla_swap_release(embla_swap *swap, const embla_swap_version *version);
/* Makes another version the current one; the swap then owns store and tickets. EMBLA_ERR_SHAPE if
 * its rows have another format, or if it has another number or range of rows; nothing changes
 * then. */
EMBLA_API EMBLA_CHECKED embla_status embla_swap_replace(embla_swap *swap, embla_store *store,
                                                        embla_tickets *tickets);
/* Frees the swap and its current version; all versions must have been released. NULL is allowed. */
EMBLA_API void embla_swap_free(embla_swap *swap);

#ifdef __cplusplus
}
#endif
#endif
