/* SPDX-License-Identifier: Apache-2.0 */
/* embla_lab.h - what is done to a table: see what it costs.
 *
 * The rules of embla.h hold here too. Link libembla_lab, which links libembla.
 */
#ifndef EMBLA_LAB_H
#define EMBLA_LAB_H

#include "embla.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- cost: parameters, bytes and operations ---- */

/* The tables of a model. Zero leaves a part out. */
typedef struct {
    int64_t rows;              /* of the token table; at least 1 */
    int64_t dim;               /* at least 1 */
    int64_t positions;         /* rows of a learned position table */
    int64_t layers;            /* of a GPT trunk: 12 * layers * dim^2 parameters */
    int64_t trunk;             /* parameters outside the tables, where known; instead of layers */
    int64_t ngram_rows;        /* rows of all hashed n-gram tables together */
    int64_t ngram_dim;         /* numbers in one of their rows */
    int64_t ngram_scale_bytes; /* of scales, kept beside each of their rows */
    int64_t ngram_per_token;   /* of their rows, looked up for one token */
    embla_dtype dtype;         /* of token table, positions, head and trunk; 0: f32 */
    embla_dtype ngram_dtype;   /* 0: the same */
    bool untied;               /* the head is a table of its own */
} embla_cost_model;

/* One part of it. */
typedef struct {
    int64_t parameters;
    int64_t bytes;
} embla_cost_part;

typedef struct {
    embla_cost_part tokens, positions, head, ngram, trunk; /* a tied head is 0 here */
    embla_cost_part tables;                                /* all of them but the trunk */
    embla_cost_part total;
    int64_t lookup_bytes;  /* read for one token: its row, its position's, its n-gram rows */
    int64_t one_hot_madds; /* multiply-adds if the token's row were a one-hot product */
    int64_t head_madds;    /* multiply-adds of the head for one token, tied or not */
    int64_t head_bytes;    /* read by the head for one token */
} embla_cost;

/* Works out what model costs. EMBLA_ERR_ARGUMENT for a size that is missing, below
 * zero or too large for 64 bits, EMBLA_ERR_SHAPE for a dim that is not whole blocks. */
EMBLA_API EMBLA_CHECKED embla_status embla_cost_of(const embla_cost_model *model, embla_cost *out);

/* The name of the n-th published model, from 0. NULL past the last. */
EMBLA_API const char *embla_cost_preset_name(size_t n);
/* What it is and where its figures come from. NULL past the last. */
EMBLA_API const char *embla_cost_preset_about(size_t n);
/* EMBLA_ERR_NOT_FOUND lists the names there are. */
EMBLA_API EMBLA_CHECKED embla_status embla_cost_preset(const char *name, embla_cost_model *out);

/* ---- convert: a checkpoint in another format ---- */

typedef struct embla_account embla_account;

typedef struct {
    const char *to; /* a format's name; NULL: the one that path's extension means */
    /* Token table, head and positions are stored so; 0: as they are. EMBLA_ERR_NOT_FOUND if no
     * table is known; i8, which needs a scale that no format stores, is EMBLA_ERR_UNSUPPORTED. */
    embla_dtype dtype;
    bool tables_only; /* token table, head, positions and their kin; no other tensor */
    bool overwrite;   /* path may exist; it is replaced when the new file is complete, and so
                       * are words beside it that embla_convert has written */
    /* Called now and then from the calling thread; false ends the work with EMBLA_ERR_IO. */
    bool (*progress)(void *context, const char *what, int64_t done, int64_t all);
    void *context;
} embla_convert_options;

/* Writes what is in checkpoint to path: tables re-encoded if asked, every other tensor's
 * bytes unchanged. Formats of one table take the token table (or the one chosen by
 * "file::tensor"). Words go into the file, or to NAME.vocab.txt beside it where it would not
 * find them otherwise. The new file is read back and compared before it gets its name: either
 * all of it is there, or what was there before still is. What a format cannot hold is
 * EMBLA_ERR_UNSUPPORTED with the tensor's name, unless tables_only leaves it out. */
EMBLA_API EMBLA_CHECKED embla_status embla_convert(const embla_checkpoint *checkpoint,
                                                   const char *path,
                                                   const embla_convert_options *options,
                                                   embla_account **out);
EMBLA_API void embla_account_free(embla_account *account);

/* What became of one tensor. */
typedef struct {
    const char *name, *new_name; /* new_name NULL: left out */
    const char *type, *new_type;
    const char *why; /* of one left out: why; else NULL */
    bool table;      /* rows below are counted */
    int64_t rows, new_rows;
    int64_t rows_same;       /* the same numbers, bit for bit */
    int64_t rows_rounded;    /* nearest numbers of the new dtype; with rows_same: all rows */
    int64_t rows_nonfinite;  /* with a NaN or an infinity, before or after */
    int64_t rows_overflowed; /* of these: without one before */
    int64_t rows_vanished;   /* all zeros now, and not before */
    double difference;       /* the largest |old - new| */
    int64_t bytes;           /* as written */
    char checksum[33];       /* XXH3-128 of the bytes as written and as read back, hexadecimal */
} embla_account_line;

EMBLA_API size_t embla_account_count(const embla_account *account);
EMBLA_API EMBLA_CHECKED embla_status embla_account_at(const embla_account *account, size_t n,
                                                      embla_account_line *out);
/* The n-th further thing worth a word ("3 words had spaces: written as #row"); NULL past the
 * last. */
EMBLA_API const char *embla_account_note(const embla_account *account, size_t n);
/* Format and bytes of the new file. */
EMBLA_API const char *embla_account_format(const embla_account *account);
EMBLA_API int64_t embla_account_bytes(const embla_account *account);
/* The n-th format that can be written, NULL past the last. */
EMBLA_API const char *embla_convert_format(size_t n);

#ifdef __cplusplus
}
#endif
#endif
