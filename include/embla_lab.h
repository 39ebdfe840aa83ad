/* SPDX-License-Identifier: Apache-2.0 */
/* embla_lab.h - what is done to a table: see what it costs and what it learned, give it
 * another form.
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
EMBLA_API EMBLA_CHECKED embla_status embla_cost_compute(const embla_cost_model *model,
                                                        embla_cost *out);

/* The name of the n-th published model, from 0. NULL past the last. */
EMBLA_API const char *embla_cost_preset_name(size_t n);
/* What it is and where its figures come from. NULL past the last. */
EMBLA_API const char *embla_cost_preset_about(size_t n);
/* EMBLA_ERR_NOT_FOUND lists the names there are. */
EMBLA_API EMBLA_CHECKED embla_status embla_cost_preset(const char *name, embla_cost_model *out);

/* ---- near: the rows nearest to a vector ---- */

typedef enum {
    EMBLA_MEASURE_COSINE = 0,   /* 1: the same direction; of a row of zeros: 0 */
    EMBLA_MEASURE_DOT = 1,      /* the larger, the nearer */
    EMBLA_MEASURE_EUCLIDEAN = 2 /* a distance: the smaller, the nearer */
} embla_measure;

/* "cosine", "dot", "euclidean"; NULL past the last. */
EMBLA_API const char *embla_measure_name(embla_measure measure);

typedef struct {
    int64_t row; /* -1: there were fewer rows than asked for */
    double score;
} embla_neighbour;

typedef struct {
    int64_t rows; /* only the first so many are looked at; 0: all */
    /* For each query left_out row numbers (count x left_out) that are not to be found; -1:
     * none. */
    const int64_t *leave_out;
    size_t left_out;
    int threads;           /* 0: OpenMP's own number */
    embla_measure measure; /* default: cosine */
} embla_near_options;

/* What was looked at. */
typedef struct {
    int64_t rows;      /* all of them */
    int64_t nonfinite; /* not found, because a number in them is NaN or infinite */
} embla_near_report;

/* The k nearest rows to each of count queries of dim floats, nearest first, to out (count x
 * k). Scores are sums in double of exact products, rows of the same score are in the order of
 * their numbers: the answer is exact, and the same bits for any number of threads, any engine
 * and any dtype that holds the same numbers. Rows are decoded a few at a time, never all of
 * them. report may be NULL. EMBLA_ERR_ARGUMENT for a query that is not finite. */
EMBLA_API EMBLA_CHECKED embla_status embla_near(const embla_table *table, const float *queries,
                                                size_t count, size_t k,
                                                const embla_near_options *options,
                                                embla_neighbour *out, embla_near_report *report);

/* ---- analogy: king - man + woman ---- */

typedef enum {
    EMBLA_ANALOGY_COS_ADD =
        0, /* nearest to the sum of the unit vectors, those of minus subtracted */
    EMBLA_ANALOGY_COS_MUL = 1 /* product of (1 + cosine) / 2 with plus over the same with minus */
} embla_analogy_kind;

typedef struct {
    int64_t rows;    /* as in embla_near_options */
    int threads;     /* 0: OpenMP's own number */
    bool keep_words; /* rows of the question itself may be answers */
    embla_analogy_kind kind;
} embla_analogy_options;

/* The k rows that answer plus[0] + plus[1] .. - minus[0] - minus[1] .., best first. At most
 * 16 of each, and at least one of either. EMBLA_ERR_RANGE for a row outside the table. */
EMBLA_API EMBLA_CHECKED embla_status embla_analogy(const embla_table *table, const int64_t *plus,
                                                   size_t plus_count, const int64_t *minus,
                                                   size_t minus_count, size_t k,
                                                   const embla_analogy_options *options,
                                                   embla_neighbour *out, embla_near_report *report);

/* ---- eval: how well a table answers what people answered ---- */

typedef struct embla_eval embla_eval;

typedef struct {
    int64_t rows;    /* as in embla_near_options */
    int threads;     /* 0: OpenMP's own number */
    bool exact_case; /* words as they are; default: where a word is not there, in lower case */
    embla_analogy_kind kind;
    embla_progress_fn progress; /* NULL means none */
    void *context;              /* passed to progress */
} embla_eval_options;

/* One part of a file of analogies, or a whole file of pairs. */
typedef struct {
    const char *name; /* of a section (": capital-world"); of pairs: the file */
    bool syntactic;   /* analogies: the section's name begins with "gram" */
    int64_t asked;    /* questions or pairs in the file.. */
    int64_t covered;  /* ..all of whose words have rows */
    int64_t correct;  /* analogies: answered with the fourth word */
    double spearman;  /* pairs: rank correlation of cosine and score.. */
    double pearson;   /* ..and that of their values; NaN below 2 pairs, or if all are the same */
} embla_eval_part;

/* A file of questions, four words on a line, ": name" before each section: is the nearest row
 * to the second less the first plus the third that of the fourth? A word that is not in vocab,
 * or whose row is not finite, leaves its questions out, and is counted. Where vocab has both
 * " dog" and "dog", " dog" is the word. In both functions: lines that begin with # are
 * comments; EMBLA_ERR_FORMAT names the line that is not what it should be;
 * EMBLA_ERR_UNSUPPORTED: the file is one for the other function. */
EMBLA_API EMBLA_CHECKED embla_status embla_eval_new_analogies(const embla_table *table,
                                                              const embla_vocab *vocab,
                                                              const char *path,
                                                              const embla_eval_options *options,
                                                              embla_eval **out);
/* A file of pairs, two words and a number on a line, tabs, spaces or commas between them; a
 * first line without a number is a heading. */
EMBLA_API EMBLA_CHECKED embla_status embla_eval_new_pairs(const embla_table *table,
                                                          const embla_vocab *vocab,
                                                          const char *path,
                                                          const embla_eval_options *options,
                                                          embla_eval **out);
EMBLA_API void embla_eval_free(embla_eval *eval);
/* The *count parts of the file, in its order. The handle owns the array. */
EMBLA_API const embla_eval_part *embla_eval_parts(const embla_eval *eval, size_t *count);

/* A word of the file that has no row. */
typedef struct {
    const char *word;
    int64_t times; /* how often it occurs in the file */
} embla_eval_missing;

/* The *count words that have no row. The handle owns the array. */
EMBLA_API const embla_eval_missing *embla_eval_missing_words(const embla_eval *eval, size_t *count);

/* ---- health: what is wrong with rows ---- */

typedef struct embla_health embla_health;

typedef struct {
    /* Rows known to be never trained, to compare others with; NULL: rows from tokens on, or, if
     * there are none, the largest group of three rows or more that share a direction (in eight
     * dims or more: in fewer that is chance). Rows of zeros do not count. */
    const int64_t *unused;
    size_t unused_count;
    int64_t tokens; /* rows from here on stand for no token (padding); 0: all do */
    double alike;   /* rows whose cosine is above this share a direction; 0: 0.999999; 0.9 up */
    int threads;    /* 0: OpenMP's own number */
    bool untied;    /* the head is another table: a short row is an under-trained one */
} embla_health_options;

enum { EMBLA_HEALTH_BINS = 48, EMBLA_HEALTH_QUANTILES = 9 };

typedef struct {
    int64_t rows, dim;
    int64_t nonfinite, zero; /* rows with a NaN or an infinity; rows of nothing but zeros */
    int64_t duplicates;      /* rows that are another row's numbers again, zeros left out */
    int64_t padding;         /* rows from options.tokens on */
    /* Of the norms of all finite rows. */
    double norm_least, norm_most, norm_mean, norm_deviation;
    /* 0.001 .01 .05 .25 .5 .75 .95 .99 .999, on a line between two norms (numpy's default) */
    double norm_quantiles[EMBLA_HEALTH_QUANTILES];
    int64_t norm_bins[EMBLA_HEALTH_BINS]; /* from norm_least to norm_most */
    double anisotropy; /* mean cosine of two different rows, zeros left out; NaN below two */
    double mean_norm;  /* length of the mean row */
    double from_mean, from_mean_deviation; /* distance of rows from it: mean, deviation */
} embla_health_summary;

/* Rows that share the direction of the first of them (cosine above options.alike), duplicates
 * among them. Rows are taken by number: each joins the lowest such first row, or is one. */
typedef struct {
    int64_t count;
    const int64_t *rows; /* in order */
    double norm_least, norm_most;
    double cosine_least; /* between the first and any other */
} embla_health_group;

/* What the ranking goes by. */
typedef enum {
    EMBLA_HEALTH_RANKING_UNUSED =
        1, /* cosine with the mean of unused rows, the table's mean taken off */
    EMBLA_HEALTH_RANKING_NORM = 2 /* norm, shortest first */
} embla_health_ranking;

/* Looks at all rows twice, and again at those that may be alike: rows that nearly share a
 * direction, but do not, take time as the square of their number. Numbers are read as floats; -0
 * is 0. */
EMBLA_API EMBLA_CHECKED embla_status embla_health_new(const embla_table *table,
                                                      const embla_health_options *options,
                                                      embla_health **out);
EMBLA_API void embla_health_free(embla_health *health);
EMBLA_API const embla_health_summary *embla_health_describe(const embla_health *health);
/* What the ranking goes by. */
EMBLA_API embla_health_ranking embla_health_ranked_by(const embla_health *health);

/* A row that repeats an earlier one. */
typedef struct {
    int64_t row, original;
} embla_health_duplicate;

/* Lists: each call returns an array of *count items. The handle owns it. */
/* Groups of two or more rows, largest first. */
EMBLA_API const embla_health_group *embla_health_groups(const embla_health *health, size_t *count);
/* All finite rows, the least trained first; score is what they are ranked by. */
EMBLA_API const embla_neighbour *embla_health_ranked(const embla_health *health, size_t *count);
/* The rows that the ranking treats as unused; none if it goes by norm. */
EMBLA_API const int64_t *embla_health_unused(const embla_health *health, size_t *count);
/* Rows with a NaN or an infinity, rows of zeros, rows that repeat an earlier one; each ascending.
 */
EMBLA_API const int64_t *embla_health_nonfinite(const embla_health *health, size_t *count);
EMBLA_API const int64_t *embla_health_zero(const embla_health *health, size_t *count);
EMBLA_API const embla_health_duplicate *embla_health_duplicates(const embla_health *health,
                                                                size_t *count);

/* ---- spectrum: how many directions a table uses ---- */

typedef struct {
    int threads;  /* 0: OpenMP's own number */
    bool centred; /* the mean row is taken off first */
} embla_spectrum_options;

typedef struct {
    int64_t rows, nonfinite; /* looked at; left out */
    size_t count;            /* singular values: dim */
    double effective_rank;   /* exp of the entropy of the singular values' shares */
    double participation;    /* (sum s^2)^2 / sum s^4 */
    double stable_rank;      /* sum s^2 / largest s^2 */
    int64_t half, most;      /* directions that hold 50 % and 90 % of sum s^2 */
} embla_spectrum_summary;

/* The singular values of the table, largest first, to singular (dim of them). From sums of
 * products of columns: what is below about 1/3000 of the largest (the mean row's own part
 * apart) cannot be told from rounding, and is 0. dim is at most 32,768. The same bits for any
 * number of threads, but not for any engine and instruction set; so of embla_plane. */
EMBLA_API EMBLA_CHECKED embla_status embla_spectrum(const embla_table *table,
                                                    const embla_spectrum_options *options,
                                                    double *singular, embla_spectrum_summary *out);

/* ---- plane: every row as a point ---- */

typedef struct {
    int64_t rows, nonfinite; /* points; rows that are none, at NaN */
    double share[2];         /* of the variance that each axis shows */
} embla_plane_report;

typedef struct {
    int threads; /* 0 means OpenMP's own number */
} embla_plane_options;

/* The rows of table on the plane of their two main directions (PCA): x and y of each to xy
 * (rows x 2). The sign of an axis makes its largest component positive. report may be NULL. After
 * EMBLA_ERR_IO what is in xy is not to be used. */
EMBLA_API EMBLA_CHECKED embla_status embla_plane(const embla_table *table,
                                                 const embla_plane_options *options, float *xy,
                                                 embla_plane_report *report);

/* ---- diff: two tables, row by row ---- */

typedef struct embla_diff embla_diff;

typedef struct {
    /* Row other[i] of the second table is compared with row i of the first, -1: it has none;
     * NULL: the same numbers. */
    const int64_t *other;
    double tolerance; /* a row is changed if a number differs by more; 0: by anything */
    int threads;      /* 0: OpenMP's own number */
} embla_diff_options;

typedef struct {
    int64_t rows[2]; /* of the first and of the second */
    int64_t compared, same, changed;
    int64_t only[2];      /* rows that the other has not */
    int64_t nonfinite;    /* changed to, from or between what is no number */
    double difference;    /* the largest |first - second| of two numbers */
    double distance_mean; /* Euclidean, over changed rows of numbers; NaN if there are none */
    double cosine_mean;   /* over those of them that have one; NaN if there are none */
} embla_diff_summary;

typedef struct {
    int64_t row, other;
    double distance;   /* Euclidean; infinite where a number changed to or from none */
    double cosine;     /* NaN there, where a row is zero, and where both hold the same NaN */
    double difference; /* the largest of a number; infinite there */
} embla_diff_row;

/* Compares rows as numbers: a NaN is the same as a NaN, -0 as 0. EMBLA_ERR_SHAPE if their dims
 * differ, EMBLA_ERR_RANGE for a row of options.other outside the second. */
EMBLA_API EMBLA_CHECKED embla_status embla_diff_new(const embla_table *first,
                                                    const embla_table *second,
                                                    const embla_diff_options *options,
                                                    embla_diff **out);
EMBLA_API void embla_diff_free(embla_diff *diff);
EMBLA_API const embla_diff_summary *embla_diff_describe(const embla_diff *diff);
/* The *count changed rows, the farthest first. The handle owns the array. */
EMBLA_API const embla_diff_row *embla_diff_rows(const embla_diff *diff, size_t *count);

/* ---- words that are nearly the one asked for ---- */

/* Up to k tokens, 64 at most, whose words are nearest in spelling to word (case, leading spaces
 * and the signs for them count little; a word that goes on after it is near), nearest first, to
 * out; returns how many were near enough. */
EMBLA_API size_t embla_vocab_suggest(const embla_vocab *vocab, const char *word, size_t length,
                                     size_t k, int32_t *out);

/* ---- the engine of matrix products ---- */

/* The library that computes matrix products, for bug reports: "oneDNN 2.6.3", or "none". */
EMBLA_API const char *embla_engine_name(void);
/* A sentence if that library is missing, or slower than this CPU allows because OpenBLAS does not
 * know the CPU; else NULL. NULL as well where OPENBLAS_CORETYPE is set: then somebody has chosen.
 */
EMBLA_API const char *embla_engine_warning(void);

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
    embla_progress_fn progress; /* NULL means none */
    void *context;              /* passed to progress */
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

/* The *count lines, one for each tensor of the source. The handle owns the array. */
EMBLA_API const embla_account_line *embla_account_lines(const embla_account *account,
                                                        size_t *count);
/* *count sentences about other things worth knowing ("3 words had spaces: written as #row").
 * The handle owns the array. */
EMBLA_API const char *const *embla_account_notes(const embla_account *account, size_t *count);
/* Format and bytes of the new file. */
EMBLA_API const char *embla_account_format(const embla_account *account);
EMBLA_API int64_t embla_account_bytes(const embla_account *account);
/* The name of the n-th format that can be written; NULL past the last. */
EMBLA_API const char *embla_convert_format_name(size_t n);

#ifdef __cplusplus
}
#endif
#endif
