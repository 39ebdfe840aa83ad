/* SPDX-License-Identifier: Apache-2.0 */
/* The surface of the page that `embla play` writes: what JavaScript calls. The page draws; all that
 * is computed is computed here, by the public headers of Embla.
 *
 * Every answer is a text of JSON, valid until the next call; a call that fails gives {"error": ..}
 * with a sentence. Numbers of rows have the digits that give the same float again. Handles are
 * pointers; NULL is a failure that play_error() explains. One thread.
 */
#ifndef EMBLA_PLAY_H
#define EMBLA_PLAY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __wasm__
#define PLAY_API(name) __attribute__((export_name(#name)))
#else
#define PLAY_API(name)
#endif

/* ---- memory and messages ---- */

PLAY_API(play_take) void *play_take(size_t bytes);
PLAY_API(play_give) void play_give(void *memory);
/* Why the last call that gave NULL has failed. */
PLAY_API(play_error) const char *play_error(void);
/* {"version", "kernels", "build"} */
PLAY_API(play_version) const char *play_version(void);

/* ---- a model, or a table with words ---- */

typedef struct play_model play_model;

/* Opens a folder or a file. */
PLAY_API(play_open) play_model *play_open(const char *path);
PLAY_API(play_close) void play_close(play_model *model);
/* {"rows", "dim", "positions", "kind", "model", "bos", "leads", "tied", "head", "words": [..]}; a
 * row without a word has null, and a table alone has "model": false. "bos" is the token that begins
 * a text, or -1, and "leads" says that a prompt begins with it; "head" says that there is a
 * separate head, whose rows can be compared. */
PLAY_API(play_about) const char *play_about(const play_model *model);
/* {"vocab", "tokens": [{"id", "text", "begin", "end"}, ..]}: how the model cuts a text. A token is
 * the bytes of the text from begin to end - 1. Without a tokenizer tokens are the words of the
 * table, and a word that it does not have is -1. */
PLAY_API(play_tokens) const char *play_tokens(play_model *model, const char *text);
/* {"text"} of tokens. */
PLAY_API(play_text)
const char *play_text(const play_model *model, const int32_t *ids, size_t count);
/* {"rows": [[..], ..], "positions": [[..], ..], "sums": [[..], ..]}: the vectors of tokens from
 * position `first` on. kind is an embla_positions_kind; -1 means that of the model. Without
 * positions the last two are missing. Rotary positions add nothing: they give "degrees" in place of
 * the last two, the angles of the pairs of numbers of a query or key. */
PLAY_API(play_embed)
const char *play_embed(const play_model *model, const int32_t *ids, size_t count, int32_t first,
                       int32_t kind);
/* {"row": [..], "same", "multiplications", "by_zero"}: row `id` as the product of a one-hot vector
 * with the table, whether it is the row that a lookup gives, and the work. */
PLAY_API(play_one_hot) const char *play_one_hot(const play_model *model, int32_t id);
/* {"norms": [a, b], "dot", "cosine"} of two rows. With `head` they are rows of a separate head. */
PLAY_API(play_compare)
const char *play_compare(const play_model *model, int32_t a, int32_t b, int32_t head);
/* The same of two vectors. */
PLAY_API(play_compare_vectors)
const char *play_compare_vectors(const float *a, const float *b, size_t dim);
/* {"near": [{"id", "score"}, ..]} by cosine; the row itself is left out. */
PLAY_API(play_near)
const char *play_near(const play_model *model, int32_t id, size_t top, int32_t head);
/* The same for plus[0] + .. - minus[0] - ..; the rows of the question are left out unless keep. */
PLAY_API(play_analogy)
const char *play_analogy(const play_model *model, const int32_t *plus, size_t plus_count,
                         const int32_t *minus, size_t minus_count, size_t top, int keep);
/* {"xy": [[x, y], ..], "share": [a, b]}: all rows on the two main directions of `count` rows; with
 * count 0, of all. Shares are those of the variance of these rows. */
PLAY_API(play_plane)
const char *play_plane(const play_model *model, const int32_t *basis, size_t count);
/* {"next": [{"id", "logit", "probability"}, ..], "each": [..], "loss"}: what follows the tokens,
 * most probable first, and how probable each of them was. */
PLAY_API(play_predict)
const char *play_predict(const play_model *model, const int32_t *ids, size_t count,
                         double temperature, size_t top);

/* {"tokens": [{"id", "rows": [..], "values": [[..], ..]}, ..], "table", "dim"}: the rows of the
 * n-gram table of the model at `path` that each token selects together with those before it. */
PLAY_API(play_ngram)
const char *play_ngram(const char *path, const int32_t *ids, size_t count);

/* ---- a tokenizer ---- */

typedef struct play_cutter play_cutter;

/* Opens a tokenizer.json, or the one of a folder. */
PLAY_API(play_cutter_open) play_cutter *play_cutter_open(const char *path);
/* Learns byte pair encoding on a text, with `tokens` tokens at most, writes it to `path` and opens
 * it: as `embla tokenizer TEXT -o PATH --size TOKENS --special "<|endoftext|>"`. */
PLAY_API(play_cutter_train)
play_cutter *play_cutter_train(const char *text, const char *path, int32_t tokens);
PLAY_API(play_cutter_close) void play_cutter_close(play_cutter *cutter);
/* As play_tokens. */
PLAY_API(play_cut) const char *play_cut(play_cutter *cutter, const char *text);

/* ---- costs ---- */

/* The sizes of a model; 0 means that it has no such part. Doubles, because pages have no others. */
typedef struct {
    double rows, dim, positions, layers;
    int32_t untied;
} play_sizes;

/* {"tokens": {"parameters", "bytes"}, "positions", "head", "ngram", "trunk", "tables", "total": ..,
 * "lookup_bytes", "one_hot_madds", "head_madds", "notes": [..]} with numbers of this dtype, for
 * example "bf16". `name` is a published model, of which sizes only say whether it is untied; NULL
 * means that all sizes count. */
PLAY_API(play_cost)
const char *play_cost(const play_sizes *sizes, const char *dtype, const char *name);
/* {"models": [{"name", "about", "rows", "dim", "positions", "layers", "dtype", "untied"}, ..]} */
PLAY_API(play_cost_models) const char *play_cost_models(void);

/* ---- a training ---- */

typedef struct play_training play_training;

/* What the page lets a learner choose. 0 means what `embla train` takes without the option. */
typedef struct {
    double rate;
    int32_t words; /* a token is a word, of so many at most; 0: a token is a character */
    int32_t dim, steps, seed;
    int32_t positions; /* 1 + embla_positions_kind */
    int32_t tied;      /* 1 tied, -1 untied */
    int32_t batch;
} play_choices;

/* A training of the preset microgpt on a file of text, as `embla train FILE --preset microgpt
 * --engine none` with these choices: the same bits. A tokenizer.json, if it is not NULL, cuts the
 * text, as with --tokenizer. */
PLAY_API(play_train)
play_training *play_train(const char *path, const char *tokenizer, const play_choices *choices);
PLAY_API(play_train_close) void play_train_close(play_training *training);
/* {"vocab", "dim", "positions", "steps", "parameters", "documents", "tied", "words": [..],
 * "guessing"}: guessing is ln(vocab), the loss of a model that knows nothing. */
PLAY_API(play_train_about) const char *play_train_about(const play_training *training);
/* Makes steps: {"step", "loss", "rate", "norm", "read": [..], "moved": [..]}: the step that comes
 * next, figures of the last one, the tokens that it read, and the rows whose numbers it changed. */
PLAY_API(play_train_steps) const char *play_train_steps(play_training *training, int32_t steps);
/* The rows as they are now, vocab x dim; and those of learned positions, NULL without them. The
 * memory is the model's: it changes with each step, and ends with the training. */
PLAY_API(play_train_rows) const float *play_train_rows(const play_training *training);
PLAY_API(play_train_positions) const float *play_train_positions(const play_training *training);
/* {"xy": [[x, y], ..], "share": [a, b]}: the rows as they are now, on the two main directions of
 * the rows `aim` (vocab x dim): a plane that does not move while the rows do. NULL means the rows
 * themselves. Shares are those of the variance of the rows as they are now. */
PLAY_API(play_train_plane)
const char *play_train_plane(const play_training *training, const float *aim);
/* {"near": ..} of the rows as they are now. */
PLAY_API(play_train_near)
const char *play_train_near(const play_training *training, int32_t id, size_t top);
/* {"tokens": [..], "text"}: what the model writes now. */
PLAY_API(play_train_sample)
const char *play_train_sample(const play_training *training, double temperature, int32_t seed);
/* {"folder": ..}: writes the model, as `embla train` does at its end. */
PLAY_API(play_train_save)
const char *play_train_save(const play_training *training, const char *folder);

#endif
