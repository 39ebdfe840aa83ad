/* SPDX-License-Identifier: Apache-2.0 */
/* embla_search.h - what the vectors of texts are for.
 *
 *   encoder + corpus -> fit    weights and common components, which make means of words useful
 *   encoder + corpus -> index  the vectors of all lines; questions -> nearest lines
 *   encoder + pairs  -> scores how well cosines agree with people
 *
 * The rules of embla.h hold here too. Link libembla_lab, which links libembla.
 */
#ifndef EMBLA_SEARCH_H
#define EMBLA_SEARCH_H

#include "embla_lab.h"
#include "embla_text.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- fit: weights and components, fitted once to a corpus ---- */

/* The vector of a text becomes the mean of a / (a + p) times the row of each token, where p is the
 * share of that token in all text; then the directions that all texts have in common are removed
 * (SIF: Arora, Liang and Ma, 2017). */
typedef struct {
    double a;           /* 0 means 1e-3 for word vectors and no weights for other models; a negative
                           number means no weights */
    int64_t components; /* directions to remove; 0 means 10, a negative number means none */
    const char *counts; /* text file of "word count" lines; NULL means the counts of the model's
                           file or, if it has none, 1 / (rank + 1): words are in the order of their
                           frequency */
    int64_t lines;      /* lines of the corpus that are used, evenly spread; 0 means 200,000 */
    int threads;
    embla_progress_fn progress; /* NULL means none */
    void *context;              /* passed to progress */
    uint64_t reserved[4];       /* must be 0 */
} embla_fit_options;

typedef struct {
    int64_t lines;       /* of the corpus */
    int64_t used;        /* lines that have a vector and were used */
    int64_t tokens;      /* of these lines */
    int64_t unknown;     /* tokens that were left out */
    size_t components;   /* may be fewer than asked for: no more than the corpus has */
    double share;        /* of the squared lengths of the vectors, in these components */
    double a;            /* 0 means that there are no weights */
    const char *weights; /* "none", "rank", "the model's counts" or "a file of counts" */
    uint64_t reserved[4];
} embla_fit_report;

/* Fits an encoder, which has no fit yet, to the lines of a text file, and writes the result to
 * path, for embla_encoder_options.fit. The file has a checksum of the model: it is refused for any
 * other. report may be NULL. EMBLA_ERR_SHAPE if no line has a vector. */
EMBLA_API EMBLA_CHECKED embla_status embla_fit(const embla_encoder *encoder, const char *corpus,
                                               const char *path, const embla_fit_options *options,
                                               embla_fit_report *report);

/* ---- sentence pairs: how well cosines agree with people ---- */

/* Scores a file of sentence pairs (STS Benchmark): fields separated by tabs, one of which is a
 * number. It is followed by the two sentences, or follows them. A first line without a number is a
 * heading. covered counts pairs of which both have a vector; the scores refer to them. out->name is
 * path. EMBLA_ERR_FORMAT names the line that is wrong. Of options, threads and progress are used;
 * NULL means defaults. */
EMBLA_API EMBLA_CHECKED embla_status embla_eval_sentences(const embla_encoder *encoder,
                                                          const char *path,
                                                          const embla_eval_options *options,
                                                          embla_eval_part *out);

/* ---- index: the vectors of the lines of a corpus, and the nearest lines ---- */

/* Lines without a vector (empty ones, or of unknown tokens only) are not in the index: row i of an
 * index is the i-th line that has one. */
typedef struct embla_index embla_index;

typedef struct {
    embla_dtype dtype; /* of the stored vectors: f32, f16 or bf16; 0 means f32 */
    int threads;
    embla_progress_fn progress; /* NULL means none */
    void *context;              /* passed to progress */
    uint64_t reserved[4];       /* must be 0 */
} embla_index_options;

typedef struct {
    int64_t lines;      /* lines of the corpus */
    int64_t rows;       /* lines that have a vector */
    int64_t bytes;      /* of their vectors */
    int64_t text_bytes; /* of the corpus */
    size_t dim;
    embla_dtype dtype;
    bool stored; /* the vectors are in a file, not in memory */
    uint64_t reserved[4];
} embla_index_info;

/* Encodes all lines of a text file, shared over threads. Vectors are normalised. The corpus is
 * mapped and must not change while the index is open; the encoder must live longer. The result does
 * not depend on the number of threads. EMBLA_ERR_SHAPE if no line has a vector. */
EMBLA_API EMBLA_CHECKED embla_status embla_index_new(const embla_encoder *encoder,
                                                     const char *corpus,
                                                     const embla_index_options *options,
                                                     embla_index **out);
/* Writes an index to a safetensors file, which is complete or does not appear. */
EMBLA_API EMBLA_CHECKED embla_status embla_index_write(const embla_index *index, const char *path);
/* Opens a file of embla_index_write. The vectors stay in the file. Its checksums are compared with
 * the corpus and the encoder: EMBLA_ERR_ARGUMENT says which of them differs, and then the index
 * must be made again. EMBLA_ERR_NOT_FOUND if there is no such file, EMBLA_ERR_FORMAT if it is not
 * an index, or if its list of lines is damaged. The vectors are not read: embla_index_verify
 * compares their checksum. */
EMBLA_API EMBLA_CHECKED embla_status embla_index_open(const char *path,
                                                      const embla_encoder *encoder,
                                                      const char *corpus, embla_index **out);
/* Reads a whole file of embla_index_write, with its vectors, and compares its checksum.
 * EMBLA_ERR_FORMAT if it is damaged or not an index. */
EMBLA_API EMBLA_CHECKED embla_status embla_index_verify(const char *path);
EMBLA_API void embla_index_free(embla_index *index);
EMBLA_API EMBLA_CHECKED embla_status embla_index_describe(const embla_index *index,
                                                          embla_index_info *out);
/* The text of a row: *length bytes, without a 0 after them. *number (may be NULL) gets the number
 * of the line, from 1. NULL if there is no such row. It is valid as long as the index. */
EMBLA_API const char *embla_index_line(const embla_index *index, int64_t row, size_t *length,
                                       int64_t *number);

typedef struct {
    int threads;
    bool distinct; /* of lines with the same text, only the first that is found */
    embla_progress_fn
        progress;         /* of the texts (embla_encode_options), then of embla_near_options */
    void *context;        /* passed to progress */
    uint64_t reserved[4]; /* must be 0 */
} embla_search_options;

/* Finds the k lines whose vectors have the largest cosines with that of each text, and writes them
 * to out (count x k), nearest first, as embla_near does: exactly, with the same bits for any number
 * of threads. options and details (count) may be NULL; a text without tokens has no neighbours: row
 * is -1. EMBLA_ERR_IO if the corpus has become shorter. */
EMBLA_API EMBLA_CHECKED embla_status embla_index_search(const embla_index *index,
                                                        const embla_texts *texts, size_t k,
                                                        const embla_search_options *options,
                                                        embla_neighbour *out,
                                                        embla_encoded *details);

#ifdef __cplusplus
}
#endif
#endif
