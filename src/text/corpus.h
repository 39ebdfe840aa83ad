/* SPDX-License-Identifier: Apache-2.0 */
/* A corpus, once it is open: tokens side by side, 1, 2 or 4 bytes each, little-endian, in memory
 * or in a file that is mapped. Nothing in it changes until it is freed, so any thread may ask.
 *
 * Documents lie between BOS tokens, which they share: BOS e m m a BOS o l i v i a BOS. Sequence i
 * is tokens starts[i] to starts[i + 1], both included.
 */
#ifndef EMBLA_TEXT_CORPUS_H
#define EMBLA_TEXT_CORPUS_H

#include "base/arena.h"
#include "embla_text.h"
#include "files/map.h"

typedef struct {
    char text[5]; /* UTF-8 or one byte, and zeros */
    uint8_t length;
} embla_corpus_letter;

struct embla_corpus {
    embla_corpus_options options;
    const uint8_t *at; /* the first token */
    uint64_t count;
    unsigned width;
    void *held; /* what at points to; NULL: a map */
    size_t held_bytes;
    embla_map *map;
    const uint64_t *starts; /* of documents, and where the last one ends; NULL: a stream */
    uint64_t documents;     /* 1: a stream */
    uint64_t train;         /* documents, or tokens of a stream, that are not for validation */
    int64_t vocab;
    int32_t bos;                        /* -1: none */
    const embla_corpus_letter *letters; /* of the tokens below letter_count */
    const uint32_t *codes;              /* of characters: rising; NULL: bytes */
    size_t letter_count;
    embla_arena arena;
};

/* One file of a text: its bytes are those up to end that no part before it has. */
typedef struct {
    const char *name;
    size_t end;
} embla_corpus_part;

/* A corpus that is still empty. */
EMBLA_CHECKED embla_status embla_corpus_new(const embla_corpus_options *options,
                                            embla_corpus **out);
/* How many documents or tokens are trained on: the rest is for validation. Rounded as nanoGPT does:
 * 0.1 of 1,115,394 characters leaves 1,003,854. name is for messages. */
EMBLA_CHECKED embla_status embla_corpus_split(embla_corpus *c, const char *name);
/* Refuses what begins as a packer's file does: it is not the text that is meant. */
EMBLA_CHECKED embla_status embla_corpus_check_packed(const char *name, const uint8_t *p,
                                                     size_t length);

/* A corpus of bytes that were read, which go to the corpus, or are freed, in any case: bytes is
 * from embla_mem_new(room). */
EMBLA_CHECKED embla_status embla_corpus_of_text(void *bytes, size_t room,
                                                const embla_corpus_part *parts, size_t count,
                                                const embla_corpus_options *options,
                                                embla_corpus **out);
/* One of a file of tokens, which goes to the corpus, or is freed. */
EMBLA_CHECKED embla_status embla_corpus_of_map(embla_map *map, const embla_corpus_options *options,
                                               embla_corpus **out);

/* The code of a character of length bytes, which is one. */
static inline uint32_t embla_corpus_code(const uint8_t *p, size_t length)
{
    uint32_t code = length == 1 ? p[0] : p[0] & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) code = code << 6 | (p[i] & 0x3fu);
    return code;
}

/* Number i of n in the order that (seed, epoch) gives: each of 0 .. n-1 for one i below n. */
uint64_t embla_corpus_order(uint64_t seed, uint64_t epoch, uint64_t n, uint64_t i);

#endif
