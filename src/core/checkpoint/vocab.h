/* SPDX-License-Identifier: Apache-2.0 */
/* The struct behind embla_vocab: the words of a table's rows.
 *
 * All words are in one arena, with a list sorted by token and an index sorted by bytes. The list
 * has an entry for each word, not for each possible token: a word of token 2^31-1 takes no more
 * memory than any other (C5). Readers add words in any order; finish() in vocab.c then sorts and
 * checks them.
 */
#ifndef EMBLA_CHECKPOINT_VOCAB_H
#define EMBLA_CHECKPOINT_VOCAB_H

#include "base/arena.h"
#include "base/status.h"
#include "files/durable.h"
#include "files/map.h"
#include "files/names.h"
#include "formats/format.h"

enum {
    EMBLA_WORDS_MOST = 1 << 22, /* words of a vocabulary (C5) */
    EMBLA_WORD_BYTES = 1 << 20  /* bytes of one word (T1) */
};

struct embla_vocab {
    embla_arena arena;
    const char *source;
    embla_name *words; /* sorted by token (number), each token once */
    size_t count, room;
    int64_t end; /* the highest token with a word, plus 1 */
    embla_names index;
};

/* How the format of a vocabulary file is detected. */
typedef enum {
    EMBLA_VOCAB_MARKED, /* by its first bytes; EMBLA_ERR_FORMAT if they are not recognised */
    EMBLA_VOCAB_LINES,  /* not at all: it is text with one word on each line */
    EMBLA_VOCAB_ANY     /* by its first bytes; if they are not recognised it is lines of text */
} embla_vocab_hint;

/* Reads a vocabulary file. source, which is copied, is what embla_vocab_source returns. */
EMBLA_CHECKED embla_status embla_vocab_read(embla_map *map, const char *source,
                                            embla_vocab_hint hint, embla_vocab **out);
/* LINES for a name that ends with ".txt", ANY for all others. */
embla_vocab_hint embla_vocab_hint_of(const char *name);
/* Makes a vocabulary in which names[i] is the word of token i; bytes NULL means no word. The words
 * are copied. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_vocab_of_names(const embla_name *names, size_t count,
                                                              const char *source,
                                                              embla_vocab **out);
/* Makes a vocabulary of the key tokenizer.ggml.tokens of a GGUF file. */
EMBLA_CHECKED embla_status embla_vocab_of_gguf(const embla_map *map,
                                               const embla_directory *directory, const char *source,
                                               embla_vocab **out);
/* True if every token of the vocabulary has a row in a table with `rows` rows (T2). */
EMBLA_PRIVATE bool embla_vocab_fits(const embla_vocab *vocab, int64_t rows);
/* Writes the text that EMBLA_VOCAB_LINES reads back: "#embla-vocab 1", then one line for each
 * label, in the order of rows. What a line cannot contain is escaped: \n \r \\ \xHH. The line "\-"
 * is a row without a word (bytes NULL). */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_vocab_write(embla_durable *out,
                                                           const embla_name *labels, size_t count);
/* The same to any destination: write is called with a few bytes at a time. */
typedef embla_status embla_vocab_sink(void *context, const void *bytes, size_t count);
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_vocab_write_to(embla_vocab_sink *write,
                                                              void *context,
                                                              const embla_name *labels,
                                                              size_t count);

/* ---- beside a file whose format has no words (vocab_beside.c) ---- */

/* Makes "DIR/NAME.vocab.txt" of "DIR/NAME.ext", where embla_vocab_open looks for it. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_vocab_beside(const char *path, embla_arena *arena,
                                                            const char **out);
/* Checks that words can be written to such a file: nothing is there, or a file of embla_vocab_write
 * (*there). EMBLA_ERR_ARGUMENT for any other file, which is never replaced. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_vocab_beside_check(const char *beside, bool *there);
/* Checks that no other file than path has its words there: x.npy and x.safetensors share
 * x.vocab.txt. EMBLA_ERR_ARGUMENT otherwise. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_vocab_beside_alone(const char *beside,
                                                                  const char *path);

/* ---- for the readers ---- */

/* Adds a word; the bytes are copied. */
EMBLA_CHECKED embla_status embla_vocab_add(embla_vocab *vocab, uint64_t token, const void *bytes,
                                           size_t length);
/* Adds a word of length bytes, which the caller then writes to *room. */
EMBLA_CHECKED embla_status embla_vocab_room(embla_vocab *vocab, uint64_t token, size_t length,
                                            char **room);

/* vocab_json.c: tokenizer.json, vocab.json. */
bool embla_vocab_json_sniff(const uint8_t *head, size_t have);
EMBLA_CHECKED embla_status embla_vocab_json(embla_map *map, embla_vocab *vocab);
/* vocab_text.c: one word on each line. */
EMBLA_CHECKED embla_status embla_vocab_text(embla_map *map, embla_vocab *vocab);
bool embla_vocab_text_sniff(const uint8_t *head, size_t have); /* only "#embla-vocab 1" */
/* vocab_bin.c: the tokenizers of llama2.c and llm.c, and SentencePiece's models. */
bool embla_vocab_llama2c_sniff(const uint8_t *head, size_t have);
EMBLA_CHECKED embla_status embla_vocab_llama2c(embla_map *map, embla_vocab *vocab);
bool embla_vocab_llmc_sniff(const uint8_t *head, size_t have);
EMBLA_CHECKED embla_status embla_vocab_llmc(embla_map *map, embla_vocab *vocab);
EMBLA_CHECKED embla_status embla_vocab_sentencepiece(embla_map *map, embla_vocab *vocab);

#endif
