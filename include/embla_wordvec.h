/* SPDX-License-Identifier: Apache-2.0 */
/* embla_wordvec.h - learn a table of words from raw text.
 *
 *   text -> words and their counts -> rows      words that are used alike get rows alike
 *   rows + text -> steps (skip-gram or CBOW with negative sampling, word2vec and fastText)
 *   rows of character n-grams -> a row for a word that the text does not have (embla_subwords, in
 *   embla_text.h)
 *
 * The rules of embla.h hold here too: the same text, options and seed give the same bits for any
 * number of threads, and a training that is interrupted and resumed gives the same bits as one that
 * is not. Link libembla_lab.
 */
#ifndef EMBLA_WORDVEC_H
#define EMBLA_WORDVEC_H

#include "embla_text.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct embla_wordvec embla_wordvec;

typedef enum {
    EMBLA_WORDVEC_SKIPGRAM = 0, /* each neighbour predicts the word */
    EMBLA_WORDVEC_CBOW = 1      /* the mean of the neighbours predicts the word */
} embla_wordvec_kind;

/* What a word of the text is. */
typedef enum {
    EMBLA_WORDVEC_CLEAN_PLAIN = 0,  /* what is between white space (ASCII), as it is */
    EMBLA_WORDVEC_CLEAN_WORDS = 1,  /* letters, digits and bytes above 127, in lower case; all else
                                 separates */
    EMBLA_WORDVEC_CLEAN_LETTERS = 2 /* a to z, in lower case; all else separates */
} embla_wordvec_clean;

/* "skipgram", "cbow"; NULL past the last. */
EMBLA_API const char *embla_wordvec_kind_name(embla_wordvec_kind kind);
/* "plain", "words", "letters"; NULL past the last. */
EMBLA_API const char *embla_wordvec_clean_name(embla_wordvec_clean clean);

typedef struct {
    embla_wordvec_kind kind;
    embla_wordvec_clean clean;
    size_t dim;        /* 0 means 100 */
    size_t window;     /* maximum number of neighbours on each side; 0 means 5, the maximum is 50 */
    size_t negatives;  /* words drawn at random for each window; 0 means 5, the maximum is 63 */
    size_t epochs;     /* times the text is read; 0 means 5 */
    double rate;       /* learning rate, which falls to 0; 0 means 0.05 */
    double sample;     /* words above this share of the text are left out at random; 0 means 1e-4,
                          a negative number means none */
    int64_t min_count; /* rarer words get no row; 0 means 5 */
    int64_t max_words; /* only the most frequent words get a row; 0 means up to 4,194,304 */
    size_t min_gram;   /* shortest character n-gram that has a row; 0 with max_gram 0 means no
                            n-grams */
    size_t max_gram;   /* longest one; the maximum is 16 */
    int64_t buckets;   /* rows that n-grams share by a hash; 0 means 2,000,000. Only rows that are
                          used take memory */
    double phrases;    /* two words whose score is above this are read as one, "new_york"; 0 means
                          none, 100 is usual. The score compares how often they occur together with
                          how often that would happen by chance */
    uint64_t seed;
    bool hogwild; /* threads write to the rows without waiting for each other: faster, but each run
                     gives other bits */
    int threads;
    embla_progress_fn progress; /* of embla_wordvec_new, which counts words; NULL means none */
    void *context;              /* passed to progress */
    uint64_t reserved[4];       /* must be 0 */
} embla_wordvec_options;

/* Counts the words of a text file, or of the files of a folder, and makes their rows: random, as
 * word2vec's. The files are mapped and must not change until the handle is freed. Words longer than
 * 255 bytes are skipped and counted. EMBLA_ERR_SHAPE if too few words are frequent enough. */
EMBLA_API EMBLA_CHECKED embla_status embla_wordvec_new(const char *path,
                                                       const embla_wordvec_options *options,
                                                       embla_wordvec **out);
EMBLA_API void embla_wordvec_free(embla_wordvec *wordvec);
typedef struct {
    int64_t bytes;    /* of the text */
    int64_t tokens;   /* words of the text, each time they occur */
    int64_t known;    /* of these, words that have a row */
    int64_t words;    /* rows */
    int64_t too_long; /* words that were skipped: longer than 255 bytes */
    int64_t dropped;  /* rare words that were dropped while counting, to bound memory */
    int64_t grams;    /* rows of n-grams */
    int64_t phrases;  /* pairs of words that are read as one */
    int64_t memory;   /* bytes that training takes in all, the mapped text included */
    uint64_t reserved[4];
} embla_wordvec_text;

/* Computes what embla_wordvec_describe says of a text, without making rows: memory is what they
 * would take. */
EMBLA_API EMBLA_CHECKED embla_status embla_wordvec_plan(const char *path,
                                                        const embla_wordvec_options *options,
                                                        embla_wordvec_text *out);

/* The words, most frequent first: token i is row i. The handle owns them. */
EMBLA_API const embla_vocab *embla_wordvec_vocab(const embla_wordvec *wordvec);
/* The rows, f32: a view for embla_near and others, as of the last step. With n-grams a row is the
 * mean of the word's own row and of its n-grams' rows. The handle owns the table. */
EMBLA_API EMBLA_CHECKED embla_status embla_wordvec_table(embla_wordvec *wordvec,
                                                         const embla_table **out);

typedef struct {
    int64_t step, steps; /* steps made, and in all */
    double epochs;       /* how often the text has been read */
    double rate;
    double loss;    /* mean of -ln p for a pair of neighbours and its negatives, over a sample */
    int64_t tokens; /* words of the text that were read in this step */
    uint64_t reserved[4];
} embla_wordvec_report;

typedef struct {
    embla_wordvec_text text;
    embla_wordvec_report progress; /* loss and tokens are 0 */
    uint64_t reserved[4];
} embla_wordvec_info;

/* What the text has, and how far the training is. */
EMBLA_API EMBLA_CHECKED embla_status embla_wordvec_describe(const embla_wordvec *wordvec,
                                                            embla_wordvec_info *out);
/* Makes one step: a few thousand words. report may be NULL. EMBLA_ERR_RANGE past the last step.
 * EMBLA_ERR_IO if the text has changed. */
EMBLA_API EMBLA_CHECKED embla_status embla_wordvec_step(embla_wordvec *wordvec,
                                                        embla_wordvec_report *report);

/* Saves everything that the next step depends on to one safetensors file, which is complete or
 * unchanged. */
EMBLA_API EMBLA_CHECKED embla_status embla_wordvec_save(const embla_wordvec *wordvec,
                                                        const char *path);
/* Restores a saved state. The following steps have the same bits as they would have had then.
 * EMBLA_ERR_ARGUMENT names what differs: an option that changes results, or the text.
 * EMBLA_ERR_FORMAT if the file is damaged. */
EMBLA_API EMBLA_CHECKED embla_status embla_wordvec_load(embla_wordvec *wordvec, const char *path);

/* Whether the rows are numbers. EMBLA_ERR_RANGE if some are NaN or infinite: the training has
 * diverged, and needs a lower rate. */
EMBLA_API EMBLA_CHECKED embla_status embla_wordvec_check(embla_wordvec *wordvec);
/* Writes the result to a safetensors file: "embedding.weight" (rows x dim), "counts", and with
 * n-grams "subwords" and "subword_buckets". The words go to NAME.vocab.txt beside it. `path` is
 * replaced if it is a file. NAME.vocab.txt is replaced only if Embla wrote it, and if no NAME.npy
 * uses it too; EMBLA_ERR_ARGUMENT otherwise. EMBLA_ERR_RANGE as embla_wordvec_check. */
EMBLA_API EMBLA_CHECKED embla_status embla_wordvec_write(embla_wordvec *wordvec, const char *path);
/* Checks, before a long training, that embla_wordvec_write can use these names.
 * EMBLA_ERR_ARGUMENT as above. */
EMBLA_API EMBLA_CHECKED embla_status embla_wordvec_write_check(const char *path);

#ifdef __cplusplus
}
#endif
#endif
