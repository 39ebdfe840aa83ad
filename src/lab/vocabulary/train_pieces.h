/* SPDX-License-Identifier: Apache-2.0 */
/* Training of tokenizers: the pieces of a text with their counts, and what is learned from them.
 *
 * A piece is what the normalizers and pre-tokenizers of a tokenizer give to its model. Each line of
 * a text, with its line end, is cut on its own, as Hugging Face's library does.
 */
#ifndef EMBLA_VOCABULARY_TRAIN_PIECES_H
#define EMBLA_VOCABULARY_TRAIN_PIECES_H

#include "corpus/corpus.h"
#include "tokenizer/tokenizer.h"

/* Counts the pieces of a text. t has only stages. The counts do not depend on the number of
 * threads, but the order of the list does. The words of the list point into the text or are copies.
 */
EMBLA_CHECKED embla_status embla_pieces_count(const embla_tokenizer *t, const char *text,
                                              size_t length,
                                              const embla_tokenizer_train_options *options,
                                              embla_word_list **out);

/* What is learned: the strings of the tokens in their order, and the merges. */
typedef struct {
    embla_arena arena;
    embla_name *tokens; /* number is the token */
    size_t count, room;
    uint32_t (*merges)[2]; /* pairs of tokens, by rank */
    size_t merge_count, merge_room;
    double *scores; /* of Unigram, by token */
    size_t score_room;
} embla_learned;

/* train_bpe.c: learns the merges of BPE. learned has the special tokens. prefix is put in front of
 * every character of a piece but the first ("##"); "" means none. bytes: characters are the bytes
 * of a piece, as byte-level tokenizers write them. */
EMBLA_CHECKED embla_status embla_bpe_learn(const embla_word_list *pieces, bool bytes,
                                           const char *prefix,
                                           const embla_tokenizer_train_options *options,
                                           embla_learned *learned);

/* train_seeds.c: the strings that a Unigram model starts from. */
enum { EMBLA_SEED_CHARS = 16, EMBLA_SEEDS_MOST = 1000000 };

typedef struct {
    const char *bytes;
    uint32_t length;
    double score; /* a count at first; a logarithm of a probability later */
} embla_seed;

typedef struct {
    embla_arena arena;
    embla_seed *items; /* the characters, then longer strings; the highest scores first */
    size_t count, room, characters;
} embla_seeds;

/* Finds the strings in pieces, whose order has no influence on the result. Strings of two and more
 * characters that occur less than options->min_count times are left out. */
EMBLA_CHECKED embla_status embla_seeds_make(const embla_counted_word *words, size_t count,
                                            const embla_tokenizer_train_options *options,
                                            embla_seeds *seeds);
void embla_seeds_free(embla_seeds *seeds);

/* train_unigram.c: learns the strings and the scores of Unigram. learned has the special tokens.
 * The list of pieces is sorted, and cannot be searched afterwards. */
EMBLA_CHECKED embla_status embla_unigram_learn(const embla_word_list *pieces,
                                               const embla_tokenizer_train_options *options,
                                               embla_learned *learned);

/* Appends a token. The bytes are copied. */
EMBLA_CHECKED embla_status embla_learned_add(embla_learned *learned, const char *bytes,
                                             size_t length);

#endif
