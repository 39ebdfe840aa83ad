/* SPDX-License-Identifier: Apache-2.0 */
/* embla_lab.h - study a table and convert it.
 *
 *   model's sizes -> cost (parameters, bytes, operations)
 *   table -> near, analogy, eval      what its rows mean
 *   table -> health, spectrum, plane  what is wrong with it, and how it looks
 *   table -> graph -> layout, communities  which rows belong together
 *   table while it is trained -> film  how its rows move
 *   model, texts -> play              a page to learn with
 *   two tables -> diff                which rows differ
 *   checkpoint -> doctor              whether table, head, tokenizer and config agree
 *   checkpoint -> convert -> checkpoint in another format, with an account of every row
 *
 * Nothing here changes its input. The rules of embla.h hold here too. Link libembla_lab, which
 * links libembla.
 */
#ifndef EMBLA_LAB_H
#define EMBLA_LAB_H

#include "embla.h"
#include "embla_checkpoint.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- cost: parameters, bytes and operations ---- */

/* The sizes of a model. 0 means that the model does not have this part. */
typedef struct {
    int64_t rows;                 /* rows of the token table; at least 1 */
    int64_t dim;                  /* at least 1 */
    int64_t positions;            /* rows of a learned position table */
    int64_t layers;               /* layers of a GPT trunk: 12 * layers * dim^2 parameters */
    int64_t trunk;                /* parameters outside the tables, if known; replaces layers */
    int64_t ngram_rows;           /* rows of all hashed n-gram tables together */
    int64_t ngram_dim;            /* dim of these tables */
    int64_t ngram_scale_bytes;    /* bytes of scales beside each of their rows */
    int64_t ngram_rows_per_token; /* rows of these tables that one token looks up */
    embla_dtype dtype;            /* of token table, positions, head and trunk; 0 means f32 */
    embla_dtype ngram_dtype;      /* 0 means the same dtype */
    bool untied;                  /* the head is a separate table */
    bool headless;                /* there is no head: an encoder, or word vectors */
    uint64_t reserved[4];         /* must be 0 */
} embla_cost_model;

typedef struct {
    int64_t parameters;
    int64_t bytes;
} embla_cost_part;

typedef struct {
    embla_cost_part tokens, positions, head, ngram, trunk; /* a tied head costs 0 */
    embla_cost_part inputs; /* tables that a lookup reads: tokens, positions and n-grams */
    embla_cost_part tables; /* the same and the head: all but the trunk */
    embla_cost_part total;
    int64_t lookup_bytes;  /* bytes a lookup reads for one token, positions and n-grams included */
    int64_t one_hot_madds; /* multiply-adds if the lookup were a product with a one-hot vector */
    int64_t head_madds;    /* multiply-adds of the head for one token, tied or not */
    int64_t head_bytes;    /* bytes the head reads for one token */
    int64_t read_bytes;    /* bytes that lookup, trunk and head read for one token, if every weight
                              is read once; 0 if the trunk is unknown */
    /* head_madds in attention layers, of which each has 4 dim^2 multiply-adds for one token: the
     * projections to queries, keys and values, and the one after them. It is rows / (4 dim). */
    double head_layers;
    uint64_t reserved[4];
} embla_cost;

/* Computes the cost of a model. EMBLA_ERR_ARGUMENT for a size that is missing, negative or too
 * large for 64 bits, and for a model that is both untied and headless. EMBLA_ERR_SHAPE for a dim
 * that is not a multiple of the dtype's block. */
EMBLA_API EMBLA_CHECKED embla_status embla_cost_compute(const embla_cost_model *model,
                                                        embla_cost *out);
/* The same for a checkpoint, with the parameters and bytes of its tensors. The trunk is all tensors
 * that are no table and no head. Masks, rotary angles, lists of positions and a mapping of tokens
 * are not parameters. A head that is stored beside an equal table does not count. One that the file
 * lacks is as large as the table, if a flag or the architecture says that the model has one. The
 * n-gram tables are those of the first layer that has some.
 *
 * model gets the sizes; NULL means that they are not wanted. Its dtype is that of the token table;
 * 0 means that Embla cannot decode it. embla_cost_compute of them gives the same cost if all
 * tensors have one dtype. EMBLA_ERR_NOT_FOUND if there is no token table. EMBLA_ERR_SHAPE if it is
 * not rows x dim. */
EMBLA_API EMBLA_CHECKED embla_status embla_cost_checkpoint(const embla_checkpoint *checkpoint,
                                                           embla_cost_model *model,
                                                           embla_cost *out);

/* The n-th note, n from 0, about a figure that is often quoted for such a model and is wrong. NULL
 * past the last. */
EMBLA_API const char *embla_cost_note(const embla_cost_model *model, size_t n);

/* The name of the n-th published model, n from 0. NULL past the last. */
EMBLA_API const char *embla_cost_preset_name(size_t n);
/* What the n-th model is and where its figures come from. NULL past the last. */
EMBLA_API const char *embla_cost_preset_about(size_t n);
/* The sizes of a published model. EMBLA_ERR_NOT_FOUND lists the names. */
EMBLA_API EMBLA_CHECKED embla_status embla_cost_preset(const char *name, embla_cost_model *out);

/* ---- near: the rows nearest to a vector ---- */

typedef enum {
    EMBLA_MEASURE_COSINE = 0,   /* 1 means the same direction; 0 for a row of zeros */
    EMBLA_MEASURE_DOT = 1,      /* a larger product is nearer */
    EMBLA_MEASURE_EUCLIDEAN = 2 /* a smaller distance is nearer */
} embla_measure;

/* "cosine", "dot", "euclidean"; NULL past the last. */
EMBLA_API const char *embla_measure_name(embla_measure measure);

typedef struct {
    int64_t row; /* -1 if there are fewer rows than asked for */
    double score;
} embla_neighbour;

/* A small copy of a table that makes searches for a few queries faster: 4 bits for each number and
 * 8 bytes for each row, a seventh of f32. embla_near reads the copy, and only those rows of the
 * table that may belong to the result; the result is the same, bit for bit. Many threads may use
 * it. */
typedef struct embla_sketch embla_sketch;

typedef struct {
    int threads;
    uint64_t reserved[4]; /* must be 0 */
} embla_sketch_options;

/* Makes a sketch of all rows. The table must live longer, and its rows must not change while the
 * sketch is used: a search would miss rows that changed. options may be NULL. */
EMBLA_API EMBLA_CHECKED embla_status embla_sketch_new(const embla_table *table,
                                                      const embla_sketch_options *options,
                                                      embla_sketch **out);
EMBLA_API void embla_sketch_free(embla_sketch *sketch);
/* The bytes of memory that the sketch takes; 0 for NULL. */
EMBLA_API size_t embla_sketch_bytes(const embla_sketch *sketch);

typedef struct {
    size_t k;     /* nearest rows of each query; 0 means 10 */
    int64_t rows; /* search only the first `rows` rows; 0 means all */
    /* Rows to exclude: exclude_count row numbers for each query (count x exclude_count); -1
     * excludes none. */
    const int64_t *exclude;
    size_t exclude_count;
    int threads;
    embla_measure measure; /* default: cosine */
    /* A sketch of this table, for up to four queries by cosine; NULL means that all rows are read.
     */
    const embla_sketch *sketch;
    embla_progress_fn progress; /* NULL means none; counts pairs of a row and a query; a call of
                                   less than 20 ms does not use it */
    void *context;              /* passed to progress */
    uint64_t reserved[4];       /* must be 0 */
} embla_near_options;

typedef struct {
    int64_t rows;      /* rows that were searched */
    int64_t nonfinite; /* rows that were skipped because they contain a NaN or an infinity */
    uint64_t reserved[4];
} embla_near_report;

/* Finds the nearest rows for each of count queries (count x dim), and writes them to out (count x
 * options.k), nearest first. The result is exact: scores are sums in double of exact products, and
 * equal scores are ordered by row number. It has the same bits for any number of threads and any
 * engine. Rows are decoded a few at a time. options and report may be NULL. EMBLA_ERR_ARGUMENT for
 * a query that contains a NaN or an infinity. */
EMBLA_API EMBLA_CHECKED embla_status embla_near(const embla_table *table, const float *queries,
                                                size_t count, const embla_near_options *options,
                                                embla_neighbour *out, embla_near_report *report);

/* ---- analogy: king - man + woman ---- */

typedef enum {
    EMBLA_ANALOGY_COS_ADD =
        0, /* nearest to sum of plus less sum of minus, as unit vectors (3CosAdd) */
    EMBLA_ANALOGY_COS_MUL =
        1 /* product of (1 + cosine) / 2 over plus, divided by that over minus */
} embla_analogy_kind;

/* plus[0] + plus[1] .. - minus[0] - minus[1] .. At most 16 rows each, and one at least together. */
typedef struct {
    const int64_t *plus, *minus;
    size_t plus_count, minus_count;
    uint64_t reserved[4]; /* must be 0 */
} embla_analogy_question;

typedef struct {
    size_t k;     /* answers; 0 means 10 */
    int64_t rows; /* as in embla_near_options */
    int threads;
    bool keep_words; /* allow rows of the question as answers */
    embla_analogy_kind kind;
    uint64_t reserved[4]; /* must be 0 */
} embla_analogy_options;

/* Finds the options.k rows that best answer a question, best first. options and report may be NULL.
 * EMBLA_ERR_RANGE for a row outside the table. EMBLA_ERR_ARGUMENT if the rows of
 * EMBLA_ANALOGY_COS_ADD add up to zero, as king - king does: any row would be an answer. */
EMBLA_API EMBLA_CHECKED embla_status embla_analogy(const embla_table *table,
                                                   const embla_analogy_question *question,
                                                   const embla_analogy_options *options,
                                                   embla_neighbour *out, embla_near_report *report);

/* ---- odd: the row that does not match ---- */

/* Writes to cosines (count) how well each of count rows fits the others: its cosine with the mean
 * of all of them, each divided by its norm. The index of the lowest goes to *odd; of equal ones the
 * first. A row of zeros has the cosine 0. */
EMBLA_API EMBLA_CHECKED embla_status embla_odd_row(const embla_table *table, const int64_t *rows,
                                                   size_t count, double *cosines, size_t *odd);

/* ---- eval: how well a table agrees with people ---- */

typedef struct embla_eval embla_eval;

typedef struct {
    int64_t rows; /* as in embla_near_options */
    int threads;
    bool exact_case; /* do not try lower case for a word that is missing */
    embla_analogy_kind kind;
    embla_progress_fn progress; /* NULL means none */
    void *context;              /* passed to progress */
    uint64_t reserved[4];       /* must be 0 */
} embla_eval_options;

/* The score of one section of an analogy file, or of a whole file of pairs. */
typedef struct {
    const char *name; /* of the section (": capital-world"), or of the file of pairs */
    bool syntactic;   /* analogies: the section's name begins with "gram" */
    int64_t asked;    /* questions or pairs in the file */
    int64_t covered;  /* questions or pairs whose words all have rows */
    int64_t correct;  /* analogies: questions answered with the fourth word */
    double spearman;  /* pairs: rank correlation of cosine and score; NaN if it is undefined */
    double pearson;   /* pairs: linear correlation; NaN if it is undefined */
    uint64_t reserved[4];
} embla_eval_part;

/* Scores a file of analogies: four words on a line, ": name" before each section. A question is
 * correct if the nearest row to second - first + third is the row of the fourth word. A question is
 * skipped if one of its words is missing from vocab or its row is not finite. If vocab has both
 * " dog" and "dog", the word is " dog". Lines that begin with # are comments.
 * EMBLA_ERR_FORMAT names the line that is wrong. EMBLA_ERR_UNSUPPORTED if this is a file of
 * pairs, or if the table maps tokens to rows. */
EMBLA_API EMBLA_CHECKED embla_status embla_eval_new_analogies(const embla_table *table,
                                                              const embla_vocab *vocab,
                                                              const char *path,
                                                              const embla_eval_options *options,
                                                              embla_eval **out);
/* Scores a file of pairs: two words and a number on a line, separated by tabs, spaces or commas. A
 * first line without a number is a heading. Otherwise the same; EMBLA_ERR_UNSUPPORTED if this is a
 * file of analogies. */
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
    /* Rows that were never trained, to compare the others with. NULL means the rows from `tokens`
     * on; if there are none, the largest group of at least three rows with one direction. (With
     * fewer than eight dims, rows share a direction by chance, so no group is used.) */
    const int64_t *unused;
    size_t unused_count;
    int64_t tokens; /* the rows from here on are padding; 0 means no padding */
    double alike;   /* threshold on the cosine for one direction, 0.9 to 1; 0 means 0.999999 */
    int threads;
    bool untied;          /* the head is a separate table: rank rows by their norm */
    uint64_t reserved[4]; /* must be 0 */
} embla_health_options;

/* How rows are ranked by how little they were trained. */
typedef enum {
    EMBLA_HEALTH_RANKING_UNUSED =
        1, /* cosine with the mean of unused rows; the table's mean is subtracted */
    EMBLA_HEALTH_RANKING_NORM = 2 /* norm, the smallest first */
} embla_health_ranking;

enum { EMBLA_HEALTH_BINS = 48, EMBLA_HEALTH_QUANTILES = 9 };

typedef struct {
    int64_t rows, dim;
    int64_t nonfinite, zero; /* rows with a NaN or an infinity; rows of zeros */
    int64_t duplicates;      /* rows that repeat an earlier row; rows of zeros are not counted */
    int64_t padding;         /* rows from options.tokens on */
    /* Norms of all finite rows. */
    double norm_min, norm_max, norm_mean, norm_deviation;
    /* .001 .01 .05 .25 .5 .75 .95 .99 .999, interpolated linearly, as numpy does */
    double norm_quantiles[EMBLA_HEALTH_QUANTILES];
    int64_t norm_bins[EMBLA_HEALTH_BINS]; /* equal bins from norm_min to norm_max */
    double anisotropy; /* mean cosine of two rows that are not zero; NaN if there are not two */
    double mean_norm;  /* norm of the mean row */
    double from_mean, from_mean_deviation; /* distance from the mean row: mean, deviation */
    /* Rows that nearly share a direction with more than about 1,000 groups and were not compared
     * with all of them. Such a row may belong to another group than is listed. */
    int64_t uncertain;
    embla_health_ranking ranked_by; /* how embla_health_ranked is ordered */
    uint64_t reserved[4];
} embla_health_info;

/* Rows with one direction: their cosine with the first row of the group is above options.alike.
 * Duplicates are included. A row belongs to the group with the lowest first row, except for the
 * rows that embla_health_info.uncertain counts. */
typedef struct {
    int64_t count;
    const int64_t *rows; /* ascending */
    double norm_min, norm_max;
    double cosine_min; /* of the first row with any other */
    uint64_t reserved[4];
} embla_health_group;

/* Examines all rows. It reads the table twice, and compares rows of similar direction with each
 * other. A row is compared with at most 1,024 others, so the time does not grow with the square of
 * the rows; embla_health_info.uncertain counts the rows that reach this limit. Numbers are read
 * as floats; -0 equals 0. */
EMBLA_API EMBLA_CHECKED embla_status embla_health_new(const embla_table *table,
                                                      const embla_health_options *options,
                                                      embla_health **out);
EMBLA_API void embla_health_free(embla_health *health);
/* Counts and statistics. */
EMBLA_API EMBLA_CHECKED embla_status embla_health_describe(const embla_health *health,
                                                           embla_health_info *out);

/* A row that repeats an earlier one. */
typedef struct {
    int64_t row, original;
} embla_health_duplicate;

/* The next six return an array of *count items, which the handle owns.
 * Groups of two or more rows, largest first. */
EMBLA_API const embla_health_group *embla_health_groups(const embla_health *health, size_t *count);
/* All finite rows, the least trained first; score is what they are ranked by. */
EMBLA_API const embla_neighbour *embla_health_ranked(const embla_health *health, size_t *count);
/* The rows that the ranking treats as unused; none if it goes by norm. */
EMBLA_API const int64_t *embla_health_unused(const embla_health *health, size_t *count);
/* Rows with a NaN or an infinity, rows of zeros, and rows that repeat an earlier one; ascending. */
EMBLA_API const int64_t *embla_health_nonfinite(const embla_health *health, size_t *count);
EMBLA_API const int64_t *embla_health_zero(const embla_health *health, size_t *count);
EMBLA_API const embla_health_duplicate *embla_health_duplicates(const embla_health *health,
                                                                size_t *count);

/* ---- spectrum: how many directions a table uses ---- */

typedef struct {
    int threads;
    bool centred;   /* subtract the mean row first */
    bool no_engine; /* compute by plain loops: slower, but the same bits on every CPU. Always so
                       where no engine is installed */
    uint64_t reserved[4]; /* must be 0 */
} embla_spectrum_options;

typedef struct {
    int64_t rows, nonfinite;  /* rows used; rows skipped */
    size_t count;             /* number of singular values: dim */
    double effective_rank;    /* exp of the entropy of s / sum s */
    double participation;     /* (sum s^2)^2 / sum s^4 */
    double stable_rank;       /* sum s^2 / largest s^2 */
    int64_t rank_50, rank_90; /* directions that explain 50 % and 90 % of sum s^2 */
    uint64_t reserved[4];
} embla_spectrum_report;

/* Writes the dim singular values of the table to singular, largest first, and what they say to
 * *report. They are computed from
 * the products of columns: values below about 1/3000 of the largest (apart from the mean row's own
 * part) are lost in rounding, and reported as 0. dim is at most 32,768. The bits are the same for
 * any number of threads; with an engine they depend on it and on the instruction set. */
EMBLA_API EMBLA_CHECKED embla_status embla_spectrum(const embla_table *table,
                                                    const embla_spectrum_options *options,
                                                    double *singular,
                                                    embla_spectrum_report *report);

/* ---- plane: every row as a point ---- */

typedef struct {
    int64_t rows, nonfinite; /* points; rows skipped, whose x and y are NaN */
    double share[2];         /* share of the variance along each axis */
    uint64_t reserved[4];
} embla_plane_report;

typedef struct {
    /* basis_count row numbers: the plane is that of these rows, and all rows are projected on it.
     * NULL means the plane of all rows. */
    const int64_t *basis;
    size_t basis_count;
    int threads;
    bool no_engine;       /* as in embla_spectrum_options */
    uint64_t reserved[4]; /* must be 0 */
} embla_plane_options;

/* Projects the rows on their two main directions (PCA), and writes x and y of each row to xy (rows
 * x 2). Shares of the variance are those of the basis. The sign of an axis is chosen so that its
 * largest component is positive. Bits are as in embla_spectrum. report may be
 * NULL. After EMBLA_ERR_IO the contents of xy are undefined. */
EMBLA_API EMBLA_CHECKED embla_status embla_plane(const embla_table *table,
                                                 const embla_plane_options *options, float *xy,
                                                 embla_plane_report *report);

/* ---- film: how rows move while they are trained ---- */

/* Rows at some moments of a training, on one plane that is the same for all moments. The result is
 * one page (HTML) that needs no network. Moments are dense at first, where rows move most. One
 * thread at a time uses a film.
 *
 *   embla_film_new(table, &options, &film);     embla_film_add(film, table, 0, NULL, 0);
 *   after each step:  if (embla_film_due(film, step, loss)) embla_film_add(film, table, step, ..);
 *   embla_film_write(film, "rows.html", false); */
typedef struct embla_film embla_film;

typedef struct {
    /* The rows to show, each once, row_count of them. NULL means the first row_count rows. */
    const int64_t *rows;
    size_t row_count;         /* at most 1,024; 0 means all rows of the table */
    const char *const *words; /* a text for each of these rows, which is copied; NULL: no word */
    /* Four of these rows: the horizontal axis points from the first to the second, the vertical one
     * from the third to the fourth, less what it shares with the horizontal one. All are as in the
     * last moment. NULL means the two main directions (PCA) of the rows in the last moment. */
    const int64_t *axes;
    int64_t first, steps; /* steps made before the film begins, and in all */
    size_t moments;       /* 2 to 1,000; 0 means 120. Fewer steps have one moment each */
    double guess;         /* the loss of a model that guesses, drawn as a line; 0 means no line */
    const char *title;    /* copied; NULL means none */
    uint64_t reserved[4]; /* must be 0 */
} embla_film_options;

typedef struct {
    size_t rows, dim;
    size_t moments; /* taken so far */
    int64_t step;   /* of the last of them; -1 means none */
    int64_t bytes;  /* memory that all moments take */
    uint64_t reserved[4];
} embla_film_info;

/* Begins a film of rows of a table. Rows are kept as f16, until the film is written.
 * EMBLA_ERR_RANGE for a row outside the table, EMBLA_ERR_ARGUMENT for axes that are not four of
 * the rows or have one direction, and if all moments together would take more than 256 MB. */
EMBLA_API EMBLA_CHECKED embla_status embla_film_new(const embla_table *table,
                                                    const embla_film_options *options,
                                                    embla_film **out);
EMBLA_API void embla_film_free(embla_film *film);
EMBLA_API EMBLA_CHECKED embla_status embla_film_describe(const embla_film *film,
                                                         embla_film_info *out);
/* Notes the loss of a step (NaN means unknown), and says whether a moment is due: `step` steps have
 * been made. A moment shows the mean loss since the one before. False for NULL. */
EMBLA_API bool embla_film_due(embla_film *film, int64_t step, double loss);
/* Adds a moment: the rows as they are now, and what the model writes (length bytes, copied; NULL
 * means nothing). EMBLA_ERR_SHAPE if it is another table, EMBLA_ERR_ARGUMENT if `step` is not
 * after the last moment, EMBLA_ERR_RANGE after one moment more than planned. */
EMBLA_API EMBLA_CHECKED embla_status embla_film_add(embla_film *film, const embla_table *table,
                                                    int64_t step, const char *text, size_t length);
/* Writes the page. The bits do not depend on engine or threads. A file that exists is replaced only
 * with overwrite; it is complete or unchanged. EMBLA_ERR_ARGUMENT without a moment, and if the
 * two axes have turned out to have the same direction. */
EMBLA_API EMBLA_CHECKED embla_status embla_film_write(const embla_film *film, const char *path,
                                                      bool overwrite);

/* ---- play: a page to learn with ---- */

/* Receives the next `count` bytes. False ends the call that writes. */
typedef bool (*embla_write_fn)(void *context, const void *bytes, size_t count);

/* What goes into the page of `embla play`: one file (HTML) that needs no network. It has Embla
 * itself in it, compiled to WebAssembly, with a model or a table to explore, and texts to train on.
 */
typedef struct {
    const void *module; /* play.wasm of this version, compressed with gzip: module_bytes */
    size_t module_bytes;
    const char *demo; /* the folder of the demo's files, some of which every page has */
    /* What the page is about. NULL means the demo's model `story`. A decoder that embla_gpt_open
     * opens, and whose files are at most 5 MB, goes in whole. Of anything else the token table with
     * its words goes in: as f32 if the page stays below 10 MB, otherwise as i8 with a scale for
     * each row. If that is too much, the first rows that fit go in. */
    const embla_checkpoint *model;
    const char *name;    /* what commands on the page call it; NULL means the path of `model` */
    const char *command; /* the command that has trained it; NULL means unknown */
    int64_t rows;        /* rows of a table, the first ones; 0 means as many as fit */
    const char *text; /* a file of text, at most 2 MB, before those of the demo; NULL means none */
    const char *text_name; /* what commands on the page call it; NULL means its path */
    int64_t text_words;   /* a training on it has words as tokens, at most so many; 0: characters */
    const char *title;    /* of the page; NULL means one with the name */
    uint64_t reserved[4]; /* must be 0 */
} embla_play_options;

typedef struct {
    bool decoder;      /* the model is in the page whole, and predicts; false means a table alone */
    int64_t rows, all; /* rows in the page, and of the table */
    size_t dim;
    embla_dtype dtype; /* of the rows in the page */
    int64_t bytes;     /* of the page */
    char stored[256];  /* a sentence that says it, as the page does */
    uint64_t reserved[4];
} embla_play_report;

/* Writes the page. All of it is collected first: a call that fails before its first byte writes
 * nothing. report may be NULL. EMBLA_ERR_NOT_FOUND if the demo lacks a file. EMBLA_ERR_RANGE if so
 * many rows, or the text, make the page too large. EMBLA_ERR_ARGUMENT for a module that is not
 * compressed with gzip, and for `rows` with a decoder that goes in whole. EMBLA_ERR_STOPPED if
 * `write` returned false. */
EMBLA_API EMBLA_CHECKED embla_status embla_play_write(const embla_play_options *options,
                                                      embla_write_fn write, void *context,
                                                      embla_play_report *report);

/* ---- graph: the nearest rows of every row ---- */

typedef struct embla_graph embla_graph;

typedef struct {
    size_t k; /* nearest rows of each row, at most 1,024; 0 means 30 */
    int threads;
    embla_progress_fn progress; /* NULL means none; counts rows */
    void *context;              /* passed to progress */
    uint64_t reserved[4];       /* must be 0 */
} embla_graph_options;

/* Finds the k nearest rows of every row by cosine, as embla_near does. No row is its own neighbour.
 * If fewer than k other rows are finite, each row has only that many neighbours. It takes rows^2 *
 * dim multiply-adds, and rows * k * 16 bytes of memory. The bits are the same for any number of
 * threads and any engine. EMBLA_ERR_UNSUPPORTED for a table of more than 2^31 - 1 rows. */
EMBLA_API EMBLA_CHECKED embla_status embla_graph_new(const embla_table *table,
                                                     const embla_graph_options *options,
                                                     embla_graph **out);
EMBLA_API void embla_graph_free(embla_graph *graph);
/* The *count nearest rows of a row, nearest first. The handle owns the array. *count is 0 for a row
 * that has a NaN or an infinity, and for a row number outside the table. */
EMBLA_API const embla_neighbour *embla_graph_near(const embla_graph *graph, int64_t row,
                                                  size_t *count);

/* ---- layout: every row near its nearest rows ---- */

typedef struct {
    int64_t rows, nonfinite; /* points; rows skipped, whose x and y are NaN */
    uint64_t reserved[4];
} embla_layout_report;

typedef struct {
    int steps; /* steps of the optimization, at most 100,000; 0 means 750 */
    int threads;
    embla_progress_fn progress; /* NULL means none; counts steps */
    void *context;              /* passed to progress */
    uint64_t reserved[4];       /* must be 0 */
} embla_layout_options;

/* Places every row on a plane so that its nearest rows stay near (t-SNE), and writes x and y of
 * each row to xy (rows x 2). Distances between far points have no meaning. graph is the graph of
 * this table; the 30 nearest rows of each row are used. The first positions are those of
 * embla_plane. The bits are the same for any number of threads, but depend on the engine as in
 * embla_plane. report may be NULL. If the call fails, xy is unchanged. EMBLA_ERR_SHAPE if graph is
 * of another number of rows. */
EMBLA_API EMBLA_CHECKED embla_status embla_layout(const embla_table *table,
                                                  const embla_graph *graph,
                                                  const embla_layout_options *options, float *xy,
                                                  embla_layout_report *report);

/* ---- communities: rows that belong together ---- */

typedef struct embla_communities embla_communities;

typedef struct {
    size_t max_communities; /* 1 to 1,024; 0 means 24 */
    int threads;
    embla_progress_fn progress; /* NULL means none; counts rounds */
    void *context;              /* passed to progress */
    uint64_t reserved[4];       /* must be 0 */
} embla_communities_options;

typedef struct {
    int64_t rows; /* rows in the community */
    const int64_t *
        central; /* rows with the largest sum of edge weights inside the community, largest first */
    size_t central_count; /* at most 16 */
    uint64_t reserved[4];
} embla_community;

/* Divides the rows of a graph into communities: most edges of a row go to rows of its own community
 * (Louvain's method). It uses the 30 nearest rows of each row, of less than 600 rows fewer: a
 * twentieth, at least 10. A community of less than one row in
 * 1,000 joins the community to which it has the most edges beyond chance, and so does the smallest
 * one while there are too many. The bits are the same everywhere. */
EMBLA_API EMBLA_CHECKED embla_status embla_communities_new(const embla_graph *graph,
                                                           const embla_communities_options *options,
                                                           embla_communities **out);
EMBLA_API void embla_communities_free(embla_communities *communities);
/* The *count communities, largest first. The handle owns the array. */
EMBLA_API const embla_community *embla_communities_list(const embla_communities *communities,
                                                        size_t *count);
/* The community of each of *count rows, as an index into that list. -1 means none: the row has a
 * NaN or an infinity, or it has no edges to a community that is large enough. The handle owns the
 * array.
 */
EMBLA_API const int32_t *embla_communities_labels(const embla_communities *communities,
                                                  size_t *count);

/* ---- diff: two tables, row by row ---- */

typedef struct embla_diff embla_diff;

typedef struct {
    /* Row i of the first table is compared with row other[i] of the second; -1 means with none.
     * NULL means with row i. */
    const int64_t *other;
    double tolerance; /* numbers may differ by this much; 0 means not at all */
    int threads;
    uint64_t reserved[4]; /* must be 0 */
} embla_diff_options;

typedef struct {
    int64_t rows[2]; /* rows of the first and of the second table */
    int64_t compared, same, changed;
    int64_t only[2];      /* rows that the other table does not have */
    int64_t nonfinite;    /* changed rows where a value is NaN or infinite in either table */
    double difference;    /* the largest |first - second| */
    double distance_mean; /* Euclidean, over changed finite rows; NaN if there are none */
    double cosine_mean;   /* over changed rows that have a cosine; NaN if there are none */
    uint64_t reserved[4];
} embla_diff_info;

typedef struct {
    int64_t row, other;
    double distance;   /* Euclidean; infinite if a value became or was NaN or infinite */
    double cosine;     /* NaN if a row is zero or contains a NaN or an infinity */
    double difference; /* the largest of one number; infinite as above */
} embla_diff_row;

/* Compares the numbers of two tables, which may differ in dtype. A NaN equals a NaN, -0 equals 0.
 * EMBLA_ERR_SHAPE if their dims differ. EMBLA_ERR_RANGE if options.other names a row outside the
 * second table. */
EMBLA_API EMBLA_CHECKED embla_status embla_diff_new(const embla_table *first,
                                                    const embla_table *second,
                                                    const embla_diff_options *options,
                                                    embla_diff **out);
EMBLA_API void embla_diff_free(embla_diff *diff);
/* Counts and statistics. */
EMBLA_API EMBLA_CHECKED embla_status embla_diff_describe(const embla_diff *diff,
                                                         embla_diff_info *out);
/* The *count changed rows, the farthest first. The handle owns the array. */
EMBLA_API const embla_diff_row *embla_diff_rows(const embla_diff *diff, size_t *count);

/* ---- doctor: do the parts of a checkpoint agree? ---- */

typedef struct embla_doctor embla_doctor;

typedef struct {
    int threads;
    embla_progress_fn progress; /* NULL means none; counts bytes of the tensors that are read */
    void *context;              /* passed to progress */
    uint64_t reserved[4];       /* must be 0 */
} embla_doctor_options;

/* How serious a finding is. */
typedef enum {
    EMBLA_FINDING_LEVEL_FINE = 0,
    EMBLA_FINDING_LEVEL_SKIPPED = 1, /* there is nothing to compare */
    EMBLA_FINDING_LEVEL_WARNING = 2,
    EMBLA_FINDING_LEVEL_ERROR = 3
} embla_finding_level;

/* "fine", "skipped", "warning", "error"; NULL past the last. */
EMBLA_API const char *embla_finding_level_name(embla_finding_level level);

/* What one check has found. */
typedef struct {
    embla_finding_level level;
    /* The check: "table", "tokens", "mapping", "vocab_size", "dim", "head", "head bias",
     * "per layer", "positions", "tied", "copies", "type", "numbers", "zeros", "config", "note". */
    const char *check;
    const char *found;  /* a sentence with both numbers */
    const char *remedy; /* what to do; NULL means nothing */
    const char *tensor; /* the tensor that it is about; NULL means none */
    int64_t rows;       /* "numbers": rows with a NaN or an infinity; "zeros": rows of zeros */
    int64_t first_row;  /* the first of these rows; -1 means that there are none */
} embla_finding;

typedef struct {
    int64_t errors, warnings, skipped, fine; /* findings of each level */
    uint64_t reserved[4];
} embla_doctor_info;

/* Compares the table of a checkpoint with its tokens, its config, its head and its other tables.
 * Then it reads all rows and looks for NaN, infinities and rows of zeros. What is wrong with the
 * checkpoint is a finding, not an error: a file that cannot be read to its end is one, too. The
 * findings stay valid when the checkpoint is freed. options may be NULL. EMBLA_ERR_MEMORY,
 * EMBLA_ERR_STOPPED, EMBLA_ERR_ARGUMENT. The caller frees *out with embla_doctor_free. */
EMBLA_API EMBLA_CHECKED embla_status embla_doctor_new(const embla_checkpoint *checkpoint,
                                                      const embla_doctor_options *options,
                                                      embla_doctor **out);
EMBLA_API void embla_doctor_free(embla_doctor *doctor);
/* The number of findings of each level. */
EMBLA_API EMBLA_CHECKED embla_status embla_doctor_describe(const embla_doctor *doctor,
                                                           embla_doctor_info *out);
/* The *count findings, in the order of the checks. The handle owns the array. */
EMBLA_API const embla_finding *embla_doctor_findings(const embla_doctor *doctor, size_t *count);

/* Writes whether the head is the token table to text, as a sentence of at most size - 1 bytes:
 * "no, the head is a separate tensor (flag not set)". Returns text. It is "" if tie is NULL. */
EMBLA_API const char *embla_tie_text(const embla_tie *tie, char *text, size_t size);

/* ---- suggest: words with a similar spelling ---- */

/* Writes up to k tokens (at most 64) whose words are spelled most like word, the most similar
 * first, and returns their number. Case and leading spaces count little; a longer word that begins
 * with word is similar. */
EMBLA_API size_t embla_vocab_suggest(const embla_vocab *vocab, const char *word, size_t length,
                                     size_t k, int32_t *out);

/* ---- the engine of matrix products ---- */

/* The library that computes matrix products, for bug reports: "oneDNN 2.6.3", or "none". */
EMBLA_API const char *embla_engine_name(void);
/* A sentence if that library is missing, or if OpenBLAS does not know this CPU and is slow on it.
 * NULL if all is well. If OPENBLAS_CORETYPE is set, somebody chose the kernels: NULL, too. */
EMBLA_API const char *embla_engine_warning(void);

/* ---- convert: a checkpoint in another format ---- */

typedef struct embla_account embla_account;

typedef struct {
    const char *to; /* the name of a format; NULL means the one of path's extension */
    /* The new dtype of token table, head and positions; 0 means unchanged. EMBLA_ERR_NOT_FOUND if
     * the checkpoint has no known table. EMBLA_ERR_UNSUPPORTED for i8: no format stores its
     * scale. */
    embla_dtype dtype;
    int64_t rows; /* write only this many rows, the first ones; 0 means all. Only where one tensor
                   * is written: EMBLA_ERR_UNSUPPORTED otherwise */
    bool tables_only; /* write tensors that have a role; leave out all others */
    bool overwrite;   /* replace path, and words beside it that embla_convert has written, when
                       * the new file is complete */
    embla_progress_fn progress; /* NULL means none */
    void *context;              /* passed to progress */
    uint64_t reserved[4];       /* must be 0 */
} embla_convert_options;

/* Writes a checkpoint to path. Tables are re-encoded if asked; the bytes of all other tensors stay
 * the same. A format that holds one table gets the token table, or the one chosen by
 * "file::tensor". Words are written into the file, or to NAME.vocab.txt beside it. The new file is
 * read back and compared before it gets its name: path is either complete or unchanged.
 * EMBLA_ERR_UNSUPPORTED names a tensor that the format cannot hold, unless tables_only leaves it
 * out. The caller frees *out with embla_account_free. */
EMBLA_API EMBLA_CHECKED embla_status embla_convert(const embla_checkpoint *checkpoint,
                                                   const char *path,
                                                   const embla_convert_options *options,
                                                   embla_account **out);
EMBLA_API void embla_account_free(embla_account *account);

/* The new file. */
typedef struct {
    const char *format;
    int64_t bytes;
    uint64_t reserved[4];
} embla_account_info;

EMBLA_API EMBLA_CHECKED embla_status embla_account_describe(const embla_account *account,
                                                            embla_account_info *out);

/* What happened to one tensor. */
typedef struct {
    const char *name, *new_name; /* new_name is NULL if the tensor was left out */
    const char *type, *new_type;
    const char *why; /* the reason, if it was left out; else NULL */
    bool table;      /* a table: the counts of rows below are valid */
    int64_t rows, new_rows;
    int64_t rows_same;       /* the same numbers, bit for bit */
    int64_t rows_rounded;    /* all other rows: rounded to the new dtype */
    int64_t rows_nonfinite;  /* rows with a NaN or an infinity, before or after */
    int64_t rows_overflowed; /* of these, rows that were finite before */
    int64_t rows_vanished;   /* rows of zeros that were not zero before */
    double difference;       /* the largest |old - new| */
    int64_t bytes;           /* as written */
    char checksum[33];       /* XXH3-128 of the bytes as written and as read back, hexadecimal */
    uint64_t reserved[4];
} embla_account_line;

/* The *count lines, one for each tensor of the source. The handle owns the array. */
EMBLA_API const embla_account_line *embla_account_lines(const embla_account *account,
                                                        size_t *count);
/* *count sentences about other things worth knowing ("3 words had spaces: written as #row").
 * The handle owns the array. */
EMBLA_API const char *const *embla_account_notes(const embla_account *account, size_t *count);
/* The name of the n-th format that can be written; NULL past the last. */
EMBLA_API const char *embla_convert_format_name(size_t n);

#ifdef __cplusplus
}
#endif
#endif
