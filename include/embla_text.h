/* SPDX-License-Identifier: Apache-2.0 */
/* embla_text.h - text as tokens.
 *
 *   text file -> corpus -> batches of tokens and targets
 *
 * The rules of embla.h hold here too; this is part of libembla.
 */
#ifndef EMBLA_TEXT_H
#define EMBLA_TEXT_H

#include "embla.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- corpus: text as tokens ---- */

typedef struct embla_corpus embla_corpus;

typedef enum {
    EMBLA_CORPUS_CHARACTERS = 0, /* each different character (UTF-8) a token, in order of code */
    EMBLA_CORPUS_BYTES = 1,      /* 256 tokens */
    EMBLA_CORPUS_TOKENS = 2      /* a file of tokens: llm.c's .bin, .npy of u2, u4 or i4 */
} embla_corpus_kind;

typedef struct {
    embla_corpus_kind kind;
    bool documents;       /* each line is a text of its own, between two BOS tokens (names) */
    double validation;    /* share kept for validation, below 1; 0: 0.1 for a stream, none for
                             documents; below 0: none */
    uint64_t seed;        /* of the order of documents and of places in a stream */
    bool in_order;        /* as in the file, over and over: documents, or pieces of a stream */
    uint64_t reserved[4]; /* must be 0 */
} embla_corpus_options;

/* A text file, a folder of them (in the order of their names, joined; hidden ones left out, links
 * and folders refused), or a file of tokens. A text is held in memory as tokens of 1, 2 or 4 bytes,
 * by the number of different ones (while it is opened, the text beside them); a file of tokens is
 * mapped. Lines end with LF or CR LF; empty ones are no documents. EMBLA_ERR_FORMAT names the byte
 * that is not UTF-8. NULL options: characters, a stream. */
EMBLA_API EMBLA_CHECKED embla_status embla_corpus_open(const char *path,
                                                       const embla_corpus_options *options,
                                                       embla_corpus **out);
EMBLA_API void embla_corpus_free(embla_corpus *corpus);
/* All of them; documents count with one BOS each. */
EMBLA_API int64_t embla_corpus_tokens(const embla_corpus *corpus);
EMBLA_API int64_t embla_corpus_vocab(const embla_corpus *corpus);
EMBLA_API int64_t embla_corpus_documents(const embla_corpus *corpus); /* 1 for a stream */
/* The text of a token, *length bytes (may be NULL) and a 0 after them; NULL where it has none (BOS,
 * tokens of a file). */
EMBLA_API const char *embla_corpus_word(const embla_corpus *corpus, int32_t token, size_t *length);
/* -1: there is none. */
EMBLA_API int32_t embla_corpus_bos(const embla_corpus *corpus);
/* Text to tokens: at most `most` of them, *count is how many it has. EMBLA_ERR_NOT_FOUND names a
 * character that the corpus has not. No BOS is added. */
EMBLA_API EMBLA_CHECKED embla_status embla_corpus_encode(const embla_corpus *corpus,
                                                         const char *text, size_t length,
                                                         size_t most, int32_t *tokens,
                                                         size_t *count);
/* Batch number `step` (B, T) and what comes after each token; EMBLA_TARGET_IGNORE, after token 0,
 * past the end of a document. The same step is the same batch, whatever was asked before, on any
 * thread. Documents: sequence b of step s is document (s * B + b) of the order that seed gives
 * (each epoch another; each document once), shortened to T. A stream: T tokens from a place drawn
 * by (seed, step, b); in order: piece (s * B + b) of T tokens. used (may be NULL): what is written
 * is (B, *used), no longer than its longest sequence; of a stream T. tokens and targets have room
 * for B x T all the same. EMBLA_ERR_SHAPE if there are not T + 1 tokens to train on; EMBLA_ERR_IO
 * if the file of tokens has changed. */
EMBLA_API EMBLA_CHECKED embla_status embla_corpus_batch(const embla_corpus *corpus, int64_t step,
                                                        size_t batch, size_t length,
                                                        int32_t *tokens, int32_t *targets,
                                                        size_t *used);
/* The n-th batch of what is kept for validation, in order; EMBLA_ERR_RANGE past the last. Of a
 * stream that is its last part, cut into pieces of T tokens, the last shorter; of documents a draw
 * that is the same for all seeds (in order: the last ones). Sequences that the last batch lacks are
 * EMBLA_TARGET_IGNORE. */
EMBLA_API EMBLA_CHECKED embla_status embla_corpus_validation(const embla_corpus *corpus, int64_t n,
                                                             size_t batch, size_t length,
                                                             int32_t *tokens, int32_t *targets,
                                                             size_t *used);

#ifdef __cplusplus
}
#endif
#endif
