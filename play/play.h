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
/* {"rows", "dim", "positions", "kind", "tied", "model", "words": [..]}; a row without a word has
 * null, and a table alone has "model": false. */
PLAY_API(play_about) const char *play_about(const play_model *model);
/* {"tokens": [{"id", "text"}, ..]}: how the model cuts a text. */
PLAY_API(play_tokens) const char *play_tokens(play_model *model, const char *text);
/* {"rows": [[..], ..], "positions": [[..], ..], "sums": [[..], ..]}: what the model computes with,
 * for tokens from position `first` on. Without positions the last two are missing. */
PLAY_API(play_embed)
const char *play_embed(const play_model *model, const int32_t *ids, size_t count, int32_t first);
/* {"norms": [a, b], "dot", "cosine"} of two rows. */
PLAY_API(play_compare) const char *play_compare(const play_model *model, int32_t a, int32_t b);
/* {"near": [{"id", "score"}, ..]} by cosine; the row itself is left out. */
PLAY_API(play_near) const char *play_near(const play_model *model, int32_t id, size_t top);
/* The same for plus[0] + .. - minus[0] - ..; the rows of the question are left out unless keep. */
PLAY_API(play_analogy)
const char *play_analogy(const play_model *model, const int32_t *plus, size_t plus_count,
                         const int32_t *minus, size_t minus_count, size_t top, int keep);
/* {"xy": [[x, y], ..], "share": [a, b]}: all rows on their two main directions. */
PLAY_API(play_plane) const char *play_plane(const play_model *model);
/* {"next": [{"id", "logit", "probability"}, ..], "each": [..], "loss"}: what follows the tokens,
 * most probable first, and how probable each of them was. */
PLAY_API(play_predict)
const char *play_predict(const play_model *model, const int32_t *ids, size_t count,
                         double temperature, size_t top);

/* ---- a training ---- */

typedef struct play_training play_training;

/* What the page lets a learner choose. 0 means what `embla train` takes without the option. */
typedef struct {
    double rate;
    int32_t words; /* a token is a word, of so many at most; 0: a token is a character */
    int32_t dim, steps, seed;
    int32_t positions; /* 1 + embla_positions_kind */
    int32_t tied;      /* 1 tied, -1 untied */
} play_choices;

/* A training of the preset microgpt on a file of text, as `embla train FILE --preset microgpt
 * --engine none` with these choices: the same bits. */
PLAY_API(play_train)
play_training *play_train(const char *path, const play_choices *choices);
PLAY_API(play_train_close) void play_train_close(play_training *training);
/* {"vocab", "dim", "steps", "parameters", "words": [..], "guessing"}: guessing is ln(vocab), the
 * loss of a model that knows nothing. */
PLAY_API(play_train_about) const char *play_train_about(const play_training *training);
/* Makes steps: {"step", "loss", "rate", "norm", "read": [..], "moved": [..]}: the step that comes
 * next, figures of the last one, the tokens that it read, and the rows whose numbers it changed. */
PLAY_API(play_train_steps) const char *play_train_steps(play_training *training, int32_t steps);
/* {"xy": [[x, y], ..], "share": [a, b]} of the rows as they are now. */
PLAY_API(play_train_plane) const char *play_train_plane(const play_training *training);
/* {"near": ..} of the rows as they are now. */
PLAY_API(play_train_near)
const char *play_train_near(const play_training *training, int32_t id, size_t top);
/* {"tokens": [..], "spaces"}: what the model writes now; words have spaces between them. */
PLAY_API(play_train_sample)
const char *play_train_sample(const play_training *training, double temperature, int32_t seed);
/* {"folder": ..}: writes the model, as `embla train` does at its end. */
PLAY_API(play_train_save)
const char *play_train_save(const play_training *training, const char *folder);

#endif
