/* SPDX-License-Identifier: Apache-2.0 */
/* One block of text: its words, the negatives, and a window around each word. */
#include "wordvec/step_part.h"

#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "wordvec/window.h"

enum {
    LINE_MOST = 10000, /* a longer line is cut, as in gensim; windows do not cross */
    LOSS_EVERY = 64    /* windows whose loss is computed */
};

/* ---- memory ---- */

size_t embla_step_part_words(const embla_step_context *context)
{
    return (size_t)(context->block / 2 + 2); /* each has at least a byte and a separator */
}

/* The most rows of words that a block can need. */
static size_t rows_most(const embla_step_context *context, size_t more)
{
    size_t words = embla_step_part_words(context) + more, all = (size_t)context->lexicon->count;
    return words < all ? words : all;
}

/* Memory is allocated for the most words that a block can have, but only what is accessed counts:
 * about the words of a usual block, in whole huge pages. */
static uint64_t accessed(const embla_step_context *context, size_t rows, size_t most)
{
    enum { HUGE = 2 << 20 };
    uint64_t row = context->stride * sizeof(float), bytes = (rows < most ? rows : most) * row;
    return most * row < HUGE ? bytes : (bytes + HUGE - 1) / HUGE * HUGE;
}

uint64_t embla_step_part_bytes(const embla_step_context *context)
{
    size_t words = context->usual, inputs = rows_most(context, 0),
           outputs = rows_most(context, context->pool);
    uint64_t bytes = 2 * words * sizeof(int32_t) + context->pool * sizeof(float *);
    if (context->options->hogwild) return bytes;
    bytes += 2 * (uint64_t)context->lexicon->count * sizeof(int32_t); /* the indexes */
    bytes += accessed(context, words, inputs) * (context->grams ? 2 : 1);
    return bytes + accessed(context, words + context->pool, outputs);
}

static embla_status make_copies(const embla_step_context *context, size_t more, bool starts,
                                embla_arena *arena, embla_copies *c)
{
    void *rows = NULL, *first = NULL;
    c->room = rows_most(context, more);
    const size_t row = context->stride * sizeof(float);
    EMBLA_TRY(embla_mem_many(c->room, row, "copies of rows", &rows));
    c->rows = rows;
    if (starts) EMBLA_TRY(embla_mem_many(c->room, row, "copies of rows", &first));
    c->starts = first;
    EMBLA_TRY(embla_arena_many(arena, c->room, sizeof *c->tokens, "copies of rows", &c->tokens));
    return embla_arena_many(arena, (uint64_t)context->lexicon->count, sizeof *c->copy_of,
                            "an index of copies", &c->copy_of);
}

embla_status embla_step_part_make(const embla_step_context *context, embla_arena *arena,
                                  embla_step_part *out)
{
    out->stride = context->stride;
    out->room = 2 * embla_step_part_words(context); /* a line end may follow each word */
    EMBLA_TRY(
        embla_arena_many(arena, out->room, sizeof *out->words, "words of a block", &out->words));
    EMBLA_TRY(embla_arena_many(arena, context->pool, sizeof *out->pool, "negatives", &out->pool));
    if (context->options->hogwild) return EMBLA_OK;
    EMBLA_TRY(make_copies(context, 0, context->grams != NULL, arena, &out->input));
    return make_copies(context, context->pool, false, arena, &out->output);
}

void embla_step_part_free(embla_step_part *part)
{
    size_t bytes = part->stride * sizeof(float);
    embla_mem_free(part->input.rows, part->input.room * bytes);
    embla_mem_free(part->input.starts, part->input.room * bytes);
    embla_mem_free(part->output.rows, part->output.room * bytes);
    part->input.rows = part->input.starts = part->output.rows = NULL;
}

void embla_copies_clear(embla_copies *c)
{
    for (size_t i = 0; i < c->count; i++) c->copy_of[c->tokens[i]] = 0;
    c->count = 0;
}

/* ---- rows ---- */

/* A new copy for a token, to be filled. */
static float *new_copy(const embla_step_context *context, embla_copies *c, int32_t token)
{
    size_t at = c->count++;
    c->tokens[at] = token;
    c->copy_of[token] = (int32_t)(at + 1);
    return c->rows + at * context->stride;
}

/* The row of a neighbour. With n-grams it is the mean of the rows that make up the word. */
static inline float *input_row(const embla_step_context *context, embla_step_part *part,
                               int32_t token)
{
    embla_copies *c = &part->input;
    const float *row = context->input + (size_t)token * context->stride;
    if (context->options->hogwild) return context->input + (size_t)token * context->stride;
    if (c->copy_of[token]) return c->rows + (size_t)(c->copy_of[token] - 1) * context->stride;
    float *copy = new_copy(context, c, token);
    if (context->grams) {
        float *start = c->starts + (copy - c->rows);
        embla_grams_mean(context->grams, token, row, context->stride, start);
        row = start;
    }
    return memcpy(copy, row, context->stride * sizeof *row);
}

static inline float *output_row(const embla_step_context *context, embla_step_part *part,
                                int32_t token)
{
    embla_copies *c = &part->output;
    float *row = context->output + (size_t)token * context->stride;
    if (context->options->hogwild) return row;
    if (c->copy_of[token]) return c->rows + (size_t)(c->copy_of[token] - 1) * context->stride;
    return memcpy(new_copy(context, c, token), row, context->stride * sizeof *row);
}

/* ---- a block ---- */

typedef struct {
    uint64_t state;
} dice;

static inline uint64_t roll(dice *d)
{
    uint64_t random = embla_splitmix64(d->state);
    d->state += EMBLA_GOLDEN;
    return random;
}

/* A number below n, of 32 random bits. */
static inline size_t below(uint32_t random, size_t n)
{
    return (size_t)((uint64_t)random * n >> 32);
}

/* Reads the words of a block that have rows, and leaves out frequent ones at random. */
static size_t read_words(const embla_step_context *context, embla_step_part *part, uint64_t block,
                         dice *d)
{
    embla_word_reader reader;
    uint64_t from = block * context->block;
    size_t count = 0, line = 0;
    embla_reader_begin(&reader, context->reading, from, from + context->block);
    part->tokens = 0;
    while (embla_reader_next(&reader) && count + 2 < part->room) {
        int32_t token = embla_lexicon_find(context->lexicon, reader.word, reader.length);
        part->tokens++;
        if (line > 0 && (reader.new_line || line == LINE_MOST)) {
            part->words[count++] = -1;
            line = 0;
        }
        if (token < 0 || (uint32_t)(roll(d) >> 32) > context->lexicon->keep[token]) continue;
        part->words[count++] = token;
        line++;
    }
    part->words[count] = -1;
    return count;
}

/* Adds a neighbour. Skip-gram has each row once, so that all of its changes start from it. */
static inline void add_input(embla_window *w, float *row, bool once)
{
    for (size_t i = 0; once && i < w->input_count; i++)
        if (w->inputs[i] == row) {
            w->times[i] += 1;
            return;
        }
    w->times[w->input_count] = 1;
    w->inputs[w->input_count++] = row;
}

/* Adds a negative, unless it is already there. */
static inline void add_output(embla_window *w, float *row)
{
    for (size_t i = 0; i < w->output_count; i++)
        if (w->outputs[i] == row) return;
    w->outputs[w->output_count++] = row;
}

/* The window around word `at` of a line. */
static void train_window(const embla_step_context *context, embla_step_part *part,
                         const int32_t *line, size_t length, size_t at, embla_window *w, dice *d)
{
    const embla_wordvec_options *o = context->options;
    size_t reach = 1 + below((uint32_t)roll(d), o->window);
    size_t first = at > reach ? at - reach : 0,
           last = at + reach < length ? at + reach : length - 1;
    bool skipgram = o->kind == EMBLA_WORDVEC_SKIPGRAM;
    uint64_t random = 0;
    w->input_count = w->output_count = 0;
    for (size_t i = first; i <= last; i++)
        if (i != at) add_input(w, input_row(context, part, line[i]), skipgram);
    add_output(w, output_row(context, part, line[at]));
    for (size_t i = 0; i < o->negatives; i++) {
        random = i % 2 == 0 ? roll(d) : random >> 32;
        add_output(w, part->pool[below((uint32_t)random, context->pool)]);
    }
    if (skipgram)
        embla_window_skipgram(w);
    else
        embla_window_cbow(w);
}

void embla_step_part_train(const embla_step_context *context, embla_step_part *part, uint64_t epoch,
                           uint64_t block, float rate)
{
    dice d = {embla_splitmix64(embla_splitmix64(context->options->seed ^ epoch << 48) ^ block)};
    embla_window w = {.stride = context->stride, .rate = rate};
    size_t count = read_words(context, part, block, &d), begin = 0;
    for (size_t i = 0; i < context->pool && count > 0; i++)
        part->pool[i] = output_row(context, part, embla_lexicon_draw(context->lexicon, roll(&d)));
    while (begin < count) {
        size_t length = 0;
        while (part->words[begin + length] >= 0) length++;
        for (size_t i = 0; length > 1 && i < length; i++) {
            w.wants_loss = (begin + i) % LOSS_EVERY == 0;
            train_window(context, part, part->words + begin, length, i, &w, &d);
        }
        begin += length + 1;
    }
    part->loss = w.loss;
    part->pairs = w.pairs;
}
