/* SPDX-License-Identifier: Apache-2.0 */
/* The struct behind embla_tokenized: results, and the memory that stages work in. */
#ifndef EMBLA_TOKENIZER_TOKENIZE_H
#define EMBLA_TOKENIZER_TOKENIZE_H

#include "tokenizer/tokenizer.h"

/* A token of a word that a model has encoded. */
typedef struct {
    int32_t token;
    uint32_t length; /* bytes of the word that it takes; 0: it shares those of the token before */
} embla_unit;

/* A word that was encoded before, in one cache line. */
enum { EMBLA_CACHED_BYTES = 22, EMBLA_CACHED_UNITS = 8, EMBLA_CACHE_SLOTS = 1 << 16 };
typedef struct {
    uint64_t key[3]; /* the word, zeros, the number of units and its length + 1 in the last bytes */
    int32_t tokens[EMBLA_CACHED_UNITS];
    uint8_t lengths[EMBLA_CACHED_UNITS];
} embla_cached;

/* A character that a normalization form moves around, and how it changes the text (strand.h). */
typedef struct {
    uint32_t code;
    int32_t change;
} embla_moved;

/* A symbol of BPE: a token, its bytes, and its neighbours. */
typedef struct {
    int32_t token;
    uint32_t length;
    uint32_t before, after; /* indices; UINT32_MAX is none */
    uint32_t rank, merged;  /* of the merge with the next symbol; rank UINT32_MAX is none */
} embla_symbol;

/* The best path of Unigram that ends at a byte. */
typedef struct {
    double score;
    uint32_t start; /* UINT32_MAX: no path ends here */
    int32_t token;
} embla_path;

struct embla_tokenized {
    const embla_tokenizer *tokenizer;
    embla_tokenize_options options;
    embla_bound bound; /* of the text under way */
    embla_watch watch; /* of the call that was made with this embla_tokenized */

    int32_t *tokens;
    embla_text_span *offsets;
    uint8_t *special;
    size_t count, token_room, offset_room, special_room;
    bool pair;              /* the tokens are of two texts: */
    uint8_t *types, *sides; /* type ids; 1 or 2 for a token of the first or second text, 0 none */
    size_t type_room, side_room;
    size_t cut;
    size_t *starts;
    size_t texts, start_room;

    /* Memory of the stages. */
    embla_strand valid, strands[2]; /* valid UTF-8; two normalizers in turn */
    embla_strand spaced[2];         /* two pre-tokenizers that change the text, in turn */
    embla_text_span *pieces[2];
    size_t piece_count[2], piece_room[2];
    embla_moved *moved, *moved_spare;
    size_t moved_count, moved_room, spare_room;
    embla_symbol *symbols;
    uint64_t *heap;
    size_t symbol_room, heap_count, heap_room;
    embla_path *paths;
    size_t path_room;
    embla_unit *units; /* of the word under way */
    size_t unit_count, unit_room;
    embla_cached *cache;
    embla_strand decoded[2];
    float *word; /* the vector of a word, and the sums of such vectors */
    double *sums;
    size_t word_room, sum_room;
    embla_tokenized **workers; /* of a batch, one for each thread */
    size_t worker_count, worker_room;
};

/* normalize.c: runs the normalizers on a view; *out is the view itself or a strand of e. The bound
 * of e must have begun. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_normalize_text(const embla_tokenizer *t,
                                                              embla_tokenized *e, embla_view view,
                                                              embla_view *out);
/* normal_forms.c: NFC, NFD, NFKC or NFKD. *changed is false if the strand was not written. */
EMBLA_CHECKED embla_status embla_normal_form(embla_tokenized *e, embla_normal_kind kind,
                                             embla_strand *out, bool *changed);
/* charsmap.c: Precompiled. */
EMBLA_CHECKED embla_status embla_charsmap_apply(const embla_charsmap *map, embla_tokenized *e,
                                                embla_strand *out, bool *changed);
EMBLA_CHECKED embla_status embla_sentencepiece_apply(const embla_normal *stage, embla_tokenized *e,
                                                     embla_strand *out, bool *changed);
/* The string for the longest prefix of key, in whole characters, that the map has; NULL if there is
 * none. key is UTF-8; *steps is how many bytes of it were looked at. */
const char *embla_charsmap_longest(const embla_charsmap *map, const char *key, size_t length,
                                   size_t *used, size_t *steps);
/* pretokenize.c: cuts a view into e->pieces[*list]. *text is the view that the pieces are of. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_pretokenize(const embla_tokenizer *t,
                                                           embla_tokenized *e, embla_view view,
                                                           embla_view *text, int *list);
/* Finds the next added token from *at on. *found is NULL at the end. begin and end include the
 * white space that the token swallows; *at is where the search goes on. Special ones are skipped if
 * the options of e say so. */
EMBLA_CHECKED embla_status embla_added_next(embla_tokenized *e, const embla_matcher *matcher,
                                            embla_view view, size_t past, size_t *at,
                                            const embla_added **found, size_t *begin, size_t *end);

/* The models append the tokens of a word to e->units. */
EMBLA_CHECKED embla_status embla_bpe_encode(const embla_tokenizer *t, embla_tokenized *e,
                                            const char *word, size_t length);
EMBLA_CHECKED embla_status embla_unigram_encode(const embla_tokenizer *t, embla_tokenized *e,
                                                const char *word, size_t length);
EMBLA_CHECKED embla_status embla_wordpiece_encode(const embla_tokenizer *t, embla_tokenized *e,
                                                  const char *word, size_t length);
EMBLA_CHECKED embla_status embla_wordlevel_encode(const embla_tokenizer *t, embla_tokenized *e,
                                                  const char *word, size_t length);
EMBLA_CHECKED embla_status embla_words_encode(const embla_tokenizer *t, embla_tokenized *e,
                                              const char *word, size_t length);
/* Appends a token of a word. */
EMBLA_CHECKED embla_status embla_unit_add(embla_tokenized *e, int32_t token, size_t length);
/* The error for a character without a token. */
EMBLA_CHECKED embla_status embla_no_token(const embla_tokenizer *t, const char *word,
                                          size_t length);

/* encode.c: makes room for `more` tokens. */
EMBLA_CHECKED embla_status embla_tokenized_room(embla_tokenized *e, size_t more);
/* Encodes one text, whose tokens are appended to those of e. */
EMBLA_CHECKED embla_status embla_tokenize_one(embla_tokenized *e, const char *text, size_t length);
/* Checks the options of a call and empties e. */
EMBLA_CHECKED embla_status embla_tokenize_begin(embla_tokenized *e,
                                                const embla_tokenize_options *options);
/* Ends a call for one text, or one pair, that has room for two starts: checks the tokenizer's file,
 * and leaves e empty if that or `status` is a failure. */
EMBLA_CHECKED embla_status embla_tokenize_end(embla_tokenized *e, embla_status status);
/* tokenize_batch.c: checks the arrays of a call; *bytes becomes the length of all texts. */
EMBLA_CHECKED embla_status embla_texts_check(const embla_texts *texts, size_t *bytes);
/* Makes `count` workers, empty and with the options of e. They pad to a fixed
 * length only: the longest text is not known yet. */
EMBLA_CHECKED embla_status embla_encode_workers(embla_tokenized *e, size_t count);
enum { EMBLA_TEXTS_AT_ONCE = 16 }; /* that a thread takes from a batch */
/* Says that a worker has done a text of so many bytes. EMBLA_ERR_STOPPED if the caller wants to
 * stop. */
EMBLA_CHECKED embla_status embla_encode_done(embla_tokenized *worker, size_t bytes);
/* post.c: removes the spaces of tokens first to end - 1 from their offsets, if the file asks. */
void embla_post_trim(embla_tokenized *e, const char *text, size_t first, size_t end);
/* Moves `count` tokens to another place of the list, where there is room. */
void embla_post_move(embla_tokenized *e, size_t from, size_t to, size_t count);
/* Writes a token that is not in the text. */
void embla_post_special(embla_tokenized *e, size_t at, int32_t token, uint8_t type);
/* Pads the tokens from `first` on, as the file asks. */
EMBLA_CHECKED embla_status embla_post_pad(embla_tokenized *e, size_t first);
/* Appends the tokens of a text, without what comes after the model. */
EMBLA_CHECKED embla_status embla_tokenize_text(embla_tokenized *e, const char *text, size_t length);
/* post.c: truncates, adds special tokens and pads the tokens from `first` on, which are those of
 * `text`. */
EMBLA_CHECKED embla_status embla_post_process(embla_tokenized *e, const char *text, size_t first);
/* Pads the texts of a batch to the length of the longest. */
EMBLA_CHECKED embla_status embla_post_pad_batch(embla_tokenized *e);

#endif
