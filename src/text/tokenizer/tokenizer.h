/* SPDX-License-Identifier: Apache-2.0 */
/* The struct behind embla_tokenizer, in the order in which a text goes through it:
 *
 *   cut at added tokens -> normalizers -> cut at normalized added tokens -> pre-tokenizers
 *   -> model -> truncation -> post-processor -> padding
 *
 * tokenizer_open.c reads it from a file; stages_open.c, tokenizer_model.c and ends_open.c read its
 * parts; compiled.c finds its tables in a compiled file. encode.c runs it. It never changes after
 * it was opened, so threads share it.
 */
#ifndef EMBLA_TOKENIZER_TOKENIZER_H
#define EMBLA_TOKENIZER_TOKENIZER_H

#include "base/arena.h"
#include "files/json.h"
#include "tokenizer/pattern.h"
#include "tokenizer/trie.h"

/* ---- normalizers ---- */

typedef enum {
    EMBLA_NORMAL_CLEAN, /* BertNormalizer's clean_text */
    EMBLA_NORMAL_HAN,   /* its handle_chinese_chars */
    EMBLA_NORMAL_DROP,  /* removes the characters of a mask */
    EMBLA_NORMAL_LOWER,
    EMBLA_NORMAL_NFC,
    EMBLA_NORMAL_NFD,
    EMBLA_NORMAL_NFKC,
    EMBLA_NORMAL_NFKD,
    EMBLA_NORMAL_NMT,
    EMBLA_NORMAL_STRIP,
    EMBLA_NORMAL_PREPEND,
    EMBLA_NORMAL_REPLACE,
    EMBLA_NORMAL_EACH,  /* several REPLACE, each of one ASCII character, in one pass */
    EMBLA_NORMAL_BYTES, /* ByteLevel as a normalizer */
    EMBLA_NORMAL_CHARSMAP,
    EMBLA_NORMAL_SENTENCEPIECE /* SentencePiece's own way: map, spaces and marks in one pass */
} embla_normal_kind;

/* SentencePiece's map of characters: a double array of its own kind, and a pool of strings. */
typedef struct {
    const uint32_t *units;
    size_t count;
    const char *pool;
    size_t pool_bytes;
    bool plain[128]; /* ASCII characters that it leaves alone, and that begin no cluster */
} embla_charsmap;

typedef struct {
    embla_normal_kind kind;
    uint32_t mask;      /* DROP */
    bool left, right;   /* STRIP; SENTENCEPIECE: a mark in front, extra spaces removed */
    bool acts[128];     /* whether the stage does anything to an ASCII character */
    embla_name content; /* PREPEND, REPLACE */
    embla_name *each;   /* EACH: by ASCII character */
    embla_pattern pattern;
    embla_charsmap map;
} embla_normal;

/* ---- pre-tokenizers ---- */

typedef enum {
    EMBLA_PRE_SPLIT,
    EMBLA_PRE_BERT, /* white space removed, punctuation isolated */
    EMBLA_PRE_FIXED,
    EMBLA_PRE_SCRIPTS,
    EMBLA_PRE_BYTES, /* ByteLevel; later stages see mapped bytes */
    EMBLA_PRE_METASPACE
} embla_pre_kind;

typedef enum {
    EMBLA_SPLIT_REMOVED,
    EMBLA_SPLIT_ISOLATED,
    EMBLA_SPLIT_PREVIOUS, /* merged with what is before */
    EMBLA_SPLIT_NEXT,
    EMBLA_SPLIT_CONTIGUOUS
} embla_split_behavior;

typedef enum { EMBLA_PREPEND_NEVER, EMBLA_PREPEND_FIRST, EMBLA_PREPEND_ALWAYS } embla_prepend;

typedef struct {
    embla_pre_kind kind;
    embla_split_behavior behavior;
    bool invert;
    embla_pattern pattern;
    size_t length;                /* FIXED */
    bool prefix_space, use_regex; /* BYTES */
    embla_prepend prepend;        /* METASPACE */
    bool split;
    embla_name replacement;
} embla_pre;

/* ---- added tokens ---- */

typedef struct {
    embla_name content; /* number is the token */
    embla_name matched; /* what is looked for in the text: the content, or its normalized form */
    bool single_word, left, right, normalized, special;
} embla_added;

typedef struct {
    embla_trie trie; /* the value is an index into `added` */
    size_t count;    /* 0: nothing to look for */
    bool first[256]; /* bytes that a token begins with */
    int only;        /* the one such byte; -1 if there are several */
} embla_matcher;

/* ---- models ---- */

typedef struct {
    uint64_t pair; /* left << 32 | right; UINT64_MAX is a free slot */
    uint32_t rank, merged;
} embla_pair_merge;

typedef struct {
    embla_pair_merge *slots;
    size_t homes; /* slots that a search may begin at; EMBLA_MERGE_PROBES more follow them */
    uint64_t seed;
    size_t count;
} embla_merges;

typedef struct {
    embla_name prefix, suffix; /* of all but the first symbol of a word, and of the last */
    bool has_unknown; /* unk_token is set; its token is `unknown`, -1 if not in the vocab */
    bool fuse, byte_fallback, ignore_merges;
    int32_t byte_tokens[256]; /* "<0xNN>", -1 if there is none */
    int32_t symbols[4][256];  /* byte level: the token of each byte; 1: not first, 2: last */
    embla_merges merges;
    bool cuts_at_marks;    /* no merge joins "▁" to something else before it */
    const uint32_t *ranks; /* by string of the vocabulary: any two tokens that make this string
                              merge with this rank; UINT32_MAX is none. NULL: merges are listed */
} embla_bpe;

typedef struct {
    double *scores; /* by token */
    double unknown_score;
    bool byte_fallback, single; /* single: sums are rounded to float */
    int32_t byte_tokens[256];
} embla_unigram;

typedef struct {
    embla_name prefix;
    uint32_t inner; /* the state of the trie after the prefix */
    bool has_inner;
    size_t most_chars;
} embla_wordpiece;

/* ---- after the model ---- */

typedef struct {
    uint8_t text; /* the place of the text: 1, or 2 for the second of a pair; 0 means `tokens` */
    uint8_t type; /* type id of its tokens */
    const int32_t *tokens;
    size_t count;
} embla_template_part;

typedef struct {
    embla_template_part *parts;
    size_t count; /* 0: nothing is added */
    size_t added; /* tokens that are added */
} embla_template;

typedef struct {
    embla_template single, pair; /* without pair, the second text follows the first */
    bool trim, trim_prefix; /* offsets without the spaces around; a space that was added stays */
} embla_post;

typedef enum {
    EMBLA_UN_REPLACE,
    EMBLA_UN_BYTES, /* ByteLevel */
    EMBLA_UN_WORDPIECE,
    EMBLA_UN_METASPACE,
    EMBLA_UN_SUFFIX, /* BPEDecoder */
    EMBLA_UN_FALLBACK,
    EMBLA_UN_FUSE,
    EMBLA_UN_STRIP,
    EMBLA_UN_CTC /* text is the mark of nothing, content that between words */
} embla_rejoin_kind;

typedef struct {
    embla_rejoin_kind kind;
    embla_name text, content; /* what is replaced, stripped or a prefix; what by */
    embla_pattern pattern;
    size_t start, stop; /* STRIP */
    bool cleanup, keep_first;
} embla_rejoin;

/* Where a compiled file has a string of the vocabulary, and its token. */
typedef struct {
    uint32_t at, length, number;
} embla_vocab_place;

typedef struct {
    bool on, left;
    size_t most, multiple;
    bool longest, only_first, only_second;
    int32_t token;
    uint8_t type; /* type id of padding */
} embla_limit;    /* truncation or padding */

#define EMBLA_NO_STRING UINT32_MAX

struct embla_tokenizer {
    embla_arena arena;
    const char *name, *source;
    char pipeline[512];
    embla_tokenizer_kind kind;

    embla_normal *normals;
    size_t normal_count, normal_room;
    bool has_ascii;     /* all normalizers together replace or drop single ASCII characters */
    uint8_t ascii[128]; /* what they make of each; 128 means nothing */
    embla_pre *pres;
    size_t pre_count, pre_room;
    bool byte_level; /* a pre-tokenizer maps bytes: strings of the trie are bytes */
    bool need_spans; /* a pre-tokenizer asks where a piece begins in the original */
    bool folds;      /* Words: the text is in lower case before it is cut */

    struct embla_map *map; /* of a compiled file, whose tables are used in place; NULL: none */
    embla_name *vocab;     /* as in the file; number is the token. NULL if compiled */
    size_t vocab_count, vocab_room;
    const embla_vocab_place *places; /* instead of vocab, if compiled: strings of the pool */
    const char *pool;
    size_t pool_bytes;
    bool *hidden; /* by string of the vocabulary: it is never found in a text; NULL means none */
    const uint32_t *sorted;   /* strings of the vocabulary by their bytes; NULL: the trie has all */
    const uint32_t *by_token; /* string of the vocabulary, or vocab_count + index of an added token,
                                 or EMBLA_NO_STRING */
    size_t token_end;
    embla_trie trie; /* string of the vocabulary -> token */
    int32_t unknown; /* -1: none */
    embla_name unknown_text;

    embla_bpe bpe;
    embla_unigram unigram;
    embla_wordpiece wordpiece;

    embla_added *added;
    size_t added_count, added_room;
    embla_matcher raw, normalized;
    const uint8_t *special; /* by token: 1 if it is */

    embla_post post;
    embla_limit truncation, padding;
    embla_rejoin *decoders;
    size_t decoder_count, decoder_room;
    bool has_decoder;
};

/* ---- reading ---- */

/* Makes an empty tokenizer. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_tokenizer_begin(const char *name, const char *source,
                                                               embla_tokenizer **out);
/* Makes a tokenizer of words alone, in which the merge that gives the lowest token comes first. The
 * words show how they write text: as bytes like GPT-2's, as SentencePiece's pieces, as whole words
 * if one is <unk> or [UNK], or else as characters. */
EMBLA_CHECKED embla_status embla_tokenizer_new_words(const embla_vocab *vocab,
                                                     embla_tokenizer **out);
/* After vocab, model fields and stages were filled in: builds the tables of the model. merges may
 * be NULL; names of its two halves alternate. */
EMBLA_CHECKED embla_status embla_tokenizer_finish(embla_tokenizer *t, const embla_name *merges,
                                                  size_t merge_count);
/* Adds a string to the vocabulary. The bytes are copied. */
EMBLA_CHECKED embla_status embla_tokenizer_add(embla_tokenizer *t, const char *bytes, size_t length,
                                               uint64_t token);
/* The same for bytes: each becomes the character that stands for it (embla_byte_code). */
EMBLA_CHECKED embla_status embla_tokenizer_add_bytes(embla_tokenizer *t, const uint8_t *bytes,
                                                     size_t count, uint64_t token);
/* tokenizer_names.c: the token of a string of the vocabulary, as it is in the file; -1 if there is
 * none. */
int32_t embla_tokenizer_literal(const embla_tokenizer *t, const char *bytes, size_t length);
/* String i of the vocabulary; number is its token. bytes is NULL if a compiled file has it at a
 * place that does not exist, or not in UTF-8. */
embla_name embla_vocab_name(const embla_tokenizer *t, size_t i);
/* The string of a token. decoded: added tokens in their normalized form. False if there is none. */
bool embla_token_name(const embla_tokenizer *t, int32_t token, bool decoded, embla_name *out);
/* "WordPiece", .. */
const char *embla_tokenizer_kind_name(embla_tokenizer_kind kind);
/* Makes `sorted`. */
EMBLA_CHECKED embla_status embla_tokenizer_sort(embla_tokenizer *t);
/* Reads the parts of a tokenizer.json. If t is compiled, all but model and added tokens. */
EMBLA_CHECKED embla_status embla_tokenizer_parts(embla_tokenizer *t, const void *json,
                                                 size_t count);
/* EMBLA_ERR_IO if a compiled file has become shorter since it was opened. */
EMBLA_CHECKED embla_status embla_tokenizer_check(const embla_tokenizer *t);
/* Reads stages from the text of a tokenizer.json without a model. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_tokenizer_stages(embla_tokenizer *t,
                                                                const char *json);
/* Appends an added token that is special. */
EMBLA_CHECKED embla_status embla_added_special(embla_tokenizer *t, const char *content,
                                               size_t length);

/* sources_text.c, sentencepiece.c, sources_gguf.c: files other than tokenizer.json. */
typedef enum {
    EMBLA_BYTE_CUT_GPT2,
    EMBLA_BYTE_CUT_CL100K,
    EMBLA_BYTE_CUT_QWEN,
    EMBLA_BYTE_CUT_O200K
} embla_byte_cut;
/* The stages of a byte-level tokenizer that cuts a text with a known pattern, as JSON. */
const char *embla_byte_stages(embla_byte_cut cut);
bool embla_tiktoken_sniff(const uint8_t *bytes, size_t count);
EMBLA_CHECKED embla_status embla_tiktoken_parse(embla_tokenizer *t, const uint8_t *bytes,
                                                size_t count);
/* Sets up WordPiece as BERT has it, after the vocabulary was filled in. */
EMBLA_CHECKED embla_status embla_wordpiece_finish(embla_tokenizer *t, bool cased);
EMBLA_CHECKED embla_status embla_vocab_txt_parse(embla_tokenizer *t, const uint8_t *bytes,
                                                 size_t count);
EMBLA_CHECKED embla_status embla_sentencepiece_parse(embla_tokenizer *t, const uint8_t *bytes,
                                                     size_t count);
/* What a Unigram model of SentencePiece has besides its strings. */
typedef struct {
    float *scores;  /* by token */
    uint8_t *types; /* by token: 1 normal, 2 unknown, 3 control, 4 user defined, 5 unused, 6 byte */
    const uint8_t *map; /* map of characters: map_bytes bytes */
    size_t map_bytes;
    bool dummy, remove_extra; /* a mark in front; extra spaces are removed */
    bool bytes;               /* unknown characters become bytes */
} embla_unigram_parts;
/* Sets up such a model, after the vocabulary was filled in. EMBLA_ERR_FORMAT names a token with a
 * wrong score or type. */
EMBLA_CHECKED embla_status embla_sentencepiece_unigram(embla_tokenizer *t,
                                                       embla_unigram_parts *parts);
/* Ranks tokens by their scores, the highest first: BPE as SentencePiece has it. Those that are not
 * normal never merge. */
EMBLA_CHECKED embla_status embla_bpe_rank_scores(embla_tokenizer *t, const float *scores,
                                                 const bool *normal);
/* word_cut.c: makes a tokenizer of the words of a vocabulary. What is no word of it gets the token
 * after the last one, which has no string. */
EMBLA_CHECKED embla_status embla_tokenizer_of_rows(const embla_vocab *vocab, const char *name,
                                                   embla_tokenizer **out);
/* The stages of SentencePiece's BPE, as JSON. */
extern const char embla_llama_stages[];
struct embla_map;
EMBLA_CHECKED embla_status embla_tokenizer_of_gguf(embla_tokenizer *t, struct embla_map *map);

/* Numbers the added tokens and builds their matchers; call it after embla_tokenizer_finish. */
EMBLA_CHECKED embla_status embla_added_finish(embla_tokenizer *t);
/* Sets which bytes the tokens of a matcher begin with, and counts the tokens. */
void embla_matcher_prepare(const embla_tokenizer *t, embla_matcher *matcher, bool normalized);

/* tokenizer_model.c: "model" of a tokenizer.json, count bytes that are a JSON value. */
EMBLA_CHECKED embla_status embla_model_parse(embla_tokenizer *t, const uint8_t *bytes,
                                             size_t count);
/* stages_open.c and ends_open.c: the other parts. NULL values are allowed. */
EMBLA_CHECKED embla_status embla_normals_parse(embla_tokenizer *t, const embla_json_value *value);
EMBLA_CHECKED embla_status embla_pres_parse(embla_tokenizer *t, const embla_json_value *value);
EMBLA_CHECKED embla_status embla_added_parse(embla_tokenizer *t, const embla_json_value *value);
EMBLA_CHECKED embla_status embla_post_parse(embla_tokenizer *t, const embla_json_value *value);
/* Puts cls before a text and sep after it, as BERT does; roberta: as RoBERTa does. */
EMBLA_CHECKED embla_status embla_post_ends(embla_tokenizer *t, int32_t cls, int32_t sep,
                                           bool roberta);
EMBLA_CHECKED embla_status embla_decoders_parse(embla_tokenizer *t, const embla_json_value *value);
EMBLA_CHECKED embla_status embla_limits_parse(embla_tokenizer *t,
                                              const embla_json_value *truncation,
                                              const embla_json_value *padding);
/* Sets the ASCII characters that a stage acts on. */
void embla_normal_prepare(embla_normal *stage);
/* Joins stages that can be done in one pass, and finds what all do to ASCII. */
EMBLA_CHECKED embla_status embla_normals_join(embla_tokenizer *t);

/* bpe.c, unigram.c: the tables of a model. */
EMBLA_CHECKED embla_status embla_bpe_build(embla_tokenizer *t, const embla_name *merges,
                                           size_t count);
void embla_bpe_free(embla_bpe *bpe);
enum { EMBLA_MERGE_PROBES = 64 };
EMBLA_CHECKED embla_status embla_unigram_build(embla_tokenizer *t);
/* Turns a string of a byte-level vocabulary into the bytes that it stands for, at most as many as
 * it has. False if a character is not in the alphabet. */
bool embla_unmap(const char *text, size_t length, char *out, size_t *count);
/* Finds "<0x00>" to "<0xFF>". */
void embla_byte_tokens(const embla_tokenizer *t, int32_t tokens[256]);

/* Parses a base64 text with SentencePiece's map of characters. */
EMBLA_CHECKED embla_status embla_charsmap_parse(embla_tokenizer *t, const char *text, size_t length,
                                                embla_charsmap *out);
/* The same for the bytes that base64 stands for. */
EMBLA_CHECKED embla_status embla_charsmap_read(embla_tokenizer *t, const uint8_t *bytes,
                                               size_t length, embla_charsmap *out);

/* Whether a string equals a literal of C. */
static inline bool embla_name_is(const embla_name *name, const char *text)
{
    return name->length == strlen(text) && memcmp(name->bytes, text, name->length) == 0;
}

#endif
