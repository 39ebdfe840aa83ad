/* SPDX-License-Identifier: Apache-2.0 */
/* A compiled tokenizer: a file with the tables of a tokenizer.json, which is mapped and used in
 * place.
 *
 *   1. embla_compiled_header
 *   2. EMBLA_SECTIONS of embla_compiled_section: where each table is
 *   3. a checksum (u64) for each block of EMBLA_COMPILED_BLOCK bytes of what follows
 *   4. the tables, each at a multiple of 64
 *
 * Numbers have the byte order of the machine that wrote the file; another one refuses it. Stages
 * (normalizers, pre-tokenizers, ..) are small and are stored as JSON, which is parsed as always.
 * What decides where encode reads or writes (nodes of tries, tokens of merges, the order of
 * strings) is checked when the file is opened, strings and where they are when they are used.
 */
#ifndef EMBLA_TOKENIZER_COMPILED_H
#define EMBLA_TOKENIZER_COMPILED_H

#include "tokenizer/tokenizer.h"

#define EMBLA_COMPILED_MAGIC "EMBLATOK"
#define EMBLA_COMPILED_ORDER UINT32_C(0x01020304)
enum { EMBLA_COMPILED_VERSION = 1, EMBLA_COMPILED_BLOCK = 1 << 18, EMBLA_COMPILED_ALIGN = 64 };

typedef struct {
    char magic[8];
    uint32_t version, order;
    uint64_t checksum;                        /* of all bytes before the tables, with 0 here */
    uint64_t size;                            /* of the file */
    uint64_t source_size, source_checksum[2]; /* of the tokenizer.json */
    uint64_t tables;                          /* where the tables begin */
} embla_compiled_header;

typedef struct {
    uint64_t at, count; /* where it begins, and its items */
} embla_compiled_section;

typedef enum {
    EMBLA_SECTION_FIELDS,  /* one embla_compiled_fields */
    EMBLA_SECTION_STAGES,  /* JSON */
    EMBLA_SECTION_WORDS,   /* prefix, suffix and the unknown token's string, one after the other */
    EMBLA_SECTION_POOL,    /* the strings of the vocabulary, each with a 0 after it */
    EMBLA_SECTION_PLACES,  /* embla_vocab_place: by string of the vocabulary */
    EMBLA_SECTION_SORTED,  /* u32: `sorted` of the tokenizer; may be empty */
    EMBLA_SECTION_TOKENS,  /* u32: `by_token` of the tokenizer */
    EMBLA_SECTION_SPECIAL, /* u8, by token */
    EMBLA_SECTION_CELLS,
    EMBLA_SECTION_VALUES, /* of the vocabulary's trie */
    EMBLA_SECTION_MERGES,
    EMBLA_SECTION_SCORES,     /* of Unigram */
    EMBLA_SECTION_ADDED,      /* embla_compiled_added */
    EMBLA_SECTION_ADDED_TEXT, /* content and matched string of each, each with a 0 after it */
    EMBLA_SECTION_RAW_CELLS,
    EMBLA_SECTION_RAW_VALUES, /* of the matcher of added tokens */
    EMBLA_SECTION_NORMAL_CELLS,
    EMBLA_SECTION_NORMAL_VALUES, /* of the matcher in normalized text */
    EMBLA_SECTIONS
} embla_section_kind;

/* Bytes of an item of a section. */
size_t embla_section_item(embla_section_kind kind);

/* Bits of `flags`. */
enum {
    EMBLA_COMPILED_HAS_UNKNOWN = 1,
    EMBLA_COMPILED_FUSE = 2,
    EMBLA_COMPILED_BYTE_FALLBACK = 4,
    EMBLA_COMPILED_IGNORE_MERGES = 8,
    EMBLA_COMPILED_CUTS_AT_MARKS = 16,
    EMBLA_COMPILED_BYTE_LEVEL = 32,
    EMBLA_COMPILED_HAS_INNER = 64,
    EMBLA_COMPILED_UNKNOWN_TEXT = 128 /* the unknown token has a string */
};

typedef struct {
    uint32_t kind, flags;
    int32_t unknown;
    uint32_t inner;
    uint64_t most_chars, merge_count, merge_seed;
    double unknown_score;
    uint64_t prefix, suffix, unknown_text; /* their lengths */
    int32_t byte_tokens[256], symbols[4][256];
} embla_compiled_fields;

/* An added token. Those that were dropped are not in the file. */
typedef struct {
    uint32_t number;
    uint32_t content, matched; /* lengths */
    uint32_t flags;            /* 1 single_word, 2 left, 4 right, 8 normalized, 16 special */
} embla_compiled_added;

/* Whether bytes are those of a compiled tokenizer. */
bool embla_compiled_sniff(const uint8_t *bytes, size_t count);
/* Fills in a tokenizer from a compiled file. It holds the map. */
EMBLA_CHECKED embla_status embla_compiled_open(embla_tokenizer *t, struct embla_map *map);
/* compiled_save.c: writes t, which was read from `source`, with stages as JSON. */
EMBLA_CHECKED embla_status embla_compiled_write(const embla_tokenizer *t, const void *source,
                                                size_t source_bytes, const char *stages,
                                                size_t stage_bytes, const char *path);

#endif
