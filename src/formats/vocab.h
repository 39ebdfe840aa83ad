/* SPDX-License-Identifier: Apache-2.0 */
/* The words that rows stand for, behind the public handle.
 *
 * Words lie in one arena; a list by token, and an index by bytes. The list has one entry
 * for each word that is there, not for each token that could be: a file that gives token
 * 2^31-1 a word takes no more memory for it than for another (C5). Readers add words in any
 * order; embla_vocab_finish sorts, checks, and only then is it a vocabulary.
 */
#ifndef EMBLA_FORMATS_VOCAB_H
#define EMBLA_FORMATS_VOCAB_H

#include "base/arena.h"
#include "base/status.h"
#include "files/durable.h"
#include "files/map.h"
#include "files/names.h"
#include "formats/format.h"

enum {
    EMBLA_WORDS_MOST = 1 << 22, /* words that a file may give; a limit of ours (C5) */
    EMBLA_WORD_BYTES = 1 << 20  /* bytes of one (T1) */
};

struct embla_vocab {
    embla_arena arena;
    const char *source;
    embla_name *words; /* by token (number), each token once */
    size_t count, room;
    int64_t end;
    embla_names index;
};

/* How much a reader may guess. */
typedef enum {
    EMBLA_VOCAB_MARKED, /* only what can be told by its bytes; else EMBLA_ERR_FORMAT */
    EMBLA_VOCAB_LINES,  /* it is text, a word on each line, whatever it begins with */
    EMBLA_VOCAB_ANY     /* told by its bytes, and if they say nothing then lines */
} embla_vocab_hint;

/* Reads a file. source is what embla_vocab_source will say; it is copied. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_vocab_read(embla_map *map, const char *source,
                                                          embla_vocab_hint hint, embla_vocab **out);
/* What a file's name says: LINES for one that ends in ".txt", else ANY. */
EMBLA_PRIVATE embla_vocab_hint embla_vocab_hint_of(const char *name);
/* names[i] is the word of token i, bytes NULL: it has none. All is copied. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_vocab_of_names(const embla_name *names, size_t count,
                                                              const char *source,
                                                              embla_vocab **out);
/* tokenizer.ggml.tokens of a GGUF file that has it. */
EMBLA_CHECKED embla_status embla_vocab_of_gguf(const embla_map *map,
                                               const embla_directory *directory, const char *source,
                                               embla_vocab **out);
/* Every token has a row in a table of so many (T2). */
EMBLA_PRIVATE bool embla_vocab_fits(const embla_vocab *vocab, int64_t rows);
/* Writes the text that EMBLA_VOCAB_LINES reads back: "#embla-vocab 1", then a line for each
 * label, the i-th of row i. A backslash stands before what a line cannot hold: \n \r \\ \xHH;
 * a line of "\-" alone is a row that has no word (bytes NULL). */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_vocab_write(embla_durable *out,
                                                           const embla_name *labels, size_t count);
/* The same to anywhere: write is called with a few bytes at a time. */
typedef embla_status embla_vocab_sink(void *context, const void *bytes, size_t count);
EMBLA_CHECKED embla_status embla_vocab_write_to(embla_vocab_sink *write, void *context,
                                                const embla_name *labels, size_t count);

/* ---- for the readers ---- */

/* A word more; the bytes are copied. */
EMBLA_CHECKED embla_status embla_vocab_add(embla_vocab *vocab, uint64_t token, const void *bytes,
                                           size_t length);
/* The same of length bytes that the caller then writes to *room. */
EMBLA_CHECKED embla_status embla_vocab_room(embla_vocab *vocab, uint64_t token, size_t length,
                                            char **room);

/* vocab_json.c: tokenizer.json, vocab.json. */
bool embla_vocab_json_sniff(const uint8_t *head, size_t have);
EMBLA_CHECKED embla_status embla_vocab_json(embla_map *map, embla_vocab *vocab);
/* vocab_text.c: a word on each line. */
EMBLA_CHECKED embla_status embla_vocab_text(embla_map *map, embla_vocab *vocab);
bool embla_vocab_text_sniff(const uint8_t *head, size_t have); /* only our own first line */
/* vocab_bin.c: the tokenizers of llama2.c and llm.c, and SentencePiece's models. */
bool embla_vocab_llama2c_sniff(const uint8_t *head, size_t have);
EMBLA_CHECKED embla_status embla_vocab_llama2c(embla_map *map, embla_vocab *vocab);
bool embla_vocab_llmc_sniff(const uint8_t *head, size_t have);
EMBLA_CHECKED embla_status embla_vocab_llmc(embla_map *map, embla_vocab *vocab);
bool embla_vocab_sentencepiece_sniff(const uint8_t *head, size_t have);
EMBLA_CHECKED embla_status embla_vocab_sentencepiece(embla_map *map, embla_vocab *vocab);

#endif
