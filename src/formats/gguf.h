/* SPDX-License-Identifier: Apache-2.0 */
/* GGUF v2 and v3: what a file holds besides tensors, asked for by key and by type (G5).
 *
 *   magic "GGUF", version u32, tensors u64, keys u64
 *   keys:    name, type u32, value; an array is its type u32, its count u64, its elements
 *   tensors: name, dimensions u32, each u64 (fastest first), type u32, offset u64
 *   zeros up to the alignment, then the tensors, each on the alignment
 *
 * A string is its length (u64) and its bytes. Values stay in the file: the directory keeps
 * where they are, and every getter reads them through a cursor. No getter trusts a type
 * that the caller did not name.
 */
#ifndef EMBLA_FORMATS_GGUF_H
#define EMBLA_FORMATS_GGUF_H

#include "formats/format.h"

/* The numbers that the format uses. */
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
    EMBLA_GGUF_ALIGNMENT = 32,       /* where the file does not say */
    EMBLA_GGUF_ALIGNMENT_MOST = 65536,
    EMBLA_GGUF_SPLITS_MOST = 1000 /* files of one model */
};
#define EMBLA_GGUF_DIM_MOST (UINT64_C(1) << 40)

typedef struct {
    const char *key; /* ASCII, no 0 in it, one after it */
    embla_gguf_type type;
    embla_gguf_type element; /* of an array; of any other the same as type */
    uint64_t count;          /* elements of an array; 1 of any other */
    uint64_t value;          /* offset in the file: of a number, of a string's length, of the first
                                element */
    uint64_t first, end;     /* offsets of the whole record, name included */
} embla_gguf_key;

/* What directory->state is. */
typedef struct {
    uint32_t version, alignment;
    uint64_t data;        /* offset in the file of the first tensor */
    embla_gguf_key *keys; /* in the order of the file */
    size_t count, room;
    embla_names index; /* number = place in keys */
} embla_gguf;

/* NULL where the directory is of another format. */
const embla_gguf *embla_gguf_of(const embla_directory *directory);
/* "u32", "string"; "?" for a number that is no type. */
const char *embla_gguf_type_name(uint32_t type);
/* Bytes of a value of a type; 0 for strings and arrays, which have no fixed size. */
uint64_t embla_gguf_type_bytes(uint32_t type);

/* ---- getters: EMBLA_ERR_NOT_FOUND without such a key, EMBLA_ERR_FORMAT for another type ---- */

/* NULL if there is none. */
EMBLA_PRIVATE const embla_gguf_key *embla_gguf_find(const embla_directory *directory,
                                                    const char *key);
bool embla_gguf_has(const embla_directory *directory, const char *key);
/* Any integer type, or bool. EMBLA_ERR_FORMAT also where it does not fit. */
EMBLA_CHECKED embla_status embla_gguf_number(const embla_directory *directory, const embla_map *map,
                                             const char *key, int64_t *out);
/* f32 or f64. */
EMBLA_CHECKED embla_status embla_gguf_real(const embla_directory *directory, const embla_map *map,
                                           const char *key, double *out);
/* An array of elements of this very type, to be read from (*out)->value on. */
EMBLA_CHECKED embla_status embla_gguf_array(const embla_directory *directory, const embla_map *map,
                                            const char *key, embla_gguf_type element,
                                            const embla_gguf_key **out);
/* An array of strings, copied to the arena; number = place in the array. A 0 follows each. */
EMBLA_CHECKED embla_status embla_gguf_strings(const embla_directory *directory,
                                              const embla_map *map, const char *key,
                                              embla_arena *arena, embla_name **out, size_t *count);

/* ---- the vocabulary ---- */

/* Tokens the file has: the count of tokenizer.ggml.tokens, 0 without. To be compared with
 * the rows of token_embd.weight (G5). */
uint64_t embla_gguf_tokens(const embla_directory *directory);
/* tokenizer.ggml.tokens, .scores and .token_type are of their types and equally long (G5),
 * and a token of type BYTE is "<0xHH>" (G12). A file without tokens is fine. The reader has
 * called this before it says yes. */
EMBLA_CHECKED embla_status embla_gguf_vocab_check(const embla_directory *directory,
                                                  const embla_map *map);
/* The byte that "<0xHH>" stands for; false for any other text. */
bool embla_gguf_byte(const char *text, size_t length, uint8_t *out);

/* ---- models of several files (G13) ---- */

/* This file is the number-th (from 0) of count, which hold so many tensors together. A file
 * that is not split is number 0 of 1. */
EMBLA_CHECKED embla_status embla_gguf_split(const embla_directory *directory, const embla_map *map,
                                            unsigned *number, unsigned *count, uint64_t *tensors);
/* The name of the number-th file (from 0), in the same folder, made from the name of any of
 * them: "X-00001-of-00005.gguf". EMBLA_ERR_FORMAT for a name that is not of this kind, or is
 * of another count. */
EMBLA_CHECKED embla_status embla_gguf_split_name(const char *name, unsigned number, unsigned count,
                                                 char out[256]);

/* ---- writing ---- */

/* All of a file that comes before its first tensor, padding included, in the arena: *length
 * bytes. Each tensor then follows, with zeros up to the alignment; *size is of the whole. */
EMBLA_CHECKED embla_status embla_gguf_header(const embla_contents *contents, embla_arena *arena,
                                             uint8_t **bytes, size_t *length, uint64_t *size);
/* What tensors of such a file are aligned to. */
uint32_t embla_gguf_alignment(const embla_contents *contents);
embla_status embla_gguf_write(embla_durable *out, const embla_contents *contents);

#endif
