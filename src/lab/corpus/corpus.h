/* SPDX-License-Identifier: Apache-2.0 */
/* An open corpus: an array of tokens of 1, 2 or 4 bytes, little-endian, in memory or in a mapped
 * file. It does not change until it is freed, so several threads may use it.
 *
 * Documents are separated by BOS tokens, which they share: BOS e m m a BOS o l i v i a BOS.
 * Sequence i is tokens starts[i] to starts[i + 1], both included.
 */
#ifndef EMBLA_CORPUS_CORPUS_H
#define EMBLA_CORPUS_CORPUS_H

#include "base/arena.h"
#include "corpus/word_list.h"
#include "embla_train.h"
#include "files/map.h"
#include "files/names.h"

typedef struct {
    char text[5]; /* UTF-8 or one byte, padded with zeros */
    uint8_t length;
} embla_corpus_character;

struct embla_corpus {
    embla_corpus_options options;
    const uint8_t *at; /* the first token */
    uint64_t count;
    unsigned width;
    void *held; /* the memory of the tokens; NULL if they are in a map */
    size_t held_bytes;
    embla_map *map;
    const uint64_t *starts; /* starts of documents, and the end of the last; NULL for a stream */
    uint64_t documents;     /* 1 for a stream */
    uint64_t train;         /* documents, or tokens of a stream, that are for training */
    int64_t vocab;
    int32_t bos;                              /* -1 if there is none */
    const embla_corpus_character *characters; /* text of the tokens below character_count */
    const uint32_t *codes; /* code points of characters, sorted; NULL for bytes */
    size_t character_count;
    const embla_name *words; /* text of the tokens below word_count; NULL if tokens are no words */
    size_t word_count;
    embla_names index; /* the same words, to find a token */
    uint64_t unknown;  /* tokens that are word_count, the token of unknown words */
    embla_arena arena;
};

/* One file of a text. Its bytes begin at the end of the part before it and end at `end`. */
typedef struct {
    const char *name;
    size_t end;
} embla_corpus_part;

/* Lists the files of an open folder in the order of their names. Hidden ones are skipped. */
EMBLA_CHECKED embla_status embla_text_list(embla_folder folder, const char *path,
                                           embla_arena *arena, embla_names *out);

/* Reads a text file, or all files of a folder, and calls use with their bytes, which come from
 * embla_mem_new(size). use owns them, also if it fails. */
typedef embla_status embla_text_user(void *context, void *bytes, size_t size,
                                     const embla_corpus_part *parts, size_t count);
EMBLA_CHECKED embla_status embla_text_read(const char *path, embla_text_user *use, void *context);

/* Makes an empty corpus. */
EMBLA_CHECKED embla_status embla_corpus_new(const embla_corpus_options *options,
                                            embla_corpus **out);
/* Sets how many documents or tokens are for training; the rest is for validation. It rounds as
 * nanoGPT does: validation 0.1 of 1,115,394 characters leaves 1,003,854. name is for messages. */
EMBLA_CHECKED embla_status embla_corpus_split(embla_corpus *c, const char *name);

/* Makes a corpus of a text in memory. bytes is from embla_mem_new(room); the corpus owns it
 * afterwards, or it is freed, also on failure. */
EMBLA_CHECKED embla_status embla_corpus_of_text(void *bytes, size_t room,
                                                const embla_corpus_part *parts, size_t count,
                                                const embla_corpus_options *options,
                                                embla_corpus **out);
/* The same for a text that options->tokenizer cuts. */
EMBLA_CHECKED embla_status embla_corpus_of_tokenizer(void *bytes, size_t room,
                                                     const embla_corpus_part *parts, size_t count,
                                                     const embla_corpus_options *options,
                                                     embla_corpus **out);
/* Makes a corpus of a file of tokens. The corpus owns the map afterwards, or it is freed. */
EMBLA_CHECKED embla_status embla_corpus_of_map(embla_map *map, const embla_corpus_options *options,
                                               embla_corpus **out);

/* ---- words: corpus_words.c ---- */

enum {
    EMBLA_CORPUS_WORD_BYTES = 255,    /* a longer word is unknown */
    EMBLA_CORPUS_WORDS_MOST = 1 << 22 /* as many as a vocabulary has at most (C5) */
};

/* Counts the words of a piece of valid UTF-8. Adds their number to *count. */
EMBLA_CHECKED embla_status embla_word_list_count(embla_word_list *list, const char *text,
                                                 size_t length, uint64_t *count);
/* Numbers the most frequent words, and makes them the words of the corpus. name is for messages. */
EMBLA_CHECKED embla_status embla_word_list_number(embla_word_list *list, const char *name,
                                                  embla_corpus *c);
/* The token of a word that was counted; `unknown` if it was too long. */
uint32_t embla_word_list_token(const embla_word_list *list, const char *word, size_t length,
                               uint32_t unknown);

/* Element i of the permutation of 0 .. n-1 that (seed, epoch) determines. */
uint64_t embla_corpus_order(uint64_t seed, uint64_t epoch, uint64_t n, uint64_t i);

#endif
