/* SPDX-License-Identifier: Apache-2.0 */
/* embla_text.h - text as tokens, and as vectors.
 *
 *   tokenizer.json -> tokenizer; text -> tokenized: tokens and where they are; tokens -> text
 *   texts -> encoder (tokenizer, token table, mean) -> vectors
 *
 * Stable: from 0.1.0 on, nothing in this header changes within a minor version; new options take
 * reserved words (decision 020).
 * The rules of embla.h hold here too; link libembla_text.
 */
#ifndef EMBLA_TEXT_H
#define EMBLA_TEXT_H

#include "embla.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- tokenizer: text to the tokens of a model, and back ---- */

typedef struct embla_tokenizer embla_tokenizer;
typedef struct embla_tokenized embla_tokenized;

typedef enum {
    EMBLA_TOKENIZER_WORDPIECE = 1,
    EMBLA_TOKENIZER_WORDLEVEL = 2,
    EMBLA_TOKENIZER_BPE = 3,
    EMBLA_TOKENIZER_UNIGRAM = 4,
    EMBLA_TOKENIZER_WORDS = 5 /* the words of a table of word vectors */
} embla_tokenizer_kind;

/* What a tokenizer is made of. The strings are valid as long as the tokenizer. */
typedef struct {
    embla_tokenizer_kind kind;
    const char *kind_name; /* "WordPiece", "WordLevel", "BPE", "Unigram", "Words" */
    const char *source;    /* "tokenizer.json", "SentencePiece", "GGUF", "tiktoken", "vocab.txt",
                              "tokenizer.bin" of llama2.c and llm.c, "words" alone, "word vectors",
                              or "compiled" */
    const char *pipeline;  /* stages in their order: normalizers, .., model, .., decoder */
    int64_t vocab;         /* strings of the model's vocabulary */
    int64_t added;         /* added tokens, those of the vocabulary included */
    int64_t tokens;        /* the highest token plus 1: a table needs at least as many rows */
    int64_t merges;        /* of BPE */
    bool byte_level;       /* works on bytes: every text can be encoded without unknown tokens */
    int32_t unknown;      /* the token for text that cannot be encoded (unk); -1 if there is none */
    size_t max_tokens;    /* truncation that the file asks for; 0 means none */
    size_t pad_length;    /* padding that the file asks for; 0 means none or to the longest */
    uint64_t reserved[4]; /* is 0 */
} embla_tokenizer_info;

/* Opens a tokenizer: a tokenizer.json, a SentencePiece model, a GGUF file, a file of tiktoken's
 * ranks, a vocab.txt of WordPiece, a file of embla_tokenizer_compile, or a folder with a
 * tokenizer.json, a SentencePiece model or a vocab.txt. The format is detected from the file's
 * contents. The tokens are those that the library which wrote the file gives for the same text.
 * EMBLA_ERR_FORMAT names what is wrong in the file, EMBLA_ERR_UNSUPPORTED a part that Embla does
 * not have. */
EMBLA_API EMBLA_CHECKED embla_status embla_tokenizer_open_file(const char *path,
                                                               embla_tokenizer **out);
/* The same for the bytes of a file. They are not needed after the call. Messages call them
 * `name`. */
EMBLA_API EMBLA_CHECKED embla_status embla_tokenizer_open_bytes(const void *bytes, size_t count,
                                                                const char *name,
                                                                embla_tokenizer **out);
/* Opens the tokenizer of a checkpoint: the one in its GGUF file, in its folder, or in the folder
 * above; otherwise a tokenizer of its words alone (vocab.json, tokenizer.bin). It does not
 * need the checkpoint afterwards. EMBLA_ERR_NOT_FOUND if there is none, EMBLA_ERR_UNSUPPORTED for a
 * file of word vectors. */
EMBLA_API EMBLA_CHECKED embla_status embla_tokenizer_open(const embla_checkpoint *checkpoint,
                                                          embla_tokenizer **out);
/* Makes a vocabulary of the strings of all tokens. The caller frees it with embla_vocab_free. */
EMBLA_API EMBLA_CHECKED embla_status embla_tokenizer_words(const embla_tokenizer *tokenizer,
                                                           embla_vocab **out);
/* Writes the tables of a tokenizer.json, or of the one in a folder, to a file that opens in a few
 * milliseconds: it is mapped and used in place, and gives the same tokens. A file `to` is
 * replaced. The result is for this version of the format and for machines with the same byte order;
 * others refuse it. It does not follow changes of the tokenizer.json. EMBLA_ERR_UNSUPPORTED for any
 * other kind of file, EMBLA_ERR_ARGUMENT if `to` is the input. */
EMBLA_API EMBLA_CHECKED embla_status embla_tokenizer_compile(const char *path, const char *to);
EMBLA_API void embla_tokenizer_free(embla_tokenizer *tokenizer);
EMBLA_API EMBLA_CHECKED embla_status embla_tokenizer_describe(const embla_tokenizer *tokenizer,
                                                              embla_tokenizer_info *out);
/* The string of a token as the file has it (for example "##ing"): *length bytes, then a 0. length
 * may be NULL. NULL if there is no such token. */
EMBLA_API const char *embla_tokenizer_text(const embla_tokenizer *tokenizer, int32_t token,
                                           size_t *length);
/* The token with this string; -1 if there is none. */
EMBLA_API int32_t embla_tokenizer_token(const embla_tokenizer *tokenizer, const char *text,
                                        size_t length);
/* Bytes of the text that was given, from begin to end - 1. */
typedef struct {
    uint32_t begin, end;
} embla_text_span;

typedef struct {
    bool add_special;  /* add the tokens of the post-processor, such as [CLS] and [SEP] */
    bool plain;        /* treat special tokens in the text as ordinary text */
    bool offsets;      /* find where each token is in the text; slower */
    bool truncate;     /* truncate as the file asks; embla_tokenized_cut says how many are lost */
    bool pad;          /* pad as the file asks */
    bool strict;       /* refuse text that is not valid UTF-8 */
    int threads;       /* for a batch; 0 means the default number */
    size_t max_tokens; /* maximum number of tokens; the rest is cut off; 0 means no limit */
    embla_progress_fn progress; /* NULL means none; counts bytes of texts that are done; a call of
                                   less than 20 ms does not use it */
    void *context;              /* passed to progress */
    uint64_t reserved[4];       /* must be 0 */
} embla_tokenize_options;

/* An embla_tokenized holds the tokens of one text or of a batch, and the memory for making them. It
 * belongs to a tokenizer, which must live longer. After the first texts a call allocates nothing.
 * One thread at a time may use it; many threads, each with its own, may share a tokenizer.
 */
EMBLA_API EMBLA_CHECKED embla_status embla_tokenized_new(const embla_tokenizer *tokenizer,
                                                         embla_tokenized **out);
EMBLA_API void embla_tokenized_free(embla_tokenized *tokenized);

/* Tokenizes one text of less than 2^31 bytes. Each part that is not valid UTF-8 becomes U+FFFD,
 * unless options->strict. options NULL means defaults. EMBLA_ERR_NOT_FOUND if the text has a
 * character that the tokenizer has no token for, and it has no unknown token. A failed call leaves
 * it empty. */
EMBLA_API EMBLA_CHECKED embla_status embla_tokenize(embla_tokenized *tokenized, const char *text,
                                                    size_t length,
                                                    const embla_tokenize_options *options);

/* Texts of a call. A text needs no 0 at its end. */
typedef struct {
    const char *const *texts; /* count of them; NULL for an empty text is allowed */
    const size_t *lengths;    /* bytes of each text */
    size_t count;             /* with 0, texts and lengths may be NULL */
    uint64_t reserved[4];     /* must be 0 */
} embla_texts;

/* Tokenizes texts, shared over threads. The tokens of all texts follow each other;
 * embla_tokenized_starts has where those of each text begin. The result does not depend on the
 * number of threads. */
EMBLA_API EMBLA_CHECKED embla_status embla_tokenize_batch(embla_tokenized *tokenized,
                                                          const embla_texts *texts,
                                                          const embla_tokenize_options *options);
/* Tokenizes two texts as one, with the template of the file for pairs, such as "[CLS] first [SEP]
 * second [SEP]". Truncation is that of the file (longest first, only the first or only the second
 * text); max_tokens takes from the longer text first. EMBLA_ERR_SHAPE if the text that is truncated
 * is too short for it. */
EMBLA_API EMBLA_CHECKED embla_status embla_tokenize_pair(embla_tokenized *tokenized,
                                                         const char *first, size_t first_length,
                                                         const char *second, size_t second_length,
                                                         const embla_tokenize_options *options);

/* The results are valid until it is used again. */
EMBLA_API size_t embla_tokenized_count(const embla_tokenized *tokenized);
EMBLA_API const int32_t *embla_tokenized_tokens(const embla_tokenized *tokenized);
/* Where each token is in its text; NULL without options.offsets. Tokens that were added have an
 * empty span at 0. A token that is a part of a character has the span of the whole character. */
EMBLA_API const embla_text_span *embla_tokenized_offsets(const embla_tokenized *tokenized);
/* 1 for each token that the post-processor or padding has added, otherwise 0. */
EMBLA_API const uint8_t *embla_tokenized_special(const embla_tokenized *tokenized);
/* For a pair: the type id of each token (0 for the first text and 1 for the second, in most
 * models), and the text that it belongs to: 1 or 2; 0 for an added token. NULL if no pair was
 * tokenized. */
EMBLA_API const uint8_t *embla_tokenized_types(const embla_tokenized *tokenized);
EMBLA_API const uint8_t *embla_tokenized_sides(const embla_tokenized *tokenized);
/* Where the tokens of each text of a batch begin, and after the last the number of all: texts + 1
 * numbers. */
EMBLA_API const size_t *embla_tokenized_starts(const embla_tokenized *tokenized);
/* How many tokens truncation has removed, of all texts together. */
EMBLA_API size_t embla_tokenized_cut(const embla_tokenized *tokenized);

/* Converts tokens to text with the decoder of the file. skip_special leaves out special tokens.
 * Tokens that do not exist are left out, as in the reference. *text is *length bytes and a 0, valid
 * until `tokenized` is used again; its tokens are kept. */
EMBLA_API EMBLA_CHECKED embla_status embla_detokenize(embla_tokenized *tokenized,
                                                      const int32_t *tokens, size_t count,
                                                      bool skip_special, const char **text,
                                                      size_t *length);

/* An embla_detokenizer converts tokens to text while they arrive, as a model generates them:
 *
 *   embla_detokenizer_new(tokenizer, NULL, &d);
 *   while (next_token(&token) && embla_detokenizer_add(d, &token, 1, &text, &length) == EMBLA_OK)
 *       fwrite(text, 1, length, stdout);
 *   if (embla_detokenizer_end(d, &text, &length) == EMBLA_OK) fwrite(text, 1, length, stdout);
 *
 * All texts together are that of embla_detokenize for all tokens, and no character is cut. There is
 * one exception: if byte tokens such as <0xFF> are not valid UTF-8, embla_detokenize also replaces
 * the valid ones beside them by U+FFFD. Here they may have been given already.
 * The tokenizer must live longer. One thread at a time may use the handle. After the first tokens
 * a call allocates nothing. */
typedef struct embla_detokenizer embla_detokenizer;

typedef struct {
    bool skip_special;    /* leave out special tokens */
    uint64_t reserved[4]; /* must be 0 */
} embla_detokenizer_options;

/* options NULL means defaults. */
EMBLA_API EMBLA_CHECKED embla_status embla_detokenizer_new(const embla_tokenizer *tokenizer,
                                                           const embla_detokenizer_options *options,
                                                           embla_detokenizer **out);
EMBLA_API void embla_detokenizer_free(embla_detokenizer *detokenizer);
/* Adds tokens. *text is the new text: *length bytes, which may be none, and a 0, valid until the
 * handle is used again. A character of several tokens is held back until it is complete, but not
 * longer than for 8 tokens. Tokens that do not exist are left out. A failed call leaves the handle
 * as it was. */
EMBLA_API EMBLA_CHECKED embla_status embla_detokenizer_add(embla_detokenizer *detokenizer,
                                                           const int32_t *tokens, size_t count,
                                                           const char **text, size_t *length);
/* Gives what was held back: U+FFFD for a character that is not complete. Tokens that are added
 * afterwards continue the text. */
EMBLA_API EMBLA_CHECKED embla_status embla_detokenizer_end(embla_detokenizer *detokenizer,
                                                           const char **text, size_t *length);
/* Forgets all tokens: the next one begins a new text. */
EMBLA_API void embla_detokenizer_begin(embla_detokenizer *detokenizer);

/* Copies a tokenizer.json. `to` is replaced if it exists; after a failure it is unchanged.
 * EMBLA_ERR_UNSUPPORTED if `from` is a tokenizer in another format. */
EMBLA_API EMBLA_CHECKED embla_status embla_tokenizer_copy(const char *from, const char *to);

/* ---- subwords: rows of words that a table does not have ---- */

typedef struct embla_subwords embla_subwords;

/* Opens the n-grams of a checkpoint: a file of embla_wordvec_write, or a .bin of fastText.
 * EMBLA_ERR_NOT_FOUND if it has none. Threads may share the handle. */
EMBLA_API EMBLA_CHECKED embla_status embla_subwords_open(const embla_checkpoint *checkpoint,
                                                         embla_subwords **out);
EMBLA_API void embla_subwords_free(embla_subwords *subwords);
EMBLA_API size_t embla_subwords_dim(const embla_subwords *subwords);
/* Writes the mean of the rows of a word's n-grams to out (dim floats). *grams (may be NULL) gets
 * their number. EMBLA_ERR_NOT_FOUND if the file has none of them. */
EMBLA_API EMBLA_CHECKED embla_status embla_subwords_vector(const embla_subwords *subwords,
                                                           const char *word, size_t length,
                                                           float *out, size_t *grams);

/* ---- encoder: text to vectors with a static model ---- */

/* A static model is a token table and a tokenizer: the vector of a text is the mean of the rows of
 * its tokens. Many threads may use an encoder at once. It keeps the memory for the work of a few
 * calls: after the first texts a call allocates nothing. */
typedef struct embla_encoder embla_encoder;

/* Whose rules are followed. They differ in what they leave out, in the maximum length and in how a
 * vector is normalised; docs/text.md has a table. */
typedef enum {
    EMBLA_COMPAT_AUTO = 0,         /* those of the library that the folder belongs to, without its
                                      maximum length: no text is truncated */
    EMBLA_COMPAT_MODEL2VEC = 1,    /* model2vec: at most 512 tokens, unknown tokens are left out */
    EMBLA_COMPAT_MODEL2VEC_RS = 2, /* the same in Rust, which differs in details */
    EMBLA_COMPAT_ST = 3,           /* StaticEmbedding of sentence-transformers 6 */
    EMBLA_COMPAT_WORDLLAMA = 4,
    EMBLA_COMPAT_TABLE = 5, /* the mean of all rows: a checkpoint's own token table as a stand-in */
    EMBLA_COMPAT_WORDS = 6, /* word vectors: the text is cut into the table's own words */
    EMBLA_COMPAT_ST5 = 7    /* sentence-transformers up to 5, which ignores mapping and weights */
} embla_compat;

/* "auto", "model2vec", "model2vec-rs", "st", "wordllama", "table", "words", "st5"; NULL if there is
 * no such one. */
EMBLA_API const char *embla_compat_name(embla_compat compat);

typedef struct {
    const char *tokenizer; /* its file or folder; NULL means the one of the model */
    embla_compat compat;   /* default: by the folder */
    const char *fit;       /* file of embla_fit: weights and components; NULL means none */
    uint64_t reserved[4];  /* must be 0 */
} embla_encoder_options;

/* What an encoder is made of. The strings are valid as long as the encoder. */
typedef struct {
    embla_compat compat; /* the rules, never EMBLA_COMPAT_AUTO */
    const char *why;     /* what decided: "config.json", "modules.json", .. */
    int64_t rows;
    size_t dim;
    embla_dtype dtype;
    bool normalize;    /* whether the model normalises its vectors */
    bool mapping;      /* tokens share rows */
    bool weights;      /* each token has a weight */
    int64_t tokens;    /* of the tokenizer: the highest token plus 1 */
    size_t components; /* removed from every vector */
    bool subwords;     /* words without a row get vectors of their n-grams */
    bool counts;       /* the file has how often each word occurs */
    uint64_t reserved[4];
} embla_encoder_info;

/* Opens a static model: a folder of Model2Vec or of sentence-transformers (also its subfolder
 * 0_StaticEmbedding), a file of WordLlama, word vectors (GloVe, word2vec, fastText,
 * embla_wordvec_write), or any checkpoint with a token table and a tokenizer.
 * EMBLA_ERR_SHAPE if the tokenizer has tokens without a row or a weight. EMBLA_ERR_UNSUPPORTED
 * names a module of sentence-transformers that Embla does not have. EMBLA_ERR_ARGUMENT if
 * options->fit was made for another model. */
EMBLA_API EMBLA_CHECKED embla_status embla_encoder_open(const char *path,
                                                        const embla_encoder_options *options,
                                                        embla_encoder **out);
EMBLA_API void embla_encoder_free(embla_encoder *encoder);
EMBLA_API EMBLA_CHECKED embla_status embla_encoder_describe(const embla_encoder *encoder,
                                                            embla_encoder_info *out);
/* Its tokenizer, for embla_tokenized_new. The encoder owns it. */
EMBLA_API const embla_tokenizer *embla_encoder_tokenizer(const embla_encoder *encoder);

typedef enum {
    EMBLA_NORMALIZE_MODEL = 0, /* normalise if the model does */
    EMBLA_NORMALIZE_YES = 1,
    EMBLA_NORMALIZE_NO = 2
} embla_normalize_kind;

typedef struct {
    size_t dim; /* keep only the first numbers, before normalising; 0 means all */
    embla_normalize_kind normalize; /* whether vectors are normalised; default: as the model says */
    size_t max_tokens;              /* limit for each text; 0 means none, or that of compat */
    bool truncate; /* truncate a text above max_tokens; otherwise it is EMBLA_ERR_RANGE */
    bool plain;    /* treat special tokens in a text as ordinary text */
    bool strict;   /* refuse text that is not valid UTF-8 */
    int threads;
    embla_progress_fn progress; /* as in embla_tokenize_options */
    void *context;              /* passed to progress */
    uint64_t reserved[4];       /* must be 0 */
} embla_encode_options;

/* What became of a text. */
typedef struct {
    size_t tokens;  /* whose rows were averaged; 0 means that the vector is zero */
    size_t unknown; /* tokens that were left out because they are unknown */
    bool truncated;
} embla_encoded;

/* Writes the vector of each text to out (count x dim), shared over threads. details (count) may be
 * NULL. A text without tokens has a vector of zeros. The result does not depend on the number of
 * threads. If a call fails, the contents of out and details are undefined. EMBLA_ERR_RANGE names a
 * text that is too long, its tokens and the limit. */
EMBLA_API EMBLA_CHECKED embla_status embla_encoder_encode(const embla_encoder *encoder,
                                                          const embla_texts *texts,
                                                          const embla_encode_options *options,
                                                          float *out, embla_encoded *details);

#ifdef __cplusplus
}
#endif
#endif
