/* SPDX-License-Identifier: Apache-2.0 */
/* Queries of an open corpus: words, tokens of a text, batches. A batch depends only on (seed, step,
 * index in the batch), so a training run that was interrupted continues with the same tokens.
 *
 * The order of documents is a permutation that is computed, not stored: a Feistel network over the
 * next power of 4, whose round keys are random numbers of (seed, epoch). A result beyond the number
 * of documents is put through the network again until it is below. Each document occurs once in an
 * epoch.
 */
#include <string.h>

#include "base/checked.h"
#include "base/options.h"
#include "base/random.h"
#include "base/utf8.h"
#include "corpus/corpus.h"
#include "files/cursor.h"
#include "unicode/cut.h"

enum { ROUNDS = 8 };
__extension__ typedef unsigned __int128 wide;

/* ---- sizes and words ---- */

int64_t embla_corpus_tokens(const embla_corpus *corpus)
{
    return corpus ? (int64_t)(corpus->count - (corpus->starts != NULL)) : 0;
}

int64_t embla_corpus_vocab(const embla_corpus *corpus)
{
    return corpus ? corpus->vocab : 0;
}

int64_t embla_corpus_documents(const embla_corpus *corpus)
{
    return corpus ? (int64_t)corpus->documents : 0;
}

int32_t embla_corpus_bos(const embla_corpus *corpus)
{
    return corpus ? corpus->bos : -1;
}

const char *embla_corpus_word(const embla_corpus *corpus, int32_t token, size_t *length)
{
    if (!corpus || token < 0) return NULL;
    if ((uint64_t)token < corpus->word_count) {
        if (length) *length = corpus->words[token].length;
        return corpus->words[token].bytes;
    }
    if ((uint64_t)token >= corpus->character_count) return NULL;
    if (length) *length = corpus->characters[token].length;
    return corpus->characters[token].text;
}

const char *embla_corpus_name(const embla_corpus *corpus, int32_t token)
{
    if (!corpus || token < 0) return NULL;
    if (token == embla_corpus_bos(corpus)) return "<bos>"; /* the corpus has no text for these */
    if (token == embla_corpus_unknown(corpus, NULL)) return "<unk>";
    return embla_corpus_word(corpus, token, NULL);
}

int32_t embla_corpus_unknown(const embla_corpus *corpus, int64_t *count)
{
    if (count) *count = corpus ? (int64_t)corpus->unknown : 0;
    return corpus && corpus->words ? (int32_t)corpus->word_count : -1;
}

/* ---- text to tokens of the corpus ---- */

/* Finds the token of a code point; -1 if there is none. */
static int64_t find_code(const embla_corpus *c, uint32_t code)
{
    size_t low = 0, high = c->character_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (c->codes[middle] < code)
            low = middle + 1;
        else
            high = middle;
    }
    return low < c->character_count && c->codes[low] == code ? (int64_t)low : -1;
}

/* Finds the token of the character at text[at], which has *used bytes. */
static embla_status token_at(const embla_corpus *c, const uint8_t *text, size_t length, size_t at,
                             size_t *used, int32_t *token)
{
    char shown[5] = {0};
    *used = 1;
    *token = text[at];
    if (!c->codes) return EMBLA_OK;
    *used = embla_utf8_length(text + at, length - at);
    if (*used == 0)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "the text is not valid UTF-8: byte %zu of %zu is 0x%02x", at, length,
                          text[at]);
    uint32_t code = embla_utf8_code(text + at, *used);
    int64_t found = find_code(c, code);
    memcpy(shown, text + at, *used);
    if (found < 0)
        return embla_fail(EMBLA_ERR_NOT_FOUND,
                          "U+%04" PRIX32 " '%s' at byte %zu is not among the %zu characters of "
                          "the corpus",
                          code, code < 0x20 || code == 0x7f ? "" : shown, at, c->character_count);
    *token = (int32_t)found;
    return EMBLA_OK;
}

/* Writes the first `capacity` words of a text as tokens; *count is the number of all. */
static void encode_words(const embla_corpus *c, const char *text, size_t length, size_t capacity,
                         int32_t *tokens, size_t *count)
{
    const char *end = length > 0 ? text + length : text, *word; /* an empty text may be NULL */
    *count = 0;
    for (size_t used; length > 0 && (used = embla_next_word(text, length, &word)) > 0;
         text = word + used, length = (size_t)(end - text)) {
        const embla_name *found = embla_names_find(&c->index, word, used);
        if (*count < capacity) tokens[*count] = (int32_t)(found ? found->number : c->word_count);
        ++*count;
    }
}

embla_status embla_corpus_tokenize(const embla_corpus *corpus, const char *text, size_t length,
                                   size_t capacity, int32_t *tokens, size_t *count)
{
    const uint8_t *bytes = (const uint8_t *)text;
    size_t have = 0, used = 0;
    int32_t token = 0;
    EMBLA_NEED(corpus);
    EMBLA_NEED(count);
    EMBLA_NEED_MANY(text, length);
    EMBLA_NEED_MANY(tokens, capacity);
    if (corpus->words) {
        encode_words(corpus, text, length, capacity, tokens, count);
        return EMBLA_OK;
    }
    if (!corpus->characters && !corpus->map)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "the corpus does not keep its tokenizer; use embla_tokenize");
    if (!corpus->characters)
        return embla_fail(
            EMBLA_ERR_UNSUPPORTED,
            "%.256s is a file of tokens without their text, so no text can be encoded",
            corpus->map->name);
    for (size_t at = 0; at < length; at += used, have++)
        EMBLA_TRY(token_at(corpus, bytes, length, at, &used, &token));
    *count = have;
    if (capacity > have) capacity = have;
    for (size_t at = 0, i = 0; i < capacity; at += used, i++)
        EMBLA_TRY(token_at(corpus, bytes, length, at, &used, tokens + i));
    return EMBLA_OK;
}

/* ---- order ---- */

typedef struct {
    uint64_t n;
    unsigned half; /* bits of each half; 4^half >= n */
    uint64_t keys[ROUNDS];
} order;

static void order_begin(uint64_t seed, uint64_t epoch, uint64_t n, order *out)
{
    uint32_t words[4][EMBLA_RANDOM_LANES];
    *out = (order){.n = n, .half = 1};
    while (out->half < 32 && (n - 1) >> (2 * out->half) != 0) out->half++;
    embla_philox(seed, 0, epoch, EMBLA_RANDOM_ORDER, words);
    for (int i = 0; i < ROUNDS; i++) out->keys[i] = (uint64_t)words[1][i] << 32 | words[0][i];
}

/* The round function: the last steps of splitmix64, of x and a key. */
static uint64_t mix(uint64_t x, uint64_t key)
{
    uint64_t z = (x + key) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

static uint64_t order_of(const order *o, uint64_t i)
{
    uint64_t mask = (UINT64_C(1) << o->half) - 1;
    do {
        uint64_t left = i >> o->half, right = i & mask;
        for (int round = 0; round < ROUNDS; round++) {
            uint64_t next = left ^ (mix(right, o->keys[round]) & mask);
            left = right;
            right = next;
        }
        i = left << o->half | right;
    } while (i >= o->n);
    return i;
}

uint64_t embla_corpus_order(uint64_t seed, uint64_t epoch, uint64_t n, uint64_t i)
{
    order o;
    order_begin(seed, epoch, n, &o);
    return order_of(&o, i);
}

/* ---- sequences ---- */

/* Tokens first .. first+used-1; the target of each is the token after it. */
typedef struct {
    uint64_t first;
    size_t used;
} sequence;

/* The state of making a batch. */
typedef struct {
    const embla_corpus *corpus;
    size_t length;
    bool validation;
    uint64_t step;     /* for a stream in random order */
    uint64_t position; /* number of the batch's first sequence: step or n, times batch */
    uint64_t pieces;   /* number of sequences in order */
    order split;       /* permutation whose end is for validation, if the split is random */
    order epoch;       /* permutation of the documents for training */
    uint64_t epoch_number;
    uint32_t words[4][EMBLA_RANDOM_LANES]; /* random numbers of 16 sequences of a stream */
} walk;

/* True if the documents for validation are chosen at random. Then those for training come first in
 * the permutation `split`. It depends neither on the seed nor on the epoch, so that the losses of
 * two seeds are of the same documents. */
static bool split_is_random(const embla_corpus *c)
{
    return c->starts && !c->options.in_order && c->train < c->documents;
}

static sequence document_of(const walk *w, uint64_t n)
{
    const embla_corpus *c = w->corpus;
    if (split_is_random(c)) n = order_of(&w->split, n);
    uint64_t targets = c->starts[n + 1] - c->starts[n];
    return (sequence){c->starts[n], targets < w->length ? (size_t)targets : w->length};
}

static sequence next_document(walk *w, uint64_t position)
{
    const embla_corpus *c = w->corpus;
    uint64_t epoch = position / c->train, n = position % c->train;
    if (c->options.in_order) return document_of(w, n);
    if (w->epoch.n == 0 || epoch != w->epoch_number)
        order_begin(c->options.seed, epoch, c->train, &w->epoch);
    w->epoch_number = epoch;
    return document_of(w, order_of(&w->epoch, n));
}

/* Draws the start of a sequence at random; length tokens and one more fit there. */
static sequence draw_sequence(walk *w, size_t b)
{
    const embla_corpus *c = w->corpus;
    size_t lane = b % EMBLA_RANDOM_LANES;
    if (lane == 0)
        embla_philox(c->options.seed, (uint32_t)b, w->step, EMBLA_RANDOM_PLACE, w->words);
    uint64_t number = (uint64_t)w->words[1][lane] << 32 | w->words[0][lane];
    return (sequence){(uint64_t)((wide)number * (c->train - w->length) >> 64), w->length};
}

/* Sequence b of the batch. Must be called with b from 0 upwards. */
static sequence sequence_of(walk *w, size_t b)
{
    const embla_corpus *c = w->corpus;
    uint64_t position = w->position + b;
    if (w->validation && position >= w->pieces) return (sequence){0};
    if (w->validation && c->starts) return document_of(w, c->train + position);
    if (w->validation) {
        uint64_t first = c->train + position * w->length, left = c->count - 1 - first;
        return (sequence){first, left < w->length ? (size_t)left : w->length};
    }
    if (c->starts) return next_document(w, position);
    if (c->options.in_order) return (sequence){position % w->pieces * w->length, w->length};
    return draw_sequence(w, b);
}

/* ---- writing a batch ---- */

/* Copies count tokens from first and returns the highest, as an unsigned number. */
static uint32_t copy_tokens(const embla_corpus *c, uint64_t first, size_t count, int32_t *out)
{
    const uint8_t *p = c->at + first * c->width;
    uint32_t highest = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t token = c->width == 1   ? p[i]
                         : c->width == 2 ? embla_le16(p + 2 * i)
                                         : embla_le32(p + 4 * i);
        if (token > highest) highest = token;
        memcpy(out + i, &token, sizeof token);
    }
    return highest;
}

static uint32_t write_sequence(const embla_corpus *c, sequence s, size_t length, int32_t *tokens,
                               int32_t *targets)
{
    uint32_t a = copy_tokens(c, s.first, s.used, tokens);
    uint32_t b = copy_tokens(c, s.first + 1, s.used, targets);
    for (size_t i = s.used; i < length; i++) {
        tokens[i] = 0;
        targets[i] = EMBLA_TARGET_IGNORE;
    }
    return a > b ? a : b;
}

/* The length of the longest sequence of a batch; all others are padded to it. */
static size_t longest(walk *w, size_t batch)
{
    size_t most = 0;
    if (!w->corpus->starts && !w->validation) return w->length;
    for (size_t b = 0; b < batch && most < w->length; b++) {
        size_t used = sequence_of(w, b).used;
        if (used > most) most = used;
    }
    return most;
}

static embla_status write_batch(walk *w, size_t batch, int32_t *tokens, int32_t *targets,
                                size_t *used)
{
    const embla_corpus *c = w->corpus;
    uint32_t highest = 0;
    if (split_is_random(c)) order_begin(0, UINT64_MAX, c->documents, &w->split);
    size_t length = used ? longest(w, batch) : w->length;
    if (c->map) EMBLA_TRY(embla_map_check(c->map));
    for (size_t b = 0; b < batch; b++) {
        uint32_t found =
            write_sequence(c, sequence_of(w, b), length, tokens + b * length, targets + b * length);
        if (found > highest) highest = found;
    }
    if (c->map) EMBLA_TRY(embla_map_check(c->map));
    if (c->map && highest >= (uint64_t)c->vocab)
        return embla_fail(EMBLA_ERR_IO,
                          "%.256s was changed while it was open: it has token %" PRIu32
                          ", but the highest was %" PRId64,
                          c->map->name, highest, c->vocab - 1);
    if (used) *used = length;
    return EMBLA_OK;
}

/* ---- the call ---- */

static embla_status check(const embla_corpus_request *r, uint64_t *position)
{
    const char *what = r->validation ? "the validation batch" : "step";
    uint64_t numbers, bytes;
    size_t fits;
    if (r->step < 0)
        return embla_fail(EMBLA_ERR_ARGUMENT, "%s is %" PRId64 "; it must be 0 or greater", what,
                          r->step);
    if (r->batch < 1 || r->length < 1 || r->batch > INT32_MAX ||
        !embla_mul_ok(r->batch, r->length, &numbers) ||
        !embla_mul_ok(numbers, sizeof(int32_t), &bytes) || !embla_size_ok(bytes, &fits))
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "a batch of %zu sequences of %zu tokens is not possible: there must be 1 "
                          "to %d sequences of at least 1 token, and they must fit into memory",
                          r->batch, r->length, (int)INT32_MAX);
    if (!embla_mul_ok((uint64_t)r->step, r->batch, position) || *position > INT64_MAX - r->batch)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "%s %" PRId64 " with %zu sequences each exceeds sequence number %" PRId64,
                          what, r->step, r->batch, INT64_MAX);
    return EMBLA_OK;
}

/* Counts the pieces that there are for training. */
static embla_status count_training(const embla_corpus *c, size_t length, uint64_t *pieces)
{
    if (!c->starts && length >= c->train)
        return embla_fail(EMBLA_ERR_SHAPE,
                          "sequences of %zu tokens and a target need more than the %" PRIu64
                          " tokens for training; use shorter sequences (--length) or a longer text",
                          length, c->train);
    *pieces = c->starts ? c->train : (c->train - 1) / length;
    return EMBLA_OK;
}

/* Counts the pieces that there are for validation, from `position` on at least one. */
static embla_status count_validation(const embla_corpus *c, const embla_corpus_request *r,
                                     uint64_t position, uint64_t *pieces)
{
    uint64_t kept = (c->starts ? c->documents : c->count) - c->train;
    *pieces = c->starts ? kept : kept < 2 ? 0 : (kept - 2) / r->length + 1;
    if (position < *pieces) return EMBLA_OK;
    return embla_fail(EMBLA_ERR_RANGE,
                      "validation batch %" PRId64 " is out of range: there are %" PRIu64
                      " batches (%" PRIu64 " %s are for validation)",
                      r->step, *pieces / r->batch + (*pieces % r->batch != 0), kept,
                      c->starts ? "documents" : "tokens");
}

embla_status embla_corpus_batch(const embla_corpus *corpus, const embla_corpus_request *request,
                                int32_t *tokens, int32_t *targets, size_t *used)
{
    EMBLA_NEED(corpus);
    EMBLA_NEED(request);
    EMBLA_NEED(tokens);
    EMBLA_NEED(targets);
    EMBLA_TRY(embla_options_check(request));
    walk w = {.corpus = corpus,
              .length = request->length,
              .step = request->validation ? 0 : (uint64_t)request->step,
              .validation = request->validation};
    EMBLA_TRY(check(request, &w.position));
    EMBLA_TRY(request->validation ? count_validation(corpus, request, w.position, &w.pieces)
                                  : count_training(corpus, request->length, &w.pieces));
    return write_batch(&w, request->batch, tokens, targets, used);
}
