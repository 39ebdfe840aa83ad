/* SPDX-License-Identifier: Apache-2.0 */
/* GGUF versions 2 and 3: the values of a file's keys, queried by key and type (G5).
 *
 *   magic "GGUF", version u32, tensors u64, keys u64
 *   keys:    name, type u32, value; an array is its type u32, its count u64, its elements
 *   tensors: name, dimensions u32, each u64 (fastest first), type u32, offset u64
 *   zeros up to the alignment, then the tensors, each on the alignment
 *
 * A string is its length (u64) and its bytes. Values stay in the file: the directory has their
 * offsets, and every getter reads them with a cursor. A getter accepts only the type that the
 * caller expects.
 */
#ifndef EMBLA_FORMATS_GGUF_H
#define EMBLA_FORMATS_GGUF_H

#include "formats/format.h"

/* Types of values, with the numbers that the format uses. */
typedef enum {
    EMBLA_GGUF_U8 = 0,
    EMBLA_GGUF_I8 = 1,
    EMBLA_GGUF_U16 = 2,
    EMBLA_GGUF_I16 = 3,
    EMBLA_GGUF_U32 = 4,
    EMBLA_GGUF_I32 = 5,
    EMBLA_GGUF_F32 = 6,
    EMBLA_GGUF_BOOL = 7,
    EMBLA_GGUF_STRING = 8,
    EMBLA_GGUF_ARRAY = 9,
    EMBLA_GGUF_U64 = 10,
    EMBLA_GGUF_I64 = 11,
    EMBLA_GGUF_F64 = 12
} embla_gguf_type;

enum {
    EMBLA_GGUF_TYPES = 13,
    EMBLA_GGUF_KEY_MOST = 65535,     /* bytes of a key */
    EMBLA_GGUF_NAME_MOST = 63,       /* bytes of a tensor's name */
    EMBLA_GGUF_RANK_MOST = 4,        /* dimensions */
    EMBLA_GGUF_COUNT_MOST = 1000000, /* tensors, and keys */
    EMBLA_GGUF_TEXT_MOST = 64 << 20, /* bytes of a string */
    EMBLA_GGUF_ARRAY_MOST = 1 << 28, /* elements */
    EMBLA_GGUF_READ_MOST = 1 << 24,  /* strings and bools in all arrays of a file together */
    EMBLA_GGUF_ALIGNMENT = 32,       /* the default, without general.alignment */
    EMBLA_GGUF_ALIGNMENT_MOST = 65536,
    EMBLA_GGUF_SPLITS_MOST = 1000 /* files of one model */
};
#define EMBLA_GGUF_DIM_MOST (UINT64_C(1) << 40)

typedef struct {
    const char *key; /* ASCII without a 0, and a 0 after it */
    embla_gguf_type type;
    embla_gguf_type element; /* type of an array's elements; otherwise the same as type */
    uint64_t count;          /* elements of an array; otherwise 1 */
    uint64_t value;          /* offset of the number, the string's length, or the first element */
    uint64_t first, end;     /* offsets of the whole record, including its name */
} embla_gguf_key;

/* directory->state of a GGUF file. */
typedef struct {
    uint32_t version, alignment;
    uint64_t data;        /* offset of the first tensor in the file */
    embla_gguf_key *keys; /* in the order of the file */
    size_t count, room;
    embla_names index; /* number is the index in keys */
} embla_gguf;

/* The reader of the format. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_gguf_read(embla_map *map,
                                                         const embla_open_options *options,
                                                         embla_directory *out);
/* NULL if the directory has another format. */
const embla_gguf *embla_gguf_of(const embla_directory *directory);
/* The name of a type: "u32", "string"; "?" if there is no such type. */
const char *embla_gguf_type_name(uint32_t type);
/* Bytes of a value of this type; 0 for strings and arrays, which have no fixed size. */
uint64_t embla_gguf_type_bytes(uint32_t type);

/* ---- getters: EMBLA_ERR_NOT_FOUND if there is no such key, EMBLA_ERR_FORMAT if its type is
 * another ---- */

/* Finds a key; NULL if there is none. */
EMBLA_PRIVATE const embla_gguf_key *embla_gguf_find(const embla_directory *directory,
                                                    const char *key);
EMBLA_PRIVATE bool embla_gguf_has(const embla_directory *directory, const char *key);
/* The value of any integer type, or of a bool. EMBLA_ERR_FORMAT also if it does not fit int64_t. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_gguf_number(const embla_directory *directory,
                                                           const embla_map *map, const char *key,
                                                           int64_t *out);
/* The value of an f32 or f64. */
EMBLA_CHECKED embla_status embla_gguf_real(const embla_directory *directory, const embla_map *map,
                                           const char *key, double *out);
/* Finds an array with elements of exactly this type; they begin at (*out)->value. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_gguf_array(const embla_directory *directory,
                                                          const embla_map *map, const char *key,
                                                          embla_gguf_type element,
                                                          const embla_gguf_key **out);
/* Copies an array of strings to the arena; number is the index in the array. A 0 follows each. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_gguf_strings(const embla_directory *directory,
                                                            const embla_map *map, const char *key,
                                                            embla_arena *arena, embla_name **out,
                                                            size_t *count);

/* ---- the vocabulary ---- */

/* The number of tokens: the count of tokenizer.ggml.tokens, 0 without that key. To be compared
 * with the rows of token_embd.weight (G5). */
uint64_t embla_gguf_tokens(const embla_directory *directory);
/* Checks that tokenizer.ggml.tokens, .scores and .token_type have the right types and equal
 * lengths (G5), and that a token of type BYTE is "<0xHH>" (G12). A file without tokens is
 * accepted. The reader calls this before it succeeds. */
EMBLA_CHECKED embla_status embla_gguf_vocab_check(const embla_directory *directory,
                                                  const embla_map *map);

/* ---- models of several files (G13) ---- */

/* Which file of a split model this is: *number, from 0, of *count files that have *tensors tensors
 * together. A file that is not split is number 0 of 1. */
EMBLA_CHECKED embla_status embla_gguf_split(const embla_directory *directory, const embla_map *map,
                                            unsigned *number, unsigned *count, uint64_t *tensors);
/* Makes the name of file `number`, from 0, from the name of any file of the same model:
 * "X-00001-of-00005.gguf". EMBLA_ERR_FORMAT if the name has another form or another count. */
EMBLA_CHECKED embla_status embla_gguf_split_name(const char *name, unsigned number, unsigned count,
                                                 char out[256]);

/* ---- writing ---- */

/* Makes all bytes before the first tensor, including the padding: *length bytes in the arena. Each
 * tensor follows, with zeros up to the alignment; *size is that of the whole file. */
EMBLA_CHECKED embla_status embla_gguf_header(const embla_contents *contents, embla_arena *arena,
                                             uint8_t **bytes, size_t *length, uint64_t *size);
/* The alignment of the tensors of such a file. */
uint32_t embla_gguf_alignment(const embla_contents *contents);
embla_status embla_gguf_write(embla_durable *out, const embla_contents *contents);
/* embla_format.keeps of the writer. */
bool embla_gguf_keeps(const embla_pair *pair, size_t count, size_t bytes);

#endif
